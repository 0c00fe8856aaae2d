//! Holders of the resources that a workload needs. Owns: the amounts of each, and the sentence of
//! it. Does not know about: the rules of preemption and reclaim.

use units::{Instant, Kind};

use super::span;
use crate::{QueueNumbers, WorkloadRef, number, of};

/// Holders of the resources that a workload needs, on the nodes it may go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// Queues, the largest holders first.
    pub queues: Vec<HoldingQueue>,
    /// Number of further queues.
    pub queues_more: u32,
    /// Workloads, the largest holders first.
    pub workloads: Vec<Holder>,
    /// Number of further workloads.
    pub workloads_more: u32,
    /// Demand of its own queue; `None` if all of that counts.
    pub own_demand: Option<OwnDemand>,
}

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

/// Requests of a queue, and the part of them that is not counted as demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnDemand {
    /// Name of the queue.
    pub queue: String,
    /// The resource.
    pub kind: Kind,
    /// Requested amount, in the unit of `kind`.
    pub requested: u64,
    /// Part of the request that could not be placed if everything were free.
    pub left_out: u64,
}

impl OwnDemand {
    /// Text in one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { queue, kind, requested, left_out } = self;
        let part = match left_out == requested {
            true => "none of which counts".to_owned(),
            false => {
                let is_one = number(*kind, *left_out) == "1";
                let does = if is_one { "does" } else { "do" };
                format!("of which {} {does} not count", number(*kind, *left_out))
            }
        };
        format!(
            "{queue} asks for {}, {part} for its fair share: that cannot start even on an empty \
             cluster",
            of(*kind, *requested)
        )
    }
}

/// A queue and the amount that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingQueue {
    /// Share and allocation of the queue.
    pub queue: QueueNumbers,
    /// Amount that it holds on the nodes in question, in the unit of the queue's `kind`.
    pub held: u64,
}

impl HoldingQueue {
    /// Text in one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { queue, held } = self;
        if *held == queue.allocated {
            return queue.to_string();
        }
        format!("{queue}, {} of it where it could go", number(queue.kind, *held))
    }
}

/// A workload and the amount that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The workload.
    pub workload: WorkloadRef,
    /// The resource.
    pub kind: Kind,
    /// Amount on the nodes in question, in the unit of `kind`.
    pub held: u64,
    /// Result of the check whether it is a possible victim.
    pub standing: Standing,
}

impl Holder {
    /// Text in one sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let Self { workload, kind, held, standing } = self;
        format!("{workload} holds {}: {}", of(*kind, *held), standing.text(now))
    }
}

/// Result of the check whether a workload is a possible victim for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is; bounds still hold for the total that is taken from its queue.
    MayGive,
    /// It cannot be preempted.
    NotPreemptible,
    /// It belongs to the same project, and its priority is not lower.
    AsImportant {
        /// Its priority.
        priority: u32,
    },
    /// It has a guaranteed run time until this moment.
    GuaranteedUntil(Instant),
    /// Its queue holds no more than its share.
    WithinItsShare,
    /// Its queue holds more than its share for a turn, which ends then.
    TurnUntil(Instant),
    /// It gives way only as a whole, which would leave its queue less than its quota.
    KeepsQuota,
    /// The surplus of its queue is less important work.
    LessImportantFirst,
    /// The queue of the waiting workload holds its fair share, and takes from no other.
    NotEntitled,
    /// It is another revision of the inference that waits.
    OtherRevision,
}

impl Standing {
    /// Short stable name of the result.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MayGive => "may_give",
            Self::NotPreemptible => "not_preemptible",
            Self::AsImportant { .. } => "as_important",
            Self::GuaranteedUntil(_) => "guaranteed",
            Self::WithinItsShare => "within_its_share",
            Self::TurnUntil(_) => "turn",
            Self::KeepsQuota => "keeps_quota",
            Self::LessImportantFirst => "less_important_first",
            Self::NotEntitled => "not_entitled",
            Self::OtherRevision => "other_revision",
        }
    }

    /// Text as a part of a sentence.
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
            Self::TurnUntil(until) => {
                format!("the turn of its project ends in {}", span(now, until))
            }
            Self::KeepsQuota => {
                "gives way only as a whole, which would leave its project less than its quota"
                    .to_owned()
            }
            Self::LessImportantFirst => {
                "what its project holds above its share is less important work".to_owned()
            }
            Self::NotEntitled => "nothing is taken from other projects for this one".to_owned(),
            Self::OtherRevision => "another revision of the same inference".to_owned(),
        }
    }
}
