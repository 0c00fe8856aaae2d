//! Names of workloads and resources in values that stand beside sentences.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A workload, as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadName {
    /// Its id; left out if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Name of the revision, of an inference; `name` is that of the inference then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The name of its project.
    pub project_name: String,
}

/// Resource of a holder or a share, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResourceKind {
    /// Thousandths of a GPU.
    Gpu,
    /// Thousandths of a core.
    Cpu,
    /// Bytes.
    Memory,
}
