//! Checkpoints of workloads. Owns: the effect of a pod's report on its workload, the runs whose
//! next checkpoint an eviction waits for, and the warning of a training without progress. Does not
//! know about: how a checkpoint is verified, and its effect on the choice of victims (`sched`).

use command::Subject;
use spec::{CheckpointNews, RunKey};
use units::Instant;
use uuid::Uuid;

use crate::effect::Action;
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::{Pod, Workload};
use view::codes::{NO_STEPS, PARTED};

/// Maximum number of pods whose next checkpoint is awaited: of pods that work together the first
/// ones write them.
const AWAITED_MAX: usize = 8;

impl State {
    /// Records the time of a workload's newest checkpoint; `None` if it has none. This changes the
    /// cost of stopping it, and requests no decision.
    pub(crate) fn note_checkpoint(&mut self, id: Uuid, at: Option<Instant>) {
        let Some(model) = self.workloads.get(&id).and_then(|workload| workload.model) else {
            return;
        };
        self.cluster.set_checkpointed(model, at);
        self.touch(id);
    }

    /// Records a checkpoint by its age, in milliseconds.
    pub(crate) fn note_checkpoint_ago(&mut self, id: Uuid, ago_ms: u64) -> Subject {
        self.note_checkpoint(id, Some(Instant(self.now.0.saturating_sub(ago_ms))));
        Subject::Nothing
    }

    /// Reports that the workers of a training have made no step for `idle_ms`. It may still be
    /// right to wait, so nothing is stopped.
    pub(crate) fn note_hang(&mut self, id: Uuid, workers: u32, idle_ms: u64) -> Subject {
        let workers = units::counted(workers, "worker");
        let minutes = units::counted(idle_ms / 60_000, "minute");
        let message = format!("no step of its {workers} for {minutes}; their logs may say why");
        let event = EventBuilder::new(NO_STEPS.name, message).code(NO_STEPS.code);
        self.emit(id, event.warning());
        Subject::Nothing
    }

    /// Reports that two workers of a training have not reached each other for `for_ms`, and one of
    /// them leaves.
    pub(crate) fn note_parting(
        &mut self,
        id: Uuid,
        [pod, unreached]: &[String; 2],
        leaves: &str,
        for_ms: u64,
    ) -> Subject {
        let seconds = for_ms / 1000;
        let message = format!(
            "{pod} has not reached {unreached} for {seconds} s, and both reach the master: {leaves} leaves; \
             look at the network between the two"
        );
        let event = EventBuilder::new(PARTED.name, message).code(PARTED.code);
        self.emit(id, event.warning());
        Subject::Nothing
    }

    /// Applies the report of a pod. The master of an elastic training reports for all of its pods.
    pub(super) fn checkpoint_news(&mut self, id: Uuid, number: usize, news: &CheckpointNews) {
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        if workload.is_elastic_training() {
            return;
        }
        let Some(pod) = workload.pods.get_mut(number) else { return };
        match news {
            CheckpointNews::Saved { ago_ms } => {
                pod.saved_at = Some(Instant(now.0.saturating_sub(*ago_ms)));
                self.note_saved(id, number);
            }
            CheckpointNews::Gone => {
                pod.saved_at = None;
                self.note_checkpoint(id, None);
            }
            CheckpointNews::Awaited { within_ms } => {
                let seconds = within_ms.div_ceil(1000);
                let message = format!(
                    "a checkpoint of it is awaited; it is stopped after that, or after {seconds} s"
                );
                self.emit(id, EventBuilder::new("AwaitsCheckpoint", message).pod(number));
            }
        }
    }

    /// Updates the workload's checkpoint after one of a pod. For pods that work together, any
    /// checkpoint covers all. For groups and for independent pods the oldest counts, once each
    /// group or pod that runs has saved a checkpoint.
    fn note_saved(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let holds = |pod: &&Pod| self.binding(pod).current.is_some();
        let saved = |pod: &Pod| pod.saved_at;
        let at = if workload.spec.is_of_groups() {
            let of = |gang: Vec<usize>| -> Vec<&Pod> {
                gang.iter().filter_map(|&number| workload.pods.get(number)).collect()
            };
            let gangs = workload.spec.gangs().into_iter().map(of);
            let there = gangs.filter(|gang| gang.iter().any(holds));
            let newest = |gang: Vec<&Pod>| gang.into_iter().filter_map(saved).max();
            let all: Option<Vec<Instant>> = there.map(newest).collect();
            all.and_then(|all| all.into_iter().min())
        } else if workload.spec.distributed.is_some() {
            workload.pods.get(number).and_then(saved)
        } else {
            let all: Option<Vec<Instant>> = workload.pods.iter().filter(holds).map(saved).collect();
            all.and_then(|all| all.into_iter().min())
        };
        if at.is_some() {
            self.note_checkpoint(id, at);
        }
    }

    /// Requests from the engine to stop the run of a pod whose place others need: as
    /// [`State::stop_run`], after a checkpoint that is seconds away.
    pub(crate) fn evict_run(&mut self, id: Uuid, number: usize) {
        let awaited = self.workloads.get(&id).map(|workload| awaited(workload, number));
        let awaited = awaited.unwrap_or_default();
        self.stop_run_by(id, number, |run, grace_ms| Action::Evict { run, grace_ms, awaited });
    }
}

/// The runs whose next checkpoint covers this pod: its own, and the first of the pods that it works
/// with.
fn awaited(workload: &Workload, number: usize) -> Vec<RunKey> {
    let is_own = |pod: &&Pod| pod.number() == number;
    let gang = workload.spec.distributed.map(|_| workload.spec.gang_with(number));
    let gang = gang.unwrap_or_default();
    let works_with = |pod: &&Pod| gang.contains(&pod.number()) && !is_own(pod);
    let all = workload.pods.iter().filter(is_own).chain(workload.pods.iter().filter(works_with));
    all.filter(|pod| pod.life().started_at().is_some()).map(Pod::run).take(AWAITED_MAX).collect()
}
