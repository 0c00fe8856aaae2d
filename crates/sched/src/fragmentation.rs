//! What is lost to others when a pod gets a place. Owns: how much of a node's free GPUs the pods
//! that are usually asked for could use. Source: Weng et al., USENIX ATC 2023 ("FGD"), whose
//! measure of fragmentation this one refines by the node's CPU and memory.
//!
//! A shape of pod can use what is free on the devices that have room for it, up to one and a half
//! times what the node's CPU and memory would carry of that shape alone: a node is shared, and
//! lighter pods make up for heavier ones, but not without end. A node's worth is the sum over the
//! shapes, each counted as often as it is asked for; a place costs what it takes off that. Where only
//! shares are asked for, as many pods for a whole GPU are thought to come: else two shares would break
//! two GPUs, because what one leaves beside the other is of use to neither.

use model::{Cluster, ConstraintsId, DeviceShare, GpuRequest, Node, NodeId, PodRequest};
use smallvec::SmallVec;
use units::Resources;

/// Most shapes looked at: those that ask for most. More change next to nothing.
const SHAPES_MAX: usize = 64;

/// The shapes that ask for GPUs, those with the same request for GPUs together.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Vec<(GpuRequest, Vec<Shape>)>);

#[derive(Debug)]
struct Shape {
    cpu_millis: u64,
    memory_bytes: u64,
    /// None: any node will do.
    constraints: Option<ConstraintsId>,
    pods: u64,
}

/// What is free on a node, or will be when what is being released is gone.
#[derive(Debug, Clone)]
pub(crate) struct Free {
    devices_millis: SmallVec<[u64; 8]>,
    host: Resources,
}

impl Free {
    pub(crate) fn of(node: &Node) -> Self {
        let devices_millis = node.gpus.iter().map(|gpu| gpu.free_millis(false)).collect();
        Self { devices_millis, host: node.free(false) }
    }

    pub(crate) fn take(&mut self, devices: &[DeviceShare], request: PodRequest) {
        for share in devices {
            self.devices_millis[share.gpu as usize] -= share.millis;
        }
        let host = Resources { gpu_millis: 0, ..request.resources(1) };
        self.host = self.host.saturating_sub(host);
    }
}

impl Shapes {
    /// What is asked for now.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let mut asked: Vec<_> =
            cluster.requests().iter().filter(|(request, ..)| request.gpu.devices() > 0).collect();
        if asked.len() > SHAPES_MAX {
            // Equals are distinguished by what they say, not by when they were first seen.
            asked.sort_by_cached_key(|&(request, constraints, pods)| {
                let millis = request.resources(1).gpu_millis.saturating_mul(pods);
                (std::cmp::Reverse(millis), request, cluster.constraints(constraints).clone())
            });
            asked.truncate(SHAPES_MAX);
            asked.sort_unstable();
        }
        let mut groups: Vec<(GpuRequest, Vec<Shape>)> = Vec::new();
        for (PodRequest { gpu, cpu_millis, memory_bytes }, constraints, pods) in asked {
            let shape = Shape { cpu_millis, memory_bytes, constraints: Some(constraints), pods };
            match groups.last_mut().filter(|group| group.0 == gpu) {
                Some(group) => group.1.push(shape),
                None => groups.push((gpu, vec![shape])),
            }
        }
        if !groups.iter().any(|(gpu, _)| matches!(gpu, GpuRequest::Whole(_))) {
            let pods = groups.iter().flat_map(|(_, shapes)| shapes).map(|shape| shape.pods).sum();
            let whole = Shape { cpu_millis: 0, memory_bytes: 0, constraints: None, pods };
            groups.push((GpuRequest::Whole(1), vec![whole]));
        }
        Self(groups)
    }

    /// What a node with so much free is worth to pods that request these shapes: GPU thousandths,
    /// summed over the pods.
    pub(crate) fn worth(&self, cluster: &Cluster, id: NodeId, free: &Free) -> u64 {
        let node = &cluster.nodes()[id];
        let group = |(gpu, shapes): &(GpuRequest, Vec<Shape>)| {
            let (devices_millis, pod_millis) = fitting(node, free, *gpu);
            if devices_millis == 0 {
                return 0;
            }
            let usable = |shape: &Shape| {
                let carried = carried_millis(free.host, shape, pod_millis);
                let allows = |constraints| cluster.allows(constraints, id);
                let allowed = carried > 0 && shape.constraints.is_none_or(allows);
                if allowed { devices_millis.min(carried) * shape.pods } else { 0 }
            };
            shapes.iter().map(usable).sum::<u64>()
        };
        self.0.iter().map(group).sum()
    }
}

/// What is free on the devices that have room for a request, and what one pod takes; zero if
/// there are too few of them.
fn fitting(node: &Node, free: &Free, gpu: GpuRequest) -> (u64, u64) {
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

/// GPU thousandths that one and a half times the pods of a shape that the host has room for would
/// use; zero if it has no room for one.
fn carried_millis(host: Resources, shape: &Shape, pod_millis: u64) -> u64 {
    let of = |free: u64, each: u64| match each {
        0 => u64::MAX,
        _ if each > free => 0,
        _ => free.saturating_mul(pod_millis * 3) / (each * 2),
    };
    of(host.cpu_millis, shape.cpu_millis).min(of(host.memory_bytes, shape.memory_bytes))
}
