//! Names of the objects that the engine keeps at the daemon: of containers, volumes and network
//! aliases, of the labels with their owner, and of the folder of a pod in its containers.

use engine::{Member, RunKey};
use uuid::Uuid;

/// The key of the run.
pub(crate) const RUN_LABEL: &str = "elastane.run";
/// The pod that a volume belongs to.
pub(crate) const POD_ID_LABEL: &str = "elastane.pod-id";
/// The name of its pod.
pub(crate) const POD_LABEL: &str = "elastane.pod";
/// The name of its workload.
pub(crate) const WORKLOAD_LABEL: &str = "elastane.workload";
/// Label with the id of the workload.
pub(crate) const WORKLOAD_ID_LABEL: &str = "elastane.workload-id";
/// Label with the name of the project.
pub(crate) const PROJECT_LABEL: &str = "elastane.project";

/// Where the volume of a pod is.
pub(crate) const OWN_DIR: &str = "/elastane";

/// The name of a run's container.
pub(crate) fn container(key: RunKey) -> String {
    format!("elastane-{key}")
}

/// The volume that a pod keeps from one run to the next.
pub(crate) fn volume(pod: Uuid) -> String {
    format!("elastane-{pod}")
}

/// The network alias of a pod of a gang: the pod's name, unless it was given another.
pub(crate) fn address(workload: &str, member: &Member) -> String {
    format!("{workload}-{}-{}", member.role, member.index)
}
