//! What the dispatcher is given at its start. Owns: the description of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestrator::NodeList;
use spec::{JOB_TLS_VARIABLE, UserLimits};
use units::Instant;
use uuid::Uuid;
use view::View;

use crate::retention::RetentionPolicy;
use crate::{Clock, DecisionFault, NodeAccess};

/// Everything the dispatcher works with.
pub struct Options {
    /// Name of the cluster, for people.
    pub cluster_name: String,
    /// Version of this program, for people.
    pub version: String,
    /// The nodes to start with.
    pub nodes: NodeList,
    /// True if workloads may lose their places because these machines are others than before; else
    /// that is refused.
    pub replaces_nodes: bool,
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
    /// How many ended workloads stay in memory.
    pub ended_kept: usize,
    /// How much users may make.
    pub user_limits: UserLimits,
    /// How long the logs are kept.
    pub kept: RetentionPolicy,
    /// Where what happens is recorded.
    pub recording: recording::Writer,
    /// What makes decisions fail, in trials.
    pub decision_fault: Option<DecisionFault>,
    /// What makes batches fail, in trials.
    pub batch_fault: Option<BatchFault>,
}

/// Is called with what each batch would show and its time, so that a trial can make it fail.
pub type BatchFault = Arc<dyn Fn(&View, Instant) + Send + Sync>;

/// Opens the sealed values of an object, `<kind>/<id>`: each by its name, or why it cannot be done.
/// Those of [`job_token`] are kept nowhere: there is one of each workload, `token`.
pub type Unseal = Arc<dyn Fn(&str, &str) -> Result<BTreeMap<String, String>, String> + Send + Sync>;

/// The kind of the object that is the token of a workload whose pods talk to each other.
pub const JOB_TOKEN: &str = "job-token";
/// The same where they encrypt: certificate and key follow the token.
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
    /// Made once, when the state directory was.
    pub uuid: Uuid,
    /// Name.
    pub name: String,
    /// When the state directory was made.
    pub created_at: Instant,
    /// Version of this program.
    pub version: String,
}
