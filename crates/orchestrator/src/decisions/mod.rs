//! When the scheduler is asked to decide, and what its decisions leave out. Not stored: after a
//! start it follows from what happens.

mod apply_plan;
mod set_aside;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Cluster, QueueId, WorkloadId};
use sched::{Memory, Plan, Policy};
use serde::{Deserialize, Serialize};
use units::{Instant, Resources};
use uuid::Uuid;

/// Until then a workload that is set aside is not looked at: as good as for ever.
pub const NEVER: Instant = Instant(u64::MAX / 2);
/// Most plans in a row that are dropped because something happened meanwhile. Then the next
/// decision is waited for.
const PLANS_DROPPED_MAX: u32 = 3;

/// A plan, and what is different from the one before.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// The time that it is of.
    pub now: Instant,
    /// What to do, and why others wait.
    pub plan: Arc<Plan>,
    /// Queues that are entitled to more or less than before, and to how much.
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

/// On what decisions fail.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Culprits {
    /// These workloads, in the order in which they were found.
    pub ids: Vec<WorkloadId>,
    /// They fail whatever they look at.
    pub all: bool,
}

/// What is not decided about. It is found again after a start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Aside {
    /// Workloads on which decisions fail.
    ids: BTreeSet<Uuid>,
    /// Decisions fail whatever they look at.
    all: bool,
    /// When it is tried again; none where nothing is set aside.
    again_at: Option<Instant>,
}

/// What a state that is built again takes over from the one before, because it is not stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HandedOver {
    aside: Aside,
    /// Everything is being stopped.
    pub(crate) halted: bool,
}

/// How far the present decision is, and what the next has to look at.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// A decision is under way.
    is_deciding: bool,
    /// Plans in a row that were dropped because something happened meanwhile.
    plans_dropped: u32,
    /// The next decision has to give all reasons again.
    retells: bool,
    /// Workloads that the next decision has to give their reasons again.
    unexplained: BTreeSet<WorkloadId>,
    /// When the scheduler wants to look again.
    wake_at: Option<Instant>,
    aside: Aside,
}

impl Decisions {
    /// A decision failed; until it is known on what, no other is asked for.
    pub(crate) const fn fail(&mut self) {
        self.is_deciding = true;
        self.plans_dropped = 0;
    }

    pub(crate) const fn stop(&mut self) {
        self.wake_at = None;
    }

    /// Asks the next decision for the reasons of a workload.
    pub(crate) fn ask_why(&mut self, model: Option<WorkloadId>) {
        self.unexplained.extend(model);
    }

    /// True if a workload is set aside.
    pub(crate) fn is_aside(&self, id: Uuid) -> bool {
        self.aside.ids.contains(&id)
    }

    /// Gives a workload another look, if it was set aside; answers whether it was.
    pub(crate) fn take_back(&mut self, id: Uuid) -> bool {
        self.aside.ids.remove(&id)
    }

    /// A workload is gone. Others may have been set aside because it was there.
    pub(crate) fn forget(&mut self, id: Uuid, now: Instant) {
        self.aside.ids.remove(&id);
        self.aside.again_at = self.aside.again_at.map(|_| now);
    }

    /// What the state that replaces this one has to know.
    pub(crate) fn hand_over(&self, halted: bool) -> HandedOver {
        HandedOver { aside: self.aside.clone(), halted }
    }

    /// True if the next decision has to give all reasons again.
    pub(crate) const fn take_retells(&mut self) -> bool {
        std::mem::replace(&mut self.retells, false)
    }

    /// The workloads that the next decision has to give their reasons again.
    pub(crate) fn take_unexplained(&mut self) -> BTreeSet<WorkloadId> {
        std::mem::take(&mut self.unexplained)
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.wake_at.into_iter().chain(self.aside.again_at).min()
    }
}
