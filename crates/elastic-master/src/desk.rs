//! The one owner of a job while its master lives. Owns: the order of inputs, that nothing is
//! answered before the journal has it, and the calls that wait. Does not know about: gRPC, files
//! but the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use elastic::{Effect, Input, Job, ResizeStep, WorkerId};
use elastic_proto::v1::{AttendReply, GetTaskReply, TaskKind, WatchReply, WorkerReport};
use tokio::sync::oneshot;
use tonic::Status;
use units::Instant;

use crate::clock::Clock;
use crate::entry::{Entry, Reason, Report};
use crate::journal::{Journal, JournalError, Timed};
use crate::outside::{Outside, Want};
use crate::state::{Ended, State, StateError};

/// Works on the desk, and returns what is to be done when the journal has it.
type Work = Box<dyn FnOnce(&mut Desk) -> Deliver + Send>;
type Deliver = Box<dyn FnOnce() + Send>;

/// Most calls between two writes of the journal.
const BATCH_MAX: usize = 1024;
/// Interval between two ticks.
const TICK: Duration = Duration::from_millis(200);
/// How long workers have to leave after the end, or when the master makes them leave by itself, in
/// milliseconds.
pub(crate) const LEAVE_MS: u64 = 30_000;

pub(crate) struct Desk {
    pub state: State,
    journal: Journal,
    clock: Box<dyn Clock>,
    /// Milliseconds that the clock of an earlier master was ahead of this one.
    ahead_ms: u64,
    outside: Box<dyn Outside>,
    now: Instant,
    next_tick: Instant,
    /// Calls that wait for a task.
    takers: BTreeMap<u32, oneshot::Sender<GetTaskReply>>,
    /// Workers whose requests for a task the training has, and has not answered.
    asking: BTreeSet<u32>,
    watchers: Vec<(u32, oneshot::Sender<WatchReply>)>,
    attends: Vec<(u32, oneshot::Sender<AttendReply>)>,
    /// Changes whenever what watchers and servers get may have changed.
    pub revision: u64,
    /// When each worker called last.
    pub seen: BTreeMap<u32, Instant>,
    pub reports: BTreeMap<u32, WorkerReport>,
    deliveries: Vec<Deliver>,
    wanted: Vec<Want>,
    /// The leader of the parameter servers has stopped, and saved the model before.
    pub saved: bool,
    /// Numbers of gradients that the leader has accepted and rejected since it started.
    pub gradients: (u64, u64),
    /// Records whose gradients are in the model, as the leader reports.
    pub applied_records: u64,
    /// Stored rows of embedding tables, by server.
    pub rows: BTreeMap<u32, u64>,
    /// The end was published.
    has_said_end: bool,
    /// When the job ended; `None` while it runs.
    ended_at: Option<Instant>,
}

/// The way to a desk.
#[derive(Clone)]
pub(crate) struct Handle(Sender<Work>);

impl Handle {
    pub(crate) fn new() -> (Self, Receiver<Work>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        (Self(sender), receiver)
    }

    /// Does this on the desk. The result comes when the journal has what it changed.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move |desk| {
            let result = work(desk);
            Box::new(move || drop(sender.send(result)))
        });
        let ends = || Status::unavailable("the master ends");
        self.0.send(work).map_err(|_| ends())?;
        receiver.await.map_err(|_| ends())?
    }
}

impl Desk {
    pub(crate) fn new(
        (state, journal): (State, Journal),
        (clock, outside): (Box<dyn Clock>, Box<dyn Outside>),
        now: Instant,
    ) -> Self {
        let seen = state.workers.keys().map(|worker| (*worker, now)).collect();
        Self {
            // A revision that no earlier master has used.
            revision: now.0,
            state,
            journal,
            ahead_ms: now.0.saturating_sub(clock.now_ms()),
            clock,
            outside,
            now,
            next_tick: now,
            takers: BTreeMap::new(),
            asking: BTreeSet::new(),
            watchers: Vec::new(),
            attends: Vec::new(),
            seen,
            reports: BTreeMap::new(),
            deliveries: Vec::new(),
            wanted: Vec::new(),
            saved: false,
            gradients: (0, 0),
            applied_records: 0,
            rows: BTreeMap::new(),
            has_said_end: false,
            ended_at: None,
        }
    }

    /// Works until the job has ended, and for so long after that.
    pub(crate) fn run(
        mut self,
        works: &Receiver<Work>,
        linger_ms: u64,
    ) -> Result<Ended, JournalError> {
        loop {
            let first = match works.recv_timeout(self.patience()) {
                Ok(work) => Some(work),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(self.ended()),
            };
            self.now = Instant(self.clock.now_ms()).plus_ms(self.ahead_ms);
            for work in first.into_iter().chain(works.try_iter().take(BATCH_MAX)) {
                let deliver = work(&mut self);
                self.deliveries.push(deliver);
            }
            self.tick();
            self.say_end();
            self.journal.commit()?;
            self.deliveries.drain(..).for_each(|deliver| deliver());
            let wanted = std::mem::take(&mut self.wanted);
            wanted.iter().for_each(|want| self.outside.want(want));
            if self.journal.is_long() {
                self.journal.rotate(&self.state)?;
            }
            let since = self.ended_at.map(|at| self.now.since_ms(at));
            let linger_ms = linger_ms + if self.state.workers.is_empty() { 0 } else { LEAVE_MS };
            if since.is_some_and(|since| since >= linger_ms) {
                return Ok(self.ended());
            }
        }
    }

    /// Outcome of the job; for a training on parameter servers with the records in their model.
    fn ended(&self) -> Ended {
        let trains = self.state.config.kind == elastic::Kind::Train;
        let applied = (trains && self.applied_records > 0).then_some(self.applied_records);
        self.state.ended(applied)
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Publishes this once the journal has its cause.
    pub(crate) fn want(&mut self, want: Want) {
        self.wanted.push(want);
    }

    fn patience(&self) -> Duration {
        let wake_at = self.state.job.as_ref().and_then(Job::wake_at);
        let wake = wake_at.map(|at| Duration::from_millis(at.since_ms(self.now).max(1)));
        wake.map_or(TICK, |wake| wake.min(TICK))
    }

    fn tick(&mut self) {
        let wake_at = self.state.job.as_ref().and_then(Job::wake_at);
        let next = wake_at.map_or(self.next_tick, |at| at.min(self.next_tick));
        if self.now < next {
            return;
        }
        self.next_tick = self.now.plus_ms(200);
        if self.state.job.is_some() && !self.state.is_over() {
            self.put_quietly(Entry::Job(Input::Tick));
        }
        let timeout = self.state.config.worker_timeout_ms;
        let silent = self.seen.iter().filter(|(_, at)| self.now.since_ms(**at) > timeout);
        for worker in silent.map(|(worker, _)| *worker).collect::<Vec<_>>() {
            if let Some(known) = self.state.workers.get(&worker) {
                self.wanted.push(Want::Replace { pods: vec![known.pod.clone()] });
                let message = String::new();
                self.put_quietly(Entry::Gone { worker, reason: Reason::Lost, message });
            }
            self.seen.remove(&worker);
        }
    }

    /// Applies an entry that cannot be refused: it was checked just now.
    fn put_quietly(&mut self, entry: Entry) {
        if let Err(status) = self.put(entry) {
            tracing::error!(%status, "an entry of the master itself was refused");
        }
    }

    fn say_end(&mut self) {
        if !self.state.has_ended() {
            (self.has_said_end, self.ended_at) = (false, None);
        } else if !self.has_said_end {
            self.has_said_end = true;
            self.ended_at = Some(self.now);
            let whole = Some(&self.state.measured).filter(|measured| measured.records > 0);
            self.wanted.extend(whole.map(Want::measured));
            self.wanted.push(Want::Ended { failure: self.state.failure() });
            self.changed();
        }
    }

    /// Applies an entry, and appends it to the journal.
    pub(crate) fn put(&mut self, entry: Entry) -> Result<Vec<Effect<Report>>, Status> {
        let timed = Timed { at_ms: self.now.0, entry };
        let line =
            self.journal.line(&timed).map_err(|error| Status::internal(error.to_string()))?;
        let was_over = self.state.is_over();
        let is_tick = matches!(timed.entry, Entry::Job(Input::Tick));
        let is_visible = !matches!(
            timed.entry,
            Entry::Job(Input::Tick | Input::Asked(_) | Input::Advanced(..) | Input::Finished(..))
                | Entry::Counted(_)
        );
        let shown = self.shown(&timed.entry);
        let effects = self.state.apply(timed.entry, self.now).map_err(refused)?;
        self.state.at = self.now;
        self.wanted.extend(shown);
        // A moment in which nothing happened changes nothing.
        if !is_tick || !effects.is_empty() {
            self.journal.append(&line);
        }
        effects.iter().for_each(|effect| self.act(effect));
        let replaced = std::mem::take(&mut self.state.replaced);
        if !replaced.is_empty() {
            self.wanted.push(Want::Replace { pods: replaced });
        }
        if is_visible || was_over != self.state.is_over() {
            self.changed();
        }
        if self.state.is_over() {
            self.dismiss();
        }
        Ok(effects)
    }

    /// Event to show to people for an entry, before it is applied.
    fn shown(&self, entry: &Entry) -> Option<Want> {
        let (worker, message) = match entry {
            Entry::Gone { worker, reason: Reason::CodeError, message } => (*worker, message),
            Entry::Job(Input::Failed(worker, _, message)) => (worker.0, message),
            // The training releases a worker that has to leave.
            Entry::Gone { worker, reason: Reason::Preempted, .. } => {
                let known = self.state.workers.get(worker).filter(|one| one.leaves_at.is_none())?;
                return Some(Want::Release { pods: vec![known.pod.clone()] });
            }
            _ => return None,
        };
        let pod = self.state.workers.get(&worker)?.pod.clone();
        Some(Want::Show { pod, message: message.clone() })
    }

    fn act(&mut self, effect: &Effect<Report>) {
        match effect {
            Effect::Give(worker, task) => {
                self.asking.remove(&worker.0);
                let task = self.state.wire(task);
                self.answer(worker.0, GetTaskReply { kind: task.kind, task: Some(task) });
            }
            Effect::Leave(worker) => {
                self.asking.remove(&worker.0);
                self.answer(worker.0, done());
            }
            Effect::Resize(step) => {
                let pods = |workers: &[WorkerId]| self.state.pods(workers);
                let want = match step {
                    ResizeStep::Prepare { .. } => None,
                    ResizeStep::Release(worker) => Some(Want::Release { pods: pods(&[*worker]) }),
                    ResizeStep::Stop(workers) => Some(Want::Stop { pods: pods(workers) }),
                };
                self.wanted.extend(want);
                self.changed();
            }
            Effect::Evaluated(_) => {
                self.wanted.extend(self.state.evaluations.last().map(Want::measured));
                self.changed();
            }
            Effect::World(_) | Effect::Replace(_) | Effect::Ended(_) => self.changed(),
            // Workers drop what is of another model generation.
            Effect::Drop(..) => {}
        }
    }

    /// Answers all workers that wait for a task of a job that is over.
    fn dismiss(&mut self) {
        for (_, taker) in std::mem::take(&mut self.takers) {
            self.deliveries.push(Box::new(move || drop(taker.send(done()))));
        }
    }

    fn answer(&mut self, worker: u32, reply: GetTaskReply) {
        // If the call has ended, the worker gets the task with its next one.
        if let Some(taker) = self.takers.remove(&worker) {
            self.deliveries.push(Box::new(move || drop(taker.send(reply))));
        }
    }

    /// Answers all who wait for a change.
    pub(crate) fn changed(&mut self) {
        self.revision += 1;
        for (worker, sender) in std::mem::take(&mut self.watchers) {
            let reply = self.watch_reply(worker);
            self.deliveries.push(Box::new(move || drop(sender.send(reply))));
        }
        for (server, sender) in std::mem::take(&mut self.attends) {
            let reply = self.attend_reply(server);
            self.deliveries.push(Box::new(move || drop(sender.send(reply))));
        }
    }

    /// A worker has called.
    pub(crate) fn heard(&mut self, worker: u32) -> Result<(), Status> {
        self.state.known(worker).map_err(refused)?;
        self.seen.insert(worker, self.now);
        Ok(())
    }

    /// Has a call wait for a task of a worker, unless there is one.
    pub(crate) fn get_task(
        &mut self,
        worker: u32,
        holding: &[u64],
        taker: oneshot::Sender<GetTaskReply>,
    ) -> Result<(), Status> {
        self.heard(worker)?;
        self.takers.insert(worker, taker);
        let id = WorkerId(worker);
        let job = self.state.job.as_ref();
        let lost = job.and_then(|job| job.held_by(id).find(|task| !holding.contains(&task.id.0)));
        if let Some(task) = lost {
            let task = self.state.wire(task);
            self.answer(worker, GetTaskReply { kind: task.kind, task: Some(task) });
        } else if self.state.is_over() {
            self.answer(worker, done());
        } else if job.is_some() && !self.asking.contains(&worker) {
            self.asking.insert(worker);
            if let Err(status) = self.put(Entry::Job(Input::Asked(id))) {
                self.asking.remove(&worker);
                self.takers.remove(&worker);
                return Err(status);
            }
        }
        Ok(())
    }

    /// The worker does not call again under this number.
    pub(crate) fn forget(&mut self, worker: u32) {
        self.asking.remove(&worker);
        self.takers.remove(&worker);
        self.seen.remove(&worker);
        self.reports.remove(&worker);
    }

    pub(crate) fn stop_asking(&mut self, worker: u32) {
        self.asking.remove(&worker);
    }

    pub(crate) fn watch(
        &mut self,
        worker: u32,
        revision: u64,
        sender: oneshot::Sender<WatchReply>,
    ) {
        self.watchers.retain(|(_, sender)| !sender.is_closed());
        if revision == self.revision {
            self.watchers.push((worker, sender));
        } else {
            let reply = self.watch_reply(worker);
            self.deliveries.push(Box::new(move || drop(sender.send(reply))));
        }
    }

    pub(crate) fn attend(
        &mut self,
        server: u32,
        revision: u64,
        sender: oneshot::Sender<AttendReply>,
    ) {
        self.attends.retain(|(_, sender)| !sender.is_closed());
        if revision == self.revision {
            self.attends.push((server, sender));
        } else {
            let reply = self.attend_reply(server);
            self.deliveries.push(Box::new(move || drop(sender.send(reply))));
        }
    }
}

fn done() -> GetTaskReply {
    GetTaskReply { kind: TaskKind::Done.into(), task: None }
}

pub(crate) fn refused(error: StateError) -> Status {
    let text = error.to_string();
    match error {
        StateError::NoData => Status::unavailable(text),
        StateError::Training(_) => Status::invalid_argument(text),
        StateError::Unknown(_) | StateError::Job(_) => Status::failed_precondition(text),
    }
}
