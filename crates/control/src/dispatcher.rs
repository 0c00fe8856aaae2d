//! The one task that owns the state. Owns: the order write, show, answer, act; and what happens
//! when writing fails: nothing of the batch counts, and the state is built again from the disk
//! and the engine, as after a restart.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use engine::{Engine, Observation, PodFeed};
use tokio::sync::{mpsc, watch};
use units::Instant;

use crate::decider::{Order, Outcome, Question, Scheduler, Verdict};
use crate::executor::Executor;
use crate::faults::{given_up, guarded};
use crate::metrics::{Purpose, Verb};
use crate::recorder::Recorder;
use crate::requests::{
    Answer, Pending, Query, Reply, Request, answer, answer_to, next_request, refuse,
};
use crate::secrets::Completion;
use crate::shared::ControlState;
use crate::time::MonotonicClock;
use crate::waits::{changes, quiet, timer};
use crate::{BatchFault, Options, archived, deleted, stored};
use model::Op;
use orchestrator::{
    Batch, Command, Culprits, Error, HandedOver, IdleSince, Input, NewObject, NodeList, Note,
    SYSTEM, State, Subject,
};
use records::AuditDetail;
use view::{GpuFaults, WorkloadView};

/// Most events in a batch, so that answers do not wait for a long stream.
const BATCH_MAX: usize = 256;
/// Faults in a row, of a state that no request was to change, before the server gives up.
const FAULTS_MAX: u32 = 5;

/// A message to the dispatcher.
enum Message {
    Request(Request),
    Input(Input),
    Inputs(Vec<Input>),
    Verdict(Verdict),
    /// A timer; or, after a failure to write, the next attempt.
    Due,
}

/// Receivers of requests, queries and measurements.
pub(crate) struct Inbox {
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) queries: mpsc::Receiver<Query>,
    /// Workloads with idle GPUs, and since when.
    pub(crate) idle: watch::Receiver<IdleSince>,
    /// Faults of GPUs and their foreign processes.
    pub(crate) gpus: watch::Receiver<GpuFaults>,
}

pub(crate) struct Dispatcher {
    state: State,
    executor: Executor,
    shared: Arc<ControlState>,
    engine: Arc<dyn Engine>,
    feed: Option<Arc<dyn PodFeed>>,
    store: store::Store,
    clock: Arc<MonotonicClock>,
    policy: Arc<sched::Policy>,
    scheduler: Scheduler,
    recorder: Recorder,
    completion: Completion,
    nodes: NodeList,
    inbox: Inbox,
    /// A request that begins the next batch.
    left: Option<Box<Request>>,
    observations: mpsc::UnboundedReceiver<Observation>,
    told: mpsc::UnboundedReceiver<Input>,
    /// Replies to send once everything is stopped.
    draining: Vec<Reply>,
    /// Requests that are answered once no decision is pending, each with the answer to give if
    /// nothing changes.
    undecided: Vec<(Subject, Answer, Reply)>,
    /// True once the stop of everything is written. It ends with this server, so it is not stored.
    halted: bool,
    /// Faults of GPUs that are written. The next server samples them again.
    gpus_told: GpuFaults,
    /// True if the state in memory is not the one on disk; no decision is made before it is
    /// rebuilt.
    stale: bool,
    /// Consecutive decisions that failed, or that could not be applied though the batch had no
    /// other input.
    failures: u32,
    /// Consecutive faults of the state itself: of batches without a request, and of rebuilding it.
    faults: u32,
    batch_fault: Option<BatchFault>,
    /// True if a batch with a plan failed: the next plan is a batch of its own.
    isolates_plans: bool,
    /// True if the last batch could not be written, regardless of its content.
    is_cut_off: bool,
}

impl Dispatcher {
    pub(crate) async fn open(
        options: Options,
        clock: Arc<MonotonicClock>,
        shared: Arc<ControlState>,
        inbox: Inbox,
        snapshot: records::Snapshot,
    ) -> Result<Self, Error> {
        let Options { nodes, engine, store, policy, unseal, node_access, .. } = options;
        let mut recorder = Recorder::new(options.recording, &policy, options.settings);
        let completion = Completion { unseal, node_access };
        // Opened before the list is read: an event in between is then seen twice, not missed.
        let observations = engine.observations();
        let metrics = shared.metrics.clone();
        let (executor, told) =
            Executor::new(engine.clone(), clock.clone(), completion.clone(), metrics);
        let gpus_told = GpuFaults::default();
        let samples = if snapshot.is_new() { options.samples } else { Vec::new() };
        let dated = clock.set_from_wall_clock(snapshot.clock);
        let machines = (&nodes, &gpus_told);
        let build =
            || recorder.build(snapshot, machines, policy.usage, dated, HandedOver::default());
        let state = guarded(build).unwrap_or_else(|_| Err(given_up(&store)))?;
        let mut dispatcher = Self {
            state,
            executor,
            shared,
            feed: engine.feed(),
            engine,
            store,
            clock,
            policy: Arc::new(policy),
            scheduler: Scheduler::start(options.decision_fault)?,
            recorder,
            completion,
            nodes,
            inbox,
            left: None,
            observations,
            told,
            draining: Vec::new(),
            undecided: Vec::new(),
            halted: false,
            gpus_told,
            stale: false,
            failures: 0,
            faults: 0,
            batch_fault: options.batch_fault,
            isolates_plans: false,
            is_cut_off: false,
        };
        let reconciled = dispatcher.reconcile(samples).await;
        reconciled.map_err(|error| match dispatcher.faults {
            0 => error,
            _ => given_up(&dispatcher.store),
        })?;
        Ok(dispatcher)
    }

    /// Compares with the engine, creates objects of the server itself, and commits both as the
    /// first batch.
    async fn reconcile(&mut self, objects: Vec<NewObject>) -> Result<(), Error> {
        let listed = self.shared.metrics.engine(Verb::List, self.engine.list()).await;
        let mut listed = listed.map_err(|error| unavailable(&error))?;
        archived::leave_out(&self.store, &self.state, &mut listed).await?;
        let left = deleted::left(&*self.engine, &self.store).await?;
        let (idle, gpus) = (self.inbox.idle.borrow().clone(), self.inbox.gpus.borrow().clone());
        let keeps = self.engine.capabilities().keeps_limits;
        let engine = [Input::Engine(listed, keeps), Input::Left(left)];
        let inputs = [Input::Idle(idle), Input::Gpus(gpus)].into_iter().chain(engine);
        let listing = match &self.feed {
            Some(feed) => Some(feed.listing().await.map_err(|error| unavailable(&error))?),
            None => None,
        };
        let inputs = inputs.chain(listing.map(Input::Listed));
        let inputs = inputs.chain(objects.into_iter().map(creation)).collect();
        self.scheduler.renew();
        self.take(inputs, Vec::new()).await
    }

    /// Does something to the state. A fault in it is counted.
    fn guard<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, Error> {
        guarded(|| work(self)).inspect_err(|_| self.faults += 1)
    }

    /// True if it is time to build the state again for the recording.
    fn wants_base(&self) -> bool {
        self.recorder.wants_base(self.shared.view.load().workloads.len())
    }

    fn apply(&mut self, input: Input) -> Option<Result<Subject, Error>> {
        self.recorder.note(&input);
        self.state.apply(input)
    }

    pub(crate) async fn run(
        mut self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), Error> {
        tokio::pin!(shutdown);
        loop {
            if self.faults >= FAULTS_MAX {
                self.executor.retire().await;
                return Err(given_up(&self.store));
            }
            let timer = timer(&self.clock, self.state.due(), self.stale);
            let takes = self.stale || !self.state.waits_for_decision();
            let first = tokio::select! {
                () = &mut shutdown => {
                    self.executor.retire().await;
                    self.executor.clear().await;
                    return Ok(());
                }
                // Without handles there are no requests, but there is still work.
                Some(request) = next_request(&mut self.left, &mut self.inbox.requests), if takes => {
                    Message::Request(request)
                }
                Some(query) = self.inbox.queries.recv() => {
                    self.answer_query(query).await;
                    continue;
                }
                Some(verdict) = self.scheduler.verdicts.recv() => Message::Verdict(verdict),
                seen = self.observations.recv(), if takes && !self.stale => match seen {
                    Some(seen) => Message::Input(Input::Run(seen)),
                    None => {
                        tracing::warn!("the engine ended its stream of observations; asking again");
                        self.stale = true;
                        continue;
                    }
                },
                Some(told) = self.told.recv(), if takes => Message::Input(told),
                changed = changes(self.feed.as_ref()), if takes && !self.stale => {
                    Message::Inputs(changed)
                }
                Ok(()) = self.inbox.idle.changed() => Message::Due,
                Ok(()) = self.inbox.gpus.changed() => {
                    Message::Input(Input::Gpus(self.inbox.gpus.borrow_and_update().clone()))
                }
                () = timer => Message::Due,
                () = self.recorder.base_due() => continue,
                () = quiet(), if takes && !self.stale && self.wants_base() => {
                    self.stale = true;
                    self.rebuild(Vec::new()).await;
                    continue;
                }
            };
            let batch = self.gather(first);
            if self.stale {
                self.rebuild(batch).await;
            } else {
                self.dispatch(batch).await;
            }
        }
    }

    /// Inputs of a decision beside the cluster.
    fn question(&self) -> Question {
        Question { now: self.clock.now(), policy: self.policy.clone() }
    }

    /// Answers with the scheduler's view. While the state is not the one on disk there is no
    /// answer: the sender is dropped.
    async fn answer_query(&mut self, query: Query) {
        if self.stale {
            return;
        }
        // The caller may have gone.
        match query {
            Query::State(to) => {
                let question = self.question();
                self.scheduler.ask(Order::Show(question, to));
            }
            Query::Terms(to) => {
                let settings = self.state.settings().clone();
                let _ = to.send((sched::Policy::clone(&self.policy), settings, self.clock.now()));
            }
            Query::Submission { project_id, wanted, to } => {
                let lookup = self.state.lookup_name(project_id, &wanted.spec.name);
                let archived = archived::read(&self.store, lookup).await;
                let settled = archived.and_then(|archived| {
                    self.state.settled(project_id, *wanted, archived.is_some())
                });
                let _ = to.send(settled);
            }
        }
    }

    /// Takes all that is queued behind the first event: one transaction for all of them. It does
    /// not wait for more to arrive.
    fn gather(&mut self, first: Message) -> Vec<Message> {
        let mut batch = vec![first];
        if self.isolates_plans && matches!(batch[..], [Message::Verdict(_)]) {
            return batch;
        }
        // A request that waits to begin a batch is not overtaken by later ones.
        while batch.len() < BATCH_MAX && self.left.is_none() && !self.state.waits_for_decision() {
            let request = self.inbox.requests.try_recv().map(Message::Request);
            let next = request
                .or_else(|_| self.observations.try_recv().map(Input::Run).map(Message::Input))
                .or_else(|_| self.told.try_recv().map(Message::Input));
            match next {
                Ok(Message::Request(request)) if request.check.is_some() => {
                    self.left = Some(Box::new(request));
                }
                Ok(next) => batch.push(next),
                Err(_) => break,
            }
        }
        batch
    }

    async fn dispatch(&mut self, batch: Vec<Message>) {
        if self.clock.is_behind() {
            tracing::warn!(
                "the clock of the machine was put forward; what is counted goes on as before"
            );
            self.stale = true;
            return self.rebuild(batch).await;
        }
        self.shared.metrics.batch(batch.len());
        let moment = self.clock.moment();
        self.recorder.begin(Some(moment));
        self.state.begin(moment);
        // A measurement without news does not wake the dispatcher, and yet it is the last one.
        let idle = self.inbox.idle.borrow().clone();
        if idle != *self.state.idle() {
            self.apply(Input::Idle(idle));
        }
        let (mut inputs, mut replies) = (Vec::new(), Vec::new());
        for message in batch {
            match message {
                Message::Due => {}
                Message::Input(input) => inputs.push(input),
                Message::Inputs(all) => inputs.extend(all),
                Message::Verdict(verdict) => inputs.extend(self.input_of(verdict)),
                Message::Request(request) => {
                    let Some(request) = request.admitted(&self.shared.view.load()) else {
                        continue;
                    };
                    inputs.push(Input::Command(request.command, request.origin));
                    replies.push((request.waits, request.reply));
                }
            }
        }
        let has_plan = inputs.iter().any(|input| matches!(input, Input::Decided(_)));
        let is_alone = inputs.len() == 1;
        // A batch that failed because of a request is rejected, and not tried again.
        let faults = if replies.is_empty() { None } else { Some(self.faults) };
        if let Err(error) = self.take(inputs, replies).await {
            tracing::error!(%error, "nothing of this batch counts; the state is built again");
            self.recorder.failed(&error);
            self.failures += u32::from(has_plan && is_alone && !self.is_cut_off);
            self.isolates_plans |= has_plan;
            self.stale = true;
            self.faults = faults.unwrap_or(self.faults);
            return self.rebuild(Vec::new()).await;
        }
        self.faults = 0;
        if has_plan {
            self.failures = 0;
            self.isolates_plans = false;
        }
    }

    /// Applies inputs and commits what comes of them. The commands among them have replies, in
    /// order.
    async fn take(&mut self, inputs: Vec<Input>, replies: Vec<(bool, Reply)>) -> Result<(), Error> {
        let archived = archived::before(&self.store, &self.state, &inputs).await;
        // Only commands have an outcome.
        let outcomes = archived.and_then(|archived| {
            let mut all = archived.into_iter().chain(inputs);
            self.guard(|own| all.by_ref().filter_map(|input| own.apply(input)).collect())
        });
        let outcomes: Vec<_> = match outcomes {
            Ok(outcomes) => outcomes,
            Err(error) => {
                replies.into_iter().for_each(|(_, reply)| answer_to(reply, Err(error.clone())));
                return Err(error);
            }
        };
        self.recorder.answer(&outcomes);
        let answers = outcomes.into_iter().zip(replies);
        let answers = answers.map(|(outcome, (waits, reply))| Pending { outcome, waits, reply });
        self.commit(answers.collect()).await
    }

    /// The input that the scheduler's answer is.
    fn input_of(&mut self, verdict: Verdict) -> Option<Input> {
        if verdict.replica != self.scheduler.replica {
            return None;
        }
        match verdict.outcome {
            Outcome::Decided(decision, took) => {
                self.shared.metrics.decided(took);
                Some(Input::Decided(decision))
            }
            Outcome::Failed => {
                tracing::error!("the scheduler failed; finding out on what");
                self.failures += 1;
                self.scheduler.replace(self.state.replica());
                let question = self.question();
                self.scheduler.ask(Order::FindCulprits(question));
                Some(Input::DecisionFailed)
            }
            Outcome::Culprits(mut culprits) => {
                // A second failure without a culprit will repeat for ever.
                culprits.all |= culprits.ids.is_empty() && self.failures > 1;
                Some(Input::Culprits(culprits))
            }
        }
    }

    /// Writes, shows, answers, acts, and asks the scheduler.
    async fn commit(&mut self, answers: Vec<Pending>) -> Result<(), Error> {
        let before = self.shared.view.load_full();
        let now = self.clock.now();
        let finished = self.guard(|own| {
            own.state.elapse();
            let pools = own.state.placements(own.policy.placement);
            if own.policy.pools != pools {
                Arc::make_mut(&mut own.policy).pools = pools;
                own.state.decide_again();
            }
            let batch = own.state.finish(&before);
            own.batch_fault.iter().for_each(|fault| fault(&batch.view, now));
            batch
        });
        let batch = match finished {
            Ok(batch) => batch,
            Err(error) => {
                refuse(answers, &error);
                return Err(error);
            }
        };
        self.is_cut_off = false;
        if !batch.changes.is_empty()
            && let Err(error) = self.write(&batch.changes).await
        {
            self.is_cut_off = error.is_outage();
            let error = stored(error);
            refuse(answers, &error);
            return Err(error);
        }
        self.show(batch, answers);
        Ok(())
    }

    async fn write(&self, changes: &[records::Change]) -> Result<(), store::Error> {
        self.shared.write(Purpose::Decision, changes, self.clock.now()).await
    }

    fn show(&mut self, batch: Batch, answers: Vec<Pending>) {
        batch.notes.into_iter().for_each(log);
        self.shared.metrics.count(batch.tally);
        self.halted = self.state.is_halted();
        self.gpus_told = self.state.gpus_seen().clone();
        let view = Arc::new(batch.view);
        let before = self.shared.view.swap(view.clone());
        let unseen = |one: &&Arc<WorkloadView>| {
            one.deleted_at.is_some() && !before.workloads.contains_key(&one.id)
        };
        batch.gone.values().filter(unseen).for_each(|one| self.shared.feed.archived_deleted(one));
        self.shared.feed.view_published();
        let asked_at = self.ask_scheduler(batch.ops, batch.decides);
        let actions = self.recorder.actions(&batch.actions);
        self.recorder.came(batch.changes, actions, asked_at);
        for Pending { outcome, waits, reply } in answers {
            let subject = match outcome {
                Ok(Subject::Drain) => {
                    self.draining.push(reply);
                    continue;
                }
                Ok(subject) => subject,
                Err(error) => {
                    answer_to(reply, Err(error));
                    continue;
                }
            };
            match answer(&subject, &view, &batch.gone) {
                Ok(answer) if waits => self.undecided.push((subject, answer, reply)),
                answer => answer_to(reply, answer),
            }
        }
        for event in batch.events {
            // No subscribers is not a fault.
            let _ = self.shared.events.send(event);
        }
        for action in batch.actions {
            self.executor.act(action);
        }
        if self.state.is_decided() {
            for (subject, before, reply) in self.undecided.drain(..) {
                let gone = BTreeMap::new();
                answer_to(reply, Ok(answer(&subject, &view, &gone).unwrap_or(before)));
            }
        }
        if self.state.is_halted() && !self.state.anything_held() {
            for reply in self.draining.drain(..) {
                answer_to(reply, Ok(Answer::Done));
            }
        }
    }

    /// Has the scheduler follow what changed, and decide if it is to; says as of when.
    fn ask_scheduler(&mut self, ops: Vec<Op>, decides: bool) -> Option<Instant> {
        if self.scheduler.is_renewed {
            self.scheduler.replace(self.state.replica());
        } else if !ops.is_empty() {
            self.scheduler.ask(Order::Follow(ops));
        }
        if !decides {
            return None;
        }
        if self.state.take_retells() {
            self.scheduler.ask(Order::Forget);
        }
        let unexplained = self.state.take_unexplained();
        if !unexplained.is_empty() {
            self.scheduler.ask(Order::TellAgain(unexplained));
        }
        let question = self.question();
        let now = question.now;
        self.scheduler.ask(Order::Decide(question));
        Some(now)
    }

    /// Rebuilds the state after a failure to write. Requests are refused meanwhile. Observations
    /// are dropped, since the engine lists them all again: a run that is started again keeps its
    /// generation, and observations of the earlier start are not about it.
    async fn rebuild(&mut self, mut batch: Vec<Message>) {
        batch.retain(|message| matches!(message, Message::Request(_)));
        match self.try_rebuild().await {
            Ok(()) => {
                self.stale = false;
                tracing::info!("the state is whole again");
                if !batch.is_empty() {
                    Box::pin(self.dispatch(batch)).await;
                }
            }
            Err(error) => {
                tracing::error!(%error, "the state can still not be built again");
                for message in batch {
                    if let Message::Request(request) = message {
                        answer_to(request.reply, Err(error.clone()));
                    }
                }
            }
        }
    }

    async fn try_rebuild(&mut self) -> Result<(), Error> {
        // Whatever has not reached the engine is decided again.
        self.executor.retire().await;
        let (engine, clock) = (self.engine.clone(), self.clock.clone());
        let (completion, metrics) = (self.completion.clone(), self.shared.metrics.clone());
        let (executor, told) = Executor::new(engine, clock, completion, metrics);
        self.executor = executor;
        self.told = told;
        self.observations = self.engine.observations();
        let snapshot = self.store.load().await.map_err(stored)?;
        let machines = (&self.nodes, &self.gpus_told);
        let dated = self.clock.set_from_wall_clock(snapshot.clock);
        let handed_over = self.state.hand_over(self.halted);
        let usage = self.policy.usage;
        let build = || self.recorder.build(snapshot, machines, usage, dated, handed_over);
        self.state = match guarded(build) {
            Ok(built) => built?,
            Err(error) => {
                self.faults += 1;
                return Err(error);
            }
        };
        if self.failures > 1 {
            // The plans are at fault.
            self.apply(Input::Culprits(Culprits { ids: Vec::new(), all: true }));
        }
        self.reconcile(Vec::new()).await
    }
}

fn unavailable(error: &engine::Error) -> Error {
    Error::Unavailable { message: format!("the engine cannot say what runs: {error}") }
}

/// Creation of an object by the server itself.
fn creation(new: NewObject) -> Input {
    let origin = AuditDetail { by_program: true, ..AuditDetail::default() };
    Input::Command(Box::new(Command::CreateObject { by: SYSTEM.to_owned(), new }), Arc::new(origin))
}

fn log(note: Note) {
    match note {
        Note::Error(text) => tracing::error!("{text}"),
        Note::Warning(text) => tracing::warn!("{text}"),
        Note::Debug(text) => tracing::debug!("{text}"),
    }
}
