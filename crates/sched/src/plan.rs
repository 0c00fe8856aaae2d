//! What a cycle decided: the difference between the places before and after, with causes.
//! Owns: naming that difference. Does not know how it is carried out.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use model::{Change, Cluster, Placement, PodBinding, PodId, QueueId, WorkloadId};
use units::{Instant, Resources};

use reasons::{Cause, ClassId, Pending};

/// One thing to do. Steps of one plan are independent of each other, except that a reserved
/// place becomes free only when what holds it has been stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Start the pod here, now.
    Bind {
        /// Pod.
        pod: PodId,
        /// Where.
        to: Placement,
    },
    /// Keep this place for the pod until it is free.
    Reserve {
        /// Pod.
        pod: PodId,
        /// Where.
        to: Placement,
    },
    /// The reserved place is given up.
    Unreserve {
        /// Pod.
        pod: PodId,
    },
    /// Stop the pod; it waits for a place again.
    Evict {
        /// Pod.
        pod: PodId,
        /// Where it was.
        from: Placement,
        /// Why and for whom.
        cause: Cause,
    },
    /// Stop the pod and start it elsewhere.
    Move {
        /// Pod.
        pod: PodId,
        /// Where it was.
        from: Placement,
        /// Where it goes.
        to: Placement,
        /// Why and for whom.
        cause: Cause,
    },
    /// Stop the pod and start it on the same node with another number of GPUs.
    Resize {
        /// Pod.
        pod: PodId,
        /// What it had.
        from: Placement,
        /// What it gets.
        to: Placement,
        /// Why and for whom.
        cause: Cause,
    },
}

impl Step {
    /// The pod it is about.
    #[must_use]
    pub const fn pod(&self) -> PodId {
        match self {
            Self::Bind { pod, .. }
            | Self::Reserve { pod, .. }
            | Self::Unreserve { pod }
            | Self::Evict { pod, .. }
            | Self::Move { pod, .. }
            | Self::Resize { pod, .. } => *pod,
        }
    }

    /// What its pod occupies after it, given what it does before.
    pub(crate) fn taken(&self, before: &PodBinding) -> PodBinding {
        match self {
            Self::Bind { to, .. } => {
                PodBinding { current: Some(to.clone()), releasing: false, next: None }
            }
            Self::Reserve { to, .. } => PodBinding { next: Some(to.clone()), ..before.clone() },
            Self::Unreserve { .. } => PodBinding { next: None, ..before.clone() },
            Self::Evict { .. } => PodBinding { releasing: true, next: None, ..before.clone() },
            Self::Move { to, .. } | Self::Resize { to, .. } => {
                PodBinding { releasing: true, next: Some(to.clone()), ..before.clone() }
            }
        }
    }
}

/// How much work a cycle was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Trial placements made.
    pub trials: u64,
    /// True if the bound on trials ended a search.
    pub exhausted: bool,
}

/// Why a workload waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// The reasons.
    pub reasons: Arc<[Pending]>,
    /// The class that waits for them; none where they are its own.
    pub class: Option<ClassId>,
}

impl Deref for Waits {
    type Target = [Pending];
    fn deref(&self) -> &[Pending] {
        &self.reasons
    }
}

/// The outcome of a cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What to do, in pod order.
    pub steps: Vec<Step>,
    /// Workloads that are found to have too few pods since then, or enough again.
    pub stale: BTreeMap<WorkloadId, Option<Instant>>,
    /// Why each workload that waits does so; never empty for one that waits. What all of a class wait
    /// for is there once.
    pub pending: BTreeMap<WorkloadId, Waits>,
    /// What all that are of a class since an earlier plan wait for now, where that has changed.
    pub renewed: BTreeMap<ClassId, Arc<[Pending]>>,
    /// True if classes have other numbers than in earlier plans. Then `pending` has all that wait.
    pub is_renumbered: bool,
    /// What each queue is entitled to at this moment.
    pub shares: BTreeMap<QueueId, Resources>,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Instant>,
    /// How much work it was.
    pub stats: Stats,
}

impl Plan {
    /// Brings up to date what was known of earlier plans: why each workload waits.
    pub fn tell(&self, known: &mut BTreeMap<WorkloadId, Waits>) {
        for waits in known.values_mut() {
            if self.is_renumbered {
                waits.class = None;
            } else if let Some(reasons) = waits.class.and_then(|class| self.renewed.get(&class)) {
                waits.reasons = reasons.clone();
            }
        }
        known.extend(self.pending.iter().map(|(id, waits)| (*id, waits.clone())));
    }

    /// Leaves out the steps, and the reasons of the workloads they are about, which the next plan gives
    /// again. What is said of others holds.
    pub fn drop_steps(&mut self, cluster: &Cluster) {
        self.stale.clear();
        for step in self.steps.drain(..) {
            if let Some(pod) = cluster.pods().get(step.pod()) {
                self.pending.remove(&pod.workload);
            }
        }
    }
}

/// Names what changed for one pod. `cause` is asked for only when something running is stopped.
pub(crate) fn step(cluster: &Cluster, change: &Change, cause: Option<&Cause>) -> Step {
    let pod = change.pod;
    let after = &cluster.pods()[pod].binding;
    let before = &change.before;
    let stopped = before.current.as_ref().filter(|_| !before.releasing && after.releasing);
    let Some(from) = stopped else {
        return match (&after.current, &after.next) {
            (Some(to), None) if before.current.is_none() => Step::Bind { pod, to: to.clone() },
            (_, Some(to)) => Step::Reserve { pod, to: to.clone() },
            (_, None) => Step::Unreserve { pod },
        };
    };
    let from = from.clone();
    let cause = cause.cloned().expect("the code that stops a pod records why, in the same call");
    match &after.next {
        None => Step::Evict { pod, from, cause },
        Some(to) if to.node == from.node && to.gpu_millis() != from.gpu_millis() => {
            Step::Resize { pod, from, to: to.clone(), cause }
        }
        Some(to) => Step::Move { pod, from, to: to.clone(), cause },
    }
}
