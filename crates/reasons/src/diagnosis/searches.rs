//! Searches for workloads to move or preempt for a waiting one. Owns: the ways to make room with
//! their codes, the bounds that may stop each, and the sentence of it. Does not know about: how a
//! way is tried.

use units::{Instant, Kind};

use super::{are, span};
use crate::{Code, Pending, QueueNumbers, number, of};

/// A way to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Moves others together (consolidation).
    Consolidate,
    /// Takes from other projects.
    Reclaim,
    /// Takes from work of lower priority in the same project.
    Preempt,
}

/// A way to make room that did not help, and the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The way.
    pub means: Means,
    /// Cause why it did not help.
    pub outcome: Outcome,
}

impl Search {
    /// Code and short name.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self.means {
            Means::Consolidate => Code { code: "P401", name: "NotConsolidated" },
            Means::Reclaim => Code { code: "P402", name: "NotReclaimed" },
            Means::Preempt => Code { code: "P403", name: "NotPreempted" },
        }
    }

    /// Text in one sentence.
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

/// Cause why a way to make room did not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its preemption delay is not over.
    Patient {
        /// End of the delay.
        until: Instant,
    },
    /// It could not start even if everything were free.
    NotCounted,
    /// Its queue refuses it, independent of others.
    Refused(Box<Pending>),
    /// Its project holds its fair share.
    NotEntitled {
        /// Share and allocation of the project.
        queue: QueueNumbers,
        /// Requested amount, in the unit of the queue's `kind`.
        requested: u64,
    },
    /// No pod is moved for a workload that cannot be preempted.
    OnlyPreemptible,
    /// The free resources of all nodes together are too few, so moving cannot help.
    FreeTooLittle {
        /// The resource.
        kind: Kind,
        /// Requested amount, in the unit of `kind`.
        requested: u64,
        /// Free amount of all nodes together, in the unit of `kind`.
        free: u64,
    },
    /// No pod is on a node that it may go to.
    NothingInTheWay,
    /// The pods in the way fit on no other node, or may not be moved.
    NowhereToMove,
    /// Moving more workloads than the policy allows would help.
    MovesMax {
        /// Number of workloads to move.
        moves: u32,
        /// Maximum number of workloads that are moved for one.
        moves_max: usize,
    },
    /// There is no victim.
    NoVictim(Refusals),
    /// All possible victims together would not be enough.
    NotEnough {
        /// Number of possible victims.
        givers: u32,
        /// GPU thousandths that their end would free.
        freed_gpu_millis: u64,
        /// Number of pods that would fit then.
        placeable: u32,
        /// Number of pods that must fit.
        pods: u32,
        /// Workloads that are no victims.
        refusals: Refusals,
    },
    /// Enough could be taken, but then its project would hold more than its fair share.
    Unfair {
        /// Share and allocation of the project.
        queue: QueueNumbers,
    },
    /// Enough could be taken, but no set of victims was found that keeps every rule; the search is
    /// bounded.
    NotFound,
    /// The end of all possible victims would remove pods that its affinity requires. Smaller sets
    /// were tried, which does not prove that none would do.
    NotFoundInSets {
        /// Number of possible victims.
        givers: u32,
        /// Maximum number of sets of them that are tried.
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
                format!("a limit or quota refuses it ({})", reason.code().code)
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

/// Numbers of placed workloads that are no victims, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Workloads that cannot be preempted.
    pub not_preemptible: u32,
    /// Workloads of the same project whose priority is not lower.
    pub as_important: u32,
    /// Workloads with a guaranteed run time.
    pub guaranteed: u32,
    /// Earliest end of a guaranteed run time.
    pub guaranteed_until: Option<Instant>,
    /// Workloads of queues that hold no more than their share.
    pub within_share: u32,
    /// Workloads of queues whose turn is not over.
    pub in_turn: u32,
    /// Workloads of queues that would be left with less than their quota.
    pub keep_quota: u32,
    /// Workloads of queues whose surplus is less important work.
    pub less_important_first: u32,
}

impl Refusals {
    fn text(&self, now: Instant) -> String {
        let Self { guaranteed, guaranteed_until, .. } = self;
        let until = guaranteed_until
            .map_or_else(String::new, |until| format!(", the first for {} more", span(now, until)));
        let parts = [
            (self.not_preemptible, "not preemptible".to_owned()),
            (self.as_important, "not less important".to_owned()),
            (*guaranteed, format!("in guaranteed run time{until}")),
            (self.within_share, "of projects that hold no more than their share".to_owned()),
            (self.in_turn, "of projects whose turn is not over".to_owned()),
            (
                self.keep_quota,
                "of projects that would be left with less than their quota".to_owned(),
            ),
            (
                self.less_important_first,
                "of projects whose surplus is less important work".to_owned(),
            ),
        ];
        let said = parts.iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}
