//! The diagnosis of a waiting workload: sentences for people, and beside them the values that are
//! behind them, which a program can follow, count and act on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::advised::Advice;
use crate::names::{ResourceKind, WorkloadName};
use crate::scalar::{Millis, Time, is_default};

/// Detailed reasons for which a workload waits; `docs/reference/diagnosis.md` explains them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Nodes on which it does not fit: a sentence for each class of nodes.
    pub nodes: Vec<String>,
    /// Holders of what it needs, and whether each may be taken from.
    pub holders: Vec<String>,
    /// Ways to make room that did not help.
    pub searches: Vec<crate::Search>,
    /// Single changes that would let it start, each tried out.
    pub advice: Vec<Advice>,
    /// The nodes of `nodes`, as values.
    #[serde(default)]
    pub node_classes: Vec<NodesAlike>,
    /// Its sets of pods and how many find a place, where it has several pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<PodsPlaced>,
    /// The workloads of `holders`, as values.
    #[serde(default)]
    pub workload_holdings: Vec<WorkloadHolding>,
    /// Number of further workloads, which are not named.
    #[serde(default)]
    pub workload_holdings_more: u32,
    /// The projects of `holders`, as values.
    #[serde(default)]
    pub project_holdings: Vec<ProjectHolding>,
    /// Number of further projects, which are not named.
    #[serde(default)]
    pub project_holdings_more: u32,
    /// Part of what its own project asks for that does not count for the fair share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<NotCounted>,
    /// Workloads of its project that the scheduler looks at before it, the first of them.
    #[serde(default)]
    pub ahead: Vec<WorkloadAhead>,
    /// Number of further ones.
    #[serde(default)]
    pub ahead_more: u32,
    /// True if everything that might help was tried.
    pub complete: bool,
    /// All of it in lines under headings, for people.
    pub lines: Vec<String>,
}

/// A workload that the scheduler looks at before a waiting one of its project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAhead {
    /// The workload.
    pub workload: WorkloadName,
    /// GPUs that its waiting pods ask for.
    pub requested_gpus: Millis,
    /// Why it goes before: `more_important`, `minimum` (it lacks pods of its minimum) or `older`.
    pub precedence: String,
    /// Value of its priority, if it is more important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// The precedence in a few words.
    pub message: String,
}

/// A workload that holds what another needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadHolding {
    /// The workload.
    pub workload: WorkloadName,
    /// Resource that it holds.
    pub resource: ResourceKind,
    /// Amount held on the nodes in question.
    pub held: u64,
    /// `may_give`, or why nothing is taken from it: `not_preemptible`, `as_important`,
    /// `guaranteed`, `within_its_share`, `turn`, `keeps_quota`, `less_important_first`,
    /// `not_entitled`, `other_revision`.
    pub standing: String,
    /// Its priority, if it is as important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// End of its guaranteed run time, or of the turn of its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// A project, or a department as `department:NAME`, that holds what a workload needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectHolding {
    /// Its name.
    pub name: String,
    /// Resource that it holds.
    pub resource: ResourceKind,
    /// Amount held on the nodes in question.
    pub held: u64,
    /// Amount held in all.
    pub allocated: u64,
    /// Its quota.
    pub quota: u64,
    /// Its fair share.
    pub fair_share: u64,
    /// True if the fair share is a claim, because the quotas exceed what there is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_claim: bool,
    /// Part of `allocated` that elastic workloads hold beyond their requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lent: u64,
}

/// Demand of a project that could not be placed if everything were free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotCounted {
    /// Its name.
    pub name: String,
    /// Resource of the amounts.
    pub resource: ResourceKind,
    /// Amount that it asks for.
    pub requested: u64,
    /// Part of it that does not count.
    pub left_out: u64,
}

/// Pods of a set to be placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodsPlaced {
    /// Name of the set; empty if there is only one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub set: String,
    /// Number of pods.
    pub pods: u32,
    /// Number of these that find a place, quotas and limits aside.
    pub placeable: u32,
}

/// Nodes that are alike in what a workload looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodesAlike {
    /// Name of the set of pods that they are looked at for; empty if there is only one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub set: String,
    /// The name of the first of them.
    pub like: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of these nodes that have room for one pod.
    pub room: u32,
    /// Number of kinds of nodes, 1 but for the last entry, which sums small ones.
    #[serde(default)]
    pub kinds: u32,
    /// Number of GPUs of the first of them, MIG instances among them.
    #[serde(default)]
    pub gpus: u32,
    /// Memory of its largest GPU, in bytes.
    #[serde(default)]
    pub gpu_memory_bytes: u64,
    /// Its MIG instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<Instances>,
    /// Its cores, in thousandths.
    #[serde(default)]
    pub cpu_millis: u64,
    /// Its memory in bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Its labels that the workload asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its taints that the workload does not tolerate, as `KEY=VALUE:EFFECT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
    /// Obstacles on those without room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<NodesFailing>,
}

/// MIG instances of a node that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instances {
    /// Profile; left out for those that are given to parts of GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Thousandths of a GPU that each holds, of those that are given to parts of GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// Memory of each in bytes, of those that are given to parts of GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Their number.
    pub count: u32,
}

/// Nodes that are alike and have the same obstacle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodesFailing {
    /// Name of the obstacle: `cordoned`, `selector`, `affinity`, `node_pool`, `taint`,
    /// `pod_affinity`, `pod_anti_affinity`, `repelled`, `gpus`, `mig_instances`, `gpu_memory`,
    /// `cpu`, `memory`, `in_service`, `free_gpus`, `free_mig_instances`, `free_share`, `free_cpu`,
    /// `free_memory`, `pods`, `other`.
    pub obstacle: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Amount that a pod needs, if the obstacle has an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// Largest amount on one of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// Name of that node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closest: Option<String>,
}
