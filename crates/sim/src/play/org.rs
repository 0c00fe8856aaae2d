//! The queues of a scenario as departments and projects. Owns: the assignment of projects to
//! departments, and the rows of both.

use std::collections::{BTreeMap, BTreeSet};

use model::POOL_DEFAULT;
use orchestrator::{POOL_DEFAULT_ID, SYSTEM};
use records::{DepartmentBody, DepartmentRow, ProjectBody, ProjectRow};
use spec::{NodeTypes, Rules, ShareChange};

use super::names::{QUEUES_MAX, check_name, pool_id};
use super::ranks::Ranks;
use super::{START, convert};
use crate::Error;
use crate::scenario::{At, Queue, QueueShare};
use crate::suggest::hint;

/// Prefix of the names of departments among the queues of the scheduler.
pub(crate) const DEPARTMENT: &str = "department:";
/// The department of projects that are in no other, which always exists.
const DEFAULT: &str = "default";
const DEFAULT_ID: u64 = 1;

/// The name of a queue of the scheduler in the scenario.
pub(crate) fn own_name(queue: &str) -> &str {
    queue.strip_prefix(DEPARTMENT).unwrap_or(queue)
}

/// Departments and projects.
#[derive(Debug, Default)]
pub(super) struct Org {
    pub(super) departments: Vec<DepartmentRow>,
    pub(super) projects: Vec<ProjectRow>,
}

impl Org {
    /// The departments and projects of a scenario with these node pools.
    pub(super) fn of(queues: &[At<Queue>], pools: &[String], ranks: &Ranks) -> Result<Self, Error> {
        if let Some(first) = queues.get(QUEUES_MAX) {
            return Err(first.fault(format!("a scenario has at most {QUEUES_MAX} queues")));
        }
        let by_name = by_name(queues)?;
        let mut above = BTreeMap::new();
        for queue in queues {
            if let Some(parent) = above_of(queue, &by_name)? {
                above.insert(queue.name.as_str(), parent);
            }
        }
        let has_queues: BTreeSet<&str> = above.values().map(|queue| queue.name.as_str()).collect();
        let mut org = Self::default();
        let mut ids = BTreeMap::from([(DEFAULT, DEFAULT_ID)]);
        for queue in queues {
            let shares = shares(queue, pools, ranks)?;
            let is_department =
                has_queues.contains(queue.name.as_str()) || queue.name.starts_with(DEPARTMENT);
            if !is_department {
                continue;
            }
            let next = org.departments.len() as u64 + 2;
            let id = *ids.entry(own_name(&queue.name)).or_insert(next);
            org.departments.push(department(id, own_name(&queue.name), shares));
        }
        for queue in queues {
            let parent = above.get(queue.name.as_str());
            let is_department =
                has_queues.contains(queue.name.as_str()) || queue.name.starts_with(DEPARTMENT);
            if is_department {
                continue;
            }
            let department_id = parent.map_or(DEFAULT_ID, |parent| ids[own_name(&parent.name)]);
            let id = org.projects.len() as u64 + 1;
            org.projects.push(project(
                id,
                &queue.name,
                department_id,
                shares(queue, pools, ranks)?,
            ));
        }
        org.add_default(queues, pools, &above);
        Ok(org)
    }

    /// Adds the default department. Where the scenario does not define it, its weight is the sum of
    /// those of its projects.
    fn add_default(
        &mut self,
        queues: &[At<Queue>],
        pools: &[String],
        above: &BTreeMap<&str, &At<Queue>>,
    ) {
        if self.departments.iter().any(|one| one.id == DEFAULT_ID) {
            return;
        }
        let own = self.projects.iter().filter(|one| one.body.department_id == DEFAULT_ID);
        let names: BTreeSet<&str> = own.map(|one| one.name.as_str()).collect();
        let is_own = |queue: &&At<Queue>| {
            names.contains(queue.name.as_str()) && !above.contains_key(queue.name.as_str())
        };
        let shares = pools.iter().map(|pool| {
            let weights = queues.iter().filter(is_own).map(|queue| in_pool(queue, pool).weight);
            let mut sum = ShareChange {
                over_quota_weight: Some(0),
                cpu_weight: Some(Some(0)),
                memory_weight: Some(Some(0)),
                ..ShareChange::default()
            };
            for weight in weights {
                let plus =
                    |sum: u64, weight: Option<u32>| sum.saturating_add(weight.map_or(1, u64::from));
                sum.over_quota_weight = sum.over_quota_weight.map(|sum| plus(sum, weight.gpu));
                sum.cpu_weight = sum.cpu_weight.map(|of| of.map(|sum| plus(sum, weight.cpu)));
                sum.memory_weight =
                    sum.memory_weight.map(|of| of.map(|sum| plus(sum, weight.memory)));
            }
            (pool_id(pool), sum)
        });
        let shares = shares.collect();
        self.departments.insert(0, department(DEFAULT_ID, DEFAULT, shares));
    }
}

fn by_name(queues: &[At<Queue>]) -> Result<BTreeMap<&str, &At<Queue>>, Error> {
    let mut by_name = BTreeMap::new();
    for queue in queues {
        check_name(&queue.name).map_err(|fault| queue.fault(fault))?;
        if by_name.insert(queue.name.as_str(), queue).is_some() {
            return Err(queue.fault(format!("there is another queue `{}`", queue.name)));
        }
    }
    Ok(by_name)
}

/// The department of a queue; `None` if it is in none.
fn above_of<'a>(
    queue: &At<Queue>,
    by_name: &BTreeMap<&str, &'a At<Queue>>,
) -> Result<Option<&'a At<Queue>>, Error> {
    let Some(parent) = &queue.parent else { return Ok(None) };
    let fault = |fault: String| queue.fault(format!("queue `{}`{fault}", queue.name));
    let found = by_name.get(parent.as_str()).ok_or_else(|| {
        let near = hint(parent, by_name.keys().copied());
        fault(format!(": there is no queue `{parent}` above it{near}"))
    })?;
    let mut above = Some(found);
    for _ in 0..by_name.len() {
        if above.is_some_and(|above| above.name == queue.name) {
            let why = " is above itself; one queue of this circle must have no parent";
            return Err(fault(why.to_owned()));
        }
        above = above.and_then(|above| by_name.get(above.parent.as_ref()?.as_str()));
    }
    if found.parent.is_some() {
        return Err(fault(format!(
            ": `{parent}` above it has a `parent` too; a project is in a department, and a department \
             in none"
        )));
    }
    Ok(Some(found))
}

/// The shares of a queue in every node pool.
fn shares(
    queue: &At<Queue>,
    pools: &[String],
    ranks: &Ranks,
) -> Result<BTreeMap<String, ShareChange>, Error> {
    let fault = |fault: String| queue.fault(format!("queue `{}`: {fault}", queue.name));
    if !queue.pools.is_empty() && queue.share() != QueueShare::default() {
        return Err(fault(format!(
            "has `pools`, so what it is entitled to belongs there: `pools: {{{POOL_DEFAULT}: {{quota: …}}}}`"
        )));
    }
    if let Some(name) = queue.pools.keys().find(|name| !pools.contains(*name)) {
        let near = hint(name, pools.iter().map(String::as_str));
        return Err(fault(format!("no node is in a pool `{name}`{near}")));
    }
    let share = |pool: &String| {
        let share = convert::share(&in_pool(queue, pool), ranks).map_err(fault)?;
        Ok((pool_id(pool), share))
    };
    pools.iter().map(share).collect()
}

/// The share of a queue in a node pool, as the scenario gives it.
fn in_pool(queue: &Queue, pool: &str) -> QueueShare {
    let own = || if pool == POOL_DEFAULT { queue.share() } else { QueueShare::default() };
    queue.pools.get(pool).copied().unwrap_or_else(own)
}

fn department(id: u64, name: &str, mut shares: BTreeMap<String, ShareChange>) -> DepartmentRow {
    let body = DepartmentBody {
        description: String::new(),
        created_by: SYSTEM.to_owned(),
        created_at_ms: START.0,
        updated_by: SYSTEM.to_owned(),
        updated_at_ms: START.0,
        share: shares.remove(POOL_DEFAULT_ID),
        rules: Rules::default(),
        pool_shares: shares,
        default_pools: Vec::new(),
        node_types: NodeTypes::default(),
    };
    DepartmentRow { id, name: name.to_owned(), body, deleted_at: None }
}

fn project(
    id: u64,
    name: &str,
    department_id: u64,
    mut shares: BTreeMap<String, ShareChange>,
) -> ProjectRow {
    let body = ProjectBody {
        description: String::new(),
        created_by: SYSTEM.to_owned(),
        created_at_ms: START.0,
        updated_by: None,
        updated_at_ms: START.0,
        department_id,
        rules: Rules::default(),
        share: shares.remove(POOL_DEFAULT_ID).unwrap_or_default(),
        pool_shares: shares,
        default_pools: Vec::new(),
        node_types: NodeTypes::default(),
        namespaces: Vec::new(),
    };
    ProjectRow { id, name: name.to_owned(), body, deleted_at: None }
}
