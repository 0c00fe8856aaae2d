//! Elastic trainings: a master, parameter servers, and workers that come and go. Owns: that each of
//! their pods begins as soon as it has its place, that a worker which has lost it begins again as
//! another pod, with a number that none has had, and what the end of one means for the others. Does
//! not know about: what they train, and who takes their places.

use records::{Desired, Relaunch};
use spec::{BACKOFF_LIMIT_DEFAULT, Exit, Framework, WORKER};
use uuid::Uuid;

use crate::state::State;
use crate::workloads::{Ended, Pod, Workload};

/// A process that ran so long was well: what follows counts as its first failure.
pub(super) const WELL_MS: u64 = 600_000;
/// The exit codes of a process that a shell saw being killed: by SIGKILL, and by SIGTERM, after
/// which workers hand back and a master saves the model.
const KILLED: [i32; 2] = [137, 143];

/// True if a run has ended because someone killed it, which says nothing against it.
pub(super) fn was_killed(exit: &Exit) -> bool {
    match exit {
        Exit::Signal(_) => true,
        Exit::Code(code) => KILLED.contains(code),
        _ => false,
    }
}

/// What follows from the end of a pod that was not asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It has failed for good.
    Fails,
    /// It begins again as another pod, wherever there is room.
    AsAnother,
    /// It begins again in its place.
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

    /// What follows from a bad end; none where nothing is different from other workloads. Whether
    /// the training goes on without it is another question ([`Self::goes_on_without`]).
    pub(super) fn after_failure(&self, number: usize, exit: &Exit, ran_ms: u64) -> Option<Next> {
        if !self.is_elastic_training() {
            return None;
        }
        let failures = self.pods[number].relaunch.map_or(0, |now| now.failures);
        match (self.is_worker(number), exit) {
            (_, Exit::CannotRun(_) | Exit::NotKept(_) | Exit::NotStarted(_)) => None,
            (_, Exit::Lost | Exit::Code(0)) => None,
            // One that begins again would need as much.
            (true, Exit::OutOfMemory | Exit::OutOfDisk(_)) => Some(Next::Fails),
            (true, _) if was_killed(exit) => Some(Next::AsAnother),
            (true, _) if failures < self.spec.backoff_limit => Some(Next::AsAnother),
            (true, _) => Some(Next::Fails),
            // A master that ends says how the training has ended, and a parameter server that ends
            // that it cannot go on; one that was killed goes on where its files are.
            (false, Exit::Code(_)) if !was_killed(exit) => Some(Next::Fails),
            (false, _) if ran_ms >= WELL_MS => Some(Next::InPlace),
            (false, _) if self.pods[number].failures < BACKOFF_LIMIT_DEFAULT => Some(Next::InPlace),
            (false, _) => Some(Next::Fails),
        }
    }

    /// True if it goes on although this pod has failed for good: a training does as long as one of
    /// its workers has not.
    pub(super) fn goes_on_without(&self, number: usize) -> bool {
        let others = self.pods.iter().filter(|pod| self.is_worker(pod.number()));
        self.is_elastic_training()
            && self.is_worker(number)
            && others.into_iter().any(|pod| pod.ended != Some(Ended::Failed))
    }

    /// The first number that no worker has had: numbers only rise.
    fn next_number(&self) -> u32 {
        let workers = self.pods.iter().filter(|pod| self.is_worker(pod.number()));
        workers.map(|pod| pod.number_in_role(&self.spec) + 1).max().unwrap_or(0)
    }
}

impl State {
    /// A pod has lost its place. A worker of an elastic training is another pod from now on.
    pub(super) fn relaunch(&mut self, id: Uuid, number: usize, has_failed: bool) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let goes_on = workload.completed_at.is_none() && workload.desired != Desired::Delete;
        if !goes_on || !workload.is_elastic_training() || !workload.is_worker(number) {
            return;
        }
        let next = workload.next_number();
        let Some(pod) = workload.pods.get_mut(number) else { return };
        // One that never ran as the pod that it is still is that pod.
        if pod.relaunch.is_none_or(|now| now.after < pod.generation) && pod.generation > 0 {
            let failures = pod.relaunch.map_or(0, |now| now.failures) + u32::from(has_failed);
            pod.relaunch = Some(Relaunch { number: next, after: pod.generation, failures });
        }
    }

    /// Begins the pods of an elastic training that have their places: workers as soon as it is
    /// known where the others are.
    pub(super) fn begin_members(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let waiting: Vec<usize> =
            workload.pods.iter().filter(|pod| pod.waits_for_others).map(Pod::number).collect();
        let leads = |workload: &Workload, number: &usize| !workload.is_worker(*number);
        let lacks =
            |number: &usize| leads(workload, number) && workload.pods[*number].port.is_none();
        // One that comes again is where the others look for it.
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
