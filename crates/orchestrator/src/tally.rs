//! What happened to workloads in a batch, for counters.

use std::collections::BTreeSet;

use spec::WorkloadKind;
use uuid::Uuid;

use crate::view::Phase;
use crate::workloads::Workload;

/// What happened to workloads in a batch. It counts once the batch is committed.
#[derive(Debug, Default)]
pub struct Tally {
    /// The kinds of those that were accepted.
    pub submitted: Vec<WorkloadKind>,
    /// Those that run for the first time: their kinds, and for how long they waited.
    pub started: Vec<(WorkloadKind, u64)>,
    /// Those that ended: their kinds, and whether they failed.
    pub ended: Vec<(WorkloadKind, bool)>,
    /// Those that were evicted, with their kinds and the codes of the causes. However many of its
    /// pods were, a workload is evicted once.
    pub evicted: BTreeSet<(Uuid, WorkloadKind, &'static str)>,
}

impl Tally {
    /// A workload came from one phase into another. Revisions are parts of their inference.
    pub(crate) fn note_phase(&mut self, workload: &Workload, before: Phase) {
        let kind = workload.spec.kind;
        match workload.phase {
            _ if workload.spec.revision.is_some() => {}
            Phase::Completed => self.ended.push((kind, false)),
            Phase::Failed => self.ended.push((kind, true)),
            Phase::Running | Phase::Degraded
                if matches!(before, Phase::Pending | Phase::Initializing | Phase::Resuming)
                    && workload.ran_ms == 0
                    && workload.restarts == 0 =>
            {
                self.started.push((kind, workload.waited_ms));
            }
            _ => {}
        }
    }
}
