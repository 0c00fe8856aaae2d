//! Workloads, their pods, and where a pod is. Owns: the one description of a pod's place that
//! every account is derived from.

mod groups;
mod next_pods;

pub(crate) use groups::Shapes;
pub use groups::{Child, Completeness, GroupSpec, ShapeId};
pub use next_pods::{next_pods, next_pods_among, next_pods_if, set_rank, task_priority};
use smallvec::SmallVec;
use units::{Instant, Resources};

use crate::{
    Placement, PodId, PodSet, PodSetSpec, PoolId, QueueId, Shrinks, TopologyConstraint, WorkloadId,
};

/// A workload to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Name, for explanations.
    pub name: String,
    /// Queue it belongs to; a leaf of the tree. In another node pool its twin there is charged.
    pub queue: QueueId,
    /// Order of creation: older goes first among equals.
    pub seq: u64,
    /// Higher goes first inside its queue, and may preempt lower.
    pub priority: u32,
    /// The same for its pods above the minimum, if that is lower; none for one priority.
    pub spare_priority: Option<u32>,
    /// True if it may be evicted for others.
    pub preemptible: bool,
    /// True if its number of GPUs may be halved to fit and doubled to fill.
    pub elastic: bool,
    /// True if it could be elastic if it asked to be.
    pub may_be_elastic: bool,
    /// Its pods, in sets that are alike; at least one. The minimum of every set starts or none
    /// does.
    pub pod_sets: Vec<PodSetSpec>,
    /// Groups of its pod sets, those above before those in them.
    pub groups: Vec<GroupSpec>,
    /// Fewest of its groups and sets that make sense together; all of them if not given.
    pub children_min: Option<u32>,
    /// How close together all its pods belong.
    pub topology: Option<TopologyConstraint>,
    /// Minimum wait before it may preempt others, in milliseconds.
    pub preemption_delay_ms: u64,
    /// Maximum run time after its start, in milliseconds; none if unknown.
    pub time_limit_ms: Option<u64>,
    /// When it was submitted.
    pub created_at: Instant,
}

impl WorkloadSpec {
    /// One preemptible set of pods of the usual training priority.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        queue: QueueId,
        seq: u64,
        pod_set: impl Into<PodSetSpec>,
    ) -> Self {
        Self {
            name: name.into(),
            queue,
            seq,
            priority: 50,
            spare_priority: None,
            preemptible: true,
            elastic: false,
            may_be_elastic: true,
            pod_sets: vec![pod_set.into()],
            groups: Vec::new(),
            children_min: None,
            topology: None,
            preemption_delay_ms: 0,
            time_limit_ms: None,
            created_at: Instant::default(),
        }
    }

    /// The priority of its pods above the minimum. Sizes of GPUs that change have none of their own.
    #[must_use]
    pub fn priority_of_spare(&self) -> u32 {
        let own = self.spare_priority.filter(|_| !self.elastic);
        own.map_or(self.priority, |own| own.min(self.priority))
    }

    /// Number of pods.
    #[must_use]
    pub fn pods(&self) -> u32 {
        self.pod_sets.iter().map(|set| set.pods).sum()
    }

    /// Fewest pods that make sense together.
    #[must_use]
    pub fn pods_min(&self) -> u32 {
        self.pod_sets.iter().map(|set| set.pods_min).sum()
    }
}

/// A workload and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// What is requested.
    pub spec: WorkloadSpec,
    /// The state of its pod sets, in their order.
    pub pod_sets: SmallVec<[PodSet; 1]>,
    /// What its tree and its topology are, as the cluster knows them: equal ones have equal ids.
    pub shape: ShapeId,
    /// Its members, by number: those of the first set, then those of the second, and so on.
    pub pods: Vec<PodId>,
    /// Not considered before this instant (back-off).
    pub not_before: Instant,
    /// When a pod of it was last given a place, or began again in the one that it kept.
    pub last_start: Option<Instant>,
    /// True if it holds places in which nothing runs.
    pub idle: bool,
    /// When an elastic pod of it last changed size.
    pub last_resize: Option<Instant>,
    /// How often it was shrunk.
    pub shrinks: Shrinks,
    /// When its pods were last all stopped for others.
    pub last_eviction: Option<Instant>,
    /// When it last saved its progress, if it ever said so.
    pub checkpointed_at: Option<Instant>,
    /// How often running pods of it were stopped for others, moved or resized.
    pub restarts: u32,
    /// Since when it has had fewer than its minimum of pods, with some still running.
    pub stale_since: Option<Instant>,
    /// Pods that hold or have reserved a place.
    pub placed: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// The node pools it chooses between, the best first; none if it does not matter.
    pub pools: SmallVec<[PoolId; 1]>,
}

impl Workload {
    /// Its pod sets: what each is and how it stands.
    pub fn sets(&self) -> impl DoubleEndedIterator<Item = (&PodSetSpec, &PodSet)> {
        self.spec.pod_sets.iter().zip(&self.pod_sets)
    }

    /// The pods of one of its sets.
    #[must_use]
    pub fn pods_of(&self, set: usize) -> &[PodId] {
        let PodSet { first, members, .. } = self.pod_sets[set];
        &self.pods[first as usize..(first + members) as usize]
    }

    /// What one pod of each set asks for, together.
    #[must_use]
    pub fn demand(&self) -> Resources {
        self.pod_sets.iter().map(|set| set.demand).sum()
    }

    /// Since when it waits, if it does: its submission, or its last eviction.
    #[must_use]
    pub fn waits_since(&self) -> Instant {
        self.last_eviction.unwrap_or(self.spec.created_at)
    }

    /// True if it makes sense with so many pods of each set.
    pub fn enough(&self, pods: impl Fn(usize) -> u32) -> bool {
        self.spec.is_whole(&pods)
    }

    /// The priority of what it could lose first: of its pods above the minimum where it has any.
    #[must_use]
    pub fn least_priority(&self) -> u32 {
        let has_spare = self.sets().any(|(spec, set)| set.placed > spec.pods_min);
        if has_spare { self.spec.priority_of_spare() } else { self.spec.priority }
    }

    /// The priority of what it waits for: once it has its minimum, of the pods above that.
    #[must_use]
    pub fn next_priority(&self) -> u32 {
        let grows = self.enough(|set| self.pod_sets[set].counted());
        if grows { self.spec.priority_of_spare() } else { self.spec.priority }
    }

    /// True if it is a gang that lost pods. Where one has ended well, the others may be few: they
    /// are about to end, too.
    pub(crate) fn is_partial(&self) -> bool {
        self.placed > 0 && self.succeeded == 0 && !self.enough(|set| self.pod_sets[set].placed)
    }
}

/// Where a pod is and where it will be.
///
/// ```text
///  waiting        current -          next -
///  reserved       current -          next P2     P2 is still being freed
///  running        current P1         next -
///  being evicted  current P1 (rel.)  next -
///  being moved    current P1 (rel.)  next P2     also: resized, P2 overlaps P1
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodBinding {
    /// Where its processes are.
    pub current: Option<Placement>,
    /// True if they are being stopped.
    pub releasing: bool,
    /// The place reserved for its next run.
    pub next: Option<Placement>,
}

impl PodBinding {
    /// Running at a place.
    #[must_use]
    pub const fn at(place: Placement) -> Self {
        Self { current: Some(place), releasing: false, next: None }
    }

    /// The place it will be at when everything under way is done.
    #[must_use]
    pub fn effective(&self) -> Option<&Placement> {
        match &self.current {
            Some(place) if !self.releasing => Some(place),
            _ => self.next.as_ref(),
        }
    }
}

/// A pod and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Workload it belongs to.
    pub workload: WorkloadId,
    /// Which of the workload's sets it belongs to.
    pub set: u32,
    /// Number among the pods that the workload may have. It is the same for as long as the pod is
    /// a member.
    pub index: u32,
    /// True if it should run: false when suspended, ended or being deleted.
    pub wants: bool,
    /// True if something outside holds it back: it is not considered before that is taken away.
    pub gated: bool,
    /// True if it has ended well.
    pub succeeded: bool,
    /// Where it is.
    pub binding: PodBinding,
}

impl Pod {
    /// True if it is running and not being stopped.
    #[must_use]
    pub const fn runs(&self) -> bool {
        self.binding.current.is_some() && !self.binding.releasing
    }

    /// True if it is to be considered: it should run, and nothing holds it back.
    #[must_use]
    pub const fn asks(&self) -> bool {
        self.wants && !self.gated
    }

    /// True if it needs a place it does not have.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.asks() && self.binding.effective().is_none()
    }
}
