//! Departments and projects: what people ask of them, done to the state. Owns: their names, what
//! cannot be deleted, and that each has a queue in the model, a project below its department.

use std::collections::{BTreeMap, BTreeSet};

use model::QueueId;
use records::Change;
use units::Instant;

use crate::command::{OrgChange, Subject};
use crate::objects::Scope;
use crate::pools::{POOL_DEFAULT_ID, Pool};
use crate::primary::Primary;
use crate::state::{Department, News, Project, State, Unit, model_share};
use crate::view::{NodeTypes, Rules, Share};
use crate::{Error, admission, persist};
use spec::ShareChange;

/// The department of projects that name none. It is always there.
pub const DEPARTMENT_DEFAULT: u64 = 1;
/// Its name when it is made.
const DEPARTMENT_DEFAULT_NAME: &str = "default";
/// Who made what nobody asked for.
pub const SYSTEM: &str = "elastane";

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
    let none = Share { cpu_quota_millis: Some(0), memory_quota_bytes: Some(0), ..Share::USUAL };
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    shares.fold(none, |sum, share| Share {
        gpu_quota_millis: sum.gpu_quota_millis.saturating_add(share.gpu_quota_millis),
        cpu_quota_millis: both(sum.cpu_quota_millis, share.cpu_quota_millis),
        memory_quota_bytes: both(sum.memory_quota_bytes, share.memory_quota_bytes),
        ..sum
    })
}

/// All projects, by the ids of their departments.
pub(crate) fn by_department(projects: &BTreeMap<u64, Project>) -> BTreeMap<u64, Vec<&Project>> {
    let mut all: BTreeMap<u64, Vec<&Project>> = BTreeMap::new();
    for project in projects.values() {
        all.entry(project.department_id).or_default().push(project);
    }
    all
}

/// Tells the model what a department is entitled to.
fn settle(
    cluster: &mut Primary,
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

impl Unit {
    /// One of which nobody has said anything yet.
    fn new(id: u64, by: String, at: Instant) -> Self {
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
        }
    }

    /// With that change made to it.
    fn changed(&self, change: OrgChange, by: String, at: Instant) -> Self {
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
        }
    }

    /// What it was given in a node pool.
    pub(crate) fn given(&self, pool: &str) -> ShareChange {
        self.shares.get(pool).copied().unwrap_or_default()
    }
}

impl Department {
    /// What it is entitled to in a node pool: what it was given, or else the usual.
    fn share_in(&self, pool: &str, projects: &[&Project]) -> Share {
        self.unit.given(pool).made_to(self.usual_in(pool, projects))
    }

    /// What it has where it was given nothing: what its projects have together, within its limits.
    pub(crate) fn usual_in(&self, pool: &str, projects: &[&Project]) -> Share {
        let given = self.unit.given(pool);
        let below = together(projects.iter().map(|project| project.share_in(pool)));
        Share {
            gpu_quota_millis: least(Some(below.gpu_quota_millis), given.gpu_limit_millis)
                .unwrap_or(below.gpu_quota_millis),
            cpu_quota_millis: least(below.cpu_quota_millis, given.cpu_limit_millis),
            memory_quota_bytes: least(below.memory_quota_bytes, given.memory_limit_bytes),
            ..below
        }
    }
}

/// The smaller of both, where none is unlimited.
fn least(quota: Option<u64>, limit: Option<Option<u64>>) -> Option<u64> {
    quota.into_iter().chain(limit.flatten()).min()
}

impl Project {
    /// Tells the model what it is entitled to.
    fn settle(&self, cluster: &mut Primary, pools: &[Pool]) -> Result<(), Error> {
        for pool in pools {
            let share = model_share(&self.share_in(pool.id()));
            cluster.set_share_in(self.queue, pool.model, share).map_err(internal)?;
        }
        Ok(())
    }

    /// What it is entitled to in a node pool.
    fn share_in(&self, pool: &str) -> Share {
        self.unit.given(pool).made_to(Share::USUAL)
    }
}

/// Departments.
impl State {
    /// Makes the department that is always there, if it is not there yet.
    pub(crate) fn make_default_department(&mut self) -> Result<(), Error> {
        if self.departments.contains_key(&DEPARTMENT_DEFAULT) {
            return Ok(());
        }
        let name = DEPARTMENT_DEFAULT_NAME.to_owned();
        let queue = self.department_queue(DEPARTMENT_DEFAULT, &name)?;
        let new = Unit::new(DEPARTMENT_DEFAULT, SYSTEM.to_owned(), self.cluster_created_at);
        self.last_department_id = self.last_department_id.max(DEPARTMENT_DEFAULT);
        self.put_department(Department { unit: Unit { name, ..new }, queue });
        Ok(())
    }

    /// A queue for a department; [`State::settle_department`] gives it its share.
    pub(crate) fn department_queue(&mut self, id: u64, name: &str) -> Result<QueueId, Error> {
        let share = model_share(&together(std::iter::empty()));
        let name = queue_name(name);
        let queue = model::QueueSpec { name, parent: None, share, seq: id };
        self.cluster.add_queue(queue).map_err(internal)
    }

    /// A queue for a project; [`State::settle_project`] gives it its share.
    pub(crate) fn project_queue(
        &mut self,
        id: u64,
        name: &str,
        department_id: u64,
    ) -> Result<QueueId, Error> {
        let department = self.departments.get(&department_id);
        let department = department.ok_or_else(|| Error::no_department(department_id))?;
        let queue = model::QueueSpec {
            name: name.to_owned(),
            parent: Some(department.queue),
            share: model_share(&Share::USUAL),
            seq: project_seq(id),
        };
        self.cluster.add_queue(queue).map_err(internal)
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
        let by_department = by_department(&self.projects);
        self.departments.values().try_for_each(|department| {
            let mine = by_department.get(&department.unit.id).map_or(&[][..], Vec::as_slice);
            settle(&mut self.cluster, &self.pools, department, mine)
        })
    }

    fn put_department(&mut self, department: Department) {
        let row = persist::department_row(&department, None);
        self.outbox.changes.push(Change::Department(row));
        self.departments.insert(department.unit.id, department);
    }

    /// Whether a department or a project may be as it is asked to be.
    fn check_unit(&self, unit: &Unit) -> Result<(), Error> {
        let shares = unit.shares.values().map(|given| given.made_to(Share::USUAL));
        admission::org_unit(&unit.name, &unit.description, shares)?;
        self.check_places(unit.shares.keys(), &unit.default_pools, &unit.node_types)
    }

    pub(crate) fn create_department(
        &mut self,
        by: String,
        spec: OrgChange,
    ) -> Result<Subject, Error> {
        let id = self.last_department_id + 1;
        let unit = Unit::new(id, by.clone(), self.now).changed(spec, by, self.now);
        self.check_unit(&unit)?;
        admission::one_more("departments", self.departments.len())?;
        name_is_free("department", self.departments.values().map(|one| &one.unit), &unit)?;
        let queue = self.department_queue(id, &unit.name)?;
        self.last_department_id = id;
        self.put_department(Department { unit, queue });
        self.settle_department(id)?;
        Ok(Subject::Department(id))
    }

    pub(crate) fn update_department(
        &mut self,
        by: String,
        id: u64,
        change: OrgChange,
    ) -> Result<Subject, Error> {
        let Department { unit: before, queue } =
            self.departments.get(&id).ok_or_else(|| Error::no_department(id))?;
        let (queue, unit) = (*queue, before.changed(change, by, self.now));
        let (renamed, ruled) = (unit.name != before.name, unit.rules != before.rules);
        self.check_unit(&unit)?;
        name_is_free("department", self.departments.values().map(|one| &one.unit), &unit)?;
        self.cluster.rename_queue(queue, queue_name(&unit.name)).map_err(internal)?;
        self.put_department(Department { unit, queue });
        self.settle_department(id)?;
        if ruled {
            let mine = self.projects.values().filter(|project| project.department_id == id);
            let mine: BTreeSet<u64> = mine.map(|project| project.unit.id).collect();
            self.limits_changed(|project| mine.contains(&project));
        }
        if renamed {
            // Workloads show the name of their department.
            let projects = self.projects.values().filter(|project| project.department_id == id);
            self.outbox.shown.extend(projects.flat_map(|project| project.names.values()));
        }
        Ok(Subject::Department(id))
    }

    pub(crate) fn delete_department(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        let department = self.departments.get(&id).ok_or_else(|| Error::no_department(id))?;
        let name = &department.unit.name;
        let mine = self.projects.values().filter(|project| project.department_id == id);
        let projects: Vec<_> = mine.map(|project| project.unit.name.as_str()).collect();
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
        self.fair_shares.retain(|&queue, _| self.cluster.queues().get(queue).is_some());
        let row = persist::department_row(department, Some(self.now));
        self.outbox.changes.push(Change::Department(row));
        self.departments.remove(&id);
        self.delete_objects_of(by, Scope::Department(id));
        Ok(Subject::Nothing)
    }
}

/// Projects.
impl State {
    fn put_project(&mut self, project: Project) -> Result<(), Error> {
        let id = project.unit.id;
        self.outbox.changes.push(Change::Project(persist::project_row(&project, None)));
        self.outbox.projects.insert(id);
        self.projects.insert(id, project);
        self.settle_project(id)
    }

    pub(crate) fn create_project(
        &mut self,
        by: String,
        department_id: u64,
        spec: OrgChange,
    ) -> Result<Subject, Error> {
        let id = self.last_project_id + 1;
        let unit = Unit::new(id, by.clone(), self.now).changed(spec, by, self.now);
        self.check_unit(&unit)?;
        admission::one_more("projects", self.projects.len())?;
        name_is_free("project", self.projects.values().map(|one| &one.unit), &unit)?;
        let queue = self.project_queue(id, &unit.name, department_id)?;
        self.last_project_id = id;
        self.put_project(Project { unit, department_id, queue, names: BTreeMap::new() })?;
        self.say_quota(id, "ProjectCreated", "created with a quota of");
        Ok(Subject::Project(id))
    }

    pub(crate) fn update_project(
        &mut self,
        by: String,
        id: u64,
        change: OrgChange,
    ) -> Result<Subject, Error> {
        let project = self.projects.get(&id).ok_or_else(|| Error::no_project(id))?.clone();
        let unit = project.unit.changed(change, by, self.now);
        self.check_unit(&unit)?;
        name_is_free("project", self.projects.values().map(|one| &one.unit), &unit)?;
        self.cluster.rename_queue(project.queue, unit.name.clone()).map_err(internal)?;
        if unit.name != project.unit.name {
            // Workloads show the name of their project.
            self.outbox.shown.extend(project.names.values());
        }
        let ruled = unit.rules != project.unit.rules;
        self.put_project(Project { unit, ..project })?;
        if ruled {
            self.limits_changed(|project| project == id);
        }
        self.say_quota(id, "ProjectUpdated", "updated; the quota is");
        Ok(Subject::Project(id))
    }

    /// Says what the quota of a project is now, with a warning where its department has less.
    fn say_quota(&mut self, id: u64, kind: &'static str, what: &str) {
        let Some(project) = self.projects.get(&id) else { return };
        let Some(department) = self.departments.get(&project.department_id) else { return };
        let mine = |other: &&Project| other.department_id == project.department_id;
        let projects: Vec<_> = self.projects.values().filter(mine).collect();
        let above = self.project_view(project).above(&self.department_view(department, &projects));
        let gpus = units::format_millis(project.share_in(POOL_DEFAULT_ID).gpu_quota_millis);
        let text = format!("{what} {gpus} GPU(s)");
        let news = match above {
            None => News::new(kind, text),
            Some(above) => News::new(kind, format!("{text}; {above}")).warning(),
        };
        self.say_of_project(id, news);
    }

    pub(crate) fn delete_project(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        let project = self.projects.get(&id).ok_or_else(|| Error::no_project(id))?;
        if !project.names.is_empty() {
            let some = admission::some_of(project.names.keys().map(String::as_str));
            return Err(Error::conflict(format!(
                "project `{}` still has {} workload(s) ({some}); delete them first",
                project.unit.name,
                project.names.len()
            )));
        }
        self.cluster.remove_queue(project.queue).map_err(internal)?;
        self.fair_shares.retain(|&queue, _| self.cluster.queues().get(queue).is_some());
        let department_id = project.department_id;
        let row = persist::project_row(project, Some(self.now));
        self.outbox.changes.push(Change::Project(row));
        self.say_of_project(id, News::new("ProjectDeleted", "deleted"));
        self.projects.remove(&id);
        self.holders.remove(&id);
        self.settle_department(department_id)?;
        self.delete_objects_of(by, Scope::Project(id));
        Ok(Subject::Nothing)
    }
}

/// Refuses a name that another one has.
fn name_is_free<'a>(
    what: &str,
    mut all: impl Iterator<Item = &'a Unit>,
    unit: &Unit,
) -> Result<(), Error> {
    if all.any(|one| one.name == unit.name && one.id != unit.id) {
        let name = &unit.name;
        let why = format!("{what} `{name}` already exists; choose another name");
        return Err(Error::conflict(why));
    }
    Ok(())
}
