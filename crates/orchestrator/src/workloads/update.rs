//! Updates of a workload. Owns: the fields that can change, when, and the records of a change. The
//! specification of its pods never changes: an inference gets a new revision (`revisions`), and any
//! other workload is submitted again.

use std::sync::Arc;

use command::{Subject, WorkloadChange, WorkloadUse};
use records::{Change, Desired};
use uuid::Uuid;

use crate::effect::Action;
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::Workload;
use crate::{Error, pools};
use spec::{UserLimit, WorkloadSpec};

/// The specification after a change.
fn specification_after(change: WorkloadChange, spec: &WorkloadSpec) -> Result<WorkloadSpec, Error> {
    let mut spec = spec.clone();
    if let Some(limit) = change.gpu_limit {
        let gpu = spec.pods.pod.gpu.with_limit(limit).ok_or_else(|| {
            let name = &spec.name;
            Error::conflict(format!(
                "workload `{name}` does not ask for a part of a GPU of that kind, which could \
                 have a limit; submit it again with --gpu-memory-request and \
                 --gpu-memory-limit, or with --gpu-portion-request and --gpu-portion-limit"
            ))
        })?;
        spec::check_gpu(gpu)?;
        spec.pods.pod.gpu = gpu;
    }
    spec.priority = change.priority.unwrap_or(spec.priority);
    spec.preemptible = change.preemptible.unwrap_or(spec.preemptible);
    spec.backoff_limit = change.backoff_limit.unwrap_or(spec.backoff_limit);
    spec.delete_after_ms = change.delete_after_ms.or(spec.delete_after_ms);
    spec.delete_when_preempted = change.delete_when_preempted.unwrap_or(spec.delete_when_preempted);
    spec.gates = change.gates.unwrap_or(spec.gates);
    let changes_labels = !change.labels.is_empty();
    for (kept, given) in
        [(&mut spec.labels, change.labels), (&mut spec.annotations, change.annotations)]
    {
        for (name, value) in given {
            match value {
                Some(value) => kept.insert(name, value),
                None => kept.remove(&name),
            };
        }
    }
    // A label that an older version accepted must not prevent other changes.
    if changes_labels {
        spec::check_labels(&spec.labels)?;
    }
    Ok(spec)
}

impl State {
    /// Updates a workload. A change to the present values does nothing.
    pub(crate) fn update_workload(
        &mut self,
        by: &str,
        id: Uuid,
        change: WorkloadChange,
    ) -> Result<Subject, Error> {
        let workload = self.known(id)?;
        let name = &workload.spec.name;
        if workload.spec.has_revisions() {
            return Err(Error::conflict(format!(
                "inference `{name}` is changed by a new revision; use \
                 PATCH /api/v1/workloads/inferences/{id} or `runai inference update {name}`"
            )));
        }
        if workload.desired == Desired::Delete {
            return Err(Error::conflict(format!("workload `{name}` is being deleted")));
        }
        let spec = specification_after(change, &workload.spec)?;
        let changed = spec::differences(&workload.spec, &spec);
        if changed.is_empty() {
            return Ok(Subject::Workload(id));
        }
        self.may_change(workload, &spec, &changed)?;
        // A smaller specification is always allowed.
        let (was, bytes) = (workload.spec.json_bytes(), spec.json_bytes());
        if bytes > was {
            let limits = &self.settings.user_limits;
            limits.check(UserLimit::LabelsBytes, spec.labels_bytes())?;
            let more = bytes - was;
            let more = WorkloadUse { bytes: more, archived_bytes: more, ..WorkloadUse::default() };
            let who = (workload.project_id, spec.submitted_by.as_str());
            self.workloads.used().check(limits, who, more)?;
        }
        let limits_gpus = workload.spec.pods.pod.gpu != spec.pods.pod.gpu;
        self.limits.forget_expiry(&self.workloads[&id]);
        let spec = Arc::new(spec);
        self.workloads.set_spec(id, spec.clone());
        self.outbox.write([Change::WorkloadSpec(id, spec)]);
        self.rebind(id);
        if limits_gpus {
            let pods = 0..self.workloads[&id].pods.iter().count();
            pods.for_each(|number| self.limit_gpus(id, number));
        }
        self.limits.note_expiry(&self.workloads[&id]);
        let what: Vec<String> = changed.into_iter().map(|(what, _)| what).collect();
        self.emit(id, EventBuilder::new("Updated", format!("{by} changed {}", what.join(", "))));
        self.touch(id);
        Ok(Subject::Workload(id))
    }

    /// Sets whether a workload may be evicted for others.
    pub(crate) fn set_preemptible(&mut self, id: Uuid, preemptible: bool) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let spec = Arc::new(WorkloadSpec { preemptible, ..(*workload.spec).clone() });
        self.workloads.set_spec(id, spec);
        self.rebind(id);
        self.touch(id);
    }

    /// Updates the GPU limits of a run in the engine, which may have changed since it started.
    pub(crate) fn limit_gpus(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(pod) = workload.pods.get(number) else { return };
        let has_limit = workload.spec.set_of(number).0.pod.gpu.limit().is_some();
        let place = self.binding(pod);
        if !has_limit || pod.is_idle() || place.releasing || place.current.is_none() {
            return;
        }
        let Some(run) = self.run_spec(id, number) else { return };
        let devices = run.spec.devices.into_iter();
        let most = devices.map(|device| (device.uuid, device.memory.most())).collect();
        self.outbox.act([Action::LimitGpus(run.spec.key, most)]);
    }

    /// Refuses a change that is not possible in the state of the workload.
    fn may_change(
        &self,
        workload: &Workload,
        spec: &WorkloadSpec,
        changed: &[(String, bool)],
    ) -> Result<(), Error> {
        let name = &spec.name;
        spec::check_backoff_limit(spec.backoff_limit)?;
        let old = &workload.spec.annotations;
        let differs = |key: &&&str| old.get(**key) != spec.annotations.get(**key);
        if let Some(key) = pools::ANNOTATIONS.iter().find(differs) {
            return Err(Error::conflict(format!(
                "annotation `{key}` of workload `{name}` cannot change while it exists: it decides \
                 where its pods go. Delete `{name}` and submit it again with another value"
            )));
        }
        if let Some(gate) = spec.gates.iter().find(|gate| !workload.spec.gates.contains(gate)) {
            return Err(Error::conflict(format!(
                "gate `{gate}` cannot be added to workload `{name}`: gates can only be taken away. To \
                 hold it back, suspend it with `runai suspend {name}`"
            )));
        }
        if workload.completed_at.is_some()
            && let Some((what, _)) = changed.iter().find(|(_, runs)| *runs)
        {
            return Err(Error::conflict(format!(
                "workload `{name}` has ended, so its {what} cannot change; labels, annotations and \
                 the time until its deletion can"
            )));
        }
        if workload.spec.preemptible && !spec.preemptible && self.holds_any(workload) {
            return Err(Error::conflict(format!(
                "workload `{name}` holds resources that may be over the quota, which a \
                 non-preemptible workload must not; suspend it, change it, and resume it"
            )));
        }
        Ok(())
    }
}
