//! The places of a reservation. Owns: the room reserved on each node, and the check whether a
//! placement leaves it. Does not know about: the search for the places; that is [`places`].

mod places;

use std::collections::BTreeMap;

use model::{Cluster, KeptRoom, NodeId, Placement, PodId, WorkloadId};
use units::{Instant, Resources};

use crate::session::Session;
use places::{Place, SOME_DAY};

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
    pub(super) fn claims(&mut self, id: WorkloadId, gpus: Option<u32>) -> Option<Claims> {
        let (places, gone) = self.first_places(id, gpus)?;
        // All of it is free, so another obstacle exists.
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

    /// Adds the requirements of one pod on a node.
    fn claim(&self, kept: &mut KeptRoom, node: NodeId, pod: PodId, gpus: Option<u32>) {
        let request = self.requirements(pod, gpus).request.gpu;
        kept.add(&self.cluster.nodes()[node], request, self.asked(&[pod], gpus));
    }
}
