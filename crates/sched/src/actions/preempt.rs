//! Takes from lower priorities of the same queue. Source: Run:ai reference D.4 and D.5,
//! scheduling reference §16.

use model::WorkloadId;
use units::Resources;

use crate::Cause;
use crate::session::Session;
use crate::victims::{Rule, preemptible};

pub(crate) struct Preempt;

impl Rule for Preempt {
    fn victims(&self, s: &Session<'_>, id: WorkloadId, _: Resources) -> Vec<WorkloadId> {
        let own = &s.cluster.workloads()[id].spec;
        let mut victims = preemptible(s, id);
        victims.retain(|&victim| {
            let other = &s.cluster.workloads()[victim].spec;
            other.queue == own.queue && other.priority < own.priority
        });
        victims
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
