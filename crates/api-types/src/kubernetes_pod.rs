//! A pod of Kubernetes that this server has to place.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::elastane_ext::Reason;

/// Answer of `GET /elastane/v1/kubernetes/pods/{namespace}/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesPod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Id of the workload that it is a pod of; left out if it is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_id: Option<String>,
    /// One sentence about its state.
    pub summary: String,
    /// Reason that keeps it out of a workload, such as a missing project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Reason>,
}
