//! Workloads that no node could ever hold. Owns: the check of a workload before the cluster has it,
//! on nodes as they would be when empty. Visits no more nodes than it takes to find room.

use model::{Cluster, GpuRequest, Node, PodRequest, PodSetSpec, WorkloadSpec, fitting};
use units::{Kind, Resources};

use crate::actions::explain::{larger_than_any, ruled_out_by};
use reasons::Pending;

/// The reason why a workload could not start on the present nodes even if all were empty; `None` if
/// it could, or if more than nodes decides.
#[must_use]
pub fn never_fits(cluster: &Cluster, spec: &WorkloadSpec) -> Option<Pending> {
    let mut short = spec.pod_sets.iter().map(|set| too_few_fit(cluster, spec, set));
    // If some of its sets are optional, the others may be enough.
    match spec.groups.is_empty() && spec.children_min.is_none() {
        true => short.find_map(|reason| reason),
        false => short.collect::<Option<Vec<_>>>()?.into_iter().next(),
    }
}

fn too_few_fit(cluster: &Cluster, spec: &WorkloadSpec, set: &PodSetSpec) -> Option<Pending> {
    let wanted = set.pods_min.max(1);
    let gpu = match set.request.gpu {
        // An elastic workload starts with one GPU.
        GpuRequest::Whole(2..) if spec.elastic => GpuRequest::Whole(1),
        gpu => gpu,
    };
    let request = PodRequest { gpu, ..set.request };
    let is_open = |node: &&Node| {
        node.schedulable && set.constraints.check(&node.labels, &node.taints).is_ok()
    };
    let open = || cluster.nodes().iter().map(|(_, node)| node).filter(is_open);
    let mut fits: u32 = 0;
    for node in open() {
        let gpus = node.gpus.iter().map(|gpu| (gpu, gpu.capacity_millis()));
        fits = fits.saturating_add(fitting(request, node.capacity, node.pods_max.into(), gpus));
        if fits >= wanted {
            return None;
        }
    }
    let open: Vec<&Node> = open().collect();
    if open.is_empty() && !cluster.nodes().is_empty() {
        return ruled_out_by(cluster, &set.constraints, &|_| true);
    }
    // GPU memory is counted on the largest GPU, as in the node's resources.
    let memory = cluster.nodes().iter().flat_map(|(_, node)| &node.gpus).map(|g| g.memory_bytes);
    let demand = request.resources(memory.max().unwrap_or(0));
    let too_large = larger_than_any(open.iter().copied(), gpu, demand);
    // GPUs that are out of service are expected back.
    too_large.or_else(|| (wanted > 1).then(|| of_a_gang(cluster, spec, demand, (fits, wanted))))
}

fn of_a_gang(
    cluster: &Cluster,
    spec: &WorkloadSpec,
    each: Resources,
    (fitting, pods): (u32, u32),
) -> Pending {
    let kind = Kind::ALL.into_iter().find(|&kind| each[kind] > 0).unwrap_or(Kind::Gpu);
    let left_out = each[kind].saturating_mul(pods.into());
    let queue = cluster.queue_name(spec.queue);
    Pending::NotCounted { queue, kind, left_out, requested: left_out, fitting, sets: 1, pods }
}
