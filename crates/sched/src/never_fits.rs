//! Workloads that no node could ever hold. Owns: the check of a workload before the cluster has it,
//! on nodes as they would be when empty.

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
    let each = demand(cluster, request);
    // GPUs that are out of service are expected back.
    let too_large = larger_than_any(open.iter().copied(), request.gpu, each);
    let kind = Kind::ALL.into_iter().find(|&kind| each[kind] > 0).unwrap_or(Kind::Gpu);
    too_large.or_else(|| (wanted(set) > 1).then(|| of_a_gang(cluster, spec, kind)))
}

/// The reason that sets of which each would fit alone are more than all nodes can hold together.
fn too_few_together(cluster: &Cluster, spec: &WorkloadSpec) -> Option<Pending> {
    if together(spec).count() < 2 {
        return None;
    }
    let (asked, there) = (asked(cluster, spec), capacity(cluster));
    let fit = model::fitting_at_most(there, &asked) >= asked.iter().map(|(_, pods)| pods).sum();
    let kind = Kind::ALL.into_iter().find(|&of| total(&asked, of) > there[of]);
    (!fit).then(|| of_a_gang(cluster, spec, kind.unwrap_or(Kind::Gpu)))
}

fn total(asked: &[(Resources, u32)], kind: Kind) -> u64 {
    asked.iter().map(|(each, pods)| each[kind].saturating_mul((*pods).into())).sum()
}

/// The sets whose pods start together.
fn together(spec: &WorkloadSpec) -> impl Iterator<Item = &PodSetSpec> {
    spec.pod_sets.iter().filter(|set| set.pods_min > 0)
}

/// For each of them the demand of a pod, and their number.
fn asked(cluster: &Cluster, spec: &WorkloadSpec) -> Vec<(Resources, u32)> {
    together(spec).map(|set| (demand(cluster, smallest_request(spec, set)), wanted(set))).collect()
}

/// Capacity of all nodes, including GPUs that are out of service: these are expected back.
fn capacity(cluster: &Cluster) -> Resources {
    let gpus = |node: &Node| node.gpus.iter().map(|gpu| gpu.capacity_millis()).sum();
    let whole = |(_, node)| Resources { gpu_millis: gpus(node), ..node.capacity };
    cluster.nodes().iter().map(whole).sum()
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
    let asked = asked(cluster, spec);
    let requested = total(&asked, kind);
    let one_by_one: u32 = together(spec).map(|set| fitting_when_empty(cluster, spec, set)).sum();
    Pending::NotCounted {
        queue: cluster.queue_name(spec.queue),
        kind,
        left_out: requested,
        requested,
        fitting: one_by_one.min(model::fitting_at_most(capacity(cluster), &asked)),
        sets: asked.len(),
        pods: asked.iter().map(|(_, pods)| pods).sum(),
    }
}
