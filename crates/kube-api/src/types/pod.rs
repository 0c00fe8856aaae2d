//! Pods. Owns: the fields that are read. Does not know about: what their quantities mean.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Affinity, ObjectMeta, Present, Resource, or_default};

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
    /// The specification of its author.
    #[serde(deserialize_with = "or_default")]
    pub spec: PodSpec,
    /// The state that its kubelet and schedulers report.
    #[serde(deserialize_with = "or_default")]
    pub status: PodStatus,
}

/// Specification of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Node that it is bound to, empty if to none.
    #[serde(deserialize_with = "or_default")]
    pub node_name: String,
    /// Scheduler that has to place it.
    #[serde(deserialize_with = "or_default")]
    pub scheduler_name: String,
    /// Containers.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Containers that run before them, sidecars among them.
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
    /// Quantities that the runtime class adds.
    #[serde(deserialize_with = "or_default")]
    pub overhead: BTreeMap<String, String>,
    /// Requests of the pod as a whole.
    #[serde(deserialize_with = "or_default")]
    pub resources: Resources,
    /// Labels that its node must have.
    #[serde(deserialize_with = "or_default")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that it tolerates.
    #[serde(deserialize_with = "or_default")]
    pub tolerations: Vec<Toleration>,
    /// Volumes: the fields of each, without their values.
    #[serde(deserialize_with = "or_default")]
    pub volumes: Vec<BTreeMap<String, Present>>,
    /// Nodes and pods that it must, or should, be near to.
    #[serde(deserialize_with = "or_default")]
    pub affinity: Affinity,
    /// Constraints on how pods are spread.
    #[serde(deserialize_with = "or_default")]
    pub topology_spread_constraints: Vec<Present>,
    /// Devices that it claims.
    #[serde(deserialize_with = "or_default")]
    pub resource_claims: Vec<Present>,
    /// Group that is placed together, in newer versions.
    #[serde(deserialize_with = "or_default")]
    pub scheduling_group: BTreeMap<String, Present>,
    /// Workload that it belongs to, in newer versions.
    #[serde(deserialize_with = "or_default")]
    pub workload_ref: BTreeMap<String, Present>,
    /// Gates that keep it from being placed.
    #[serde(deserialize_with = "or_default")]
    pub scheduling_gates: Vec<SchedulingGate>,
    /// Number of its priority class.
    pub priority: Option<i32>,
    /// Its priority class, may be empty.
    #[serde(deserialize_with = "or_default")]
    pub priority_class_name: String,
    /// `Never` if it stops no other pod; empty or `PreemptLowerPriority` otherwise.
    #[serde(deserialize_with = "or_default")]
    pub preemption_policy: String,
    /// Seconds between the request to end and the kill.
    pub termination_grace_period_seconds: Option<i64>,
}

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Requests and limits.
    #[serde(deserialize_with = "or_default")]
    pub resources: Resources,
    /// Ports.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ContainerPort>,
    /// `Always` makes a sidecar of an init container.
    #[serde(deserialize_with = "or_default")]
    pub restart_policy: String,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// Port of the node that leads to it; 0 for none.
    #[serde(deserialize_with = "or_default")]
    pub host_port: u32,
}

/// Requests and limits, quantities by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Quantities that are kept for it.
    #[serde(deserialize_with = "or_default")]
    pub requests: BTreeMap<String, String>,
    /// Most that it may use.
    #[serde(deserialize_with = "or_default")]
    pub limits: BTreeMap<String, String>,
}

/// A taint, or several, that a pod tolerates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Key, empty for all.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// `Equal` or `Exists`.
    #[serde(deserialize_with = "or_default")]
    pub operator: String,
    /// Value for `Equal`.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
    /// Effect, empty for all.
    #[serde(deserialize_with = "or_default")]
    pub effect: String,
    /// Seconds for which it tolerates `NoExecute`.
    pub toleration_seconds: Option<i64>,
}

/// A gate that keeps a pod from being placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// State of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub phase: String,
    /// Time at which its node accepted it.
    pub start_time: Option<String>,
    /// Reason of its failure, as one word.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Reason of its failure, as a sentence.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// Node that a scheduler keeps room on for it.
    #[serde(deserialize_with = "or_default")]
    pub nominated_node_name: String,
    /// Conditions, `PodScheduled` among them.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// One thing that is true, false or unknown of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: String,
    /// Reason, as one word.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Reason, as a sentence.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
}

impl Resource for Pod {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";
    const NAMESPACED: bool = true;

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
