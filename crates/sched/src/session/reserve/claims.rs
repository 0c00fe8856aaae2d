//! The places of a reservation. Owns: what is kept on each node, and whether a placement leaves it.
//! Does not know how the places are found; that is [`places`].

mod places;

use std::collections::BTreeMap;

use model::{Cluster, KeptRoom, NodeId, Placement, PodId, WorkloadId};
use units::{Instant, Resources};

use crate::session::Session;
use places::{Place, SOME_DAY};

/// What a reservation covers.
#[derive(Debug, Default)]
pub(super) struct Claims {
    nodes: BTreeMap<NodeId, KeptRoom>,
    /// When all of it is free, as far as that is known.
    starts_at: Option<Instant>,
}

impl Claims {
    pub(super) const fn starts_at(&self) -> Option<Instant> {
        self.starts_at
    }

    pub(super) fn cover(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// True if what is kept on its node is still there when this place is taken; what is not yet
    /// free does not become less so.
    pub(super) fn leave_room(&self, cluster: &Cluster, to: &Placement, taken: Resources) -> bool {
        let kept = self.nodes.get(&to.node);
        kept.is_none_or(|kept| kept.is_left_by(&cluster.nodes()[to.node], to, taken))
    }
}

impl Session<'_> {
    /// The places a workload can have first; none if it cannot be expected that it gets them, or if
    /// they are not what it waits for. `gpus`: the size of an elastic one.
    pub(super) fn claims(&mut self, id: WorkloadId, gpus: Option<u32>) -> Option<Claims> {
        let (places, gone) = self.first_places(id, gpus)?;
        // If all of it is free, something else is in its way.
        if gone.is_empty() {
            return None;
        }
        let last = places.iter().map(|place| place.at).max()?;
        let starts_at = (last != SOME_DAY).then(|| last.max(self.now));
        let mut claims = Claims { starts_at, ..Claims::default() };
        for Place { pod, node, .. } in places {
            self.claim(claims.nodes.entry(node).or_default(), node, pod, gpus);
        }
        Some(claims)
    }

    /// Adds what one pod needs on a node.
    fn claim(&self, kept: &mut KeptRoom, node: NodeId, pod: PodId, gpus: Option<u32>) {
        let request = self.requirements(pod, gpus).request.gpu;
        kept.add(&self.cluster.nodes()[node], request, self.asked(&[pod], gpus));
    }
}
