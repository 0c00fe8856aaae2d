//! A department or a project: its settings, and the resulting shares.

use std::collections::BTreeMap;

use adopted::Charged;
use command::OrgChange;
use model::{Primary, QueueId};
use records::{DepartmentBody, DepartmentRow, ProjectBody, ProjectRow};
use units::{Instant, Resources};

use super::internal;
use crate::Error;
use crate::pools::{POOL_DEFAULT_ID, Pools};
use spec::{NodeTypes, Rules, Share, ShareChange};

/// Common fields of departments and projects, without their queue.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) created_by: String,
    pub(crate) created_at: Instant,
    pub(crate) updated_by: String,
    pub(crate) updated_at: Instant,
    /// Set fields of its shares, by node pool id.
    pub(crate) shares: BTreeMap<String, ShareChange>,
    pub(crate) rules: Rules,
    pub(crate) default_pools: Vec<String>,
    pub(crate) node_types: NodeTypes,
    /// Further namespaces of a project in a Kubernetes cluster.
    pub(crate) namespaces: Vec<String>,
}

/// A department.
#[derive(Debug, Clone)]
pub(crate) struct Department {
    pub(crate) unit: Unit,
    /// Its queue in the model.
    pub(crate) queue: QueueId,
}

/// A project.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) unit: Unit,
    pub(crate) department_id: u64,
    /// Its queue in the model.
    pub(crate) queue: QueueId,
}

/// Sum of the shares of the projects of a department.
#[derive(Debug, Default)]
pub(crate) struct Below<'a> {
    projects: usize,
    /// Sum of the shares of the projects with a share set in a pool, and their number.
    given: BTreeMap<&'a str, (usize, Share)>,
}

impl<'a> Below<'a> {
    /// Sum for no projects.
    pub(super) const NOTHING: Share =
        Share { cpu_quota_millis: Some(0), memory_quota_bytes: Some(0), ..Share::USUAL };

    /// Adds a project.
    pub(super) fn add(&mut self, project: &'a Project) {
        self.projects += 1;
        for (pool, given) in &project.unit.shares {
            let (projects, sum) = self.given.entry(pool).or_insert((0, Self::NOTHING));
            (*projects, *sum) = (*projects + 1, plus(*sum, given.made_to(Share::USUAL)));
        }
    }

    /// Sum of the shares in a pool. All projects without a share set there count as one default
    /// share.
    pub(crate) fn in_pool(&self, pool: &str) -> Share {
        let (projects, sum) = self.given.get(pool).copied().unwrap_or((0, Self::NOTHING));
        if projects < self.projects { plus(sum, Share::USUAL) } else { sum }
    }
}

/// Sum of two quotas.
fn plus(sum: Share, share: Share) -> Share {
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    Share {
        gpu_quota_millis: sum.gpu_quota_millis.saturating_add(share.gpu_quota_millis),
        cpu_quota_millis: both(sum.cpu_quota_millis, share.cpu_quota_millis),
        memory_quota_bytes: both(sum.memory_quota_bytes, share.memory_quota_bytes),
        ..sum
    }
}

impl Unit {
    /// A new unit, without a name.
    pub(super) fn new(id: u64, by: String, at: Instant) -> Self {
        Self {
            id,
            name: String::new(),
            description: String::new(),
            created_by: by.clone(),
            created_at: at,
            updated_by: by,
            updated_at: at,
            shares: BTreeMap::new(),
            rules: Rules::default(),
            default_pools: Vec::new(),
            node_types: NodeTypes::default(),
            namespaces: Vec::new(),
        }
    }

    /// The unit after a change.
    pub(super) fn changed(&self, change: OrgChange, by: String, at: Instant) -> Self {
        let mut shares = if change.replaces_shares { BTreeMap::new() } else { self.shares.clone() };
        for (pool, change) in change.shares {
            let share: &mut ShareChange = shares.entry(pool).or_default();
            *share = share.and(change);
        }
        Self {
            id: self.id,
            name: change.name.unwrap_or_else(|| self.name.clone()),
            description: change.description.unwrap_or_else(|| self.description.clone()),
            created_by: self.created_by.clone(),
            created_at: self.created_at,
            updated_by: by,
            updated_at: at,
            shares,
            rules: change.rules.unwrap_or(self.rules),
            default_pools: change.default_pools.unwrap_or_else(|| self.default_pools.clone()),
            node_types: change.node_types.unwrap_or_else(|| self.node_types.clone()),
            namespaces: change.namespaces.unwrap_or_else(|| self.namespaces.clone()),
        }
    }

    /// Set fields of its share in a node pool.
    pub(crate) fn given(&self, pool: &str) -> ShareChange {
        self.shares.get(pool).copied().unwrap_or_default()
    }
}

impl Project {
    /// The project as pods of a cluster are charged to it.
    pub(crate) fn charged(&self) -> Charged<'_> {
        let Unit { id, name, namespaces, .. } = &self.unit;
        Charged { id: *id, name, namespaces }
    }
}

impl Department {
    /// Sets its shares in the model.
    pub(super) fn settle(
        &self,
        cluster: &mut Primary,
        pools: &Pools,
        projects: &Below<'_>,
    ) -> Result<(), Error> {
        for pool in pools.iter() {
            // The minimum runtime is a setting of the pool; child queues follow that of the
            // department.
            let min_runtime_ms = pool.settings.min_runtime_ms;
            let mut share = model_share(&self.share_in(pool.id(), projects));
            share.preempt_min_runtime_ms = share.preempt_min_runtime_ms.or(min_runtime_ms);
            share.reclaim_min_runtime_ms = share.reclaim_min_runtime_ms.or(min_runtime_ms);
            let given = self.unit.given(pool.id());
            share.summed = model::SummedQuota {
                gpu: given.gpu_quota_millis.is_none(),
                cpu: given.cpu_quota_millis.is_none(),
                memory: given.memory_quota_bytes.is_none(),
            };
            cluster.set_share_in(self.queue, pool.model, share).map_err(internal)?;
        }
        Ok(())
    }

    /// Its share in a node pool: the set fields, or else the defaults.
    pub(super) fn share_in(&self, pool: &str, projects: &Below<'_>) -> Share {
        self.unit.given(pool).made_to(self.usual_in(pool, projects))
    }

    /// Its default share: the sum of its projects, within its limits.
    pub(crate) fn usual_in(&self, pool: &str, projects: &Below<'_>) -> Share {
        let given = self.unit.given(pool);
        let below = projects.in_pool(pool);
        Share {
            gpu_quota_millis: least(Some(below.gpu_quota_millis), given.gpu_limit_millis)
                .unwrap_or(below.gpu_quota_millis),
            cpu_quota_millis: least(below.cpu_quota_millis, given.cpu_limit_millis),
            memory_quota_bytes: least(below.memory_quota_bytes, given.memory_limit_bytes),
            ..below
        }
    }
}

/// The smaller of both; `None` is unlimited.
fn least(quota: Option<u64>, limit: Option<Option<u64>>) -> Option<u64> {
    quota.into_iter().chain(limit.flatten()).min()
}

impl Project {
    /// Sets its shares in the model.
    pub(super) fn settle(&self, cluster: &mut Primary, pools: &Pools) -> Result<(), Error> {
        for pool in pools.iter() {
            let share = model_share(&self.share_in(pool.id()));
            cluster.set_share_in(self.queue, pool.model, share).map_err(internal)?;
        }
        Ok(())
    }

    /// Its share in a node pool.
    pub(super) fn share_in(&self, pool: &str) -> Share {
        self.unit.given(pool).made_to(Share::USUAL)
    }
}

/// A share as the scheduler's type.
pub(super) fn model_share(share: &Share) -> model::Share {
    let or_max = |value: Option<u64>| value.unwrap_or(u64::MAX);
    let quota = Resources {
        gpu_millis: share.gpu_quota_millis,
        cpu_millis: or_max(share.cpu_quota_millis),
        memory_bytes: or_max(share.memory_quota_bytes),
    };
    let limit = Resources {
        gpu_millis: or_max(share.gpu_limit_millis),
        cpu_millis: or_max(share.cpu_limit_millis),
        memory_bytes: or_max(share.memory_limit_bytes),
    };
    let gpu = share.over_quota_weight;
    model::Share {
        over_quota_weight: model::Weights {
            gpu,
            cpu: share.cpu_weight.unwrap_or(gpu),
            memory: share.memory_weight.unwrap_or(gpu),
        },
        priority: share.rank.value(),
        preempt_min_runtime_ms: share.preempt_min_runtime_ms,
        reclaim_min_runtime_ms: share.reclaim_min_runtime_ms,
        ..model::Share::new(quota, limit)
    }
}

pub(super) fn department_row(
    Department { unit, .. }: &Department,
    deleted_at: Option<Instant>,
) -> DepartmentRow {
    let (share, pool_shares) = shares_body(&unit.shares);
    DepartmentRow {
        id: unit.id,
        name: unit.name.clone(),
        body: DepartmentBody {
            description: unit.description.clone(),
            created_by: unit.created_by.clone(),
            created_at_ms: unit.created_at.0,
            updated_by: unit.updated_by.clone(),
            updated_at_ms: unit.updated_at.0,
            share,
            rules: unit.rules,
            pool_shares,
            default_pools: unit.default_pools.clone(),
            node_types: unit.node_types.clone(),
        },
        deleted_at,
    }
}

/// A department from its row, with its queue.
pub(super) fn department_from_row(row: &DepartmentRow, queue: model::QueueId) -> Department {
    let body = &row.body;
    let unit = Unit {
        id: row.id,
        name: row.name.clone(),
        description: body.description.clone(),
        created_by: body.created_by.clone(),
        created_at: Instant(body.created_at_ms),
        updated_by: body.updated_by.clone(),
        updated_at: Instant(body.updated_at_ms),
        shares: shares_from_body(body.share.as_ref(), &body.pool_shares),
        rules: body.rules,
        default_pools: body.default_pools.clone(),
        node_types: body.node_types.clone(),
        namespaces: Vec::new(),
    };
    Department { unit, queue }
}

pub(super) fn project_row(project: &Project, deleted_at: Option<Instant>) -> ProjectRow {
    let unit = &project.unit;
    let (share, pool_shares) = shares_body(&unit.shares);
    ProjectRow {
        id: unit.id,
        name: unit.name.clone(),
        body: ProjectBody {
            description: unit.description.clone(),
            created_by: unit.created_by.clone(),
            created_at_ms: unit.created_at.0,
            updated_by: Some(unit.updated_by.clone()),
            updated_at_ms: unit.updated_at.0,
            department_id: project.department_id,
            share: share.unwrap_or_default(),
            rules: unit.rules,
            pool_shares,
            default_pools: unit.default_pools.clone(),
            node_types: unit.node_types.clone(),
            namespaces: unit.namespaces.clone(),
        },
        deleted_at,
    }
}

/// A project from its row, with its queue.
pub(super) fn project_from_row(row: &ProjectRow, queue: model::QueueId) -> Project {
    let body = &row.body;
    let unit = Unit {
        id: row.id,
        name: row.name.clone(),
        description: body.description.clone(),
        created_by: body.created_by.clone(),
        created_at: Instant(body.created_at_ms),
        updated_by: body.updated_by.as_ref().unwrap_or(&body.created_by).clone(),
        updated_at: Instant(body.updated_at_ms),
        shares: shares_from_body(Some(&body.share), &body.pool_shares),
        rules: body.rules,
        default_pools: body.default_pools.clone(),
        node_types: body.node_types.clone(),
        namespaces: body.namespaces.clone(),
    };
    Project { unit, department_id: body.department_id, queue }
}

/// Shares by the ids of their pools, as the share of the pool `default` and the others.
fn shares_body(
    shares: &BTreeMap<String, ShareChange>,
) -> (Option<ShareChange>, BTreeMap<String, ShareChange>) {
    let mut all: BTreeMap<_, _> =
        shares.iter().map(|(pool, share)| (pool.clone(), *share)).collect();
    (all.remove(POOL_DEFAULT_ID), all)
}

fn shares_from_body(
    default: Option<&ShareChange>,
    others: &BTreeMap<String, ShareChange>,
) -> BTreeMap<String, ShareChange> {
    let default = default.map(|body| (POOL_DEFAULT_ID, body));
    let others = others.iter().map(|(pool, body)| (pool.as_str(), body));
    let all = default.into_iter().chain(others);
    all.map(|(pool, body)| (pool.to_owned(), *body)).collect()
}
