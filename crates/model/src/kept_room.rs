//! Reserved capacity of a node. Owns: adding the needs of a pod, and the check that a placement
//! leaves the capacity free. Does not know about: the workload that it is reserved for, and why.

use std::collections::BTreeMap;

use units::{GPU_MILLIS, Kind, Resources};

use crate::{Gpu, GpuRequest, MigProfile, Node, Placement};

/// Reserved capacity of a node.
#[derive(Debug, Clone, Default)]
pub struct KeptRoom {
    amounts: Resources,
    /// Number of devices that must be wholly free.
    whole_gpus: u32,
    /// Number of MIG instances that must be free, by profile.
    instances: BTreeMap<MigProfile, u32>,
    /// Requests for a part of a GPU, where such parts are MIG instances that must be free.
    parts: Vec<GpuRequest>,
    /// Resources, and whole devices of these, that are released before the reservation begins.
    released: Resources,
    released_gpus: u32,
}

impl KeptRoom {
    /// Adds the needs of one pod; `demand` is all of it as amounts.
    pub fn add(&mut self, node: &Node, request: GpuRequest, demand: Resources) {
        match request {
            GpuRequest::Whole(1) | GpuRequest::Share { .. } | GpuRequest::Memory { .. }
                if node.gpus.iter().any(|gpu| gpu.part.is_some()) =>
            {
                self.amounts += Resources { gpu_millis: 0, ..demand };
                self.parts.push(request);
            }
            GpuRequest::Whole(gpus) => {
                self.whole_gpus += gpus;
                self.amounts += demand;
            }
            GpuRequest::Share { .. } | GpuRequest::Memory { .. } => self.amounts += demand,
            GpuRequest::Mig(wanted) => {
                self.amounts += Resources { gpu_millis: 0, ..demand };
                for (profile, count) in wanted.iter() {
                    *self.instances.entry(profile).or_default() += u32::from(count);
                }
            }
        }
    }

    /// Adds a placement that is released before the reservation begins: as much of the room need not
    /// be kept until then.
    pub fn release(&mut self, node: &Node, from: &Placement, amounts: Resources) {
        for share in &from.devices {
            let gpu = &node.gpus[share.gpu as usize];
            if gpu.is_instance() || !gpu.in_service {
                continue;
            }
            self.released.gpu_millis += share.millis;
            self.released_gpus += u32::from(share.millis == GPU_MILLIS);
        }
        self.released += Resources { gpu_millis: 0, ..amounts };
    }

    /// True if the reserved capacity remains when a placement takes `taken` on the node; capacity
    /// that is not yet free is not counted as lost.
    #[must_use]
    pub fn is_left_by(&self, node: &Node, to: &Placement, taken: Resources) -> bool {
        // MIG instances are checked separately.
        let shared = |gpu: &&Gpu| !gpu.is_instance();
        let gpus = node.gpus.iter().filter(shared);
        let free_millis = gpus.map(|gpu| gpu.free_millis(false)).sum();
        let free = Resources { gpu_millis: free_millis, ..node.free(false) };
        let shares = to.devices.iter().filter(|share| shared(&&node.gpus[share.gpu as usize]));
        let gpu_millis: u64 = shares.map(|share| share.millis).sum();
        let taken = Resources { gpu_millis, ..taken };
        let left = |kind| {
            let both = self.amounts[kind].saturating_add(taken[kind]);
            let free = free[kind].saturating_add(self.released[kind]);
            self.amounts[kind] == 0 || taken[kind] == 0 || free >= both
        };
        let whole = |gpu: u32| node.gpus[gpu as usize].is_whole(false);
        let broken = to.devices.iter().filter(|share| whole(share.gpu)).count();
        let broken = u32::try_from(broken).unwrap_or(u32::MAX);
        let whole_free = node.whole_free(false).saturating_add(self.released_gpus);
        let whole_left = gpu_millis == 0 || whole_free >= self.whole_gpus.saturating_add(broken);
        whole_left
            && self.leaves_instances(node, to)
            && self.leaves_parts(node, to)
            && Kind::ALL.into_iter().all(left)
    }

    /// True if the reserved instances remain after a placement. An instance that is not free now is
    /// missing either way.
    fn leaves_instances(&self, node: &Node, to: &Placement) -> bool {
        self.instances.iter().all(|(&kept, &count)| {
            let free = node.gpus.iter().filter(|gpu| gpu.profile() == Some(kept));
            let free = free.filter(|gpu| gpu.free_millis(false) > 0).count();
            let taken = to.devices.iter().map(|share| &node.gpus[share.gpu as usize]);
            let taken = taken.filter(|gpu| gpu.profile() == Some(kept)).count();
            taken == 0 || free >= taken + count as usize
        })
    }

    /// True if as many requests for parts of GPUs find an instance as before; each takes the
    /// smallest that fits.
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
