//! One change that might let a workload start. Owns: making it on a copy of the cluster. Does not
//! know about: which changes are worth a try.

use model::{
    CORDONED, Cluster, Constraints, GpuRequest, Node, NodeId, NodeSpec, PodBinding, Share, Taint,
    Toleration, WorkloadId, WorkloadSpec, is_host,
};
use units::Instant;

use super::{Change, Raise};

/// Makes the change to the cluster. Returns the id of the workload in it, and the time of the
/// decision; `None` if the change cannot be made.
pub fn apply_change(
    change: &Change,
    cluster: &mut Cluster,
    id: WorkloadId,
    now: Instant,
) -> Option<(WorkloadId, Instant)> {
    // A changed request is a new submission, which is the youngest.
    let seq = cluster.workloads().iter().map(|(_, other)| other.spec.seq).max();
    let youngest = (seq.unwrap_or(0) + 1, now);
    let mut set = |change: &dyn Fn(&mut WorkloadSpec)| {
        respec(cluster, id, &|spec| {
            change(spec);
            (spec.seq, spec.created_at) = youngest;
        })
    };
    let id = match change {
        Change::Gpus { gpus } => set(&|spec| match &mut spec.pod_sets[0].request.gpu {
            GpuRequest::Share { devices, .. } | GpuRequest::Memory { devices, .. } => {
                *devices = *gpus;
            }
            whole => *whole = GpuRequest::Whole(*gpus),
        })?,
        Change::Share { .. } | Change::GpuMemory { .. } => set(&|spec| smaller(change, spec))?,
        Change::PartOfGpu { bytes } => set(&|spec| {
            spec.pod_sets[0].request.gpu = GpuRequest::Memory { devices: 1, bytes: *bytes };
        })?,
        Change::Pods { set: at, pods, .. } => set(&|spec| {
            let of = &mut spec.pod_sets[*at];
            (of.pods, of.pods_min) = (*pods, of.pods_min.min(*pods));
        })?,
        Change::Cpu { millis } => set(&|spec| spec.pod_sets[0].request.cpu_millis = *millis)?,
        Change::Memory { bytes } => set(&|spec| spec.pod_sets[0].request.memory_bytes = *bytes)?,
        Change::Elastic => set(&|spec| spec.elastic = true)?,
        Change::Preemptible => respec(cluster, id, &|spec| spec.preemptible = true)?,
        Change::Priority { priority, .. } => {
            respec(cluster, id, &|spec| spec.priority = *priority)?
        }
        Change::WithoutSelector { key } => constrain(&mut set, |constraints| {
            constraints.selector.remove(key);
        })?,
        Change::NodePool { to, .. } => constrain(&mut set, |constraints| {
            constraints.pools = vec![to.clone()];
        })?,
        Change::WithoutPodAffinity => constrain(&mut set, |constraints| {
            constraints.pod_affinity.clear();
            constraints.pod_anti_affinity.clear();
        })?,
        Change::WithoutAffinity { .. } => {
            constrain(&mut set, |constraints| constraints.required.clear())?
        }
        Change::Tolerate { taint } => constrain(&mut set, |constraints| {
            constraints.tolerations.push(Toleration {
                key: Some(taint.key.clone()),
                value: Some(taint.value.clone()),
                effect: Some(taint.effect),
            });
        })?,
        Change::Ungate => ungated(cluster, id)?,
        Change::Wait { until } => return Some((id, *until)),
        _ => {
            apply_to_others(change, cluster)?;
            id
        }
    };
    Some((id, now))
}

/// Removes the gates of its pods; `None` if it has none.
fn ungated(cluster: &mut Cluster, id: WorkloadId) -> Option<WorkloadId> {
    let pods = cluster.workloads()[id].pods.clone();
    let gated: Vec<_> = pods.into_iter().filter(|pod| cluster.gated().contains(pod)).collect();
    gated.iter().for_each(|pod| cluster.set_gated(*pod, false));
    (!gated.is_empty()).then_some(id)
}

/// Raises the quotas above a queue that are sums of the quotas below them.
fn raise_sums(cluster: &mut Cluster, raise: &Raise) -> Option<()> {
    let above: Vec<_> = cluster.lineage(raise.id).skip(1).collect();
    for id in above {
        let mut share: Share = cluster.queues()[id].share;
        if !share.summed.of(raise.kind) {
            break;
        }
        let quota = share.quota[raise.kind].saturating_add(raise.to.saturating_sub(raise.from));
        share.quota[raise.kind] = quota.min(share.limit[raise.kind]);
        cluster.set_share(id, share).ok()?;
    }
    Some(())
}

fn smaller(change: &Change, spec: &mut WorkloadSpec) {
    match (change, &mut spec.pod_sets[0].request.gpu) {
        (Change::Share { millis: to }, GpuRequest::Share { millis, .. }) => *millis = *to,
        (Change::GpuMemory { bytes: to }, GpuRequest::Memory { bytes, .. }) => *bytes = *to,
        _ => {}
    }
}

/// Removes the taints of a node that are of a kind.
fn untaint(cluster: &mut Cluster, id: NodeId, is_of_kind: impl Fn(&Taint) -> bool) {
    let row = &cluster.nodes()[id];
    let (labels, mut taints) = (row.labels.clone(), row.taints.clone());
    taints.retain(|taint| !is_of_kind(taint));
    cluster.set_labels(id, labels, taints);
}

fn apply_to_others(change: &Change, cluster: &mut Cluster) -> Option<()> {
    match change {
        Change::End { workload } => {
            for pod in cluster.workloads()[workload.id].pods.clone() {
                cluster.set_wants(pod, false);
                cluster.set_binding(pod, PodBinding::default());
            }
        }
        Change::Quota(raises) | Change::Limit(raises) => {
            for raise in raises {
                let mut share: Share = cluster.queues()[raise.id].share;
                if matches!(change, Change::Quota(_)) {
                    share.quota[raise.kind] = raise.to;
                    raise_sums(cluster, raise)?;
                } else {
                    share.limit[raise.kind] = raise.to;
                }
                cluster.set_share(raise.id, share).ok()?;
            }
        }
        Change::Uncordon { node } => {
            let id = named(cluster, node)?;
            cluster.set_schedulable(id, true);
            untaint(cluster, id, |taint| taint.key == CORDONED);
        }
        Change::Label { node, key, value } => {
            let id = named(cluster, node)?;
            let row = &cluster.nodes()[id];
            let (mut labels, taints) = (row.labels.clone(), row.taints.clone());
            labels.insert(key.clone(), value.clone());
            cluster.set_labels(id, labels, taints);
        }
        Change::Untaint { node, taint } => {
            let id = named(cluster, node)?;
            untaint(cluster, id, |other| other == taint);
        }
        Change::Nodes { like, count } => {
            let spec = spec_of(&cluster.nodes()[named(cluster, like)?]);
            for number in 0..*count {
                let (name, mut labels) = (format!("{like}+{number}"), spec.labels.clone());
                // A label with a different value on each node is not copied.
                let own = labels.iter_mut().filter(|(label, _)| is_host(label));
                own.for_each(|(_, value)| value.clone_from(&name));
                cluster.add_node(NodeSpec { name, labels, ..spec.clone() });
            }
        }
        _ => {}
    }
    Some(())
}

fn named(cluster: &Cluster, name: &str) -> Option<NodeId> {
    cluster.nodes().iter().find(|(_, node)| node.name == name).map(|(id, _)| id)
}

/// The specification of a node like this one.
fn spec_of(node: &Node) -> NodeSpec {
    NodeSpec { name: String::new(), ..node.as_built() }
}

/// Submits a workload again with a changed specification.
type Again<'a> = dyn FnMut(&dyn Fn(&mut WorkloadSpec)) -> Option<WorkloadId> + 'a;

fn constrain(set: &mut Again<'_>, change: impl Fn(&mut Constraints)) -> Option<WorkloadId> {
    set(&|spec| spec.pod_sets.iter_mut().for_each(|set| change(&mut set.constraints)))
}

/// Replaces the specification of a workload. `None` if some of its pods are placed or will not run.
fn respec(
    cluster: &mut Cluster,
    id: WorkloadId,
    change: &dyn Fn(&mut WorkloadSpec),
) -> Option<WorkloadId> {
    let before = cluster.workloads()[id].clone();
    if !before.pods.iter().all(|&pod| {
        let pod = &cluster.pods()[pod];
        pod.waits() && pod.binding == PodBinding::default()
    }) {
        return None;
    }
    cluster.remove_workload(id).ok()?;
    let mut spec = before.spec;
    change(&mut spec);
    let id = cluster.add_workload(spec).ok()?;
    cluster.set_not_before(id, before.not_before);
    if let Some(at) = before.last_eviction {
        cluster.set_evicted(id, at);
    }
    for pod in cluster.workloads()[id].pods.clone() {
        cluster.set_wants(pod, true);
    }
    Some(id)
}
