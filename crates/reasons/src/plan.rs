//! The decision of a cycle: the difference between the places before and after, with causes. Owns:
//! the description of that difference. Does not know about: how it is carried out.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use model::{Change, Cluster, Placement, PodBinding, PodId, QueueId, WorkloadId};
use units::{Instant, Resources};

use crate::{Cause, ClassId, Pending};

/// A step of a plan. Steps of one plan are independent of each other, except that a reserved place
/// becomes free only when its holder has been stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Start the pod in this place now.
    Bind {
        /// Pod.
        pod: PodId,
        /// Place.
        to: Placement,
    },
    /// Keep this place for the pod until it is free.
    Reserve {
        /// Pod.
        pod: PodId,
        /// Place.
        to: Placement,
    },
    /// Give up the reserved place.
    Unreserve {
        /// Pod.
        pod: PodId,
    },
    /// Stop the pod; it waits for a place again.
    Evict {
        /// Pod.
        pod: PodId,
        /// Place before.
        from: Placement,
        /// Cause, with the beneficiary.
        cause: Cause,
    },
    /// Stop the pod and start it elsewhere.
    Move {
        /// Pod.
        pod: PodId,
        /// Place before.
        from: Placement,
        /// Place after.
        to: Placement,
        /// Cause, with the beneficiary.
        cause: Cause,
    },
    /// Stop the pod and start it on the same node with another number of GPUs.
    Resize {
        /// Pod.
        pod: PodId,
        /// Place before.
        from: Placement,
        /// Place after.
        to: Placement,
        /// Cause, with the beneficiary.
        cause: Cause,
    },
}

impl Step {
    /// The pod of the step.
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

    /// The binding of its pod after the step, given the one before.
    #[must_use]
    pub fn taken(&self, before: &PodBinding) -> PodBinding {
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

/// Amount of work of a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Trial placements made.
    pub trials: u64,
    /// `true` if the bound on trials ended a search.
    pub exhausted: bool,
}

/// Reasons of a waiting workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// The reasons.
    pub reasons: Arc<[Pending]>,
    /// The class that shares the reasons; `None` if they are the workload's own.
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
    /// Steps, in pod order.
    pub steps: Vec<Step>,
    /// Workloads that have had too few pods since a time, or have enough again (`None`).
    pub stale: BTreeMap<WorkloadId, Option<Instant>>,
    /// New reasons of each waiting workload; never empty for one that waits. The reasons of a class
    /// are shared.
    pub pending: BTreeMap<WorkloadId, Waits>,
    /// New reasons of classes whose members earlier plans have listed.
    pub renewed: BTreeMap<ClassId, Arc<[Pending]>>,
    /// `true` if classes have been renumbered. Then `pending` has all waiting workloads.
    pub is_renumbered: bool,
    /// Fair share of each queue at this moment.
    pub shares: BTreeMap<QueueId, Resources>,
    /// Time of the next decision even without changes.
    pub wake_at: Option<Instant>,
    /// Amount of work.
    pub stats: Stats,
}

impl Plan {
    /// Updates the reasons known from earlier plans.
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

    /// Removes the steps, and the reasons of the workloads in them, which the next plan repeats.
    /// Reasons of other workloads hold.
    pub fn drop_steps(&mut self, cluster: &Cluster) {
        self.stale.clear();
        for step in self.steps.drain(..) {
            if let Some(pod) = cluster.pods().get(step.pod()) {
                self.pending.remove(&pod.workload);
            }
        }
    }
}

/// The step for the change of one pod. `cause` is used only when a running pod is stopped.
#[must_use]
pub fn step(cluster: &Cluster, change: &Change, cause: Option<&Cause>) -> Step {
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
