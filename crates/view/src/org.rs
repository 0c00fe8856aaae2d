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
    /// Sum of the GPU quotas of its projects in the pool, in thousandths; 0 for a project.
    pub projects_gpu_quota_millis: u64,
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
    /// Further namespaces in a Kubernetes cluster.
    pub namespaces: Vec<String>,
}

impl ProjectView {
    /// Text about quotas above those of the department, which divides its own; `None` if there are
    /// none.
    #[must_use]
    pub fn above(&self, department: &OrgUnit) -> Option<String> {
        let both = self.unit.pools.iter().zip(&department.pools).map(|(own, all)| QuotasInPool {
            pool: &own.name,
            project: own.share.gpu_quota_millis,
            projects: all.projects_gpu_quota_millis,
            department: all.share.gpu_quota_millis,
        });
        above(&department.name, &both.collect::<Vec<_>>())
    }
}

/// GPU quotas in a node pool, in thousandths.
#[derive(Debug, Clone, Copy)]
pub struct QuotasInPool<'a> {
    /// Name of the pool.
    pub pool: &'a str,
    /// Quota of a project.
    pub project: u64,
    /// Sum of the quotas of all projects of its department.
    pub projects: u64,
    /// Quota of the department.
    pub department: u64,
}

/// Text about quotas of a project, else of all projects of its department together, above those of
/// the department; `None` if there are none.
#[must_use]
pub fn above(department: &str, pools: &[QuotasInPool<'_>]) -> Option<String> {
    let more = |of: fn(&QuotasInPool<'_>) -> u64| {
        let more = pools.iter().filter(|pool| of(pool) > pool.department);
        let more = more.map(|pool| {
            let (own, all) = (units::format_millis(of(pool)), units::gpus(pool.department));
            format!("{own} of {all} in node pool {}", pool.pool)
        });
        Some(more.collect::<Vec<_>>().join(", ")).filter(|more| !more.is_empty())
    };
    if let Some(more) = more(|pool| pool.project) {
        return Some(format!(
            "the quota is more than department {department} has: {more}; what is above counts as over \
             quota"
        ));
    }
    // A project without a quota has no part in it.
    let more = more(|pool| if pool.project > 0 { pool.projects } else { 0 })?;
    Some(format!(
        "the quotas of the projects of department {department} are together more than it has: {more}; \
         they cannot all be used at once"
    ))
}
