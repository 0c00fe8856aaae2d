//! Execution of commands on the state. Owns: each command, checked completely before it changes
//! anything, so that a refused one leaves no trace but its audit row.

use std::borrow::Cow;

use command::{Command, Readiness, Record, Subject};
use records::{AuditDetail, AuditRow, Change};
use spec::{NodeSpec, RunKey, TOPOLOGY};
use uuid::Uuid;

use crate::Error;
use crate::state::State;

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
            self.outbox.write([Change::Audit(row)]);
            return Ok(Subject::Nothing);
        }
        // Commands of the server itself are published as events.
        let Some((who, what, target)) = self.audited(&command) else {
            return self.carry_out(command);
        };
        let target_id = command.target_id();
        let outcome = self.carry_out(command);
        if outcome == Ok(Subject::Outdated) {
            return outcome;
        }
        // A new object has an id only now.
        let target_id = target_id.or_else(|| outcome.as_ref().ok()?.id());
        let detail = AuditDetail { target_id: target_id.unwrap_or_default(), ..detail };
        let result = outcome.as_ref().err().map_or("ok".to_owned(), ToString::to_string);
        let row = AuditRow { at: self.now, who, what: what.into_owned(), target, result, detail };
        self.outbox.write([Change::Audit(row)]);
        outcome
    }

    fn audited(&self, command: &Command) -> Option<(String, Cow<'static, str>, String)> {
        let department = |id: &u64| {
            let found = self.org.department(*id);
            found.map_or_else(|_| id.to_string(), |found| found.unit.name.clone())
        };
        let project = |id: &u64| {
            self.org.project(*id).map_or_else(|_| id.to_string(), |found| found.unit.name.clone())
        };
        let workload = |id: &Uuid| {
            let Some(found) = self.workloads.get(id) else { return id.to_string() };
            format!("{}/{}", project(&found.project_id), found.spec.name)
        };
        let pool =
            |id: &str| self.pools.get(id).map_or_else(|_| id.to_owned(), |p| p.name().to_owned());
        let object = |kind: &'static str, id: &str| {
            self.documents.get(kind, id).map_or_else(|| id.to_owned(), |o| o.name.clone())
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
            | Command::NoteReady { .. }
            | Command::NoteCheckpoint { .. }
            | Command::NoteHang { .. }
            | Command::NoteParting { .. } => return None,
            Command::CreatePool { by, spec } => (by, "node-pool.create", spec.name.clone()),
            Command::UpdatePool { by, id, .. } => (by, "node-pool.update", pool(id)),
            Command::DeletePool { by, id } => (by, "node-pool.delete", pool(id)),
            Command::ChangeNode { by, node, change } => (by, change.verb(), node.clone()),
            Command::AddNode { by, spec, more } => (by, "node.add", names(spec, more)),
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
            Command::AddNode { by, spec, more } => {
                self.add_simulated_nodes(&by, std::iter::once(spec).chain(more).collect())
            }
            Command::RemoveNode { by, node } => self.remove_simulated_node(by, &node),
            Command::FailGpu { by, node, gpu } => self.fail_gpu(by, &node, gpu),
            Command::HealGpu { by, node, gpu } => self.heal_gpu(&by, &node, gpu),
            Command::CreateObject { by, new } if new.kind == TOPOLOGY => {
                self.create_topology(by, new)
            }
            Command::DeleteObject { by, kind: TOPOLOGY, id } => self.delete_topology(&by, &id),
            Command::CreateObject { by, new } => self.create_object(by, new).map(Subject::Object),
            Command::UpdateObject { by, kind, id, edited } => {
                let before = self.documents.known(kind, &id)?;
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
            Command::NoteCheckpoint { id, ago_ms } => Ok(self.note_checkpoint_ago(id, ago_ms)),
            Command::NoteHang { id, workers, idle_ms } => Ok(self.note_hang(id, workers, idle_ms)),
            Command::NoteParting { id, pods, leaves, for_ms } => {
                Ok(self.note_parting(id, &pods, &leaves, for_ms))
            }
            Command::Record(_) => Ok(Subject::Nothing),
            Command::StopEverything { .. } => {
                self.halt();
                Ok(Subject::Drain)
            }
        }
    }
}

/// The names of added nodes, separated by commas.
fn names(first: &NodeSpec, more: &[NodeSpec]) -> String {
    let names = std::iter::once(first).chain(more).map(|node| &*node.name);
    names.collect::<Vec<_>>().join(",")
}
