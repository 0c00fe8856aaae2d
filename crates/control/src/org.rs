//! Departments and projects: what people ask of them, done to the state. Owns: their names, what
//! cannot be deleted, and that each has a queue in the model, a project below its department.

use std::collections::BTreeMap;

use model::QueueId;
use store::Change;

use crate::command::{DepartmentSpec, OrgChange, ProjectSpec, ShareChange, Subject};
use crate::objects::Scope;
use crate::pools::{POOL_DEFAULT_ID, Pool};
use crate::state::{Department, Project, State, model_share};
use crate::view::{NodeTypes, Rules, Share};
use crate::{Error, admission, persist};

/// The department of projects that name none. It is always there.
pub const DEPARTMENT_DEFAULT: u64 = 1;
/// Its name when it is made.
const DEPARTMENT_DEFAULT_NAME: &str = "default";
/// Weight of a department that was given none.
const WEIGHT_DEFAULT: u64 = 2;
/// Who made what nobody asked for.
pub(crate) const SYSTEM: &str = "elastane";

fn internal(error: model::Error) -> Error {
    Error::Internal { message: error.to_string() }
}

/// Queues of the model have one namespace, and no project can be called this.
fn queue_name(department: &str) -> String {
    format!("department:{department}")
}

/// In the model, departments come before projects.
const fn project_seq(id: u64) -> u64 {
    (1 << 32) + id
}

/// What projects have together; without any, nothing.
fn together(shares: impl Iterator<Item = Share>) -> Share {
    let none = Share {
        cpu_quota_millis: Some(0),
        memory_quota_bytes: Some(0),
        ..Share::none(WEIGHT_DEFAULT)
    };
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    shares.fold(none, |sum, share| Share {
        gpu_quota_millis: sum.gpu_quota_millis.saturating_add(share.gpu_quota_millis),
        cpu_quota_millis: both(sum.cpu_quota_millis, share.cpu_quota_millis),
        memory_quota_bytes: both(sum.memory_quota_bytes, share.memory_quota_bytes),
        ..sum
    })
}

/// Shares in other pools than `default`, with some of them changed.
fn changed_shares(
    mut kept: BTreeMap<String, Share>,
    changes: &BTreeMap<String, ShareChange>,
    before: impl Fn(&str) -> Share,
) -> BTreeMap<String, Share> {
    for (pool, change) in changes {
        kept.insert(pool.clone(), change.made_to(before(pool)));
    }
    kept
}

/// Tells the model what a department is entitled to.
fn settle(
    cluster: &mut model::Cluster,
    pools: &[Pool],
    department: &Department,
    projects: &[&Project],
) -> Result<(), Error> {
    for pool in pools {
        // How long work is left alone is a matter of the pool; queues below follow it.
        let min_runtime_ms = pool.settings.min_runtime_ms;
        let share = model::Share {
            preempt_min_runtime_ms: min_runtime_ms,
            reclaim_min_runtime_ms: min_runtime_ms,
            ..model_share(&department.share_in(pool.id(), projects))
        };
        cluster.set_share_in(department.queue, pool.model, share).map_err(internal)?;
    }
    Ok(())
}

impl Department {
    /// What it is entitled to in a node pool: what it was given, or what its projects have.
    pub(crate) fn share_in(&self, pool: &str, projects: &[&Project]) -> Share {
        let given = match pool {
            POOL_DEFAULT_ID => self.share,
            other => self.pool_shares.get(other).copied(),
        };
        given.unwrap_or_else(|| together(projects.iter().map(|project| project.share_in(pool))))
    }
}

impl Project {
    /// Tells the model what it is entitled to.
    fn settle(&self, cluster: &mut model::Cluster, pools: &[Pool]) -> Result<(), Error> {
        for pool in pools {
            let share = model_share(&self.share_in(pool.id()));
            cluster.set_share_in(self.queue, pool.model, share).map_err(internal)?;
        }
        Ok(())
    }

    /// What it is entitled to in a node pool.
    pub(crate) fn share_in(&self, pool: &str) -> Share {
        let other = || self.pool_shares.get(pool).copied().unwrap_or(Share::USUAL);
        if pool == POOL_DEFAULT_ID { self.share } else { other() }
    }
}

/// Departments.
impl State {
    /// Makes the department that is always there, if it is not there yet.
    pub(crate) fn make_default_department(&mut self) -> Result<(), Error> {
        if self.departments.contains_key(&DEPARTMENT_DEFAULT) {
            return Ok(());
        }
        let created_at = self.cluster_created_at;
        let department = Department {
            id: DEPARTMENT_DEFAULT,
            name: DEPARTMENT_DEFAULT_NAME.to_owned(),
            description: String::new(),
            created_by: SYSTEM.to_owned(),
            created_at,
            updated_by: SYSTEM.to_owned(),
            updated_at: created_at,
            share: None,
            pool_shares: BTreeMap::new(),
            rules: Rules::default(),
            default_pools: Vec::new(),
            node_types: NodeTypes::default(),
            queue: self.department_queue(DEPARTMENT_DEFAULT, DEPARTMENT_DEFAULT_NAME)?,
        };
        self.last_department_id = self.last_department_id.max(DEPARTMENT_DEFAULT);
        self.put_department(department);
        Ok(())
    }

    /// A queue for a department; [`State::settle_department`] gives it its share.
    pub(crate) fn department_queue(&mut self, id: u64, name: &str) -> Result<QueueId, Error> {
        let share = model_share(&together(std::iter::empty()));
        let name = queue_name(name);
        let queue = model::QueueSpec { name, parent: None, share, seq: id };
        self.cluster.add_queue(queue).map_err(internal)
    }

    /// A queue for a project.
    pub(crate) fn project_queue(
        &mut self,
        id: u64,
        name: &str,
        department_id: u64,
        share: &Share,
    ) -> Result<QueueId, Error> {
        let department = self.departments.get(&department_id);
        let department = department.ok_or_else(|| Error::no_department(department_id))?;
        let queue = model::QueueSpec {
            name: name.to_owned(),
            parent: Some(department.queue),
            share: model_share(share),
            seq: project_seq(id),
        };
        self.cluster.add_queue(queue).map_err(internal)
    }

    /// What a department is entitled to in a node pool: what it was given, or what its projects have
    /// together.
    pub(crate) fn department_share(&self, department: &Department, pool: &str) -> Share {
        let mine = |project: &&Project| project.department_id == department.id;
        let projects: Vec<_> = self.projects.values().filter(mine).collect();
        department.share_in(pool, &projects)
    }

    /// All projects, by the ids of their departments.
    pub(crate) fn projects_by_department(&self) -> BTreeMap<u64, Vec<&Project>> {
        let mut all: BTreeMap<u64, Vec<&Project>> = BTreeMap::new();
        for project in self.projects.values() {
            all.entry(project.department_id).or_default().push(project);
        }
        all
    }

    /// Tells the model what a department is entitled to, after something of it has changed.
    pub(crate) fn settle_department(&mut self, id: u64) -> Result<(), Error> {
        let Some(department) = self.departments.get(&id) else { return Ok(()) };
        let mine = |project: &&Project| project.department_id == id;
        let projects: Vec<_> = self.projects.values().filter(mine).collect();
        settle(&mut self.cluster, &self.pools, department, &projects)
    }

    /// Tells the model what a project is entitled to, after something of it has changed.
    pub(crate) fn settle_project(&mut self, id: u64) -> Result<(), Error> {
        let Some(project) = self.projects.get(&id) else { return Ok(()) };
        project.settle(&mut self.cluster, &self.pools)?;
        self.settle_department(project.department_id)
    }

    /// Tells the model what everybody is entitled to.
    pub(crate) fn settle_shares(&mut self) -> Result<(), Error> {
        for project in self.projects.values() {
            project.settle(&mut self.cluster, &self.pools)?;
        }
        let mut cluster = std::mem::take(&mut self.cluster);
        let by_department = self.projects_by_department();
        let settled = self.departments.values().try_for_each(|department| {
            let mine = by_department.get(&department.id).map_or(&[][..], Vec::as_slice);
            settle(&mut cluster, &self.pools, department, mine)
        });
        self.cluster = cluster;
        settled
    }

    fn put_department(&mut self, department: Department) {
        let row = persist::department_row(&department, None);
        self.outbox.changes.push(Change::Department(row));
        self.departments.insert(department.id, department);
    }

    fn department_name_is_free(&self, name: &str, own: Option<u64>) -> Result<(), Error> {
        match self.departments.values().find(|d| d.name == name && Some(d.id) != own) {
            None => Ok(()),
            Some(_) => Err(Error::conflict(format!(
                "department `{name}` already exists; choose another name"
            ))),
        }
    }

    pub(crate) fn create_department(
        &mut self,
        by: String,
        spec: DepartmentSpec,
    ) -> Result<Subject, Error> {
        let shares = spec.share.iter().chain(spec.pool_shares.values());
        admission::org_unit(&spec.name, &spec.description, shares)?;
        self.check_places(spec.pool_shares.keys(), &spec.default_pools, &spec.node_types)?;
        admission::one_more("departments", self.departments.len())?;
        self.department_name_is_free(&spec.name, None)?;
        let id = self.last_department_id + 1;
        let queue = self.department_queue(id, &spec.name)?;
        self.last_department_id = id;
        self.put_department(Department {
            id,
            name: spec.name,
            description: spec.description,
            created_by: by.clone(),
            created_at: self.now,
            updated_by: by,
            updated_at: self.now,
            share: spec.share,
            pool_shares: spec.pool_shares,
            rules: spec.rules,
            default_pools: spec.default_pools,
            node_types: spec.node_types,
            queue,
        });
        self.settle_department(id)?;
        Ok(Subject::Department(id))
    }

    pub(crate) fn update_department(
        &mut self,
        by: String,
        id: u64,
        change: OrgChange,
    ) -> Result<Subject, Error> {
        let department = self.departments.get(&id).ok_or_else(|| Error::no_department(id))?;
        let before = |pool: &str| self.department_share(department, pool);
        let changed = (change.share != ShareChange::default())
            .then(|| change.share.made_to(before(POOL_DEFAULT_ID)));
        let kept = if change.pools_anew { BTreeMap::new() } else { department.pool_shares.clone() };
        let updated = Department {
            name: change.name.unwrap_or_else(|| department.name.clone()),
            description: change.description.unwrap_or_else(|| department.description.clone()),
            share: changed.or(department.share),
            pool_shares: changed_shares(kept, &change.pool_shares, before),
            rules: change.rules.unwrap_or(department.rules),
            default_pools: change.default_pools.unwrap_or_else(|| department.default_pools.clone()),
            node_types: change.node_types.unwrap_or_else(|| department.node_types.clone()),
            updated_by: by,
            updated_at: self.now,
            ..department.clone()
        };
        let renamed = updated.name != department.name;
        let shares = updated.share.iter().chain(updated.pool_shares.values());
        admission::org_unit(&updated.name, &updated.description, shares)?;
        let Department { pool_shares, default_pools, node_types, .. } = &updated;
        self.check_places(pool_shares.keys(), default_pools, node_types)?;
        self.department_name_is_free(&updated.name, Some(id))?;
        self.cluster.rename_queue(updated.queue, queue_name(&updated.name)).map_err(internal)?;
        self.put_department(updated);
        self.settle_department(id)?;
        if renamed {
            // Workloads show the name of their department.
            let projects = self.projects.values().filter(|project| project.department_id == id);
            self.outbox.shown.extend(projects.flat_map(|project| project.names.values()));
        }
        Ok(Subject::Department(id))
    }

    pub(crate) fn delete_department(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        let department = self.departments.get(&id).ok_or_else(|| Error::no_department(id))?;
        let name = &department.name;
        let mine = |project: &&Project| project.department_id == id;
        let projects: Vec<_> =
            self.projects.values().filter(mine).map(|project| project.name.as_str()).collect();
        if !projects.is_empty() {
            let some = admission::some_of(projects.iter().copied());
            let count = projects.len();
            return Err(Error::conflict(format!(
                "department `{name}` still has {count} project(s) ({some}); delete them first"
            )));
        }
        if id == DEPARTMENT_DEFAULT {
            return Err(Error::conflict(format!(
                "department `{name}` is where projects go that name none; it cannot be deleted"
            )));
        }
        self.cluster.remove_queue(department.queue).map_err(internal)?;
        let row = persist::department_row(department, Some(self.now));
        self.outbox.changes.push(Change::Department(row));
        self.departments.remove(&id);
        self.delete_objects_of(by, Scope::Department(id));
        Ok(Subject::Nothing)
    }
}

/// Projects.
impl State {
    fn check_project(&self, spec: &ProjectSpec) -> Result<(), Error> {
        let shares = [&spec.share].into_iter().chain(spec.pool_shares.values());
        admission::org_unit(&spec.name, &spec.description, shares)?;
        self.check_places(spec.pool_shares.keys(), &spec.default_pools, &spec.node_types)
    }

    fn project_name_is_free(&self, name: &str, own: Option<u64>) -> Result<(), Error> {
        match self.projects.values().find(|p| p.name == name && Some(p.id) != own) {
            None => Ok(()),
            Some(_) => Err(Error::conflict(format!(
                "project `{name}` already exists; choose another name"
            ))),
        }
    }

    pub(crate) fn create_project(
        &mut self,
        by: String,
        spec: ProjectSpec,
    ) -> Result<Subject, Error> {
        self.check_project(&spec)?;
        admission::one_more("projects", self.projects.len())?;
        self.project_name_is_free(&spec.name, None)?;
        let id = self.last_project_id + 1;
        let department_id = spec.department_id;
        let queue = self.project_queue(id, &spec.name, department_id, &spec.share)?;
        self.last_project_id = id;
        let project = Project {
            id,
            department_id,
            name: spec.name,
            description: spec.description,
            created_by: by.clone(),
            updated_by: by,
            created_at: self.now,
            updated_at: self.now,
            share: spec.share,
            pool_shares: spec.pool_shares,
            rules: spec.rules,
            default_pools: spec.default_pools,
            node_types: spec.node_types,
            queue,
            names: BTreeMap::new(),
        };
        self.outbox.changes.push(Change::Project(persist::project_row(&project, None)));
        self.outbox.projects.insert(id);
        let quota = units::format_millis(project.share.gpu_quota_millis);
        self.projects.insert(id, project);
        self.settle_project(id)?;
        self.say_of_project(
            id,
            "ProjectCreated",
            format!("created with a quota of {quota} GPU(s)"),
        );
        Ok(Subject::Project(id))
    }

    pub(crate) fn update_project(
        &mut self,
        by: String,
        id: u64,
        change: OrgChange,
    ) -> Result<Subject, Error> {
        let project = self.projects.get(&id).ok_or_else(|| Error::no_project(id))?;
        let kept = if change.pools_anew { BTreeMap::new() } else { project.pool_shares.clone() };
        let before = |pool: &str| project.share_in(pool);
        let spec = ProjectSpec {
            department_id: project.department_id,
            name: change.name.unwrap_or_else(|| project.name.clone()),
            description: change.description.unwrap_or_else(|| project.description.clone()),
            share: change.share.made_to(project.share),
            pool_shares: changed_shares(kept, &change.pool_shares, before),
            rules: change.rules.unwrap_or(project.rules),
            default_pools: change.default_pools.unwrap_or_else(|| project.default_pools.clone()),
            node_types: change.node_types.unwrap_or_else(|| project.node_types.clone()),
        };
        self.check_project(&spec)?;
        let queue = project.queue;
        let renamed = project.name != spec.name;
        self.project_name_is_free(&spec.name, Some(id))?;
        self.cluster.rename_queue(queue, spec.name.clone()).map_err(internal)?;
        let now = self.now;
        let project = self.projects.get_mut(&id).ok_or_else(|| Error::no_project(id))?;
        project.name = spec.name;
        project.description = spec.description;
        project.share = spec.share;
        project.pool_shares = spec.pool_shares;
        project.rules = spec.rules;
        project.default_pools = spec.default_pools;
        project.node_types = spec.node_types;
        project.updated_by = by;
        project.updated_at = now;
        let row = persist::project_row(project, None);
        let quota = units::format_millis(project.share.gpu_quota_millis);
        let shown: Vec<_> = project.names.values().copied().collect();
        self.outbox.changes.push(Change::Project(row));
        self.outbox.projects.insert(id);
        self.settle_project(id)?;
        if renamed {
            // Workloads show the name of their project.
            self.outbox.shown.extend(shown);
        }
        self.say_of_project(id, "ProjectUpdated", format!("updated; the quota is {quota} GPU(s)"));
        Ok(Subject::Project(id))
    }

    pub(crate) fn delete_project(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        let project = self.projects.get(&id).ok_or_else(|| Error::no_project(id))?;
        if !project.names.is_empty() {
            let some = admission::some_of(project.names.keys().map(String::as_str));
            return Err(Error::conflict(format!(
                "project `{}` still has {} workload(s) ({some}); delete them first",
                project.name,
                project.names.len()
            )));
        }
        self.cluster.remove_queue(project.queue).map_err(internal)?;
        let department_id = project.department_id;
        let row = persist::project_row(project, Some(self.now));
        self.outbox.changes.push(Change::Project(row));
        self.say_of_project(id, "ProjectDeleted", "deleted".to_owned());
        self.projects.remove(&id);
        self.settle_department(department_id)?;
        self.delete_objects_of(by, Scope::Project(id));
        Ok(Subject::Nothing)
    }
}
