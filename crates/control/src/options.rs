//! What the dispatcher is given at its start. Owns: the description of nodes, and the clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use units::Instant;
use uuid::Uuid;

use crate::NodeAccess;
use crate::retention::Kept;

/// Everything the dispatcher works with.
pub struct Options {
    /// Name of the cluster, for people.
    pub cluster_name: String,
    /// Version of this program, for people.
    pub version: String,
    /// The machines.
    pub nodes: Vec<NodeSpec>,
    /// What runs pods on them.
    pub engine: Arc<dyn engine::Engine>,
    /// Where the state is kept.
    pub store: store::Store,
    /// How decisions are made.
    pub policy: sched::Policy,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Opens what credentials keep.
    pub unseal: Unseal,
    /// What of the node workloads may have.
    pub node_access: Arc<NodeAccess>,
    /// How long the logs are kept.
    pub kept: Kept,
}

/// Opens the sealed values of an object, `<kind>/<id>`: each by its name, or why it cannot be done.
pub type Unseal = Arc<dyn Fn(&str, &str) -> Result<BTreeMap<String, String>, String> + Send + Sync>;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Name, unique.
    pub name: String,
    /// Product name of its GPUs, or `simulated`.
    pub gpu_type: String,
    /// Whether its GPUs exist only in the books.
    pub simulated: bool,
    /// Its GPUs, in their order.
    pub gpus: Vec<NodeGpu>,
    /// Allocatable thousandths of cores.
    pub cpu_millis: u64,
    /// Allocatable bytes of main memory.
    pub memory_bytes: u64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// A GPU of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGpu {
    /// What the driver calls it.
    pub uuid: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
}

/// The cluster, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterInfo {
    /// Made once, when the state directory was.
    pub uuid: Uuid,
    /// Name.
    pub name: String,
    /// When the state directory was made.
    pub created_at: Instant,
    /// Version of this program.
    pub version: String,
}

/// What time it is, and waiting for a time: the only way this crate learns either.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Instant;
    /// Returns at `at`, or soon after.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Instant(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        // A day at most: tokio's timers have an end, and the dispatcher looks again anyway.
        let wait_ms = at.since_ms(self.now()).min(86_400_000);
        Box::pin(tokio::time::sleep(Duration::from_millis(wait_ms)))
    }
}
