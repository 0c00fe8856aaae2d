//! Workloads and their pods, as readers see them.

use std::sync::Arc;

use units::{Instant, Resources};
use uuid::Uuid;

use crate::{PendingReason, ReasonView};

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
    /// True if a workload in it has been given places.
    #[must_use]
    pub const fn holds(self) -> bool {
        matches!(self, Self::Initializing | Self::Running | Self::Degraded)
    }
}

/// A workload and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadView {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Its place in what the scheduler sees, until it has ended; of an inference the newest
    /// revision's.
    pub model: Option<model::WorkloadId>,
    /// Id of its project.
    pub project_id: u64,
    /// Name of its project.
    pub project_name: String,
    /// Id of the department of its project.
    pub department_id: u64,
    /// Its name.
    pub department_name: String,
    /// What is requested.
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
    /// True if any of what it holds is above its project's quota.
    pub over_quota: bool,
    /// Its pods; of an inference those of its revisions that are wanted or still there.
    pub pods: Vec<PodView>,
    /// Its revisions, the oldest first, if it is an inference.
    pub revisions: Vec<Uuid>,
    /// Why it waits; empty when it does not. [`View::why`](crate::View::why) has it in full.
    pub pending: Arc<[PendingReason]>,
    /// Its last eviction, move or resize, and for whom.
    pub last_eviction: Option<ReasonView>,
    /// When it last saved its progress, as it reported.
    pub checkpointed_at: Option<Instant>,
    /// Since when its work would be lost if it were stopped: its start, or its last checkpoint. None
    /// while it has no place.
    pub unsaved_since: Option<Instant>,
    /// How often it was started again after a failure.
    pub restarts: u32,
    /// What it failed of, if it did; of an inference what its newest revision did.
    pub failure: Option<String>,
    /// The kind of that end.
    pub failure_kind: Option<spec::ExitKind>,
    /// Name of the node pool it is in; none while it has no place.
    pub pool: Option<String>,
    /// Milliseconds it has waited, and run, up to `phase_since`.
    pub waited_ms: u64,
    /// See `waited_ms`.
    pub ran_ms: u64,
}

impl WorkloadView {
    /// True if it waits for the scheduler. What keeps a pod from starting or serving in its place
    /// is no such reason.
    #[must_use]
    pub fn waits_for_a_place(&self) -> bool {
        self.pending.iter().any(PendingReason::is_about_a_place)
    }
}

/// A pod and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Id; the same for all runs of this pod.
    pub id: Uuid,
    /// Since when there is this run of it: since its workload was submitted, or it was placed
    /// again.
    pub created_at: Instant,
    /// Number among the workload's pods.
    pub index: u32,
    /// Which run; 0 before the first.
    pub generation: u32,
    /// How many runs there were before under the same name.
    pub restarts: u32,
    /// Name.
    pub name: String,
    /// The revision it belongs to, if it is a replica.
    pub revision: Option<Uuid>,
    /// The port it was given, if it was.
    pub port: Option<u16>,
    /// True if it is to run: replicas come and go.
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
    /// True if it has a place, and is not being stopped.
    #[must_use]
    pub const fn is_starting_or_running(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}
