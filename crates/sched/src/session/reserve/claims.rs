//! The places of a reservation. Owns: finding those that become free first. Changes nothing.

use std::collections::BTreeMap;

use model::{Cluster, Gpu, GpuRequest, MigProfile, Node, NodeId, Placement, PodId, WorkloadId};
use units::{Instant, Kind, Resources};

use crate::entitlement::branches;
use crate::place::PodRequirements;
use crate::precedence::is_all_below;
use crate::session::Session;

/// When work of unknown run time ends: after all that is known.
const SOME_DAY: Instant = Instant(u64::MAX);

/// What a reservation covers.
#[derive(Debug, Default)]
pub(super) struct Claims {
    nodes: BTreeMap<NodeId, Claim>,
    /// When all of it is free, as far as that is known.
    starts_at: Option<Instant>,
}

/// What is kept on a node.
#[derive(Debug, Clone, Default)]
struct Claim {
    amounts: Resources,
    /// Devices that are to be wholly free.
    whole_gpus: u32,
    /// MIG instances that are to be free.
    instances: BTreeMap<MigProfile, u32>,
    /// What asks for a part of a GPU, where such parts are MIG instances: those that hold it are to be
    /// free.
    parts: Vec<GpuRequest>,
}

impl Claims {
    pub(super) const fn starts_at(&self) -> Option<Instant> {
        self.starts_at
    }

    pub(super) fn cover(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Whether what is kept on its node is still there when this place is taken; what is not yet
    /// free does not become less so.
    pub(super) fn leave_room(&self, cluster: &Cluster, to: &Placement, taken: Resources) -> bool {
        let Some(claim) = self.nodes.get(&to.node) else { return true };
        let node = &cluster.nodes()[to.node];
        // MIG instances are a matter of their own.
        let shared = |gpu: &&Gpu| !gpu.is_instance();
        let gpus = node.gpus.iter().filter(shared);
        let free_millis = gpus.map(|gpu| gpu.free_millis(false)).sum();
        let free = Resources { gpu_millis: free_millis, ..node.free(false) };
        let shares = to.devices.iter().filter(|share| shared(&&node.gpus[share.gpu as usize]));
        let gpu_millis: u64 = shares.map(|share| share.millis).sum();
        let taken = Resources { gpu_millis, ..taken };
        let left = |kind| {
            let both = claim.amounts[kind].saturating_add(taken[kind]);
            claim.amounts[kind] == 0 || taken[kind] == 0 || free[kind] >= both
        };
        let whole = |gpu: u32| node.gpus[gpu as usize].is_whole(false);
        let broken = to.devices.iter().filter(|share| whole(share.gpu)).count();
        let broken = u32::try_from(broken).unwrap_or(u32::MAX);
        let whole_left =
            gpu_millis == 0 || node.whole_free(false) >= claim.whole_gpus.saturating_add(broken);
        whole_left
            && claim.leaves_instances(node, to)
            && claim.leaves_parts(node, to)
            && Kind::ALL.into_iter().all(left)
    }
}

impl Claim {
    /// Whether the instances it is about are still there when a place is taken. One that is not
    /// free now is missing either way.
    fn leaves_instances(&self, node: &Node, to: &Placement) -> bool {
        self.instances.iter().all(|(&kept, &count)| {
            let free = node.gpus.iter().filter(|gpu| gpu.profile() == Some(kept));
            let free = free.filter(|gpu| gpu.free_millis(false) > 0).count();
            let taken = to.devices.iter().map(|share| &node.gpus[share.gpu as usize]);
            let taken = taken.filter(|gpu| gpu.profile() == Some(kept)).count();
            taken == 0 || free >= taken + count as usize
        })
    }

    /// The same of those for parts of a GPU, each of which the smallest one holds.
    fn leaves_parts(&self, node: &Node, to: &Placement) -> bool {
        let held = |but: &Placement| {
            let free = (0_u32..).zip(&node.gpus).filter(|&(at, gpu)| {
                gpu.part.is_some() && gpu.free_millis(false) > 0 && !but.uses(at)
            });
            let mut free: Vec<&Gpu> = free.map(|(_, gpu)| gpu).collect();
            free.sort_by_key(|gpu| gpu.capacity_millis());
            let mut holds = |request: &&GpuRequest| {
                let at = free.iter().position(|gpu| request.needs_of(gpu).is_some());
                at.map(|at| free.remove(at)).is_some()
            };
            self.parts.iter().filter(|request| holds(request)).count()
        };
        let none = Placement { node: to.node, devices: Default::default() };
        self.parts.is_empty() || held(to) == held(&none)
    }
}

/// Room for one more pod, and what it takes to get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    /// When it is free.
    at: Instant,
    /// What has to end on its node before, in GPU thousandths.
    drained_millis: u64,
    /// The same in pods.
    drained: u32,
    node: NodeId,
}

/// A node as it will be.
struct Room {
    free_millis: Vec<u64>,
    host: Resources,
    pods: u32,
}

impl Room {
    /// How many pods with this request fit.
    fn fits(&self, cluster: &Cluster, node: NodeId, ask: PodRequirements) -> u64 {
        let gpus = &cluster.nodes()[node].gpus;
        let request = ask.request;
        let by_part = |part: GpuRequest| {
            let parts = gpus.iter().zip(&self.free_millis).map(|(gpu, free)| {
                part.needs_of(gpu).map_or(0, |each| free / gpu.taken_by(each).max(1))
            });
            match u64::from(part.devices()) {
                0 => u64::MAX,
                devices => parts.sum::<u64>() / devices,
            }
        };
        let by_gpu = request.gpu.parts().map(by_part).min().unwrap_or(u64::MAX);
        let by = |free: u64, each: u64| free.checked_div(each).unwrap_or(u64::MAX);
        by_gpu
            .min(by(self.host.cpu_millis, request.cpu_millis))
            .min(by(self.host.memory_bytes, request.memory_bytes))
            .min(self.pods.into())
    }
}

impl Session<'_> {
    /// The places a workload can have first; none if it cannot be expected that it gets them, or if
    /// they are not what it waits for.
    pub(super) fn claims(&self, id: WorkloadId) -> Option<Claims> {
        let pods = self.next_pods(id);
        let asked = self.asked(&pods, None);
        let mut claims = Claims::default();
        let mut slots_used = Vec::with_capacity(pods.len());
        for pods in pods.chunk_by(|&l, &r| self.same_ask(l, r)) {
            let slots = self.slots(id, pods, asked, &claims)?;
            for slot in &slots {
                let claim = claims.nodes.entry(slot.node).or_default();
                let demand = self.cluster.set_of(pods[0]).demand;
                let request = self.requirements(pods[0], None).request.gpu;
                let gpus = &self.cluster.nodes()[slot.node].gpus;
                match request {
                    GpuRequest::Whole(1) | GpuRequest::Share { .. } | GpuRequest::Memory { .. }
                        if gpus.iter().any(|gpu| gpu.part.is_some()) =>
                    {
                        claim.amounts += Resources { gpu_millis: 0, ..demand };
                        claim.parts.push(request);
                    }
                    GpuRequest::Whole(gpus) => {
                        claim.whole_gpus += gpus;
                        claim.amounts += demand;
                    }
                    GpuRequest::Share { .. } | GpuRequest::Memory { .. } => claim.amounts += demand,
                    GpuRequest::Mig(wanted) => {
                        claim.amounts += Resources { gpu_millis: 0, ..demand };
                        for (profile, count) in wanted.iter() {
                            *claim.instances.entry(profile).or_default() += u32::from(count);
                        }
                    }
                }
            }
            slots_used.extend(slots);
        }
        // If all of it is free, something else is in its way.
        slots_used.iter().any(|slot| slot.drained > 0).then_some(())?;
        let last = slots_used.iter().map(|slot| slot.at).max()?;
        claims.starts_at = (last != SOME_DAY).then(|| last.max(self.now));
        Some(claims)
    }

    fn same_ask(&self, left: PodId, right: PodId) -> bool {
        self.requirements(left, None) == self.requirements(right, None)
    }

    /// The first places for pods that ask for the same, on unclaimed nodes.
    fn slots(
        &self,
        id: WorkloadId,
        pods: &[PodId],
        asked: Resources,
        own: &Claims,
    ) -> Option<Vec<Slot>> {
        let ask = self.requirements(pods[0], None);
        let taken = |node| {
            own.cover(node) || self.reservations.kept.iter().any(|kept| kept.claims.cover(node))
        };
        let is_open = |&node: &NodeId| {
            self.cluster.allows(ask.constraints, node)
                && !taken(node)
                && self.cluster.check_pods(ask.constraints, node, false).is_ok()
        };
        let mut slots = Vec::new();
        for node in self.cluster.nodes().ids().filter(is_open) {
            self.slots_on(node, id, ask, asked, pods.len(), &mut slots);
        }
        if slots.len() < pods.len() {
            return None;
        }
        slots.sort_unstable();
        slots.truncate(pods.len());
        Some(slots)
    }

    /// The places of one node, in the order in which they become free.
    fn slots_on(
        &self,
        id: NodeId,
        holder: WorkloadId,
        ask: PodRequirements,
        asked: Resources,
        most: usize,
        slots: &mut Vec<Slot>,
    ) {
        let node = &self.cluster.nodes()[id];
        let mut room = Room {
            free_millis: node.gpus.iter().map(|gpu| gpu.free_millis(false)).collect(),
            host: node.free(false),
            pods: node.pods_max.saturating_sub(node.pods_committed),
        };
        let here = |pod: &PodId| {
            let place = self.cluster.pods()[*pod].binding.effective()?;
            (place.node == id).then_some((*pod, place))
        };
        let pods = node.pods.iter().filter_map(here);
        let mut ends: Vec<_> = pods
            .filter_map(|(pod, place)| Some((self.ends(pod, holder, asked)?, pod, place)))
            .collect();
        ends.sort_by_key(|&(at, pod, _)| (at, pod));
        let (mut found, mut at) = (0, Instant::default());
        let (mut drained_millis, mut drained) = (0, 0);
        let mut ends = ends.into_iter();
        loop {
            let fits = room.fits(self.cluster, id, ask).min(most as u64);
            while found < fits {
                slots.push(Slot { at, drained_millis, drained, node: id });
                found += 1;
            }
            let Some((end, pod, place)) = ends.next().filter(|_| found < most as u64) else {
                return;
            };
            for share in &place.devices {
                let at = share.gpu as usize;
                room.free_millis[at] += node.gpus[at].taken_by(share.millis);
            }
            let amounts = self.cluster.amounts(pod, place);
            room.host += amounts;
            room.pods = room.pods.saturating_add(1);
            at = end;
            // What gives way at once costs nothing to wait for.
            if end > Instant::default() {
                drained_millis += amounts.gpu_millis;
            }
            drained += 1;
        }
    }

    /// Of a workload in the queue of the holder of which only pods above the minimum are less important:
    /// whether this is one of them.
    fn may_be_taken(&self, pod: PodId, holder: WorkloadId) -> bool {
        let cluster = &self.cluster;
        let (id, set) = (cluster.pods()[pod].workload, cluster.pods()[pod].set as usize);
        let workload = &cluster.workloads()[id];
        let has_place = |pod: &PodId| cluster.pods()[*pod].binding.effective().is_some();
        let before = workload.pods_of(set).iter().take_while(|other| **other != pod);
        branches(self, id, holder).is_some()
            || is_all_below(self, holder, id)
            || before.copied().filter(has_place).count()
                >= workload.spec.pod_sets[set].pods_min as usize
    }

    /// When a pod will have made room for the holder; none if that cannot be expected.
    fn ends(&self, pod: PodId, holder: WorkloadId, asked: Resources) -> Option<Instant> {
        let id = self.cluster.pods()[pod].workload;
        let workload = &self.cluster.workloads()[id];
        if self.gives_way_now(id, holder, asked) && self.may_be_taken(pod, holder) {
            return Some(Instant::default());
        }
        if let Some(limit_ms) = workload.spec.time_limit_ms {
            let start = workload.last_start.unwrap_or(self.now);
            return Some(start.plus_ms(limit_ms).max(self.now));
        }
        // What cannot be stopped, or is more important, may stay for ever.
        let above = branches(self, id, holder).is_none()
            && workload.spec.priority > self.cluster.workloads()[holder].spec.priority;
        (workload.spec.preemptible && !above).then_some(SOME_DAY)
    }
}
