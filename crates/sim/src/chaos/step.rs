//! What can happen next, and what may be answered. Owns: how likely each thing is. Each step has
//! chance of its own, so that it means the same, or nothing, when others are left out.

use uuid::Uuid;

use crate::rng::Rng;

/// One thing that happens.
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
    /// Commands and observations are taken, as one batch.
    Batch,
    /// The decision comes.
    Verdict,
    /// The engine is asked the next thing about some pods.
    Ask,
    /// Runs go on: they begin, or end as they were told.
    GoOn,
    /// A run ends of its own accord.
    Exit,
    /// A run says something else.
    Tell,
    /// What the engine has seen comes.
    Hear,
    /// Something that was seen before comes again.
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

/// What was asked, as far as the answer matters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    Submit {
        may_go: bool,
    },
    /// Once it is granted, this workload may be gone.
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
