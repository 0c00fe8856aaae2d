//! The diagnosis of a waiting workload: sentences for people, and beside them the values that are
//! behind them, which a program can follow, count and act on.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Millis;

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
    /// The workloads of `holders`, as values; those that are not named are left out.
    #[serde(default)]
    pub workload_holdings: Vec<WorkloadHolding>,
    /// The projects of `holders`, as values.
    #[serde(default)]
    pub project_holdings: Vec<ProjectHolding>,
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

/// A change that would let a workload start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    /// Kind of the change.
    pub kind: String,
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
    /// Owner or administrator who may make the change, if the caller may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The value to ask for in another submission, if `kind` is about a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The workload that ends, if that is the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadName>,
    /// The node that opens or loses a taint, or that others are to be like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Quotas or limits to raise, if that is the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raises: Vec<Raise>,
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

/// A workload, as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadName {
    /// Its id; left out if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// The name of its project.
    pub project_name: String,
}

/// Resource of a holder or a share, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResourceKind {
    /// Thousandths of a GPU.
    Gpu,
    /// Thousandths of a core.
    Cpu,
    /// Bytes.
    Memory,
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
}

/// Nodes that are alike in what a workload looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodesAlike {
    /// The name of the first of them.
    pub like: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of these nodes that have room for one pod.
    pub room: u32,
}

/// A quota or limit to be raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Raise {
    /// Name of the owner, as in [`ProjectHolding`].
    pub name: String,
    /// Resource of the quota or limit.
    pub resource: ResourceKind,
    /// Current value.
    pub from: u64,
    /// Required value.
    pub to: u64,
}
