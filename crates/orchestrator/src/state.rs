//! The state: its parts, and which of them takes an input. Each part alone changes what it keeps.

use std::collections::BTreeSet;

use model::{Cluster, Primary, WorkloadId};
use spec::UserLimits;
use units::Instant;

use crate::Error;
use crate::command::Subject;
use crate::decisions::{Decisions, HandedOver};
use crate::documents::Documents;
use crate::effect::Outbox;
use crate::input::Input;
use crate::ledger::Ledger;
use crate::limits::{IdleSince, Limits};
use crate::nodes::Nodes;
use crate::org::Org;
use crate::pools::Pools;
use crate::workloads::{Runs, Workloads};
use records::{Ids, Moment};
use view::GpuFaults;

/// Everything the dispatcher knows.
#[derive(Debug)]
pub struct State {
    pub(crate) now: Instant,
    /// What the machine's clock says: what engines date their observations by. Not `now` after
    /// the clock was set back.
    pub(crate) clock: Instant,
    /// Ids for what this batch makes.
    pub(crate) ids: Ids,
    pub(crate) cluster: Primary,
    pub(crate) cluster_created_at: Instant,
    pub(crate) nodes: Nodes,
    pub(crate) pools: Pools,
    pub(crate) org: Org,
    pub(crate) workloads: Workloads,
    pub(crate) runs: Runs,
    /// What the scheduler does not need.
    pub(crate) documents: Documents,
    pub(crate) decisions: Decisions,
    pub(crate) ledger: Ledger,
    pub(crate) limits: Limits,
    pub(crate) user_limits: UserLimits,
    /// What is the matter with real GPUs. Not stored: it is read again at each start.
    pub(crate) gpus_seen: GpuFaults,
    /// Everything is being stopped; nothing is started.
    pub(crate) halted: bool,
    pub(crate) last_event_seq: u64,
    pub(crate) outbox: Outbox,
}

impl State {
    /// Sets how much users may make.
    pub fn set_user_limits(&mut self, limits: UserLimits) {
        self.user_limits = limits;
    }

    /// Begins a batch.
    pub fn begin(&mut self, at: Moment) {
        (self.now, self.clock, self.ids) = (at.now, at.clock, Ids::from_seed(at.seed));
    }

    /// Takes something that happened. A command has an outcome.
    pub fn apply(&mut self, input: Input) -> Option<Result<Subject, Error>> {
        match input {
            Input::Command(command, origin) => return Some(self.command(*command, &origin)),
            Input::Run(seen) => self.observe(&seen),
            Input::Volume(name, error) => self.volume_ends(&name, error),
            Input::Ports(wanted, found) => self.ports_found(&wanted, found),
            Input::Node(event) => self.node_event(event),
            Input::Archived(found) => self.restore_archived(found),
            Input::Idle(idle) => self.limits.see_idle(idle),
            Input::Gpus(seen) => self.see_gpus(seen),
            Input::Engine(listed, limits_kept) => self.reconcile(listed, limits_kept),
            Input::Left(pods) => self.forget_left(pods),
            Input::Decided(decision) => self.decided(*decision),
            Input::DecisionFailed => self.decisions.fail(),
            Input::Culprits(culprits) => self.set_culprits_aside(culprits),
        }
        None
    }

    /// Does what is to be done because of the time.
    pub fn elapse(&mut self) {
        self.restart_due();
        self.search_ports_due();
        self.enforce_limits();
        self.expire_due();
        self.retry_aside_due();
        if !self.halted {
            self.assemble();
        }
        self.observe_usage();
        self.write_lags();
        self.tell_timed_reasons();
        self.explain_undecided();
    }

    /// Since when workloads have been idle, as it was told last.
    #[must_use]
    pub const fn idle(&self) -> &IdleSince {
        self.limits.idle()
    }

    /// What is the matter with real GPUs, as it was told last.
    #[must_use]
    pub const fn gpus_seen(&self) -> &GpuFaults {
        &self.gpus_seen
    }

    /// True if everything is being stopped.
    #[must_use]
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// True if runs exist that should not, and are being stopped.
    #[must_use]
    pub fn has_orphans(&self) -> bool {
        self.runs.has_orphans()
    }

    /// What the state that replaces this one has to know beside what is stored.
    pub fn hand_over(&self, halted: bool) -> HandedOver {
        self.decisions.hand_over(halted)
    }

    /// Goes on in place of another state of the same server.
    pub fn take_over(&mut self, before: HandedOver) {
        self.halted = before.halted;
        self.keep_aside(before);
    }

    /// What the scheduler's replica begins with.
    pub fn replica(&mut self) -> Cluster {
        self.cluster.replica()
    }

    /// True if the next decision has to give all reasons again.
    pub fn take_retells(&mut self) -> bool {
        self.decisions.take_retells()
    }

    /// The workloads that the next decision has to give their reasons again.
    pub fn take_unexplained(&mut self) -> BTreeSet<WorkloadId> {
        self.decisions.take_unexplained()
    }

    /// Decisions depend on something else that is different now.
    pub const fn decide_again(&mut self) {
        self.cluster.renew();
    }

    /// The next time anything is to be done without being asked.
    pub fn due(&self) -> Option<Instant> {
        let waits = [self.workloads.first_restart(), self.workloads.timed_due(), self.runs.due()];
        waits
            .into_iter()
            .chain([self.limits.due(), self.decisions.due(), self.ledger.due()])
            .flatten()
            .min()
    }
}
