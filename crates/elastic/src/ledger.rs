//! The ledger of data: which records are trained, which are in whose hands, which are left. Owns:
//! that no record is lost and none is trained twice without need. Does not know about: models,
//! versions of them but as numbers, or how workers are reached.

mod cut;
mod orphans;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::plan::{Cuts, Plan, PlanError};
use crate::task::{Kind, Records, Task, TaskId, WorkerId};

pub use cut::Cut;

/// Limits of failures and of work at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How often the code of workers may fail on the same records; one more failure fails the job.
    /// The kill or preemption of a worker does not count.
    pub failures_max: u32,
    /// How many records may be unreadable; one more fails the job.
    pub bad_records_max: u64,
    /// How many tasks a worker may hold: 2 lets it read ahead.
    pub held_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { failures_max: 3, bad_records_max: 0, held_max: 2 }
    }
}

/// Answer to a worker's request for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A task.
    Task(Task),
    /// No task now. One follows, or the job ends: tasks of other workers may come back.
    Wait,
    /// The job has ended.
    Ended,
}

/// Outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All records were visited as often as the plan requires.
    Finished,
    /// The code of workers failed too often on the same records.
    Failed {
        /// The records.
        records: Records,
        /// Pass over the data, from 0.
        epoch: u32,
        /// Error message of the last worker.
        message: String,
    },
    /// Too many records could not be read.
    BadRecords {
        /// Number of unreadable records.
        count: u64,
        /// Position of the last of them.
        record: u64,
        /// Error of its reader.
        message: String,
    },
}

/// Progress of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Records that count as visited, over all epochs.
    pub records: u64,
    /// Different records that could not be read; they count as visited.
    pub bad_records: u64,
    /// Tasks that were finished whole.
    pub tasks: u64,
    /// Tasks that came back with their worker still there.
    pub handed_back: u64,
    /// Tasks that came back because their worker was gone.
    pub lost: u64,
    /// Tasks on which code failed.
    pub failed: u64,
}

/// Error of a worker's report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The task was given to another worker, or never to this one.
    #[error("{worker} does not have {task}: it was taken back; drop it and ask for another")]
    NotHeld {
        /// Worker that reports.
        worker: WorkerId,
        /// The task.
        task: TaskId,
    },
    /// The worker reads too far ahead.
    #[error("{worker} has {held} tasks and may have {held_max}: finish or hand back one first")]
    TooMany {
        /// Worker that asks for a task.
        worker: WorkerId,
        /// Number of its tasks.
        held: u32,
        /// Most tasks that it may hold.
        held_max: u32,
    },
    /// More records than the task has.
    #[error("{task} has {count} records; {finished} cannot be finished")]
    Finished {
        /// The task.
        task: TaskId,
        /// Number of its records.
        count: u64,
        /// Reported number of records.
        finished: u64,
    },
    /// The record is not in the task.
    #[error("record {record} is not in {task} (records {start} to {end}, the end not included)")]
    Record {
        /// The task.
        task: TaskId,
        /// Reported position.
        record: u64,
        /// First position of the task.
        start: u64,
        /// End of the task, not included.
        end: u64,
    },
}

/// A task in the hands of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    worker: WorkerId,
    task: Task,
    /// Records from its start on that count as visited already.
    finished: u64,
    /// Time at which it was given out.
    since: Instant,
    /// When the worker last reported about it.
    heard: Instant,
}

/// The ledger of a job. Its document is complete: a job resumes from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ledger {
    plan: Plan,
    cuts: Cuts,
    limits: Limits,
    /// The pass whose tasks are given out for the first time.
    epoch: u32,
    /// Number of tasks of this pass given out so far.
    given: u64,
    /// Records that were given out for the first time, over all passes.
    given_records: u64,
    /// Returned tasks, which are given out before new ones.
    returned: VecDeque<Task>,
    /// Evaluations that no worker has yet.
    evaluations: VecDeque<Task>,
    held: BTreeMap<TaskId, Held>,
    held_by: BTreeMap<WorkerId, u32>,
    /// Training tasks of workers that are gone, which are not given out yet.
    #[serde(default)]
    orphans: BTreeMap<TaskId, Held>,
    next_id: u64,
    /// True if the task that saves the model exists or existed.
    has_save: bool,
    /// The longest time a task of a kind took that was finished, in milliseconds.
    longest_ms: BTreeMap<Kind, u64>,
    progress: Progress,
    /// Records that could not be read: shard and number. Each counts once, however often it is
    /// reported.
    bad: BTreeSet<(u32, u64)>,
    outcome: Option<Outcome>,
}

impl Ledger {
    /// Creates the ledger of a job that begins.
    ///
    /// # Errors
    ///
    /// [`PlanError`], if the plan cannot be carried out.
    pub fn new(plan: Plan, limits: Limits) -> Result<Self, PlanError> {
        if limits.held_max == 0 {
            return Err(PlanError::HeldMax);
        }
        Ok(Self {
            cuts: Cuts::of(&plan)?,
            plan,
            limits,
            epoch: 0,
            given: 0,
            given_records: 0,
            returned: VecDeque::new(),
            evaluations: VecDeque::new(),
            held: BTreeMap::new(),
            held_by: BTreeMap::new(),
            orphans: BTreeMap::new(),
            next_id: 1,
            has_save: false,
            longest_ms: BTreeMap::new(),
            progress: Progress::default(),
            bad: BTreeSet::new(),
            outcome: None,
        })
    }

    /// Data that the job reads.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Progress of the job.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Outcome; `None` while the job runs.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// The pass whose tasks are given out now, from 0.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Records that one pass visits.
    #[must_use]
    pub fn records_per_epoch(&self) -> u64 {
        self.cuts.records()
    }

    /// The tasks that a worker has, oldest first.
    pub fn held_by(&self, worker: WorkerId) -> impl Iterator<Item = &Task> {
        let of_worker = move |held: &&Held| held.worker == worker;
        self.held.values().filter(of_worker).map(|held| &held.task)
    }

    /// Workers that have a task and have not reported, about any task, for longer than three times
    /// the longest task of its kind, and longer than `silent_ms`.
    pub fn silent(&self, silent_ms: u64, now: Instant) -> impl Iterator<Item = (WorkerId, TaskId)> {
        let mut heard = BTreeMap::<WorkerId, Instant>::new();
        for held in self.held.values() {
            let last = heard.entry(held.worker).or_default();
            *last = (*last).max(held.heard);
        }
        self.held.iter().filter_map(move |(id, held)| {
            let longest = self.longest_ms.get(&held.task.kind).copied().unwrap_or_default();
            let patience = silent_ms.max(longest.saturating_mul(3));
            (now.since_ms(heard[&held.worker]) > patience).then_some((held.worker, *id))
        })
    }
}
