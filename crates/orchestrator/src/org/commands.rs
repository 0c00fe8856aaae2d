//! What people ask of departments and projects.

use crate::command::{OrgChange, Subject};
use crate::documents::Scope;
use crate::org::{Around, Org, Unit};
use crate::pools::POOL_DEFAULT_ID;
use crate::state::{News, State};
use crate::view::Share;
use crate::{Error, admission};

impl State {
    /// Departments and projects, for a change.
    pub(crate) fn org(&mut self) -> (&mut Org, Around<'_>) {
        let Self { org, cluster, pools, outbox, .. } = self;
        (org, Around { cluster, pools, outbox })
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
        let unit = self.org.new_department(by, spec, self.now);
        let id = unit.id;
        self.check_unit(&unit)?;
        let (org, mut around) = self.org();
        org.add_department(unit, &mut around)?;
        Ok(Subject::Department(id))
    }

    pub(crate) fn update_department(
        &mut self,
        by: String,
        id: u64,
        change: OrgChange,
    ) -> Result<Subject, Error> {
        let before = &self.org.department(id)?.unit;
        let unit = before.changed(change, by, self.now);
        let is_renamed = unit.name != before.name;
        self.check_unit(&unit)?;
        let (org, mut around) = self.org();
        org.change_department(unit, &mut around)?;
        if is_renamed {
            // Workloads show the name of their department.
            for project in self.org.projects_in(id) {
                self.outbox.shown.extend(self.workloads.ids_in(project.unit.id));
            }
        }
        Ok(Subject::Department(id))
    }

    pub(crate) fn delete_department(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        let now = self.now;
        let (org, mut around) = self.org();
        org.remove_department(id, now, &mut around)?;
        self.delete_objects_of(by, Scope::Department(id));
        Ok(Subject::Nothing)
    }

    pub(crate) fn create_project(
        &mut self,
        by: String,
        department_id: u64,
        spec: OrgChange,
    ) -> Result<Subject, Error> {
        let unit = self.org.new_project(by, spec, self.now);
        let id = unit.id;
        self.check_unit(&unit)?;
        let (org, mut around) = self.org();
        org.add_project(unit, department_id, &mut around)?;
        self.say_quota(id, "ProjectCreated", "created with a quota of");
        Ok(Subject::Project(id))
    }

    pub(crate) fn update_project(
        &mut self,
        by: String,
        id: u64,
        change: OrgChange,
    ) -> Result<Subject, Error> {
        let before = &self.org.project(id)?.unit;
        let unit = before.changed(change, by, self.now);
        let is_renamed = unit.name != before.name;
        self.check_unit(&unit)?;
        let (org, mut around) = self.org();
        org.change_project(unit, &mut around)?;
        if is_renamed {
            // Workloads show the name of their project.
            self.outbox.shown.extend(self.workloads.ids_in(id));
        }
        self.say_quota(id, "ProjectUpdated", "updated; the quota is");
        Ok(Subject::Project(id))
    }

    /// Says what the quota of a project is now, with a warning where its department has less.
    fn say_quota(&mut self, id: u64, kind: &'static str, what: &str) {
        let Ok(project) = self.org.project(id) else { return };
        let Ok(department) = self.org.department(project.department_id) else { return };
        let projects: Vec<_> = self.org.projects_in(project.department_id).collect();
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
        let name = self.org.project(id)?.unit.name.clone();
        if let Some(names) = self.workloads.names_in(id) {
            let some = admission::some_of(names.keys().map(String::as_str));
            return Err(Error::conflict(format!(
                "project `{name}` still has {} workload(s) ({some}); delete them first",
                names.len()
            )));
        }
        let now = self.now;
        let (org, mut around) = self.org();
        org.remove_project(id, now, &mut around)?;
        self.say_apart(Some((id, name)), News::new("ProjectDeleted", "deleted"));
        self.delete_objects_of(by, Scope::Project(id));
        Ok(Subject::Nothing)
    }
}
