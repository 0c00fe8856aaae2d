//! Values of an advised change on the wire. Does not know about: how it was found, and how it is
//! made.

use std::collections::BTreeMap;

use api_types::{AdvisedChange, Raise};
use reasons::diagnosis as found;
use reasons::diagnosis::Change;

use super::diagnosis_ids::{Ids, resource};

/// The values of a change.
pub(crate) fn change_of(change: &Change, ids: &Ids) -> AdvisedChange {
    let taint = |taint: &model::Taint| super::cluster::taint(taint);
    let raises = |raises: &[found::Raise]| raises.iter().map(raise).collect();
    match change {
        Change::Gpus { gpus } => AdvisedChange::FewerGpus { gpus: *gpus },
        Change::Share { millis } => AdvisedChange::SmallerShare { gpu_millis: *millis },
        Change::GpuMemory { bytes } => AdvisedChange::LessGpuMemory { gpu_memory_bytes: *bytes },
        Change::PartOfGpu { bytes } => AdvisedChange::PartOfGpu { gpu_memory_bytes: *bytes },
        Change::Pods { role, pods, .. } => AdvisedChange::FewerPods {
            set: Some(role.clone()).filter(|role| !role.is_empty()),
            pods: *pods,
        },
        Change::Cpu { millis } => AdvisedChange::LessCpu { cpu_millis: *millis },
        Change::Memory { bytes } => AdvisedChange::LessMemory { memory_bytes: *bytes },
        Change::Elastic => AdvisedChange::Elastic {},
        Change::Preemptible => AdvisedChange::Preemptible {},
        Change::Priority { class, .. } => {
            AdvisedChange::Priority { priority_class: (*class).to_owned() }
        }
        Change::WithoutSelector { key } => AdvisedChange::WithoutSelector { label: key.clone() },
        Change::WithoutAffinity { demands } => {
            AdvisedChange::WithoutAffinity { affinity: demands.clone() }
        }
        Change::WithoutPodAffinity => AdvisedChange::WithoutPodAffinity {},
        Change::NodePool { from, to } => {
            AdvisedChange::NodePool { node_pool: to.clone(), instead_of: from.clone() }
        }
        Change::Tolerate { taint: of } => AdvisedChange::Tolerate { taint: taint(of) },
        Change::Ungate => AdvisedChange::Ungate {},
        Change::Wait { until } => AdvisedChange::Wait { until: (*until).into() },
        Change::End { workload } => AdvisedChange::End { workload: ids.named(workload) },
        Change::Quota(of) => AdvisedChange::Quota { raises: raises(of) },
        Change::Limit(of) => AdvisedChange::Limit { raises: raises(of) },
        Change::Uncordon { node } => AdvisedChange::Uncordon { node: node.clone() },
        Change::Untaint { node, taint: of } => {
            AdvisedChange::Untaint { node: node.clone(), taint: taint(of) }
        }
        Change::Label { node, key, value } => AdvisedChange::Label {
            node: node.clone(),
            labels: BTreeMap::from([(key.clone(), value.clone())]),
        },
        Change::Nodes { like, count } => {
            AdvisedChange::MoreNodes { node: like.clone(), nodes: *count }
        }
    }
}

fn raise(of: &found::Raise) -> Raise {
    let found::Raise { unit, pool, kind, from, to, .. } = of;
    Raise {
        name: unit.clone(),
        node_pool: pool.clone(),
        resource: resource(*kind),
        from: *from,
        to: *to,
    }
}
