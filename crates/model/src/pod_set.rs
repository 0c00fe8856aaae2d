//! The parts of a workload: pods that are alike. Owns: what a pod set asks for and how many of
//! its pods have a place. A plain workload is one set.

use units::Resources;

use crate::{Constraints, ConstraintsId, PodRequest, TopologyConstraint};

/// Pods of a workload that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSetSpec {
    /// Name, for explanations and for the order of sets; empty when there is only one.
    pub name: String,
    /// Most pods; all of them are members unless it is added with fewer.
    pub pods: u32,
    /// Fewest pods that make sense: none of the workload starts without them.
    pub pods_min: u32,
    /// What each pod asks for.
    pub request: PodRequest,
    /// Which nodes its pods may go to.
    pub constraints: Constraints,
    /// Pods of a higher one are placed before those of other sets.
    pub task_priority: u32,
    /// The group it is in; none if it is directly in the workload.
    pub group: Option<usize>,
    /// How close together its pods belong.
    pub topology: Option<TopologyConstraint>,
}

impl PodSetSpec {
    /// One pod that may go anywhere.
    #[must_use]
    pub fn new(request: PodRequest) -> Self {
        Self::gang(request, 1)
    }

    /// So many pods that start together and may go anywhere.
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
    /// What each pod asks for, as amounts.
    pub demand: Resources,
    /// Its constraints, as the cluster knows them.
    pub constraints: ConstraintsId,
    /// The same for each of the workload's node pools alone.
    pub(crate) pools: Vec<ConstraintsId>,
    /// Where its pods begin among those of the workload.
    pub(crate) first: u32,
    /// Its pods at present.
    pub members: u32,
    /// Pods that hold or have reserved a place.
    pub placed: u32,
    /// Pods that ended well: they have done their part.
    pub succeeded: u32,
}

impl PodSet {
    /// Pods that count for its minimum: those with a place, and those that have done their part.
    #[must_use]
    pub const fn counted(&self) -> u32 {
        self.placed.saturating_add(self.succeeded)
    }
}
