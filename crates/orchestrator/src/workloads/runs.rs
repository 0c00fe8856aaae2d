//! What is known of runs beside the records of their pods. Not stored: it is found again at each start.

use std::collections::BTreeSet;

use spec::{LimitsKept, RunKey};
use units::Instant;
use uuid::Uuid;

use super::ports::Ports;

#[derive(Debug)]
pub(crate) struct Runs {
    /// Runs that exist and should not. They are being stopped, and their pods start nothing
    /// before they are gone.
    pub(super) orphans: BTreeSet<RunKey>,
    /// Gangs of which a pod got its place, or its process, in this batch.
    pub(super) assembling: BTreeSet<Uuid>,
    pub(super) ports: Ports,
    /// Which limits of a run the engine keeps it to.
    pub(super) limits_kept: LimitsKept,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            orphans: BTreeSet::new(),
            assembling: BTreeSet::new(),
            ports: Ports::default(),
            limits_kept: LimitsKept::ALL,
        }
    }
}

impl Runs {
    /// How many runs exist that should not.
    pub(crate) fn orphans(&self) -> usize {
        self.orphans.len()
    }

    /// Whether a pod has a run that should not exist.
    pub(crate) fn has_orphan(&self, pod: Uuid) -> bool {
        let of_pod = RunKey { pod, generation: 0 }..=RunKey { pod, generation: u32::MAX };
        self.orphans.range(of_pod).next().is_some()
    }

    /// When ports are to be searched for again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.ports.due()
    }
}
