//! What people ask for, done to the state. Owns: each command, checked whole before it changes
//! anything, so that a refused one leaves no trace but its audit row.

use std::borrow::Cow;
use std::sync::Arc;

use engine::Engine;
use store::{AuditDetail, AuditRow, Change, Desired};
use units::Instant;
use uuid::Uuid;

use crate::command::{Command, Record, Subject, WorkloadSpec};
use crate::state::{News, Pod, State, Workload};
use crate::view::Phase;
use crate::{Error, admission, persist};

impl State {
    /// Carries out a command and writes it to the audit log.
    pub(crate) fn command(
        &mut self,
        command: Command,
        origin: &AuditDetail,
        engine: &dyn Engine,
    ) -> Result<Subject, Error> {
        let detail = origin.clone();
        if let Command::Record(Record { who, what, target, result }) = command {
            let row = AuditRow { at: self.now, who, what, target, result, detail };
            self.outbox.changes.push(Change::Audit(row));
            return Ok(Subject::Nothing);
        }
        let (who, what, target) = self.audited(&command);
        let outcome = self.carry_out(command, engine);
        let result = outcome.as_ref().err().map_or("ok".to_owned(), ToString::to_string);
        let row = AuditRow { at: self.now, who, what: what.into_owned(), target, result, detail };
        self.outbox.changes.push(Change::Audit(row));
        outcome
    }

    fn audited(&self, command: &Command) -> (String, Cow<'static, str>, String) {
        let department = |id: &u64| {
            self.departments.get(id).map_or_else(|| id.to_string(), |found| found.name.clone())
        };
        let project = |id: &u64| {
            self.projects.get(id).map_or_else(|| id.to_string(), |project| project.name.clone())
        };
        let workload = |id: &Uuid| {
            let found = self.workloads.get(id);
            found.map_or_else(
                || id.to_string(),
                |w| format!("{}/{}", project(&w.project_id), w.spec.name),
            )
        };
        let object = |kind: &'static str, id: &str| {
            self.objects.get(kind, id).map_or_else(|| id.to_owned(), |o| o.name.clone())
        };
        let (who, what, target) = match command {
            Command::CreateDepartment { by, spec } => (by, "department.create", spec.name.clone()),
            Command::UpdateDepartment { by, id, .. } => (by, "department.update", department(id)),
            Command::DeleteDepartment { by, id } => (by, "department.delete", department(id)),
            Command::CreateProject { by, spec } => (by, "project.create", spec.name.clone()),
            Command::UpdateProject { by, id, .. } => (by, "project.update", project(id)),
            Command::DeleteProject { by, id } => (by, "project.delete", project(id)),
            Command::Submit { project_id, spec } => {
                let target = format!("{}/{}", project(project_id), spec.name);
                (&spec.submitted_by, "workload.submit", target)
            }
            Command::Delete { by, id } => (by, "workload.delete", workload(id)),
            Command::Suspend { by, id } => (by, "workload.suspend", workload(id)),
            Command::Resume { by, id } => (by, "workload.resume", workload(id)),
            Command::StopEverything { by } => (by, "server.down", String::new()),
            Command::Record(record) => (&record.who, "record", record.target.clone()),
            Command::CreateObject { by, new } => {
                return (by.clone(), format!("{}.create", new.kind).into(), new.name.clone());
            }
            Command::UpdateObject { by, kind, id, .. } => {
                return (by.clone(), format!("{kind}.update").into(), object(kind, id));
            }
            Command::DeleteObject { by, kind, id } => {
                return (by.clone(), format!("{kind}.delete").into(), object(kind, id));
            }
        };
        (who.clone(), what.into(), target)
    }

    fn carry_out(&mut self, command: Command, engine: &dyn Engine) -> Result<Subject, Error> {
        let starts = matches!(command, Command::Submit { .. } | Command::Resume { .. });
        if self.halted && starts {
            return Err(Error::stopping());
        }
        match command {
            Command::CreateDepartment { by, spec } => self.create_department(by, spec),
            Command::UpdateDepartment { by, id, change } => self.update_department(by, id, change),
            Command::DeleteDepartment { by, id } => self.delete_department(&by, id),
            Command::CreateProject { by, spec } => self.create_project(by, spec),
            Command::UpdateProject { by, id, change } => self.update_project(by, id, change),
            Command::DeleteProject { by, id } => self.delete_project(&by, id),
            Command::Submit { project_id, spec } => self.submit(project_id, *spec, engine),
            Command::Delete { by, id } => self.delete(&by, id),
            Command::Suspend { by, id } => self.suspend(&by, id),
            Command::Resume { by, id } => self.resume(&by, id),
            Command::CreateObject { by, new } => self.create_object(by, new).map(Subject::Object),
            Command::UpdateObject { by, kind, id, edit } => {
                self.update_object(by, (kind, &id), &edit).map(Subject::Object)
            }
            Command::DeleteObject { by, kind, id } => {
                self.delete_object(&by, kind, &id).map(Subject::Object)
            }
            Command::Record(_) => Ok(Subject::Nothing),
            Command::StopEverything { .. } => {
                self.halt();
                Ok(Subject::Drain)
            }
        }
    }

    fn submit(
        &mut self,
        project_id: u64,
        spec: WorkloadSpec,
        engine: &dyn Engine,
    ) -> Result<Subject, Error> {
        let project =
            self.projects.get(&project_id).ok_or_else(|| Error::no_project(project_id))?;
        admission::workload(&spec, engine)?;
        admission::one_more_workload(self.workloads.len())?;
        let being_deleted =
            |id| self.workloads.get(&id).is_some_and(|w| w.desired == Desired::Delete);
        admission::name_is_free(&project.names, &spec.name, &project.name, being_deleted)?;
        let id = Uuid::now_v7();
        let pods = (0..spec.pod_count()).map(Pod::new).collect();
        let workload = Workload {
            id,
            seq: self.last_workload_seq + 1,
            project_id,
            spec: Arc::new(spec),
            created_at: self.now,
            model: None,
            phase: Phase::Pending,
            phase_since: self.now,
            desired: Desired::Run,
            restarts: 0,
            not_before: None,
            completed_at: None,
            waited_ms: 0,
            ran_ms: 0,
            pending: Vec::new(),
            last_eviction: None,
            over_quota: false,
            requested: units::Resources::ZERO,
            pods,
        };
        self.add(workload, false)?;
        self.last_workload_seq += 1;
        let workload = &self.workloads[&id];
        let message = format!("accepted from {}", workload.spec.submitted_by);
        self.outbox.changes.push(Change::Workload(Box::new(persist::workload_row(workload))));
        self.touch(id);
        self.say(id, News::new("Submitted", message));
        Ok(Subject::Workload(id))
    }

    fn known(&self, id: Uuid) -> Result<&Workload, Error> {
        self.workloads.get(&id).ok_or_else(|| Error::no_workload(id))
    }

    fn delete(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        if self.known(id)?.desired != Desired::Delete {
            self.set_desired(id, Desired::Delete);
            self.say(id, News::new("Deleting", format!("{by} asked for its deletion")));
            self.release_all(id);
            self.finish_deletion(id);
        }
        Ok(Subject::Workload(id))
    }

    fn suspend(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        let workload = self.known(id)?;
        refuse_ended(workload, "suspended")?;
        if workload.desired == Desired::Run {
            self.set_desired(id, Desired::Suspend);
            self.say(id, News::new("Suspended", format!("{by} asked to suspend it")));
            self.release_all(id);
        }
        Ok(Subject::Workload(id))
    }

    fn resume(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        let workload = self.known(id)?;
        refuse_ended(workload, "resumed")?;
        if workload.desired == Desired::Suspend {
            if let Some(workload) = self.workloads.get_mut(&id) {
                // Whoever resumes has looked at it: it starts without a penalty.
                workload.restarts = 0;
                workload.not_before = None;
            }
            self.set_desired(id, Desired::Run);
            self.say(id, News::new("Resumed", format!("{by} asked to resume it")));
        }
        Ok(Subject::Workload(id))
    }

    pub(crate) fn set_desired(&mut self, id: Uuid, desired: Desired) {
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.desired = desired;
            if let Some(model) = workload.model {
                let not_before = workload.not_before.unwrap_or(Instant(0));
                self.cluster.set_not_before(model, not_before);
            }
        }
        self.update_wants(id);
        self.touch(id);
    }
}

fn refuse_ended(workload: &Workload, what: &str) -> Result<(), Error> {
    let name = &workload.spec.name;
    if workload.completed_at.is_some() {
        return Err(Error::conflict(format!(
            "workload `{name}` has ended and cannot be {what}; delete it and submit it again"
        )));
    }
    if workload.desired == Desired::Delete {
        let text = format!("workload `{name}` is being deleted and cannot be {what}");
        return Err(Error::conflict(text));
    }
    Ok(())
}
