//! Departments and projects, as readers see them.

use std::sync::Arc;

use spec::{NodeTypes, Rules, Share};
use units::{Instant, Resources};

/// A department with its usage, or the values that a project has in common with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrgUnit {
    /// Id, shown as a string of digits in the API.
    pub id: u64,
    /// Name, unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// User who created it.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Instant,
    /// User who made the last change.
    pub updated_by: String,
    /// Time of the last change.
    pub updated_at: Instant,
    /// Maximum run and idle times of its workloads.
    pub rules: Rules,
    /// Default node pools of workloads, the best first; empty = those of the parent.
    pub default_pools: Vec<String>,
    /// Allowed types of nodes for its workloads.
    pub node_types: NodeTypes,
    /// Resources and fair share in all pools together.
    pub status: QueueStatus,
    /// Share and usage in each node pool, in the order of [`View::pools`].
    pub pools: Vec<PoolShare>,
}

impl OrgUnit {
    /// Its share in the node pool `default`.
    #[must_use]
    pub fn share(&self) -> Share {
        self.pools.first().map_or(Share::USUAL, |pool| pool.share)
    }
}

/// Share and usage of a department or a project in a node pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolShare {
    /// Id of the pool.
    pub id: Arc<str>,
    /// Name of the pool.
    pub name: Arc<str>,
    /// Quota, limits and weight in the pool.
    pub share: Share,
    /// Default share in the pool, if none were set.
    pub usual: Share,
    /// Resources and fair share in the pool.
    pub status: QueueStatus,
}

/// Allocated and requested resources, and fair share of a department or a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Resources allocated to its workloads.
    pub allocated: Resources,
    /// Part of the allocated resources that cannot be preempted.
    pub allocated_non_preemptible: Resources,
    /// Resources requested by its workloads, running and pending.
    pub requested: Resources,
    /// Current fair share: quota and over-quota part together.
    pub fair_share: Resources,
    /// Recent usage; `None` if fair share does not depend on it, or for several pools together.
    pub usage: Option<model::Usage>,
}

/// A project with its usage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectView {
    /// Values that a department has as well.
    pub unit: OrgUnit,
    /// Id of its department.
    pub department_id: u64,
    /// Name of its department.
    pub department_name: String,
    /// Effective rules, with those of its department.
    pub effective_rules: Rules,
    /// Effective default node pools, with those of its department; empty = all.
    pub effective_pools: Vec<String>,
    /// Effective types of nodes, with those of its department.
    pub effective_types: NodeTypes,
}

impl ProjectView {
    /// Text about quotas above those of the department, which divides its own; `None` if there are
    /// none.
    #[must_use]
    pub fn above(&self, department: &OrgUnit) -> Option<String> {
        let both = self.unit.pools.iter().zip(&department.pools);
        above(&department.name, both.map(|(own, all)| (&*own.name, own.share, all.share)))
    }
}

/// Text about quotas of a project above those of its department, by pool; `None` if there are none.
/// The items are the name of a pool, the share of the project, and that of the department.
#[must_use]
pub fn above<'a>(
    department: &str,
    pools: impl Iterator<Item = (&'a str, Share, Share)>,
) -> Option<String> {
    let above = pools.filter(|(_, own, all)| own.gpu_quota_millis > all.gpu_quota_millis);
    let above = above.map(|(name, own, all)| {
        let [own, all] = [own, all].map(|share| share.gpu_quota_millis);
        let (own, all) = (units::format_millis(own), units::gpus(all));
        format!("{own} of {all} in node pool {name}")
    });
    let pools = above.collect::<Vec<_>>().join(", ");
    let text = format!(
        "the quota is more than department {department} has: {pools}; what is above counts as over \
         quota"
    );
    (!pools.is_empty()).then_some(text)
}
