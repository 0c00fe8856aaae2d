//! Departments and projects: what people ask of them, done to the state. Owns: their names, what
//! cannot be deleted, and that each has a queue in the model, a project below its department.

use std::collections::BTreeMap;

use model::QueueId;
use store::Change;

use crate::command::{DepartmentSpec, OrgChange, ProjectSpec, ShareChange, Subject};
use crate::objects::Scope;
use crate::state::{Department, Project, State, model_share};
use crate::view::{Rules, Share};
use crate::{Error, admission, persist};

/// The department of projects that name none. It is always there.
pub const DEPARTMENT_DEFAULT: u64 = 1;
/// Its name when it is made.
const DEPARTMENT_DEFAULT_NAME: &str = "default";
/// Weight of a department that was given none.
const WEIGHT_DEFAULT: u64 = 2;
/// Who made what nobody asked for.
const SYSTEM: &str = "elastane";

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
pub(crate) fn together<'a>(shares: impl Iterator<Item = &'a Share>) -> Share {
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
            rules: Rules::default(),
            queue: self.department_queue(DEPARTMENT_DEFAULT, DEPARTMENT_DEFAULT_NAME)?,
        };
        self.last_department_id = self.last_department_id.max(DEPARTMENT_DEFAULT);
        self.put_department(department);
        Ok(())
    }

    /// A queue for a department; [`State::settle_department`] gives it its share.
    pub(crate) fn department_queue(&mut self, id: u64, name: &str) -> Result<QueueId, Error> {
        let share = model_share(&together([].iter()));
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

    /// What a department is entitled to: what it was given, or what its projects have together.
    pub(crate) fn department_share(&self, department: &Department) -> Share {
        let mine = |project: &&Project| project.department_id == department.id;
        let projects = self.projects.values().filter(mine);
        department.share.unwrap_or_else(|| together(projects.map(|project| &project.share)))
    }

    /// Tells the model what a department is entitled to, after something of it has changed.
    pub(crate) fn settle_department(&mut self, id: u64) -> Result<(), Error> {
        let Some(department) = self.departments.get(&id) else { return Ok(()) };
        let share = model_share(&self.department_share(department));
        self.cluster.set_share(department.queue, share).map_err(internal)
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
        admission::org_unit(&spec.name, &spec.description, spec.share.as_ref())?;
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
            rules: spec.rules,
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
        let before = self.department_share(department);
        let changed =
            (change.share != ShareChange::default()).then(|| change.share.made_to(before));
        let updated = Department {
            name: change.name.unwrap_or_else(|| department.name.clone()),
            description: change.description.unwrap_or_else(|| department.description.clone()),
            share: changed.or(department.share),
            rules: change.rules.unwrap_or(department.rules),
            updated_by: by,
            updated_at: self.now,
            ..department.clone()
        };
        let renamed = updated.name != department.name;
        admission::org_unit(&updated.name, &updated.description, updated.share.as_ref())?;
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
        admission::org_unit(&spec.name, &spec.description, Some(&spec.share))?;
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
            rules: spec.rules,
            queue,
            names: BTreeMap::new(),
        };
        self.outbox.changes.push(Change::Project(persist::project_row(&project, None)));
        self.outbox.projects.insert(id);
        let quota = units::format_millis(project.share.gpu_quota_millis);
        self.projects.insert(id, project);
        self.settle_department(department_id)?;
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
        let spec = ProjectSpec {
            department_id: project.department_id,
            name: change.name.unwrap_or_else(|| project.name.clone()),
            description: change.description.unwrap_or_else(|| project.description.clone()),
            share: change.share.made_to(project.share),
            rules: change.rules.unwrap_or(project.rules),
        };
        admission::org_unit(&spec.name, &spec.description, Some(&spec.share))?;
        let queue = project.queue;
        let renamed = project.name != spec.name;
        self.project_name_is_free(&spec.name, Some(id))?;
        self.cluster.set_share(queue, model_share(&spec.share)).map_err(internal)?;
        self.cluster.rename_queue(queue, spec.name.clone()).map_err(internal)?;
        let now = self.now;
        let project = self.projects.get_mut(&id).ok_or_else(|| Error::no_project(id))?;
        project.name = spec.name;
        project.description = spec.description;
        project.share = spec.share;
        project.rules = spec.rules;
        project.updated_by = by;
        project.updated_at = now;
        let row = persist::project_row(project, None);
        let quota = units::format_millis(project.share.gpu_quota_millis);
        let shown: Vec<_> = project.names.values().copied().collect();
        self.outbox.changes.push(Change::Project(row));
        self.outbox.projects.insert(id);
        self.settle_department(spec.department_id)?;
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
