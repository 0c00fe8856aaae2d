//! The control plane on a machine that is simulated: the state machine of the product, rows that
//! outlive it, the scheduler on a replica, and an engine. Owns: one step at a time, in the order of
//! the dispatcher: apply, write, show, act, decide. Uses no thread, clock or randomness.

mod clock;
mod engine;
mod executor;
mod rows;
mod server;
mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::QueueId;
use orchestrator::{Command, Decision, ENDED_KEPT, Error, IdleSince, Input, NodeList, Subject};
use records::Change;
use sched::{Action, Plan, Policy};
use spec::Observation;
use units::{Instant, Resources};
use uuid::Uuid;
use view::{GpuFaults, View};

pub use clock::Clock;
pub use engine::{Engine, Faults, Run, StartFault};
pub use rows::Rows;
use server::{Server, Taken};

/// Where a batch is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The rows are not written, and the server goes on without the batch.
    WriteFails,
    /// The server ends before the rows are written.
    BeforeRows,
    /// It ends when they are, and so many actions were carried out.
    AfterActions(usize),
}

/// What is to hold of a decision about a cluster, with a policy, at a time; or what does not.
pub type Check = fn(&model::Cluster, &Plan, &Policy, Instant) -> Result<(), String>;

/// What commands came to.
pub type Outcomes = Vec<Result<Subject, Error>>;

/// A server with its database, on a machine.
pub struct Machine {
    /// What is stored.
    pub rows: Rows,
    /// What runs.
    pub engine: Engine,
    /// What time it is.
    pub clock: Clock,
    /// The nodes that the next server starts with.
    pub nodes: NodeList,
    /// How many ended workloads stay in the memory of the server.
    pub ended_kept: usize,
    /// What is to hold of every decision.
    check: Option<Check>,
    policy: Policy,
    /// True if the scheduler decides only when it is asked to.
    by_hand: bool,
    /// None while it is down.
    server: Option<Server>,
    /// What is the matter with real GPUs, as a look at them would say.
    pub gpus: GpuFaults,
    /// Since when workloads have been idle, as a look would say.
    pub idle: IdleSince,
    /// What was written last, for those who follow.
    written: Vec<Change>,
    /// How often the state was built again.
    rebuilds: u64,
    /// What a database would have refused.
    refused: Option<String>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with a new database, on which no server was started yet.
    #[must_use]
    pub fn new(nodes: NodeList, policy: Policy, check: Option<Check>) -> Self {
        let clock = Clock::default();
        Self {
            rows: Rows::new(Uuid::from_u128(1), clock.wall()),
            engine: Engine::default(),
            clock,
            nodes,
            ended_kept: ENDED_KEPT,
            check,
            policy,
            by_hand: false,
            server: None,
            gpus: GpuFaults::default(),
            idle: IdleSince::default(),
            written: Vec::new(),
            rebuilds: 0,
            refused: None,
        }
    }

    /// Starts the server, if it is down.
    ///
    /// # Errors
    /// It cannot be built from the rows.
    pub fn start(&mut self) -> Result<(), Error> {
        if self.server.is_some() {
            return Ok(());
        }
        let server = self.recover(&self.nodes.clone(), &GpuFaults::default())?;
        self.reconcile(server)
    }

    fn recover(&mut self, nodes: &NodeList, gpus_told: &GpuFaults) -> Result<Server, Error> {
        let snapshot = self.rows.snapshot();
        let at = self.clock.settle(snapshot.clock);
        let mut server =
            Server::recover(snapshot, nodes, gpus_told, &self.policy, at, self.ended_kept)?;
        (server.check, server.by_hand) = (self.check, self.by_hand);
        Ok(server)
    }

    fn reconcile(&mut self, mut server: Server) -> Result<(), Error> {
        self.engine.seen.clear();
        let taken =
            server.reconcile(&self.engine, self.idle.clone(), self.gpus.clone(), &self.rows);
        self.server = Some(server);
        self.commit(taken, None).map(drop)
    }

    /// The server ends in the middle of whatever it does.
    pub fn crash(&mut self) {
        self.server = None;
    }

    /// Builds the state again from the rows, as after a failure to write.
    fn rebuild(&mut self) -> Result<(), Error> {
        let Some(before) = self.server.take() else { return Ok(()) };
        self.rebuilds += 1;
        let mut server = self.recover(&before.nodes, &before.gpus_told)?;
        server.state.take_over(before.state.hand_over(before.is_halted));
        self.reconcile(server)
    }

    /// Takes inputs as one batch. None if none of it counts; what is written counts, also if the
    /// server then ended.
    ///
    /// # Errors
    /// The server could not be built again.
    pub fn take(
        &mut self,
        mut inputs: Vec<Input>,
        cut: Option<Cut>,
    ) -> Result<Option<Outcomes>, Error> {
        if self.server.is_some() && self.clock.is_behind() {
            self.rebuild()?;
            // What was seen and decided before is not about the new state.
            inputs.retain(|input| matches!(input, Input::Command(..)));
        }
        let Some(server) = &mut self.server else { return Ok(None) };
        let at = self.clock.moment();
        let taken = server.take(at, inputs, &self.rows);
        self.commit(taken, cut)
    }

    fn commit(&mut self, taken: Taken, cut: Option<Cut>) -> Result<Option<Outcomes>, Error> {
        let Taken { outcomes, mut batch } = taken;
        match cut {
            Some(Cut::BeforeRows) => {
                self.crash();
                return Ok(None);
            }
            Some(Cut::WriteFails) if !batch.changes.is_empty() => {
                self.rebuild()?;
                return Ok(None);
            }
            _ => {}
        }
        if let Err(why) = self.rows.apply(&batch.changes) {
            self.refused.get_or_insert(why);
        }
        self.written = std::mem::take(&mut batch.changes);
        let Some(server) = &mut self.server else { return Ok(None) };
        server.written(&mut batch, self.clock.now());
        batch.actions.into_iter().for_each(|action| server.executor.act(action));
        if let Some(Cut::AfterActions(count)) = cut {
            (0..count).for_each(|_| self.ask(0));
            self.crash();
        }
        Ok(Some(outcomes))
    }

    /// Carries out one command, and says what came of it.
    ///
    /// # Errors
    /// It is refused, or the server is down.
    pub fn command(&mut self, command: Command) -> Result<Subject, Error> {
        let input = Input::Command(Box::new(command), Default::default());
        let outcomes = self.take(vec![input], None)?;
        let down = || Error::Unavailable { message: "the server is down".to_owned() };
        outcomes.and_then(|mut outcomes| outcomes.pop()).unwrap_or_else(|| Err(down()))
    }

    /// What the scheduler has decided, to be taken as an input.
    pub fn verdict(&mut self) -> Option<Input> {
        self.server.as_mut()?.verdict.take()
    }

    /// What the scheduler has decided, if that was not taken.
    #[must_use]
    pub fn decided(&self) -> Option<&Plan> {
        match self.server.as_ref()?.verdict.as_ref()? {
            Input::Decided(decision) => Some(&decision.plan),
            _ => None,
        }
    }

    /// Has the scheduler decide by itself, with these actions instead of those of its policy.
    /// Answers the plan and what queues are entitled to; the plan is carried out, and nothing is
    /// asked of the engine yet.
    ///
    /// # Errors
    /// The server could not be built again.
    pub fn decide(
        &mut self,
        actions: Option<&[Action]>,
    ) -> Result<(Arc<Plan>, BTreeMap<QueueId, Resources>), Error> {
        let now = self.clock.now();
        // What was decided about an older state is nothing; and what is so because of the time
        // comes first.
        let nothing = Decision { now, ..Decision::default() };
        self.take(vec![Input::Decided(Box::new(nothing))], None)?;
        let Some(server) = &mut self.server else { return Ok(Default::default()) };
        let decision = server.decide_anew(now, actions);
        let told = (decision.plan.clone(), decision.shares.clone());
        self.take(vec![Input::Decided(Box::new(decision))], None)?;
        Ok(told)
    }

    /// True if something happened that the scheduler has not seen.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.server.as_ref().is_some_and(|server| !server.state.is_decided())
    }

    /// Lets all go on that is under way, but for decisions, until nothing is that needs no time.
    ///
    /// # Errors
    /// The server could not be built again.
    pub fn settle(&mut self) -> Result<(), Error> {
        loop {
            (0..self.asking()).rev().for_each(|number| self.ask(number));
            let moving = self.engine.alive().filter(|(key, run)| self.engine.moves(**key, run));
            for key in moving.map(|(key, _)| *key).collect::<Vec<_>>() {
                self.engine.go_on(key, self.clock.wall());
            }
            let news: Vec<_> = std::iter::from_fn(|| self.news()).collect();
            let is_due = self.due().is_some_and(|at| at <= self.clock.now());
            if news.is_empty() && !is_due && self.asking() == 0 {
                return Ok(());
            }
            if is_due || !news.is_empty() {
                self.take(news, None)?;
            }
        }
    }

    /// The scheduler fails instead of deciding; the input that says so.
    pub fn fail_scheduler(&mut self, all: bool) -> Option<Input> {
        self.server.as_mut()?.fail_scheduler(all)
    }

    /// True if inputs but the verdict have to wait.
    #[must_use]
    pub fn waits_for_verdict(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.state.waits_for_decision())
    }

    /// For how many pods and volumes there is something to ask of the engine.
    #[must_use]
    pub fn asking(&self) -> usize {
        self.server.as_ref().map_or(0, |server| server.executor.len())
    }

    /// Asks the engine the next thing about one of them.
    pub fn ask(&mut self, number: usize) {
        if let Some(server) = &mut self.server {
            server.executor.step(number, &mut self.engine, self.clock.wall());
        }
    }

    /// What the engine and the executor have to tell; none while the server is down.
    pub fn news(&mut self) -> Option<Input> {
        let server = self.server.as_mut()?;
        let told = server.executor.told.pop_front();
        told.or_else(|| self.engine.seen.pop_front().map(Input::Run))
    }

    /// Lets everything that is under way go on: the decision is taken, what the engine has to tell
    /// is taken, actions are carried out, and runs begin, or end as they were told. Answers whether
    /// anything is left.
    ///
    /// # Errors
    /// The server could not be built again.
    pub fn go_on(&mut self) -> Result<bool, Error> {
        if let Some(verdict) = self.verdict() {
            self.take(vec![verdict], None)?;
        }
        if !self.waits_for_verdict() {
            let news: Vec<_> = std::iter::from_fn(|| self.news()).collect();
            let is_due = self.due().is_some_and(|at| at <= self.clock.now());
            if is_due || !news.is_empty() {
                self.take(news, None)?;
            }
        }
        (0..self.asking()).rev().for_each(|number| self.ask(number));
        let moving = self.engine.alive().filter(|(key, run)| self.engine.moves(**key, run));
        for key in moving.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.engine.go_on(key, self.clock.wall());
        }
        let is_due = self.due().is_some_and(|at| at <= self.clock.now());
        Ok(is_due || !self.is_quiet())
    }

    /// The newest thing that the engine has to tell, before all others.
    pub fn newest_seen(&mut self) -> Option<Observation> {
        self.server.as_ref()?;
        self.engine.seen.pop_back()
    }

    /// What people see.
    #[must_use]
    pub fn view(&self) -> Option<&View> {
        self.server.as_ref().map(|server| &server.view)
    }

    /// What the scheduler sees, as of the last batch, and how it decides.
    #[must_use]
    pub fn replica(&self) -> Option<(&model::Cluster, &Policy)> {
        self.server.as_ref().map(|server| (&server.replica, server.policy()))
    }

    /// When something is due that no input is needed for.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.server.as_ref()?.state.due()
    }

    /// The rows that were written last.
    #[must_use]
    pub fn written(&self) -> &[Change] {
        &self.written
    }

    /// What people, and the scheduler, would see of a server that is built from the rows now; none
    /// if it is down, or a difference is right: the wall clock was set, or runs exist that should
    /// not.
    ///
    /// # Errors
    /// It cannot be built.
    pub fn recovered(&self) -> Result<Option<(View, model::Cluster)>, Error> {
        let Some(living) = &self.server else { return Ok(None) };
        let snapshot = self.rows.snapshot();
        let at = self.clock.clone().settle(snapshot.clock);
        // What is held up by runs that should not be is known only by comparing with the engine.
        if at.step.is_some() || living.state.has_orphans() {
            return Ok(None);
        }
        let (nodes, told) = (&living.nodes, &living.gpus_told);
        let server = Server::recover(snapshot, nodes, told, &self.policy, at, self.ended_kept);
        let mut state = server?.state;
        let view = state.finish(&View::default()).view;
        Ok(Some((view, state.replica())))
    }

    /// A request against the rules of the database or the engine, or what did not hold of a
    /// decision.
    #[must_use]
    pub fn misuse(&self) -> Option<&str> {
        let broken = self.server.as_ref().and_then(|server| server.broken.as_deref());
        self.refused.as_deref().or(self.engine.misuse.as_deref()).or(broken)
    }

    /// How often the state was built again: what was seen before that is to be forgotten.
    #[must_use]
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// True if everything is being stopped.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.is_halted)
    }

    /// True if nothing is left to decide, to ask of the engine, or to be told of it.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let idle = |server: &Server| {
            let decided = server.state.is_decided() && server.verdict.is_none();
            decided && server.executor.len() == 0 && server.executor.told.is_empty()
        };
        self.server.as_ref().is_some_and(idle) && self.engine.seen.is_empty()
    }
}
