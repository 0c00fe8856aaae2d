//! Requests for decisions, and the workloads that decisions leave out. Not stored: after a start it
//! follows from new decisions.

mod apply_plan;
mod set_aside;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Cluster, QueueId, WorkloadId};
use sched::{Memory, Plan, Policy};
use serde::{Deserialize, Serialize};
use units::{Instant, Resources};
use uuid::Uuid;

/// Moment until which a set-aside workload is not considered: in effect for ever.
pub const NEVER: Instant = Instant(u64::MAX / 2);
/// Maximum number of successive plans that are dropped because of changes. Then the server waits
/// for the next decision.
const PLANS_DROPPED_MAX: u32 = 3;

/// A plan, and its differences from the one before.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// Time of the decision.
    pub now: Instant,
    /// Actions, and the reasons of waiting workloads.
    pub plan: Arc<Plan>,
    /// New fair shares of queues whose share changed.
    pub shares: BTreeMap<QueueId, Resources>,
}

impl Decision {
    /// Decides about a cluster.
    pub fn made(memory: &mut Memory, cluster: &mut Cluster, now: Instant, policy: &Policy) -> Self {
        let plan = Arc::new(memory.propose(cluster, now, policy));
        let moved = memory.take_moved_shares().into_iter();
        let share = |queue| Some((queue, *memory.shares().get(&queue)?));
        let shares = moved.filter_map(share).collect();
        Self { now, plan, shares }
    }
}

/// Workloads on which decisions fail.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Culprits {
    /// These workloads, in the order in which they were found.
    pub ids: Vec<WorkloadId>,
    /// True if decisions fail with any workload.
    pub all: bool,
}

/// Workloads excluded from decisions. They are found again after a start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Aside {
    /// Workloads on which decisions fail.
    ids: BTreeSet<Uuid>,
    /// True if decisions fail with any workload.
    all: bool,
    /// Time of the next retry; `None` if nothing is set aside.
    again_at: Option<Instant>,
}

/// State that is not stored and that a rebuilt state takes over from the one before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HandedOver {
    aside: Aside,
    /// True if everything is being stopped.
    pub(crate) halted: bool,
}

/// Progress of the present decision, and inputs of the next.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// True while a decision is running.
    is_deciding: bool,
    /// Number of successive plans that were dropped because of changes.
    plans_dropped: u32,
    /// True if the next decision must give all reasons again.
    retells: bool,
    /// Workloads for which the next decision must give reasons again.
    unexplained: BTreeSet<WorkloadId>,
    /// Time at which the scheduler wants to decide again.
    wake_at: Option<Instant>,
    aside: Aside,
}

impl Decisions {
    /// Records that a decision failed; no other is requested until the cause is known.
    pub(crate) const fn fail(&mut self) {
        self.is_deciding = true;
        self.plans_dropped = 0;
    }

    pub(crate) const fn stop(&mut self) {
        self.wake_at = None;
    }

    /// Requests the reasons of a workload from the next decision.
    pub(crate) fn ask_why(&mut self, model: Option<WorkloadId>) {
        self.unexplained.extend(model);
    }

    /// True if a workload is set aside.
    pub(crate) fn is_aside(&self, id: Uuid) -> bool {
        self.aside.ids.contains(&id)
    }

    /// Makes a set-aside workload considered again; true if it was set aside.
    pub(crate) fn take_back(&mut self, id: Uuid) -> bool {
        self.aside.ids.remove(&id)
    }

    /// Forgets a deleted workload. Others may have been set aside because of it.
    pub(crate) fn forget(&mut self, id: Uuid, now: Instant) {
        self.aside.ids.remove(&id);
        self.aside.again_at = self.aside.again_at.map(|_| now);
    }

    /// The state that is handed over to a rebuilt one.
    pub(crate) fn hand_over(&self, halted: bool) -> HandedOver {
        HandedOver { aside: self.aside.clone(), halted }
    }

    /// True if the next decision must give all reasons again.
    pub(crate) const fn take_retells(&mut self) -> bool {
        std::mem::replace(&mut self.retells, false)
    }

    /// The workloads for which the next decision must give reasons again.
    pub(crate) fn take_unexplained(&mut self) -> BTreeSet<WorkloadId> {
        std::mem::take(&mut self.unexplained)
    }

    /// Time of the next task.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.wake_at.into_iter().chain(self.aside.again_at).min()
    }
}
