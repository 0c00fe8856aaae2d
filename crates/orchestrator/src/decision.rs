//! What the scheduler says, as the state takes it.

use std::collections::BTreeMap;

use model::QueueId;
use sched::Plan;
use units::{Instant, Resources};

/// A plan, and what is different from the one before.
#[derive(Debug, Default)]
pub struct Decision {
    /// The time that it is of.
    pub now: Instant,
    /// What to do, and why others wait.
    pub plan: Plan,
    /// Queues that are entitled to more or less than before, and to how much.
    pub shares: BTreeMap<QueueId, Resources>,
}
