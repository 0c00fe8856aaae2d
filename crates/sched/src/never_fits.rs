//! Workloads that no node could ever hold. Owns: the check of a workload before the cluster has it,
//! on nodes as they would be when empty. Visits no more nodes than it takes to find room.

use model::{
    Cluster, GpuRequest, Node, PodRequest, PodSetSpec, WorkloadSpec, fitting, fitting_at_most,
};
use units::{Kind, Resources};

use crate::actions::explain::{larger_than_any, ruled_out_by};
use reasons::Pending;

/// The reason why a workload could not start on the present nodes even if all were empty; `None` if
/// it could, or if more than nodes decides.
#[must_use]
pub fn never_fits(cluster: &Cluster, spec: &WorkloadSpec) -> Option<Pending> {
    let mut short = spec.pod_sets.iter().map(|set| too_few_fit(cluster, spec, set));
    // If some of its sets are optional, the others may be enough.
    match spec.needs_all_sets() {
        true => short.find_map(|reason| reason).or_else(|| too_few_together(cluster, spec)),
        false => short.collect::<Option<Vec<_>>>()?.into_iter().next(),
    }
}

fn too_few_fit(cluster: &Cluster, spec: &WorkloadSpec, set: &PodSetSpec) -> Option<Pending> {
    if fitting_when_empty(cluster, spec, set) >= wanted(set) {
        return None;
    }
    let open: Vec<&Node> = open(cluster, set).collect();
    if open.is_empty() && !cluster.nodes().is_empty() {
        return ruled_out_by(cluster, &set.constraints, &|_| true);
    }
    let request = smallest_request(spec, set);
    let too_large = larger_than_any(open.iter().copied(), request.gpu, demand(cluster, request));
    // GPUs that are out of service are expected back.
    let amount = |kind: &Kind| demand(cluster, request)[*kind] > 0;
    let kind = Kind::ALL.into_iter().find(amount).unwrap_or(Kind::Gpu);
    too_large.or_else(|| (wanted(set) > 1).then(|| of_a_gang(cluster, spec, kind)))
}

/// The reason that sets of which each would fit alone are more than all nodes can hold together.
fn too_few_together(cluster: &Cluster, spec: &WorkloadSpec) -> Option<Pending> {
    let asked = asked(cluster, spec);
    let there = capacity(cluster);
    if fitting_at_most(there, &asked) >= asked.iter().map(|(_, pods)| pods).sum() {
        return None;
    }
    let of = |kind: Kind| -> u64 {
        asked.iter().map(|(each, pods)| each[kind].saturating_mul((*pods).into())).sum()
    };
    let kind = Kind::ALL.into_iter().find(|&kind| of(kind) > there[kind]).unwrap_or(Kind::Gpu);
    Some(of_a_gang(cluster, spec, kind))
}

/// The sets whose pods start together: the demand of a pod, and their number.
fn asked(cluster: &Cluster, spec: &WorkloadSpec) -> Vec<(Resources, u32)> {
    let together = spec.pod_sets.iter().filter(|set| set.pods_min > 0);
    together.map(|set| (demand(cluster, smallest_request(spec, set)), wanted(set))).collect()
}

fn capacity(cluster: &Cluster) -> Resources {
    cluster.nodes().iter().map(|(_, node)| node.capacity).sum()
}

/// Number of pods of the set that must start together.
fn wanted(set: &PodSetSpec) -> u32 {
    set.pods_min.max(1)
}

/// The request of a pod of the set at its start: an elastic workload starts with one GPU.
fn smallest_request(spec: &WorkloadSpec, set: &PodSetSpec) -> PodRequest {
    let gpu = match set.request.gpu {
        GpuRequest::Whole(2..) if spec.elastic => GpuRequest::Whole(1),
        gpu => gpu,
    };
    PodRequest { gpu, ..set.request }
}

/// GPU memory is counted on the largest GPU, as in the node's resources.
fn demand(cluster: &Cluster, request: PodRequest) -> Resources {
    let gpus = cluster.nodes().iter().flat_map(|(_, node)| &node.gpus);
    request.resources(gpus.map(|gpu| gpu.memory_bytes).max().unwrap_or(0))
}

/// Nodes that the constraints of the set allow.
fn open<'a>(cluster: &'a Cluster, set: &'a PodSetSpec) -> impl Iterator<Item = &'a Node> {
    let is_open = |node: &&Node| {
        node.schedulable && set.constraints.check(&node.labels, &node.taints).is_ok()
    };
    cluster.nodes().iter().map(|(_, node)| node).filter(is_open)
}

/// Number of pods of the set that fit on empty nodes, at most those that must start together.
fn fitting_when_empty(cluster: &Cluster, spec: &WorkloadSpec, set: &PodSetSpec) -> u32 {
    let (wanted, request) = (wanted(set), smallest_request(spec, set));
    let mut fits: u32 = 0;
    for node in open(cluster, set) {
        let gpus = node.gpus.iter().map(|gpu| (gpu, gpu.capacity_millis()));
        fits = fits.saturating_add(fitting(request, node.capacity, node.pods_max.into(), gpus));
        if fits >= wanted {
            return wanted;
        }
    }
    fits
}

/// Counts all pods that must start together, as the reason for a waiting workload does.
fn of_a_gang(cluster: &Cluster, spec: &WorkloadSpec, kind: Kind) -> Pending {
    let together = || spec.pod_sets.iter().filter(|set| set.pods_min > 0);
    let asked = asked(cluster, spec);
    let requested =
        asked.iter().map(|(each, pods)| each[kind].saturating_mul((*pods).into())).sum();
    let one_by_one: u32 = together().map(|set| fitting_when_empty(cluster, spec, set)).sum();
    Pending::NotCounted {
        queue: cluster.queue_name(spec.queue),
        kind,
        left_out: requested,
        requested,
        fitting: one_by_one.min(fitting_at_most(capacity(cluster), &asked)),
        sets: asked.len(),
        pods: asked.iter().map(|(_, pods)| pods).sum(),
    }
}
