//! One change that might let a workload start. Owns: making it on a copy of the cluster.

use model::{
    Cluster, Constraints, GpuRequest, Node, NodeId, NodeSpec, PodBinding, QueueId, Share, Taint,
    Toleration, WorkloadId, WorkloadSpec,
};
use units::{Instant, Kind};

use reasons::WorkloadRef;

/// A change to the workload, to others or to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Fewer whole GPUs for each pod.
    Gpus {
        /// So many.
        gpus: u32,
    },
    /// A smaller share of a GPU.
    Share {
        /// Thousandths.
        millis: u64,
    },
    /// Less GPU memory.
    GpuMemory {
        /// Bytes.
        bytes: u64,
    },
    /// Fewer pods that start together.
    Pods {
        /// So many.
        pods: u32,
    },
    /// Fewer cores for each pod.
    Cpu {
        /// Thousandths.
        millis: u64,
    },
    /// Less main memory for each pod.
    Memory {
        /// Bytes.
        bytes: u64,
    },
    /// Let its size be halved until it fits.
    Elastic,
    /// Let it be preempted.
    Preemptible,
    /// A higher priority, of those that have a name.
    Priority {
        /// Its name.
        class: &'static str,
        /// What it is worth.
        priority: u32,
    },
    /// Do without a label.
    WithoutSelector {
        /// Which.
        key: String,
    },
    /// Do without the required affinity.
    WithoutAffinity {
        /// What it demands, in words.
        demands: String,
    },
    /// Without required pod affinity and anti-affinity.
    WithoutPodAffinity,
    /// Tolerate a taint.
    Tolerate {
        /// Which.
        taint: Taint,
    },
    /// Wait; then the guaranteed run time of a victim is over, or its own delay.
    Wait {
        /// Until then.
        until: Instant,
    },
    /// That this one ends.
    End {
        /// Who.
        workload: WorkloadRef,
    },
    /// A larger quota.
    Quota(Vec<Raise>),
    /// A larger limit.
    Limit(Vec<Raise>),
    /// Open a node that is cordoned.
    Uncordon {
        /// Its name.
        node: String,
    },
    /// More nodes.
    Nodes {
        /// Like this one.
        like: String,
        /// So many.
        count: u32,
    },
}

/// A larger quota or limit of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raise {
    /// Which queue.
    pub queue: String,
    /// Its own name, if that is its share in the node pool `default` or in all.
    pub name: Option<String>,
    /// Whether it is a project, and not one above projects.
    pub is_project: bool,
    pub(super) id: QueueId,
    /// Of what.
    pub kind: Kind,
    /// What it is.
    pub from: u64,
    /// What it should be.
    pub to: u64,
}

impl Change {
    /// Makes the change to the cluster. Returns the workload as it is known then, and the time to
    /// decide at; none if the change cannot be made.
    pub fn apply(
        &self,
        cluster: &mut Cluster,
        id: WorkloadId,
        now: Instant,
    ) -> Option<(WorkloadId, Instant)> {
        // The request changes by another submission, which is the youngest.
        let seq = cluster.workloads().iter().map(|(_, other)| other.spec.seq).max();
        let youngest = (seq.unwrap_or(0) + 1, now);
        let mut set = |change: &dyn Fn(&mut WorkloadSpec)| {
            respec(cluster, id, &|spec| {
                change(spec);
                (spec.seq, spec.created_at) = youngest;
            })
        };
        let id = match self {
            Self::Gpus { gpus } => {
                set(&|spec| spec.pod_sets[0].request.gpu = GpuRequest::Whole(*gpus))?
            }
            Self::Share { .. } | Self::GpuMemory { .. } => set(&|spec| self.smaller(spec))?,
            Self::Pods { pods } => set(&|spec| {
                let of = &mut spec.pod_sets[0];
                (of.pods, of.pods_min) = (*pods, of.pods_min.min(*pods));
            })?,
            Self::Cpu { millis } => set(&|spec| spec.pod_sets[0].request.cpu_millis = *millis)?,
            Self::Memory { bytes } => set(&|spec| spec.pod_sets[0].request.memory_bytes = *bytes)?,
            Self::Elastic => set(&|spec| spec.elastic = true)?,
            Self::Preemptible => respec(cluster, id, &|spec| spec.preemptible = true)?,
            Self::Priority { priority, .. } => {
                respec(cluster, id, &|spec| spec.priority = *priority)?
            }
            Self::WithoutSelector { key } => constrain(&mut set, |constraints| {
                constraints.selector.remove(key);
            })?,
            Self::WithoutPodAffinity => constrain(&mut set, |constraints| {
                constraints.pod_affinity.clear();
                constraints.pod_anti_affinity.clear();
            })?,
            Self::WithoutAffinity { .. } => {
                constrain(&mut set, |constraints| constraints.required.clear())?
            }
            Self::Tolerate { taint } => constrain(&mut set, |constraints| {
                constraints.tolerations.push(Toleration {
                    key: Some(taint.key.clone()),
                    value: Some(taint.value.clone()),
                    effect: Some(taint.effect),
                });
            })?,
            Self::Wait { until } => return Some((id, *until)),
            _ => {
                self.apply_to_others(cluster)?;
                id
            }
        };
        Some((id, now))
    }

    fn smaller(&self, spec: &mut WorkloadSpec) {
        match (self, &mut spec.pod_sets[0].request.gpu) {
            (Self::Share { millis: to }, GpuRequest::Share { millis, .. }) => *millis = *to,
            (Self::GpuMemory { bytes: to }, GpuRequest::Memory { bytes, .. }) => *bytes = *to,
            _ => {}
        }
    }

    fn apply_to_others(&self, cluster: &mut Cluster) -> Option<()> {
        match self {
            Self::End { workload } => {
                for pod in cluster.workloads()[workload.id].pods.clone() {
                    cluster.set_wants(pod, false);
                    cluster.set_binding(pod, PodBinding::default());
                }
            }
            Self::Quota(raises) | Self::Limit(raises) => {
                for raise in raises {
                    let mut share: Share = cluster.queues()[raise.id].share;
                    if matches!(self, Self::Quota(_)) {
                        share.quota[raise.kind] = raise.to;
                    } else {
                        share.limit[raise.kind] = raise.to;
                    }
                    cluster.set_share(raise.id, share).ok()?;
                }
            }
            Self::Uncordon { node } => {
                let node = named(cluster, node)?;
                cluster.set_schedulable(node, true);
            }
            Self::Nodes { like, count } => {
                let spec = spec_of(&cluster.nodes()[named(cluster, like)?]);
                for number in 0..*count {
                    let name = format!("{like}+{number}");
                    cluster.add_node(NodeSpec { name, ..spec.clone() });
                }
            }
            _ => {}
        }
        Some(())
    }
}

fn named(cluster: &Cluster, name: &str) -> Option<NodeId> {
    cluster.nodes().iter().find(|(_, node)| node.name == name).map(|(id, _)| id)
}

/// A node like this one.
fn spec_of(node: &Node) -> NodeSpec {
    let (gpus, mig) = node.as_built();
    NodeSpec {
        mig,
        pods_max: node.pods_max,
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        ..NodeSpec::new("", gpus, node.capacity.cpu_millis, node.capacity.memory_bytes)
    }
}

/// Submits a workload once more, changed by this.
type Again<'a> = dyn FnMut(&dyn Fn(&mut WorkloadSpec)) -> Option<WorkloadId> + 'a;

fn constrain(set: &mut Again<'_>, change: impl Fn(&mut Constraints)) -> Option<WorkloadId> {
    set(&|spec| spec.pod_sets.iter_mut().for_each(|set| change(&mut set.constraints)))
}

/// The workload with another specification. None for one of which some pods have a place or will
/// not run.
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
