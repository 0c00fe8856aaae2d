//! Moves running pods so that free resources come together. Owns: the rule that nobody loses
//! its place. Source: Run:ai reference D.5, scheduling reference §17.

use model::WorkloadId;
use units::Resources;

use crate::Cause;
use crate::session::Session;
use crate::victims::{Rule, Taking, preemptible};

pub(crate) struct Consolidation;

impl Rule for Consolidation {
    fn victims(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> Vec<WorkloadId> {
        let free: Resources = s.cluster.nodes().iter().map(|(_, node)| node.free(false)).sum();
        if asked.fits_in(free) { preemptible(s, id) } else { Vec::new() }
    }

    fn takings(&self, _: &Session<'_>, victim: WorkloadId) -> Vec<Taking> {
        vec![Taking::All(victim)]
    }

    fn moves_max(&self, s: &Session<'_>) -> Option<usize> {
        Some(s.policy.consolidation_moves_max)
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: WorkloadId) -> Cause {
        Cause::Consolidated { beneficiary: s.reference(id) }
    }
}
