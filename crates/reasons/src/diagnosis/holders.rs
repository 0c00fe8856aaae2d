//! Who holds what a workload needs. Owns: what is counted of each, and the sentence of it. Does not
//! know about: the rules by which something is taken.

use units::{Instant, Kind};

use super::span;
use crate::{QueueNumbers, WorkloadRef, number, of};

/// Who holds what a workload needs, on the nodes it may go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// Queues, those that hold most first.
    pub queues: Vec<HoldingQueue>,
    /// Queues that are not named.
    pub queues_more: u32,
    /// Workloads, those that hold most first.
    pub workloads: Vec<Holder>,
    /// Workloads that are not named.
    pub workloads_more: u32,
    /// What its own queue asks for, if not all of that counts.
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

/// What a queue asks for, and what of it is not counted as demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnDemand {
    /// Which queue.
    pub queue: String,
    /// Of what.
    pub kind: Kind,
    /// What it asks for.
    pub requested: u64,
    /// What of that could not be placed if everything were free.
    pub left_out: u64,
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

/// A queue and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingQueue {
    /// How it stands.
    pub queue: QueueNumbers,
    /// What it holds on the nodes in question.
    pub held: u64,
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

/// A workload and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Which one.
    pub workload: WorkloadRef,
    /// Of what.
    pub kind: Kind,
    /// How much, on the nodes in question.
    pub held: u64,
    /// Whether it may be taken from.
    pub standing: Standing,
}

impl Holder {
    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let Self { workload, kind, held, standing } = self;
        format!("{workload} holds {}: {}", of(*kind, *held), standing.text(now))
    }
}

/// Whether a workload may be taken from for another, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It may, by itself; what is taken from its queue in all has its bounds.
    MayGive,
    /// It cannot be preempted.
    NotPreemptible,
    /// The same project, and not less important.
    AsImportant {
        /// Its priority.
        priority: u32,
    },
    /// It has a guaranteed run time.
    GuaranteedUntil(Instant),
    /// Its queue holds no more than its share.
    WithinItsShare,
    /// Its queue holds more than its share for a turn, which ends then.
    TurnUntil(Instant),
    /// It gives way only as a whole, which would leave its queue less than its quota.
    KeepsQuota,
    /// The surplus of its queue is less important work.
    LessImportantFirst,
    /// The queue of the one who asks has what it is entitled to, and takes from no other.
    NotEntitled,
    /// Another revision of the inference that waits.
    OtherRevision,
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
            Self::TurnUntil(_) => "turn",
            Self::KeepsQuota => "keeps_quota",
            Self::LessImportantFirst => "less_important_first",
            Self::NotEntitled => "not_entitled",
            Self::OtherRevision => "other_revision",
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
