//! The places of a reservation. Owns: the room reserved on each node, and the check whether a
//! placement leaves it. Does not know about: the search for the places; that is [`places`].

mod places;

use std::collections::BTreeMap;

use model::{Cluster, KeptRoom, NodeId, Placement, PodId, WorkloadId};
use units::{Instant, Resources};

use crate::session::Session;
use places::{Found, Place, SOME_DAY};

/// The room that a reservation covers.
#[derive(Debug, Default)]
pub(super) struct Claims {
    nodes: BTreeMap<NodeId, KeptRoom>,
    /// Time when all of it is free; `None` if that is not known.
    starts_at: Option<Instant>,
}

impl Claims {
    pub(super) const fn starts_at(&self) -> Option<Instant> {
        self.starts_at
    }

    pub(super) fn cover(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// `true` if this place leaves the reserved room of its node; room that is not free yet does
    /// not count as taken.
    pub(super) fn leave_room(&self, cluster: &Cluster, to: &Placement, taken: Resources) -> bool {
        let kept = self.nodes.get(&to.node);
        kept.is_none_or(|kept| kept.is_left_by(&cluster.nodes()[to.node], to, taken))
    }
}

impl Session<'_> {
    /// The places that a workload can have first; `None` if it cannot be expected to get them, or
    /// if all are free, so that it waits for something else. `gpus`: the size of an elastic one.
    ///
    /// If the time when they are free is known, those that become free last, which keeps the fewest
    /// GPUs idle. Otherwise such places come second, if there are any.
    pub(super) fn claims(
        &mut self,
        id: WorkloadId,
        gpus: Option<u32>,
    ) -> Option<(Claims, Option<Claims>)> {
        let (first, last) = self.first_places(id, gpus)?;
        // All of it is free, so another obstacle exists.
        if first.1.is_empty() {
            return None;
        }
        let claims = self.covered(&first, gpus);
        let last = last.map(|last| self.covered(&last, gpus));
        Some(match (claims.starts_at, last) {
            (Some(_), Some(last)) => (Claims { starts_at: claims.starts_at, ..last }, None),
            (_, last) => (claims, last),
        })
    }

    /// The room that these places cover.
    fn covered(&self, (places, gone): &Found, gpus: Option<u32>) -> Claims {
        let last = places.iter().map(|place| place.at).max().unwrap_or_default();
        let starts_at = (last != SOME_DAY).then(|| last.max(self.now));
        let mut nodes: BTreeMap<NodeId, KeptRoom> = BTreeMap::new();
        for &Place { pod, node, .. } in places {
            let request = self.requirements(pod, gpus).request.gpu;
            let kept = nodes.entry(node).or_default();
            kept.add(&self.cluster.nodes()[node], request, self.asked(&[pod], gpus));
        }
        // An elastic pod also holds GPUs that it gives back at once.
        let is_elastic = |pod: PodId| self.cluster.workload_of(pod).spec.elastic;
        for &pod in gone.iter().filter(|pod| !is_elastic(**pod)) {
            let Some(place) = self.cluster.pods()[pod].binding.effective() else { continue };
            if let Some(kept) = nodes.get_mut(&place.node) {
                let amounts = self.cluster.amounts(pod, place);
                kept.release(&self.cluster.nodes()[place.node], place, amounts);
            }
        }
        Claims { nodes, starts_at }
    }
}
