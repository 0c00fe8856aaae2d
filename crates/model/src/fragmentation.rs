//! Capacity that a placement takes from other pods. Owns: how much of a node's free GPUs the usual
//! requests could use, and how scarce such capacity is. Source: Weng et al., USENIX ATC 2023
//! ("FGD"), whose measure of fragmentation is refined here by the node's CPU and memory.
//!
//! A shape of pod can use the free part of the devices that fit it, up to one and a half times what
//! the node's CPU and memory would carry of that shape alone: a node is shared, and lighter pods
//! compensate for heavier ones up to this factor. The worth of a node is the sum over the shapes,
//! each weighted by the number of its pods; the cost of a placement is the worth that it removes.
//!
//! The weight of a shape grows as less of the cluster is usable for it: with the square of all GPUs
//! ÷ the GPUs that it could use now. So work that could go anywhere leaves to others the GPUs that
//! only they can use, and no kind of node is exhausted long before the rest.
//!
//! If only shares are requested, an equal number of pods for a whole GPU is assumed: otherwise two
//! shares would be placed on two GPUs, because the rest beside each is of no use to the other.

use std::cmp::Reverse;
use std::ops::Range;

use smallvec::SmallVec;
use units::{GPU_MILLIS, Resources};

use crate::{Cluster, ConstraintsId, DeviceShare, Gpu, GpuRequest, Node, NodeId, PodRequest};

/// Maximum number of shapes: those with the largest requests.
const SHAPES_MAX: usize = 512;
/// Unit of scarcity: 16 stands for 1.
const SCARCITY_UNIT: u64 = 16;
/// Bound on scarcity: all GPUs ÷ this are added to those that a shape can use.
const SCARCITY_MAX: u64 = 100;
/// Bits of the fraction in a number of pods.
const POD_BITS: u32 = 16;

/// The shapes that request GPUs, those with equal GPU requests together.
#[derive(Debug, Default)]
pub struct Shapes {
    groups: Vec<(GpuRequest, Range<usize>)>,
    all: Vec<Shape>,
}

#[derive(Debug, Clone)]
struct Shape {
    host: HostNeed,
    /// `None` for any node.
    constraints: Option<ConstraintsId>,
    pods: u64,
    /// Worth of a GPU thousandth that it can use.
    weight: u64,
}

/// CPU and memory request of a pod, and one and a half times the pods per unit of each, as
/// fractions.
#[derive(Debug, Clone, Copy)]
struct HostNeed {
    cpu_millis: u64,
    memory_mib: u64,
    pods_per_cpu: u64,
    pods_per_mib: u64,
}

/// The shapes that a node allows, one bit for each.
pub type Allowed = SmallVec<[u64; SHAPES_MAX / 64]>;

/// Free resources of a node after pending releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Free {
    devices_millis: SmallVec<[u64; 8]>,
    /// True if some of the devices are MIG instances.
    has_instances: bool,
    host: Resources,
}

impl Free {
    /// Free resources of the node as it is.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let devices_millis = node.gpus.iter().map(|gpu| gpu.free_millis(false)).collect();
        let has_instances = node.gpus.iter().any(Gpu::is_instance);
        Self { devices_millis, has_instances, host: node.free(false) }
    }

    /// Subtracts a pod with these devices.
    pub fn take(&mut self, node: &Node, devices: &[DeviceShare], request: PodRequest) {
        for share in devices {
            let at = share.gpu as usize;
            self.devices_millis[at] -= node.gpus[at].taken_by(share.millis);
        }
        let host = Resources { gpu_millis: 0, ..request.resources(1) };
        self.host = self.host.saturating_sub(host);
    }

    fn has_gpus(&self) -> bool {
        self.devices_millis.iter().any(|&millis| millis > 0)
    }
}

impl HostNeed {
    const fn new(cpu_millis: u64, memory_bytes: u64) -> Self {
        let memory_mib = memory_bytes >> 20;
        Self {
            cpu_millis,
            memory_mib,
            pods_per_cpu: pods_per(cpu_millis),
            pods_per_mib: pods_per(memory_mib),
        }
    }

    /// One and a half times the pods that fit the free CPU and memory; zero if not even one fits.
    fn pods(&self, cpu_millis: u64, memory_mib: u64) -> u64 {
        if self.cpu_millis > cpu_millis || self.memory_mib > memory_mib {
            return 0;
        }
        let by_cpu = cpu_millis.saturating_mul(self.pods_per_cpu);
        by_cpu.min(memory_mib.saturating_mul(self.pods_per_mib)) >> (32 - POD_BITS)
    }
}

/// One and a half divided by the request of each, in units of 2⁻³².
const fn pods_per(each: u64) -> u64 {
    match each {
        0 => u64::MAX,
        _ => (3 << 31) / each,
    }
}

impl Shapes {
    /// The shapes of the present requests.
    #[must_use]
    pub fn of(cluster: &Cluster) -> Self {
        let mut asked: Vec<_> =
            cluster.requests().iter().filter(|(request, ..)| request.gpu.devices() > 0).collect();
        if asked.len() > SHAPES_MAX {
            // Ties are broken by the contents of the constraints, not by the order of their ids.
            asked.sort_by_cached_key(|&(request, constraints, pods)| {
                let millis = request.resources(1).gpu_millis.saturating_mul(pods);
                (Reverse(millis), request, cluster.constraints(constraints).clone())
            });
            asked.truncate(SHAPES_MAX);
            asked.sort_unstable();
        }
        let mut shapes = Self::default();
        for (PodRequest { gpu, cpu_millis, memory_bytes }, constraints, pods) in asked {
            let host = HostNeed::new(cpu_millis, memory_bytes);
            shapes.add(gpu, Shape { host, constraints: Some(constraints), pods, weight: 0 });
        }
        let is_whole = |(gpu, _): &(GpuRequest, _)| matches!(gpu, GpuRequest::Whole(_));
        if !shapes.all.is_empty() && !shapes.groups.iter().any(is_whole) {
            let pods = shapes.all.iter().map(|shape| shape.pods).sum();
            let host = HostNeed::new(0, 0);
            shapes.add(GpuRequest::Whole(1), Shape { host, constraints: None, pods, weight: 0 });
        }
        shapes.weigh(cluster);
        shapes
    }

    fn add(&mut self, gpu: GpuRequest, shape: Shape) {
        let end = self.all.len() + 1;
        match self.groups.last_mut().filter(|group| group.0 == gpu) {
            Some((_, range)) => range.end = end,
            None => self.groups.push((gpu, end - 1..end)),
        }
        self.all.push(shape);
    }

    /// Computes the weight of each shape from its scarcity.
    fn weigh(&mut self, cluster: &Cluster) {
        let mut usable = vec![0_u64; self.all.len()];
        // Equal nodes mostly follow each other.
        let mut last: Option<(Free, Allowed, Vec<u64>)> = None;
        for (id, node) in cluster.nodes().iter() {
            let free = Free::of(node);
            if !free.has_gpus() {
                continue;
            }
            let allowed = self.allowed(cluster, id);
            let same = |(other, bits, _): &(Free, Allowed, Vec<u64>)| {
                *other == free && *bits == allowed && self.only_amounts_count(&free)
            };
            let here = match last.take().filter(same) {
                Some((.., here)) => here,
                None => {
                    let mut here = vec![0; self.all.len()];
                    self.each_usable(node, &allowed, &free, |at, millis| here[at] = millis);
                    here
                }
            };
            usable.iter_mut().zip(&here).for_each(|(sum, millis)| *sum += millis);
            last = Some((free, allowed, here));
        }
        let all = cluster.capacity().gpu_millis;
        for (shape, usable) in self.all.iter_mut().zip(usable) {
            let scarcity = all.saturating_mul(SCARCITY_UNIT) / (usable + all / SCARCITY_MAX).max(1);
            shape.weight = shape.pods.saturating_mul(scarcity * scarcity);
        }
    }

    /// True if two nodes with equal free resources and equal allowed shapes have the same worth: no
    /// shape requests GPU memory or an instance, and neither node has instances.
    #[must_use]
    pub fn only_amounts_count(&self, free: &Free) -> bool {
        let is_amount =
            |gpu: &GpuRequest| matches!(gpu, GpuRequest::Whole(_) | GpuRequest::Share { .. });
        !free.has_instances && self.groups.iter().all(|(gpu, _)| is_amount(gpu))
    }

    /// The shapes that a node allows.
    #[must_use]
    pub fn allowed(&self, cluster: &Cluster, id: NodeId) -> Allowed {
        let mut bits = Allowed::from_elem(0, self.all.len().div_ceil(64));
        for (at, shape) in self.all.iter().enumerate() {
            if shape.constraints.is_none_or(|constraints| cluster.allows(constraints, id)) {
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        bits
    }

    /// Worth of a node with these free resources to pods of these shapes.
    #[must_use]
    pub fn worth(&self, node: &Node, allowed: &Allowed, free: &Free) -> u64 {
        let mut worth = 0_u64;
        self.each_usable(node, allowed, free, |at, millis| {
            worth = worth.saturating_add(millis.saturating_mul(self.all[at].weight));
        });
        worth
    }

    /// Calls `usable` with each shape that can use GPUs of a node, and the GPU thousandths.
    fn each_usable(
        &self,
        node: &Node,
        allowed: &Allowed,
        free: &Free,
        mut usable: impl FnMut(usize, u64),
    ) {
        let (cpu_millis, memory_mib) = (free.host.cpu_millis, free.host.memory_bytes >> 20);
        for (gpu, range) in &self.groups {
            let (devices_millis, pod_millis) = fitting(node, free, *gpu);
            if devices_millis == 0 {
                continue;
            }
            each_allowed(allowed, range, |at| {
                let pods = self.all[at].host.pods(cpu_millis, memory_mib);
                if pods > 0 {
                    let carried = pods.saturating_mul(pod_millis) >> POD_BITS;
                    usable(at, devices_millis.min(carried));
                }
            });
        }
    }
}

/// Calls `then` with each shape of a range that a node allows.
fn each_allowed(allowed: &Allowed, range: &Range<usize>, mut then: impl FnMut(usize)) {
    for word in range.start / 64..range.end.div_ceil(64) {
        let first = range.start.saturating_sub(word * 64);
        let end = (range.end - word * 64).min(64);
        let mut bits = allowed[word] & (u64::MAX << first) & (u64::MAX >> (64 - end));
        while bits != 0 {
            then(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

/// Free thousandths of the devices that fit a request, and the thousandths of one pod; zeros if
/// there are too few devices.
fn fitting(node: &Node, free: &Free, gpu: GpuRequest) -> (u64, u64) {
    match gpu {
        GpuRequest::Whole(wanted) if !free.has_instances => alike(free, wanted, GPU_MILLIS),
        GpuRequest::Share { devices, millis } if !free.has_instances => {
            alike(free, devices, millis)
        }
        _ => unlike(node, free, gpu),
    }
}

/// Result of [`fitting`] for a request of `each_millis` on every device.
fn alike(free: &Free, wanted: u32, each_millis: u64) -> (u64, u64) {
    let (mut devices, mut free_millis) = (0, 0);
    for &millis in free.devices_millis.iter().filter(|&&millis| millis >= each_millis) {
        devices += 1;
        free_millis += millis;
    }
    let pod_millis = each_millis * u64::from(wanted);
    if devices < wanted { (0, 0) } else { (free_millis, pod_millis) }
}

fn unlike(node: &Node, free: &Free, gpu: GpuRequest) -> (u64, u64) {
    let (mut free_millis, mut pod_millis) = (0, 0);
    for part in gpu.parts() {
        let (mut devices, mut each_millis) = (0, 0);
        for (device, &millis) in node.gpus.iter().zip(&free.devices_millis) {
            if let Some(needed) = part.needs_of(device).filter(|&needed| needed <= millis) {
                devices += 1;
                free_millis += millis;
                each_millis = needed;
            }
        }
        let wanted = part.devices();
        if devices < wanted {
            return (0, 0);
        }
        pod_millis += each_millis * u64::from(wanted);
    }
    (free_millis, pod_millis)
}
