//! The storage types. Owns: what a row holds and how its JSON parts look on disk, for good: a
//! field may be added with a default, never renamed. Does not know about: the types of the rest of
//! the house; `control` converts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spec::document::Document;
use spec::{NodeTypes, Rules, ShareChange, WorkloadKind, WorkloadPast, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::ledger::{AllocationRow, GpuUseRow, LagRow};

/// Who this database belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRow {
    /// Made once, when the database is created.
    pub uuid: Uuid,
    /// When that was.
    pub created_at: Instant,
}

/// What the wall clock said when the state was last dated by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRow {
    /// Which start of the machine that was in.
    pub boot: Uuid,
    /// Milliseconds that the clock was ahead of the time since that start.
    pub ahead_ms: i64,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRow {
    /// Id; never given out twice.
    pub id: u64,
    /// Name, unique among the living.
    pub name: String,
    /// Everything else.
    pub body: ProjectBody,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

/// The part of a project nothing is looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectBody {
    /// Free text.
    pub description: String,
    /// Who created it.
    pub created_by: String,
    /// When, milliseconds since the epoch.
    pub created_at_ms: u64,
    /// Who changed it last; none in rows of before this was kept.
    #[serde(default)]
    pub updated_by: Option<String>,
    /// Last change, milliseconds since the epoch.
    pub updated_at_ms: u64,
    /// Its department; the first one in rows of before there were others.
    #[serde(default = "first_department")]
    pub department_id: u64,
    /// How long its workloads may run.
    #[serde(default)]
    pub rules: Rules,
    /// What it was given in the node pool `default`.
    #[serde(flatten)]
    pub share: ShareChange,
    /// What it was given in others, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pool_shares: BTreeMap<String, ShareChange>,
    /// Node pools of workloads that name none, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_pools: Vec<String>,
    /// Which nodes workloads may go to.
    #[serde(default)]
    pub node_types: NodeTypes,
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
    /// Everything else.
    pub body: DepartmentBody,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

/// The part of a department nothing is looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepartmentBody {
    /// Free text.
    pub description: String,
    /// Who created it.
    pub created_by: String,
    /// When, milliseconds since the epoch.
    pub created_at_ms: u64,
    /// Who changed it last.
    pub updated_by: String,
    /// Last change, milliseconds since the epoch.
    pub updated_at_ms: u64,
    /// What it was given in the node pool `default`; none: nothing.
    pub share: Option<ShareChange>,
    /// How long workloads may run.
    #[serde(default)]
    pub rules: Rules,
    /// What it was given in other node pools than `default`, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pool_shares: BTreeMap<String, ShareChange>,
    /// Node pools of workloads that name none, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_pools: Vec<String>,
    /// Which nodes workloads may go to.
    #[serde(default)]
    pub node_types: NodeTypes,
}

/// A workload as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadRow {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Project.
    pub project_id: u64,
    /// When it was accepted.
    pub created_at: Instant,
    /// What was asked for; never changes.
    pub spec: Arc<WorkloadSpec>,
    /// How it stands.
    pub state: WorkloadState,
}

/// How a workload stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadState {
    /// Phase, as `control` names it.
    pub phase: String,
    /// When it was entered.
    pub phase_since: Instant,
    /// What the user wants of it.
    pub desired: Desired,
    /// Starts after a failure.
    pub restarts: u32,
    /// Not to be started before.
    pub not_before: Option<Instant>,
    /// When it ended.
    pub completed_at: Option<Instant>,
    /// Milliseconds waited up to `phase_since`.
    pub waited_ms: u64,
    /// Milliseconds run up to `phase_since`.
    pub ran_ms: u64,
    /// Last eviction, move or resize.
    pub eviction: Option<ReasonBody>,
    /// When its last process was gone after it was deleted. Such a row is history.
    pub deleted_at: Option<Instant>,
}

/// What the user wants of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Desired {
    /// That it runs.
    Run,
    /// That it is stopped and kept.
    Suspend,
    /// That it goes away.
    Delete,
}

/// A coded reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonBody {
    /// Stable code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// When, milliseconds since the epoch.
    pub at_ms: u64,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodRow {
    /// Id; the same for all runs.
    pub id: Uuid,
    /// Workload.
    pub workload_id: Uuid,
    /// Number among the workload's pods.
    pub index: u32,
    /// Runs so far.
    pub generation: u32,
    /// Where it is and what became of it.
    pub body: PodBody,
}

/// Where a pod is and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodBody {
    /// Where it is.
    pub current: Option<PlacementBody>,
    /// True if it is being stopped there.
    pub releasing: bool,
    /// Place kept for it.
    pub next: Option<PlacementBody>,
    /// When the run was placed, milliseconds since the epoch.
    pub placed_at_ms: Option<u64>,
    /// Since when its workload has held places without a break, milliseconds since the epoch.
    pub held_since_ms: Option<u64>,
    /// When its process started, milliseconds since the epoch.
    pub started_at_ms: Option<u64>,
    /// When it last changed size, milliseconds since the epoch.
    #[serde(default)]
    pub resized_at_ms: Option<u64>,
    /// What its newest run was given, in thousandths of a GPU, if the scheduler chooses that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_gpu_millis: Option<u64>,
    /// What the run before it was given, if that was another number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized_from: Option<u64>,
    /// When a run that ended in its place is to be started there again.
    pub restart_at_ms: Option<u64>,
    /// True if it begins only when others have their places.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_others: bool,
    /// True if it has left its set, or does so as soon as its run has stopped; `parked` in earlier
    /// versions.
    #[serde(default, alias = "parked", skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Its port among the pods it works together with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Who it is since it began again as another pod.
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
    /// Failures in its place in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Milliseconds for which it has held its place in pauses after failures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_ms: u64,
}

fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

/// A pod that began again as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relaunch {
    /// Its number among those of its role, which no other has had.
    pub number: u32,
    /// The last of its runs under an earlier number.
    pub after: u32,
    /// How often it began again because it had failed.
    pub failures: u32,
}

/// A place on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementBody {
    /// Node, by name.
    pub node: String,
    /// Shares of its GPUs: index and thousandths.
    pub devices: Vec<(u32, u64)>,
    /// What the driver calls the MIG instances among them, in their order: their numbers may be those of
    /// others when the server starts again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
}

/// A row of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// Position, from 1.
    pub seq: u64,
    /// When.
    pub at: Instant,
    /// What happened.
    pub kind: String,
    /// True if it is a warning.
    pub warning: bool,
    /// Project.
    pub project_id: Option<u64>,
    /// Its name at the time.
    pub project_name: String,
    /// Workload.
    pub workload_id: Option<Uuid>,
    /// Its name at the time.
    pub workload_name: String,
    /// Pod.
    pub pod_name: Option<String>,
    /// Reason code.
    pub code: Option<String>,
    /// One sentence.
    pub message: String,
}

/// Which events to read. The default is all, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only of this workload.
    pub workload: Option<Uuid>,
    /// Only those that name the workload like this; those of an inference name its revisions.
    pub workload_name: Option<String>,
    /// Only of this project.
    pub project: Option<u64>,
    /// Only after this position.
    pub after_seq: Option<u64>,
    /// Without the first so many of them.
    pub skip: u64,
    /// At most so many; none = as many as there are.
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
    /// Whom it stands for.
    pub subject: String,
    /// When it was made.
    pub created_at: Instant,
}

/// A row of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When.
    pub at: Instant,
    /// Who.
    pub who: String,
    /// What was asked: `project.create`, `workload.delete`, ….
    pub what: String,
    /// Of which thing.
    pub target: String,
    /// `ok`, or why not.
    pub result: String,
    /// From where and how.
    pub detail: AuditDetail,
}

/// From where and how something was asked. What is not known is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditDetail {
    /// True if a program asked, not a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_program: bool,
    /// Address of the asker.
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
    /// Id of what it was about.
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
    /// What it is: `user`, `access-rule`, ….
    pub kind: String,
    /// Id, unique in its kind.
    pub id: String,
    /// Whose it is: `tenant`, `project/7`.
    pub scope: String,
    /// What it cannot outlive, `user/<id>`; empty for nothing.
    pub owner: String,
    /// Name, unique among the living of the kind, scope and owner.
    pub name: String,
    /// Everything else. May hold hashes of secrets.
    pub body: serde_json::Value,
    /// When it was made.
    pub created_at: Instant,
    /// By whom.
    pub created_by: String,
    /// Last change.
    pub updated_at: Instant,
    /// By whom.
    pub updated_by: String,
    /// When it was deleted.
    pub deleted_at: Option<Instant>,
}

impl std::fmt::Debug for ObjectRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectRow({} {} {} of {})", self.kind, self.id, self.name, self.scope)
    }
}

/// Which rows of the audit log to read, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Not before.
    pub from: Option<Instant>,
    /// Before.
    pub until: Option<Instant>,
    /// Without so many of the newest.
    pub offset: u32,
    /// At most so many.
    pub limit: u32,
}

/// What was held in a step of time, on average.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// When the step began.
    pub step_start: Instant,
    /// By which project; none: what the pool has.
    pub project_id: Option<u64>,
    /// Id of the node pool; empty for `default`.
    pub pool: String,
    /// How much.
    pub held: Resources,
}

/// What was measured of something: one look at it, or the mean of the looks in a step of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Of what: `cluster`, `node/n1`, `pod/<id>`, ….
    pub subject: String,
    /// Length of the step in milliseconds; 0 = one look.
    pub step_ms: u64,
    /// When it was, or when the step began.
    pub at: Instant,
    /// Values by name, each in its smallest unit.
    pub values: BTreeMap<String, u64>,
}

/// Which samples to read, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleFilter {
    /// Of this subject; none = of all.
    pub subject: Option<String>,
    /// Of steps so long.
    pub step_ms: u64,
    /// Not before.
    pub from: Instant,
    /// Before.
    pub until: Instant,
}

/// A log: its rows are never changed, and the oldest go one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Log {
    /// What happened.
    Events,
    /// Who asked for what.
    Audit,
}

/// One change; a batch of them is one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The state is dated otherwise.
    Clock(ClockRow),
    /// A department is new or changed.
    Department(DepartmentRow),
    /// A project is new or changed.
    Project(ProjectRow),
    /// A workload is new.
    Workload(Box<WorkloadRow>),
    /// A workload is asked for otherwise.
    WorkloadSpec(Uuid, Arc<WorkloadSpec>),
    /// A workload stands otherwise.
    WorkloadState(Uuid, WorkloadState),
    /// Decisions follow from something else about a workload.
    WorkloadPast(Uuid, WorkloadPast),
    /// An ended workload of this kind, submitted by this user, left memory.
    WorkloadArchived(Uuid, WorkloadKind, String),
    /// An archived workload is in memory again.
    WorkloadRestored(Uuid),
    /// A pod is new or stands otherwise.
    Pod(PodRow),
    /// Pods of workloads that were deleted before this are not kept any more.
    PodsGone(Instant),
    /// Workloads that were deleted before this are not kept any more, except for the one with the
    /// highest `seq`: it says what was given out. Their pods go first.
    WorkloadsGone(Instant),
    /// Something happened.
    Event(EventRow),
    /// Someone asked for something.
    Audit(AuditRow),
    /// Rows of a log before this position may go.
    LogKeptFrom(Log, u64),
    /// Rows of a log that may go do, except for the newest: it says what was given out.
    LogGone(Log),
    /// A client is new or has a new secret.
    Credential(CredentialRow),
    /// A client's credential is withdrawn.
    CredentialGone(String),
    /// An object is new, changed or deleted.
    Object(Box<ObjectRow>),
    /// A step of time has ended.
    Usage(UsageRow),
    /// Steps that began before this do not count any more.
    UsageGone(Instant),
    /// The lag of a queue goes on in another way.
    Lag(LagRow),
    /// Something was measured.
    Sample(SampleRow),
    /// GPUs are held, or are not any more.
    Allocation(AllocationRow),
    /// What ended before this is not kept any more.
    AllocationsGone(Instant),
    /// GPUs were used.
    GpuUse(GpuUseRow),
    /// Hours that began before this are not kept any more.
    GpuUseGone(Instant),
    /// Samples of steps so long that were taken before this are not kept any more.
    SamplesGone {
        /// Length of the step in milliseconds.
        step_ms: u64,
        /// The oldest that is kept.
        before: Instant,
    },
}

/// How many workloads of a project, kind and phase are archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ArchivedKey {
    /// Project.
    pub project_id: u64,
    /// Kind.
    pub kind: WorkloadKind,
    /// True if they failed.
    pub failed: bool,
}
