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

/// Specification of a training. Does not change while it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Training {
    /// Data of the training.
    pub plan: Plan,
    /// Limits of failures and of work at a time.
    pub limits: Limits,
    /// Data of the evaluation, and the number of versions of the model between two evaluations.
    pub evaluation: Option<(Plan, u64)>,
    /// The sizes of the world of workers, if they train together and not each for itself.
    pub world: Option<WorldLimits>,
    /// Milliseconds without a report after which a worker with a task is given up; never less than
    /// three times the longest task of its kind. `None`: never.
    pub silent_ms: Option<u64>,
    /// True if parameter servers have the model: the training tasks of a worker that is gone wait
    /// for [`Input::Settled`]. `false` in documents of earlier versions, whose jobs have no such
    /// input.
    #[serde(default)]
    pub settles: bool,
}

/// Error of the specification of a training.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainingError {
    /// The plan of its data is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan of the evaluation is invalid.
    #[error("evaluation: {0}")]
    Evaluation(PlanError),
    /// The sizes of its world are invalid.
    #[error(transparent)]
    World(#[from] RendezvousError),
}

/// An input of a training. With the time of each, a list of them is its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input<R> {
    /// A worker has joined.
    Joined(WorkerId),
    /// A joined worker is ready to train together with others.
    Ready(WorkerId),
    /// A worker is gone, whatever the cause; its unreported records are done again, where
    /// parameter servers have the model after [`Input::Settled`].
    Left(WorkerId),
    /// The parameter servers accept nothing more of a worker that is gone; so many records of each
    /// of its tasks they have accepted. Repeating it changes nothing.
    Settled(WorkerId, BTreeMap<TaskId, u64>),
    /// A worker wants a task, and waits for it.
    Asked(WorkerId),
    /// See [`Ledger::advance`].
    Advanced(WorkerId, TaskId, u64),
    /// See [`Ledger::finish`].
    Finished(WorkerId, TaskId),
    /// See [`Ledger::hand_back`]. The worker does not want another task.
    HandedBack(WorkerId, TaskId, u64),
    /// See [`Ledger::fail`].
    Failed(WorkerId, TaskId, String),
    /// See [`Ledger::bad_record`].
    BadRecord(WorkerId, TaskId, u64, String),
    /// A worker has measured the records of a task, which is finished with it.
    Measured(WorkerId, TaskId, R),
    /// The model has reached a version.
    Version(u64),
    /// A checkpoint of a version begins: no update is under way; `positions` has the visited
    /// records of tasks.
    Held {
        /// The version.
        version: u64,
        /// Visited records of each task, if more than reported.
        positions: BTreeMap<TaskId, u64>,
    },
    /// The checkpoint that began last is complete. It does not contain reports since its beginning.
    Checkpointed {
        /// The version.
        version: u64,
        /// The oldest version of which a checkpoint is kept.
        oldest: u64,
    },
    /// The model was restored from the checkpoint of this version; 0 if it starts without one.
    Restored(u64),
    /// The scheduler takes the place of this worker: it leaves before this time, or is stopped.
    Leaving(WorkerId, Instant),
    /// Only time has passed.
    Tick,
}

/// An action for the master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<R> {
    /// A worker that asked gets this task.
    Give(WorkerId, Task),
    /// A worker drops this task: its further work on it does not count.
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

/// Error of an input. The training is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The ledger refuses it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No cut is known for this checkpoint.
    #[error("no checkpoint of version {version} is known; known are {known:?}")]
    Checkpoint {
        /// Version of the checkpoint.
        version: u64,
        /// Versions of the known checkpoints.
        known: Vec<u64>,
    },
    /// A measuring task was finished without a measurement.
    #[error("{0} measures the model: report what it measured")]
    Unmeasured(TaskId),
    /// The worker has not joined the training, or has left it.
    #[error("{0} is not known: join first; one that has left joins under a new number")]
    Unknown(WorkerId),
}

/// A training that is under way. Its document is complete: a master resumes from it and from the
/// journal entries after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job<R> {
    training: Training,
    ledger: Ledger,
    evaluations: Evaluations<R>,
    rendezvous: Option<Rendezvous>,
    resize: Resize,
    /// All joined workers, the oldest first.
    workers: BTreeSet<WorkerId>,
    /// Highest number that a worker has had.
    newest: Option<WorkerId>,
    /// Workers that wait for a task.
    asking: BTreeSet<WorkerId>,
    /// Cut of each checkpoint, by version.
    cuts: BTreeMap<u64, Cut>,
    /// Version and cut of the checkpoint that is being taken.
    unconfirmed: Option<(u64, Cut)>,
    ended: bool,
}

impl<R: Clone> Job<R> {
    /// Creates a training that begins.
    ///
    /// # Errors
    ///
    /// [`TrainingError`], if it cannot run.
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

    /// Its specification.
    #[must_use]
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Progress of the training.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.ledger.progress()
    }

    /// The pass over the data whose tasks are given out now, from 0.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.ledger.epoch()
    }

    /// Outcome; `None` while the training runs.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ledger.outcome()
    }

    /// The tasks that a worker has, oldest first.
    pub fn held_by(&self, worker: WorkerId) -> impl Iterator<Item = &Task> {
        self.ledger.held_by(worker)
    }

    /// Workers that are gone and whose tasks wait for [`Input::Settled`].
    #[must_use]
    pub fn unsettled(&self) -> BTreeSet<WorkerId> {
        self.ledger.unsettled()
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
