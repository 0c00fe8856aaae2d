//! Nodes and their GPUs. Owns: what is used now, and what will be used once everything that is
//! being released is gone and everything reserved has moved in.

use std::collections::BTreeSet;

use units::{GPU_MILLIS, Resources};

use crate::{DeviceShare, PodId};

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
        let soon = GPU_MILLIS - self.committed_millis;
        if now { soon.min(GPU_MILLIS - self.used_millis) } else { soon }
    }
}

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
}

impl Node {
    pub(crate) fn new(spec: NodeSpec) -> Self {
        let gpu = |memory_bytes| Gpu { memory_bytes, used_millis: 0, committed_millis: 0 };
        let gpus: Vec<_> = spec.gpu_memory_bytes.into_iter().map(gpu).collect();
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
        }
    }

    /// What can be given out: at once (`now`), or when what is being released is gone. The GPU
    /// figure is a sum over devices; a request must also fit on single ones.
    #[must_use]
    pub fn free(&self, now: bool) -> Resources {
        let soon = self.capacity - self.committed;
        if now { soon.min(self.capacity.saturating_sub(self.used)) } else { soon }
    }

    /// Number of devices that are wholly free.
    #[must_use]
    pub fn whole_free(&self, now: bool) -> usize {
        self.gpus.iter().filter(|gpu| gpu.free_millis(now) == GPU_MILLIS).count()
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
