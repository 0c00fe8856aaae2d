//! The ledger of data: which records are trained, which are in whose hands, which are left. Owns:
//! that no record is lost and none is trained twice without need. Does not know about: models,
//! versions of them but as numbers, or how workers are reached.

mod cut;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::plan::{Cuts, Plan, PlanError};
use crate::task::{Kind, Records, Task, TaskId, WorkerId};

pub use cut::Cut;

/// What a job puts up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// So often the code of a worker may fail on the same records; once more and the job fails.
    /// That a worker is killed or preempted does not count.
    pub failures_max: u32,
    /// So many records may be unreadable; with one more the job fails.
    pub bad_records_max: u64,
    /// So many tasks a worker may have in its hands: 2 lets it read ahead.
    pub held_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { failures_max: 3, bad_records_max: 0, held_max: 2 }
    }
}

/// What a worker gets that asks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This.
    Task(Task),
    /// Nothing now. There will be something, or the job ends: what others have may come back.
    Wait,
    /// The job has ended.
    Ended,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All records were visited as often as the plan says.
    Finished,
    /// The code of workers failed too often on the same records.
    Failed {
        /// The records.
        records: Records,
        /// In which pass.
        epoch: u32,
        /// What the last of them said.
        message: String,
    },
    /// Too many records could not be read.
    BadRecords {
        /// How many.
        count: u64,
        /// The last of them: its position.
        record: u64,
        /// Why it could not be read.
        message: String,
    },
}

/// How far a job is.
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

/// Why the ledger refuses what a worker reports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// It was given to another since, or never.
    #[error("{worker} does not have {task}: it was taken back; drop it and ask for another")]
    NotHeld {
        /// Who reports.
        worker: WorkerId,
        /// About what.
        task: TaskId,
    },
    /// It reads too far ahead.
    #[error("{worker} has {held} tasks and may have {held_max}: finish or hand back one first")]
    TooMany {
        /// Who asks.
        worker: WorkerId,
        /// What it has.
        held: u32,
        /// What it may have.
        held_max: u32,
    },
    /// More than there is.
    #[error("{task} has {count} records; {finished} cannot be finished")]
    Finished {
        /// About what.
        task: TaskId,
        /// Its size.
        count: u64,
        /// What was reported.
        finished: u64,
    },
    /// A record of another task.
    #[error("record {record} is not in {task} (records {start} to {end}, the end not included)")]
    Record {
        /// About what.
        task: TaskId,
        /// What was reported.
        record: u64,
        /// Where the task begins.
        start: u64,
        /// Where it ends.
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
    /// When it was given out.
    since: Instant,
    /// When the worker last said something about it.
    heard: Instant,
}

/// The ledger of a job. As a document it is whole: a job goes on from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ledger {
    plan: Plan,
    cuts: Cuts,
    limits: Limits,
    /// The pass whose tasks are given out for the first time.
    epoch: u32,
    /// How many of its tasks were.
    given: u64,
    /// Records that were given out for the first time, over all passes.
    given_records: u64,
    /// What came back, and is given out before anything new.
    returned: VecDeque<Task>,
    /// Evaluations that no worker has yet.
    evaluations: VecDeque<Task>,
    held: BTreeMap<TaskId, Held>,
    held_by: BTreeMap<WorkerId, u32>,
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
    /// Of a job that begins.
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
            next_id: 1,
            has_save: false,
            longest_ms: BTreeMap::new(),
            progress: Progress::default(),
            bad: BTreeSet::new(),
            outcome: None,
        })
    }

    /// What the job reads.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How far the job is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// How it ended, if it has.
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

    /// Workers that have a task and have said nothing, about any, for longer than three times the
    /// longest task of its kind, and longer than `silent_ms`.
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
