//! Rows of grids: the shown part of an object, in as few bytes as possible. Owns: the rows of
//! workloads, and the reasons that many of them share.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::elastane_ext::{Outage, Reason};
use crate::scalar::{Millis, Time, is_default};

/// A workload as grids show it. Amounts, flags and lists that are 0, false or empty are left out:
/// most rows of a long list wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadGridRow {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `Training`, `Workspace`, `Distributed`, `Inference`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Phase.
    pub phase: String,
    /// Time at which it entered the phase; left out if that is the time of its submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_updated_at: Option<Time>,
    /// Project, by id.
    pub project_id: String,
    /// Project, by name.
    pub project_name: String,
    /// Department, by id.
    pub department_id: String,
    /// Its submitter.
    pub submitted_by: String,
    /// Time of its submission.
    pub created_at: Time,
    /// Time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// The class its priority was given by.
    pub priority_class_name: String,
    /// True if it may be evicted for others.
    pub preemptible: bool,
    /// GPUs it asked for, all pods together.
    pub gpus_requested: Millis,
    /// GPUs it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus_allocated: Millis,
    /// Bytes of GPU memory it asked for on each GPU, if it asked by memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_requested: Option<u64>,
    /// Bytes of memory of the GPUs it holds, or of its parts of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpu_memory_allocated: u64,
    /// Start of the time in which its GPUs do not compute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// Cores it asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpu_requested: Millis,
    /// Cores it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpu_allocated: Millis,
    /// Bytes of memory it asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memory_requested: u64,
    /// Bytes of memory it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memory_allocated: u64,
    /// Its image; of several pods that of the first ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub image: String,
    /// Name of the environment it was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Name of the compute resource it was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_resource: Option<String>,
    /// Name of the template it was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Names of its data sources.
    #[serde(default, skip_serializing_if = "is_default")]
    pub data_sources: Vec<String>,
    /// Names of its connections: tools and ports that can be opened.
    #[serde(default, skip_serializing_if = "is_default")]
    pub connections: Vec<String>,
    /// Pods it asked for.
    pub pods_requested: u64,
    /// Pods that run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pods_running: u64,
    /// True if any of what it holds is above its project's quota.
    #[serde(default, skip_serializing_if = "is_default")]
    pub over_quota: bool,
    /// Node pools it is in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub node_pools: Vec<String>,
    /// The first of the nodes its pods are on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nodes: Vec<String>,
    /// Number of nodes its pods are on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nodes_count: u64,
    /// Reason it waits or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<RowWhy>,
    /// Its last eviction, move or resize, the sentence cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_eviction: Option<Reason>,
}

/// A page of workloads as rows, and the reasons that they name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadRowsPage {
    /// The workloads.
    pub workloads: Vec<WorkloadGridRow>,
    /// The reasons that some of them share.
    pub reasons: Vec<SharedReason>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Reason for the state of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RowWhy {
    /// A reason that it shares with other workloads.
    Shared(SharedWhy),
    /// A reason of its own, the sentence cut.
    Own(Reason),
}

/// A reference to a reason that a workload shares with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SharedWhy {
    /// Id of the [`SharedReason`].
    pub reason: String,
    /// Time since which it waits for that.
    pub at: Time,
}

/// Reasons that waiting workloads of a project share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SharedReason {
    /// Id, until the server starts again.
    pub id: String,
    /// The reasons, the most important first.
    pub reasons: Vec<Reason>,
}

/// The server, as the stream of changes tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerRow {
    /// Version of the server.
    pub version: String,
    /// Digest of its web interface; empty without one.
    pub interface: String,
    /// Id of the cluster.
    pub cluster_id: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Its clock.
    pub now: Time,
    /// Outage of the engine that runs the pods; left out while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}
