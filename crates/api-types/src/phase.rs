//! Phases of a workload. Owns: their names on the wire. Does not know about: when a workload is in
//! which.

use crate::{Explanation, Workload};

/// Phase of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadPhase {
    /// Is being accepted.
    Creating,
    /// Waits for places.
    Pending,
    /// Waits for places after a suspension.
    Resuming,
    /// Has places; not all its processes have started.
    Initializing,
    /// Runs.
    Running,
    /// Runs with fewer pods than it asks for, or no replica answers.
    Degraded,
    /// Has replicas of two revisions.
    Updating,
    /// Is being suspended.
    Stopping,
    /// Is suspended.
    Stopped,
    /// Is being deleted.
    Deleting,
    /// Is being deleted, as older servers call it.
    Terminating,
    /// Ended with success.
    Completed,
    /// Ended without success.
    Failed,
    /// A phase of a newer server.
    Unknown,
}

impl WorkloadPhase {
    const NAMED: [(Self, &'static str); 13] = [
        (Self::Creating, "Creating"),
        (Self::Pending, "Pending"),
        (Self::Resuming, "Resuming"),
        (Self::Initializing, "Initializing"),
        (Self::Running, "Running"),
        (Self::Degraded, "Degraded"),
        (Self::Updating, "Updating"),
        (Self::Stopping, "Stopping"),
        (Self::Stopped, "Stopped"),
        (Self::Deleting, "Deleting"),
        (Self::Terminating, "Terminating"),
        (Self::Completed, "Completed"),
        (Self::Failed, "Failed"),
    ];

    /// All that have a name.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMED.into_iter().map(|(phase, _)| phase)
    }

    /// The phase of this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let found = Self::NAMED.iter().find(|(_, known)| *known == name);
        found.map_or(Self::Unknown, |(phase, _)| *phase)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMED.iter().find(|(known, _)| *known == self);
        found.map_or("Unknown", |(_, name)| name)
    }

    /// True if it waits for places.
    #[must_use]
    pub const fn waits(self) -> bool {
        matches!(self, Self::Pending | Self::Resuming)
    }

    /// True if it has ended for good.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl Workload {
    /// Its phase.
    #[must_use]
    pub fn phase(&self) -> WorkloadPhase {
        WorkloadPhase::of(&self.phase)
    }
}

impl Explanation {
    /// Phase of the workload.
    #[must_use]
    pub fn phase(&self) -> WorkloadPhase {
        WorkloadPhase::of(&self.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_phases_belong_together() {
        for (phase, name) in WorkloadPhase::NAMED {
            assert_eq!((WorkloadPhase::of(name), phase.name()), (phase, name));
        }
        assert_eq!(WorkloadPhase::of("Dreaming"), WorkloadPhase::Unknown);
    }
}
