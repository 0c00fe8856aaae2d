//! Workloads, their pods, and the place of a pod. Owns: the one description of a pod's place from
//! which every account is derived.

mod groups;
mod next_pods;

pub(crate) use groups::Shapes;
pub use groups::{Child, Completeness, GroupSpec, ShapeId};
pub use next_pods::{next_pods, next_pods_among, next_pods_if, set_rank, task_priority};
use smallvec::SmallVec;
use units::{Instant, Resources};

use crate::{
    Placement, PodId, PodSet, PodSetSpec, PodTerm, PoolId, QueueId, Shrinks, TopologyConstraint,
    WORKLOAD_LABEL, WorkloadId,
};

/// Specification of a workload to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Name, for explanations.
    pub name: String,
    /// Name of the inference that it is a revision of; `None` for other workloads.
    pub revision_of: Option<String>,
    /// Its queue, a leaf of the tree. In another node pool the twin of the queue is charged.
    pub queue: QueueId,
    /// Order of creation: older goes first among equals.
    pub seq: u64,
    /// Higher values go first inside the queue, and may preempt lower ones.
    pub priority: u32,
    /// Priority of its pods above the minimum, if that is lower; `None` for one priority.
    pub spare_priority: Option<u32>,
    /// True if it may be evicted for others.
    pub preemptible: bool,
    /// True if its number of GPUs may be halved to fit and doubled to use free GPUs.
    pub elastic: bool,
    /// True if it could be elastic on request.
    pub may_be_elastic: bool,
    /// Sets of its pods; at least one. The minimum of every set starts or none does.
    pub pod_sets: Vec<PodSetSpec>,
    /// Groups of its pod sets, parents before their children.
    pub groups: Vec<GroupSpec>,
    /// Minimum number of its groups and sets that can run together; `None` for all of them.
    pub children_min: Option<u32>,
    /// Topology constraint of all its pods.
    pub topology: Option<TopologyConstraint>,
    /// Minimum wait before it may preempt others, in milliseconds.
    pub preemption_delay_ms: u64,
    /// Maximum run time after its start, in milliseconds; `None` if unknown.
    pub time_limit_ms: Option<u64>,
    /// When it was submitted.
    pub created_at: Instant,
}

impl WorkloadSpec {
    /// One preemptible set of pods of the default training priority.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        queue: QueueId,
        seq: u64,
        pod_set: impl Into<PodSetSpec>,
    ) -> Self {
        Self {
            name: name.into(),
            revision_of: None,
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

    /// Priority of its pods above the minimum; always that of the workload for elastic ones.
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

    /// True if all of its sets are needed: it has no groups, and may lack no set.
    #[must_use]
    pub const fn needs_all_sets(&self) -> bool {
        self.groups.is_empty() && self.children_min.is_none()
    }

    /// Node label whose value must be the same for all of its pods, as their affinity to each other
    /// requires; the first if there are more.
    #[must_use]
    pub fn colocation_key(&self) -> Option<&str> {
        let selects = |term: &PodTerm, set: &PodSetSpec| {
            term.labels.iter().all(|(key, value)| set.constraints.labels.get(key) == Some(value))
        };
        let mut terms = self.pod_sets.iter().flat_map(|set| &set.constraints.pod_affinity);
        // Other pods do not have the label of this workload.
        let own = |term: &PodTerm| term.labels.contains_key(WORKLOAD_LABEL);
        let mine =
            terms.find(|term| own(term) && self.pod_sets.iter().all(|set| selects(term, set)));
        mine.map(|term| &*term.topology_key)
    }

    /// Minimum number of pods that can run together.
    #[must_use]
    pub fn pods_min(&self) -> u32 {
        self.pod_sets.iter().map(|set| set.pods_min).sum()
    }
}

/// A workload and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its specification.
    pub spec: WorkloadSpec,
    /// The state of its pod sets, in their order.
    pub pod_sets: SmallVec<[PodSet; 1]>,
    /// Id of its tree of groups and topology constraints: equal ones have equal ids.
    pub shape: ShapeId,
    /// Its members, by number: those of the first set, then those of the second, and so on.
    pub pods: Vec<PodId>,
    /// Not considered before this instant (back-off).
    pub not_before: Instant,
    /// When a pod of it was last placed, or restarted in its place.
    pub last_start: Option<Instant>,
    /// State of its pods in their places.
    pub activity: Activity,
    /// When an elastic pod of it last changed size.
    pub last_resize: Option<Instant>,
    /// Its shrinks.
    pub shrinks: Shrinks,
    /// When its pods were last all preempted.
    pub last_eviction: Option<Instant>,
    /// When it last saved its progress, if it ever reported that.
    pub checkpointed_at: Option<Instant>,
    /// Number of times that running pods of it were preempted, moved or resized.
    pub restarts: u32,
    /// Since when it has had fewer than its minimum of pods, with some still running.
    pub stale_since: Option<Instant>,
    /// Maximum time for which it may hold places then, in milliseconds, if less than that of the
    /// policy.
    pub grace_ms: Option<u64>,
    /// Number of pods that hold or have reserved a place.
    pub placed: u32,
    /// Number of pods that succeeded.
    pub succeeded: u32,
    /// The node pools it chooses between, the best first; empty for any.
    pub pools: SmallVec<[PoolId; 1]>,
}

/// State of the pods of a workload in their places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activity {
    /// At least one of them runs, or begins to at once.
    #[default]
    Runs,
    /// None of them runs yet: what they need is being fetched.
    Prepares,
    /// None of them runs: they keep their places through a back-off, or until others are back.
    Pauses,
}

impl Workload {
    /// True if it may be stopped for others: it is preemptible, or only keeps its places.
    #[must_use]
    pub const fn gives_way(&self) -> bool {
        self.spec.preemptible || matches!(self.activity, Activity::Pauses)
    }

    /// True if a pod of it runs, so that stopping it costs work.
    #[must_use]
    pub const fn runs(&self) -> bool {
        matches!(self.activity, Activity::Runs)
    }

    /// Its pod sets: specification and state of each.
    pub fn sets(&self) -> impl DoubleEndedIterator<Item = (&PodSetSpec, &PodSet)> {
        self.spec.pod_sets.iter().zip(&self.pod_sets)
    }

    /// The pods of one of its sets.
    #[must_use]
    pub fn pods_of(&self, set: usize) -> &[PodId] {
        let PodSet { first, members, .. } = self.pod_sets[set];
        &self.pods[first as usize..(first + members) as usize]
    }

    /// Sum of the requests of one pod of each set.
    #[must_use]
    pub fn demand(&self) -> Resources {
        self.pod_sets.iter().map(|set| set.demand).sum()
    }

    /// Start of its wait, if it waits: its submission, or its last eviction.
    #[must_use]
    pub fn waits_since(&self) -> Instant {
        self.last_eviction.unwrap_or(self.spec.created_at)
    }

    /// True if these numbers of pods of each set reach its minimum.
    pub fn enough(&self, pods: impl Fn(usize) -> u32) -> bool {
        self.spec.is_whole(&pods)
    }

    /// Priority of the pods that it would lose first: of those above the minimum if it has any.
    #[must_use]
    pub fn least_priority(&self) -> u32 {
        let has_spare = self.sets().any(|(spec, set)| set.placed > spec.pods_min);
        if has_spare { self.spec.priority_of_spare() } else { self.spec.priority }
    }

    /// Priority of the pods that it waits for: of those above the minimum once it has that.
    #[must_use]
    pub fn next_priority(&self) -> u32 {
        let grows = self.enough(|set| self.pod_sets[set].counted());
        if grows { self.spec.priority_of_spare() } else { self.spec.priority }
    }

    /// True if it is a gang that lost pods.
    pub(crate) fn is_partial(&self) -> bool {
        self.placed > 0 && !self.enough(|set| self.counts_as_placed(set))
    }

    /// Number of pods of a set that count as placed for the minimum of its gang. If one of the gang
    /// has succeeded, the others may be few: they are about to end, too. The gang of a set is its
    /// group, or the workload.
    #[must_use]
    pub fn counts_as_placed(&self, set: usize) -> u32 {
        let (spec, placed) = (&self.spec.pod_sets[set], self.pod_sets[set].placed);
        let may_be_few = match spec.group {
            None => self.succeeded > 0,
            Some(_) if self.succeeded == 0 => false,
            Some(_) => self.sets().any(|(of, own)| of.group == spec.group && own.succeeded > 0),
        };
        if may_be_few { placed.max(spec.pods_min) } else { placed }
    }
}

/// Present and reserved place of a pod.
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
    /// Place of its processes.
    pub current: Option<Placement>,
    /// True if its processes are being stopped.
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

    /// The place after all pending changes.
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
    /// Index of its set in the workload.
    pub set: u32,
    /// Number among the pods that the workload may have. It stays the same as long as the pod is a
    /// member.
    pub index: u32,
    /// True if it should run: false when suspended, ended or being deleted.
    pub wants: bool,
    /// True if a gate holds it back: it is not considered until the gate is removed.
    pub gated: bool,
    /// True if it has succeeded.
    pub succeeded: bool,
    /// Its place.
    pub binding: PodBinding,
}

impl Pod {
    /// True if it is running and not being stopped.
    #[must_use]
    pub const fn runs(&self) -> bool {
        self.binding.current.is_some() && !self.binding.releasing
    }

    /// True if it is considered for placement: it should run, and no gate holds it back.
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
