//! Ends of runs and workloads: success, failure, retry, or permanent end. Owns: the restart policy,
//! back-off, and removing ended and deleted workloads.

use std::sync::Arc;

use pod_life::{Ended, Input};
use records::{Change, Desired};
use uuid::Uuid;

use crate::effect::{Action, Note};
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::kept::Pause;
use crate::workloads::lifecycle::RUNS_KEPT;
use crate::workloads::relaunch::{Next, WELL_MS, was_killed};
use crate::workloads::{Pod, Workload, record};
use spec::{CleanPods, Restart};

/// First delay after a failure, in milliseconds; doubled with each.
const BACK_OFF_MS_MIN: u64 = 1000;
/// Maximum delay after a failure, in milliseconds.
pub(crate) const BACK_OFF_MS_MAX: u64 = 300_000;

/// Delay after a failure that follows `failures` others, in milliseconds.
fn back_off_ms(failures: u32) -> u64 {
    (BACK_OFF_MS_MIN << failures.min(20)).min(BACK_OFF_MS_MAX)
}

impl State {
    /// Applies the restart policy to a run that ended by itself, with success or failure.
    pub(crate) fn ended_by_itself(
        &mut self,
        id: Uuid,
        number: usize,
        exit: &spec::Exit,
        ran_ms: u64,
    ) {
        use spec::Exit;
        let Some(workload) = self.workloads.get(&id) else { return };
        let spec = workload.spec.clone();
        let restarts = workload.restarts;
        match workload.after_failure(number, exit, ran_ms) {
            None => {}
            Some(Next::Fails) => return self.end(id, number, Ended::Failed),
            Some(Next::InPlace) => {
                let delay_ms = self.note_failure(id, number, ran_ms);
                let pause = Pause { delay_ms, restarts: restarts + 1, retry: None };
                return self.pause(id, number, pause);
            }
            Some(Next::AsAnother) => {
                // A kill does not count as a failure.
                let has_failed = !was_killed(exit);
                self.relaunch(id, number, has_failed);
                let pod = self.workloads.get(&id).and_then(|workload| workload.pods.get(number));
                let count = pod.and_then(|pod| pod.relaunch).map(|now| now.failures);
                let count = count.filter(|_| has_failed);
                let (delay_ms, restarts) = (BACK_OFF_MS_MIN, restarts + 1);
                return self.pause(id, number, Pause { delay_ms, restarts, retry: count });
            }
        }
        match (spec.set_of(number).0.pod.restart, exit) {
            (_, Exit::CannotRun(_) | Exit::NotKept(_)) => self.end(id, number, Ended::Failed),
            // Not caused by the workload: a reboot, a killed supervisor, a machine that cannot
            // start processes at the moment. It uses up no retry.
            (_, Exit::Lost | Exit::NotStarted(_)) => {
                let Some(pod) = self.workloads.pod_mut(id, number) else { return };
                // A start alone is not enough: it may be lost after each.
                if ran_ms >= WELL_MS {
                    pod.setbacks = 0;
                }
                let delay_ms = back_off_ms(pod.setbacks);
                pod.setbacks += 1;
                self.pause(id, number, Pause { delay_ms, restarts, retry: None });
            }
            (Restart::Never | Restart::OnFailure, Exit::Code(0)) => {
                self.end(id, number, Ended::Succeeded);
            }
            (restart, _) if spec.gives_up(restart) && restarts >= spec.backoff_limit => {
                self.end(id, number, Ended::Failed);
            }
            (Restart::Never, _) => {
                let (delay_ms, restarts) = (back_off_ms(restarts), restarts + 1);
                self.pause(id, number, Pause { delay_ms, restarts, retry: Some(restarts) });
            }
            (Restart::OnFailure | Restart::Always, _) => {
                let delay_ms = self.note_failure(id, number, ran_ms);
                let pause = Pause { delay_ms, restarts: restarts + 1, retry: None };
                self.pause(id, number, pause);
            }
        }
    }

    /// Counts a failure of a pod. Returns the delay after it, in milliseconds.
    fn note_failure(&mut self, id: Uuid, number: usize, ran_ms: u64) -> u64 {
        let Some(pod) = self.workloads.pod_mut(id, number) else { return BACK_OFF_MS_MIN };
        if ran_ms >= WELL_MS {
            pod.failures = 0;
        }
        let delay_ms = back_off_ms(pod.failures);
        pod.failures += 1;
        delay_ms
    }

    /// Restarts pods whose back-off in their place is over.
    pub(crate) fn restart_due(&mut self) {
        if self.halted {
            return;
        }
        for (id, number) in self.workloads.restarts_due(self.now) {
            if self.is_at_held_gpu(id, number) {
                self.leave_held_gpu(id, number);
            } else {
                self.again_in_place(id, number);
            }
        }
    }

    /// Ends a pod; when all have ended, so has the workload.
    pub(crate) fn end(&mut self, id: Uuid, number: usize, ended: Ended) {
        let now = self.now;
        let Some(pod) = self.workloads.pod(id, number) else { return };
        if let Some(model) = pod.model {
            self.cluster.set_wants(model, false);
            self.cluster.set_succeeded(model, ended == Ended::Succeeded);
        }
        self.happens((id, number), &Input::Ends(ended));
        self.touch(id);
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let goes_on = match ended {
            Ended::Succeeded => !workload.is_complete_with(number),
            Ended::Failed => workload.goes_on_without(number),
        };
        if goes_on || workload.completed_at.is_some() {
            // Others may have waited for its start, and it was never seen to run.
            self.runs.assembling.insert(id);
            self.update_members(id);
            // It may be the last pod of a workload that has failed.
            self.leave_if_over(id);
            return;
        }
        workload.completed_at = Some(now);
        workload.not_before = None;
        if ended == Ended::Succeeded {
            self.emit(id, EventBuilder::new("Completed", "ended well"));
        } else {
            let last = workload.pods[number].last_exit.clone().unwrap_or_default();
            self.emit(
                id,
                EventBuilder::new("Failed", format!("failed for good: {last}")).warning(),
            );
        }
        match self.workloads[&id].clean() {
            CleanPods::None => self.release_those(id, Pod::is_idle),
            CleanPods::Running | CleanPods::All => self.release_all(id),
        }
        self.update_members(id);
        self.leave_if_over(id);
        self.limits.note_expiry(&self.workloads[&id]);
    }

    /// Removes a workload that is over from the model, once none of its pods has a place.
    pub(crate) fn leave_if_over(&mut self, id: Uuid) {
        let over = |w: &Workload| w.is_over() && !self.holds_any(w);
        if self.workloads.get(&id).is_some_and(over) {
            self.leave_model(id);
            if self.workloads[&id].clean() == CleanPods::All {
                let pods = self.workloads[&id].pods.clone();
                self.remove_runs(pods.iter());
            }
        }
    }

    /// Deletes the leftovers of the runs of some pods.
    fn remove_runs<'a>(&mut self, pods: impl IntoIterator<Item = &'a Pod>) {
        for pod in pods {
            let oldest = pod.generation.saturating_sub(RUNS_KEPT - 1).max(1);
            let runs = (oldest..=pod.generation)
                .map(|generation| spec::RunKey { pod: pod.id, generation });
            self.outbox.act(runs.map(Action::Remove));
        }
    }

    fn leave_model(&mut self, id: Uuid) {
        let Some((model, pods)) = self.workloads.leave_model(id) else { return };
        pods.into_iter().for_each(|pod| self.cluster.set_wants(pod, false));
        self.decisions.forget(id, self.now);
        self.explain_one(id, &[]);
        if let Err(error) = self.cluster.remove_workload(model) {
            // Only reached with a placed pod, which the callers have excluded.
            let note = format!("workload {id} ended and is still in the model: {error}");
            self.outbox.note(Note::Error(note));
        }
    }

    /// Completes the deletion of a workload once none of its pods has a place.
    pub(crate) fn finish_deletion(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let holds = |pod: &Pod| self.binding(pod).current.is_some() || self.runs.has_orphan(pod.id);
        let is_due = workload.desired == Desired::Delete && workload.revisions.is_empty();
        if !is_due || workload.pods.iter().any(holds) {
            return;
        }
        let is_known = workload.spec.revision.is_none();
        self.settle(id);
        if is_known {
            self.emit(id, EventBuilder::new("Deleted", "deleted"));
        }
        self.remove_workload(id);
    }

    /// Removes a workload none of whose pods has a place.
    pub(crate) fn remove_workload(&mut self, id: Uuid) {
        self.leave_model(id);
        let Some(mut workload) = self.workloads.remove(id) else { return };
        workload.pending = Arc::default();
        let state = record::workload_state(&workload, Some(self.now));
        self.outbox.write([Change::WorkloadState(id, state)]);
        let nowhere = model::PodBinding::default();
        let place = |place: &model::Placement| self.place_body(place);
        let pods = workload.pods.iter();
        let pods = pods.map(|pod| record::pod_row(&workload, pod, &nowhere, place));
        let pods: Vec<_> = pods.collect();
        self.outbox.write(pods.into_iter().map(Change::Pod));
        self.runs.ports.forget(id);
        for pod in workload.pods.iter() {
            self.remove_runs([pod]);
            self.outbox.act([Action::Forget(pod.id)]);
        }
        let revision = workload.spec.revision;
        self.outbox.delete(workload);
        if let Some(revision) = revision {
            self.disown(revision, id);
        }
    }
}
