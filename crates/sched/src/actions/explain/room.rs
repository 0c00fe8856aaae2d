//! Room for a pod on any node. Owns: the reasons that name the resource that is short, and results
//! about nodes for other pods with equal constraints.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{
    Cluster, ConstraintsId, GpuRequest, Node, NodeId, PodRequest, PodSet, PoolId, WorkloadId,
};
use units::{GPU_MILLIS, Resources};

use super::bound;
use crate::place;
use reasons::Pending;

/// Constraints on nodes, and the pool that the workload is bound to.
type Where = (ConstraintsId, Option<PoolId>);

/// Results about nodes. They hold as long as the cluster does not change.
#[derive(Default)]
pub(super) struct Rooms {
    nodes: BTreeMap<Where, Nodes>,
    gpus: BTreeMap<(Where, GpuRequest), Gpus>,
    parts: BTreeMap<(Where, u32), Parts>,
}

/// Usable nodes.
struct Nodes {
    allowed: Vec<NodeId>,
    /// Allowed nodes that pod affinity does not rule out.
    open: Vec<NodeId>,
    /// `true` if some of their GPUs are MIG instances, which a fraction uses as a whole.
    has_instances: bool,
}

/// GPUs of the open nodes.
enum Gpus {
    TooFew(Pending),
    /// Other free resources of the nodes with enough GPUs.
    Enough(Vec<Resources>),
}

/// Free parts of GPUs on the open nodes, for requests of one number of parts.
struct Parts {
    /// Largest possible size of the parts on each node, descending.
    millis: Vec<u64>,
    /// Other free resources of these nodes.
    beside: Vec<Resources>,
    /// `true` if there are GPUs that can be divided.
    can_be: bool,
}

impl Rooms {
    /// The reason that no node has room for a pod of a set now, as far as amounts are the cause.
    pub(super) fn no_room(
        &mut self,
        cluster: &Cluster,
        id: WorkloadId,
        set: usize,
    ) -> Option<Pending> {
        let workload = &cluster.workloads()[id];
        let request = workload.spec.pod_sets[set].request;
        let PodSet { demand, constraints, .. } = workload.pod_sets[set];
        let place = (constraints, cluster.pool_of(id));
        let find = || Nodes::find(cluster, constraints, bound(cluster, id));
        let nodes = self.nodes.entry(place).or_insert_with(find);
        if nodes.allowed.is_empty() && !cluster.nodes().is_empty() {
            return None;
        }
        let allowed = nodes.allowed.iter().map(|&at| &cluster.nodes()[at]);
        if let Some(reason) = larger_than_any(allowed, request.gpu, demand) {
            return Some(reason);
        }
        // The cause that rules out these nodes has a reason of its own.
        if nodes.open.is_empty() {
            return None;
        }
        if let GpuRequest::Share { devices: devices @ 1.., millis } = request.gpu
            && !nodes.has_instances
        {
            let find = || Parts::find(cluster, &nodes.open, devices);
            let parts = self.parts.entry((place, devices)).or_insert_with(find);
            let reason = parts.no_room(devices, millis, demand);
            debug_assert_eq!(
                reason,
                match Gpus::find(cluster, &nodes.open, request) {
                    Gpus::TooFew(reason) => Some(reason),
                    Gpus::Enough(free) => too_little_beside(&free, demand),
                },
                "what is free for parts of any size is free for these"
            );
            return reason;
        }
        let find = || Gpus::find(cluster, &nodes.open, request);
        match self.gpus.entry((place, request.gpu)).or_insert_with(find) {
            Gpus::TooFew(reason) => Some(reason.clone()),
            Gpus::Enough(free) => too_little_beside(free, demand),
        }
    }
}

impl Nodes {
    fn find(cluster: &Cluster, constraints: ConstraintsId, bound: impl Fn(NodeId) -> bool) -> Self {
        let allowed = cluster.nodes().ids();
        let allowed = allowed.filter(|&at| cluster.allows(constraints, at) && bound(at));
        let allowed: Vec<_> = allowed.collect();
        let mut open = allowed.clone();
        open.retain(|&at| cluster.check_pods(constraints, at, false).is_ok());
        let mut gpus = open.iter().flat_map(|&at| &cluster.nodes()[at].gpus);
        let has_instances = gpus.any(|gpu| gpu.part.is_some());
        Self { allowed, open, has_instances }
    }
}

impl Gpus {
    fn find(cluster: &Cluster, open: &[NodeId], request: PodRequest) -> Self {
        let gpus = PodRequest { cpu_millis: 0, memory_bytes: 0, ..request };
        let nodes = open.iter().map(|&at| (at, &cluster.nodes()[at]));
        let enough = nodes
            .filter(|&(at, node)| cluster.may_fit(at, gpus, false) && has_gpus(node, request.gpu));
        let free: Vec<_> = enough.map(|(_, node)| node.free(false)).collect();
        if free.is_empty() {
            let nodes: Vec<_> = open.iter().map(|&at| &cluster.nodes()[at]).collect();
            return Self::TooFew(no_gpus(&nodes, request.gpu));
        }
        Self::Enough(free)
    }
}

impl Parts {
    fn find(cluster: &Cluster, open: &[NodeId], devices: u32) -> Self {
        let request = GpuRequest::Share { devices, millis: 1 };
        let rows = || open.iter().map(|&at| &cluster.nodes()[at]);
        let most = |node| Some((most_of_each(node, request)?, node.free(false)));
        let mut parts: Vec<_> = rows().filter_map(most).collect();
        parts.sort_unstable_by_key(|&(millis, _)| Reverse(millis));
        let (millis, beside) = parts.into_iter().unzip();
        let mut gpus = rows().flat_map(|node| &node.gpus);
        Self { millis, beside, can_be: gpus.any(|gpu| request.needs_of_sound(gpu).is_some()) }
    }

    /// The reason that there is no room for `devices` parts of this size.
    fn no_room(&self, devices: u32, millis: u64, demand: Resources) -> Option<Pending> {
        match self.millis.partition_point(|&most| most >= millis) {
            0 => Some(Pending::NoGpuShareFree {
                devices,
                millis: if self.can_be { millis } else { GPU_MILLIS },
                free_millis_max: self.millis.first().copied().unwrap_or(0),
            }),
            enough => too_little_beside(&self.beside[..enough], demand),
        }
    }
}

/// The reason that nodes with enough GPUs lack another resource, given their free resources.
fn too_little_beside(free: &[Resources], demand: Resources) -> Option<Pending> {
    let memory = |free: &&Resources| free.memory_bytes >= demand.memory_bytes;
    if !free.iter().any(|free| memory(&free)) {
        let free_bytes_max = free.iter().map(|free| free.memory_bytes).max().unwrap_or(0);
        let memory_bytes = demand.memory_bytes;
        return Some(Pending::NotEnoughMemory { memory_bytes, free_bytes_max });
    }
    let with_memory = free.iter().filter(memory);
    let free_millis_max = with_memory.map(|free| free.cpu_millis).max().unwrap_or(0);
    let cpu_millis = demand.cpu_millis;
    (free_millis_max < cpu_millis).then_some(Pending::NotEnoughCpu { cpu_millis, free_millis_max })
}

/// The reason that none of these nodes could hold such a pod even when empty.
pub(crate) fn larger_than_any<'a>(
    nodes: impl ExactSizeIterator<Item = &'a Node> + Clone,
    request: GpuRequest,
    demand: Resources,
) -> Option<Pending> {
    let gpus_of = |node: &Node| {
        let large = |g: &&model::Gpu| request.needs_of_sound(g).is_some();
        node.gpus.iter().filter(large).count()
    };
    let enough = |node: &&Node| has_gpus_when_empty(node, request);
    let host = Resources { gpu_millis: 0, ..demand };
    if nodes.clone().filter(enough).any(|node| host.fits_in(node.capacity)) {
        return None;
    }
    let (count, all) = (nodes.len(), nodes.clone());
    let gpus_max = nodes.clone().map(gpus_of).max().unwrap_or(0);
    let with_gpus = nodes.filter(enough);
    let largest = with_gpus.fold(Resources::ZERO, |sum, node| sum.max(node.capacity));
    let part_max = largest_part(all);
    Some(Pending::LargerThanAnyNode { request, demand, gpus_max, part_max, largest, nodes: count })
}

/// Thousandths and bytes of the largest MIG instance, if the nodes have no whole GPUs.
fn largest_part<'a>(nodes: impl Iterator<Item = &'a Node>) -> Option<(u64, u64)> {
    let parts = nodes.flat_map(|node| &node.gpus).filter(|gpu| gpu.mig.is_none());
    let parts = parts.map(|gpu| Some((gpu.part?.millis, gpu.memory_bytes)));
    parts.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn has_gpus(node: &Node, request: GpuRequest) -> bool {
    place::fits_on(request, node.gpus.iter().map(|gpu| (gpu, gpu.free_millis(false))))
}

fn has_gpus_when_empty(node: &Node, request: GpuRequest) -> bool {
    request.parts().all(|part| {
        let fitting = node.gpus.iter().filter(|gpu| part.needs_of_sound(gpu).is_some());
        fitting.count() >= part.devices() as usize
    })
}

fn no_gpus(nodes: &[&Node], request: GpuRequest) -> Pending {
    let all = || nodes.iter().flat_map(|node| &node.gpus);
    let large = || all().filter(|gpu| request.needs_of_sound(gpu).is_some());
    if large().next().is_some() && large().all(|gpu| gpu.part.is_some()) {
        let instances = all().filter(|gpu| gpu.part.is_some()).count();
        let (large, nodes) = (large().count(), nodes.len());
        return Pending::NoInstanceForPart { request, instances, large, nodes };
    }
    if let GpuRequest::Whole(gpus) = request {
        let free: Vec<_> = nodes.iter().map(|node| node.whole_free(false)).collect();
        return Pending::NotEnoughGpus {
            gpus,
            nodes: nodes.len(),
            free_on_one_node_max: free.iter().copied().max().unwrap_or(0),
            free_total: free.iter().copied().map(u64::from).sum(),
        };
    }
    if let GpuRequest::Mig(request) = request {
        let gpu = GpuRequest::Mig(request);
        let with = nodes.iter().filter(|node| has_gpus_when_empty(node, gpu)).count();
        return Pending::NoMigInstanceFree { request, nodes: nodes.len(), with };
    }
    let gpus = nodes.iter().flat_map(|node| &node.gpus);
    Pending::NoGpuShareFree {
        devices: request.devices(),
        millis: gpus.filter_map(|gpu| request.needs_of_sound(gpu)).min().unwrap_or(GPU_MILLIS),
        free_millis_max: nodes
            .iter()
            .filter_map(|node| most_of_each(node, request))
            .max()
            .unwrap_or(0),
    }
}

/// Free thousandths of the fullest of the emptiest GPUs that a request would use.
fn most_of_each(node: &Node, request: GpuRequest) -> Option<u64> {
    let large = node.gpus.iter().filter(|gpu| request.needs_of(gpu).is_some());
    let mut free: Vec<_> = large.map(|gpu| gpu.free_millis(false)).collect();
    free.sort_unstable_by_key(|&millis| Reverse(millis));
    free.get((request.devices() as usize).wrapping_sub(1)).copied()
}
