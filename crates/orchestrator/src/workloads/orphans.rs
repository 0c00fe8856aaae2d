//! Orphaned runs of the engine: runs of unknown workloads, of removed places, of old generations.
//! Owns: that each holds the GPUs that it was given until it has ended, and nothing else; and that
//! its pod does not start elsewhere before.

use std::collections::BTreeMap;

use pod_life::Input;
use spec::{ListedRun, RunKey, RunPlace, RunState};
use uuid::Uuid;

use crate::effect::{Action, Note};
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::Runs;
use view::codes::CLEARING_UP;
use view::{GPU_HELD, GpuFault, Holder};

/// Grace period of an orphan, in milliseconds.
const GRACE_MS: u64 = 10_000;

/// An orphaned run.
#[derive(Debug)]
pub(crate) struct Orphan {
    /// Its place; `None` where it is not known: it may hold any GPU.
    place: Option<RunPlace>,
    /// Process id of its main process.
    pid: Option<u32>,
}

/// Orphans by their keys.
pub(crate) type Orphans = BTreeMap<RunKey, Orphan>;

impl Orphan {
    /// Its share of a GPU, in thousandths: `None` if it does not hold the GPU, an inner `None` if
    /// the share is not known.
    fn holds(&self, node: &str, gpu: &str) -> Option<Option<u64>> {
        let Some(RunPlace { node: own, devices }) = &self.place else { return Some(None) };
        match devices {
            Some(devices) => devices.get(gpu).copied().map(Some),
            None => (own == node).then_some(None),
        }
    }
}

impl Runs {
    /// True if there are orphaned runs.
    pub(crate) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// True if a pod has an orphaned run.
    pub(crate) fn has_orphan(&self, pod: Uuid) -> bool {
        let of_pod = RunKey { pod, generation: 0 }..=RunKey { pod, generation: u32::MAX };
        self.orphans.range(of_pod).next().is_some()
    }

    /// Fault of a GPU that orphans hold; `None` if they do not.
    pub(crate) fn holders(&self, node: &str, gpu: &str) -> Option<GpuFault> {
        let holder = |(run, orphan): (&RunKey, &Orphan)| {
            let share_millis = orphan.holds(node, gpu)?;
            Some(Holder { run: *run, pid: orphan.pid, share_millis })
        };
        let all: Vec<_> = self.orphans.iter().filter_map(holder).collect();
        (!all.is_empty()).then_some(GpuFault::Held(all))
    }
}

impl State {
    /// Stops an orphaned run. It holds its GPUs until it has ended.
    pub(crate) fn orphan_found(&mut self, run: &ListedRun) {
        let pid = if let RunState::Running { pid, .. } = run.state { pid } else { None };
        let note = format!("the engine has run {}, which should not be; stopping it", run.key);
        self.outbox.note(Note::Warning(note));
        self.adopt_orphan(run.key, run.place.clone(), pid, GRACE_MS);
    }

    pub(crate) fn adopt_orphan(
        &mut self,
        key: RunKey,
        place: Option<RunPlace>,
        pid: Option<u32>,
        grace_ms: u64,
    ) {
        self.runs.orphans.insert(key, Orphan { place, pid });
        self.outbox.act([Action::Stop(key, grace_ms)]);
        if let Some((id, _)) = self.workloads.home(key.pod) {
            self.update_members(id);
        }
    }

    /// Removes an ended orphan; true if the run was one.
    pub(crate) fn orphan_ended(&mut self, key: RunKey) -> bool {
        if self.runs.orphans.remove(&key).is_none() {
            return false;
        }
        let held = self.nodes.iter().filter(|node| node.gpu_faults.values().any(GpuFault::is_held));
        let nodes: Vec<_> = held.map(|node| node.id).collect();
        nodes.into_iter().for_each(|id| self.settle_gpus_of(id));
        true
    }

    /// True if a pod has a place with a GPU that an orphan holds.
    pub(crate) fn is_at_held_gpu(&self, id: Uuid, number: usize) -> bool {
        let place = self.workloads.pod(id, number).and_then(|pod| self.binding(pod).current);
        let Some(place) = place else { return false };
        let Some(node) = self.nodes.get(place.node) else { return false };
        node.gpu_faults.iter().any(|(gpu, fault)| fault.is_held() && place.uses(*gpu))
    }

    /// Removes a pod without a process from a place with a GPU that an orphan holds: it waits for
    /// another place.
    pub(crate) fn leave_held_gpu(&mut self, id: Uuid, number: usize) {
        self.happens((id, number), &Input::LeavesPlace);
        let why = "a run that should not exist any more holds a GPU of its place";
        self.evicted(id, GPU_HELD.code, why.to_owned());
        let event = EventBuilder::new("Evicted", why).warning().pod(number).code(GPU_HELD.code);
        self.emit(id, event);
        self.hold_with(id, number);
        self.leave_if_over(id);
        self.rewind_if_stopped(id);
        self.finish_deletion(id);
    }

    /// Publishes the reason of workloads that have no other reason to wait than an earlier run of a
    /// pod that has not ended.
    pub(crate) fn explain_orphans(&mut self) {
        // A workload that the scheduler had not considered may be excluded by now.
        let pods = self.runs.orphans.keys().filter_map(|run| self.workloads.home(run.pod));
        for (id, _) in pods.collect::<Vec<_>>() {
            self.explain_unconsidered(id);
        }
        let mut waiting = Vec::new();
        for (run, orphan) in &self.runs.orphans {
            let Some((id, number)) = self.workloads.home(run.pod) else { continue };
            let Some(workload) = self.workloads.get(&id) else { continue };
            let waits = workload.wants_to_run()
                && workload.pending.is_empty()
                && workload.turns().get(number) == Some(&true);
            if waits {
                let place = orphan.place.as_ref().map(|place| format!(" on {}", place.node));
                let place = place.unwrap_or_default();
                let process = orphan.pid.map(|pid| format!("; see it with `ps -fp {pid}`"));
                let process = process.unwrap_or_default();
                waiting.push((
                    id,
                    format!("waits until its run {run}{place} has been stopped{process}"),
                ));
            }
        }
        for (id, why) in waiting {
            self.explain_one(id, &[(CLEARING_UP.code, why.into())]);
        }
    }

    /// True if a pod of a workload waits for the end of an earlier run of it.
    pub(crate) fn waits_for_orphan(&self, id: Uuid) -> bool {
        let workload = self.workloads.get(&id).filter(|_| self.runs.has_orphans());
        let Some(workload) = workload else { return false };
        let mut pods = workload.pods.iter().zip(workload.turns());
        pods.any(|(pod, turn)| turn && self.runs.has_orphan(pod.id))
    }
}
