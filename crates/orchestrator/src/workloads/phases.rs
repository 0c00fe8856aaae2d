//! Holdings and phases of workloads. Owns: the phase that follows from places, processes and the
//! desired state, and the time spent in phases.

use model::Placement;
use pod_life::Ended;
use records::Desired;
use units::{Instant, Resources};
use uuid::Uuid;

use crate::state::State;
use crate::workloads::{Pod, Workload};
use view::Phase;

impl State {
    pub(crate) fn holds_any(&self, workload: &Workload) -> bool {
        workload.pods.iter().any(|pod| self.binding(pod).current.is_some())
    }

    /// Holdings of a workload: the places of its pods, those being moved included.
    pub(crate) fn allocated(&self, workload: &Workload) -> Resources {
        let part = |pod: &Pod| {
            let model = pod.model?;
            let binding = &self.cluster.pods().get(model)?.binding;
            binding.current.as_ref()?;
            let place: &Placement = binding.effective()?;
            Some(self.cluster.amounts(model, place))
        };
        workload.pods.iter().filter_map(part).sum()
    }

    fn phase(&self, workload: &Workload) -> Phase {
        if workload.spec.has_revisions() {
            return self.phase_of_head(workload);
        }
        let places: Vec<_> = workload.pods.iter().map(|pod| self.binding(pod)).collect();
        match workload.desired {
            // A workload that had ended keeps its phase when it is deleted.
            Desired::Delete if workload.completed_at.is_none() || self.holds_any(workload) => {
                return Phase::Deleting;
            }
            _ if workload.completed_at.is_some() => {
                let failed = workload.failed_pod().is_some();
                return if failed { Phase::Failed } else { Phase::Completed };
            }
            Desired::Suspend if places.iter().any(|place| place.current.is_some()) => {
                return Phase::Stopping;
            }
            Desired::Suspend => return Phase::Stopped,
            Desired::Run | Desired::Delete => {}
        }
        let holds = |place: &model::PodBinding| {
            place.current.is_some() && (!place.releasing || place.next.is_some())
        };
        let runs = |pod: &Pod| pod.life().is_running() || pod.life().has_succeeded();
        let mut turns = workload.pods.iter().zip(workload.turns());
        if turns.all(|(pod, turn)| runs(pod) || !turn) {
            return Phase::Running;
        }
        let take_turns = workload.spec.sets().any(|set| set.parallelism.is_some());
        let lives = |pod: &Pod| pod.life().is_running();
        // Once a pod has succeeded, the others may be few.
        let may_be_few = || workload.pods.iter().any(|pod| pod.life().has_succeeded());
        let lives = workload.pods.iter().any(lives);
        if take_turns && lives {
            Phase::Running
        } else if !take_turns && (self.is_enough(workload, runs) || (lives && may_be_few())) {
            Phase::Degraded
        } else if places.iter().any(holds) {
            Phase::Initializing
        } else {
            Phase::Pending
        }
    }

    /// Updates the phase of a workload.
    pub(crate) fn settle(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let phase = self.phase(workload);
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        if phase == workload.phase {
            return;
        }
        let span_ms = now.since_ms(workload.phase_since);
        let before = workload.phase;
        match workload.phase {
            Phase::Pending | Phase::Resuming | Phase::Initializing => workload.waited_ms += span_ms,
            Phase::Running | Phase::Degraded | Phase::Updating => workload.ran_ms += span_ms,
            _ => {}
        }
        workload.phase = phase;
        workload.phase_since = now;
        workload.note_holding(now);
        self.outbox.tally().note_phase(workload, before);
        self.touch(id);
    }
}

impl Workload {
    /// Total run time up to now, in milliseconds.
    pub(crate) fn ran_ms_until(&self, now: Instant) -> u64 {
        let runs = matches!(self.phase, Phase::Running | Phase::Degraded | Phase::Updating);
        self.ran_ms + if runs { now.since_ms(self.phase_since) } else { 0 }
    }

    pub(crate) fn failed_pod(&self) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.life().ended() == Some(Ended::Failed))
    }

    /// Cause of its failure: the exit of the failed pod, not of pods that were stopped with it.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed_pod()?.last_exit.as_deref()
    }

    /// Records since when it has held places; restarting in them, or moving to others at once, does
    /// not reset this.
    fn note_holding(&mut self, now: Instant) {
        let since = self.phase.holds().then(|| self.held_since().unwrap_or(now));
        self.pods.iter_mut().for_each(|pod| pod.held_since = since);
    }

    /// Creation time of the present run of a pod. Each run after the first counts as a pod of its
    /// own, and so does each run of a replica.
    pub(crate) fn pod_since(&self, pod: &Pod) -> Instant {
        let again = pod.generation > 1 || self.spec.revision.is_some();
        pod.placed_at.filter(|_| again).unwrap_or(self.created_at)
    }

    /// Start of the time in which it has held places without a break.
    pub(crate) fn held_since(&self) -> Option<Instant> {
        self.pods.iter().filter_map(|pod| pod.held_since).min()
    }
}
