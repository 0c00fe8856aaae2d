//! Pod sets: the parts of a workload with identical pods. Owns: the request of a pod set and the
//! number of its pods with a place. A plain workload is one set.

use units::Resources;

use crate::{Constraints, ConstraintsId, PodRequest, TopologyConstraint};

/// Pods of a workload with one specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSetSpec {
    /// Name, for explanations and for the order of sets; empty when there is only one.
    pub name: String,
    /// Maximum number of pods; all of them are members unless the workload is added with fewer.
    pub pods: u32,
    /// Minimum number of pods: none of the workload starts without them.
    pub pods_min: u32,
    /// Resource requests of each pod.
    pub request: PodRequest,
    /// Constraints on the nodes of its pods.
    pub constraints: Constraints,
    /// Placement order: pods of a higher number are placed before those of other sets.
    pub task_priority: u32,
    /// Index of its group; `None` if it is directly in the workload.
    pub group: Option<usize>,
    /// Topology constraint of its pods.
    pub topology: Option<TopologyConstraint>,
}

impl PodSetSpec {
    /// One pod without constraints.
    #[must_use]
    pub fn new(request: PodRequest) -> Self {
        Self::gang(request, 1)
    }

    /// Pods that start together, without constraints.
    #[must_use]
    pub fn gang(request: PodRequest, pods: u32) -> Self {
        Self {
            name: String::new(),
            pods,
            pods_min: pods,
            request,
            constraints: Constraints::default(),
            task_priority: 0,
            group: None,
            topology: None,
        }
    }
}

impl From<PodRequest> for PodSetSpec {
    fn from(request: PodRequest) -> Self {
        Self::new(request)
    }
}

/// A pod set and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSet {
    /// Requests of each pod as amounts.
    pub demand: Resources,
    /// Id of its constraints.
    pub constraints: ConstraintsId,
    /// Ids of its constraints for each of the workload's node pools alone.
    pub(crate) pools: Vec<ConstraintsId>,
    /// Number of its first pod among those of the workload.
    pub(crate) first: u32,
    /// Number of its present pods.
    pub members: u32,
    /// Number of pods that hold or have reserved a place.
    pub placed: u32,
    /// Number of pods that succeeded.
    pub succeeded: u32,
}

impl PodSet {
    /// Number of pods that count for its minimum: those with a place, and those that succeeded.
    #[must_use]
    pub const fn counted(&self) -> u32 {
        self.placed.saturating_add(self.succeeded)
    }
}
