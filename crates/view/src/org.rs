//! Departments and projects, as readers see them.

use std::sync::Arc;

use spec::{NodeTypes, Rules, Share};
use units::{Instant, Resources};

/// A department and how it stands, or what a project has in common with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrgUnit {
    /// Id, shown as a string of digits at the API.
    pub id: u64,
    /// Name, unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Who created it.
    pub created_by: String,
    /// When.
    pub created_at: Instant,
    /// Who changed it last.
    pub updated_by: String,
    /// Last change.
    pub updated_at: Instant,
    /// How long its workloads may run.
    pub rules: Rules,
    /// Node pools of workloads that name none, the best first; empty = those of whom it belongs to.
    pub default_pools: Vec<String>,
    /// Which nodes its workloads may go to.
    pub node_types: NodeTypes,
    /// How it stands in all pools together.
    pub status: QueueStatus,
    /// What it has in each node pool, in the order of [`View::pools`].
    pub pools: Vec<PoolShare>,
}

impl OrgUnit {
    /// What it is entitled to in the node pool `default`.
    #[must_use]
    pub fn share(&self) -> Share {
        self.pools.first().map_or(Share::USUAL, |pool| pool.share)
    }
}

/// What a department or a project has in a node pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolShare {
    /// Id of the pool.
    pub id: Arc<str>,
    /// Name of the pool.
    pub name: Arc<str>,
    /// What it is entitled to there.
    pub share: Share,
    /// What it would be entitled to there, had it been given nothing.
    pub usual: Share,
    /// How it stands there.
    pub status: QueueStatus,
}

/// What a department or a project holds, asks for and is entitled to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// What its workloads hold now.
    pub allocated: Resources,
    /// The part of it that cannot be preempted.
    pub allocated_non_preemptible: Resources,
    /// What its workloads ask for, running and pending.
    pub requested: Resources,
    /// What it is entitled to now, quota and over-quota part together.
    pub fair_share: Resources,
    /// What it used recently, if that matters.
    pub usage: Option<model::Usage>,
}

/// A project and how it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectView {
    /// What a department has as well.
    pub unit: OrgUnit,
    /// Id of its department.
    pub department_id: u64,
    /// Name of its department.
    pub department_name: String,
    /// The rules that apply, with those of its department.
    pub effective_rules: Rules,
    /// The node pools that apply, with those of its department; empty = all.
    pub effective_pools: Vec<String>,
    /// The types of nodes that apply, with those of its department.
    pub effective_types: NodeTypes,
}

impl ProjectView {
    /// In words, where its quota is above what its department, which divides its own, can give it.
    #[must_use]
    pub fn above(&self, department: &OrgUnit) -> Option<String> {
        let both = self.unit.pools.iter().zip(&department.pools);
        above(&department.name, both.map(|(own, all)| (&*own.name, own.share, all.share)))
    }
}

/// In words, where a project is given more in pools than its department has: the name of a pool,
/// the share of the project, and that of the department.
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
