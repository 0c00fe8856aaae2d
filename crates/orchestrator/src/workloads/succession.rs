//! Places that a revision of an inference passes on to its successor, and back when that is given
//! up. Owns: the choice of the place of each replica. Does not know about: when a replica stops
//! (`serving`), and the conditions of taking over a place (`model`).

use model::{Placement, PodBinding, PodId};
use uuid::Uuid;

use crate::state::State;
use crate::workloads::Pod;

/// A place that a replica leaves, with the waiting replica that takes it over.
struct Inheritance {
    heir: PodId,
    /// Number of the heir in its revision.
    number: usize,
    place: Placement,
}

impl State {
    /// The newest of the other live revisions of its inference.
    pub(super) fn newest_beside(&self, id: Uuid) -> Option<Uuid> {
        let head = self.workloads.get(&self.workloads.get(&id)?.spec.revision?.of)?;
        let mut live = self.workloads.revisions_of(head).rev().filter(|w| w.is_live_revision());
        live.next().map(|newest| newest.id).filter(|&newest| newest != id)
    }

    /// Stops replicas of a revision. Their places are reserved for waiting replicas of another
    /// revision that request no more: the successor inherits the capacity of a revision.
    pub(super) fn pass_on(&mut self, id: Uuid, to: Option<Uuid>, are: impl Fn(&Pod) -> bool) {
        let Some(to) = to else { return self.release_those(id, are) };
        let inherited = self.inheritances(id, to, &are);
        self.release_those(id, are);
        for Inheritance { heir, number, place } in inherited {
            let next = Some(place.clone());
            self.cluster.set_binding(heir, PodBinding { next, ..PodBinding::default() });
            self.reserved(to, number, &place);
        }
    }

    fn inheritances(&self, id: Uuid, to: Uuid, are: impl Fn(&Pod) -> bool) -> Vec<Inheritance> {
        let pods = |id: Uuid| self.workloads.get(&id).into_iter().flat_map(|w| w.pods.iter());
        let waiting = pods(to).filter_map(|pod| Some((pod.model?, pod.number())));
        let mut waiting: Vec<_> = waiting.collect();
        let leaving = pods(id).filter(|pod| are(pod) && !self.binding(pod).releasing);
        let inherited = leaving.filter_map(|pod| pod.model).filter_map(|from| {
            let place = |(heir, _): &(PodId, usize)| self.cluster.inheritable(*heir, from);
            let mut places = waiting.iter().map(place).enumerate();
            let (at, place) = places.find_map(|(at, place)| Some((at, place?)))?;
            let (heir, number) = waiting.remove(at);
            Some(Inheritance { heir, number, place })
        });
        inherited.collect()
    }

    /// Returns the places of a revision that is given up to the revision before it, which scales up
    /// to the same number of replicas.
    pub(super) fn give_back(&mut self, id: Uuid) {
        let before = self.newest_beside(id);
        if let Some(before) = before {
            let missing =
                |stay: usize| (self.workloads[&id].wanted() as usize).saturating_sub(stay);
            let pods = self.workloads[&before].pods.iter();
            let (left, stay): (Vec<_>, Vec<_>) = pods.partition(|pod| pod.left);
            let again = left.into_iter().take(missing(stay.len()));
            let wanted = stay.into_iter().chain(again).map(|pod| pod.index).collect();
            self.set_wanted(before, &wanted, "the newer revision was given up");
        }
        self.pass_on(id, before, |_| true);
    }
}
