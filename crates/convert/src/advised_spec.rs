//! The specification of a workload with an advised change of its request.

use api_types::AdvisedChange;
use spec::{GpuRequest, PodSet, Priority, WorkloadSpec};

/// The specification with a change of its request, of that of the first set of pods; `None` if it
/// has no such request.
pub(super) fn resubmitted(change: &AdvisedChange, of: &WorkloadSpec) -> Option<WorkloadSpec> {
    let mut spec = of.clone();
    let first = &mut spec.pods.pod;
    match change {
        AdvisedChange::FewerGpus { gpus } => {
            first.gpu = match first.gpu {
                GpuRequest::Shared(shared) => {
                    GpuRequest::Shared(spec::SharedGpus { devices: *gpus, ..shared })
                }
                GpuRequest::Whole(_) => GpuRequest::Whole(*gpus),
                GpuRequest::Mig(_) => return None,
            };
        }
        AdvisedChange::SmallerShare { gpu_millis } => {
            let GpuRequest::Shared(shared) = &mut first.gpu else { return None };
            shared.compute.as_mut()?.request = *gpu_millis;
        }
        AdvisedChange::LessGpuMemory { gpu_memory_bytes } => {
            let GpuRequest::Shared(shared) = &mut first.gpu else { return None };
            shared.memory.as_mut()?.request = *gpu_memory_bytes;
        }
        AdvisedChange::PartOfGpu { gpu_memory_bytes } => {
            first.gpu = GpuRequest::memory(1, *gpu_memory_bytes);
        }
        AdvisedChange::FewerPods { set, pods } => {
            // A set that is the only one needs no name.
            let is_meant = |one: &&mut PodSet| set.as_ref().is_none_or(|set| *set == one.role);
            let found = sets(&mut spec).find(is_meant)?;
            *found = fewer(found.clone(), *pods);
        }
        AdvisedChange::LessCpu { cpu_millis } => first.cpu_millis = *cpu_millis,
        AdvisedChange::LessMemory { memory_bytes } => first.memory_bytes = *memory_bytes,
        AdvisedChange::Elastic {} => spec.elastic = true,
        AdvisedChange::WithoutAffinity { .. } => {
            spec.node_types.clear();
            sets(&mut spec).for_each(|set| set.pod.place.affinity.clear());
        }
        AdvisedChange::WithoutPodAffinity {} => sets(&mut spec).for_each(|set| {
            let place = &mut set.pod.place;
            place.pod_affinity.clear();
            place.pod_anti_affinity.clear();
            place.colocation = place.colocation.take().filter(|near| !near.required);
        }),
        AdvisedChange::NodePool { node_pool, .. } => spec.node_pools = vec![node_pool.clone()],
        AdvisedChange::Tolerate { taint } => {
            let toleration = model::Toleration {
                key: Some(taint.key.clone()),
                value: Some(taint.value.clone()),
                effect: Some(super::cluster::effect(taint.effect)),
            };
            sets(&mut spec).for_each(|set| set.pod.place.tolerations.push(toleration.clone()));
        }
        AdvisedChange::Preemptible {} => spec.preemptible = true,
        AdvisedChange::Priority { priority_class } => {
            spec.priority = Priority::named(priority_class).ok()?;
        }
        AdvisedChange::Ungate {} => spec.gates.clear(),
        _ => return None,
    }
    Some(spec)
}

fn sets(spec: &mut WorkloadSpec) -> impl Iterator<Item = &mut PodSet> {
    std::iter::once(&mut spec.pods).chain(&mut spec.more)
}

/// A set with so many pods at a time.
fn fewer(set: PodSet, pods: u32) -> PodSet {
    match set.parallelism {
        Some(_) => PodSet { parallelism: Some(pods), ..set },
        None => PodSet { pods, pods_min: set.pods_min.min(pods), ..set },
    }
}
