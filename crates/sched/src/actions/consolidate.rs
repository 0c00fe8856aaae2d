//! Moves running pods to reduce fragmentation. Owns: the rule that no workload loses its place.
//! Source: Run:ai reference D.5, scheduling reference §17.

use model::WorkloadId;
use smallvec::smallvec;
use units::Resources;

use crate::session::Session;
use crate::victims::{EvictionUnit, EvictionUnits, LargestWorkloads, Rule};
use reasons::Cause;

pub(crate) struct Consolidation;

impl Rule for Consolidation {
    /// A moved workload needs as much elsewhere, except its lent GPUs.
    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        _: Resources,
        _: &mut LargestWorkloads,
    ) -> Resources {
        s.lent(id)
    }

    fn is_victim(&self, s: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> bool {
        s.can_give_way(victim)
    }

    /// A move does not change the resources that a queue uses.
    fn own_gives_way(&self, _: &Session<'_>, _: WorkloadId, _: WorkloadId) -> bool {
        false
    }

    fn eviction_units(&self, _: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> EvictionUnits {
        smallvec![EvictionUnit::All(victim)]
    }

    fn moves_max(&self, s: &Session<'_>) -> Option<usize> {
        Some(s.policy.consolidation_moves_max)
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        Cause::Consolidated { beneficiary: s.reference(id), lost: s.lost(victim) }
    }
}
