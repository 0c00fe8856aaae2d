//! Nodes and their GPUs. Owns: the resources used now, and those committed after all pending
//! releases and reserved starts.

use std::collections::{BTreeMap, BTreeSet};

use units::{GPU_MILLIS, Resources};

use crate::{DeviceShare, Effect, GpuPart, MigInstance, MigProfile, PodId, PoolId, Taint, is_host};

/// Specification of a node to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Name, unique.
    pub name: String,
    /// Memory of each GPU in bytes; one entry for each GPU.
    pub gpu_memory_bytes: Vec<u64>,
    /// MIG instances of each GPU by profile; a GPU beyond the list, or with none, is whole.
    pub mig: Vec<Vec<MigProfile>>,
    /// Memory in bytes of the MIG instances of each GPU that are assigned to requests for parts of
    /// it; a GPU beyond the list, or with none, is not divided this way.
    pub parts: Vec<Vec<u64>>,
    /// Allocatable thousandths of cores.
    pub cpu_millis: u64,
    /// Allocatable bytes of main memory.
    pub memory_bytes: u64,
    /// Maximum number of pods at a time.
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
            mig: Vec::new(),
            parts: Vec::new(),
            cpu_millis,
            memory_bytes,
            pods_max: u32::MAX,
            labels: BTreeMap::new(),
            taints: Vec::new(),
        }
    }
}

/// One GPU, or one MIG instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The MIG instance, if it is one: assigned whole, and only to pods that request its profile.
    pub mig: Option<MigInstance>,
    /// The part of a GPU, if it is a MIG instance that is assigned, whole, to pods that request a
    /// part of a GPU.
    pub part: Option<GpuPart>,
    /// Thousandths physically in use, those of pods being stopped included.
    pub used_millis: u64,
    /// Thousandths committed: in use by pods that stay, or reserved.
    pub committed_millis: u64,
    /// True if pods may be placed on it; false while it is broken, or used by foreign processes.
    /// Pods on it may stay.
    pub in_service: bool,
}

impl Gpu {
    const fn new(memory_bytes: u64, mig: Option<MigInstance>) -> Self {
        let (used_millis, committed_millis) = (0, 0);
        Self { memory_bytes, mig, part: None, used_millis, committed_millis, in_service: true }
    }

    const fn of_part(memory_bytes: u64, part: GpuPart) -> Self {
        Self { part: Some(part), ..Self::new(memory_bytes, None) }
    }

    /// True if it is a MIG instance of either kind.
    #[must_use]
    #[inline]
    pub const fn is_instance(&self) -> bool {
        self.mig.is_some() || self.part.is_some()
    }

    /// Profile of the MIG instance; `None` for a GPU.
    #[must_use]
    #[inline]
    pub fn profile(&self) -> Option<MigProfile> {
        self.mig.map(|instance| instance.profile)
    }

    /// Capacity in thousandths of a GPU.
    #[must_use]
    #[inline]
    pub fn capacity_millis(&self) -> u64 {
        match self.part {
            Some(part) => part.millis,
            None => self.profile().map_or(GPU_MILLIS, MigProfile::millis),
        }
    }

    /// Thousandths that pods charged for `charged_millis` make unavailable: an instance belongs to
    /// one pod, even if that requested less.
    #[must_use]
    #[inline]
    pub fn taken_by(&self, charged_millis: u64) -> u64 {
        match self.part {
            Some(part) if charged_millis > 0 => part.millis,
            _ => charged_millis,
        }
    }

    /// Thousandths of a GPU that can be assigned; zero while it is out of service.
    #[must_use]
    pub fn offered_millis(&self) -> u64 {
        if self.in_service { self.capacity_millis() } else { 0 }
    }

    /// True if it is a GPU without any assigned share.
    #[must_use]
    #[inline]
    pub fn is_whole(&self, now: bool) -> bool {
        self.mig.is_none() && self.free_millis(now) == GPU_MILLIS
    }

    /// Thousandths that can be assigned: now (`now`), or after pending releases.
    #[must_use]
    #[inline]
    pub fn free_millis(&self, now: bool) -> u64 {
        if self.in_service { self.unused_millis(now) } else { 0 }
    }

    /// Thousandths that are not assigned, also while it is out of service: pods on it may stay.
    #[must_use]
    #[inline]
    pub fn unused_millis(&self, now: bool) -> u64 {
        // During a rollback a device can be over-committed for a moment.
        let all = self.capacity_millis();
        let left = |held: u64| all.saturating_sub(self.taken_by(held));
        let soon = left(self.committed_millis);
        if now { soon.min(left(self.used_millis)) } else { soon }
    }
}

/// Hardware of a machine: thousandths of cores, bytes of main memory, and for each GPU its bytes
/// and its MIG instance.
pub(crate) type Hardware = (u64, u64, Vec<(u64, Option<MigProfile>, Option<GpuPart>)>);

/// A machine and its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// GPUs in their order on the machine; for a divided one, its MIG instances.
    pub gpus: Vec<Gpu>,
    /// Its capacity.
    pub capacity: Resources,
    /// Physically in use.
    pub used: Resources,
    /// Committed: in use by pods that stay, or reserved.
    pub committed: Resources,
    /// Pods that run here or have a reserved place here.
    pub pods: BTreeSet<PodId>,
    /// Maximum number of pods at a time.
    pub pods_max: u32,
    /// Number of pods physically here.
    pub pods_used: u32,
    /// Number of pods after all pending changes.
    pub pods_committed: u32,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The node pool that its labels name.
    pub pool: PoolId,
    /// Taints.
    pub taints: Vec<Taint>,
    /// True if new pods may be placed: false when cordoned or lost.
    pub schedulable: bool,
    /// True if some of its devices are out of service.
    pub(crate) impaired: bool,
    /// Number of devices that are wholly free now, and after pending releases.
    pub(crate) whole_free_now: u32,
    pub(crate) whole_free_soon: u32,
}

impl Node {
    pub(crate) fn new(spec: NodeSpec, pool: PoolId) -> Self {
        let mut gpus = Vec::with_capacity(spec.gpu_memory_bytes.len());
        for (gpu, memory_bytes) in (0_u32..).zip(spec.gpu_memory_bytes) {
            if let Some(parts) = spec.parts.get(gpu as usize).filter(|parts| !parts.is_empty()) {
                let part =
                    |&bytes: &u64| Gpu::of_part(bytes, GpuPart::new(gpu, bytes, memory_bytes));
                gpus.extend(parts.iter().map(part));
                continue;
            }
            match spec.mig.get(gpu as usize).filter(|parts| !parts.is_empty()) {
                None => gpus.push(Gpu::new(memory_bytes, None)),
                Some(parts) => gpus.extend(parts.iter().map(|&profile| {
                    Gpu::new(profile.memory_bytes(), Some(MigInstance { gpu, profile }))
                })),
            }
        }
        let capacity = Resources {
            gpu_millis: offered_millis(&gpus),
            cpu_millis: spec.cpu_millis,
            memory_bytes: spec.memory_bytes,
        };
        let count = whole_count(&gpus);
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
            pool,
            taints: spec.taints,
            schedulable: true,
            impaired: false,
            whole_free_now: count,
            whole_free_soon: count,
        }
    }

    /// Resources that can be assigned: now (`now`), or after pending releases. The GPU amount is a
    /// sum over devices; a request must also fit on single ones.
    #[must_use]
    #[inline]
    pub fn free(&self, now: bool) -> Resources {
        // Running pods may hold more than the machine has, if it shrank.
        let left = |held: Resources, of: fn(&Gpu) -> u64| {
            let held = held - self.held_out_of_service(of);
            self.capacity.saturating_sub(held)
        };
        let soon = left(self.committed, |gpu| gpu.committed_millis);
        if now { soon.min(left(self.used, |gpu| gpu.used_millis)) } else { soon }
    }

    /// Amounts held on devices that are out of service and no longer part of the capacity.
    #[inline]
    fn held_out_of_service(&self, of: fn(&Gpu) -> u64) -> Resources {
        let out = self.gpus.iter().filter(|gpu| self.impaired && !gpu.in_service);
        Resources { gpu_millis: out.map(of).sum(), ..Resources::ZERO }
    }

    /// Takes a device out of service or back, with its part of the capacity.
    pub(crate) fn set_in_service(&mut self, gpu: usize, in_service: bool) {
        self.change_gpu(gpu, |gpu| gpu.in_service = in_service);
        self.impaired = self.gpus.iter().any(|gpu| !gpu.in_service);
        self.capacity.gpu_millis = offered_millis(&self.gpus);
    }

    /// Replaces its GPUs, CPU and memory. GPUs that stay keep their accounts.
    pub(crate) fn set_hardware(
        &mut self,
        gpu_memory_bytes: &[u64],
        cpu_millis: u64,
        memory_bytes: u64,
    ) {
        let unused = |gpu: &Gpu| gpu.used_millis == 0 && gpu.committed_millis == 0;
        let gone = self.gpus.iter().skip(gpu_memory_bytes.len());
        assert!(gone.clone().all(unused), "a GPU of node {} that is gone is in use", self.name);
        assert!(!self.gpus.iter().any(Gpu::is_instance), "a divided GPU stays as it is");
        self.gpus.truncate(gpu_memory_bytes.len());
        for (gpu, &bytes) in self.gpus.iter_mut().zip(gpu_memory_bytes) {
            gpu.memory_bytes = bytes;
        }
        let more =
            gpu_memory_bytes.iter().skip(self.gpus.len()).map(|&bytes| Gpu::new(bytes, None));
        self.gpus.extend(more);
        self.impaired = self.gpus.iter().any(|gpu| !gpu.in_service);
        let gpu_millis = offered_millis(&self.gpus);
        self.capacity = Resources { gpu_millis, cpu_millis, memory_bytes };
        let whole = |now| u32::try_from(self.gpus.iter().filter(|gpu| gpu.is_whole(now)).count());
        self.whole_free_now = whole(true).unwrap_or(u32::MAX);
        self.whole_free_soon = whole(false).unwrap_or(u32::MAX);
    }

    /// True if the maximum number of pods allows one more.
    #[must_use]
    #[inline]
    pub fn takes_one_more(&self, now: bool) -> bool {
        self.pods_committed < self.pods_max && !(now && self.pods_used >= self.pods_max)
    }

    /// Memory in bytes of each of its GPUs of which parts may be requested.
    pub(crate) fn gpu_memories(&self) -> impl Iterator<Item = u64> {
        let asked_for = self.gpus.iter().filter(|gpu| gpu.mig.is_none());
        asked_for.map(|gpu| gpu.part.map_or(gpu.memory_bytes, |part| part.gpu_memory_bytes))
    }

    /// Its hardware; `None` without GPUs.
    pub(crate) fn hardware(&self) -> Option<Hardware> {
        let kind = |gpu: &Gpu| (gpu.memory_bytes, gpu.profile(), gpu.part);
        let gpus: Vec<_> = self.gpus.iter().map(kind).collect();
        let Resources { cpu_millis, memory_bytes, .. } = self.capacity;
        (!gpus.is_empty()).then_some((cpu_millis, memory_bytes, gpus))
    }

    pub(crate) fn has_soft_taint(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect == Effect::PreferNoSchedule)
    }

    /// Value of a topology label; `None` if the node lacks it.
    pub(crate) fn topology_domain(&self, label: &str) -> Option<&str> {
        if is_host(label) {
            return Some(&self.name);
        }
        self.labels.get(label).map(String::as_str)
    }

    /// Number of devices that are wholly free.
    #[must_use]
    pub const fn whole_free(&self, now: bool) -> u32 {
        if now { self.whole_free_now } else { self.whole_free_soon }
    }

    /// Changes a device's accounts, and updates the counts of free devices.
    pub(crate) fn change_gpu(&mut self, at: usize, change: impl FnOnce(&mut Gpu)) {
        let gpu = &mut self.gpus[at];
        let whole = |gpu: &Gpu, now| u32::from(gpu.is_whole(now));
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

    /// True if these devices and amounts are physically free now, reservations aside.
    #[must_use]
    pub fn has_room_now(&self, devices: &[DeviceShare], other: Resources) -> bool {
        let host = Resources { gpu_millis: 0, ..other };
        (self.used + host).fits_in(self.capacity)
            && devices.iter().all(|share| {
                let gpu = &self.gpus[share.index()];
                gpu.taken_by(gpu.used_millis) + share.millis <= gpu.capacity_millis()
            })
    }

    /// Specification of another node like it: with its GPUs and their division, CPU, memory,
    /// maximum number of pods, labels and taints. The memory of a GPU divided by profiles is the
    /// sum of its instances.
    #[must_use]
    pub fn as_built(&self) -> NodeSpec {
        let together = |left: &Gpu, right: &Gpu| {
            let of = |gpu: &Gpu| gpu.mig.map(|mig| mig.gpu).or(gpu.part.map(|part| part.gpu));
            of(left).is_some() && of(left) == of(right)
        };
        let (mut memories, mut mig, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for own in self.gpus.chunk_by(together) {
            let sum = own.iter().map(|gpu| gpu.memory_bytes).sum();
            memories.push(own[0].part.map_or(sum, |part| part.gpu_memory_bytes));
            mig.push(own.iter().filter_map(Gpu::profile).collect());
            let bytes = |gpu: &Gpu| gpu.part.map(|_| gpu.memory_bytes);
            parts.push(own.iter().filter_map(bytes).collect());
        }
        let Resources { cpu_millis, memory_bytes, .. } = self.capacity;
        NodeSpec {
            mig,
            parts,
            pods_max: self.pods_max,
            labels: self.labels.clone(),
            taints: self.taints.clone(),
            ..NodeSpec::new(&self.name, memories, cpu_millis, memory_bytes)
        }
    }
}

/// Number of these GPUs that are whole while nothing is assigned.
pub(crate) fn whole_count(gpus: &[Gpu]) -> u32 {
    let whole = gpus.iter().filter(|gpu| gpu.is_whole(true)).count();
    u32::try_from(whole).unwrap_or(u32::MAX)
}

/// Thousandths of these GPUs that can be assigned while nothing is.
pub(crate) fn offered_millis(gpus: &[Gpu]) -> u64 {
    gpus.iter().map(Gpu::offered_millis).sum()
}
