//! The storage types. Owns: what a row holds and how its JSON parts look on disk, for good: a field
//! may be added with a default, never renamed. Does not know about: the types of other crates;
//! `control` converts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spec::document::Document;
use spec::{NodeTypes, Rules, ShareChange, WorkloadKind, WorkloadPast, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::{BeneficiaryBody, LogGroup, ReasonBody};

use crate::ledger::{AllocationRow, GpuUseRow, LagRow};

/// Identity of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRow {
    /// Id of the cluster, made once, when the database is created.
    pub uuid: Uuid,
    /// When the database was created.
    pub created_at: Instant,
}

/// Offset of the wall clock when the state was last dated by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRow {
    /// Id of the machine's boot at that time.
    pub boot: Uuid,
    /// Milliseconds that the clock was ahead of the time since that boot.
    pub ahead_ms: i64,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRow {
    /// Id; never given out twice.
    pub id: u64,
    /// Name, unique among the living.
    pub name: String,
    /// Fields that are not columns.
    pub body: ProjectBody,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

/// Fields of a project that are not columns: no query needs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectBody {
    /// Free text.
    pub description: String,
    /// User who created it.
    pub created_by: String,
    /// When it was created, milliseconds since the epoch.
    pub created_at_ms: u64,
    /// User who changed it last; `None` in rows of earlier versions.
    #[serde(default)]
    pub updated_by: Option<String>,
    /// Last change, milliseconds since the epoch.
    pub updated_at_ms: u64,
    /// Id of its department; the first one in rows of before there were others.
    #[serde(default = "first_department")]
    pub department_id: u64,
    /// How long its workloads may run.
    #[serde(default)]
    pub rules: Rules,
    /// Quota and share of the project in the node pool `default`.
    #[serde(flatten)]
    pub share: ShareChange,
    /// Quotas and shares in the other node pools, by pool id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pool_shares: BTreeMap<String, ShareChange>,
    /// Names of the node pools for workloads that name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_pools: Vec<String>,
    /// Nodes that workloads may run on.
    #[serde(default)]
    pub node_types: NodeTypes,
    /// Further namespaces in a Kubernetes cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

macro_rules! documents {
    ($($of:ident = $what:literal),+ $(,)?) => {
        $(impl Document for $of {
            const WHAT: &'static str = $what;
        })+
    };
}

documents! {
    ProjectBody = "project",
    DepartmentBody = "department",
    PodBody = "state of a pod",
    ReasonBody = "reason of an eviction",
    BeneficiaryBody = "beneficiary of an eviction",
    AuditDetail = "detail of the audit log",
}

fn first_department() -> u64 {
    1
}

/// A department.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepartmentRow {
    /// Id; never given out twice.
    pub id: u64,
    /// Name, unique among the living.
    pub name: String,
    /// Fields that are not columns.
    pub body: DepartmentBody,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

/// Fields of a department that are not columns: no query needs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepartmentBody {
    /// Free text.
    pub description: String,
    /// User who created it.
    pub created_by: String,
    /// When it was created, milliseconds since the epoch.
    pub created_at_ms: u64,
    /// User who changed it last.
    pub updated_by: String,
    /// Last change, milliseconds since the epoch.
    pub updated_at_ms: u64,
    /// Quota and share of the department in the node pool `default`; `None` if it has none.
    pub share: Option<ShareChange>,
    /// How long workloads may run.
    #[serde(default)]
    pub rules: Rules,
    /// Quotas and shares in the other node pools, by pool id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pool_shares: BTreeMap<String, ShareChange>,
    /// Names of the node pools for workloads that name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_pools: Vec<String>,
    /// Nodes that workloads may run on.
    #[serde(default)]
    pub node_types: NodeTypes,
}

/// A workload: its specification and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadRow {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Id of the project.
    pub project_id: u64,
    /// When it was accepted.
    pub created_at: Instant,
    /// Specification.
    pub spec: Arc<WorkloadSpec>,
    /// Current state.
    pub state: WorkloadState,
}

/// State of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadState {
    /// Phase, as `control` names it.
    pub phase: String,
    /// When the phase was entered.
    pub phase_since: Instant,
    /// State that the user wants.
    pub desired: Desired,
    /// Restarts after a failure.
    pub restarts: u32,
    /// Earliest time of the next start.
    pub not_before: Option<Instant>,
    /// When it ended.
    pub completed_at: Option<Instant>,
    /// Milliseconds waited up to `phase_since`.
    pub waited_ms: u64,
    /// Milliseconds run up to `phase_since`.
    pub ran_ms: u64,
    /// Last eviction, move or resize.
    pub eviction: Option<ReasonBody>,
    /// When the last process of the deleted workload was gone. Such a row is history.
    pub deleted_at: Option<Instant>,
}

/// State that the user wants of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Desired {
    /// It runs.
    Run,
    /// It is stopped and kept.
    Suspend,
    /// It is deleted.
    Delete,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodRow {
    /// Id; the same for all runs.
    pub id: Uuid,
    /// Id of the workload.
    pub workload_id: Uuid,
    /// Number among the workload's pods.
    pub index: u32,
    /// Runs so far.
    pub generation: u32,
    /// Placement and outcome.
    pub body: PodBody,
}

/// Placement and outcome of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodBody {
    /// Current placement.
    pub current: Option<PlacementBody>,
    /// True if it is being stopped there.
    pub releasing: bool,
    /// Placement reserved for it.
    pub next: Option<PlacementBody>,
    /// When the run was placed, milliseconds since the epoch.
    pub placed_at_ms: Option<u64>,
    /// Start of the time for which its workload has held places without a break, milliseconds since
    /// the epoch.
    pub held_since_ms: Option<u64>,
    /// When its process started, milliseconds since the epoch.
    pub started_at_ms: Option<u64>,
    /// When it last changed size, milliseconds since the epoch.
    #[serde(default)]
    pub resized_at_ms: Option<u64>,
    /// GPU share of its newest run in thousandths of a GPU, if the scheduler chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_gpu_millis: Option<u64>,
    /// GPU share of the run before, if it was another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized_from: Option<u64>,
    /// When a run that ended is to be started again in the same placement.
    pub restart_at_ms: Option<u64>,
    /// True if it starts only when all pods of its group are placed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_others: bool,
    /// True if it has left its set, or does so as soon as its run has stopped; `parked` in earlier
    /// versions.
    #[serde(default, alias = "parked", skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Port among the pods of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// True if its run has met the others of its workload at the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub meets: bool,
    /// Its identity since it was relaunched as another pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relaunch: Option<Relaunch>,
    /// `succeeded` or `failed`, once it has ended for good.
    pub ended: Option<String>,
    /// How its last run ended.
    pub last_exit: Option<String>,
    /// The kind of that end; none where an earlier version wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit_kind: Option<spec::ExitKind>,
    /// Runs lost in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub setbacks: u32,
    /// Failures in a row in this placement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Milliseconds for which it has held its placement in pauses after failures, and without its gang.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_ms: u64,
    /// Length of its last run in milliseconds, if that failed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_after_ms: Option<u64>,
}

fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

/// Identity of a pod that was relaunched as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relaunch {
    /// Number among the pods of its role, used only once.
    pub number: u32,
    /// Last run under an earlier number.
    pub after: u32,
    /// Relaunches because of failures.
    pub failures: u32,
}

/// A place on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementBody {
    /// Node, by name.
    pub node: String,
    /// Shares of its GPUs: index and thousandths.
    pub devices: Vec<(u32, u64)>,
    /// UUIDs that the driver gives the MIG instances among them, in their order: after a restart of
    /// the server their indices may belong to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
}

/// A row of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// Position, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Instant,
    /// Type of the event.
    pub kind: String,
    /// True if it is a warning.
    pub warning: bool,
    /// Id of the project.
    pub project_id: Option<u64>,
    /// Name of the project at the time.
    pub project_name: String,
    /// Id of the workload.
    pub workload_id: Option<Uuid>,
    /// Name of the workload at the time.
    pub workload_name: String,
    /// Name of the pod.
    pub pod_name: Option<String>,
    /// Reason code.
    pub code: Option<String>,
    /// One sentence.
    pub message: String,
    /// Submitter of the workload; empty if the event is about none, or of an earlier version.
    #[serde(default)]
    pub owner: String,
    /// The workload for which the one of the event was stopped, moved or resized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneficiary: Option<BeneficiaryBody>,
}

/// Filter of events. The default selects all, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this workload.
    pub workload: Option<Uuid>,
    /// Only events that name the workload like this; those of an inference name its revisions.
    pub workload_name: Option<String>,
    /// Only events of this project.
    pub project: Option<u64>,
    /// Only events after this position.
    pub after_seq: Option<u64>,
    /// Number of events to skip.
    pub skip: u64,
    /// Most events to read; `None` for all.
    pub limit: Option<u32>,
    /// Newest first instead of oldest first.
    pub newest_first: bool,
}

/// A client that may ask for tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialRow {
    /// Client id.
    pub client_id: String,
    /// SHA-256 of its secret, in hexadecimal.
    pub secret_sha256: String,
    /// Principal that it authenticates.
    pub subject: String,
    /// When it was made.
    pub created_at: Instant,
}

/// A row of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When it was requested.
    pub at: Instant,
    /// Principal that requested it.
    pub who: String,
    /// Requested action: `project.create`, `workload.delete`, ….
    pub what: String,
    /// Target of the action.
    pub target: String,
    /// `ok`, or the error.
    pub result: String,
    /// Origin of the request.
    pub detail: AuditDetail,
}

/// Origin of a request. Unknown fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditDetail {
    /// True if a program sent it, not a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_program: bool,
    /// Address of the client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_ip: String,
    /// HTTP method.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Path, without the query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Id of the request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Id of the target.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_id: String,
    /// HTTP status, where the request was refused before it was a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// A document that the scheduler does not need.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Number in order of creation, over all kinds; never given out twice.
    pub seq: u64,
    /// Kind: `user`, `access-rule`, ….
    pub kind: String,
    /// Id, unique in its kind.
    pub id: String,
    /// Scope: `tenant`, `project/7`.
    pub scope: String,
    /// Object whose deletion deletes this one, `user/<id>`; empty if none.
    pub owner: String,
    /// Name, unique among the living of the kind, scope and owner.
    pub name: String,
    /// Fields that are not columns. May hold hashes of secrets.
    pub body: serde_json::Value,
    /// When it was made.
    pub created_at: Instant,
    /// User who created it.
    pub created_by: String,
    /// Time of the last change.
    pub updated_at: Instant,
    /// User who changed it last.
    pub updated_by: String,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

impl std::fmt::Debug for ObjectRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectRow({} {} {} of {})", self.kind, self.id, self.name, self.scope)
    }
}

/// Page of the audit log to read, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Earliest time.
    pub from: Option<Instant>,
    /// Time that all rows are before.
    pub until: Option<Instant>,
    /// Number of the newest rows to skip.
    pub offset: u32,
    /// Most rows to read.
    pub limit: u32,
}

/// Resources held in a step of time, on average.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// When the step began.
    pub step_start: Instant,
    /// Project that held them; `None`: the row is the capacity of the pool.
    pub project_id: Option<u64>,
    /// Id of the node pool; empty for `default`.
    pub pool: String,
    /// Average amount.
    pub held: Resources,
}

/// Measured values of a subject: one sample, or the mean of the samples in a step of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Subject: `cluster`, `node/n1`, `pod/<id>`, ….
    pub subject: String,
    /// Length of the step in milliseconds; 0 for a single sample.
    pub step_ms: u64,
    /// Time of the sample, or start of the step.
    pub at: Instant,
    /// Values by name, each in its smallest unit.
    pub values: BTreeMap<String, u64>,
}

/// Filter of samples; they are read oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleFilter {
    /// Subject; `None` for all.
    pub subject: Option<String>,
    /// Length of the steps in milliseconds.
    pub step_ms: u64,
    /// Earliest time.
    pub from: Instant,
    /// Time that all samples are before.
    pub until: Instant,
}

/// A log: its rows never change, and the oldest are deleted after a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Log {
    /// Events.
    Events,
    /// Requests: the audit log.
    Audit,
}

/// One change; a batch of them is one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The offset of the wall clock has changed.
    Clock(ClockRow),
    /// A department is new or changed.
    Department(DepartmentRow),
    /// A project is new or changed.
    Project(ProjectRow),
    /// A workload is new.
    Workload(Box<WorkloadRow>),
    /// A workload has another specification.
    WorkloadSpec(Uuid, Arc<WorkloadSpec>),
    /// A workload has another state.
    WorkloadState(Uuid, WorkloadState),
    /// A workload has another past.
    WorkloadPast(Uuid, WorkloadPast),
    /// An ended workload of this kind, submitted by this user, left memory.
    WorkloadArchived(Uuid, WorkloadKind, String),
    /// An archived workload is in memory again.
    WorkloadRestored(Uuid),
    /// A pod is new or has another state.
    Pod(PodRow),
    /// The highest `seq` of a workload is stored apart from the workload, which may go.
    WorkloadSeqGiven,
    /// Pods of this deleted workload are no longer kept.
    PodsGone(Uuid),
    /// A deleted workload without pods is no longer kept.
    WorkloadGone(Uuid),
    /// An event happened.
    Event(EventRow),
    /// A request was audited.
    Audit(AuditRow),
    /// Rows of a log before this position may be deleted.
    LogKeptFrom(Log, u64),
    /// Rows of a group of a log before this position may be deleted.
    LogGroupKeptFrom(Log, LogGroup, u64),
    /// Rows of a group of a log from the first position until before the second are deleted, if they
    /// may be, except for the newest of all: it holds the highest position.
    LogGroupGone(Log, LogGroup, u64, u64),
    /// Rows of a log that may be deleted are, except for the newest: it holds the highest position.
    LogGone(Log),
    /// A client is new or has a new secret.
    Credential(CredentialRow),
    /// A client's credential is withdrawn.
    CredentialGone(String),
    /// An object is new, changed or deleted.
    Object(Box<ObjectRow>),
    /// A step of time has ended.
    Usage(UsageRow),
    /// Steps that began before this no longer count.
    UsageGone(Instant),
    /// The lag of a queue changes at another rate.
    Lag(LagRow),
    /// A sample was taken.
    Sample(SampleRow),
    /// An allocation began or ended.
    Allocation(AllocationRow),
    /// Allocations that ended before this are no longer kept.
    AllocationsGone(Instant),
    /// GPUs were used.
    GpuUse(GpuUseRow),
    /// Hours that began before this are no longer kept.
    GpuUseGone(Instant),
    /// Samples of steps of this length that were taken before this are no longer kept.
    SamplesGone {
        /// Length of the step in milliseconds.
        step_ms: u64,
        /// Time of the oldest sample that is kept.
        before: Instant,
    },
}
