//! The ledger of GPUs: our own, under `/elastane/v1/usage`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::{Micros, Time};

/// GPUs held and used in a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuUsage {
    /// Start: a full hour.
    pub from: Time,
    /// End: a full hour, or now.
    pub to: Time,
    /// Properties that the rows tell apart: `project`, `user`, `model`.
    pub by: Vec<String>,
    /// Currency of the costs, as it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The rows, in the order of what they tell apart.
    pub rows: Vec<GpuUsageRow>,
    /// All of them together.
    pub total: GpuUsageRow,
}

/// GPU time that was held and used, of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuUsageRow {
    /// Project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Its name; of one that is gone, the last it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// User of the workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Model of the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    /// Held. A GPU that is shared counts for the part that is held.
    pub allocated_gpu_hours: Micros,
    /// Held while what they do was measured; of the rest, the use is not known.
    pub measured_gpu_hours: Micros,
    /// Measured time in which they computed; missing if nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_gpu_hours: Option<Micros>,
    /// Measured time in which they did not compute; missing if nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_gpu_hours: Option<Micros>,
    /// Memory that was granted while its use was measured, in GiB-hours; missing where it never
    /// was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_gpu_memory_gib_hours: Option<Micros>,
    /// GPU memory in use in the measured time, in GiB-hours. A workload that holds more than it was
    /// granted counts with all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_gpu_memory_gib_hours: Option<Micros>,
    /// Price of what was held; missing where a model that was held has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Micros>,
}

/// Prices of GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuPrices {
    /// A label for people, such as `EUR`; nothing is converted.
    #[schema(max_length = 16)]
    pub currency: String,
    /// Prices by model.
    #[schema(max_items = 200)]
    pub prices: Vec<GpuPrice>,
}

/// Price of a GPU model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuPrice {
    /// As the nodes call it (`gpuType`).
    pub gpu_model: String,
    /// For one GPU and one hour.
    pub per_gpu_hour: Micros,
}
