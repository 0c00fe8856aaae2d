//! Places kept through a failure. Owns: how long a pod whose run has failed holds the place in which
//! it restarts, that the pods that work with it hold theirs, and the bound on all such times, those
//! of a gang that lacks a pod included. Does not know about: the end of the latter (`sched`, stale
//! gangs), and the pods that take a place meanwhile.

use model::{Activity, Cluster, PodBinding, WorkloadId};
use pod_life::Input;
use reasons::Code;
use units::Instant;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::{Pod, Workload};
use view::ReasonView;
use view::codes::PLACES_KEPT;

/// Divisor of a workload's run time that gives the increase of the time for which it may keep places.
const RAN_PER_KEPT: u64 = 20;

/// A back-off before a pod restarts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    pub(super) delay_ms: u64,
    /// Number of starts of the workload after failures, this one included.
    pub(super) restarts: u32,
    /// Number of this retry, where retries are counted.
    pub(super) retry: Option<u32>,
}

impl State {
    /// Restarts a pod after a back-off: in its place, which it keeps if the back-off is short
    /// enough, or wherever there is room then. A place that would be given up before the end of the
    /// back-off is given up at once.
    pub(super) fn pause(&mut self, id: Uuid, number: usize, pause: Pause) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        workload.restarts = pause.restarts;
        let limit = workload.spec.backoff_limit;
        let keeps = self.keeps_place(id, number, pause.delay_ms);
        if keeps {
            self.pause_in_place(id, number, pause.delay_ms);
        } else {
            self.pause_anywhere(id, number, pause.delay_ms);
        }
        self.touch(id);
        let place = if keeps { " in its place" } else { "" };
        let seconds = units::format_millis(pause.delay_ms);
        let retry = pause.retry.map(|retry| format!(" (retry {retry} of {limit})"));
        let message = format!("starts again{place} in {seconds} s{}", retry.unwrap_or_default());
        self.emit(id, EventBuilder::new("BackOff", message).warning().pod(number));
    }

    /// True if a pod keeps its place through a back-off, within the maximum of one back-off and of
    /// the workload's sum.
    fn keeps_place(&self, id: Uuid, number: usize, delay_ms: u64) -> bool {
        let Some(workload) = self.workloads.get(&id) else { return false };
        let all_ms = workload.kept_ms(number).saturating_add(delay_ms);
        delay_ms <= self.settings.places_kept_ms && all_ms <= self.kept_ms_max(workload)
    }

    fn pause_in_place(&mut self, id: Uuid, number: usize, delay_ms: u64) {
        let at = self.now.plus_ms(delay_ms);
        self.happens((id, number), &Input::Pauses(at));
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        pod.kept_ms = pod.kept_ms.saturating_add(delay_ms);
        self.relaunch(id, number, false);
        self.hold_with(id, number);
        self.note_at_rest(id, Activity::Pauses);
    }

    fn pause_anywhere(&mut self, id: Uuid, number: usize, delay_ms: u64) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        // Another group may have to wait longer.
        let others = workload.not_before.filter(|_| workload.spec.is_of_groups());
        let until = self.now.plus_ms(delay_ms).max(others.unwrap_or_default());
        workload.not_before = Some(until);
        if let Some(model) = workload.model {
            self.cluster.set_not_before(model, until);
        }
        self.happens((id, number), &Input::LeavesPlace);
        self.relaunch(id, number, false);
        self.restart_with(id, number);
    }

    /// Stops the pods that would be lost without a pod, and keeps their places until it is back.
    /// Succeeded pods restart with it.
    pub(crate) fn hold_with(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        if !workload.is_lost_without(number) {
            return;
        }
        let stays = |pod: &Pod| {
            let place = self.binding(pod);
            Some((pod.model?, place.current.filter(|_| !place.releasing)?))
        };
        let gang = workload.spec.gang_with(number);
        let others = gang.iter().filter(|&&other| other != number);
        // A pod that a plan has just placed begins there with the others.
        let others = others.filter_map(|&other| workload.pods.get(other));
        let others = others.filter(|pod| pod.life().holds_place());
        let others: Vec<_> = others.filter_map(|pod| Some((pod.number(), stays(pod)?))).collect();
        for (other, (model, place)) in others {
            if self.workloads.pod(id, other).is_some_and(Pod::is_idle) {
                self.happens((id, other), &Input::Holds);
                continue;
            }
            let next = Some(place.clone());
            let again = PodBinding { current: Some(place), releasing: true, next };
            self.cluster.set_binding(model, again);
            self.evict_run(id, other);
        }
        self.rewind(id, &gang);
    }

    /// Keeps the place of a pod whose run was stopped to restart there with others. True if it was.
    pub(super) fn hold_again(&mut self, id: Uuid, number: usize) -> bool {
        let Some(pod) = self.workloads.pod(id, number) else { return false };
        let PodBinding { current: Some(place), next, .. } = self.binding(pod) else { return false };
        let Some(model) = pod.model.filter(|_| next.as_ref() == Some(&place)) else { return false };
        if self.halted || !self.workloads[&id].wants_to_run() {
            return false;
        }
        self.cluster.set_binding(model, PodBinding::at(place));
        self.placed(id, number);
        self.note_at_rest(id, Activity::Pauses);
        true
    }

    /// Records that no pod of a workload runs, if that is so: it has nothing to lose, and where it
    /// pauses no guaranteed run time either.
    pub(super) fn note_at_rest(&mut self, id: Uuid, activity: Activity) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let runs = |pod: &Pod| match activity {
            Activity::Prepares => pod.life().is_running(),
            _ => !pod.is_idle() && self.binding(pod).current.is_some(),
        };
        let Some(model) = workload.model.filter(|_| !workload.pods.iter().any(runs)) else {
            return;
        };
        self.set_activity(model, activity);
    }

    /// Records that a pod of a workload has started: in its kept place, or after preparations.
    pub(crate) fn note_begun(&mut self, id: Uuid) {
        let model = self.workloads.get(&id).and_then(|workload| workload.model);
        if let Some(model) = model.filter(|model| !self.cluster.workloads()[*model].runs()) {
            self.set_activity(model, Activity::Runs);
        }
    }

    /// Sets what a workload does. When it starts, its unsaved work counts from now.
    fn set_activity(&mut self, model: WorkloadId, activity: Activity) {
        let (now, last_resize) = (self.now, self.cluster.workloads()[model].last_resize);
        self.cluster.change_workload(model, move |cluster: &mut Cluster| {
            cluster.set_activity(model, activity);
            if activity == Activity::Runs {
                cluster.set_starts(model, Some(now), last_resize);
            }
        });
    }

    /// Counts the time in which a gang held places without enough pods once it is over, and bounds
    /// it when it begins.
    pub(crate) fn note_stale(&mut self, model: WorkloadId, before: Option<Instant>) {
        let Some(id) = self.workloads.of_model(model) else { return };
        match (before, self.cluster.workloads()[model].stale_since) {
            (None, Some(_)) => self.bound_grace(model),
            (Some(since), None) => self.count_kept(id, self.now.since_ms(since)),
            _ => {}
        }
        self.touch(id);
    }

    /// Bounds the time for which a gang that lacks pods holds places: with what it held in back-offs
    /// and before, it is within the workload's sum.
    pub(crate) fn bound_grace(&mut self, model: WorkloadId) {
        let Some(id) = self.workloads.of_model(model) else { return };
        if self.cluster.workloads()[model].stale_since.is_none() {
            return;
        }
        let workload = &self.workloads[&id];
        let kept = workload.pods.iter().map(|pod| workload.kept_ms(pod.number()));
        let left_ms = self.kept_ms_max(workload).saturating_sub(kept.max().unwrap_or_default());
        let grace_ms = left_ms.min(self.settings.places_kept_ms);
        self.cluster.change_workload(model, move |cluster: &mut Cluster| {
            cluster.set_grace(model, Some(grace_ms));
        });
    }

    /// Adds to the time for which a workload held places: for pods that restart together once.
    fn count_kept(&mut self, id: Uuid, kept_ms: u64) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let lost = |pod: &Pod| workload.is_lost_without(pod.number());
        let numbers: Vec<usize> = match workload.pods.iter().any(lost) {
            true => workload.spec.gangs().iter().filter_map(|gang| gang.first().copied()).collect(),
            false => workload.pods.iter().map(Pod::number).collect(),
        };
        for number in numbers {
            if let Some(pod) = self.workloads.pod_mut(id, number) {
                pod.kept_ms = pod.kept_ms.saturating_add(kept_ms);
            }
        }
    }

    /// Maximum time for which a workload may hold places in which nothing runs, in milliseconds.
    fn kept_ms_max(&self, workload: &Workload) -> u64 {
        let ran_ms = workload.ran_ms_until(self.now);
        self.settings.places_kept_ms.saturating_add(ran_ms / RAN_PER_KEPT)
    }

    /// The reason of a gang that lacks pods and holds places in which it cannot continue.
    pub(crate) fn keeps_places(&self, workload: &Workload) -> Option<ReasonView> {
        let model = workload.model.filter(|_| workload.wants_to_run())?;
        let model = self.cluster.workloads().get(model)?;
        let at = model.stale_since?;
        let pods = workload.pods.iter().filter(|pod| pod.model.is_some()).count();
        let Code { code, .. } = PLACES_KEPT;
        let have = if model.placed == 1 { "has a place" } else { "have places" };
        let message = format!(
            "{} of its {pods} pods {have}, too few to go on; it keeps them for a while so that the \
             others can come back",
            model.placed
        );
        Some(ReasonView { code: code.into(), message: message.into(), at })
    }
}

impl Workload {
    /// Time in back-offs and outages during which the pods that restart with this one have held
    /// places, in milliseconds.
    fn kept_ms(&self, number: usize) -> u64 {
        let gang = self.spec.gang_with(number);
        let is_of = |pod: &&Pod| match self.is_lost_without(number) {
            true => gang.contains(&pod.number()),
            false => pod.number() == number,
        };
        self.pods.iter().filter(is_of).map(|pod| pod.kept_ms).sum()
    }
}
