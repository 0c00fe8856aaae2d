//! Takes from lower priorities of the same queue. Source: Run:ai reference D.4 and D.5,
//! scheduling reference §16.

use model::WorkloadId;

use crate::Cause;
use crate::session::Session;
use crate::victims::{Rule, Taking, above_minimum_while_safe};

pub(crate) struct Preempt;

impl Rule for Preempt {
    fn may_be_asked(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        let spec = |id: WorkloadId| &s.cluster.workloads()[id].spec;
        let (own, other) = (spec(id), spec(victim));
        s.can_give_way(victim) && other.queue == own.queue && other.priority < own.priority
    }

    fn takings(&self, s: &Session<'_>, victim: WorkloadId) -> Vec<Taking> {
        above_minimum_while_safe(s, victim, |share| share.preempt_min_runtime_ms)
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> Cause {
        let priority = |id: WorkloadId| s.cluster.workloads()[id].spec.priority;
        Cause::Preempted {
            beneficiary: s.reference(id),
            priority: priority(victim),
            beneficiary_priority: priority(id),
        }
    }
}
