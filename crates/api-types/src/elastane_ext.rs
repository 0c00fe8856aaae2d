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

/// What a workload carries in `additionalFields`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadExtras {
    /// Nodes its pods are on, in pod order, each once.
    pub nodes: Vec<String>,
    /// GPU index on its node and thousandths of it, for every GPU held.
    pub gpus: Vec<(u32, u64)>,
    /// GPUs it asked for; what it holds may differ when it is elastic.
    pub requested_gpus: Millis,
    /// Why it waits, or why it failed; empty otherwise.
    pub pending_reasons: Vec<Reason>,
    /// Its last eviction, move or resize, and for whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_eviction: Option<Eviction>,
    /// True if any of what it holds is above its project's quota.
    pub over_quota: bool,
    /// True if it has a place that is still being freed for it.
    pub reserved: bool,
    /// How often its pods were started again, after a failure or a preemption.
    pub restarts: u32,
    /// True if the number of its GPUs may change.
    pub elastic: bool,
    /// The command line it was submitted with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// How its last run ended, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<String>,
    /// When its main process started, while it runs.
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
    /// When it last reported that it saved its progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpointed_at: Option<Time>,
    /// How far it is, if it is an elastic training, as of the last second. The stream of changes
    /// does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<JobTraining>,
}

/// Pods by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStates {
    /// Wait for a place. Those whose turn has not come, because others run first, are not there
    /// yet.
    pub pending: u32,
    /// Have a place that is being freed.
    pub reserved: u32,
    /// Placed, starting.
    pub starting: u32,
    /// Of those pending or starting: the process has ended, and is started again after a delay.
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
    /// Since when it applies, or when it happened.
    pub at: Time,
}

/// An eviction, in the form of a reason.
pub type Eviction = Reason;

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
    /// What runs the pods: `process`, `docker`, `kubernetes`.
    pub runtime: String,
    /// How fractions of GPU memory are enforced on the node where that is weakest: `none`,
    /// `cooperative`, `hard`.
    pub fraction_enforcement: String,
    /// Which limits of CPU and memory runs are kept to.
    #[serde(default)]
    pub limits: LimitsKept,
    /// How runs are kept apart from each other and from the server.
    #[serde(default)]
    pub isolation: Isolation,
    /// What does not answer of what runs the pods; left out while all does.
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
    /// How many projects there are.
    pub projects: u64,
    /// How many workloads are not deleted.
    pub workloads: u64,
}

/// Files in a folder that are still to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leftover {
    /// The folder.
    pub folder: String,
    /// Folders and files in it; not more than 1000 are counted.
    pub entries: u64,
    /// Why they cannot be deleted now; left out while they are being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// That what runs the pods, such as Docker, does not answer: states of workloads are those of
/// before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outage {
    /// Kind of outage.
    #[serde(default)]
    pub kind: OutageKind,
    /// The failure and its cause, for people.
    pub message: String,
    /// Since when.
    pub since: Time,
}

/// Kind of outage, and its effect on the states that are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutageKind {
    /// The engine does not answer: states are those at the start of the outage.
    #[default]
    Silent,
    /// The disk of the state is almost full: states are true.
    DiskFull,
}

/// Which limits runs are kept to. One that is not kept is accepted, and named with each run that
/// has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitsKept {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
    /// Why one is not, and what to do; left out where both are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How runs are kept apart from each other and from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Isolation {
    /// By which means: `containers`, `accounts`, `namespaces`, `landlock`, `none`.
    pub kind: String,
    /// What that means, in one sentence.
    pub meaning: String,
    /// What is not kept apart, why, and what to do; left out where everything is.
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
    /// Whether new pods may come.
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
    /// How fractions of its GPUs are kept; left out for a node without GPUs.
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

/// What is the matter with a GPU that is out of service.
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
    /// What the driver calls it.
    pub uuid: String,
    /// Product name, or `simulated`.
    pub gpu_type: String,
    /// True if it is simulated.
    pub simulated: bool,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// The part of it that is allocated, 0 to 1.
    pub allocated: Millis,
    /// Why it is out of service, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<GpuFault>,
    /// How parts of it are kept; left out by servers of earlier versions.
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
    /// When.
    pub at: Time,
    /// What happened: `Submitted`, `Scheduled`, `Started`, `Evicted`, ….
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
    /// Why it waits; empty when it does not.
    pub pending_reasons: Vec<Reason>,
    /// Those of them that the summary does not say.
    #[serde(default)]
    pub further_reasons: Vec<Reason>,
    /// Its last eviction, move or resize, and for whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_eviction: Option<Eviction>,
    /// How its part of each GPU is kept where it is; left out where it has no part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fractions: Option<FractionLimit>,
    /// How its project stands: quota, fair share, use, all in GPUs.
    pub project_quota: Millis,
    /// See `project_quota`.
    pub project_fair_share: Millis,
    /// See `project_quota`.
    pub project_allocated: Millis,
    /// What happened to it, newest last.
    pub events: Vec<LiveEvent>,
    /// The long answer to why it waits; none when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// When it may start; none when it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_estimate: Option<crate::StartEstimate>,
    /// Since when its work would be lost if it were stopped for others: its last checkpoint, or its
    /// start. Left out of what has no place, and of what is never stopped for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved_since: Option<Time>,
    /// How far it is, if it is an elastic training that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<JobTraining>,
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
    /// Whose workload was the first to ask for it.
    pub created_by: String,
    /// When.
    pub created_at: Time,
    /// Names of the workloads that have it mounted, or had before they ended.
    pub used_by: Vec<String>,
    /// Whether it was deleted, and what is in it is not gone yet. Who asks for its name gets
    /// another.
    #[serde(default)]
    pub deleting: bool,
    /// Why it is not gone yet, where deleting it fails. It is tried again and again.
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
    /// What it is.
    #[serde(flatten)]
    pub summary: ConfigMapSummary,
    /// Texts by their keys.
    pub data: BTreeMap<String, String>,
}

/// Answer of `GET /elastane/v1/projects/{projectId}/config-maps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMaps {
    /// By name.
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
    /// What it holds, keys and texts.
    pub bytes: u64,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Time,
    /// Who changed it last.
    pub updated_by: String,
    /// When.
    pub updated_at: Time,
}

/// Which port of a workload is to be opened in a browser.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketRequest {
    /// Its name or number; may be left out where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// By which a browser comes to a port of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// The address; with a ticket in it, good once and for a minute, unless everyone may come.
    pub url: String,
}

/// By which a page of this server opens a WebSocket to a workload: as `elastane_ticket` in its
/// address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebSocketTicket {
    /// The ticket, good once.
    pub ticket: String,
    /// For how many seconds.
    pub expires_in_seconds: u64,
}

/// How a session in a pod ended: the message of channel 3 of a WebSocket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd {
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal it was ended by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A terminal has another size: the message of channel 4 of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Type of a message of a session's WebSocket: its first byte.
pub mod channel {
    /// To the command: input.
    pub const INPUT: u8 = 0;
    /// From the command: its output, with a terminal its errors as well.
    pub const OUTPUT: u8 = 1;
    /// From the command: its errors.
    pub const ERRORS: u8 = 2;
    /// From the server: the end of the command; the last message.
    pub const END: u8 = 3;
    /// To the command: the size of the terminal.
    pub const SIZE: u8 = 4;
    /// To the command: there is no more input.
    pub const INPUT_ENDS: u8 = 255;
}
