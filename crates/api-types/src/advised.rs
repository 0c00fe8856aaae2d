//! Advice for a waiting workload: changes after which it would start. The same change is a question
//! that `POST /elastane/v1/what-if` answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Taint;
use crate::names::{ResourceKind, WorkloadName};
use crate::scalar::Time;

/// A change that would let a workload start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    /// Kind of the change.
    pub kind: String,
    /// The change with its values; one of the `changes` of `POST /elastane/v1/what-if`.
    pub change: AdvisedChange,
    /// Workloads that would be stopped or moved for it then.
    pub disturbs: u32,
    /// One sentence with the numbers.
    pub message: String,
    /// Index of that sentence in the `lines` of the diagnosis; its commands follow it there.
    #[serde(default)]
    pub line: Option<u32>,
    /// Commands for the change, in this order; empty if it takes another submission, or no command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The request that makes the change; left out if none does, or it takes several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<AdvisedRequest>,
    /// Owner or administrator who may make the change, if the caller may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The new value as flags of a submission take it, or what is removed, if `kind` is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A request to this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvisedRequest {
    /// Method.
    pub method: String,
    /// Path.
    pub path: String,
    /// Body, in JSON; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub body: Option<Value>,
}

/// A change of a waiting workload as a question: one of the `changes` of
/// `POST /elastane/v1/what-if`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeFor {
    /// Id of the workload that waits. The answer has its pods, and its reasons if it still waits.
    pub workload_id: String,
    /// The change, as the `change` of an advice.
    pub change: AdvisedChange,
}

/// A change to a waiting workload, to others or to the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum AdvisedChange {
    /// Fewer whole GPUs for each pod.
    FewerGpus {
        /// Number of GPUs.
        gpus: u32,
    },
    /// A smaller share of a GPU.
    SmallerShare {
        /// Thousandths of a GPU.
        gpu_millis: u64,
    },
    /// Less GPU memory.
    LessGpuMemory {
        /// Bytes.
        gpu_memory_bytes: u64,
    },
    /// A part of a GPU, in place of a MIG instance.
    PartOfGpu {
        /// Bytes of GPU memory.
        gpu_memory_bytes: u64,
    },
    /// Fewer pods of a set that run at a time.
    FewerPods {
        /// Name of the set; left out if there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<String>,
        /// Number of pods.
        pods: u32,
    },
    /// Fewer cores for each pod.
    LessCpu {
        /// Thousandths of a core.
        cpu_millis: u64,
    },
    /// Less main memory for each pod.
    LessMemory {
        /// Bytes.
        memory_bytes: u64,
    },
    /// Halving of its size until it fits.
    Elastic {},
    /// Permission to preempt it.
    Preemptible {},
    /// A higher priority.
    Priority {
        /// Name of the class.
        priority_class: String,
    },
    /// Removal of a required label of nodes.
    WithoutSelector {
        /// Key of the label.
        label: String,
    },
    /// Removal of the required node affinity.
    WithoutAffinity {
        /// The affinity in words.
        affinity: String,
    },
    /// Removal of the required pod affinity and anti-affinity.
    WithoutPodAffinity {},
    /// Another node pool.
    NodePool {
        /// Name of the pool.
        node_pool: String,
        /// Names of the pools that it replaces.
        instead_of: Vec<String>,
    },
    /// A toleration of a taint.
    Tolerate {
        /// The taint.
        taint: Taint,
    },
    /// Removal of its scheduling gates.
    Ungate {},
    /// Waiting, while nothing else changes.
    Wait {
        /// Its end.
        until: Time,
    },
    /// The end of another workload.
    End {
        /// The workload.
        workload: WorkloadName,
    },
    /// Larger quotas.
    Quota {
        /// Quotas.
        raises: Vec<Raise>,
    },
    /// Larger limits.
    Limit {
        /// Limits.
        raises: Vec<Raise>,
    },
    /// Opening of a cordoned node.
    Uncordon {
        /// Name of the node.
        node: String,
    },
    /// Removal of a taint.
    Untaint {
        /// Name of the node.
        node: String,
        /// The taint.
        taint: Taint,
    },
    /// Labels of a node.
    Label {
        /// Name of the node.
        node: String,
        /// Labels to set.
        labels: BTreeMap<String, String>,
    },
    /// More nodes.
    MoreNodes {
        /// Name of the node that they equal.
        node: String,
        /// Number of nodes.
        nodes: u32,
    },
    /// Repair of GPUs that are out of service.
    Repair {
        /// The GPUs, for each node.
        repairs: Vec<RepairedGpus>,
    },
}

/// GPUs of a node that are out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairedGpus {
    /// Name of the node.
    pub node: String,
    /// Indexes of the GPUs.
    pub gpus: Vec<u32>,
}

/// A quota or limit to be raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Raise {
    /// Name of the owner, as in `ProjectHolding`.
    pub name: String,
    /// Name of the node pool; left out for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pool: Option<String>,
    /// Resource of the quota or limit.
    pub resource: ResourceKind,
    /// Current value.
    pub from: u64,
    /// Required value.
    pub to: u64,
}
