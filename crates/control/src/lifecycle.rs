//! The life of a workload between submission and its end. Owns: every change of a workload that
//! is not a person's wish: placing, stopping, ending, back-off, and the phase that follows.

use engine::{Device, RunSpec};
use model::Placement;
use store::{Change, Desired};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::command::Restart;
use crate::reasons::SERVER_STOPPED;
use crate::state::{Action, Ended, News, Pod, State, Workload, model_request, pod_name};
use crate::view::{Phase, ReasonView};
use crate::{Error, persist};

/// Runs whose output is kept beside the newest one of a pod.
const RUNS_KEPT: u32 = 3;
/// First delay after a failure; doubles with each.
const BACK_OFF_MS_MIN: u64 = 1000;
/// A process that ran so long was well: what follows counts as its first failure.
const WELL_MS: u64 = 600_000;
/// Longest delay after a failure.
const BACK_OFF_MS_MAX: u64 = 300_000;

/// How long to wait after the failure that follows so many others.
pub(crate) fn back_off_ms(failures: u32) -> u64 {
    let doubled = BACK_OFF_MS_MIN.checked_shl(failures.min(20));
    doubled.unwrap_or(BACK_OFF_MS_MAX).min(BACK_OFF_MS_MAX)
}

impl State {
    /// Takes a workload in: names, pods, and a place in the model unless it has ended.
    pub(crate) fn add(&mut self, mut workload: Workload) -> Result<(), Error> {
        let internal = |error: model::Error| Error::Internal { message: error.to_string() };
        let project_id = workload.project_id;
        let project =
            self.projects.get_mut(&project_id).ok_or_else(|| Error::no_project(project_id))?;
        let spec = &workload.spec;
        let pods = u32::try_from(workload.pods.len()).unwrap_or(u32::MAX);
        let model = self.cluster.add_workload(model::WorkloadSpec {
            name: spec.name.clone(),
            queue: project.queue,
            seq: workload.seq,
            priority: spec.priority,
            preemptible: spec.preemptible,
            elastic: spec.elastic,
            pods,
            pods_min: pods,
            request: model_request(spec),
        });
        let model = model.map_err(internal)?;
        let row = &self.cluster.workloads()[model];
        workload.requested = (0..pods).map(|_| row.demand).sum();
        if workload.completed_at.is_some() {
            self.cluster.remove_workload(model).map_err(internal)?;
        } else {
            workload.model = Some(model);
            for (pod, &id) in workload.pods.iter_mut().zip(&row.pods) {
                pod.model = Some(id);
            }
            self.by_model.insert(model, workload.id);
        }
        for (number, pod) in workload.pods.iter().enumerate() {
            self.homes.insert(pod.id, (workload.id, number));
        }
        project.names.insert(workload.spec.name.clone(), workload.id);
        let (id, not_before) = (workload.id, workload.not_before);
        let listed = workload.model.is_some();
        self.workloads.insert(id, workload);
        if listed {
            self.cluster.set_not_before(model, not_before.unwrap_or(Instant(0)));
        }
        self.update_wants(id);
        Ok(())
    }

    /// Tells the scheduler which pods of a workload should run.
    pub(crate) fn update_wants(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        for pod in &workload.pods {
            let wants = workload.desired == Desired::Run
                && workload.completed_at.is_none()
                && pod.ended.is_none()
                && !self.has_stray(pod.id);
            if let Some(model) = pod.model {
                self.cluster.set_wants(model, wants);
            }
        }
    }

    /// Whether a run that should not exist still does.
    pub(crate) fn has_stray(&self, pod: Uuid) -> bool {
        let first = engine::RunKey { pod, generation: 0 };
        let last = engine::RunKey { pod, generation: u32::MAX };
        self.strays.range(first..=last).next().is_some()
    }

    /// A pod for change.
    pub(crate) fn pod_mut(&mut self, id: Uuid, number: usize) -> Option<&mut Pod> {
        self.workloads.get_mut(&id)?.pods.get_mut(number)
    }

    /// Begins a new run of a pod at the place the model has it at.
    pub(crate) fn start(&mut self, id: Uuid, number: usize) {
        let now = self.now;
        let Some(pod) = self.pod_mut(id, number) else { return };
        pod.generation += 1;
        pod.started_at = None;
        pod.restart_at = None;
        pod.released_at = None;
        let (pod_id, run) = (pod.id, pod.run());
        pod.placed_at = Some(now);
        self.restarting.remove(&pod_id);
        self.touch(id);
        if let Some(generation) = run.generation.checked_sub(RUNS_KEPT).filter(|&g| g > 0) {
            self.outbox.actions.push(Action::Remove(engine::RunKey { generation, ..run }));
        }
        if let Some(spec) = self.run_spec(id, number) {
            self.outbox.actions.push(Action::Start(Box::new(spec)));
        }
    }

    /// Everything the engine needs for the present run of a pod.
    pub(crate) fn run_spec(&self, id: Uuid, number: usize) -> Option<RunSpec> {
        let workload = self.workloads.get(&id)?;
        let pod = workload.pods.get(number)?;
        let place = self.occupancy(pod).current?;
        let node = &self.nodes.get(&place.node)?.spec;
        let device = |share: &model::DeviceShare| {
            let gpu = node.gpus.get(share.gpu as usize)?;
            Some(Device {
                index: share.gpu,
                uuid: gpu.uuid.clone(),
                simulated: node.simulated,
                millis: share.millis,
                memory_bytes: gpu.memory_bytes,
            })
        };
        let spec = &workload.spec;
        Some(RunSpec {
            key: pod.run(),
            pod_name: pod_name(&spec.name, pod),
            workload_name: spec.name.clone(),
            workload_id: id,
            project_name: self.projects.get(&workload.project_id)?.name.clone(),
            pod_index: pod.index,
            node_name: node.name.clone(),
            devices: place.devices.iter().filter_map(device).collect(),
            image: spec.image.clone(),
            command: spec.command.clone(),
            args: spec.args.clone(),
            env: spec.env.clone(),
            working_dir: spec.working_dir.clone().map(Into::into),
            grace_ms: spec.grace_ms,
            cpu_millis: spec.cpu_millis,
            memory_bytes: spec.memory_bytes,
        })
    }

    /// Asks the engine to stop the run of a pod that the model has as releasing. Returns whether
    /// its place is free at once, because no process is in it.
    pub(crate) fn stop_run(&mut self, id: Uuid, number: usize) -> bool {
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return false };
        let grace_ms = workload.spec.grace_ms;
        let Some(pod) = workload.pods.get_mut(number) else { return false };
        pod.released_at = Some(now);
        let run = pod.run();
        let idle = pod.restart_at.take().is_some();
        let (pod_id, model) = (pod.id, pod.model);
        if idle {
            self.restarting.remove(&pod_id);
            if let Some(model) = model {
                self.cluster.vacate(model);
            }
        } else {
            self.outbox.actions.push(Action::Stop(run, grace_ms));
        }
        self.touch(id);
        idle
    }

    /// Stops every run of a workload.
    pub(crate) fn release_all(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let held: Vec<_> = (0..workload.pods.len())
            .filter_map(|number| {
                let pod = &workload.pods[number];
                let occupancy = self.occupancy(pod);
                let runs = occupancy.current.is_some() && !occupancy.releasing;
                pod.model.filter(|_| runs).map(|model| (number, model))
            })
            .collect();
        for (number, model) in held {
            self.cluster.release(model);
            self.stop_run(id, number);
        }
    }

    /// Stops everything and starts nothing more.
    pub(crate) fn halt(&mut self) {
        self.halted = true;
        self.wake_at = None;
        let runs = |w: &&Workload| {
            let stays = |pod: &Pod| {
                let place = self.occupancy(pod);
                place.current.is_some() && !place.releasing
            };
            w.pods.iter().any(stays)
        };
        let ids: Vec<_> = self.workloads.values().filter(runs).map(|w| w.id).collect();
        let message = "stopped with the server by `elastane down`; it goes on after the next \
                       `elastane up`";
        for id in ids {
            self.evicted(id, SERVER_STOPPED.code, message.to_owned());
            self.say(id, News::new("Evicted", message).warning().code(SERVER_STOPPED.code));
            self.release_all(id);
        }
    }

    /// Whether any pod still holds a place.
    pub(crate) fn anything_held(&self) -> bool {
        self.cluster.pods().iter().any(|(_, pod)| pod.occupancy.current.is_some())
    }

    /// Remembers why a workload was last stopped, moved or resized.
    pub(crate) fn evicted(&mut self, id: Uuid, code: &str, message: String) {
        let at = self.now;
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.last_eviction = Some(ReasonView { code: code.to_owned(), message, at });
            self.touch(id);
        }
    }

    /// Deletes a workload for good once nothing of it runs.
    pub(crate) fn finish_deletion(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let held = workload
            .pods
            .iter()
            .any(|pod| self.occupancy(pod).current.is_some() || self.has_stray(pod.id));
        if workload.desired != Desired::Delete || held {
            return;
        }
        self.settle(id);
        self.say(id, News::new("Deleted", "deleted"));
        self.leave_model(id);
        let Some(mut workload) = self.workloads.remove(&id) else { return };
        workload.pending.clear();
        let state = persist::workload_state(&workload, Some(self.now));
        self.outbox.changes.push(Change::WorkloadState(id, state));
        self.outbox.workloads.remove(&id);
        self.outbox.projects.insert(workload.project_id);
        if let Some(project) = self.projects.get_mut(&workload.project_id) {
            project.names.remove(&workload.spec.name);
        }
        for pod in &workload.pods {
            self.homes.remove(&pod.id);
            self.restarting.remove(&pod.id);
            let oldest = pod.generation.saturating_sub(RUNS_KEPT - 1).max(1);
            for generation in oldest..=pod.generation {
                let run = engine::RunKey { pod: pod.id, generation };
                self.outbox.actions.push(Action::Remove(run));
            }
        }
        self.outbox.deleted.insert(id, workload);
    }

    fn leave_model(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        for pod in &mut workload.pods {
            if let Some(pod) = pod.model.take() {
                self.cluster.set_wants(pod, false);
            }
        }
        let Some(model) = workload.model.take() else { return };
        self.by_model.remove(&model);
        if let Err(error) = self.cluster.remove_workload(model) {
            // Only reached with a pod in a place, which the callers have ruled out.
            tracing::error!(workload = %id, %error, "a workload that ended is still in the model");
        }
    }

    /// A run ended by itself, well or badly: what follows from the restart policy.
    pub(crate) fn ended_by_itself(
        &mut self,
        id: Uuid,
        number: usize,
        exit: &engine::Exit,
        ran_ms: u64,
    ) {
        use engine::Exit;
        let Some(workload) = self.workloads.get(&id) else { return };
        let spec = workload.spec.clone();
        let restarts = workload.restarts;
        match (spec.restart, exit) {
            (_, Exit::CannotRun(_)) => self.end(id, number, Ended::Failed),
            // Nothing the workload did: a reboot, a supervisor that was killed, a machine that
            // cannot start processes at the moment. It uses up no retry.
            (_, Exit::Lost) => {
                let Some(pod) = self.pod_mut(id, number) else { return };
                let delay_ms = back_off_ms(pod.setbacks);
                pod.setbacks += 1;
                self.retry(id, number, restarts, delay_ms);
            }
            (Restart::Never | Restart::OnFailure, Exit::Code(0)) => {
                self.end(id, number, Ended::Succeeded);
            }
            (Restart::Never, _) if restarts >= spec.backoff_limit => {
                self.end(id, number, Ended::Failed);
            }
            (Restart::Never, _) => self.retry(id, number, restarts + 1, back_off_ms(restarts)),
            (Restart::OnFailure | Restart::Always, _) => self.restart_in_place(id, number, ran_ms),
        }
    }

    /// The pod gives up its place and waits for another after a delay.
    fn retry(&mut self, id: Uuid, number: usize, restarts: u32, delay_ms: u64) {
        let until = self.now.plus_ms(delay_ms);
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let limit = workload.spec.backoff_limit;
        workload.restarts = restarts;
        workload.not_before = Some(until);
        if let Some(model) = workload.model {
            self.cluster.set_not_before(model, until);
        }
        if let Some(model) = workload.pods.get(number).and_then(|pod| pod.model) {
            self.cluster.vacate(model);
        }
        self.touch(id);
        let seconds = units::format_millis(delay_ms);
        let message = format!("starts again in {seconds} s (retry {restarts} of {limit})");
        self.say(id, News::new("BackOff", message).warning().pod(number));
    }

    /// The pod keeps its place and is started there again after a delay.
    fn restart_in_place(&mut self, id: Uuid, number: usize, ran_ms: u64) {
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        workload.restarts += 1;
        let Some(pod) = workload.pods.get_mut(number) else { return };
        if ran_ms >= WELL_MS {
            pod.failures = 0;
        }
        let delay_ms = back_off_ms(pod.failures);
        pod.failures += 1;
        let at = now.plus_ms(delay_ms);
        pod.restart_at = Some(at);
        pod.started_at = None;
        let pod_id = pod.id;
        self.restarting.insert(pod_id, at);
        self.touch(id);
        let message = format!("starts again in its place in {} s", units::format_millis(delay_ms));
        self.say(id, News::new("BackOff", message).warning().pod(number));
    }

    /// Starts what has waited long enough in its place.
    pub(crate) fn restart_due(&mut self) {
        if self.halted {
            return;
        }
        let due: Vec<_> = self
            .restarting
            .iter()
            .filter(|(_, at)| **at <= self.now)
            .map(|(pod, _)| *pod)
            .collect();
        for pod in due {
            self.restarting.remove(&pod);
            if let Some(&(id, number)) = self.homes.get(&pod) {
                self.start(id, number);
            }
        }
    }

    /// The pod is done; when all are, so is the workload.
    pub(crate) fn end(&mut self, id: Uuid, number: usize, ended: Ended) {
        let now = self.now;
        let Some(pod) = self.pod_mut(id, number) else { return };
        pod.ended = Some(ended);
        let model = pod.model;
        self.touch(id);
        if let Some(model) = model {
            self.cluster.set_wants(model, false);
            self.cluster.vacate(model);
        }
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        if ended == Ended::Succeeded && workload.pods.iter().any(|pod| pod.ended.is_none()) {
            return;
        }
        workload.completed_at = Some(now);
        workload.not_before = None;
        if ended == Ended::Succeeded {
            self.say(id, News::new("Completed", "ended well"));
        } else {
            let last = workload.pods[number].last_exit.clone().unwrap_or_default();
            self.say(id, News::new("Failed", format!("failed for good: {last}")).warning());
        }
        self.release_all(id);
        self.update_wants(id);
        self.leave_if_ended(id);
    }

    /// Takes a workload that has ended out of the scheduler's sight, once nothing of it runs.
    pub(crate) fn leave_if_ended(&mut self, id: Uuid) {
        let ended = |w: &Workload| w.completed_at.is_some() && !self.holds_any(w);
        if self.workloads.get(&id).is_some_and(ended) {
            self.leave_model(id);
        }
    }

    fn holds_any(&self, workload: &Workload) -> bool {
        workload.pods.iter().any(|pod| self.occupancy(pod).current.is_some())
    }

    /// What a workload holds: the places of its pods, those being moved included.
    pub(crate) fn allocated(&self, workload: &Workload) -> Resources {
        let part = |pod: &Pod| {
            let model = pod.model?;
            let occupancy = &self.cluster.pods().get(model)?.occupancy;
            occupancy.current.as_ref()?;
            let place: &Placement = occupancy.effective()?;
            Some(self.cluster.amounts(model, place))
        };
        workload.pods.iter().filter_map(part).sum()
    }

    fn phase(&self, workload: &Workload) -> Phase {
        let places: Vec<_> = workload.pods.iter().map(|pod| self.occupancy(pod)).collect();
        match workload.desired {
            Desired::Delete => return Phase::Deleting,
            _ if workload.completed_at.is_some() => {
                let failed = workload.pods.iter().any(|pod| pod.ended == Some(Ended::Failed));
                return if failed { Phase::Failed } else { Phase::Completed };
            }
            Desired::Suspend if places.iter().any(|place| place.current.is_some()) => {
                return Phase::Stopping;
            }
            Desired::Suspend => return Phase::Stopped,
            Desired::Run => {}
        }
        let holds = |place: &model::Occupancy| {
            place.current.is_some() && (!place.releasing || place.next.is_some())
        };
        let runs = |(pod, place): (&Pod, &model::Occupancy)| {
            pod.ended == Some(Ended::Succeeded)
                || (pod.started_at.is_some() && holds(place) && !place.releasing)
        };
        if workload.pods.iter().zip(&places).all(runs) {
            Phase::Running
        } else if places.iter().any(holds) {
            Phase::Initializing
        } else {
            Phase::Pending
        }
    }

    /// Brings the phase of a workload up to date.
    pub(crate) fn settle(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let phase = self.phase(workload);
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        if phase == workload.phase {
            return;
        }
        let span_ms = now.since_ms(workload.phase_since);
        match workload.phase {
            Phase::Pending | Phase::Resuming => workload.waited_ms += span_ms,
            Phase::Running => workload.ran_ms += span_ms,
            _ => {}
        }
        workload.phase = phase;
        workload.phase_since = now;
        self.touch(id);
    }
}
