//! Workloads and their pods, as readers see them.

use std::sync::Arc;

use units::{Instant, Resources};
use uuid::Uuid;

use crate::{EvictionView, PendingReason, ReasonView};

/// Phases with the names of the REST API (reference C.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Waits for the scheduler, or for resources that are being released for it.
    Pending,
    /// Placed; its process is being started.
    Initializing,
    /// Runs.
    Running,
    /// Runs with fewer pods than requested.
    Degraded,
    /// Serves, while a newer revision is being started.
    Updating,
    /// Being suspended.
    Stopping,
    /// Suspended.
    Stopped,
    /// Resumed, not yet considered by the scheduler.
    Resuming,
    /// Being deleted.
    Deleting,
    /// Succeeded.
    Completed,
    /// Failed, without retries left.
    Failed,
}

impl Phase {
    /// True if a workload in this phase has places.
    #[must_use]
    pub const fn holds(self) -> bool {
        matches!(self, Self::Initializing | Self::Running | Self::Degraded)
    }
}

/// A workload with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadView {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Its id in the scheduler's model, until it has ended; for an inference, that of the newest
    /// revision.
    pub model: Option<model::WorkloadId>,
    /// Id of its project.
    pub project_id: u64,
    /// Name of its project.
    pub project_name: String,
    /// Id of the department of its project.
    pub department_id: u64,
    /// Name of that department.
    pub department_name: String,
    /// Specification as requested.
    pub spec: Arc<spec::WorkloadSpec>,
    /// Time of submission.
    pub created_at: Instant,
    /// Phase.
    pub phase: Phase,
    /// Start of the phase.
    pub phase_since: Instant,
    /// End of the workload.
    pub completed_at: Option<Instant>,
    /// Time at which a deleted workload was completely removed.
    pub deleted_at: Option<Instant>,
    /// Allocated resources.
    pub allocated: Resources,
    /// Start of the time in which its GPUs do not compute; `None` while they do.
    pub idle_since: Option<Instant>,
    /// Requested resources.
    pub requested: Resources,
    /// True if part of its allocation is over its project's quota.
    pub over_quota: bool,
    /// Its pods; of an inference, those of all revisions that are wanted or still exist.
    pub pods: Vec<PodView>,
    /// Ids of the revisions of an inference, the oldest first.
    pub revisions: Vec<Uuid>,
    /// Pending reasons; empty if it does not wait. [`View::why`](crate::View::why) has their texts.
    pub pending: Arc<[PendingReason]>,
    /// Its last eviction, move or resize.
    pub last_eviction: Option<EvictionView>,
    /// Time of the last checkpoint that it reported.
    pub checkpointed_at: Option<Instant>,
    /// Start of the work that a stop would lose: its start, or its last checkpoint. `None` while it
    /// has no place.
    pub unsaved_since: Option<Instant>,
    /// Number of restarts after failures.
    pub restarts: u32,
    /// Reason of its failure, if it failed; for an inference, that of the newest revision.
    pub failure: Option<String>,
    /// Kind of that failure.
    pub failure_kind: Option<spec::ExitKind>,
    /// Number of the revision that serves, if the newest revision of an inference has failed.
    pub serves: Option<u32>,
    /// Name of its node pool; `None` while it has no place.
    pub pool: Option<String>,
    /// Waiting time in milliseconds, up to `phase_since`.
    pub waited_ms: u64,
    /// Run time in milliseconds, up to `phase_since`.
    pub ran_ms: u64,
}

impl WorkloadView {
    /// True if it waits for the scheduler. A condition that keeps a placed pod from starting or
    /// serving does not count.
    #[must_use]
    pub fn waits_for_a_place(&self) -> bool {
        self.pending.iter().any(PendingReason::is_about_a_place)
    }
}

/// A pod with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Id, common to all runs of this pod.
    pub id: Uuid,
    /// Start of this run of the pod: submission of its workload, or a later placement.
    pub created_at: Instant,
    /// Index among the workload's pods.
    pub index: u32,
    /// Number of its run; 0 before the first.
    pub generation: u32,
    /// Number of earlier runs under this name.
    pub restarts: u32,
    /// Name.
    pub name: String,
    /// Revision of a replica.
    pub revision: Option<Uuid>,
    /// Its port, if it has one.
    pub port: Option<u16>,
    /// True if it should run: replicas are added and removed.
    pub wanted: bool,
    /// State.
    pub state: PodState,
    /// Node it is on, or will be on.
    pub node_name: Option<String>,
    /// GPU index on the node and share in thousandths.
    pub gpus: Vec<(u32, u64)>,
    /// Memory of the GPUs, or of the parts of them, that it holds, in bytes.
    pub gpu_memory_bytes: u64,
    /// Time at which this run was placed.
    pub placed_at: Option<Instant>,
    /// Start of the period in which its workload has held places without interruption.
    pub held_since: Option<Instant>,
    /// Start of its process.
    pub started_at: Option<Instant>,
    /// End of its last run.
    pub last_exit: Option<String>,
    /// Length of its last run, if that failed by itself, in milliseconds.
    pub failed_after_ms: Option<u64>,
    /// Time at which its ended process is restarted: in its place if it keeps it, or, after a
    /// failure that released the place, at the earliest.
    pub restart_at: Option<Instant>,
    /// Condition that keeps its run from starting, or from serving.
    pub condition: Option<ReasonView>,
}

/// States of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodState {
    /// Waits for a place.
    Pending,
    /// Waits for a place and for the end of the back-off after a failure.
    BackingOff,
    /// Waits until other pods of its workload have run.
    Later,
    /// Has a place that is being freed for it.
    Reserved,
    /// Placed, starting.
    Starting,
    /// Placed; its image cannot be pulled now, and the pull is retried.
    PullFails,
    /// Holds its place, without a process, until it restarts there after a failure.
    Paused,
    /// Holds its place, without a process, while its gang has too few pods to go on.
    PlacesKept,
    /// Runs.
    Running,
    /// Being stopped.
    Terminating,
    /// Succeeded.
    Succeeded,
    /// Failed.
    Failed,
    /// Suspended.
    Suspended,
    /// Not ended when its workload was deleted.
    Gone,
}

impl PodState {
    /// True if it waits for a place.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Pending | Self::BackingOff)
    }

    /// True if it has a place, and is not being stopped.
    #[must_use]
    pub const fn is_starting_or_running(self) -> bool {
        match self {
            Self::Starting | Self::PullFails | Self::Paused | Self::PlacesKept | Self::Running => {
                true
            }
            Self::Pending
            | Self::BackingOff
            | Self::Later
            | Self::Reserved
            | Self::Terminating
            | Self::Succeeded
            | Self::Failed
            | Self::Suspended
            | Self::Gone => false,
        }
    }

    /// True if it holds a place.
    #[must_use]
    pub const fn holds_place(self) -> bool {
        self.is_starting_or_running() || matches!(self, Self::Terminating)
    }

    /// True if it restarts after a failure, in its place or elsewhere.
    #[must_use]
    pub const fn is_crash_looping(self) -> bool {
        matches!(self, Self::BackingOff | Self::Paused)
    }
}
