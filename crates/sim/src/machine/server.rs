//! The memory of a server, which is lost when it ends: the state machine, the scheduler's replica,
//! and the actions to be carried out.

use model::Cluster;
use orchestrator::{
    Batch, Culprits, Decision, Error, IdleSince, Input, Moment, NodeList, Settings, Settled, State,
    Subject, leave_out_archived,
};
use records::Snapshot;
use sched::{Action, Memory, Policy};
use spec::LimitsKept;
use units::Instant;
use view::{GpuFaults, View};

use super::engine::Engine;
use super::executor::Executor;
use super::{Check, Rows};

/// The outcome of inputs, to be written before anything else.
pub(super) struct Taken {
    /// Results of the commands, in order.
    pub(super) outcomes: Vec<Result<Subject, Error>>,
    pub(super) batch: Batch,
}

pub(super) struct Server {
    pub(super) state: State,
    pub(super) view: View,
    pub(super) replica: Cluster,
    memory: Memory,
    policy: Policy,
    /// `true` if the scheduler decides only on request of the caller.
    pub(super) by_hand: bool,
    /// Nodes that it started with.
    pub(super) nodes: NodeList,
    /// Decision of the scheduler, with the time when it was requested, until the state takes it.
    pub(super) verdict: Option<Input>,
    /// The replica is to be rebuilt.
    renews: bool,
    pub(super) executor: Executor,
    /// Check of every decision, and the description of the first violation.
    pub(super) check: Option<Check>,
    pub(super) broken: Option<String>,
    /// `true` if the written state stops everything.
    pub(super) is_halted: bool,
    /// Faults of real GPUs in the written state.
    pub(super) gpus_told: GpuFaults,
}

impl Server {
    /// The server after a start; its first rows, events and actions follow from its first inputs.
    pub(super) fn recover(
        snapshot: Snapshot,
        nodes: &NodeList,
        gpus: &GpuFaults,
        policy: &Policy,
        at: Settled,
        settings: Settings,
    ) -> Result<Self, Error> {
        let mut state = State::recover(snapshot, nodes, gpus, policy.usage, at)?;
        state.set(settings);
        Ok(Self {
            state,
            view: View::default(),
            replica: Cluster::default(),
            memory: Memory::default(),
            policy: policy.clone(),
            by_hand: false,
            nodes: nodes.clone(),
            verdict: None,
            renews: true,
            executor: Executor::default(),
            check: None,
            broken: None,
            is_halted: false,
            gpus_told: gpus.clone(),
        })
    }

    /// Compares the state with the engine: the first inputs of a state.
    pub(super) fn reconcile(
        &mut self,
        engine: &Engine,
        idle: IdleSince,
        gpus: GpuFaults,
        rows: &Rows,
    ) -> Taken {
        let mut listed = engine.list();
        leave_out_archived(&mut listed, &rows.archived_pods());
        let left = engine.pods().intersection(rows.deleted_pods()).copied().collect();
        let engine = [Input::Engine(listed, LimitsKept::ALL), Input::Left(left)];
        let inputs = [Input::Idle(idle), Input::Gpus(gpus)].into_iter().chain(engine);
        self.apply(inputs.collect(), rows)
    }

    /// Takes inputs. They have no effect before they are written.
    pub(super) fn take(&mut self, at: Moment, inputs: Vec<Input>, rows: &Rows) -> Taken {
        self.state.begin(at);
        self.apply(inputs, rows)
    }

    /// Applies inputs, after the archived workloads that they refer to.
    fn apply(&mut self, inputs: Vec<Input>, rows: &Rows) -> Taken {
        let lookups: Vec<_> = inputs.iter().flat_map(|input| self.state.lookups(input)).collect();
        let archived = Input::Archived(rows.archived(&lookups));
        let all = std::iter::once(archived).chain(inputs);
        let outcomes = all.filter_map(|input| self.state.apply(input)).collect();
        self.finish(outcomes)
    }

    fn finish(&mut self, outcomes: Vec<Result<Subject, Error>>) -> Taken {
        self.state.elapse();
        let pools = self.state.placements(self.policy.placement);
        if self.policy.pools != pools {
            self.policy.pools = pools;
            self.state.decide_again();
        }
        Taken { outcomes, batch: self.state.finish(&self.view) }
    }

    /// Continues after a batch was written: publishes the view and requests the decision. The
    /// caller carries out the actions.
    pub(super) fn written(&mut self, batch: &mut Batch, now: Instant) {
        self.view = std::mem::take(&mut batch.view);
        self.is_halted = self.state.is_halted();
        self.gpus_told = self.state.gpus_seen().clone();
        let ops = std::mem::take(&mut batch.ops);
        if std::mem::take(&mut self.renews) {
            (self.replica, self.memory) = (self.state.replica(), Memory::default());
        } else {
            ops.into_iter().for_each(|op| op(&mut self.replica));
        }
        if batch.decides && !self.by_hand {
            self.decide(now);
        }
    }

    fn decide(&mut self, now: Instant) {
        if self.state.take_retells() {
            self.memory = Memory::default();
        }
        let unexplained = self.state.take_unexplained();
        if !unexplained.is_empty() {
            self.memory.tell_again(unexplained);
        }
        let decision = Decision::made(&mut self.memory, &mut self.replica, now, &self.policy);
        if let Some(Err(fault)) =
            self.check.map(|check| check(&self.replica, &decision.plan, &self.policy, now))
        {
            self.broken.get_or_insert(fault);
        }
        self.verdict = Some(Input::Decided(Box::new(decision)));
    }

    /// A decision of a scheduler without memory, with these actions if any are given.
    pub(super) fn decide_anew(&mut self, now: Instant, actions: Option<&[Action]>) -> Decision {
        let mut policy = self.policy.clone();
        policy.actions = actions.map_or(policy.actions, <[Action]>::to_vec);
        let mut memory = Memory::default();
        Decision::made(&mut memory, &mut self.replica, now, &policy)
    }

    /// The scheduler fails on a pending workload, or with `all` on none that it can name.
    pub(super) fn fail_scheduler(&mut self, all: bool) -> Option<Input> {
        self.verdict.take()?;
        (self.replica, self.memory) = (self.state.replica(), Memory::default());
        let ids = self.replica.waiting().take(usize::from(!all)).collect();
        self.verdict = Some(Input::Culprits(Culprits { ids, all }));
        Some(Input::DecisionFailed)
    }

    /// The policy with the placement strategy of each node pool.
    pub(super) const fn policy(&self) -> &Policy {
        &self.policy
    }
}
