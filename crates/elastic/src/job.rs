//! A training as one state machine: what workers and servers of the model report goes in, what they
//! are to do comes out. Owns: the order of things, and who waits for what. Does not know about:
//! how a report arrives, and how often the same input was journaled before: a master that is killed
//! applies its journal again and is where it was.

mod apply;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::evaluation::{Evaluated, Evaluations};
use crate::ledger::{Cut, Ledger, LedgerError, Limits, Outcome, Progress};
use crate::plan::{Plan, PlanError};
use crate::rendezvous::{Rendezvous, RendezvousError, World, WorldLimits};
use crate::resize::{Resize, ResizeStep};
use crate::task::{Task, TaskId, WorkerId};

/// What a training is. Does not change while it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Training {
    /// What it reads.
    pub plan: Plan,
    /// What it puts up with.
    pub limits: Limits,
    /// What it is measured with, and every how many versions of the model.
    pub evaluation: Option<(Plan, u64)>,
    /// The sizes of the world of workers, if they train together and not each for itself.
    pub world: Option<WorldLimits>,
    /// A worker that says nothing about its task for so long is given up, if it is also three times
    /// as slow as the slowest. Nothing: never.
    pub silent_ms: Option<u64>,
}

/// Why a training cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainingError {
    /// Its data.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What it is measured with.
    #[error("evaluation: {0}")]
    Evaluation(PlanError),
    /// Its sizes.
    #[error(transparent)]
    World(#[from] RendezvousError),
}

/// What a training gets to know. With the time of each, a list of them is its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input<R> {
    /// A worker is there.
    Joined(WorkerId),
    /// A worker that is there can train together with others.
    Ready(WorkerId),
    /// A worker is gone, whatever the cause; what it had and had not reported is done again.
    Left(WorkerId),
    /// A worker wants a task, and waits for it.
    Asked(WorkerId),
    /// See [`Ledger::advance`].
    Advanced(WorkerId, TaskId, u64),
    /// See [`Ledger::finish`].
    Finished(WorkerId, TaskId),
    /// See [`Ledger::hand_back`]. It does not want another task.
    HandedBack(WorkerId, TaskId, u64),
    /// See [`Ledger::fail`].
    Failed(WorkerId, TaskId, String),
    /// See [`Ledger::bad_record`].
    BadRecord(WorkerId, TaskId, u64, String),
    /// A worker has measured the records of a task, which is finished with it.
    Measured(WorkerId, TaskId, R),
    /// The model has reached a version.
    Version(u64),
    /// A checkpoint of a version begins: no update is under way, and each worker has visited so
    /// many records of its tasks.
    Held {
        /// The version.
        version: u64,
        /// Records that were visited of each task, where it is more than was reported.
        positions: BTreeMap<TaskId, u64>,
    },
    /// The checkpoint that began last is whole. What was reported since it began is not in it.
    Checkpointed {
        /// The version.
        version: u64,
        /// The oldest version of which a checkpoint is kept.
        oldest: u64,
    },
    /// The model is one of a checkpoint again; of version 0 if it begins from nothing.
    Restored(u64),
    /// The scheduler takes the place of this worker: it leaves until then, or is stopped.
    Leaving(WorkerId, Instant),
    /// Nothing but time.
    Tick,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<R> {
    /// A worker that asked gets this task.
    Give(WorkerId, Task),
    /// A worker drops this task: it counts no more what it does with it.
    Drop(WorkerId, TaskId),
    /// A worker that asked may leave: there will be nothing more.
    Leave(WorkerId),
    /// Workers train together in this world from now on.
    World(World),
    /// A step of the conversation about a worker that leaves.
    Resize(ResizeStep),
    /// A version was measured.
    Evaluated(Evaluated<R>),
    /// A worker has been silent for too long: it is stopped, and another started.
    Replace(WorkerId),
    /// The training is over.
    Ended(Outcome),
}

/// Why an input is refused. The training is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// By the ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Nothing is known of what is in it.
    #[error("no checkpoint of version {version} is known; known are {known:?}")]
    Checkpoint {
        /// Of this version.
        version: u64,
        /// These are.
        known: Vec<u64>,
    },
    /// A task that measures, finished without what it measured.
    #[error("{0} measures the model: report what it measured")]
    Unmeasured(TaskId),
    /// A worker that is not of the training, or not any more.
    #[error("{0} is not known: join first; one that has left joins under a new number")]
    Unknown(WorkerId),
}

/// A training that is under way. As a document it is whole: a master goes on from it, and from what
/// its journal has after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job<R> {
    training: Training,
    ledger: Ledger,
    evaluations: Evaluations<R>,
    rendezvous: Option<Rendezvous>,
    resize: Resize,
    /// All workers that are there, the oldest first.
    workers: BTreeSet<WorkerId>,
    /// The last number that a worker had.
    newest: Option<WorkerId>,
    /// Those who wait for a task.
    asking: BTreeSet<WorkerId>,
    /// What each checkpoint has, by version.
    cuts: BTreeMap<u64, Cut>,
    /// What the checkpoint has that is being taken.
    unconfirmed: Option<(u64, Cut)>,
    ended: bool,
}

impl<R: Clone> Job<R> {
    /// One that begins.
    ///
    /// # Errors
    ///
    /// [`TrainingError`], if it cannot be.
    pub fn new(training: Training) -> Result<Self, TrainingError> {
        let ledger = Ledger::new(training.plan.clone(), training.limits)?;
        if let Some((plan, _)) = &training.evaluation {
            plan.check().map_err(TrainingError::Evaluation)?;
        }
        let every = training.evaluation.as_ref().map_or(0, |(_, every)| *every);
        Ok(Self {
            evaluations: Evaluations::new(every),
            rendezvous: training.world.map(Rendezvous::new).transpose()?,
            resize: Resize::default(),
            workers: BTreeSet::new(),
            newest: None,
            asking: BTreeSet::new(),
            cuts: BTreeMap::from([(0, ledger.cut(&BTreeMap::new()))]),
            unconfirmed: None,
            ended: false,
            training,
            ledger,
        })
    }

    /// What it is.
    #[must_use]
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.ledger.progress()
    }

    /// The pass over the data whose tasks are given out now, from 0.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.ledger.epoch()
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ledger.outcome()
    }

    /// The tasks that a worker has, oldest first.
    pub fn held_by(&self, worker: WorkerId) -> impl Iterator<Item = &Task> {
        self.ledger.held_by(worker)
    }

    /// The workers that are there; numbers rise, so the oldest is the first.
    #[must_use]
    pub fn workers(&self) -> &BTreeSet<WorkerId> {
        &self.workers
    }

    /// When [`Input::Tick`] may change something although nothing else happens. Workers that are
    /// silent are looked for at every tick.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        let world = self.rendezvous.as_ref().and_then(Rendezvous::wake_at);
        world.into_iter().chain(self.resize.deadline()).min()
    }
}
