//! Who holds what is needed, and why it is not taken, in words. Owns: a sentence for each.

use units::{Instant, Kind};

use super::{are, span};
use crate::diagnosis::{
    Holder, Holders, HoldingQueue, Means, Outcome, OwnDemand, Refusals, Search, Standing,
};
use reasons::Code;
use reasons::{number, of};

impl Holders {
    /// A line for each queue and each workload.
    #[must_use]
    pub fn lines(&self, now: Instant) -> Vec<String> {
        let more = |count: u32, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("and {count} more {what}{plural}"))
        };
        let queues = self.queues.iter().map(HoldingQueue::text);
        let workloads = self.workloads.iter().map(|holder| holder.text(now));
        let queues = queues.chain(more(self.queues_more, "project"));
        let workloads = workloads.chain(more(self.workloads_more, "workload"));
        queues.chain(workloads).chain(self.own_demand.as_ref().map(OwnDemand::text)).collect()
    }
}

impl OwnDemand {
    /// One sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { queue, kind, requested, left_out } = self;
        format!(
            "{queue} asks for {}; {} of it not counted as demand, as that could not be placed if \
             everything were free",
            of(*kind, *requested),
            number(*kind, *left_out)
        )
    }
}

impl HoldingQueue {
    /// One sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { queue, held } = self;
        if *held == queue.allocated {
            return queue.to_string();
        }
        format!("{queue}, {} of it where it could go", number(queue.kind, *held))
    }
}

impl Holder {
    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let Self { workload, kind, held, standing } = self;
        format!("{workload} holds {}: {}", of(*kind, *held), standing.text(now))
    }
}

impl Standing {
    /// Short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MayGive => "may_give",
            Self::NotPreemptible => "not_preemptible",
            Self::AsImportant { .. } => "as_important",
            Self::GuaranteedUntil(_) => "guaranteed",
            Self::WithinItsShare => "within_its_share",
            Self::NotEntitled => "not_entitled",
        }
    }

    /// Half a sentence.
    #[must_use]
    pub fn text(self, now: Instant) -> String {
        match self {
            Self::MayGive => "may be taken from".to_owned(),
            Self::NotPreemptible => "is not preemptible".to_owned(),
            Self::AsImportant { priority } => {
                format!("same project, and not less important (priority {priority})")
            }
            Self::GuaranteedUntil(until) => {
                format!("its guaranteed run time ends in {}", span(now, until))
            }
            Self::WithinItsShare => "its project holds no more than its share".to_owned(),
            Self::NotEntitled => "nothing is taken from other projects for this one".to_owned(),
        }
    }
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
                "with {} more it would hold more than its fair share; {queue}",
                number(queue.kind, *requested)
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
            Self::Nobody(refusals) => match refusals.text(now) {
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
        }
    }
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
