//! The one task that owns the state. Owns: the order write, show, answer, act; and what happens
//! when writing fails: nothing of the batch counts, and the state is built again from the disk
//! and the engine, as after a restart.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Observation};
use tokio::sync::{mpsc, oneshot, watch};
use units::Instant;

use crate::command::Subject;
use crate::executor::{Executor, Told};
use crate::handle::{Answer, Request, Shared};
use crate::health::Troubles;
use crate::looking::{Look, SchedulingState};
use crate::meter::IdleSince;
use crate::metrics::{Purpose, Verb};
use crate::options::NodeSpec;
use crate::publish::Batch;
use crate::secrets::Completion;
use crate::state::State;
use crate::time::Line;
use crate::{Error, Options};

/// Most events in a batch, so that answers do not wait for a long stream.
const BATCH_MAX: usize = 256;
/// Most failed decisions in a row at the start. After the second, decisions are left out, so that a third
/// is not expected.
const FAILURES_MAX: u32 = 3;
/// Wait between two tries to write after a failure.
const RETRY_MS: u64 = 500;

/// What can happen.
enum Happening {
    Request(Box<Request>),
    Seen(Observation),
    Told(Told),
    /// A timer; or, after a failure to write, the next try.
    Due,
}

type Reply = oneshot::Sender<Result<Answer, Error>>;

/// What comes from handles.
pub(crate) struct Inbox {
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) looks: mpsc::Receiver<Look>,
    /// Since when workloads have been idle.
    pub(crate) idle: watch::Receiver<IdleSince>,
    /// What is the matter with GPUs.
    pub(crate) gpus: watch::Receiver<Troubles>,
}

pub(crate) struct Dispatcher {
    state: State,
    executor: Executor,
    shared: Arc<Shared>,
    engine: Arc<dyn Engine>,
    store: store::Store,
    line: Arc<Line>,
    policy: sched::Policy,
    completion: Completion,
    nodes: Vec<NodeSpec>,
    inbox: Inbox,
    observations: mpsc::UnboundedReceiver<Observation>,
    told: mpsc::UnboundedReceiver<Told>,
    /// Who waits for everything to be stopped.
    draining: Vec<Reply>,
    /// Everything is being stopped, as far as that is written. It ends with this server, so it is
    /// not stored.
    halted: bool,
    /// What was told of GPUs, as far as that is written. Looks tell it to the next server anew.
    gpus_told: Troubles,
    /// The state in memory is not the one on disk; nothing is decided before it is rebuilt.
    stale: bool,
    /// Failed decisions in a row.
    failures: u32,
}

impl Dispatcher {
    pub(crate) async fn open(
        options: Options,
        line: Arc<Line>,
        shared: Arc<Shared>,
        inbox: Inbox,
        snapshot: store::Snapshot,
    ) -> Result<Self, Error> {
        let Options { nodes, engine, store, policy, unseal, node_access, decision_fault, .. } =
            options;
        let completion = Completion { unseal, node_access };
        // Taken before the list is asked for: what happens in between is then seen twice, not
        // missed.
        let observations = engine.observations().ok_or_else(|| Error::Internal {
            message: "the observations of the engine are taken by someone else".to_owned(),
        })?;
        let metrics = shared.metrics.clone();
        let (executor, told) =
            Executor::new(engine.clone(), line.clone(), completion.clone(), metrics);
        let gpus_told = Troubles::default();
        let mut state = State::recover(snapshot, &nodes, &gpus_told, policy.usage, &line)?;
        state.aside.fault = decision_fault;
        let mut dispatcher = Self {
            state,
            executor,
            shared,
            engine,
            store,
            line,
            policy,
            completion,
            nodes,
            inbox,
            observations,
            told,
            draining: Vec::new(),
            halted: false,
            gpus_told,
            stale: false,
            failures: 0,
        };
        let mut opened = dispatcher.reconcile().await;
        while opened.is_err() && (1..=FAILURES_MAX).contains(&dispatcher.failures) {
            opened = Box::pin(dispatcher.try_rebuild()).await;
        }
        opened.map(|()| dispatcher)
    }

    /// Compares with the engine, decides, and commits that as the first batch.
    async fn reconcile(&mut self) -> Result<(), Error> {
        let listed = self.shared.metrics.engine(Verb::List, self.engine.list()).await;
        let listed = listed.map_err(|error| Error::Unavailable {
            message: format!("the engine cannot say what runs: {error}"),
        })?;
        self.state.keeps = self.engine.capabilities().keeps_limits;
        self.state.reconcile(&listed);
        self.commit(Vec::new()).await
    }

    pub(crate) async fn run(
        mut self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), Error> {
        tokio::pin!(shutdown);
        loop {
            let due = if self.stale { None } else { self.state.due() };
            let timer = timer(&self.line, due, self.stale);
            let first = tokio::select! {
                () = &mut shutdown => {
                    self.executor.retire().await;
                    return Ok(());
                }
                // Without handles there are no requests, but there is still work.
                Some(request) = self.inbox.requests.recv() => Happening::Request(Box::new(request)),
                Some(look) = self.inbox.looks.recv() => {
                    self.answer_look(look);
                    continue;
                }
                seen = self.observations.recv() => match seen {
                    Some(seen) => Happening::Seen(seen),
                    None => return Err(Error::Internal {
                        message: "the engine ended its stream of observations".to_owned(),
                    }),
                },
                Some(told) = self.told.recv() => Happening::Told(told),
                Ok(()) = self.inbox.idle.changed() => Happening::Due,
                Ok(()) = self.inbox.gpus.changed() => Happening::Due,
                () = timer => Happening::Due,
            };
            let batch = self.gather(first);
            if self.stale {
                self.rebuild(batch).await;
            } else {
                self.dispatch(batch).await;
            }
        }
    }

    /// Shows what the scheduler sees, between two batches. Whoever asks while the state is not the
    /// one on disk gets no answer: the sender is dropped.
    fn answer_look(&mut self, look: Look) {
        if self.stale {
            return;
        }
        // Whoever asked may have gone.
        match look {
            Look::State(to) => {
                let _ = to.send(Box::new(SchedulingState {
                    cluster: self.state.cluster.clone(),
                    policy: self.policy.clone(),
                    now: self.line.now(),
                    workloads: self.state.in_model(),
                }));
            }
            Look::Submission { project_id, spec, to } => {
                let _ = to.send(self.state.settled(project_id, *spec, self.engine.as_ref()));
            }
        }
    }

    /// Takes all that is queued behind the first event: one transaction and one decision for all of
    /// them. It does not wait for more to arrive.
    fn gather(&mut self, first: Happening) -> Vec<Happening> {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            let request = self.inbox.requests.try_recv().map(Box::new).map(Happening::Request);
            let next = request
                .or_else(|_| self.observations.try_recv().map(Happening::Seen))
                .or_else(|_| self.told.try_recv().map(Happening::Told));
            let Ok(next) = next else { break };
            batch.push(next);
        }
        batch
    }

    async fn dispatch(&mut self, batch: Vec<Happening>) {
        if self.line.is_behind() {
            tracing::warn!(
                "the clock of the machine was put forward; what is counted goes on as before"
            );
            self.stale = true;
            return self.rebuild(batch).await;
        }
        self.shared.metrics.batch(batch.len());
        self.state.now = self.line.now();
        self.state.clock = self.line.wall();
        let mut answers = Vec::new();
        for happening in batch {
            match happening {
                Happening::Due => {}
                Happening::Seen(seen) | Happening::Told(Told::Run(seen)) => {
                    self.state.observe(&seen);
                }
                Happening::Told(Told::Volume(name, error)) => self.state.volume_ends(&name, error),
                Happening::Request(request) => {
                    let Request { command, origin, reply } = *request;
                    let outcome = self.state.command(command, &origin, &*self.engine);
                    answers.push((outcome, reply));
                }
            }
        }
        if let Err(error) = self.commit(answers).await {
            tracing::error!(%error, "nothing of this batch counts; the state is built again");
            self.stale = true;
            self.rebuild(Vec::new()).await;
        }
    }

    /// Decides, writes, shows, answers, acts.
    async fn commit(&mut self, answers: Vec<(Result<Subject, Error>, Reply)>) -> Result<(), Error> {
        self.state.restart_due();
        self.state.idle = self.inbox.idle.borrow().clone();
        self.state.see_gpus(&self.inbox.gpus.borrow());
        self.state.enforce_limits();
        self.state.expire_due();
        self.policy.pools = self.state.placements(self.policy.placement);
        let began = std::time::Instant::now();
        if self.failures > 0 || self.state.is_to_be_tried_again() {
            self.state.find_culprits(&self.policy, self.failures > 1);
        }
        if let Err(error) = self.state.try_decide(&self.policy, &*self.engine) {
            self.failures += 1;
            refuse(answers, &error);
            return Err(error);
        }
        self.failures = 0;
        self.shared.metrics.decided(began);
        let before = self.shared.view.load_full();
        let batch = self.state.finish(&before);
        if !batch.changes.is_empty()
            && let Err(error) = self.write(&batch.changes).await
        {
            let error = Error::from(error);
            refuse(answers, &error);
            return Err(error);
        }
        self.show(batch, answers);
        Ok(())
    }

    async fn write(&self, changes: &[store::Change]) -> Result<(), store::Error> {
        self.shared.metrics.apply(Purpose::Decision, &self.store, changes).await
    }

    fn show(&mut self, batch: Batch, answers: Vec<(Result<Subject, Error>, Reply)>) {
        self.shared.metrics.count(batch.tally);
        self.halted = self.state.halted;
        self.gpus_told = self.state.gpus_seen.clone();
        let view = Arc::new(batch.view);
        self.shared.view.store(view.clone());
        self.shared.feed.view_published();
        for (outcome, reply) in answers {
            let answer = match outcome {
                Err(error) => Err(error),
                Ok(Subject::Drain) => {
                    self.draining.push(reply);
                    continue;
                }
                Ok(Subject::Object(object)) => Ok(Answer::Object(object)),
                Ok(Subject::Nothing) => Ok(Answer::Done),
                Ok(Subject::Department(id)) => {
                    let found = view.departments.get(&id).cloned().map(Answer::Department);
                    found.ok_or_else(|| Error::no_department(id))
                }
                Ok(Subject::Project(id)) => {
                    let found = view.projects.get(&id).cloned().map(Answer::Project);
                    found.ok_or_else(|| Error::no_project(id))
                }
                Ok(Subject::Workload(id)) => {
                    let found = view.workloads.get(&id).or_else(|| batch.deleted.get(&id));
                    found.cloned().map(Answer::Workload).ok_or_else(|| Error::no_workload(id))
                }
            };
            answer_to(reply, answer);
        }
        for event in batch.events {
            // No subscribers is not a fault.
            let _ = self.shared.events.send(event);
        }
        for action in batch.actions {
            self.executor.act(action);
        }
        if self.state.halted && !self.state.anything_held() {
            for reply in self.draining.drain(..) {
                answer_to(reply, Ok(Answer::Done));
            }
        }
    }

    /// Builds the state again after a failure to write. Requests are refused while it lasts;
    /// observations may be dropped, the engine is asked for all of them.
    async fn rebuild(&mut self, batch: Vec<Happening>) {
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
                for happening in batch {
                    if let Happening::Request(request) = happening {
                        answer_to(request.reply, Err(error.clone()));
                    }
                }
            }
        }
    }

    async fn try_rebuild(&mut self) -> Result<(), Error> {
        // Whatever has not reached the engine is decided anew.
        self.executor.retire().await;
        let (engine, line) = (self.engine.clone(), self.line.clone());
        let (completion, metrics) = (self.completion.clone(), self.shared.metrics.clone());
        let (executor, told) = Executor::new(engine, line, completion, metrics);
        self.executor = executor;
        self.told = told;
        let snapshot = self.store.load().await?;
        let (nodes, gpus) = (&self.nodes, &self.gpus_told);
        let mut state = State::recover(snapshot, nodes, gpus, self.policy.usage, &self.line)?;
        state.keep_aside(std::mem::take(&mut self.state.aside));
        self.state = state;
        self.state.halted = self.halted;
        self.reconcile().await
    }
}

/// Answers that nothing of what was asked counts.
fn refuse(answers: Vec<(Result<Subject, Error>, Reply)>, error: &Error) {
    for (outcome, reply) in answers {
        // A refusal stands whether or not it could be written to the audit log.
        answer_to(reply, outcome.and_then(|_| Err(error.clone())));
    }
}

fn answer_to(reply: Reply, answer: Result<Answer, Error>) {
    // Whoever asked may have gone; what was decided stands.
    let _ = reply.send(answer);
}

async fn timer(line: &Line, due: Option<Instant>, stale: bool) {
    match due {
        _ if stale => tokio::time::sleep(Duration::from_millis(RETRY_MS)).await,
        Some(at) => line.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
