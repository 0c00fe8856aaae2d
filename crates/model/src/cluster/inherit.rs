//! The place of a leaving pod that another pod takes over. Owns: the conditions.

use units::Resources;

use crate::{Cluster, GpuRequest, Placement, PodId};

impl Cluster {
    /// Place of `heir` if it took over the present place of `from`: the same node and GPUs, or the
    /// first of them if it requests fewer. `None` if it requests more or another kind of share, if
    /// its constraints exclude the node, or if it is not preemptible although `from` is. Both are
    /// in one queue.
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
