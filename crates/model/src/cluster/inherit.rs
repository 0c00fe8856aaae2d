//! A place that passes from a pod that leaves it to the one that takes over. Owns: who may have it.

use units::Resources;

use crate::{Cluster, GpuRequest, Placement, PodId};

impl Cluster {
    /// Where `heir` would be if it took over the place that `from` has now: on the same node and GPUs,
    /// or on the first of them if it asks for fewer. None if it asks for more, for another kind of
    /// share, or may not be there, and if it could not be made to give way as `from` can. Both are of
    /// one queue.
    #[must_use]
    pub fn inheritable(&self, heir: PodId, from: PodId) -> Option<Placement> {
        let place = self.pods[from].binding.current.as_ref()?;
        let (set, before) = (self.set_of(heir), self.set_of(from));
        let own = |pod: PodId| &self.workload_of(pod).spec;
        let asks = |pod: PodId| own(pod).pod_sets[self.pods[pod].set as usize].request.gpu;
        let gives_way = own(heir).preemptible || !own(from).preemptible;
        let mut place = place.clone();
        match (asks(heir), asks(from)) {
            (asked, had) if asked == had => {}
            (GpuRequest::Whole(fewer), GpuRequest::Whole(_)) => {
                place.devices.truncate(usize::try_from(fewer).ok()?);
            }
            _ => return None,
        }
        let is_waiting = self.pods[heir].waits();
        let host = |of: Resources| Resources { gpu_millis: 0, ..of };
        let asks_no_more = host(set.demand).fits_in(host(before.demand))
            && place.devices.len() == asks(heir).devices() as usize;
        let may = is_waiting && gives_way && asks_no_more;
        (may && self.allows(set.constraints, place.node)).then_some(place)
    }
}
