//! The states of a pod.

use units::Instant;
use view::{Phase, PodState};

use crate::Fault;

/// Permanent end of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
}

/// State of a pod. A pod holds a place in the states from [`Life::Assembling`] to [`Life::Exited`],
/// and has a run of the engine from [`Life::Starting`] to [`Life::Stopping`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// It has no place.
    Waiting {
        /// Why its last run did not start, if the machine could not start it.
        fault: Option<Fault>,
    },
    /// It holds its place without a process, and waits for the pods that it works with, or for a
    /// port.
    Assembling,
    /// It holds its place without a process until it restarts there.
    Paused {
        /// Time of the restart.
        until: Instant,
        /// Why its last run did not start, if the machine could not start it.
        fault: Option<Fault>,
    },
    /// Its run was requested, and has no process that is known.
    Starting {
        /// Why its image cannot be pulled, if that fails.
        fault: Option<Fault>,
    },
    /// Its process runs.
    Running {
        /// Start of the process.
        since: Instant,
        /// Why it does not serve, if it does not.
        fault: Option<Fault>,
    },
    /// Its run was requested to stop.
    Stopping {
        /// Time of the request; `None` after a restart of the server.
        asked_at: Option<Instant>,
        /// Start of the process, if it is known to have started.
        since: Option<Instant>,
        /// True if its workload was given up: it has failed, whatever its exit is.
        given_up: bool,
    },
    /// Its run is over, and it still holds its place: the consequence follows within the batch.
    Exited {
        /// Why the run did not start, if the machine could not start it.
        fault: Option<Fault>,
    },
    /// It has ended for good.
    Ended(Ended),
}

impl Default for Life {
    fn default() -> Self {
        Self::waiting()
    }
}

impl Life {
    /// The state of a new pod.
    #[must_use]
    pub const fn waiting() -> Self {
        Self::Waiting { fault: None }
    }

    /// True if it has a place.
    #[must_use]
    pub const fn holds_place(&self) -> bool {
        !matches!(self, Self::Waiting { .. } | Self::Ended(_))
    }

    /// True if it holds its place without a process.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self, Self::Assembling | Self::Paused { .. })
    }

    /// True if the engine was requested to run it, and its run is not known to be over.
    #[must_use]
    pub const fn has_run(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Running { .. } | Self::Stopping { .. })
    }

    /// True if it waits in its place for the pods that it works with, or for a port.
    #[must_use]
    pub const fn is_assembling(&self) -> bool {
        matches!(self, Self::Assembling)
    }

    /// True if its process runs and is not being stopped.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// True if its run is being stopped.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping { .. })
    }

    /// Its permanent end, as soon as it is certain.
    #[must_use]
    pub const fn ended(&self) -> Option<Ended> {
        match self {
            Self::Ended(how) => Some(*how),
            Self::Stopping { given_up: true, .. } => Some(Ended::Failed),
            _ => None,
        }
    }

    /// True if it has succeeded.
    #[must_use]
    pub const fn has_succeeded(&self) -> bool {
        matches!(self, Self::Ended(Ended::Succeeded))
    }

    /// Start of its process, if one is known and not gone.
    #[must_use]
    pub const fn started_at(&self) -> Option<Instant> {
        match self {
            Self::Running { since, .. } => Some(*since),
            Self::Stopping { since, .. } => *since,
            _ => None,
        }
    }

    /// Time of the restart in its place.
    #[must_use]
    pub const fn restarts_at(&self) -> Option<Instant> {
        match self {
            Self::Paused { until, .. } => Some(*until),
            _ => None,
        }
    }

    /// The state without a restart after `latest`.
    #[must_use]
    pub fn restarting_by(self, latest: Instant) -> Self {
        match self {
            Self::Paused { until, fault } => Self::Paused { until: until.min(latest), fault },
            other => other,
        }
    }

    /// Time of the request to stop its run.
    #[must_use]
    pub const fn asked_to_stop_at(&self) -> Option<Instant> {
        match self {
            Self::Stopping { asked_at, .. } => *asked_at,
            _ => None,
        }
    }

    /// The fault that keeps its run from starting, or from serving.
    #[must_use]
    pub const fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Waiting { fault }
            | Self::Paused { fault, .. }
            | Self::Starting { fault }
            | Self::Running { fault, .. }
            | Self::Exited { fault } => fault.as_ref(),
            Self::Assembling | Self::Stopping { .. } | Self::Ended(_) => None,
        }
    }

    /// The state that readers see, for a pod that is `reserved` a place or not; `None` while it
    /// waits without one: see [`Self::shown_without_place`].
    #[must_use]
    pub const fn shown(&self, reserved: bool) -> Option<PodState> {
        Some(match self {
            Self::Waiting { .. } if reserved => PodState::Reserved,
            Self::Waiting { .. } => return None,
            Self::Paused { .. } => PodState::Paused,
            Self::Starting { fault: Some(_) } => PodState::PullFails,
            Self::Assembling | Self::Starting { fault: None } => PodState::Starting,
            Self::Running { .. } => PodState::Running,
            Self::Stopping { .. } | Self::Exited { .. } => PodState::Terminating,
            Self::Ended(Ended::Succeeded) => PodState::Succeeded,
            Self::Ended(Ended::Failed) => PodState::Failed,
        })
    }

    /// The state that readers see of a pod without a place, in a workload in this phase. `later`: it
    /// is the turn of other pods.
    #[must_use]
    pub const fn shown_without_place(&self, later: bool, of: Phase) -> PodState {
        match (self.ended(), of) {
            (Some(Ended::Succeeded), _) => PodState::Succeeded,
            (Some(Ended::Failed), _) => PodState::Failed,
            (None, _) if later => PodState::Later,
            // The pod was stopped because its workload had ended.
            (None, Phase::Completed) => PodState::Succeeded,
            (None, Phase::Failed) => PodState::Failed,
            (None, Phase::Stopped) => PodState::Suspended,
            (None, _) => PodState::Pending,
        }
    }

    /// Name of the state, for documents and errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "Waiting",
            Self::Assembling => "Assembling",
            Self::Paused { .. } => "Paused",
            Self::Starting { .. } => "Starting",
            Self::Running { .. } => "Running",
            Self::Stopping { .. } => "Stopping",
            Self::Exited { .. } => "Exited",
            Self::Ended(Ended::Succeeded) => "Succeeded",
            Self::Ended(Ended::Failed) => "Failed",
        }
    }
}
