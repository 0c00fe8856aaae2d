//! Inputs of a master: the lines of its journal. Owns: their form. Does not know about: their
//! effects.

use std::collections::BTreeMap;

use elastic::{Input, Shard};
use elastic_proto::v1::Metric;
use serde::{Deserialize, Serialize};
use units::Instant;

/// Measurements of a worker in a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub records: u64,
    pub metrics: Vec<Metric>,
}

/// Two pods that do not reach each other, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parting {
    /// Pod that cannot connect.
    pub pod: String,
    /// Pod that it does not reach.
    pub unreached: String,
    /// The one of the two that leaves.
    pub leaves: String,
    pub for_ms: u64,
}

/// Reason why a worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    Done,
    Preempted,
    CodeError,
    /// The pod of the worker is gone, or the worker is silent.
    Lost,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A worker registers; it gets the next number.
    Registered { pod: String, instance: u64, host: String },
    /// A worker listens for others at `host`: it can train together with them.
    Ready { worker: u32, host: String },
    /// A worker is gone.
    Gone { worker: u32, reason: Reason, message: String },
    /// The first worker has reported the shards of the data.
    Data {
        shards: Vec<Shard>,
        validation: Vec<Shard>,
        /// See [`elastic::Training::settles`]; absent in journals of earlier versions.
        #[serde(default)]
        settles: bool,
    },
    /// An input of the training.
    Job(Input<Report>),
    /// Two workers do not reach each other: the younger has to leave before the deadline.
    Parted { worker: u32, deadline: Instant, parting: Parting },
    /// Counters that workers report.
    Counted(BTreeMap<String, u64>),
    /// A parameter server is ready.
    Server { index: u32, instance: u64, address: String },
    /// The model is restored from the newest checkpoint other than `unreadable`.
    Restore { unreadable: Option<u64>, message: String },
    /// The leader has made the last checkpoint.
    ServersDone,
}
