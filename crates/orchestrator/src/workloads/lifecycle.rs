//! The life cycle of a workload between submission and its end. Owns: adding it, starting and
//! stopping its runs. Its end is in `restart_policy`, its phases are in `phases`.

use std::collections::BTreeSet;

use model::PodId;
use pod_life::{Effect, Input};
use reasons::WorkloadRef;
use spec::{Bounds, Device, PodSet, RunKey, RunSpec, SecretUse, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::Error;
use crate::effect::{Action, Sealed, Start};
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::{Pod, Workload, model_request, pod_name, revisions};
use view::codes::SERVER_STOPPED;
use view::{Beneficiary, EvictionView};

/// Number of runs of a pod whose output is kept, the newest included.
pub(crate) const RUNS_KEPT: u32 = 3;

impl State {
    /// Marks a workload as changed.
    pub(crate) fn touch(&mut self, id: Uuid) {
        if let Some(workload) = self.workloads.get(&id) {
            self.outbox.touch([id]);
            self.outbox.recount([workload.project_id]);
            if let Some(revision) = workload.spec.revision {
                self.outbox.touch([revision.of]);
            }
        }
    }

    /// Binding of a pod in the model.
    pub(crate) fn binding(&self, pod: &Pod) -> model::PodBinding {
        let found = pod.model.and_then(|id| self.cluster.pods().get(id));
        found.map(|pod| pod.binding.clone()).unwrap_or_default()
    }

    /// The workload and number of a pod of the model.
    pub(crate) fn home_of(&self, pod: PodId) -> Option<(Uuid, usize)> {
        let pod = self.cluster.pods().get(pod)?;
        let id = self.workloads.of_model(pod.workload)?;
        Some((id, pod.index as usize))
    }

    /// Requests of the pods of a workload, without replicas to be removed, as far as they run at a
    /// time.
    fn requested(&self, workload: &Workload) -> Resources {
        let wanted = workload.pods_by_set().flat_map(|(set, pods)| {
            let stay = pods.iter().filter(|pod| !pod.left).count();
            let demand = self.cluster.demand(model_request(&set.pod));
            std::iter::repeat_n(demand, stay.min(set.wanted() as usize))
        });
        wanted.sum()
    }

    /// Updates the requests for GPU memory after a change of the GPUs: they are another part of the
    /// new ones.
    pub(crate) fn value_requests_again(&mut self) {
        let of_memory =
            |set: &PodSet| matches!(model_request(&set.pod).gpu, model::GpuRequest::Memory { .. });
        let all = self.workloads.values().filter(|workload| {
            !workload.spec.has_revisions() && workload.spec.sets().any(of_memory)
        });
        for id in all.map(|workload| workload.id).collect::<Vec<_>>() {
            let Some(workload) = self.workloads.get(&id) else { continue };
            let (revision, project_id) = (workload.spec.revision, workload.project_id);
            let requested = self.requested(workload);
            if let Some(workload) = self.workloads.get_mut(&id) {
                workload.requested = requested;
            }
            self.outbox.show([id]);
            self.outbox.show(revision.map(|revision| revision.of));
            self.outbox.recount([project_id]);
        }
    }

    /// Adds a workload: its names, its pods, and its entry in the model unless it is over and no
    /// pod `holds` a place.
    pub(crate) fn add(&mut self, mut workload: Workload, holds: bool) -> Result<(), Error> {
        let internal = |error: model::Error| Error::Internal { message: error.to_string() };
        let project_id = workload.project_id;
        let queue = self.org.project(project_id)?.queue;
        if workload.spec.has_revisions() {
            self.workloads.insert(workload);
            return Ok(());
        }
        let over = workload.is_over();
        let model = self.cluster.add_empty_workload(self.in_model(&workload, queue));
        let model = model.map_err(internal)?;
        workload.requested = self.requested(&workload);
        if over && !holds {
            self.cluster.remove_workload(model).map_err(internal)?;
        } else {
            workload.model = Some(model);
            // A pod that has left also holds its place until its run has stopped.
            let holds =
                |pod: &&mut Pod| pod.written.as_ref().is_some_and(|row| row.body.current.is_some());
            for pod in workload.pods.iter_mut().filter(holds) {
                pod.model = self.cluster.join(model, pod.index);
            }
        }
        let (id, not_before) = (workload.id, workload.not_before);
        let listed = workload.model.is_some();
        self.workloads.insert(workload);
        if listed {
            self.cluster.set_not_before(model, not_before.unwrap_or(Instant(0)));
        }
        self.update_members(id);
        self.adopt(id);
        Ok(())
    }

    /// Checks that the host ports that a workload of a project requests are free: no other workload
    /// that is not over has requested them, even if it does not run now.
    pub(crate) fn ports_are_free(&self, project_id: u64, spec: &WorkloadSpec) -> Result<(), Error> {
        let asked: BTreeSet<u16> = host_ports(spec).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let keeps = |w: &&Workload| w.completed_at.is_none() || self.holds_any(w);
        let taken = |w: &Workload| host_ports(&w.spec).find(|port| asked.contains(port));
        let living = self.workloads.values();
        let Some((port, w)) = living.filter(keeps).find_map(|w| Some((taken(w)?, w))) else {
            return Ok(());
        };
        // Workloads of other projects are not named.
        let whose = match w.project_id == project_id {
            true => format!("{}'s", w.spec.name),
            false => "that of a workload of another project".to_owned(),
        };
        Err(Error::conflict(format!(
            "port {port} is {whose} until that has ended or is deleted; choose another"
        )))
    }

    /// Starts a new run of a pod at its place in the model.
    pub(crate) fn start(&mut self, id: Uuid, number: usize) {
        let now = self.now;
        if self.happens((id, number), &Input::Begins).is_none() {
            return;
        }
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        pod.generation += 1;
        pod.placed_at = Some(now);
        pod.meets = false;
        let run = pod.run();
        self.note_size(id, number);
        self.note_begun(id);
        self.touch(id);
        if let Some(generation) = run.generation.checked_sub(RUNS_KEPT).filter(|&g| g > 0) {
            self.outbox.act([Action::Remove(spec::RunKey { generation, ..run })]);
        }
        if let Some(spec) = self.run_spec(id, number) {
            self.outbox.act([Action::Start(Box::new(spec))]);
        }
    }

    /// Records the number of GPUs of an elastic pod's new run, and whether the run before had
    /// another number.
    fn note_size(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id).filter(|workload| workload.spec.elastic)
        else {
            return;
        };
        let Some(pod) = workload.pods.get(number) else { return };
        let Some(place) = self.binding(pod).current else { return };
        let millis = place.devices.iter().map(|share| share.millis).sum();
        if let Some(pod) = self.workloads.pod_mut(id, number) {
            let before = pod.run_gpu_millis.replace(millis);
            pod.resized_from = before.filter(|&before| before != millis);
        }
    }

    /// All inputs that the engine needs for the present run of a pod.
    pub(crate) fn run_spec(&self, id: Uuid, number: usize) -> Option<Start> {
        let workload = self.workloads.get(&id)?;
        let pod = workload.pods.get(number)?;
        let place = self.binding(pod).current?;
        let node = &self.nodes.get(place.node)?.spec;
        let spec = &workload.spec;
        let (set, _) = spec.set_of(number);
        let device = |share: &model::DeviceShare| {
            let gpu = node.gpus.get(share.gpu as usize)?;
            Some(Device {
                index: share.gpu,
                uuid: gpu.uuid.clone(),
                simulated: node.simulated,
                millis: share.millis,
                memory_bytes: gpu.memory_bytes,
                memory: match &gpu.instance {
                    // An instance belongs to one pod.
                    Some(_) => Bounds::of(gpu.memory_bytes),
                    None => set.pod.gpu.memory_of(gpu.memory_bytes, share.millis),
                },
            })
        };
        let head = self.workloads.get(&self.workloads.head_of(id))?;
        let mut run = RunSpec {
            key: pod.run(),
            pod_name: pod_name(spec, pod),
            workload_id: head.id,
            workload_name: head.spec.name.clone(),
            project_name: self.org.project(workload.project_id).ok()?.unit.name.clone(),
            pod_index: pod.index,
            node_name: node.name.clone(),
            devices: place.devices.iter().filter_map(device).collect(),
            resized_from: pod.resized_from,
            time_slicing: self.time_slicing_on(place.node),
            fractions: self.fractions_on(place.node),
            gang: self.gang_of(workload, number),
            ..spec::without_place(spec, set)
        };
        self.documents.name_volumes(&mut run.container.mounts);
        if let Some(port) = pod.port.filter(|_| spec.serving.is_some()) {
            revisions::tell_port(&mut run, port);
        }
        let sealed = |of: &SecretUse| {
            let keeper = self.documents.keeper(workload.project_id, of).cloned();
            Sealed { of: of.clone(), keeper }
        };
        let sealed = set.pod.secrets.iter().map(sealed).collect();
        Some(Start { spec: run, sealed })
    }

    /// Requests from the engine to stop the run of a pod that is releasing in the model. Without a
    /// process its place is free at once.
    pub(crate) fn stop_run(&mut self, id: Uuid, number: usize) {
        self.stop_run_by(id, number, Action::Stop);
    }

    pub(super) fn stop_run_by(
        &mut self,
        id: Uuid,
        number: usize,
        action: impl FnOnce(RunKey, u64) -> Action,
    ) {
        let stopped = self.happens((id, number), &Input::Stops(self.clock));
        if stopped.and_then(|stopped| stopped.effect) == Some(Effect::Stop) {
            let Some(workload) = self.workloads.get(&id) else { return };
            let grace_ms = workload.spec.set_of(number).0.pod.grace_ms;
            let run = workload.pods[number].run();
            self.outbox.act([action(run, grace_ms)]);
        }
        self.touch(id);
    }

    /// Stops every run of a workload.
    pub(crate) fn release_all(&mut self, id: Uuid) {
        // A shortage of ports is reported again if there is one again.
        self.runs.ports.forget(id);
        self.release_those(id, |_| true);
    }

    /// Stops the runs of the pods of a workload for which `are` holds.
    pub(crate) fn release_those(&mut self, id: Uuid, are: impl Fn(&Pod) -> bool) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let held: Vec<_> = workload
            .pods
            .iter()
            .filter(|pod| are(pod))
            .filter_map(|pod| {
                let binding = self.binding(pod);
                let runs = binding.current.is_some() && !binding.releasing;
                pod.model.filter(|_| runs).map(|model| (pod.number(), model))
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
        self.decisions.stop();
        let own = self.workloads.values().filter(|workload| !workload.is_adopted);
        let runs = own.filter(|workload| self.runs_on(workload));
        let ids: Vec<_> = runs.map(|workload| workload.id).collect();
        let message = "stopped with the server by `elastane down`; it goes on after the next \
                       `elastane up`";
        for id in ids {
            self.evicted(id, SERVER_STOPPED.code, message.to_owned());
            self.emit(
                id,
                EventBuilder::new("Evicted", message).warning().code(SERVER_STOPPED.code),
            );
            self.release_all(id);
        }
    }

    /// Records that the GPU share of a pod changed.
    pub(crate) fn note_resize(&mut self, id: Uuid, number: usize) {
        if let Some(pod) = self.workloads.pod_mut(id, number) {
            pod.resized_at = Some(self.now);
        }
    }

    /// True if a pod of it has a place that is not being released.
    pub(crate) fn runs_on(&self, workload: &Workload) -> bool {
        workload.pods.iter().any(|pod| {
            let place = self.binding(pod);
            place.current.is_some() && !place.releasing
        })
    }

    /// True if any pod still holds a place.
    pub fn anything_held(&self) -> bool {
        let mut own = self.workloads.values().filter(|workload| !workload.is_adopted);
        own.any(|workload| self.holds_any(workload))
    }

    /// Records why a workload was last stopped, moved or resized.
    pub(crate) fn evicted(&mut self, id: Uuid, code: &'static str, message: String) {
        self.evicted_for(id, code, message, None);
    }

    /// Records why, and for which workload, a workload was last stopped, moved or resized.
    pub(crate) fn evicted_for(
        &mut self,
        id: Uuid,
        code: &'static str,
        message: String,
        beneficiary: Option<Beneficiary>,
    ) {
        let (at, message) = (self.now, message.into());
        if let Some(workload) = self.workloads.get_mut(&id) {
            workload.last_eviction =
                Some(EvictionView { code: code.into(), message, at, beneficiary });
            self.outbox.tally().evicted.insert((id, workload.spec.kind, code));
            self.touch(id);
        }
    }

    /// The workload for which a decision stops, moves or resizes another; `None` if it is gone.
    pub(crate) fn beneficiary(&self, of: &WorkloadRef) -> Option<Beneficiary> {
        let own = self.workloads.of_model(of.id)?;
        let (name, project) = (of.typed_name().into(), of.queue.as_str().into());
        Some(Beneficiary { id: self.workloads.head_of(own), name, project })
    }
}

/// The host ports that a workload requests.
fn host_ports(spec: &WorkloadSpec) -> impl Iterator<Item = u16> {
    spec.sets().flat_map(|set| &set.pod.container.ports).filter_map(|port| port.host)
}
