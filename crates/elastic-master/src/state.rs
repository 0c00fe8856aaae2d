//! The state of a job: the training, and around it names of pods, parameter servers, generations of
//! the model. Owns: what each entry of the journal changes. Does not know about: files, calls, time
//! but as a number; the same entries lead to the same state.

use std::collections::BTreeMap;

use elastic::{
    Effect, Input, Job, Kind, Outcome, Progress, Refused, ResizeStep, Task, Training,
    TrainingError, WorkerId, World,
};
use elastic_proto::v1::{self, Evaluation, Metric, TaskKind};
use serde::{Deserialize, Serialize};
use units::Instant;

use crate::config::JobConfig;
use crate::entry::{Entry, Parting, Reason, Report};

/// Most evaluations that are kept for people.
const EVALUATIONS_MAX: usize = 100;
/// Most kept pairs of workers that did not reach each other.
const PARTINGS_MAX: usize = 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Worker {
    pub pod: String,
    pub instance: u64,
    pub host: String,
    /// The worker can train together with others.
    #[serde(default)]
    pub is_ready: bool,
    /// End of its time to leave.
    pub leaves_at: Option<Instant>,
    /// The worker leaves because it and another do not reach each other.
    #[serde(default)]
    pub is_parted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Server {
    pub instance: u64,
    pub address: String,
}

/// Error of an entry. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    #[error(transparent)]
    Job(#[from] Refused),
    #[error("the data cannot be used: {0}")]
    Training(#[from] TrainingError),
    #[error("{0} is not known: register; one that was given up registers again")]
    Unknown(WorkerId),
    #[error("the data are not known yet: call ReportData")]
    NoData,
}

/// Outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All records were trained on.
    Succeeded {
        /// Records visited, and counts of tasks.
        progress: Progress,
        /// Records whose gradients are in the model, as its parameter servers report; `None` if
        /// there are none.
        applied: Option<u64>,
    },
    /// The job failed, with this message.
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct State {
    pub config: JobConfig,
    pub job_id: String,
    /// The training; `None` before the data are known.
    pub job: Option<Job<Report>>,
    pub workers: BTreeMap<u32, Worker>,
    /// Number of all workers so far.
    pub numbered: u32,
    pub servers: BTreeMap<u32, Server>,
    /// The leader has made the last checkpoint.
    pub servers_done: bool,
    /// Generation of the model.
    pub generation: u64,
    /// The checkpoint that the generation began with.
    pub restored: u64,
    pub version: u64,
    /// Checkpoints that can be restored, oldest first; 0 is the beginning.
    pub checkpoints: Vec<u64>,
    pub world: Option<World>,
    pub evaluations: Vec<Evaluation>,
    /// Measurements so far of a job that only evaluates.
    pub measured: Evaluation,
    pub counters: BTreeMap<String, u64>,
    /// The newest pairs that did not reach each other, with the number of the worker that left.
    #[serde(default)]
    pub partings: Vec<(u32, Parting)>,
    /// Workers in a row that failed outside of tasks.
    crashes: u32,
    /// Error of the job, if it is not one of its training.
    failure: Option<String>,
    /// The time of the last entry.
    #[serde(default)]
    pub at: Instant,
    /// Pods of workers that the training has given up, until the desk takes them.
    #[serde(skip)]
    pub replaced: Vec<String>,
}

/// Adds a report of a part to that of the whole.
fn add(whole: &mut Evaluation, part: &Report) {
    whole.records += part.records;
    for metric in &part.metrics {
        let Some(sum) = whole.metrics.iter_mut().find(|sum| sum.name == metric.name) else {
            whole.metrics.push(metric.clone());
            continue;
        };
        let Metric { total, weight, state, .. } = sum;
        *total += metric.total;
        *weight += metric.weight;
        if state.len() < metric.state.len() {
            state.resize(metric.state.len(), 0.0);
        }
        state.iter_mut().zip(&metric.state).for_each(|(sum, value)| *sum += value);
    }
}

impl State {
    pub(crate) fn new(config: JobConfig, job_id: String) -> Self {
        Self {
            config,
            job_id,
            job: None,
            workers: BTreeMap::new(),
            numbered: 0,
            servers: BTreeMap::new(),
            servers_done: false,
            generation: 1,
            restored: 0,
            version: 0,
            checkpoints: vec![0],
            world: None,
            evaluations: Vec::new(),
            measured: Evaluation::default(),
            counters: BTreeMap::new(),
            partings: Vec::new(),
            crashes: 0,
            failure: None,
            at: Instant::default(),
            replaced: Vec::new(),
        }
    }

    /// Error of the job; `None` if it has not failed.
    pub(crate) fn failure(&self) -> Option<String> {
        let of_training = || match self.job.as_ref()?.outcome()? {
            Outcome::Finished => None,
            Outcome::Failed { records, epoch, message } => {
                let (start, end) = (records.range.start, records.range.end);
                let shard = self.shard_name(records.shard);
                Some(format!(
                    "code failed too often on records {start} to {end} of {shard}, epoch {epoch}: \
                     {message}"
                ))
            }
            Outcome::BadRecords { count, record, message } => Some(format!(
                "{count} records cannot be read, and {} are allowed; the last is {record}: {message}",
                self.config.limits.bad_records_max
            )),
        };
        self.failure.clone().or_else(of_training)
    }

    /// Outcome of the job.
    pub(crate) fn ended(&self, applied: Option<u64>) -> Ended {
        let progress = || self.job.as_ref().map(Job::progress).unwrap_or_default();
        let succeeded = || Ended::Succeeded { progress: progress(), applied };
        self.failure().map_or_else(succeeded, Ended::Failed)
    }

    /// True if there is nothing more to train.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || self.job.as_ref().is_some_and(|job| job.outcome().is_some())
    }

    /// True if the model is safe as well.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_over()
            && (self.config.parameter_servers == 0 || self.servers_done || self.servers.is_empty())
    }

    fn shard_name(&self, shard: Option<u32>) -> String {
        let plan = self.job.as_ref().map(|job| &job.training().plan);
        let name = plan.zip(shard).and_then(|(plan, shard)| plan.shards.get(shard as usize));
        name.map_or_else(|| "the data".to_owned(), |shard| shard.name.clone())
    }

    /// The worker of a pod that is there.
    pub(crate) fn of_pod(&self, pod: &str) -> Option<u32> {
        self.workers.iter().find(|(_, worker)| worker.pod == pod).map(|(id, _)| *id)
    }

    pub(crate) fn pods(&self, workers: &[WorkerId]) -> Vec<String> {
        let pod = |worker: &WorkerId| self.workers.get(&worker.0).map(|worker| worker.pod.clone());
        workers.iter().filter_map(pod).collect()
    }

    /// Takes an entry at a time that is not before that of the last one.
    pub(crate) fn apply(
        &mut self,
        entry: Entry,
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        match entry {
            Entry::Registered { pod, instance, host } => self.register((pod, instance, host), now),
            Entry::Ready { worker, host } => self.ready(worker, host, now),
            Entry::Gone { worker, reason, message } => self.lose((worker, reason), &message, now),
            Entry::Data { shards, validation, settles } => {
                let training = self.config.training(shards, validation);
                let mut job = Job::new(Training { settles, ..training })?;
                let mut effects = Vec::new();
                for (id, worker) in &self.workers {
                    effects.extend(job.apply(Input::Joined(WorkerId(*id)), now)?);
                    if worker.is_ready {
                        effects.extend(job.apply(Input::Ready(WorkerId(*id)), now)?);
                    }
                }
                self.job = Some(job);
                self.absorb(&effects);
                Ok(effects)
            }
            Entry::Job(input) => self.input(input, now),
            Entry::Parted { worker, deadline, parting } => {
                self.part(worker, deadline, parting, now)
            }
            Entry::Counted(counters) => {
                for (name, count) in counters {
                    let sum = self.counters.entry(name).or_default();
                    *sum = sum.saturating_add(count);
                }
                Ok(Vec::new())
            }
            Entry::Server { index, instance, address } => {
                self.servers.insert(index, Server { instance, address });
                Ok(Vec::new())
            }
            Entry::Restore { unreadable, message } => self.restore(unreadable, message, now),
            Entry::ServersDone => {
                self.servers_done = true;
                Ok(Vec::new())
            }
        }
    }

    fn register(
        &mut self,
        (pod, instance, host): (String, u64, String),
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        let id = self.numbered;
        let joined = Input::Joined(WorkerId(id));
        let effects = match &mut self.job {
            Some(job) => job.apply(joined, now)?,
            None => Vec::new(),
        };
        self.numbered += 1;
        let worker =
            Worker { pod, instance, host, is_ready: false, leaves_at: None, is_parted: false };
        self.workers.insert(id, worker);
        self.absorb(&effects);
        Ok(effects)
    }

    fn ready(
        &mut self,
        worker: u32,
        host: String,
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        self.known(worker)?;
        let effects = match &mut self.job {
            Some(job) => job.apply(Input::Ready(WorkerId(worker)), now)?,
            None => Vec::new(),
        };
        if let Some(known) = self.workers.get_mut(&worker) {
            (known.host, known.is_ready) = (host, true);
        }
        self.absorb(&effects);
        Ok(effects)
    }

    fn lose(
        &mut self,
        (worker, reason): (u32, Reason),
        message: &str,
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        self.known(worker)?;
        let effects = match &mut self.job {
            Some(job) => job.apply(Input::Left(WorkerId(worker)), now)?,
            None => Vec::new(),
        };
        self.workers.remove(&worker);
        if reason == Reason::CodeError {
            self.crashes += 1;
            if self.crashes > self.config.worker_crashes_max
                && self.workers.is_empty()
                && !self.is_over()
            {
                let crashes = self.crashes;
                self.failure = Some(format!("{crashes} workers in a row failed: {message}"));
            }
        }
        self.absorb(&effects);
        Ok(effects)
    }

    fn part(
        &mut self,
        worker: u32,
        deadline: Instant,
        parting: Parting,
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        let effects = self.input(Input::Leaving(WorkerId(worker), deadline), now)?;
        if let Some(known) = self.workers.get_mut(&worker) {
            known.is_parted = true;
        }
        self.partings.push((worker, parting));
        let extra = self.partings.len().saturating_sub(PARTINGS_MAX);
        self.partings.drain(..extra);
        Ok(effects)
    }

    pub(crate) fn known(&self, worker: u32) -> Result<&Worker, StateError> {
        self.workers.get(&worker).ok_or(StateError::Unknown(WorkerId(worker)))
    }

    fn input(
        &mut self,
        input: Input<Report>,
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        let job = self.job.as_mut().ok_or(StateError::NoData)?;
        // Input that also changes fields here, after the training has accepted it.
        let again = match &input {
            Input::Measured(worker, task, _) => {
                let task = job.held_by(*worker).find(|held| held.id == *task);
                task.is_some_and(|task| task.measures.is_none()).then(|| input.clone())
            }
            Input::Version(_) | Input::Checkpointed { .. } | Input::Finished(..) => {
                Some(input.clone())
            }
            _ => None,
        };
        let effects = job.apply(input, now)?;
        match again {
            Some(Input::Measured(_, _, report)) => add(&mut self.measured, &report),
            Some(Input::Version(version)) => self.version = self.version.max(version),
            Some(Input::Checkpointed { version, oldest }) => {
                self.version = self.version.max(version);
                self.checkpoints.push(version);
                self.checkpoints.retain(|kept| *kept >= oldest);
            }
            Some(Input::Finished(..)) => self.crashes = 0,
            _ => {}
        }
        self.absorb(&effects);
        Ok(effects)
    }

    /// A parameter server has lost its memory, or cannot read what it should.
    fn restore(
        &mut self,
        unreadable: Option<u64>,
        message: String,
        now: Instant,
    ) -> Result<Vec<Effect<Report>>, StateError> {
        let readable = |version: &&u64| Some(**version) != unreadable;
        let Some(version) = self.checkpoints.iter().rev().find(readable).copied() else {
            self.failure = Some(format!("no checkpoint can be restored: {message}"));
            // There is no model that servers could make safe.
            self.servers_done = true;
            return Ok(Vec::new());
        };
        let effects = match &mut self.job {
            Some(job) => job.apply(Input::Restored(version), now)?,
            None => Vec::new(),
        };
        self.checkpoints.retain(|kept| *kept <= version);
        self.generation += 1;
        (self.restored, self.version, self.servers_done) = (version, version, false);
        self.measured = Evaluation::default();
        self.absorb(&effects);
        Ok(effects)
    }

    /// Applies the effects to the fields that people and workers see.
    fn absorb(&mut self, effects: &[Effect<Report>]) {
        for effect in effects {
            match effect {
                Effect::World(world) => self.world = Some(world.clone()),
                Effect::Resize(ResizeStep::Prepare { worker, deadline }) => {
                    if let Some(worker) = self.workers.get_mut(&worker.0) {
                        worker.leaves_at = Some(*deadline);
                    }
                }
                Effect::Replace(worker) => {
                    let gone = self.workers.remove(&worker.0);
                    self.replaced.extend(gone.map(|worker| worker.pod));
                }
                Effect::Evaluated(evaluated) => {
                    let mut whole =
                        Evaluation { model_version: evaluated.version, ..Evaluation::default() };
                    evaluated.reports.iter().for_each(|report| add(&mut whole, report));
                    self.evaluations.push(whole);
                    let extra = self.evaluations.len().saturating_sub(EVALUATIONS_MAX);
                    self.evaluations.drain(..extra);
                }
                _ => {}
            }
        }
    }

    /// A task as workers get it.
    pub(crate) fn wire(&self, task: &Task) -> v1::Task {
        let kind = match task.kind {
            Kind::Train => TaskKind::Train,
            Kind::Evaluate => TaskKind::Evaluate,
            Kind::Predict => TaskKind::Predict,
            Kind::Save => TaskKind::Save,
        };
        let training = self.job.as_ref().map(Job::training);
        let plan = training.map(|training| match &training.evaluation {
            Some((plan, _)) if task.measures.is_some() => plan,
            _ => &training.plan,
        });
        let name = |shard: u32| {
            let shard = plan.and_then(|plan| plan.shards.get(shard as usize));
            shard.map(|shard| shard.name.clone()).unwrap_or_default()
        };
        let range = task.records.range.clone();
        let record = |position| {
            let found = plan.map(|plan| plan.record(task.epoch, &task.records, position));
            let (shard, index) = found.unwrap_or_default();
            v1::Record { shard: name(shard), index }
        };
        let records = match task.records.shard {
            Some(_) => Vec::new(),
            None => range.clone().map(record).collect(),
        };
        v1::Task {
            task_id: task.id.0,
            kind: kind.into(),
            shard: task.records.shard.map(name).unwrap_or_default(),
            start: range.start,
            end: range.end,
            records,
            epoch: task.epoch,
            model_generation: self.generation,
            model_version: task.measures.map(|measures| measures.version),
        }
    }
}
