//! Elastic trainings: a master, parameter servers, and workers that come and go. Owns: that each of
//! their pods starts as soon as it is placed, that a worker which lost its place is relaunched as
//! another pod, with an unused number, and the effect of the end of a pod on the others. Does not
//! know about: the training itself, and the pods that take their places.

use pod_life::Ended;
use records::{Desired, Relaunch};
use spec::{BACKOFF_LIMIT_DEFAULT, Exit, Framework, WORKER};
use uuid::Uuid;

use crate::state::State;
use crate::workloads::{Pod, Workload};

/// Run time after which earlier failures no longer count, in milliseconds: the next one is the
/// first again.
pub(super) const WELL_MS: u64 = 600_000;
/// Exit codes of a process that a shell saw being killed: by SIGKILL, and by SIGTERM, after which
/// workers hand back their tasks and a master saves the model.
const KILLED: [i32; 2] = [137, 143];

/// True if a run was killed, which does not count as a failure.
pub(super) fn was_killed(exit: &Exit) -> bool {
    match exit {
        Exit::Signal(_) => true,
        Exit::Code(code) => KILLED.contains(code),
        _ => false,
    }
}

/// Consequence of the end of a pod that was not requested to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It has failed for good.
    Fails,
    /// It is relaunched as another pod, wherever there is room.
    AsAnother,
    /// It restarts in its place.
    InPlace,
}

impl Workload {
    /// True if its workers come and go.
    pub(crate) fn is_elastic_training(&self) -> bool {
        self.spec.distributed.is_some_and(|of| of.framework == Framework::ElasticDl)
    }

    fn is_worker(&self, number: usize) -> bool {
        self.spec.set_of(number).0.role == WORKER
    }

    /// Consequence of a failure; `None` if it is that of other workloads. [`Self::goes_on_without`]
    /// decides whether the training continues without the pod.
    pub(super) fn after_failure(&self, number: usize, exit: &Exit, ran_ms: u64) -> Option<Next> {
        if !self.is_elastic_training() {
            return None;
        }
        let failures = self.pods[number].relaunch.map_or(0, |now| now.failures);
        match (self.is_worker(number), exit) {
            (_, Exit::CannotRun(_) | Exit::NotKept(_) | Exit::NotStarted(_)) => None,
            (_, Exit::Lost | Exit::Code(0)) => None,
            // A new run would need the same amount.
            (true, Exit::OutOfMemory | Exit::OutOfDisk(_)) => Some(Next::Fails),
            (true, _) if was_killed(exit) => Some(Next::AsAnother),
            (true, _) if failures < self.spec.backoff_limit => Some(Next::AsAnother),
            (true, _) => Some(Next::Fails),
            // The end of a master is that of the training, and a parameter server that ends cannot
            // continue; one that was killed restarts where its files are.
            (false, Exit::Code(_)) if !was_killed(exit) => Some(Next::Fails),
            (false, _) if ran_ms >= WELL_MS => Some(Next::InPlace),
            (false, _) if self.pods[number].failures < BACKOFF_LIMIT_DEFAULT => Some(Next::InPlace),
            (false, _) => Some(Next::Fails),
        }
    }

    /// True if it continues although this pod has failed for good: a training does as long as one
    /// of its workers has not.
    pub(super) fn goes_on_without(&self, number: usize) -> bool {
        let others = self.pods.iter().filter(|pod| self.is_worker(pod.number()));
        self.is_elastic_training()
            && self.is_worker(number)
            && others.into_iter().any(|pod| pod.life().ended() != Some(Ended::Failed))
    }

    /// The first unused number of a worker: numbers only rise.
    fn next_number(&self) -> u32 {
        let workers = self.pods.iter().filter(|pod| self.is_worker(pod.number()));
        workers.map(|pod| pod.number_in_role(&self.spec) + 1).max().unwrap_or(0)
    }
}

impl State {
    /// Handles the loss of a pod's place. A worker of an elastic training becomes another pod.
    pub(super) fn relaunch(&mut self, id: Uuid, number: usize, has_failed: bool) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let goes_on = workload.completed_at.is_none() && workload.desired != Desired::Delete;
        if !goes_on || !workload.is_elastic_training() || !workload.is_worker(number) {
            return;
        }
        let next = workload.next_number();
        let Some(pod) = workload.pods.get_mut(number) else { return };
        // A pod that has not run since its last relaunch keeps its number.
        if pod.relaunch.is_none_or(|now| now.after < pod.generation) && pod.generation > 0 {
            let failures = pod.relaunch.map_or(0, |now| now.failures) + u32::from(has_failed);
            pod.relaunch = Some(Relaunch { number: next, after: pod.generation, failures });
        }
    }

    /// Starts the placed pods of an elastic training: workers as soon as the addresses of the
    /// others are known.
    pub(super) fn begin_members(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let waiting: Vec<usize> = workload
            .pods
            .iter()
            .filter(|pod| pod.life().is_assembling())
            .map(Pod::number)
            .collect();
        let leads = |workload: &Workload, number: &usize| !workload.is_worker(*number);
        let lacks =
            |number: &usize| leads(workload, number) && workload.pods[*number].port.is_none();
        // A pod that restarts keeps its port, to which the others connect.
        let lacking: Vec<usize> = waiting.iter().copied().filter(lacks).collect();
        if !lacking.is_empty() && !self.give_ports(id, &lacking) {
            return;
        }
        let workload = &self.workloads[&id];
        let mut leaders = workload.pods.iter().filter(|pod| leads(workload, &pod.number()));
        let is_led = leaders.all(|pod| pod.port.is_some());
        let begin: Vec<usize> =
            waiting.into_iter().filter(|number| is_led || leads(workload, number)).collect();
        for number in begin {
            self.start(id, number);
        }
    }
}
