//! The state: its parts, and the part that each input changes. Each part is changed only by its own
//! methods.

use std::collections::BTreeSet;

use command::Subject;
use model::{Cluster, Primary, WorkloadId};
use units::Instant;

use crate::Error;
use crate::decisions::{Decisions, HandedOver};
use crate::documents::Documents;
use crate::effect::Outbox;
use crate::input::Input;
use crate::ledger::Ledger;
use crate::limits::{IdleSince, Limits};
use crate::nodes::Nodes;
use crate::org::Org;
use crate::pools::Pools;
use crate::settings::Settings;
use crate::workloads::{Runs, Workloads};
use records::{Ids, Moment};
use view::GpuFaults;

/// State of the dispatcher.
#[derive(Debug)]
pub struct State {
    pub(crate) now: Instant,
    /// Time of the machine's clock, by which engines date their observations. It differs from `now`
    /// after the clock was set back.
    pub(crate) clock: Instant,
    /// Source of the ids of objects that this batch creates.
    pub(crate) ids: Ids,
    pub(crate) cluster: Primary,
    pub(crate) cluster_created_at: Instant,
    pub(crate) nodes: Nodes,
    /// Pods and nodes as a feed reported them last.
    pub(crate) adopted: Box<adopted::Table>,
    pub(crate) pools: Pools,
    pub(crate) org: Org,
    pub(crate) workloads: Workloads,
    pub(crate) runs: Runs,
    /// Objects that the scheduler does not need.
    pub(crate) documents: Documents,
    pub(crate) decisions: Decisions,
    pub(crate) ledger: Ledger,
    pub(crate) limits: Limits,
    /// Settings of the operator.
    pub(crate) settings: Settings,
    /// Faults of real GPUs. Not stored: they are read again at each start.
    pub(crate) gpus_seen: GpuFaults,
    /// True if everything is being stopped; nothing is started.
    pub(crate) halted: bool,
    pub(crate) last_event_seq: u64,
    pub(crate) outbox: Outbox,
}

impl State {
    /// Sets what the operator of the server chooses.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Settings of the operator of the server.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins a batch.
    pub fn begin(&mut self, at: Moment) {
        (self.now, self.clock, self.ids) = (at.now, at.clock, Ids::from_seed(at.seed));
    }

    /// Applies an input. A command has an outcome.
    pub fn apply(&mut self, input: Input) -> Option<Result<Subject, Error>> {
        match input {
            Input::Command(command, origin) => return Some(self.command(*command, &origin)),
            Input::Run(seen) => self.observe(&seen),
            Input::Volume(name, error) => self.volume_ends(&name, error),
            Input::Ports(wanted, found) => self.ports_found(&wanted, found),
            Input::Node(event) => self.node_event(event),
            Input::Listed(listing) => self.feed_listed(listing),
            Input::Changed(change) => self.feed_changed(change),
            Input::Archived(found) => self.restore_archived(found),
            Input::Idle(idle) => {
                let changed = self.limits.see_idle(idle);
                self.outbox.show(changed);
            }
            Input::Gpus(seen) => self.see_gpus(seen),
            Input::Engine(listed, limits_kept) => self.reconcile(listed, limits_kept),
            Input::Left(pods) => self.forget_left(pods),
            Input::Decided(decision) => self.decided(*decision),
            Input::DecisionFailed => self.decisions.fail(),
            Input::Culprits(culprits) => self.set_culprits_aside(culprits),
        }
        None
    }

    /// Executes the tasks that are due.
    pub fn elapse(&mut self) {
        self.settle_loose();
        self.settle_gangs();
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

    /// Last reported start of the idle time of workloads.
    #[must_use]
    pub const fn idle(&self) -> &IdleSince {
        self.limits.idle()
    }

    /// Last reported faults of real GPUs.
    #[must_use]
    pub const fn gpus_seen(&self) -> &GpuFaults {
        &self.gpus_seen
    }

    /// True if everything is being stopped.
    #[must_use]
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// True if orphaned runs exist, which are being stopped.
    #[must_use]
    pub fn has_orphans(&self) -> bool {
        self.runs.has_orphans()
    }

    /// The state that a new state takes over in addition to stored rows.
    pub fn hand_over(&self, halted: bool) -> HandedOver {
        self.decisions.hand_over(halted)
    }

    /// Takes over from an earlier state of this server.
    pub fn take_over(&mut self, before: HandedOver) {
        self.halted = before.halted;
        self.keep_aside(before);
    }

    /// The initial copy for the scheduler's replica.
    pub fn replica(&mut self) -> Cluster {
        self.cluster.replica()
    }

    /// True if the next decision must give all reasons again.
    pub fn take_retells(&mut self) -> bool {
        self.decisions.take_retells()
    }

    /// The workloads for which the next decision must give reasons again.
    pub fn take_unexplained(&mut self) -> BTreeSet<WorkloadId> {
        self.decisions.take_unexplained()
    }

    /// Requests a decision after a change of its other inputs.
    pub const fn decide_again(&mut self) {
        self.cluster.renew();
    }

    /// Time of the next task that is due without an input.
    pub fn due(&self) -> Option<Instant> {
        let waits = [self.workloads.first_restart(), self.workloads.timed_due(), self.runs.due()];
        waits
            .into_iter()
            .chain([self.limits.due(), self.decisions.due(), self.ledger.due()])
            .flatten()
            .min()
    }
}
