//! The steps of a history. Owns: the probability of each step. Each step has its own random seed,
//! so that it means the same, or nothing, when other steps are left out.

use uuid::Uuid;

use crate::rng::Rng;

/// One step of a history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) chance: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Submit,
    Delete,
    Suspend,
    Resume,
    Change,
    Serve,
    Project,
    Department,
    Pool,
    ChangeNode,
    AddNode,
    RemoveNode,
    FailGpu,
    HealGpu,
    Object,
    StopEverything,
    /// The server takes commands and observations as one batch.
    Batch,
    /// The server takes the decision.
    Verdict,
    /// The executor sends the engine the next action of some pods.
    Ask,
    /// Runs proceed: they begin, or stop after a request.
    GoOn,
    /// A run exits by itself.
    Exit,
    /// A run reports another state.
    Tell,
    /// The server receives observations of the engine.
    Hear,
    /// The server receives an earlier observation again.
    HearAgain,
    EngineFault,
    Time,
    ClockSet,
    Crash,
    Reboot,
    /// The next server starts with other nodes.
    Nodes,
    RealGpus,
    Idle,
    SchedulerFails,
}

/// A command sent to the server, as far as its outcome matters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    Submit {
        may_go: bool,
    },
    /// Once the command succeeds, this workload may be gone.
    MayGo(Uuid),
    Other,
}

const LIKELY: [(Kind, usize); 33] = [
    (Kind::Submit, 20),
    (Kind::Delete, 5),
    (Kind::Suspend, 3),
    (Kind::Resume, 4),
    (Kind::Change, 2),
    (Kind::Serve, 4),
    (Kind::Project, 2),
    (Kind::Department, 1),
    (Kind::Pool, 2),
    (Kind::ChangeNode, 4),
    (Kind::AddNode, 2),
    (Kind::RemoveNode, 2),
    (Kind::FailGpu, 2),
    (Kind::HealGpu, 2),
    (Kind::Object, 2),
    (Kind::StopEverything, 1),
    (Kind::Batch, 24),
    (Kind::Verdict, 8),
    (Kind::Ask, 16),
    (Kind::GoOn, 12),
    (Kind::Exit, 6),
    (Kind::Tell, 2),
    (Kind::Hear, 16),
    (Kind::HearAgain, 4),
    (Kind::EngineFault, 3),
    (Kind::Time, 6),
    (Kind::ClockSet, 2),
    (Kind::Crash, 2),
    (Kind::Reboot, 1),
    (Kind::Nodes, 2),
    (Kind::RealGpus, 2),
    (Kind::Idle, 1),
    (Kind::SchedulerFails, 1),
];

impl Step {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let mut left = rng.below(LIKELY.iter().map(|(_, weight)| weight).sum());
        let kind = LIKELY.iter().find(|(_, weight)| {
            let is = left < *weight;
            left = left.saturating_sub(*weight);
            is
        });
        Self { kind: kind.map_or(Kind::Batch, |(kind, _)| *kind), chance: rng.next() }
    }
}
