//! The workloads of its project that the scheduler looks at before a waiting one. Owns: their order,
//! which is that of a decision, and their sentences. Does not know about: other projects, whose turn
//! depends on shares.

use std::cmp::Reverse;

use model::{Cluster, WorkloadId};
use units::{Instant, Kind};

use crate::{WorkloadRef, of};

/// Maximum number of workloads that are named.
const NAMED_MAX: usize = 5;

/// The workloads of its project that the scheduler looks at before a waiting one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ahead {
    /// The first of them.
    pub named: Vec<Before>,
    /// Number of further ones.
    pub more: u32,
}

/// A workload that goes before another of its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// The workload.
    pub workload: WorkloadRef,
    /// GPUs that its waiting pods ask for, in thousandths.
    pub gpu_millis: u64,
    /// Why it goes before the other.
    pub precedence: Precedence,
}

/// Why a workload goes before another of its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// It has a higher priority.
    MoreImportant {
        /// Value of its priority.
        priority: u32,
    },
    /// It lacks pods without which it cannot run; the other has these.
    Minimum,
    /// It is as important, and was submitted earlier.
    Older,
}

impl Precedence {
    /// Short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MoreImportant { .. } => "more_important",
            Self::Minimum => "minimum",
            Self::Older => "older",
        }
    }

    /// Text in a few words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::MoreImportant { priority } => format!("more important (priority {priority})"),
            Self::Minimum => "lacks pods of its minimum".to_owned(),
            Self::Older => "older".to_owned(),
        }
    }
}

impl Before {
    /// Text in one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { workload, gpu_millis, precedence } = self;
        format!("{workload} asks for {}: {}", of(Kind::Gpu, *gpu_millis), precedence.text())
    }
}

impl Ahead {
    /// The workloads that wait in the queue of a waiting one and come before it. `could_start` says
    /// of one that it may start at all; those that cannot are left out.
    #[must_use]
    pub fn of(
        cluster: &Cluster,
        id: WorkloadId,
        now: Instant,
        could_start: impl Fn(WorkloadId) -> bool,
    ) -> Self {
        let rank = |id: WorkloadId| {
            let workload = &cluster.workloads()[id];
            let grows = workload.enough(|set| workload.pod_sets[set].counted());
            (Reverse(workload.next_priority()), grows, workload.spec.seq)
        };
        let waits = |id: WorkloadId| {
            let workload = &cluster.workloads()[id];
            let mut pods = workload.pods.iter().map(|pod| &cluster.pods()[*pod]);
            workload.not_before <= now && pods.any(model::Pod::waits)
        };
        let pools = cluster.choices(id);
        let meets = |other: WorkloadId| {
            let others = cluster.choices(other);
            pools.is_empty() || others.is_empty() || pools.iter().any(|pool| others.contains(pool))
        };
        let own = rank(id);
        let queue = &cluster.queues()[cluster.workloads()[id].spec.queue];
        let all = queue.workloads.iter().map(|&other| (rank(other), other));
        let before = all.filter(|(rank, other)| *rank < own && waits(*other) && meets(*other));
        let mut before: Vec<_> = before.collect();
        before.sort_unstable();
        let mut ahead = Self::default();
        for ((priority, grows, _), other) in before {
            if ahead.named.len() == NAMED_MAX {
                ahead.more += 1;
            } else if could_start(other) {
                let precedence = match priority < own.0 {
                    true => Precedence::MoreImportant { priority: priority.0 },
                    false if own.1 && !grows => Precedence::Minimum,
                    false => Precedence::Older,
                };
                ahead.named.push(Before { precedence, ..Before::new(cluster, other) });
            }
        }
        ahead
    }

    /// A sentence for each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.named.iter().map(Before::text).chain(more).collect()
    }
}

impl Before {
    fn new(cluster: &Cluster, id: WorkloadId) -> Self {
        let workload = &cluster.workloads()[id];
        let of_set = |(index, set): (usize, &model::PodSet)| {
            let pods = workload.pods_of(index).iter().filter(|pod| cluster.pods()[**pod].waits());
            set.demand.gpu_millis * pods.count() as u64
        };
        Self {
            workload: WorkloadRef::new(cluster, id),
            gpu_millis: workload.pod_sets.iter().enumerate().map(of_set).sum(),
            precedence: Precedence::Older,
        }
    }
}
