//! Commands for departments and projects.

use command::{OrgChange, Subject, admission};
use records::{DepartmentRow, ProjectRow};

use crate::Error;
use crate::emit::EventBuilder;
use crate::org::{OrgMut, Unit};
use crate::pools::POOL_DEFAULT_ID;
use crate::state::State;
use spec::Share;
use view::{QuotasInPool, Scope};

impl State {
    fn org_mut(&mut self) -> OrgMut<'_> {
        let Self { org, now, cluster, pools, outbox, .. } = self;
        OrgMut { org, now: *now, cluster, pools, outbox }
    }

    /// Restores stored departments and projects.
    pub(crate) fn restore_org(
        &mut self,
        departments: &[DepartmentRow],
        projects: &[ProjectRow],
    ) -> Result<(), Error> {
        let created_at = self.cluster_created_at;
        self.org_mut().restore(departments, projects, created_at)
    }

    /// Sets the shares of all departments and projects in the model.
    pub(crate) fn settle_shares(&mut self) -> Result<(), Error> {
        self.org_mut().settle_shares()
    }

    /// Checks the settings of a department or a project.
    fn check_unit(&self, unit: &Unit) -> Result<(), Error> {
        let shares = unit.shares.values().map(|given| given.made_to(Share::USUAL));
        admission::org_unit(&unit.name, &unit.description, shares)?;
        admission::namespaces(&unit.namespaces)?;
        self.pools.check_places(unit.shares.keys(), &unit.default_pools, &unit.node_types)
    }

    pub(crate) fn create_department(
        &mut self,
        by: String,
        spec: OrgChange,
    ) -> Result<Subject, Error> {
        let unit = self.org.new_department(by, spec, self.now);
        let id = unit.id;
        self.check_unit(&unit)?;
        self.org_mut().add_department(unit)?;
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
        let is_ruled = unit.rules != before.rules;
        self.check_unit(&unit)?;
        self.org_mut().change_department(unit)?;
        let projects: Vec<u64> = self.org.projects_in(id).map(|one| one.unit.id).collect();
        for project in projects {
            if is_renamed {
                // Workloads show the name of their department.
                self.outbox.show(self.workloads.ids_in(project));
            }
            if is_ruled {
                self.tell_limits(project);
            }
        }
        Ok(Subject::Department(id))
    }

    pub(crate) fn delete_department(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        self.org_mut().remove_department(id)?;
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
        self.org_mut().add_project(unit, department_id)?;
        self.say_quota(id, "ProjectCreated", "created with a quota of");
        self.settle_uncharged();
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
        let is_ruled = unit.rules != before.rules;
        self.check_unit(&unit)?;
        self.org_mut().change_project(unit)?;
        if is_ruled {
            self.tell_limits(id);
        }
        if is_renamed {
            // Workloads show the name of their project.
            self.outbox.show(self.workloads.ids_in(id));
        }
        self.say_quota(id, "ProjectUpdated", "updated; the quota is");
        self.settle_uncharged();
        Ok(Subject::Project(id))
    }

    /// Publishes the quota of a project, with a warning if its department has less.
    fn say_quota(&mut self, id: u64, kind: &'static str, what: &str) {
        let Ok(project) = self.org.project(id) else { return };
        let Ok(department) = self.org.department(project.department_id) else { return };
        let below = self.org.below(project.department_id);
        let quotas = self.pools.iter().map(|pool| QuotasInPool {
            pool: pool.name(),
            project: project.share_in(pool.id()).gpu_quota_millis,
            projects: below.in_pool(pool.id()).gpu_quota_millis,
            department: department.share_in(pool.id(), &below).gpu_quota_millis,
        });
        let above = view::above(&department.unit.name, &quotas.collect::<Vec<_>>());
        let gpus = units::gpus(project.share_in(POOL_DEFAULT_ID).gpu_quota_millis);
        let text = format!("{what} {gpus}");
        let event = match above {
            None => EventBuilder::new(kind, text),
            Some(above) => EventBuilder::new(kind, format!("{text}; {above}")).warning(),
        };
        self.emit_of_project(id, event);
    }

    pub(crate) fn delete_project(&mut self, by: &str, id: u64) -> Result<Subject, Error> {
        let name = self.org.project(id)?.unit.name.clone();
        let archived = self.workloads.used().of_project(id).archived;
        if let Some(names) = self.workloads.names_in(id) {
            let some = admission::some_of(names.keys().map(String::as_str));
            return Err(Error::conflict(format!(
                "project `{name}` still has {} ({some}); `runai delete --all -p {name}` deletes its workloads",
                units::counted(names.len() as u64 + archived, "workload")
            )));
        }
        if archived > 0 {
            return Err(Error::conflict(format!(
                "project `{name}` still has {}, to be deleted first; `runai list -p {name}` lists them",
                units::counted(archived, "ended workload")
            )));
        }
        self.org_mut().remove_project(id)?;
        self.emit_apart(Some((id, name)), EventBuilder::new("ProjectDeleted", "deleted"));
        self.delete_objects_of(by, Scope::Project(id));
        Ok(Subject::Nothing)
    }
}
