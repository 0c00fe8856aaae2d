//! Why nothing was moved or taken for a workload. Owns: the ways to make room with their codes, the
//! bounds that may hold in each, and the sentence of it. Does not know about: how a way is tried.

use units::{Instant, Kind};

use super::{are, span};
use crate::{Code, Pending, QueueNumbers, number, of};

/// A way to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Move others together.
    Consolidate,
    /// Take from other projects.
    Reclaim,
    /// Take from less important work of the same project.
    Preempt,
}

/// A way that did not help, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Which way.
    pub means: Means,
    /// Why it did not help.
    pub outcome: Outcome,
}

impl Search {
    /// Code and name.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self.means {
            Means::Consolidate => Code { code: "P401", name: "NotConsolidated" },
            Means::Reclaim => Code { code: "P402", name: "NotReclaimed" },
            Means::Preempt => Code { code: "P403", name: "NotPreempted" },
        }
    }

    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let what = match self.means {
            Means::Consolidate => "nothing is moved",
            Means::Reclaim => "nothing is taken from other projects",
            Means::Preempt => "nothing is taken inside its project",
        };
        format!("{what}: {}", self.outcome.text(self.means, now))
    }
}

/// Why a way did not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It may not preempt others yet.
    Patient {
        /// Until when.
        until: Instant,
    },
    /// It could not start if everything were free.
    NotCounted,
    /// Its queue refuses it, whatever others do.
    Refused(Box<Pending>),
    /// Its project has what it is entitled to.
    NotEntitled {
        /// How the project stands.
        queue: QueueNumbers,
        /// What is asked for.
        requested: u64,
    },
    /// No pod is moved for what cannot be preempted.
    OnlyPreemptible,
    /// There is too little free in all, so moving cannot help.
    FreeTooLittle {
        /// Of what.
        kind: Kind,
        /// What is asked for.
        requested: u64,
        /// What is free on all nodes together.
        free: u64,
    },
    /// No pod is on a node that it may go to.
    NothingInTheWay,
    /// The pods in the way have no other place to go.
    NowhereToMove,
    /// Moving would help, but more workloads than the policy allows.
    MovesMax {
        /// Workloads to move.
        moves: u32,
        /// Most that may be moved for one.
        moves_max: usize,
    },
    /// There is no victim.
    NoVictim(Refusals),
    /// Even all that may be taken would not be enough.
    NotEnough {
        /// Workloads that would give.
        givers: u32,
        /// GPU thousandths that would come free.
        freed_gpu_millis: u64,
        /// Pods that would find a place then.
        placeable: u32,
        /// Pods that must.
        pods: u32,
        /// Those who do not give.
        refusals: Refusals,
    },
    /// Enough could be taken, but its project would end with more than it may hold.
    Unfair {
        /// How the project stands.
        queue: QueueNumbers,
    },
    /// Enough could be taken, but not so that every rule holds at the end; or the search, which is
    /// bounded, did not find it.
    NotFound,
    /// If all that may be taken from gave, pods that it must be near would be gone too. Smaller sets were
    /// tried, which is no proof that there is none.
    NotFoundInSets {
        /// Workloads that may be taken from.
        givers: u32,
        /// Most sets of them that are tried.
        sets_max: u64,
    },
}

impl Outcome {
    fn text(&self, means: Means, now: Instant) -> String {
        match self {
            Self::Patient { until } => {
                format!("its preemption delay ends in {}", span(now, *until))
            }
            Self::NotCounted => "it could not start if everything were free (P204)".to_owned(),
            Self::Refused(reason) => {
                format!("its queue refuses it, whatever others do ({})", reason.code().code)
            }
            Self::NotEntitled { queue, requested } => format!(
                "with {} more it would hold more than its {}; {queue}",
                number(queue.kind, *requested),
                queue.share_name()
            ),
            Self::OnlyPreemptible => "only preemptible workloads are helped by moving".to_owned(),
            Self::FreeTooLittle { kind, requested, free: 0 } => {
                format!("it needs {} and none is free on any node", of(*kind, *requested))
            }
            Self::FreeTooLittle { kind, requested, free } => format!(
                "it needs {} and only {} free on all nodes together",
                of(*kind, *requested),
                are(*kind, *free)
            ),
            Self::NothingInTheWay => "no other workload is on a node that it may go to".to_owned(),
            Self::NowhereToMove => {
                "what is in the way has no other place, or may not be moved".to_owned()
            }
            Self::MovesMax { moves, moves_max } => format!(
                "{moves} workloads would have to move and at most {moves_max} are moved for one"
            ),
            Self::NoVictim(refusals) => match refusals.text(now) {
                said if !said.is_empty() => format!("no workload is eligible: {said}"),
                _ if means == Means::Reclaim => "no other project has anything running".to_owned(),
                _ => "nothing else of its project is running".to_owned(),
            },
            Self::NotEnough { givers, freed_gpu_millis, placeable, pods, refusals } => {
                let fits = match pods {
                    1 => "it still finds no place".to_owned(),
                    _ => format!("only {placeable} of {pods} pods find a place"),
                };
                let rest = match refusals.text(now) {
                    said if said.is_empty() => String::new(),
                    said => format!("; of the others {said}"),
                };
                format!(
                    "if all {givers} that may be taken from gave {}, {fits}{rest}",
                    of(Kind::Gpu, *freed_gpu_millis)
                )
            }
            Self::Unfair { queue } => {
                format!("afterwards its project would hold more than its share; {queue}")
            }
            Self::NotFound => {
                "enough could be taken, but no way was found that keeps every rule".to_owned()
            }
            Self::NotFoundInSets { givers, sets_max } => format!(
                "pods that it must be near may be among what is stopped; of the {givers} that may be \
                 taken from no set was found that makes room, of at most {sets_max} tried"
            ),
        }
    }
}

/// Workloads with a place that do not give, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusals {
    /// That cannot be preempted.
    pub not_preemptible: u32,
    /// Of the same project that are not less important.
    pub as_important: u32,
    /// With a guaranteed run time.
    pub guaranteed: u32,
    /// When the first of those ends.
    pub guaranteed_until: Option<Instant>,
    /// Of queues that hold no more than their share.
    pub within_share: u32,
}

impl Refusals {
    fn text(&self, now: Instant) -> String {
        let Self { not_preemptible, as_important, guaranteed, guaranteed_until, within_share } =
            self;
        let until = guaranteed_until
            .map_or_else(String::new, |until| format!(", the first for {} more", span(now, until)));
        let parts = [
            (not_preemptible, "not preemptible".to_owned()),
            (as_important, "not less important".to_owned()),
            (guaranteed, format!("in guaranteed run time{until}")),
            (within_share, "of projects that hold no more than their share".to_owned()),
        ];
        let said = parts.iter().filter(|(count, _)| **count > 0);
        said.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}
