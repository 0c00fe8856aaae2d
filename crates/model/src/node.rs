//! Nodes and their GPUs. Owns: what is used now, and what will be used once everything that is
//! being released is gone and everything reserved has moved in.

use std::collections::{BTreeMap, BTreeSet};

use units::{GPU_MILLIS, Resources};

use crate::{DeviceShare, Effect, PodId, Taint};

/// A machine to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Name, unique.
    pub name: String,
    /// Memory of each GPU in bytes; as many entries as GPUs.
    pub gpu_memory_bytes: Vec<u64>,
    /// Allocatable thousandths of cores.
    pub cpu_millis: u64,
    /// Allocatable bytes of main memory.
    pub memory_bytes: u64,
    /// Most pods at a time.
    pub pods_max: u32,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
}

impl NodeSpec {
    /// A node without labels, taints and a limit on pods.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        gpu_memory_bytes: Vec<u64>,
        cpu_millis: u64,
        memory_bytes: u64,
    ) -> Self {
        Self {
            name: name.into(),
            gpu_memory_bytes,
            cpu_millis,
            memory_bytes,
            pods_max: u32::MAX,
            labels: BTreeMap::new(),
            taints: Vec::new(),
        }
    }
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Thousandths physically in use, by pods that are being stopped too.
    pub used_millis: u64,
    /// Thousandths spoken for: in use by pods that stay, or reserved.
    pub committed_millis: u64,
}

impl Gpu {
    /// Thousandths that can be given out: at once (`now`), or when what is being released is gone.
    #[must_use]
    pub fn free_millis(&self, now: bool) -> u64 {
        // While a rollback is half done a device can be over-committed for a moment.
        let soon = GPU_MILLIS.saturating_sub(self.committed_millis);
        if now { soon.min(GPU_MILLIS.saturating_sub(self.used_millis)) } else { soon }
    }
}

/// What a machine is made of: thousandths of cores, bytes of main memory, bytes of each GPU.
pub(crate) type Hardware = (u64, u64, Vec<u64>);

/// A machine and its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// GPUs in their order on the machine.
    pub gpus: Vec<Gpu>,
    /// Everything it has.
    pub capacity: Resources,
    /// Physically in use.
    pub used: Resources,
    /// Spoken for.
    pub committed: Resources,
    /// Pods that are here, or will be.
    pub pods: BTreeSet<PodId>,
    /// Most pods at a time.
    pub pods_max: u32,
    /// Pods physically here, and pods that will be when everything under way is done.
    pub pods_used: u32,
    /// See `pods_used`.
    pub pods_committed: u32,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Whether new pods may come: false when cordoned or lost.
    pub schedulable: bool,
    /// Devices that are wholly free at once, and when what is being released is gone.
    pub(crate) whole_free_now: u32,
    pub(crate) whole_free_soon: u32,
}

impl Node {
    pub(crate) fn new(spec: NodeSpec) -> Self {
        let gpu = |memory_bytes| Gpu { memory_bytes, used_millis: 0, committed_millis: 0 };
        let gpus: Vec<_> = spec.gpu_memory_bytes.into_iter().map(gpu).collect();
        let count = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
        let capacity = Resources {
            gpu_millis: gpus.len() as u64 * GPU_MILLIS,
            cpu_millis: spec.cpu_millis,
            memory_bytes: spec.memory_bytes,
        };
        Self {
            name: spec.name,
            gpus,
            capacity,
            used: Resources::ZERO,
            committed: Resources::ZERO,
            pods: BTreeSet::new(),
            pods_max: spec.pods_max,
            pods_used: 0,
            pods_committed: 0,
            labels: spec.labels,
            taints: spec.taints,
            schedulable: true,
            whole_free_now: count,
            whole_free_soon: count,
        }
    }

    /// What can be given out: at once (`now`), or when what is being released is gone. The GPU
    /// figure is a sum over devices; a request must also fit on single ones.
    #[must_use]
    pub fn free(&self, now: bool) -> Resources {
        // What already runs may be more than the machine has, if it shrank.
        let soon = self.capacity.saturating_sub(self.committed);
        if now { soon.min(self.capacity.saturating_sub(self.used)) } else { soon }
    }

    /// Whether one more pod may come, as far as their number is limited.
    #[must_use]
    pub fn takes_one_more(&self, now: bool) -> bool {
        self.pods_committed < self.pods_max && !(now && self.pods_used >= self.pods_max)
    }

    /// What it is made of; none without GPUs.
    pub(crate) fn hardware(&self) -> Option<Hardware> {
        let memories: Vec<_> = self.gpus.iter().map(|gpu| gpu.memory_bytes).collect();
        let Resources { cpu_millis, memory_bytes, .. } = self.capacity;
        (!memories.is_empty()).then_some((cpu_millis, memory_bytes, memories))
    }

    pub(crate) fn has_soft_taint(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect == Effect::PreferNoSchedule)
    }

    /// Number of devices that are wholly free.
    #[must_use]
    pub const fn whole_free(&self, now: bool) -> u32 {
        if now { self.whole_free_now } else { self.whole_free_soon }
    }

    /// Changes a device's accounts, and with them the counts of free devices.
    pub(crate) fn change_gpu(&mut self, at: usize, change: impl FnOnce(&mut Gpu)) {
        let gpu = &mut self.gpus[at];
        let whole = |gpu: &Gpu, now| u32::from(gpu.free_millis(now) == GPU_MILLIS);
        self.whole_free_now -= whole(gpu, true);
        self.whole_free_soon -= whole(gpu, false);
        change(gpu);
        self.whole_free_now += whole(gpu, true);
        self.whole_free_soon += whole(gpu, false);
    }

    /// Largest free share of one device, in thousandths.
    #[must_use]
    pub fn largest_free_millis(&self, now: bool) -> u64 {
        self.gpus.iter().map(|gpu| gpu.free_millis(now)).max().unwrap_or(0)
    }

    /// Whether these devices and amounts are physically free this moment, reservations aside.
    #[must_use]
    pub fn has_room_now(&self, devices: &[DeviceShare], other: Resources) -> bool {
        let host = Resources { gpu_millis: 0, ..other };
        (self.used + host).fits_in(self.capacity)
            && devices
                .iter()
                .all(|share| self.gpus[share.index()].used_millis + share.millis <= GPU_MILLIS)
    }
}
