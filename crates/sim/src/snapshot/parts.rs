//! The parts of a workload in a scenario. Owns: the form in which a workload is written.

use model::{Cluster, PodSetSpec, WorkloadSpec};

use crate::scenario::amount::{Count, Size};
use crate::scenario::{self as wire, At, GpuAsk, Workload};

/// Writes the pod sets, groups and topologies of a workload: one set without a name in the
/// workload's own keys, others in a list.
pub(super) fn write(cluster: &Cluster, spec: &WorkloadSpec, workload: &mut Workload) {
    workload.topology = spec.topology.map(|constraint| topology(cluster, constraint));
    let sets: Vec<_> = spec.pod_sets.iter().map(|set| pod_set(cluster, spec, set)).collect();
    if spec.groups.is_empty() {
        workload.set_pods(sets);
        return;
    }
    workload.pod_sets = sets.into_iter().map(At::from).collect();
    let group = |group: &model::GroupSpec| wire::Group {
        name: group.name.clone(),
        parent: group.parent.map(|at| spec.groups[at].name.clone()),
        children_min: group.children_min,
        topology: group.topology.map(|constraint| topology(cluster, constraint)),
    };
    workload.groups = spec.groups.iter().map(|row| At::from(group(row))).collect();
    workload.children_min = spec.children_min;
}

/// The name of a pod set, with its group if other sets have that name.
fn name(spec: &WorkloadSpec, set: &PodSetSpec) -> String {
    let is_alone = spec.pod_sets.iter().filter(|other| other.name == set.name).count() == 1;
    match set.group.filter(|_| !is_alone) {
        Some(group) => format!("{}-{}", spec.groups[group].name, set.name),
        None => set.name.clone(),
    }
}

fn pod_set(cluster: &Cluster, spec: &WorkloadSpec, set: &PodSetSpec) -> wire::PodSet {
    let mut told = wire::PodSet {
        pods: set.pods,
        pods_min: Some(set.pods_min),
        gpu: GpuAsk(set.request.gpu),
        cpu: Some(Count::new(set.request.cpu_millis)),
        memory: Some(Size::new(set.request.memory_bytes)),
        task_priority: set.task_priority,
        group: set.group.map(|at| spec.groups[at].name.clone()),
        topology: set.topology.map(|constraint| topology(cluster, constraint)),
        ..wire::PodSet::named(&name(spec, set))
    };
    told.confine(&set.constraints);
    told
}

fn topology(cluster: &Cluster, of: model::TopologyConstraint) -> wire::TopologyConstraint {
    let topology = cluster.topology(of.topology);
    let label = |level: usize| topology.levels[level].clone();
    wire::TopologyConstraint {
        name: topology.name.clone(),
        required: of.required.map(label),
        preferred: of.preferred.map(label),
    }
}
