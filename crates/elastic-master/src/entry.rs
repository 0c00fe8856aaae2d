//! What a master gets to know: the lines of its journal. Owns: their form. Does not know about: what
//! they change.

use std::collections::BTreeMap;

use elastic::{Input, Shard};
use elastic_proto::v1::Metric;
use serde::{Deserialize, Serialize};
use units::Instant;

/// What a worker has measured of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub records: u64,
    pub metrics: Vec<Metric>,
}

/// Two pods that do not reach each other, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parting {
    /// The one that cannot connect.
    pub pod: String,
    /// And the one that it does not reach.
    pub unreached: String,
    /// The one of the two that leaves.
    pub leaves: String,
    pub for_ms: u64,
}

/// Why a worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    Done,
    Preempted,
    CodeError,
    /// Its pod is gone, or it is silent.
    Lost,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A worker begins; it gets the next number.
    Registered { pod: String, instance: u64, host: String },
    /// A worker listens for others there: it can train together with them.
    Ready { worker: u32, host: String },
    /// A worker ends.
    Gone { worker: u32, reason: Reason, message: String },
    /// What the data are.
    Data { shards: Vec<Shard>, validation: Vec<Shard> },
    /// For the training.
    Job(Input<Report>),
    /// Two workers do not reach each other: the younger is to leave until then.
    Parted { worker: u32, deadline: Instant, parting: Parting },
    /// Counted by workers.
    Counted(BTreeMap<String, u64>),
    /// A parameter server is there.
    Server { index: u32, instance: u64, address: String },
    /// The model goes back to the newest checkpoint that is not one of these.
    Restore { unreadable: Option<u64>, message: String },
    /// The leader has made the last checkpoint.
    ServersDone,
}
