//! Tasks: pieces of the data that one worker works through. Owns: their types. Does not know about:
//! who has which.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A worker of the job. Never used again for another, also not after a restart of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u32);

/// A task of the job; from 1, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "worker {}", self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "task {}", self.0)
    }
}

/// Processing of the records of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Train on them.
    Train,
    /// Measure the model with them.
    Evaluate,
    /// Predict for each.
    Predict,
    /// Build the trained model and export it; the records only serve to build it.
    Save,
}

/// Positions in the data, in the order in which they are visited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Shard of the plan; `None`: positions of the whole data, shuffled.
    pub shard: Option<u32>,
    /// The positions.
    pub range: Range<u64>,
}

impl Records {
    /// Number of positions.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// A part of the measurement of one version of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// The version.
    pub version: u64,
    /// Index of the part in the measurement, from 0.
    pub piece: u64,
}

/// A piece of work for one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// Processing of the records.
    pub kind: Kind,
    /// Records of the task.
    pub records: Records,
    /// Pass over the data, from 0.
    pub epoch: u32,
    /// Measurement that the task is part of; `None` if it measures no model in training.
    pub measures: Option<Measure>,
    /// Number of failures of code on these records.
    pub failures: u32,
}
