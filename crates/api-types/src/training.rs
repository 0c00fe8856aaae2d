//! Elastic trainings, as far as readers see them: the job and its workers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::{Millis, Time};

/// Progress of an elastic training.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobTraining {
    /// The pass over the data, from 0.
    pub epoch: u32,
    /// Visited records over all epochs.
    pub records: u64,
    /// All there will be; left out where that is not known, or there is no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_total: Option<u64>,
    /// Visited records that could not be read.
    pub bad_records: u64,
    /// The version of the model.
    pub model_version: u64,
    /// The newest version of which there is a checkpoint.
    pub checkpoint_version: u64,
    /// Time at which that checkpoint was written; left out if the server has not seen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpointed_at: Option<Time>,
    /// Records that all workers train on, per second.
    pub samples_per_second: Millis,
    /// Workers that are there.
    pub workers: u32,
    /// Gradients that were too old and were computed again, since the leader of the parameter
    /// servers started.
    pub old_gradients: u64,
    /// Rows of embedding tables that the parameter servers have stored.
    pub embedding_rows: u64,
}

/// Progress of a worker of an elastic training.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTraining {
    /// Its rank among the workers that are there.
    pub rank: u32,
    /// Ids of the tasks in its hands.
    pub tasks: Vec<u64>,
    /// The version of the model that it has.
    pub model_version: u64,
    /// Records that it trains on, per second.
    pub samples_per_second: Millis,
    /// It hands back what it has, and leaves.
    pub leaving: bool,
}
