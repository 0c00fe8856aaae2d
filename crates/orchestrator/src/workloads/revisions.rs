//! Inferences: a workload without pods of its own, and its revisions, which are workloads of their
//! own kind. Owns: creating, scaling, retiring and giving up a revision. Does not know about: the
//! time of these actions (`serving`).
//!
//! The pod specification of a revision never changes. Its replicas join and leave it. A retired
//! revision stays, stopped, until there are too many.

use std::collections::BTreeSet;
use std::sync::Arc;

use command::{Subject, Wanted};
use pod_life::{Input, Life};
use records::{Change, Desired};
use spec::{ExitKind, Revision, RunKey, RunSpec, WorkloadSpec};
use units::{Instant, Resources, counted};
use uuid::Uuid;

use crate::Error;
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::{Pod, Workload, Workloads, record};
use view::codes::{NOT_READY, UPDATE_FAILED};
use view::{Phase, ReasonView};

/// Maximum number of revisions of an inference that are kept; the oldest that are over are deleted
/// first.
const REVISIONS_KEPT: usize = 10;
/// Every revision has room for as many replicas as its inference may ever get.
const REPLICAS: u32 = spec::REPLICAS_MAX;

impl Workload {
    /// A new workload without pods.
    pub(crate) fn new(
        id: Uuid,
        seq: u64,
        project_id: u64,
        spec: Arc<WorkloadSpec>,
        now: Instant,
    ) -> Self {
        Self {
            id,
            seq,
            project_id,
            pods: Default::default(),
            spec,
            created_at: now,
            model: None,
            phase: Phase::Pending,
            phase_since: now,
            desired: Desired::Run,
            restarts: 0,
            not_before: None,
            completed_at: None,
            waited_ms: 0,
            ran_ms: 0,
            pending: Arc::default(),
            last_eviction: None,
            past: None,
            over_quota: false,
            requested: Resources::ZERO,
            is_adopted: false,
            revisions: Vec::new(),
        }
    }

    /// True if it serves, or may again: a revision that was not retired and has not failed.
    pub(crate) fn is_live_revision(&self) -> bool {
        self.spec.revision.is_some() && self.desired == Desired::Run && self.completed_at.is_none()
    }

    /// True if it has replicas that run, and none of them answers.
    fn is_silent(&self) -> bool {
        let mut run = self.pods.iter().filter(|p| !p.left && p.life().is_running()).peekable();
        let is_silent = |p: &Pod| matches!(p.life(), Life::Running { fault: Some(_), .. });
        run.peek().is_some() && run.all(is_silent)
    }

    /// True if none of its pods will ever start again. A retired revision stays retired.
    pub(crate) fn is_over(&self) -> bool {
        self.completed_at.is_some() || (self.spec.revision.is_some() && !self.is_live_revision())
    }

    pub(super) fn wanted(&self) -> u32 {
        u32::try_from(self.pods.iter().filter(|pod| !pod.left).count()).unwrap_or(u32::MAX)
    }
}

impl Workloads {
    /// The workload that users see: for a revision its inference, else itself.
    pub(crate) fn head_of(&self, id: Uuid) -> Uuid {
        let found = self.get(&id).and_then(|workload| workload.spec.revision);
        found.map_or(id, |revision| revision.of)
    }

    /// The name that users see: for a revision that of its inference.
    pub(crate) fn known_name<'a>(&'a self, workload: &'a Workload) -> &'a str {
        let head = workload.spec.revision.and_then(|revision| self.get(&revision.of));
        &head.unwrap_or(workload).spec.name
    }

    /// The revisions of an inference, the oldest first.
    pub(crate) fn revisions_of<'a>(
        &'a self,
        head: &'a Workload,
    ) -> impl DoubleEndedIterator<Item = &'a Workload> {
        head.revisions.iter().filter_map(|id| self.get(id))
    }
}

impl State {
    /// Adds a revision to its inference, whose specification becomes that of the newest.
    pub(crate) fn adopt(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(revision) = workload.spec.revision else { return };
        if let Some(head) = self.workloads.get_mut(&revision.of) {
            head.revisions.push(id);
        }
        self.follow_newest(revision.of);
    }

    /// Copies the specification of the newest revision to its inference.
    fn follow_newest(&mut self, head: Uuid) {
        let newest = self.workloads.get(&head).and_then(|head| head.revisions.last());
        let newest = newest.and_then(|id| self.workloads.get(id)).map(|newest| newest.spec.clone());
        if let (Some(spec), Some(name)) =
            (newest, self.workloads.get(&head).map(|w| w.spec.name.clone()))
        {
            let spec = WorkloadSpec { name, revision: None, ..(*spec).clone() };
            self.workloads.set_spec(head, Arc::new(spec));
        }
    }

    /// Updates the requests of the replicas of a revision that should run.
    fn count_requested(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let wanted = workload.pods.iter().filter(|pod| !pod.left);
        let demand = |pod: &Pod| {
            let model = pod.model?;
            self.cluster.pods().get(model)?;
            Some(self.cluster.set_of(model).demand)
        };
        let requested: Resources = wanted.filter_map(demand).sum();
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.requested = requested;
        }
    }

    /// Creates the next revision of an inference, with this number of replicas.
    pub(crate) fn begin_revision(
        &mut self,
        head: Uuid,
        spec: WorkloadSpec,
        replicas: u32,
    ) -> Result<(), Error> {
        let found = self.workloads.get(&head).ok_or_else(|| Error::no_workload(head))?;
        let last = self.workloads.revisions_of(found).filter_map(|w| w.spec.revision).next_back();
        let number = last.map_or(0, |revision| revision.number) + 1;
        let project_id = found.project_id;
        let mut spec = WorkloadSpec {
            // A name that no workload can have.
            name: format!("{}.{number}", found.spec.name),
            revision: Some(Revision { of: head, number }),
            ..spec
        };
        spec.pods.pods = REPLICAS;
        spec.pods.pods_min = 1;
        let workload = self.new_workload(project_id, spec, replicas.min(REPLICAS));
        let id = workload.id;
        self.take_in(workload)?;
        let message = format!("revision {number} begins with {}", counted(replicas, "replica"));
        self.emit(id, EventBuilder::new("RevisionCreated", message));
        self.forget_old_revisions(head);
        Ok(())
    }

    /// Updates an inference by a new revision.
    pub(crate) fn update_inference(
        &mut self,
        by: &str,
        id: Uuid,
        from: Uuid,
        mut wanted: Wanted,
    ) -> Result<Subject, Error> {
        let head = self.workloads.get(&id).ok_or_else(|| Error::no_workload(id))?;
        let name = head.spec.name.clone();
        if !head.spec.has_revisions() {
            return Err(Error::conflict(format!("workload `{name}` is not an inference")));
        }
        if head.desired != Desired::Run {
            return Err(Error::conflict(format!("inference `{name}` is being deleted")));
        }
        if head.revisions.last() != Some(&from) {
            return Err(Error::conflict(format!(
                "inference `{name}` was changed by another request meanwhile; look at it and try again"
            )));
        }
        let project = self.org.project(head.project_id)?;
        let project_id = head.project_id;
        // The submitter stays; the audit log has the author of the change.
        wanted.spec.submitted_by.clone_from(&head.spec.submitted_by);
        wanted.spec.submitter_id.clone_from(&head.spec.submitter_id);
        let spec = self.check(project, wanted)?;
        if spec == *head.spec {
            return Ok(Subject::Workload(id));
        }
        let serving = spec.serving.as_ref().ok_or_else(|| Error::Internal {
            message: "an inference without a serving port".to_owned(),
        })?;
        let newest = self.workloads.revisions_of(head).rev().find(|w| w.is_live_revision());
        let replicas = serving.begin_with(newest.map_or(0, Workload::wanted));
        let rescaled = newest.and_then(|_| head.spec.rescaled(&spec));
        if rescaled.as_ref() == Some(&*head.spec) {
            return Ok(Subject::Workload(id));
        }
        if rescaled.is_some_and(|rescaled| self.rescale(id, &rescaled)) {
            let (min, max) = (serving.scaling.replicas_min, serving.scaling.replicas_max);
            let message = format!("{by} changed its autoscaling; it has {min} to {max} replicas");
            self.emit(id, EventBuilder::new("Updated", message));
            return Ok(Subject::Workload(id));
        }
        self.note_volumes(project_id, &spec)?;
        let message = format!("{by} changed it");
        self.emit(id, EventBuilder::new("Updated", message));
        self.begin_revision(id, spec, replicas)?;
        Ok(Subject::Workload(id))
    }

    /// Changes the autoscaling of an inference in place: of its live revisions, and of the newest,
    /// whose values the next change starts from. `false` if a revision of an earlier version has no
    /// room for so many replicas.
    fn rescale(&mut self, head: Uuid, rescaled: &WorkloadSpec) -> bool {
        let Some(found) = self.workloads.get(&head) else { return false };
        let newest = found.revisions.last().copied();
        let live = self.workloads.revisions_of(found);
        let changed: Vec<_> = live
            .filter(|w| w.is_live_revision() || Some(w.id) == newest)
            .map(|w| (w.id, w.spec.with_scaling_of(rescaled)))
            .collect();
        let most = rescaled.serving.as_ref().map_or(0, |serving| serving.scaling.replicas_max);
        if changed.iter().any(|(_, spec)| spec.pods.pods < most) {
            return false;
        }
        for (id, spec) in changed {
            let spec = Arc::new(spec);
            self.workloads.set_spec(id, spec.clone());
            self.outbox.write([Change::WorkloadSpec(id, spec)]);
            self.touch(id);
        }
        self.follow_newest(head);
        self.touch(head);
        true
    }

    /// Sets the replicas of a revision that should run, by their numbers.
    pub(crate) fn scale(
        &mut self,
        id: Uuid,
        wanted: &BTreeSet<u32>,
        why: &str,
    ) -> Result<Subject, Error> {
        let workload = self.live_revision(id)?;
        let pods = workload.spec.pods.pods;
        if let Some(beyond) = wanted.iter().find(|&&number| number >= pods) {
            let text = format!("there is no replica {beyond}; there are {pods}, from 0");
            return Err(Error::invalid("replicas", text));
        }
        self.set_wanted(id, wanted, why);
        Ok(Subject::Nothing)
    }

    /// Makes exactly the replicas with these numbers run.
    pub(super) fn set_wanted(&mut self, id: Uuid, wanted: &BTreeSet<u32>, why: &str) {
        let before = self.workloads[&id].wanted();
        let after = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let known = &self.workloads[&id].pods;
        let new: Vec<u32> =
            wanted.iter().copied().filter(|&number| known.get(number as usize).is_none()).collect();
        for number in new {
            let pod = Pod::new(self.ids.next_id(), number);
            self.workloads.insert_pod(id, pod);
        }
        let pods = self.workloads.get_mut(&id).into_iter().flat_map(|w| w.pods.iter_mut());
        pods.for_each(|pod| pod.left = !wanted.contains(&pod.index));
        self.update_members(id);
        self.pass_on(id, self.newest_beside(id), |pod| pod.left);
        self.count_requested(id);
        self.touch(id);
        if before != after {
            let message = format!("from {before} to {}: {why}", counted(after, "replica"));
            self.emit(id, EventBuilder::new("Scaled", message));
        }
    }

    /// Stops a revision that another has replaced.
    pub(crate) fn retire(&mut self, id: Uuid) -> Result<Subject, Error> {
        let workload = self.live_revision(id)?;
        let number = workload.spec.revision.map_or(0, |revision| revision.number);
        self.set_desired(id, Desired::Suspend);
        self.release_all(id);
        self.leave_if_over(id);
        let message = format!("revision {number} has served; a newer one answers now");
        self.emit(id, EventBuilder::new("RevisionRetired", message));
        Ok(Subject::Nothing)
    }

    /// Ends a revision that never became ready.
    pub(crate) fn give_up(&mut self, id: Uuid, why: &str) -> Result<Subject, Error> {
        self.live_revision(id)?;
        let now = self.now;
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.completed_at = Some(now);
            workload.not_before = None;
            for pod in workload.pods.iter_mut().filter(|pod| !pod.left) {
                pod.last_exit = Some(why.to_owned());
                pod.last_exit_kind = Some(ExitKind::Ended);
            }
        }
        self.emit(id, EventBuilder::new("Failed", why).warning());
        self.update_members(id);
        self.give_back(id);
        self.release_all(id);
        let wanted = self.workloads[&id].pods.iter().filter(|pod| !pod.left).map(Pod::number);
        for number in wanted.collect::<Vec<_>>() {
            self.happens((id, number), &Input::GivenUp);
        }
        self.update_members(id);
        self.leave_if_over(id);
        self.touch(id);
        Ok(Subject::Nothing)
    }

    /// Publishes the readiness of a run of a replica. A run that is no longer the present one is
    /// ignored.
    pub(crate) fn note_ready(&mut self, run: RunKey, fault: Option<String>) {
        let Some((id, number)) = self.workloads.home(run.pod) else { return };
        let found = self.workloads.pod(id, number);
        let probed = Input::Probed(fault.clone(), self.now);
        if found.is_none_or(|pod| pod.run() != run) || self.happens((id, number), &probed).is_none()
        {
            return;
        }
        if let Some(fault) = &fault {
            let event = EventBuilder::new(NOT_READY.name, fault.clone()).code(NOT_READY.code);
            self.emit(id, event.warning().pod(number));
        }
        self.touch(id);
    }

    fn live_revision(&self, id: Uuid) -> Result<&Workload, Error> {
        let found = self.workloads.get(&id).ok_or_else(|| Error::no_workload(id))?;
        if found.is_live_revision() {
            return Ok(found);
        }
        let name = &found.spec.name;
        Err(Error::conflict(format!("`{name}` is not a revision that serves")))
    }

    /// Removes a deleted revision from its inference, whose deletion may wait for the last one.
    pub(crate) fn disown(&mut self, revision: Revision, id: Uuid) {
        if let Some(head) = self.workloads.get_mut(&revision.of) {
            head.revisions.retain(|&known| known != id);
        }
        self.follow_newest(revision.of);
        self.touch(revision.of);
        self.finish_deletion(revision.of);
    }

    /// The failure of the newest revision of an inference, and the number of the older one that
    /// serves on; `None` if there is no such failure, or no such revision.
    pub(crate) fn failed_update(&self, head: &Workload) -> Option<(ReasonView, u32)> {
        let mut revisions = self.workloads.revisions_of(head).rev();
        let newest = revisions.next()?;
        let (number, failure) = (newest.spec.revision?.number, newest.failure()?);
        let serves = revisions.find(|w| w.is_live_revision())?.spec.revision?.number;
        let message =
            format!("revision {number} failed: {failure}; revision {serves} serves").into();
        let at = newest.completed_at.unwrap_or(newest.phase_since);
        Some((ReasonView { code: UPDATE_FAILED.code.into(), message, at }, serves))
    }

    fn forget_old_revisions(&mut self, head: Uuid) {
        let Some(found) = self.workloads.get(&head) else { return };
        let too_many = found.revisions.len().saturating_sub(REVISIONS_KEPT);
        let over = self
            .workloads
            .revisions_of(found)
            .filter(|w| !w.is_live_revision() && !self.holds_any(w));
        let oldest: Vec<_> = over.take(too_many).map(|w| w.id).collect();
        for id in oldest {
            self.set_desired(id, Desired::Delete);
            self.finish_deletion(id);
        }
    }

    /// The phase of an inference: that of its newest live revision, and `Updating` while an older
    /// one serves beside it.
    pub(crate) fn phase_of_head(&self, head: &Workload) -> Phase {
        if head.desired == Desired::Delete {
            return Phase::Deleting;
        }
        let mut live = self.workloads.revisions_of(head).rev().filter(|w| w.is_live_revision());
        let Some(newest) = live.next() else {
            return self
                .workloads
                .revisions_of(head)
                .next_back()
                .map_or(Phase::Pending, |w| w.phase);
        };
        let older_serves =
            live.any(|w| w.wanted() > 0 && matches!(w.phase, Phase::Running | Phase::Degraded));
        match newest.phase {
            Phase::Pending | Phase::Initializing | Phase::Running | Phase::Degraded
                if older_serves =>
            {
                Phase::Updating
            }
            Phase::Running if newest.is_silent() => Phase::Degraded,
            phase => phase,
        }
    }

    /// A new workload with this number of pods.
    pub(crate) fn new_workload(
        &mut self,
        project_id: u64,
        spec: WorkloadSpec,
        pods: u32,
    ) -> Workload {
        let (id, seq) = (self.ids.next_id(), self.workloads.last_seq + 1);
        let pods = (0..pods).map(|index| Pod::new(self.ids.next_id(), index)).collect();
        Workload { pods, ..Workload::new(id, seq, project_id, Arc::new(spec), self.now) }
    }

    /// Adds and writes a new workload.
    pub(crate) fn take_in(&mut self, workload: Workload) -> Result<(), Error> {
        let id = workload.id;
        self.add(workload, false)?;
        self.workloads.last_seq += 1;
        let row = record::workload_row(&self.workloads[&id]);
        self.outbox.write([Change::Workload(Box::new(row))]);
        self.touch(id);
        Ok(())
    }
}

/// Passes its port to a replica: in `PORT`, and in place of `$(PORT)`.
pub(crate) fn tell_port(run: &mut RunSpec, port: u16) {
    let port = port.to_string();
    let words = run.command.iter_mut().flatten().chain(&mut run.args).chain(run.env.values_mut());
    for word in words {
        *word = word.replace("$(PORT)", &port);
    }
    run.env.insert("PORT".to_owned(), port);
}
