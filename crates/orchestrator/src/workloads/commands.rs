//! Commands for workloads, except for updates: submit, suspend, resume and delete.

use std::sync::Arc;

use command::{Subject, Wanted, WorkloadUse, admission};
use records::Desired;
use spec::{UserLimit, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::Error;
use crate::emit::EventBuilder;
use crate::org::Project;
use crate::state::State;
use crate::workloads::Workload;
use view::EvictionView;
use view::codes::{IDLE_LIMIT, TIME_LIMIT};

impl State {
    /// The specification that a submission would get, with the placement defaults of its project;
    /// `is_archived`: an archived workload has its name.
    pub fn settled(
        &self,
        project_id: u64,
        wanted: Wanted,
        is_archived: bool,
    ) -> Result<WorkloadSpec, Error> {
        let (project, is_strict) = (self.org.project(project_id)?, wanted.strict);
        let spec = self.check(project, wanted)?;
        if is_archived {
            return Err(admission::name_is_taken(&spec.name, &project.unit.name));
        }
        let being_deleted =
            |id| self.workloads.get(&id).is_some_and(|w| w.desired == Desired::Delete);
        if let Some(names) = self.workloads.names_in(project_id) {
            admission::name_is_free(names, &spec.name, &project.unit.name, being_deleted)?;
        }
        self.ports_are_free(project_id, &spec)?;
        // It is archived some time.
        let pods = spec.pod_count().into();
        let more = WorkloadUse { workloads: 1, pods, archived: 1, ..WorkloadUse::default() };
        let who = (project_id, spec.submitted_by.as_str());
        self.workloads.used().check(&self.settings.user_limits, who, more)?;
        match is_strict.then(|| self.never_fits(project, &spec)).flatten() {
            Some(why) => Err(Error::conflict(format!(
                "`{}` is refused because it could not start now, even if all nodes were free: {why}; ask for \
                 less, add a node, or leave out --strict",
                spec.name
            ))),
            None => Ok(spec),
        }
    }

    /// Reason why too few pods of it would fit if everything were free.
    fn never_fits(&self, project: &Project, spec: &WorkloadSpec) -> Option<String> {
        let spec = Arc::new(spec.clone());
        let alike = Workload::new(Uuid::nil(), 0, project.unit.id, spec, self.now);
        let reason = sched::never_fits(&self.cluster, &self.in_model(&alike, project.queue))?;
        Some(format!("{reason} ({})", reason.code().code))
    }

    /// Checks a specification; returns it with the placement defaults of its project.
    pub(crate) fn check(&self, project: &Project, wanted: Wanted) -> Result<WorkloadSpec, Error> {
        let Wanted { mut spec, runs, strict: _ } = wanted;
        spec::check_workload(&spec)?;
        self.settings.user_limits.check(UserLimit::EnvironmentBytes, spec.environment_bytes())?;
        self.settings.user_limits.check(UserLimit::LabelsBytes, spec.labels_bytes())?;
        let bytes = spec.json_bytes();
        let more = WorkloadUse { bytes, archived_bytes: bytes, ..WorkloadUse::default() };
        let who = (project.unit.id, spec.submitted_by.as_str());
        self.workloads.used().check(&self.settings.user_limits, who, more)?;
        runs?;
        self.secrets_exist(project.unit.id, &spec)?;
        self.settle_places(project, &mut spec)?;
        let lineage = self.cluster.lineage(project.queue);
        let asked = lineage.map(|queue| self.cluster.queues()[queue].wanted);
        admission::countable(asked.fold(Resources::ZERO, Resources::max))?;
        Ok(spec)
    }

    pub(crate) fn submit(&mut self, project_id: u64, wanted: Wanted) -> Result<Subject, Error> {
        let spec = self.settled(project_id, wanted, false)?;
        self.note_volumes(project_id, &spec)?;
        let why = self.never_fits(self.org.project(project_id)?, &spec);
        let message = format!("accepted from {}", spec.submitted_by);
        let pods = if spec.has_revisions() { 0 } else { spec.pod_count() };
        let workload = self.new_workload(project_id, spec, pods);
        let (id, spec) = (workload.id, workload.spec.clone());
        self.take_in(workload)?;
        self.emit(id, EventBuilder::new("Submitted", message));
        self.outbox.tally().submitted.push(spec.kind);
        if let Some(serving) = &spec.serving {
            self.begin_revision(id, (*spec).clone(), serving.begin_with(0))?;
        }
        let warning = why.map(|why| {
            format!(
                "it could not start now, even if all nodes were free: {why}; it waits until it can"
            )
        });
        Ok(Subject::Submitted(id, warning))
    }

    /// Checks that the credentials and the config maps of a workload exist. They are not deleted
    /// from now on.
    fn secrets_exist(&self, project_id: u64, spec: &WorkloadSpec) -> Result<(), Error> {
        match spec.secrets().find(|secret| self.documents.keeper(project_id, secret).is_none()) {
            Some(secret) => Err(Error::NotFound {
                what: if secret.config_map().is_some() { "config map" } else { "credential" },
                name: secret.named.clone(),
                hint: "it was deleted".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// A workload that users know: revisions are left out.
    pub(crate) fn known(&self, id: Uuid) -> Result<&Workload, Error> {
        let found = self.workloads.get(&id).filter(|w| w.spec.revision.is_none());
        let found = found.ok_or_else(|| Error::no_workload(id))?;
        self.is_own(found)?;
        Ok(found)
    }

    pub(crate) fn delete(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        if self.known(id)?.desired != Desired::Delete {
            self.set_desired(id, Desired::Delete);
            self.emit(id, EventBuilder::new("Deleting", format!("{by} asked for its deletion")));
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

    pub(crate) fn suspend(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        let workload = self.known(id)?;
        refuse_ended(workload, "suspended")?;
        if workload.spec.has_revisions() {
            return Err(Error::conflict(format!(
                "inference `{0}` cannot be suspended; `runai inference update {0} -p {1} \
                 --min-replicas 0` leaves it without replicas while no request comes",
                workload.spec.name,
                self.org.project_name(workload.project_id)
            )));
        }
        if workload.desired == Desired::Run {
            self.forget_limit(id);
            self.set_desired(id, Desired::Suspend);
            self.emit(id, EventBuilder::new("Suspended", format!("{by} asked to suspend it")));
            self.release_all(id);
        }
        Ok(Subject::Workload(id))
    }

    pub(crate) fn resume(&mut self, by: &str, id: Uuid) -> Result<Subject, Error> {
        let workload = self.known(id)?;
        refuse_ended(workload, "resumed")?;
        if workload.desired == Desired::Suspend {
            if let Some(workload) = self.workloads.get_mut(&id) {
                // A user resumed it: it starts without a delay.
                workload.restarts = 0;
                workload.not_before = None;
            }
            self.forget_limit(id);
            self.set_desired(id, Desired::Run);
            self.emit(id, EventBuilder::new("Resumed", format!("{by} asked to resume it")));
            self.explain_orphans();
        }
        Ok(Subject::Workload(id))
    }

    /// Removes the record of a stop by a time limit, which holds until the next command.
    fn forget_limit(&mut self, id: Uuid) {
        if let Some(workload) = self.workloads.get_mut(&id) {
            let by_limit =
                |why: &EvictionView| [TIME_LIMIT.code, IDLE_LIMIT.code].contains(&&*why.code);
            workload.last_eviction = workload.last_eviction.take().filter(|why| !by_limit(why));
        }
    }

    pub(crate) fn set_desired(&mut self, id: Uuid, desired: Desired) {
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.desired = desired;
            if let Some(model) = workload.model {
                let not_before = workload.not_before.unwrap_or(Instant(0));
                self.cluster.set_not_before(model, not_before);
                self.decisions.take_back(id);
            }
        }
        self.update_members(id);
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
