//! What people ask for, done to the state. Owns: each command, checked whole before it changes
//! anything, so that a refused one leaves no trace but its audit row.

use std::borrow::Cow;

use records::{AuditDetail, AuditRow, Change, Desired};
use spec::{RunKey, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::command::Readiness;
use crate::command::{Command, Record, Subject, Wanted};
use crate::reasons::{IDLE_LIMIT, TIME_LIMIT};
use crate::state::{News, Project, State, Workload};
use crate::topologies::TOPOLOGY;
use crate::view::ReasonView;
use crate::{Error, admission};

impl State {
    /// Carries out a command and writes it to the audit log.
    pub(crate) fn command(
        &mut self,
        command: Command,
        origin: &AuditDetail,
    ) -> Result<Subject, Error> {
        let detail = origin.clone();
        if let Command::Record(Record { who, what, target, result }) = command {
            let row = AuditRow { at: self.now, who, what, target, result, detail };
            self.outbox.changes.push(Change::Audit(row));
            return Ok(Subject::Nothing);
        }
        // What the server asks of itself is told as events.
        let Some((who, what, target)) = self.audited(&command) else {
            return self.carry_out(command);
        };
        let target_id = command.target_id();
        let outcome = self.carry_out(command);
        if outcome == Ok(Subject::Outdated) {
            return outcome;
        }
        // What is new has an id only now.
        let target_id = target_id.or_else(|| outcome.as_ref().ok()?.id());
        let detail = AuditDetail { target_id: target_id.unwrap_or_default(), ..detail };
        let result = outcome.as_ref().err().map_or("ok".to_owned(), ToString::to_string);
        let row = AuditRow { at: self.now, who, what: what.into_owned(), target, result, detail };
        self.outbox.changes.push(Change::Audit(row));
        outcome
    }

    fn audited(&self, command: &Command) -> Option<(String, Cow<'static, str>, String)> {
        let department = |id: &u64| {
            self.departments.get(id).map_or_else(|| id.to_string(), |found| found.unit.name.clone())
        };
        let project = |id: &u64| {
            self.projects
                .get(id)
                .map_or_else(|| id.to_string(), |project| project.unit.name.clone())
        };
        let workload = |id: &Uuid| {
            let found = self.workloads.get(id);
            found.map_or_else(
                || id.to_string(),
                |w| format!("{}/{}", project(&w.project_id), w.spec.name),
            )
        };
        let pool = |id: &str| self.pool(id).map_or_else(|_| id.to_owned(), |p| p.name().to_owned());
        let object = |kind: &'static str, id: &str| {
            self.objects.get(kind, id).map_or_else(|| id.to_owned(), |o| o.name.clone())
        };
        let (who, what, target) = match command {
            Command::CreateDepartment { by, spec } => {
                (by, "department.create", spec.name.clone().unwrap_or_default())
            }
            Command::UpdateDepartment { by, id, .. } => (by, "department.update", department(id)),
            Command::DeleteDepartment { by, id } => (by, "department.delete", department(id)),
            Command::CreateProject { by, spec, .. } => {
                (by, "project.create", spec.name.clone().unwrap_or_default())
            }
            Command::UpdateProject { by, id, .. } => (by, "project.update", project(id)),
            Command::DeleteProject { by, id } => (by, "project.delete", project(id)),
            Command::Submit { project_id, wanted } => {
                let spec = &wanted.spec;
                let target = format!("{}/{}", project(project_id), spec.name);
                (&spec.submitted_by, "workload.submit", target)
            }
            Command::Delete { by, id } => (by, "workload.delete", workload(id)),
            Command::Suspend { by, id } => (by, "workload.suspend", workload(id)),
            Command::Resume { by, id } => (by, "workload.resume", workload(id)),
            Command::UpdateInference { by, id, .. } | Command::UpdateWorkload { by, id, .. } => {
                (by, "workload.update", workload(id))
            }
            Command::Scale { .. }
            | Command::Retire { .. }
            | Command::GiveUp { .. }
            | Command::NoteReady { .. } => {
                return None;
            }
            Command::CreatePool { by, spec } => (by, "node-pool.create", spec.name.clone()),
            Command::UpdatePool { by, id, .. } => (by, "node-pool.update", pool(id)),
            Command::DeletePool { by, id } => (by, "node-pool.delete", pool(id)),
            Command::ChangeNode { by, node, change } => (by, change.verb(), node.clone()),
            Command::AddNode { by, spec } => (by, "node.add", spec.name.clone()),
            Command::RemoveNode { by, node } => (by, "node.remove", node.clone()),
            Command::FailGpu { by, node, gpu } => (by, "gpu.fail", format!("{node}/{gpu}")),
            Command::HealGpu { by, node, gpu } => (by, "gpu.heal", format!("{node}/{gpu}")),
            Command::StopEverything { by } => (by, "server.down", String::new()),
            Command::Record(record) => (&record.who, "record", record.target.clone()),
            Command::CreateObject { by, new } => {
                return Some((by.clone(), format!("{}.create", new.kind).into(), new.name.clone()));
            }
            Command::UpdateObject { by, kind, id, .. } => {
                return Some((by.clone(), format!("{kind}.update").into(), object(kind, id)));
            }
            Command::DeleteObject { by, kind, id } => {
                return Some((by.clone(), format!("{kind}.delete").into(), object(kind, id)));
            }
        };
        Some((who.clone(), what.into(), target))
    }

    fn carry_out(&mut self, command: Command) -> Result<Subject, Error> {
        use Command::{Resume, Submit, UpdateInference};
        let starts = matches!(command, Submit { .. } | Resume { .. } | UpdateInference { .. });
        if self.halted && starts {
            return Err(Error::stopping());
        }
        match command {
            Command::CreateDepartment { by, spec } => self.create_department(by, spec),
            Command::UpdateDepartment { by, id, change } => self.update_department(by, id, change),
            Command::DeleteDepartment { by, id } => self.delete_department(&by, id),
            Command::CreateProject { by, department_id, spec } => {
                self.create_project(by, department_id, spec)
            }
            Command::UpdateProject { by, id, change } => self.update_project(by, id, change),
            Command::DeleteProject { by, id } => self.delete_project(&by, id),
            Command::Submit { project_id, wanted } => self.submit(project_id, *wanted),
            Command::Delete { by, id } => self.delete(&by, id),
            Command::Suspend { by, id } => self.suspend(&by, id),
            Command::Resume { by, id } => self.resume(&by, id),
            Command::CreatePool { by, spec } => self.create_pool(by, spec),
            Command::UpdatePool { by, id, change } => self.update_pool(by, &id, change),
            Command::DeletePool { by, id } => self.delete_pool(&by, &id),
            Command::ChangeNode { by, node, change } => self.change_node(by, &node, change),
            Command::AddNode { by, spec } => self.add_simulated_node(by, spec),
            Command::RemoveNode { by, node } => self.remove_simulated_node(by, &node),
            Command::FailGpu { by, node, gpu } => self.fail_gpu(by, &node, gpu),
            Command::HealGpu { by, node, gpu } => self.heal_gpu(&by, &node, gpu),
            Command::CreateObject { by, new } if new.kind == TOPOLOGY => {
                self.create_topology(by, new)
            }
            Command::DeleteObject { by, kind: TOPOLOGY, id } => self.delete_topology(&by, &id),
            Command::CreateObject { by, new } => self.create_object(by, new).map(Subject::Object),
            Command::UpdateObject { by, kind, id, edited } => {
                let before = self.object(kind, &id)?;
                if before.updated_at != edited.updated_at {
                    return Ok(Subject::Outdated);
                }
                self.update_object(by, &before, edited.to?).map(Subject::Object)
            }
            Command::DeleteObject { by, kind, id } => {
                self.delete_object(&by, kind, &id).map(Subject::Object)
            }
            Command::UpdateWorkload { by, id, change } => self.update_workload(&by, id, *change),
            Command::UpdateInference { by, id, from, wanted } => {
                self.update_inference(&by, id, from, *wanted)
            }
            Command::Scale { revision, wanted, why } => self.scale(revision, &wanted, &why),
            Command::Retire { revision } => self.retire(revision),
            Command::GiveUp { revision, why } => self.give_up(revision, &why),
            Command::NoteReady(seen) => {
                for Readiness { pod, generation, fault } in seen {
                    self.note_ready(RunKey { pod, generation }, fault);
                }
                Ok(Subject::Nothing)
            }
            Command::Record(_) => Ok(Subject::Nothing),
            Command::StopEverything { .. } => {
                self.halt();
                Ok(Subject::Drain)
            }
        }
    }

    /// A submission as it would be taken in, with the places that its project has for it.
    pub fn settled(&self, project_id: u64, wanted: Wanted) -> Result<WorkloadSpec, Error> {
        let project =
            self.projects.get(&project_id).ok_or_else(|| Error::no_project(project_id))?;
        let spec = self.check(project, wanted)?;
        let being_deleted =
            |id| self.workloads.get(&id).is_some_and(|w| w.desired == Desired::Delete);
        admission::name_is_free(&project.names, &spec.name, &project.unit.name, being_deleted)?;
        self.ports_are_free(project_id, &spec)?;
        Ok(spec)
    }

    /// Whether the pods of a specification can be run here; it gets the places of its project.
    pub(crate) fn check(&self, project: &Project, wanted: Wanted) -> Result<WorkloadSpec, Error> {
        let Wanted { mut spec, runs } = wanted;
        spec::check_workload(&spec)?;
        runs?;
        self.secrets_exist(project.unit.id, &spec)?;
        self.settle_places(project, &mut spec)?;
        let lineage = self.cluster.lineage(project.queue);
        let asked = lineage.map(|queue| self.cluster.queues()[queue].wanted);
        admission::countable(asked.fold(Resources::ZERO, Resources::max))?;
        Ok(spec)
    }

    fn submit(&mut self, project_id: u64, wanted: Wanted) -> Result<Subject, Error> {
        let spec = self.settled(project_id, wanted)?;
        self.note_volumes(project_id, &spec)?;
        let message = format!("accepted from {}", spec.submitted_by);
        let workload = self.new_workload(project_id, spec);
        let (id, spec) = (workload.id, workload.spec.clone());
        self.take_in(workload)?;
        self.say(id, News::new("Submitted", message));
        self.outbox.tally.submitted.push(spec.kind);
        if let Some(serving) = &spec.serving {
            self.begin_revision(id, (*spec).clone(), serving.begin_with(0))?;
        }
        Ok(Subject::Workload(id))
    }

    /// The credentials of a workload are still there; nobody deletes them from now on. So are its config
    /// maps.
    fn secrets_exist(&self, project_id: u64, spec: &WorkloadSpec) -> Result<(), Error> {
        match spec.secrets().find(|secret| self.keeper(project_id, secret).is_none()) {
            Some(secret) => Err(Error::NotFound {
                what: if secret.config_map().is_some() { "config map" } else { "credential" },
                name: secret.named.clone(),
                hint: "it was deleted".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// A workload that people know; its revisions are not theirs to stop.
    pub(crate) fn known(&self, id: Uuid) -> Result<&Workload, Error> {
        let found = self.workloads.get(&id).filter(|w| w.spec.revision.is_none());
        found.ok_or_else(|| Error::no_workload(id))
    }

    fn delete(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        if self.known(id)?.desired != Desired::Delete {
            self.set_desired(id, Desired::Delete);
            self.say(id, News::new("Deleting", format!("{by} asked for its deletion")));
            let mut all = self.workloads.get(&id).map(|w| w.revisions.clone()).unwrap_or_default();
            all.push(id);
            for id in all {
                self.set_desired(id, Desired::Delete);
                self.release_all(id);
                self.finish_deletion(id);
            }
        }
        Ok(Subject::Workload(id))
    }

    fn suspend(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        let workload = self.known(id)?;
        refuse_ended(workload, "suspended")?;
        if workload.spec.has_revisions() {
            return Err(Error::conflict(format!(
                "inference `{}` cannot be suspended; with minReplicas 0 it has no replicas while no \
                 request comes, or delete it",
                workload.spec.name
            )));
        }
        if workload.desired == Desired::Run {
            self.forget_limit(id);
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
            self.forget_limit(id);
            self.set_desired(id, Desired::Run);
            self.say(id, News::new("Resumed", format!("{by} asked to resume it")));
        }
        Ok(Subject::Workload(id))
    }

    /// That a limit stopped it is true until somebody says what else it is to do.
    fn forget_limit(&mut self, id: Uuid) {
        if let Some(workload) = self.workloads.get_mut(&id) {
            let by_limit =
                |why: &ReasonView| [TIME_LIMIT.code, IDLE_LIMIT.code].contains(&&*why.code);
            workload.last_eviction = workload.last_eviction.take().filter(|why| !by_limit(why));
        }
    }

    pub(crate) fn set_desired(&mut self, id: Uuid, desired: Desired) {
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.desired = desired;
            if let Some(model) = workload.model {
                let not_before = workload.not_before.unwrap_or(Instant(0));
                self.cluster.set_not_before(model, not_before);
                // One that was set aside gets another look.
                self.aside.ids.remove(&id);
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
