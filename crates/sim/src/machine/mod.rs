//! The control plane on a simulated machine: the state machine of the product, rows that outlive
//! it, the scheduler on a replica, and an engine. Owns: the execution of single steps, in the order
//! of the dispatcher: apply, write, show, act, decide. Uses no thread, clock or randomness.

mod clock;
mod engine;
mod executor;
mod rows;
mod server;
mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::QueueId;
use orchestrator::{Command, Decision, Error, IdleSince, Input, NodeList, Settings, Subject};
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

/// Point at which a batch is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The rows are not written, and the server continues without the batch.
    WriteFails,
    /// The server ends before the rows are written.
    BeforeRows,
    /// The server ends after the rows are written and this number of actions is carried out.
    AfterActions(usize),
}

/// Check of a decision on a cluster, with a policy, at a time; the error describes the violation.
pub type Check = fn(&model::Cluster, &Plan, &Policy, Instant) -> Result<(), String>;

/// Results of commands.
pub type Outcomes = Vec<Result<Subject, Error>>;

/// A server with its database, on a machine.
pub struct Machine {
    /// Stored rows.
    pub rows: Rows,
    /// The engine with its runs.
    pub engine: Engine,
    /// Clocks of the machine.
    pub clock: Clock,
    /// Nodes that the next server starts with.
    pub nodes: NodeList,
    /// Settings of the operator, from the next start on.
    pub settings: Settings,
    /// Check of every decision; `None` for no check.
    check: Option<Check>,
    policy: Policy,
    /// `true` if the scheduler decides only on request of the caller.
    by_hand: bool,
    /// The running server; `None` while it is down.
    server: Option<Server>,
    /// Faults of real GPUs that the next inspection finds.
    pub gpus: GpuFaults,
    /// Start of the idle time of workloads that the next inspection finds.
    pub idle: IdleSince,
    /// Rows of the last batch, for subscribers.
    written: Vec<Change>,
    /// Number of times the state was rebuilt.
    rebuilds: u64,
    /// Description of the first change that a database would refuse.
    refused: Option<String>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with a new database, on which no server has run.
    #[must_use]
    pub fn new(nodes: NodeList, policy: Policy, check: Option<Check>) -> Self {
        let clock = Clock::default();
        Self {
            rows: Rows::new(Uuid::from_u128(1), clock.wall()),
            engine: Engine::default(),
            clock,
            nodes,
            settings: Settings::default(),
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
    /// No state can be built from the rows.
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
        let settings = self.settings.clone();
        let mut server = Server::recover(snapshot, nodes, gpus_told, &self.policy, at, settings)?;
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

    /// Ends the server without any cleanup.
    pub fn crash(&mut self) {
        self.server = None;
    }

    /// Rebuilds the state from the rows, as after a failure to write.
    fn rebuild(&mut self) -> Result<(), Error> {
        let Some(before) = self.server.take() else { return Ok(()) };
        self.rebuilds += 1;
        let mut server = self.recover(&before.nodes, &before.gpus_told)?;
        server.state.take_over(before.state.hand_over(before.is_halted));
        self.reconcile(server)
    }

    /// Takes inputs as one batch. Returns `None` if the batch has no effect; a batch that is
    /// written has an effect even if the server ends after that.
    ///
    /// # Errors
    /// The server could not be rebuilt.
    pub fn take(
        &mut self,
        mut inputs: Vec<Input>,
        cut: Option<Cut>,
    ) -> Result<Option<Outcomes>, Error> {
        if self.server.is_some() && self.clock.is_behind() {
            self.rebuild()?;
            // Observations and decisions from before do not apply to the new state.
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

    /// Carries out one command, and returns its result.
    ///
    /// # Errors
    /// The command is refused, or the server is down.
    pub fn command(&mut self, command: Command) -> Result<Subject, Error> {
        let input = Input::Command(Box::new(command), Default::default());
        let outcomes = self.take(vec![input], None)?;
        let down = || Error::Unavailable { message: "the server is down".to_owned() };
        outcomes.and_then(|mut outcomes| outcomes.pop()).unwrap_or_else(|| Err(down()))
    }

    /// The decision of the scheduler, to be taken as an input; `None` if there is none.
    pub fn verdict(&mut self) -> Option<Input> {
        self.server.as_mut()?.verdict.take()
    }

    /// The plan of the last decision, if no input has taken it.
    #[must_use]
    pub fn decided(&self) -> Option<&Plan> {
        match self.server.as_ref()?.verdict.as_ref()? {
            Input::Decided(decision) => Some(&decision.plan),
            _ => None,
        }
    }

    /// Makes a decision at once, with these actions instead of those of the policy. Returns the
    /// plan and the fair shares of queues; the plan is applied to the state, and its actions are
    /// not carried out yet.
    ///
    /// # Errors
    /// The server could not be rebuilt.
    pub fn decide(
        &mut self,
        actions: Option<&[Action]>,
    ) -> Result<(Arc<Plan>, BTreeMap<QueueId, Resources>), Error> {
        let now = self.clock.now();
        // An empty decision replaces one about an older state, and applies the changes due by now
        // first.
        let nothing = Decision { now, ..Decision::default() };
        self.take(vec![Input::Decided(Box::new(nothing))], None)?;
        let Some(server) = &mut self.server else { return Ok(Default::default()) };
        let decision = server.decide_anew(now, actions);
        let told = (decision.plan.clone(), decision.shares.clone());
        self.take(vec![Input::Decided(Box::new(decision))], None)?;
        Ok(told)
    }

    /// `true` if the scheduler has not seen the latest changes.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.server.as_ref().is_some_and(|server| !server.state.is_decided())
    }

    /// Continues everything in progress except decisions, until nothing is left that takes no time.
    ///
    /// # Errors
    /// The server could not be rebuilt.
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

    /// Lets the scheduler fail instead of deciding; returns the input that reports it.
    pub fn fail_scheduler(&mut self, all: bool) -> Option<Input> {
        self.server.as_mut()?.fail_scheduler(all)
    }

    /// `true` if inputs other than the decision have to wait.
    #[must_use]
    pub fn waits_for_verdict(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.state.waits_for_decision())
    }

    /// Number of pods, workloads and volumes with actions on the engine.
    #[must_use]
    pub fn asking(&self) -> usize {
        self.server.as_ref().map_or(0, |server| server.executor.len())
    }

    /// Carries out the next action of one of them.
    pub fn ask(&mut self, number: usize) {
        if let Some(server) = &mut self.server {
            server.executor.step(number, &mut self.engine, self.clock.wall());
        }
    }

    /// The next report of the executor or the engine; `None` if there is none, or while the server
    /// is down.
    pub fn news(&mut self) -> Option<Input> {
        let server = self.server.as_mut()?;
        let told = server.executor.told.pop_front();
        told.or_else(|| self.engine.seen.pop_front().map(Input::Run))
    }

    /// Continues everything in progress: takes the decision, takes the reports of the engine,
    /// carries out actions, and lets runs begin or stop. Returns `true` if anything is left.
    ///
    /// # Errors
    /// The server could not be rebuilt.
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

    /// The newest observation of the engine, ahead of all others.
    pub fn newest_seen(&mut self) -> Option<Observation> {
        self.server.as_ref()?;
        self.engine.seen.pop_back()
    }

    /// The view published to users.
    #[must_use]
    pub fn view(&self) -> Option<&View> {
        self.server.as_ref().map(|server| &server.view)
    }

    /// The scheduler's replica of the cluster as of the last batch, and its policy.
    #[must_use]
    pub fn replica(&self) -> Option<(&model::Cluster, &Policy)> {
        self.server.as_ref().map(|server| (&server.replica, server.policy()))
    }

    /// Time of the next change that needs no input.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.server.as_ref()?.state.due()
    }

    /// Rows of the last batch.
    #[must_use]
    pub fn written(&self) -> &[Change] {
        &self.written
    }

    /// The view and the model of a server recovered from the rows; `None` if the server is down, or
    /// if they may rightly differ: the wall clock was set, or orphaned runs exist.
    ///
    /// # Errors
    /// The server cannot be built.
    pub fn recovered(&self) -> Result<Option<(View, model::Cluster)>, Error> {
        let Some(living) = &self.server else { return Ok(None) };
        let snapshot = self.rows.snapshot();
        let at = self.clock.clone().settle(snapshot.clock);
        // Resources held by orphaned runs are known only after comparison with the engine.
        if at.step.is_some() || living.state.has_orphans() {
            return Ok(None);
        }
        let (nodes, told) = (&living.nodes, &living.gpus_told);
        let settings = self.settings.clone();
        let server = Server::recover(snapshot, nodes, told, &self.policy, at, settings);
        let mut state = server?.state;
        let view = state.finish(&View::default()).view;
        Ok(Some((view, state.replica())))
    }

    /// Description of the first request that violates the rules of the database or the engine, or
    /// of the first decision that fails its check.
    #[must_use]
    pub fn misuse(&self) -> Option<&str> {
        let broken = self.server.as_ref().and_then(|server| server.broken.as_deref());
        self.refused.as_deref().or(self.engine.misuse.as_deref()).or(broken)
    }

    /// Number of times the state was rebuilt: observations from before a rebuild are void.
    #[must_use]
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// `true` if everything is being stopped.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.is_halted)
    }

    /// `true` if no decision, action or report is outstanding.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let idle = |server: &Server| {
            let decided = server.state.is_decided() && server.verdict.is_none();
            decided && server.executor.len() == 0 && server.executor.told.is_empty()
        };
        self.server.as_ref().is_some_and(idle) && self.engine.seen.is_empty()
    }
}
