//! One change that might let a workload start. Owns: the possible changes, and the sentence of
//! each. Does not know about: making the change.

use std::collections::BTreeSet;

use model::{CORDONED, Cluster, Constraints, Effect, Mismatch, Node, QueueId, Taint};
use units::{Instant, Kind, format_bytes, format_millis};

use super::{cores, span};
use crate::{WorkloadRef, number, of};

/// Domains of labels that describe the hardware or the system of a node, and are not set by hand.
const FACTS: [&str; 2] = ["kubernetes.io/", "nvidia.com/"];

/// Beginnings of the keys of taints by which a cluster, its autoscaler or its network tells the
/// state of a node.
const STATES: [&str; 6] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
    "node.cilium.io/",
];

/// A change to the workload, to others or to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Fewer whole GPUs for each pod.
    Gpus {
        /// Number of GPUs.
        gpus: u32,
    },
    /// A smaller share of a GPU.
    Share {
        /// Thousandths of a GPU.
        millis: u64,
    },
    /// Less GPU memory.
    GpuMemory {
        /// Bytes.
        bytes: u64,
    },
    /// A part of a GPU, in place of a MIG instance.
    PartOfGpu {
        /// Bytes of GPU memory.
        bytes: u64,
    },
    /// Fewer pods of a set that start together.
    Pods {
        /// Index of the set.
        set: usize,
        /// Its name; empty if there is only one.
        role: String,
        /// Number of pods.
        pods: u32,
    },
    /// Fewer cores for each pod.
    Cpu {
        /// Thousandths of a core.
        millis: u64,
    },
    /// Less main memory for each pod.
    Memory {
        /// Bytes.
        bytes: u64,
    },
    /// Halving of its size until it fits.
    Elastic,
    /// Permission to preempt it.
    Preemptible,
    /// A higher priority with a named class.
    Priority {
        /// Name of the class.
        class: &'static str,
        /// Value of the class.
        priority: u32,
    },
    /// Removal of a required label.
    WithoutSelector {
        /// Key of the label.
        key: String,
    },
    /// Removal of the required affinity.
    WithoutAffinity {
        /// The required affinity in words.
        demands: String,
    },
    /// Removal of required pod affinity and anti-affinity.
    WithoutPodAffinity,
    /// Another node pool than the named ones.
    NodePool {
        /// Names of its pools now.
        from: Vec<String>,
        /// Name of the pool to use instead.
        to: String,
    },
    /// A toleration of a taint.
    Tolerate {
        /// The taint.
        taint: Taint,
    },
    /// Removal of its scheduling gates.
    Ungate,
    /// Waiting for the end of the guaranteed run time of a victim, or of its own preemption delay.
    Wait {
        /// The end of this time.
        until: Instant,
    },
    /// The end of another workload.
    End {
        /// The workload.
        workload: WorkloadRef,
    },
    /// A larger quota of some queues.
    Quota(Vec<Raise>),
    /// A larger limit of some queues.
    Limit(Vec<Raise>),
    /// Uncordoning of a node.
    Uncordon {
        /// Name of the node.
        node: String,
    },
    /// Removal of a taint from a node.
    Untaint {
        /// Name of the node.
        node: String,
        /// The taint.
        taint: Taint,
    },
    /// A label of a node that has none with this key.
    Label {
        /// Name of the node.
        node: String,
        /// Key of the label.
        key: String,
        /// Value that the workload requires.
        value: String,
    },
    /// More nodes.
    Nodes {
        /// Name of the node that they equal.
        like: String,
        /// Number of nodes.
        count: u32,
    },
}

impl Change {
    /// The label that each node lacks for some of these constraints, if it lacks no more than one,
    /// nodes with most free GPUs first. Labels that tell a fact about a node are left out.
    #[must_use]
    pub fn missing_labels(cluster: &Cluster, constraints: &[Constraints]) -> Vec<Self> {
        let lacking = |node: &Node| {
            constraints.iter().find_map(|of| of.missing_label(&node.labels, &node.taints))
        };
        let is_given = |key: &str| !FACTS.iter().any(|domain| key.contains(domain));
        let nodes = cluster.nodes().iter().filter_map(|(_, node)| {
            let (key, value) = lacking(node).filter(|(key, _)| is_given(key))?;
            let free = std::cmp::Reverse(node.free(true).gpu_millis);
            Some((free, Self::Label { node: node.name.clone(), key, value }))
        });
        let mut nodes: Vec<_> = nodes.collect();
        nodes.sort_by_key(|(free, _)| *free);
        nodes.into_iter().map(|(_, label)| label).collect()
    }

    /// Tolerations of the taints that keep a workload away, and the removal of each that is the
    /// only one of its node. The cluster sets those of the state of a node again, so they are left
    /// out; a cordon is removed as such.
    #[must_use]
    pub fn of_taints(cluster: &Cluster, constraints: &[Constraints]) -> [Vec<Self>; 2] {
        let tainted = cluster.nodes().iter().filter(|(_, node)| {
            let check = |of: &Constraints| of.check(&node.labels, &node.taints);
            let is_by_taints = |of| matches!(check(of), Err(Mismatch::Taint | Mismatch::Cordoned));
            constraints.iter().any(is_by_taints)
        });
        let hard = |node: &Node| -> Vec<Taint> {
            let taints = node.taints.iter();
            let taints = taints.filter(|taint| taint.effect != Effect::PreferNoSchedule);
            let is_tolerated = |taint: &&Taint| constraints.iter().all(|of| of.tolerates(taint));
            taints.filter(|taint| !is_tolerated(taint)).cloned().collect()
        };
        let on_nodes: Vec<_> = tainted.map(|(_, node)| (node.name.clone(), hard(node))).collect();
        let is_state = |taint: &Taint| STATES.iter().any(|domain| taint.key.starts_with(domain));
        let all: BTreeSet<_> = on_nodes.iter().flat_map(|(_, taints)| taints).cloned().collect();
        let alone = on_nodes.into_iter().filter_map(|(node, taints)| match &taints[..] {
            [taint] if taint.key == CORDONED => Some(Self::Uncordon { node }),
            [taint] if is_state(taint) => None,
            [taint] => Some(Self::Untaint { node, taint: taint.clone() }),
            _ => None,
        });
        let tolerated = all.into_iter().filter(|taint| !is_state(taint));
        [tolerated.map(|taint| Self::Tolerate { taint }).collect(), alone.collect()]
    }

    /// Short stable name of the kind of change.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gpus { .. } => "fewer_gpus",
            Self::Share { .. } => "smaller_share",
            Self::GpuMemory { .. } => "less_gpu_memory",
            Self::PartOfGpu { .. } => "part_of_gpu",
            Self::Pods { .. } => "fewer_pods",
            Self::Cpu { .. } => "less_cpu",
            Self::Memory { .. } => "less_memory",
            Self::Elastic => "elastic",
            Self::Preemptible => "preemptible",
            Self::Priority { .. } => "priority",
            Self::WithoutSelector { .. } => "without_selector",
            Self::WithoutAffinity { .. } => "without_affinity",
            Self::WithoutPodAffinity => "without_pod_affinity",
            Self::NodePool { .. } => "node_pool",
            Self::Tolerate { .. } => "tolerate",
            Self::Ungate => "ungate",
            Self::Wait { .. } => "wait",
            Self::End { .. } => "end",
            Self::Quota(_) => "quota",
            Self::Limit(_) => "limit",
            Self::Uncordon { .. } => "uncordon",
            Self::Untaint { .. } => "untaint",
            Self::Label { .. } => "label",
            Self::Nodes { .. } => "more_nodes",
        }
    }

    /// The new value, or what is removed; a taint as `KEY=VALUE:EFFECT`.
    #[must_use]
    pub fn to(&self) -> Option<String> {
        match self {
            Self::Gpus { gpus } => Some(gpus.to_string()),
            Self::Share { millis } | Self::Cpu { millis } => Some(format_millis(*millis)),
            Self::GpuMemory { bytes } | Self::PartOfGpu { bytes } | Self::Memory { bytes } => {
                Some(format_bytes(*bytes))
            }
            Self::Pods { pods, .. } => Some(pods.to_string()),
            Self::NodePool { to, .. } => Some(to.clone()),
            Self::Priority { class, .. } => Some((*class).to_owned()),
            Self::WithoutSelector { key } => Some(key.clone()),
            Self::WithoutAffinity { demands } => Some(demands.clone()),
            Self::Tolerate { taint } | Self::Untaint { taint, .. } => Some(taint.to_string()),
            Self::Label { key, value, .. } => Some(format!("{key}={value}")),
            Self::Nodes { count, .. } => Some(count.to_string()),
            Self::Elastic
            | Self::Preemptible
            | Self::WithoutPodAffinity
            | Self::Ungate
            | Self::Wait { .. }
            | Self::End { .. }
            | Self::Quota(_)
            | Self::Limit(_)
            | Self::Uncordon { .. } => None,
        }
    }

    /// Text of the change in one sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        match self {
            Self::Gpus { gpus } => {
                format!("ask for at most {}", of(Kind::Gpu, u64::from(*gpus) * units::GPU_MILLIS))
            }
            Self::Share { millis } => {
                format!("ask for at most {} of a GPU", format_millis(*millis))
            }
            Self::GpuMemory { bytes } => {
                format!("ask for at most {} of GPU memory", format_bytes(*bytes))
            }
            Self::PartOfGpu { bytes } => format!(
                "ask for {} of a GPU's memory instead of a MIG instance",
                format_bytes(*bytes)
            ),
            Self::Pods { role, pods, .. } => {
                let role = if role.is_empty() { String::new() } else { format!("{role} ") };
                let plural = if *pods == 1 { "" } else { "s" };
                format!("ask for at most {pods} {role}pod{plural} at a time")
            }
            Self::Cpu { millis } => format!("ask for at most {}", cores(*millis)),
            Self::Memory { bytes } => format!("ask for at most {} of memory", format_bytes(*bytes)),
            Self::Elastic => "let it be elastic: it starts smaller and grows later".to_owned(),
            Self::Preemptible => "let it be preemptible".to_owned(),
            Self::Priority { class, .. } => format!("raise its priority to {class}"),
            Self::WithoutSelector { key } => format!("do not select the label {key}"),
            Self::NodePool { from, to } => {
                format!("ask for node pool {to} instead of {}", from.join(", "))
            }
            Self::WithoutPodAffinity => {
                "do without its required pod affinity or anti-affinity".to_owned()
            }
            Self::WithoutAffinity { demands } => {
                format!("do without its required node affinity: {demands}")
            }
            Self::Tolerate { taint } => format!("tolerate the taint {}", key_and_value(taint)),
            Self::Untaint { node, taint } => {
                format!("remove the taint {} from {node}", key_and_value(taint))
            }
            Self::Ungate => "remove its scheduling gates".to_owned(),
            Self::Wait { until } => {
                format!("wait {}, if nothing else changes", span(now, *until))
            }
            Self::End { workload } => format!("that {workload} ends"),
            Self::Quota(raises) => raised("quota", raises),
            Self::Limit(raises) => raised("limit", raises),
            Self::Uncordon { node } => format!("open the cordoned node {node}"),
            Self::Label { node, key, value } => format!("label {node} with {key}={value}"),
            Self::Nodes { like, count: 1 } => format!("add a node like {like}"),
            Self::Nodes { like, count } => format!("add {count} nodes like {like}"),
        }
    }
}

/// A taint in texts: without its effect.
pub(super) fn key_and_value(taint: &Taint) -> String {
    let Taint { key, value, .. } = taint;
    if value.is_empty() { key.clone() } else { format!("{key}={value}") }
}

/// A larger quota or limit of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raise {
    /// The queue, with its node pool where there are several.
    pub queue: String,
    /// Name of its project or department.
    pub unit: String,
    /// The node pool, unless it is `default` or the share counts in all.
    pub pool: Option<String>,
    /// True for a project, false for a department.
    pub is_project: bool,
    /// Id in the model.
    pub id: QueueId,
    /// The resource.
    pub kind: Kind,
    /// Present value, in the unit of `kind`.
    pub from: u64,
    /// Required value, in the unit of `kind`.
    pub to: u64,
}

impl Raise {
    /// The command that sets it; `None` if no flag does.
    pub(super) fn command(&self, what: &str) -> Option<String> {
        let unit = if self.is_project { "project" } else { "department" };
        let (flag, to) = match self.kind {
            Kind::Gpu => ("gpu", format_millis(self.to)),
            Kind::Cpu => ("cpu", format_millis(self.to)),
            Kind::Memory => ("memory", format_bytes(self.to)),
        };
        if self.kind != Kind::Gpu && what != "quota" {
            return None;
        }
        let name = self.unit.strip_prefix(model::DEPARTMENT_PREFIX).unwrap_or(&self.unit);
        let pool =
            self.pool.as_ref().map_or_else(String::new, |pool| format!(" --node-pool {pool}"));
        Some(format!("elastane {unit} update {name} --{flag}-{what} {to}{pool}"))
    }
}

fn raised(what: &str, raises: &[Raise]) -> String {
    let each = raises.iter().map(|raise| {
        format!(
            "of {} from {} to {}",
            raise.queue,
            number(raise.kind, raise.from),
            of(raise.kind, raise.to)
        )
    });
    format!("raise the {what} {}", each.collect::<Vec<_>>().join(" and "))
}
