//! The plan of a job: shards, passes over them, and how they are cut into tasks. Owns: the checks
//! and the cutting. Does not know about: workers.

use serde::{Deserialize, Serialize};

use crate::order::{Permutation, mix};
use crate::task::{Kind, Records};

/// A file or table, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Name for the reader of the data, usually a path.
    pub name: String,
    /// Its first record.
    pub start: u64,
    /// Number of its records.
    pub count: u64,
}

/// Number of passes over the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Epochs {
    /// This number of passes.
    Count(u32),
    /// Until a person ends the job, or it has reached `records_max`.
    Endless,
}

/// The order in which an epoch visits the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Shard by shard, as given.
    Given,
    /// Tasks shuffled, records inside a task as given.
    Tasks {
        /// Seed; each epoch derives its own from it.
        seed: u64,
    },
    /// All records shuffled over all shards.
    Records {
        /// Seed; each epoch derives its own from it.
        seed: u64,
    },
}

/// The data of a job and how it visits them. Does not change while the job lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Processing of each record.
    pub kind: Kind,
    /// The data.
    pub shards: Vec<Shard>,
    /// The size of a task, in records; the last of a shard is smaller.
    pub records_per_task: u64,
    /// Passes over the data.
    pub epochs: Epochs,
    /// Order of the records.
    pub order: Order,
    /// No more records than these in all, over all epochs (`--max_step` times the minibatch).
    pub records_max: Option<u64>,
    /// True if one task of kind [`Kind::Save`] follows when all others are finished.
    pub saves: bool,
}

/// Error of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There are no records to read.
    #[error("the data have no records: give at least one shard that has some")]
    Empty,
    /// A task of no records.
    #[error("records per task: 0 is too few; at least 1")]
    RecordsPerTask,
    /// No pass over the data.
    #[error("epochs: 0 passes over the data train nothing; at least 1, or endless")]
    Epochs,
    /// A limit that lets nothing be read.
    #[error("records in all: at most 0 trains nothing; at least 1, or no limit")]
    RecordsMax,
    /// A worker that may hold nothing.
    #[error("tasks that a worker may have: 0 gives it none; at least 1")]
    HeldMax,
    /// More records than can be counted.
    #[error("the data have more records than fit in 64 bits")]
    TooMany,
    /// A shard that ends beyond what can be counted.
    #[error("shard {name}: start {start} plus {count} records does not fit in 64 bits")]
    ShardEnd {
        /// Its name.
        name: String,
        /// Its first record.
        start: u64,
        /// Its length.
        count: u64,
    },
    /// A kind that a job is not made of.
    #[error("a job trains, evaluates or predicts; saving comes by itself after training")]
    Kind,
    /// More shards than have numbers.
    #[error("at most {} shards", u32::MAX)]
    Shards,
}

impl Plan {
    /// Training of these shards, once, in their order, and nothing else.
    #[must_use]
    pub fn training(shards: Vec<Shard>, records_per_task: u64) -> Self {
        Self {
            kind: Kind::Train,
            shards,
            records_per_task,
            epochs: Epochs::Count(1),
            order: Order::Given,
            records_max: None,
            saves: false,
        }
    }

    /// Number of records that one pass visits.
    ///
    /// # Errors
    ///
    /// [`PlanError`], if the plan cannot be carried out.
    pub fn check(&self) -> Result<u64, PlanError> {
        if self.kind == Kind::Save {
            return Err(PlanError::Kind);
        }
        if self.records_per_task == 0 {
            return Err(PlanError::RecordsPerTask);
        }
        if self.epochs == Epochs::Count(0) {
            return Err(PlanError::Epochs);
        }
        if self.records_max == Some(0) {
            return Err(PlanError::RecordsMax);
        }
        if u32::try_from(self.shards.len()).is_err() {
            return Err(PlanError::Shards);
        }
        if let Some(shard) = self.shards.iter().find(|s| s.start.checked_add(s.count).is_none()) {
            let Shard { name, start, count } = shard.clone();
            return Err(PlanError::ShardEnd { name, start, count });
        }
        let sum = self.shards.iter().try_fold(0_u64, |sum, shard| sum.checked_add(shard.count));
        match sum.ok_or(PlanError::TooMany)? {
            0 => Err(PlanError::Empty),
            records => Ok(records),
        }
    }

    /// True if there is a pass with this number, from 0.
    #[must_use]
    pub fn has_epoch(&self, epoch: u32) -> bool {
        match self.epochs {
            Epochs::Count(count) => epoch < count,
            Epochs::Endless => true,
        }
    }

    /// The record of the data at a position of a task: its shard, and its number there.
    #[must_use]
    pub fn record(&self, epoch: u32, records: &Records, position: u64) -> (u32, u64) {
        if let Some(shard) = records.shard {
            return (shard, position);
        }
        let seed = if let Order::Records { seed } = self.order { seed } else { 0 };
        let count = self.shards.iter().map(|shard| shard.count).sum();
        let mut left = Permutation::new(count, of_epoch(seed, epoch)).at(position);
        let mut shards = (0..).zip(&self.shards);
        let found = shards.find_map(|(number, shard)| {
            let here = left < shard.count;
            left -= if here { 0 } else { shard.count };
            here.then_some((number, shard.start + left))
        });
        found.unwrap_or_default()
    }
}

/// How the shards of a plan fall into tasks: any task of any epoch, computed on its own, so that a
/// pass over a billion records costs as much memory as its shards.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cuts {
    /// Number of tasks before each shard, and after all of them the number of tasks.
    before: Vec<u64>,
    /// Records of one pass.
    records: u64,
}

impl Cuts {
    pub(crate) fn of(plan: &Plan) -> Result<Self, PlanError> {
        let records = plan.check()?;
        let whole = [Shard { name: String::new(), start: 0, count: records }];
        let over_all = matches!(plan.order, Order::Records { .. });
        let shards = if over_all { &whole[..] } else { &plan.shards };
        let mut before = vec![0];
        for shard in shards {
            let last = before.last().copied().unwrap_or_default();
            before.push(last + shard.count.div_ceil(plan.records_per_task));
        }
        Ok(Self { before, records })
    }

    /// Tasks of one pass.
    pub(crate) fn count(&self) -> u64 {
        self.before.last().copied().unwrap_or_default()
    }

    /// Records of one pass.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The records of the task that an epoch gives out at this place, from 0, below the count.
    pub(crate) fn at(&self, plan: &Plan, epoch: u32, place: u64) -> Records {
        let number = match plan.order {
            Order::Tasks { seed } => {
                Permutation::new(self.count(), of_epoch(seed, epoch)).at(place)
            }
            Order::Given | Order::Records { .. } => place,
        };
        let shard = self.before.partition_point(|&before| before <= number).saturating_sub(1);
        let size = plan.records_per_task;
        let from = (number - self.before[shard]) * size;
        let to = from.saturating_add(size);
        if matches!(plan.order, Order::Records { .. }) {
            return Records { shard: None, range: from..self.records.min(to) };
        }
        let Shard { start, count, .. } = plan.shards[shard];
        let range = start + from..start + count.min(to);
        // The number fits: a plan with more shards was refused.
        Records { shard: u32::try_from(shard).ok(), range }
    }
}

fn of_epoch(seed: u64, epoch: u32) -> u64 {
    mix(seed ^ mix(u64::from(epoch).wrapping_add(1)))
}
