//! The parts of a workload as a scenario has them. Owns: which form a workload is written in.

use model::{Cluster, PodSetSpec, WorkloadSpec};

use crate::scenario::amount::{Count, Size};
use crate::scenario::{self as wire, At, GpuAsk, Workload};

/// Writes the pod sets, groups and topologies of a workload: one set without a name in the
/// workload's own keys, others in a list.
pub(super) fn write(cluster: &Cluster, spec: &WorkloadSpec, workload: &mut Workload) {
    workload.topology = spec.topology.map(|constraint| topology(cluster, constraint));
    let mut sets: Vec<_> = spec.pod_sets.iter().map(|set| pod_set(cluster, spec, set)).collect();
    if let ([only], []) = (&mut sets[..], &spec.groups[..])
        && only.name.is_empty()
    {
        let only = std::mem::take(&mut sets).swap_remove(0);
        workload.gpu = Some(only.gpu);
        (workload.cpu, workload.memory) = (only.cpu, only.memory);
        (workload.pods, workload.pods_min) = (Some(only.pods), only.pods_min);
        workload.selector = only.selector;
        workload.affinity = only.affinity;
        workload.tolerations = only.tolerations;
        workload.labels = only.labels;
        workload.pod_affinity = only.pod_affinity;
        workload.pod_anti_affinity = only.pod_anti_affinity;
        workload.topology = workload.topology.take().or(only.topology);
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

fn pod_set(cluster: &Cluster, spec: &WorkloadSpec, set: &PodSetSpec) -> wire::PodSet {
    let toleration = |toleration: &model::Toleration| wire::Toleration {
        key: toleration.key.clone(),
        value: toleration.value.clone(),
        effect: toleration.effect.map(effect),
    };
    let constraints = &set.constraints;
    let affinity =
        |required, anti| wire::PodAffinity::of(required, &constraints.pod_preferences, anti);
    wire::PodSet {
        name: set.name.clone(),
        pods: set.pods,
        pods_min: Some(set.pods_min),
        gpu: GpuAsk(set.request.gpu),
        cpu: Some(Count::new(set.request.cpu_millis)),
        memory: Some(Size::new(set.request.memory_bytes)),
        selector: set.constraints.selector.clone(),
        affinity: wire::NodeAffinity::of(&set.constraints),
        tolerations: set.constraints.tolerations.iter().map(toleration).collect(),
        labels: constraints.labels.clone(),
        pod_affinity: affinity(&constraints.pod_affinity, false),
        pod_anti_affinity: affinity(&constraints.pod_anti_affinity, true),
        task_priority: set.task_priority,
        group: set.group.map(|at| spec.groups[at].name.clone()),
        topology: set.topology.map(|constraint| topology(cluster, constraint)),
    }
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

pub(super) fn effect(effect: model::Effect) -> wire::Effect {
    match effect {
        model::Effect::NoSchedule => wire::Effect::NoSchedule,
        model::Effect::PreferNoSchedule => wire::Effect::PreferNoSchedule,
        model::Effect::NoExecute => wire::Effect::NoExecute,
    }
}
