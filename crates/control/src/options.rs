//! Options of the dispatcher. Owns: the description of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestrator::{NewObject, NodeList, Settings};
use spec::JOB_TLS_VARIABLE;
use units::Instant;
use uuid::Uuid;
use view::View;

use crate::retention::RetentionPolicy;
use crate::{Clock, DecisionFault, NodeAccess};

/// Everything the dispatcher works with.
pub struct Options {
    /// Name of the cluster, for messages.
    pub cluster_name: String,
    /// Version of this program, for messages.
    pub version: String,
    /// The nodes to start with.
    pub nodes: NodeList,
    /// True if workloads may lose their places because the nodes have changed; else the server does
    /// not start.
    pub replaces_nodes: bool,
    /// Engine that runs pods on the nodes.
    pub engine: Arc<dyn engine::Engine>,
    /// Database of the state.
    pub store: store::Store,
    /// Policy of decisions.
    pub policy: sched::Policy,
    /// Source of the time.
    pub clock: Arc<dyn Clock>,
    /// Decrypts the values of credentials.
    pub unseal: Unseal,
    /// Access of workloads to the node.
    pub node_access: Arc<NodeAccess>,
    /// Settings of the state.
    pub settings: Settings,
    /// Objects of a new installation. Its first start creates them; a later start creates none.
    pub samples: Vec<NewObject>,
    /// Retention of the logs.
    pub kept: RetentionPolicy,
    /// Recording of the dispatcher's inputs.
    pub recording: recording::Writer,
    /// Makes decisions fail, in tests.
    pub decision_fault: Option<DecisionFault>,
    /// Makes batches fail, in tests.
    pub batch_fault: Option<BatchFault>,
}

/// Called with the view that each batch would publish and its time, so that a test can make it
/// fail.
pub type BatchFault = Arc<dyn Fn(&View, Instant) + Send + Sync>;

/// Decrypts the values of an object, `<kind>/<id>`: the values by name, or the reason of a failure.
/// Tokens of [`job_token`] are not stored: each workload has one value, `token`.
pub type Unseal = Arc<dyn Fn(&str, &str) -> Result<BTreeMap<String, String>, String> + Send + Sync>;

/// Kind of the object with the token of a workload whose pods communicate.
pub const JOB_TOKEN: &str = "job-token";
/// [`JOB_TOKEN`] of pods that encrypt their connections: certificate and key follow the token.
pub const JOB_TOKEN_TLS: &str = "job-token-tls";

/// The object that is the token of a workload, by the variables of its pods.
#[must_use]
pub fn job_token(workload: Uuid, env: &BTreeMap<String, String>) -> String {
    let encrypts = env.get(JOB_TLS_VARIABLE).is_some_and(|value| value == "true");
    let kind = if encrypts { JOB_TOKEN_TLS } else { JOB_TOKEN };
    format!("{kind}/{workload}")
}

/// The cluster, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterInfo {
    /// Id, made together with the state directory.
    pub uuid: Uuid,
    /// Name.
    pub name: String,
    /// Creation time of the state directory.
    pub created_at: Instant,
    /// Version of this program.
    pub version: String,
}
