//! Departments and projects. Owns: their names, the refusals of deletion, and that each has a queue
//! in the model, a project below its department, with its share.

mod commands;
mod unit;

use std::collections::BTreeMap;

use command::{OrgChange, admission};
use model::{Cluster, Primary, QueueId};
use records::{Change, DepartmentRow, ProjectRow};
use units::{Instant, Resources};

use crate::Error;
use crate::effect::Outbox;
use crate::pools::Pools;
use spec::{NodeTypes, Rules, Share};

use unit::model_share;
pub(crate) use unit::{Below, Department, Project, Unit};

/// The department of projects that name none. It always exists.
pub const DEPARTMENT_DEFAULT: u64 = 1;
/// Its initial name.
const DEPARTMENT_DEFAULT_NAME: &str = "default";
/// Author of changes that no user requested.
pub const SYSTEM: &str = "elastane";

/// Departments and projects.
#[derive(Debug, Default)]
pub(crate) struct Org {
    departments: BTreeMap<u64, Department>,
    projects: BTreeMap<u64, Project>,
    /// Last fair share of each queue from the scheduler.
    fair_shares: BTreeMap<QueueId, Resources>,
    last_department_id: u64,
    last_project_id: u64,
}

/// Owner of a queue.
pub(crate) enum Owner {
    Department(u64),
    Project(u64),
}

/// Values in both lists; an empty list stands for all. `None` if they have nothing in common.
pub(crate) fn both(outer: &[String], inner: &[String]) -> Option<Vec<String>> {
    match (outer, inner) {
        ([], types) | (types, []) => Some(types.to_vec()),
        _ => {
            let common: Vec<_> = inner.iter().filter(|t| outer.contains(t)).cloned().collect();
            (!common.is_empty()).then_some(common)
        }
    }
}

/// Departments and projects with the state that a change of them reads and writes.
struct OrgMut<'a> {
    org: &'a mut Org,
    now: Instant,
    cluster: &'a mut Primary,
    pools: &'a Pools,
    outbox: &'a mut Outbox,
}

fn internal(error: model::Error) -> Error {
    Error::Internal { message: error.to_string() }
}

fn queue_name(department: &str) -> String {
    format!("{}{department}", model::DEPARTMENT_PREFIX)
}

/// Sequence number of a project's queue. In the model, departments come before projects.
const fn project_seq(id: u64) -> u64 {
    (1 << 32) + id
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

/// Reading.
impl Org {
    pub(crate) fn new(last_department_id: u64, last_project_id: u64) -> Self {
        Self { last_department_id, last_project_id, ..Self::default() }
    }

    pub(crate) fn department(&self, id: u64) -> Result<&Department, Error> {
        self.departments.get(&id).ok_or_else(|| Error::no_department(id))
    }

    pub(crate) fn departments(&self) -> impl Iterator<Item = &Department> {
        self.departments.values()
    }

    pub(crate) fn project(&self, id: u64) -> Result<&Project, Error> {
        self.projects.get(&id).ok_or_else(|| Error::no_project(id))
    }

    pub(crate) fn projects(&self) -> impl Iterator<Item = &Project> + Clone {
        self.projects.values()
    }

    pub(crate) fn project_ids(&self) -> impl Iterator<Item = u64> {
        self.projects.keys().copied()
    }

    pub(crate) fn projects_in(&self, department: u64) -> impl Iterator<Item = &Project> {
        self.projects.values().filter(move |project| project.department_id == department)
    }

    /// Sum of the shares of the projects of a department.
    pub(crate) fn below(&self, department: u64) -> Below<'_> {
        let mut below = Below::default();
        self.projects_in(department).for_each(|project| below.add(project));
        below
    }

    /// These sums for all departments that have projects, by their ids.
    pub(crate) fn below_each(&self) -> BTreeMap<u64, Below<'_>> {
        let mut all: BTreeMap<u64, Below<'_>> = BTreeMap::new();
        for project in self.projects.values() {
            all.entry(project.department_id).or_default().add(project);
        }
        all
    }

    /// Owner of a queue.
    pub(crate) fn of_queue(&self, cluster: &Cluster, queue: QueueId) -> Option<Owner> {
        let row = cluster.queues().get(queue)?;
        let project = row.seq.checked_sub(project_seq(0)).filter(|_| row.parent.is_some());
        Some(project.map_or(Owner::Department(row.seq), Owner::Project))
    }

    /// The name of a department; empty if it does not exist.
    pub(crate) fn department_name(&self, id: u64) -> String {
        self.departments.get(&id).map(|found| found.unit.name.clone()).unwrap_or_default()
    }

    /// The name of a project; empty if it does not exist.
    pub(crate) fn project_name(&self, id: u64) -> String {
        self.projects.get(&id).map(|found| found.unit.name.clone()).unwrap_or_default()
    }

    /// Fair share of a queue.
    pub(crate) fn fair_share(&self, queue: QueueId) -> Resources {
        self.fair_shares.get(&queue).copied().unwrap_or_default()
    }

    pub(crate) fn fair_shares(&self) -> impl Iterator<Item = (&QueueId, &Resources)> {
        self.fair_shares.iter()
    }

    pub(crate) fn set_fair_share(&mut self, queue: QueueId, share: Resources) {
        self.fair_shares.insert(queue, share);
    }

    /// The time limits of a project and of its department.
    pub(crate) fn effective_rules(&self, project: &Project) -> Rules {
        let department = self.departments.get(&project.department_id);
        project.unit.rules.and(department.map(|found| found.unit.rules).unwrap_or_default())
    }

    /// Default node pools of workloads of a project; empty for all.
    pub(crate) fn effective_pools<'a>(&'a self, project: &'a Project) -> &'a [String] {
        let department = self.departments.get(&project.department_id);
        let above = department.map_or(&[][..], |department| &department.unit.default_pools);
        if project.unit.default_pools.is_empty() { above } else { &project.unit.default_pools }
    }

    /// Node types that a project and its department both allow.
    pub(crate) fn effective_types(&self, project: &Project) -> NodeTypes {
        let own = project.unit.node_types.clone();
        let Some(department) = self.departments.get(&project.department_id) else { return own };
        let above = &department.unit.node_types;
        let mut names = above.names.clone();
        names.extend(own.names);
        // Without a common type the project's own stand here, and submissions are refused.
        NodeTypes {
            training: both(&above.training, &own.training).unwrap_or(own.training),
            workspace: both(&above.workspace, &own.workspace).unwrap_or(own.workspace),
            names,
        }
    }

    /// True if the workloads of any project have time limits.
    pub(crate) fn has_rules(&self) -> bool {
        let mut units = self.projects.values().map(|one| &one.unit);
        units.any(|unit| unit.rules != Rules::default())
            || self.departments.values().any(|one| one.unit.rules != Rules::default())
    }

    /// A new department with these settings.
    pub(crate) fn new_department(&self, by: String, spec: OrgChange, now: Instant) -> Unit {
        Unit::new(self.last_department_id + 1, by.clone(), now).changed(spec, by, now)
    }

    /// A new project with these settings.
    pub(crate) fn new_project(&self, by: String, spec: OrgChange, now: Instant) -> Unit {
        Unit::new(self.last_project_id + 1, by.clone(), now).changed(spec, by, now)
    }

    /// Removes all shares in a removed pool.
    pub(crate) fn forget_pool(&mut self, id: &str, outbox: &mut Outbox) {
        for project in self.projects.values_mut() {
            if project.unit.shares.remove(id).is_some() {
                outbox.write([Change::Project(unit::project_row(project, None))]);
            }
        }
        for department in self.departments.values_mut() {
            if department.unit.shares.remove(id).is_some() {
                outbox.write([Change::Department(unit::department_row(department, None))]);
            }
        }
    }
}

/// Queues of departments and projects in the model.
impl OrgMut<'_> {
    /// Restores stored rows, and creates the default department if it does not exist.
    fn restore(
        &mut self,
        departments: &[DepartmentRow],
        projects: &[ProjectRow],
        created_at: Instant,
    ) -> Result<(), Error> {
        for row in departments {
            let queue = self.department_queue(row.id, &row.name)?;
            self.org.departments.insert(row.id, unit::department_from_row(row, queue));
        }
        if !self.org.departments.contains_key(&DEPARTMENT_DEFAULT) {
            let name = DEPARTMENT_DEFAULT_NAME.to_owned();
            let queue = self.department_queue(DEPARTMENT_DEFAULT, &name)?;
            let new = Unit::new(DEPARTMENT_DEFAULT, SYSTEM.to_owned(), created_at);
            self.org.last_department_id = self.org.last_department_id.max(DEPARTMENT_DEFAULT);
            self.put_department(Department { unit: Unit { name, ..new }, queue });
        }
        for row in projects {
            let queue = self.project_queue(row.id, &row.name, row.body.department_id)?;
            self.org.projects.insert(row.id, unit::project_from_row(row, queue));
        }
        self.settle_shares()
    }

    /// A queue for a department; [`Self::settle_department`] sets its share.
    fn department_queue(&mut self, id: u64, name: &str) -> Result<QueueId, Error> {
        let share = model_share(&Below::NOTHING);
        let queue = model::QueueSpec { name: queue_name(name), parent: None, share, seq: id };
        self.cluster.add_queue(queue).map_err(internal)
    }

    /// A queue for a project; [`Self::put_project`] sets its share.
    fn project_queue(&mut self, id: u64, name: &str, department_id: u64) -> Result<QueueId, Error> {
        let queue = model::QueueSpec {
            name: name.to_owned(),
            parent: Some(self.org.department(department_id)?.queue),
            share: model_share(&Share::USUAL),
            seq: project_seq(id),
        };
        self.cluster.add_queue(queue).map_err(internal)
    }

    /// Sets the share of a department in the model, after a change.
    fn settle_department(&mut self, id: u64) -> Result<(), Error> {
        let Some(department) = self.org.departments.get(&id) else { return Ok(()) };
        department.settle(self.cluster, self.pools, &self.org.below(id))
    }

    /// Sets the shares of all departments and projects in the model.
    pub(super) fn settle_shares(&mut self) -> Result<(), Error> {
        for project in self.org.projects.values() {
            project.settle(self.cluster, self.pools)?;
        }
        let (below, nothing) = (self.org.below_each(), Below::default());
        self.org.departments.values().try_for_each(|department| {
            let below = below.get(&department.unit.id).unwrap_or(&nothing);
            department.settle(self.cluster, self.pools, below)
        })
    }

    fn remove_queue(&mut self, queue: QueueId) -> Result<(), Error> {
        self.cluster.remove_queue(queue).map_err(internal)?;
        self.org.fair_shares.retain(|&queue, _| self.cluster.queues().get(queue).is_some());
        Ok(())
    }
}

/// Departments.
impl OrgMut<'_> {
    fn add_department(&mut self, unit: Unit) -> Result<(), Error> {
        let id = unit.id;
        admission::one_more("departments", self.org.departments.len())?;
        name_is_free("department", self.org.departments.values().map(|one| &one.unit), &unit)?;
        let queue = self.department_queue(id, &unit.name)?;
        self.org.last_department_id = id;
        self.put_department(Department { unit, queue });
        self.settle_department(id)
    }

    fn change_department(&mut self, unit: Unit) -> Result<(), Error> {
        let (id, queue) = (unit.id, self.org.department(unit.id)?.queue);
        name_is_free("department", self.org.departments.values().map(|one| &one.unit), &unit)?;
        self.cluster.rename_queue(queue, queue_name(&unit.name)).map_err(internal)?;
        self.put_department(Department { unit, queue });
        self.settle_department(id)
    }

    fn put_department(&mut self, department: Department) {
        self.outbox.write([Change::Department(unit::department_row(&department, None))]);
        self.org.departments.insert(department.unit.id, department);
    }

    fn remove_department(&mut self, id: u64) -> Result<(), Error> {
        let department = self.org.department(id)?;
        let (name, queue) = (&department.unit.name, department.queue);
        if id == DEPARTMENT_DEFAULT {
            return Err(Error::conflict(format!(
                "department `{name}` is where projects go that name none; it cannot be deleted"
            )));
        }
        let projects: Vec<_> = self.org.projects_in(id).map(|one| one.unit.name.as_str()).collect();
        if !projects.is_empty() {
            let some = admission::some_of(projects.iter().copied());
            let count = units::counted(projects.len(), "project");
            return Err(Error::conflict(format!(
                "department `{name}` still has {count} ({some}), to be deleted first"
            )));
        }
        self.remove_queue(queue)?;
        if let Some(department) = self.org.departments.remove(&id) {
            let row = unit::department_row(&department, Some(self.now));
            self.outbox.write([Change::Department(row)]);
        }
        Ok(())
    }
}

/// Projects.
impl OrgMut<'_> {
    fn add_project(&mut self, unit: Unit, department_id: u64) -> Result<(), Error> {
        let id = unit.id;
        admission::one_more("projects", self.org.projects.len())?;
        name_is_free("project", self.org.projects.values().map(|one| &one.unit), &unit)?;
        let queue = self.project_queue(id, &unit.name, department_id)?;
        self.org.last_project_id = id;
        self.put_project(Project { unit, department_id, queue })
    }

    fn change_project(&mut self, unit: Unit) -> Result<(), Error> {
        let Project { department_id, queue, .. } = *self.org.project(unit.id)?;
        name_is_free("project", self.org.projects.values().map(|one| &one.unit), &unit)?;
        self.cluster.rename_queue(queue, unit.name.clone()).map_err(internal)?;
        self.put_project(Project { unit, department_id, queue })
    }

    fn put_project(&mut self, project: Project) -> Result<(), Error> {
        let (id, department_id) = (project.unit.id, project.department_id);
        self.outbox.write([Change::Project(unit::project_row(&project, None))]);
        self.outbox.recount([id]);
        project.settle(self.cluster, self.pools)?;
        self.org.projects.insert(id, project);
        self.settle_department(department_id)
    }

    /// Removes a project without workloads.
    fn remove_project(&mut self, id: u64) -> Result<(), Error> {
        self.remove_queue(self.org.project(id)?.queue)?;
        let Some(project) = self.org.projects.remove(&id) else { return Ok(()) };
        let row = unit::project_row(&project, Some(self.now));
        self.outbox.write([Change::Project(row)]);
        self.settle_department(project.department_id)
    }
}
