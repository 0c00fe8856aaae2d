//! What the scheduler says, as the state takes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Cluster, QueueId};
use sched::{Memory, Plan, Policy};
use units::{Instant, Resources};

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
