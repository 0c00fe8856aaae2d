//! What the rest of the house may see of the state: immutable snapshots, replaced as a whole
//! after every decision. Readers never wait for the dispatcher.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::Taint;
use records::ArchivedKey;
use spec::{NodeSpec, Scheduling};
pub use spec::{NodeTypes, Rank, Rules, Share, WorkloadKind};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::SharedMap;
use crate::documents::Objects;
use crate::gpu_fault::GpuFault;

/// The whole visible state at one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Number of the last event that is part of this view.
    pub event_seq: u64,
    /// Departments by id.
    pub departments: SharedMap<u64, Arc<OrgUnit>>,
    /// Projects by id.
    pub projects: SharedMap<u64, Arc<ProjectView>>,
    /// Workloads that are not deleted, by id, without archived ones.
    pub workloads: SharedMap<Uuid, Arc<WorkloadView>>,
    /// The revisions of inferences, by id. Each is shown like a workload.
    pub revisions: SharedMap<Uuid, Arc<WorkloadView>>,
    /// Inferences, and workloads with ports that are opened in a browser, by the name of their project
    /// and their own: every request to one is by these.
    pub by_name: SharedMap<(String, String), Uuid>,
    /// How many workloads are archived: ended ones that only the database has.
    pub archived: Arc<BTreeMap<ArchivedKey, u64>>,
    /// What the scheduler does not need: users, rules, assets, ….
    pub objects: Objects,
    /// Nodes in their order.
    pub nodes: Vec<Arc<NodeView>>,
    /// Node pools, `default` first, then in order of creation.
    pub pools: Vec<Arc<PoolView>>,
    /// How the cluster is used as a whole.
    pub capacity: Resources,
}

impl View {
    /// How many workloads are archived.
    #[must_use]
    pub fn archived_count(&self) -> u64 {
        self.archived.values().sum()
    }

    /// The inference of this name in the project of that name.
    #[must_use]
    pub fn inference(&self, project: &str, name: &str) -> Option<&Arc<WorkloadView>> {
        self.named(project, name).filter(|workload| workload.spec.has_revisions())
    }

    /// The workload of this name in the project of that name, if requests come to it by name.
    #[must_use]
    pub fn named(&self, project: &str, name: &str) -> Option<&Arc<WorkloadView>> {
        let id = self.by_name.get(&(project.to_owned(), name.to_owned()))?;
        self.workloads.get(id)
    }
}

/// A department and how it stands, or what a project has in common with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrgUnit {
    /// Id, shown as a string of digits at the API.
    pub id: u64,
    /// Name, unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Who created it.
    pub created_by: String,
    /// When.
    pub created_at: Instant,
    /// Who changed it last.
    pub updated_by: String,
    /// Last change.
    pub updated_at: Instant,
    /// How long its workloads may run.
    pub rules: Rules,
    /// Node pools of workloads that name none, the best first; empty = those of whom it belongs to.
    pub default_pools: Vec<String>,
    /// Which nodes its workloads may go to.
    pub node_types: NodeTypes,
    /// How it stands in all pools together.
    pub standing: Standing,
    /// What it has in each node pool, in the order of [`View::pools`].
    pub pools: Vec<PoolShare>,
}

impl OrgUnit {
    /// What it is entitled to in the node pool `default`.
    #[must_use]
    pub fn share(&self) -> Share {
        self.pools.first().map_or(Share::USUAL, |pool| pool.share)
    }
}

/// What a department or a project has in a node pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolShare {
    /// Id of the pool.
    pub id: Arc<str>,
    /// Name of the pool.
    pub name: Arc<str>,
    /// What it is entitled to there.
    pub share: Share,
    /// What it would be entitled to there, had it been given nothing.
    pub usual: Share,
    /// How it stands there.
    pub standing: Standing,
}

/// How a department or a project stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// What its workloads hold now.
    pub allocated: Resources,
    /// The part of it that cannot be preempted.
    pub allocated_non_preemptible: Resources,
    /// What its workloads ask for, running and pending.
    pub requested: Resources,
    /// What it is entitled to now, quota and over-quota part together.
    pub fair_share: Resources,
    /// What it used of late, if that matters.
    pub usage: Option<model::Usage>,
}

/// A project and how it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectView {
    /// What a department has as well.
    pub unit: OrgUnit,
    /// Id of its department.
    pub department_id: u64,
    /// Name of its department.
    pub department_name: String,
    /// The rules that apply, with those of its department.
    pub effective_rules: Rules,
    /// The node pools that apply, with those of its department; empty = all.
    pub effective_pools: Vec<String>,
    /// The types of nodes that apply, with those of its department.
    pub effective_types: NodeTypes,
}

impl ProjectView {
    /// In words, where its quota is above what its department, which divides its own, can give it.
    #[must_use]
    pub fn above(&self, department: &OrgUnit) -> Option<String> {
        let both = self.unit.pools.iter().zip(&department.pools);
        above(&department.name, both.map(|(own, all)| (&*own.name, own.share, all.share)))
    }
}

/// In words, where a project is given more in pools than its department has: the name of a pool, the
/// share of the project, and that of the department.
pub(crate) fn above<'a>(
    department: &str,
    pools: impl Iterator<Item = (&'a str, Share, Share)>,
) -> Option<String> {
    let above = pools.filter(|(_, own, all)| own.gpu_quota_millis > all.gpu_quota_millis);
    let above = above.map(|(name, own, all)| {
        let [own, all] = [own, all].map(|share| units::format_millis(share.gpu_quota_millis));
        format!("{own} of {all} GPU(s) in node pool {name}")
    });
    let pools = above.collect::<Vec<_>>().join(", ");
    let text = format!(
        "the quota is more than department {department} has: {pools}; what is above counts as over \
         quota"
    );
    (!pools.is_empty()).then_some(text)
}

/// A node pool and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// What it is made of and how it is used.
    pub settings: spec::PoolSettings,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// What they have.
    pub capacity: Resources,
    /// When it was created.
    pub created_at: Instant,
    /// By whom.
    pub created_by: String,
    /// Last change.
    pub updated_at: Instant,
    /// By whom.
    pub updated_by: String,
}

/// Phases as the REST API names them (reference C.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Waits for the scheduler, or for resources that are being released for it.
    Pending,
    /// Placed; its process is being started.
    Initializing,
    /// Runs.
    Running,
    /// Runs with fewer pods than it asks for.
    Degraded,
    /// Serves, while a newer revision of it is on its way.
    Updating,
    /// Being suspended.
    Stopping,
    /// Suspended.
    Stopped,
    /// Resumed, not yet looked at.
    Resuming,
    /// Being stopped for good.
    Deleting,
    /// Ended well.
    Completed,
    /// Ended badly, retries used up.
    Failed,
}

impl Phase {
    /// Whether a workload in it has been given places.
    #[must_use]
    pub const fn holds(self) -> bool {
        matches!(self, Self::Initializing | Self::Running | Self::Degraded)
    }
}

/// A coded reason with its text, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonView {
    /// Stable code: `P…` for pending, `E…` for evictions. `docs/reference/codes/<code>.md` explains.
    pub code: Cow<'static, str>,
    /// One sentence with the numbers.
    pub message: Arc<str>,
    /// When it began to apply, or happened.
    pub at: Instant,
}

/// A workload and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadView {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Its place in what the scheduler sees, until it has ended; of an inference the newest revision's.
    pub model: Option<model::WorkloadId>,
    /// Id of its project.
    pub project_id: u64,
    /// Name of its project.
    pub project_name: String,
    /// Id of the department of its project.
    pub department_id: u64,
    /// Its name.
    pub department_name: String,
    /// What was asked for.
    pub spec: Arc<spec::WorkloadSpec>,
    /// When it was accepted.
    pub created_at: Instant,
    /// Phase.
    pub phase: Phase,
    /// When it entered the phase.
    pub phase_since: Instant,
    /// When it ended.
    pub completed_at: Option<Instant>,
    /// When the last of it was gone after it was deleted.
    pub deleted_at: Option<Instant>,
    /// Resources it holds now.
    pub allocated: Resources,
    /// Resources it asked for.
    pub requested: Resources,
    /// Whether any of what it holds is above its project's quota.
    pub over_quota: bool,
    /// Its pods; of an inference those of its revisions that are wanted or still there.
    pub pods: Vec<PodView>,
    /// Its revisions, the oldest first, if it is an inference.
    pub revisions: Vec<Uuid>,
    /// Why it waits; empty when it does not.
    pub pending: Arc<[ReasonView]>,
    /// Its last eviction, move or resize, and for whom.
    pub last_eviction: Option<ReasonView>,
    /// How often it was started again after a failure.
    pub restarts: u32,
    /// What it failed of, if it did; of an inference what its newest revision did.
    pub failure: Option<String>,
    /// Name of the node pool it is in; none while it has no place.
    pub pool: Option<String>,
    /// Milliseconds it has waited, and run, up to `phase_since`.
    pub waited_ms: u64,
    /// See `waited_ms`.
    pub ran_ms: u64,
}

impl WorkloadView {
    /// Whether it waits for the scheduler. What keeps a pod from starting or serving in its place
    /// is no such reason.
    #[must_use]
    pub fn waits_for_a_place(&self) -> bool {
        self.pending.iter().any(|reason| reason.code.starts_with('P'))
    }
}

/// A pod and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Id; the same for all runs of this pod.
    pub id: Uuid,
    /// Since when there is this run of it: since its workload was submitted, or it was placed again.
    pub created_at: Instant,
    /// Number among the workload's pods.
    pub index: u32,
    /// Which run; 0 before the first.
    pub generation: u32,
    /// Name.
    pub name: String,
    /// The revision it belongs to, if it is a replica.
    pub revision: Option<Uuid>,
    /// The port it was given, if it was.
    pub port: Option<u16>,
    /// Whether it is to run: replicas come and go.
    pub wanted: bool,
    /// State.
    pub state: PodState,
    /// Node it is on, or will be on.
    pub node_name: Option<String>,
    /// GPU index on the node and share in thousandths.
    pub gpus: Vec<(u32, u64)>,
    /// When this run was placed.
    pub placed_at: Option<Instant>,
    /// Since when its workload has held places without a break.
    pub held_since: Option<Instant>,
    /// When its process started.
    pub started_at: Option<Instant>,
    /// How its last run ended.
    pub last_exit: Option<String>,
    /// When its process, which has ended, is started again: in the place that it keeps, or, if it
    /// failed and gave its place up, at the earliest.
    pub restart_at: Option<Instant>,
    /// What keeps its run from starting, or from serving.
    pub condition: Option<ReasonView>,
}

/// States of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodState {
    /// Waits for a place.
    Pending,
    /// Its turn has not come: others of its workload run first.
    Later,
    /// Has a place that is being freed for it.
    Reserved,
    /// Placed, starting.
    Starting,
    /// Runs.
    Running,
    /// Being stopped.
    Terminating,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Suspended.
    Suspended,
    /// It had not ended when its workload was deleted.
    Gone,
}

impl PodState {
    /// Whether it has a place, and is not being stopped.
    #[must_use]
    pub const fn is_starting_or_running(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// A node and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// As it came.
    pub spec: Arc<NodeSpec>,
    /// Name.
    pub name: String,
    /// What the GPUs are: product name, or `simulated`.
    pub gpu_type: String,
    /// Whether its GPUs exist only in the books.
    pub simulated: bool,
    /// Memory of each GPU in bytes.
    pub gpu_memory_bytes: Vec<u64>,
    /// Thousandths in use per GPU.
    pub gpu_used_millis: Vec<u64>,
    /// The pods on each GPU, in the order of the model.
    pub gpu_pods: Vec<Vec<GpuPod>>,
    /// What is the matter with its GPUs, by their numbers: those are out of service, and no part of the
    /// capacity.
    pub gpu_faults: BTreeMap<u32, GpuFault>,
    /// Capacity.
    pub capacity: Resources,
    /// In use.
    pub used: Resources,
    /// Name of its pool.
    pub pool: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether new pods may come.
    pub scheduling: Scheduling,
    /// When it was added.
    pub created_at: Instant,
}

/// A pod that holds a GPU or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuPod {
    /// Its workload; of a replica its revision.
    pub workload_id: Uuid,
    /// Its id.
    pub pod_id: Uuid,
    /// Thousandths of the GPU.
    pub millis: u64,
}

/// A GPU of a node and how it stands. Two are equal if they look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuView<'a> {
    /// Name of its node.
    pub node: &'a str,
    /// Its number there.
    pub index: u32,
    /// What the driver calls it.
    pub uuid: &'a str,
    /// Product name, or `simulated`.
    pub gpu_type: &'a str,
    /// Whether it exists only in the books.
    pub simulated: bool,
    /// Name of the pool of its node.
    pub pool: &'a str,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Thousandths in use.
    pub used_millis: u64,
    /// Why it is out of service, if it is.
    pub fault: Option<&'a GpuFault>,
    /// The pods on it.
    pub pods: &'a [GpuPod],
}

impl NodeView {
    /// A GPU, by its number.
    #[must_use]
    pub fn gpu(&self, index: u32) -> Option<GpuView<'_>> {
        let at = index as usize;
        Some(GpuView {
            node: &self.name,
            index,
            uuid: self.spec.gpus.get(at).map_or("", |gpu| &gpu.uuid),
            gpu_type: &self.gpu_type,
            simulated: self.simulated,
            pool: &self.pool,
            memory_bytes: *self.gpu_memory_bytes.get(at)?,
            used_millis: self.gpu_used_millis.get(at).copied().unwrap_or(0),
            fault: self.gpu_faults.get(&index),
            pods: self.gpu_pods.get(at).map_or(&[], Vec::as_slice),
        })
    }

    /// Its GPUs, in their order.
    pub fn gpus(&self) -> impl Iterator<Item = GpuView<'_>> {
        (0..).map_while(|index| self.gpu(index))
    }
}

/// One row of the append-only event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the log, from 1, without gaps for a reader.
    pub seq: u64,
    /// When.
    pub at: Instant,
    /// What happened: `Submitted`, `Scheduled`, `Started`, `Evicted`, `PhaseChanged`, ….
    pub kind: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// Workload it is about.
    pub workload_id: Option<Uuid>,
    /// Its name at the time.
    pub workload_name: String,
    /// Pod it is about.
    pub pod_name: Option<String>,
    /// Project it is about.
    pub project_id: Option<u64>,
    /// Its name at the time.
    pub project_name: String,
    /// Reason code, if it has one.
    pub code: Option<String>,
    /// One sentence.
    pub message: String,
}
