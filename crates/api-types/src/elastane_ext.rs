//! Our own additions: responses of `/elastane/v1`, and the contents of a workload's
//! `additionalFields`. Fields may be added; readers must tolerate that.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cluster::{NodeScheduling, Taint};
use crate::diagnosis::Diagnosis;
use crate::fraction_limit::FractionLimit;
use crate::mig_instance::MigInstance;
use crate::scalar::{Millis, Time};
use crate::training::JobTraining;

/// Contents of `additionalFields` of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadExtras {
    /// Nodes its pods are on, in pod order, each once.
    pub nodes: Vec<String>,
    /// GPU index on its node and thousandths of it, for every GPU held.
    pub gpus: Vec<(u32, u64)>,
    /// GPUs it asked for; what it holds may differ when it is elastic.
    pub requested_gpus: Millis,
    /// Reasons for which it waits or has failed; empty otherwise.
    pub pending_reasons: Vec<Reason>,
    /// Its last eviction, move or resize, and for whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_eviction: Option<Eviction>,
    /// Template that it was made of, as it was named then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<crate::AssetRef>,
    /// Compute resource that it was made of, as it was named then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_resource: Option<crate::AssetRef>,
    /// True if any of what it holds is above its project's quota.
    pub over_quota: bool,
    /// True if it has a place that is still being freed for it.
    pub reserved: bool,
    /// Number of restarts of its pods, after failures and preemptions.
    pub restarts: u32,
    /// True if the number of its GPUs may change.
    pub elastic: bool,
    /// The command line it was submitted with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Exit of its last run, if one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<String>,
    /// Start time of its main process, while that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Pods by state.
    pub pods: PodStates,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Time of its last report of saved progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpointed_at: Option<Time>,
    /// Progress, if it is an elastic training, as of the last second. The stream of changes does
    /// not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<JobTraining>,
}

/// Pods by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStates {
    /// Wait for a place. Pods whose turn has not come, because others run first, do not exist yet.
    pub pending: u32,
    /// Have a place that is being freed.
    pub reserved: u32,
    /// Placed, starting.
    pub starting: u32,
    /// Pending or starting pods whose process has ended and is restarted after a delay.
    pub crash_looping: u32,
    /// Run.
    pub running: u32,
    /// Being stopped.
    pub terminating: u32,
    /// Ended well.
    pub succeeded: u32,
    /// Ended badly.
    pub failed: u32,
    /// Suspended.
    pub suspended: u32,
}

/// A coded reason; `docs/reference/codes/<code>.md` explains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// Stable code.
    pub code: String,
    /// One sentence with the numbers.
    pub message: String,
    /// Time since which it applies, or at which it happened.
    pub at: Time,
}

/// The last eviction, move or resize of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Eviction {
    /// Stable code.
    pub code: String,
    /// One sentence with the numbers.
    pub message: String,
    /// Time at which it happened.
    pub at: Time,
    /// The workload for which it happened, with the names that it had then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneficiary: Option<crate::WorkloadName>,
}

/// Answer of `GET /elastane/v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Version of the server.
    pub version: String,
    /// Id of the cluster.
    pub cluster_id: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Runtime of the pods: `process`, `docker`, `kubernetes`.
    pub runtime: String,
    /// Enforcement of fractions of GPU memory on the node where it is weakest: `none`,
    /// `cooperative`, `hard`.
    pub fraction_enforcement: String,
    /// Limits of CPU and memory that runs are kept to.
    #[serde(default)]
    pub limits: LimitsKept,
    /// Isolation of runs from each other and from the server.
    #[serde(default)]
    pub isolation: Isolation,
    /// Outage of the engine that runs the pods; left out while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// Files of ended workloads that are still being deleted, by folder; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
    /// True if any GPU is simulated.
    pub simulated: bool,
    /// The server's clock, to compute ages with.
    pub now: Time,
    /// Number of the last event.
    pub event_seq: u64,
    /// GPUs in the cluster.
    pub gpus: Millis,
    /// GPUs in use.
    pub gpus_allocated: Millis,
    /// Nodes.
    pub nodes: Vec<NodeStatus>,
    /// Number of projects.
    pub projects: u64,
    /// Number of workloads that are not deleted.
    pub workloads: u64,
}

/// Files in a folder that are still to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leftover {
    /// The folder.
    pub folder: String,
    /// Folders and files in it; not more than 1000 are counted.
    pub entries: u64,
    /// Reason they cannot be deleted now; left out while they are being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Outage of the engine that runs the pods, such as Docker, or of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outage {
    /// Kind of outage.
    #[serde(default)]
    pub kind: OutageKind,
    /// The failure and its cause, for people.
    pub message: String,
    /// Time at which it began.
    pub since: Time,
}

/// Kind of outage, and its effect on the states that are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutageKind {
    /// The engine does not answer: states are those at the start of the outage.
    #[default]
    Silent,
    /// A disk is almost full, or that of the database is full: states are true.
    DiskFull,
}

/// Limits that runs are kept to. One that is not kept is accepted, and named with each run that
/// has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitsKept {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
    /// Reason that a limit is not kept, and what to do; left out if both are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Isolation of runs from each other and from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Isolation {
    /// Means of isolation: `containers`, `accounts`, `namespaces`, `landlock`, `none`.
    pub kind: String,
    /// Meaning of `kind`, in one sentence.
    pub meaning: String,
    /// Missing isolation, its reason, and what to do; left out if nothing is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Answer of `GET /healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// Answer of `POST /elastane/v1/down`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stopped {
    /// True if every workload has been stopped.
    pub stopped: bool,
}

/// A node in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Name.
    pub name: String,
    /// Name of the node pool it is in.
    #[serde(default)]
    pub pool: String,
    /// True if what runs pods there answers.
    #[serde(default = "yes")]
    pub ready: bool,
    /// Admission of new pods.
    #[serde(default)]
    pub scheduling: NodeScheduling,
    /// Its taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Product name of its GPUs, or `simulated`.
    pub gpu_type: String,
    /// True if its GPUs are simulated.
    pub simulated: bool,
    /// Memory of each GPU in bytes.
    pub gpu_memory_bytes: Vec<u64>,
    /// Use of each GPU.
    pub gpu_used: Vec<Millis>,
    /// GPUs that are out of service.
    #[serde(default, rename = "gpuTroubles")]
    pub gpu_faults: Vec<GpuFault>,
    /// The MIG instances among its GPUs; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mig_instances: Vec<MigInstance>,
    /// Thousandths of a core, all and in use.
    pub cpu_millis: u64,
    /// See `cpu_millis`.
    pub cpu_used_millis: u64,
    /// Bytes of memory, all and in use.
    pub memory_bytes: u64,
    /// See `memory_bytes`.
    pub memory_used_bytes: u64,
    /// Enforcement of fractions of its GPUs; left out for a node without GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fractions: Option<FractionLimit>,
}

impl NodeStatus {
    /// Conditions of the node, joined as published: `Ready`, `SchedulingDisabled`, and the names of
    /// faults of its GPUs.
    #[must_use]
    pub fn conditions(&self) -> String {
        let gpu_faults: BTreeSet<_> = self.gpu_faults.iter().map(|one| one.name.as_str()).collect();
        let ready = if self.ready { "Ready" } else { "NotReady" };
        let open = self.scheduling == NodeScheduling::Enabled;
        let cordoned = (!open).then_some("SchedulingDisabled");
        let all: Vec<_> = std::iter::once(ready).chain(cordoned).chain(gpu_faults).collect();
        all.join(",")
    }
}

/// Default for the field in responses of servers without it.
const fn yes() -> bool {
    true
}

/// Fault of a GPU that is out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuFault {
    /// Its number on the node.
    pub gpu: u32,
    /// Reason code.
    pub code: String,
    /// `GpuLost` or `GpuTaken`.
    pub name: String,
    /// In words.
    pub message: String,
}

/// A GPU of a node and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// Id: the name of its node, a slash and its number there, `node-1/0`.
    pub id: String,
    /// Name of its node.
    pub node_name: String,
    /// Name of the node pool of its node.
    pub node_pool: String,
    /// Its number on the node.
    pub index: u32,
    /// Identifier that the driver gives it.
    pub uuid: String,
    /// Product name, or `simulated`.
    pub gpu_type: String,
    /// True if it is simulated.
    pub simulated: bool,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// The part of it that is allocated, 0 to 1.
    pub allocated: Millis,
    /// Fault, if it is out of service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<GpuFault>,
    /// Enforcement of its fractions; left out by servers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fractions: Option<FractionLimit>,
    /// The pods on it, as far as the caller may see their workloads.
    pub pods: Vec<GpuPod>,
}

/// A pod that holds a GPU or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuPod {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of its workload.
    pub workload_id: String,
    /// The name of its workload.
    pub workload_name: String,
    /// The id of its project.
    pub project_id: String,
    /// The part of the GPU that it holds, 0 to 1.
    pub share: Millis,
}

/// GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gpus {
    /// A page of them.
    pub gpus: Vec<Gpu>,
}

/// One event of the stream `GET /elastane/v1/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveEvent {
    /// Position in the log, from 1, without gaps.
    pub seq: u64,
    /// Time of the event.
    pub at: Time,
    /// Kind of the event: `Submitted`, `Scheduled`, `Started`, `Evicted`, ….
    pub kind: String,
    /// True if it is a warning.
    pub warning: bool,
    /// Workload it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_id: Option<String>,
    /// Its name at the time.
    pub workload_name: String,
    /// Pod it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Project it is about.
    pub project_name: String,
    /// Reason code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// One sentence.
    pub message: String,
}

/// Answer of `GET /elastane/v1/workloads/{id}/explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Id.
    pub workload_id: String,
    /// Name.
    pub workload_name: String,
    /// Project.
    pub project_name: String,
    /// Phase.
    pub phase: String,
    /// One sentence that answers "why is it where it is".
    pub summary: String,
    /// Reasons for which it waits; empty if it does not.
    pub pending_reasons: Vec<Reason>,
    /// Pending reasons that the summary does not mention.
    #[serde(default)]
    pub further_reasons: Vec<Reason>,
    /// Its last eviction, move or resize, and for whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_eviction: Option<Eviction>,
    /// Enforcement of its part of each GPU on its nodes; left out if it has no part of a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fractions: Option<FractionLimit>,
    /// Quota of its project, in GPUs, in the node pools that it uses or may use.
    pub project_quota: Millis,
    /// Fair share of its project, in GPUs, in these pools.
    pub project_fair_share: Millis,
    /// GPUs that its project uses in these pools.
    pub project_allocated: Millis,
    /// These numbers for each of the pools; empty if there is one node pool only.
    #[serde(default)]
    pub project_pools: Vec<ShareInPool>,
    /// Its events, newest last.
    pub events: Vec<LiveEvent>,
    /// The long answer to why it waits; none when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// Estimate of its start; none if it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_estimate: Option<crate::StartEstimate>,
    /// Time since which its work would be lost if it were stopped for others: its last checkpoint,
    /// or its start. Left out of what has no place, and of what is never stopped for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved_since: Option<Time>,
    /// Progress, if it is an elastic training that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<JobTraining>,
}

/// Shares of a project in a node pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareInPool {
    /// Name of the node pool.
    pub node_pool: String,
    /// Quota, in GPUs.
    pub quota: Millis,
    /// Fair share, in GPUs.
    pub fair_share: Millis,
    /// GPUs that the project uses.
    pub allocated: Millis,
}

/// Answer of `GET /elastane/v1/volumes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Volumes {
    /// In order of creation.
    pub volumes: Vec<Volume>,
}

/// A volume of a project. It is made when a workload first asks for it, and kept until it is
/// deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Id.
    pub id: String,
    /// The name workloads ask for it by (`claimName`), unique in the project.
    pub name: String,
    /// Id of the project, a string of digits.
    pub project_id: String,
    /// Name of the project.
    pub project_name: String,
    /// User whose workload first asked for it.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Names of the workloads that have it mounted, or had before they ended.
    pub used_by: Vec<String>,
    /// True if it was deleted and its content is not gone yet. A workload that asks for its name
    /// gets another volume.
    #[serde(default)]
    pub deleting: bool,
    /// Error that keeps its content from being deleted. Deletion is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Body of `PUT /elastane/v1/projects/{projectId}/config-maps/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigMapBody {
    /// Texts by their keys; all there is from then on.
    pub data: BTreeMap<String, String>,
}

/// A config map of a project: texts that its workloads get as files and variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigMap {
    /// Description without the texts.
    #[serde(flatten)]
    pub summary: ConfigMapSummary,
    /// Texts by their keys.
    pub data: BTreeMap<String, String>,
}

/// Answer of `GET /elastane/v1/projects/{projectId}/config-maps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMaps {
    /// The config maps, by name.
    pub config_maps: Vec<ConfigMapSummary>,
}

/// A config map without its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSummary {
    /// Name, unique in the project.
    pub name: String,
    /// Its keys.
    pub keys: Vec<String>,
    /// Size of all keys and texts in bytes.
    pub bytes: u64,
    /// Its creator.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// User of the last change.
    pub updated_by: String,
    /// Time of the last change.
    pub updated_at: Time,
}

/// Port of a workload to open in a browser.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketRequest {
    /// Its name or number; may be left out where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Address by which a browser opens a port of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// The address; with a ticket in it, good once and for a minute, unless everyone may come.
    pub url: String,
}

/// Ticket with which a page of this server opens a WebSocket to a workload: `elastane_ticket` in
/// the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebSocketTicket {
    /// The ticket, good once.
    pub ticket: String,
    /// Seconds for which it is valid.
    pub expires_in_seconds: u64,
}

/// End of a session in a pod: the message of channel 3 of a WebSocket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd {
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal it was ended by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Reason it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
