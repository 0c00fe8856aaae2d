//! Reasons why nothing was moved or evicted for a job. Owns: the obstacle to each action, found in
//! isolation; the described scheduler has no texts for it. All trials are undone.

use model::{Placement, PodId, WorkloadId};
use units::{Kind, Resources};

use super::allocate::{pipeline, place_all};
use super::jobs::{self, Evicted};
use super::place::Aim;
use super::rules::{Consolidation, Preempt, Reclaim, Rule};
use super::shards;
use crate::Action;
use crate::diagnosis::refusals;
use crate::session::Session;
use reasons::Pending;
use reasons::diagnosis::{Means, Outcome, Search, Standing};

/// The reason why each action did not help.
pub(crate) fn searches(s: &mut Session<'_>, id: WorkloadId) -> Vec<Search> {
    let actions = s.policy.actions.clone();
    let searches = actions.into_iter().filter_map(|action| {
        let (means, rule): (Means, &dyn Rule) = match action {
            Action::Consolidate if Consolidation::is_on(s.policy) => {
                (Means::Consolidate, &Consolidation)
            }
            Action::Reclaim => (Means::Reclaim, &Reclaim),
            Action::Preempt => (Means::Preempt, &Preempt),
            _ => return None,
        };
        Some(Search { means, outcome: shards::of(s, id, |s| outcome(s, means, rule, id)) })
    });
    searches.collect()
}

/// Result of the rules: whether a job may be evicted for another, or the reason why not.
pub(crate) fn standing(s: &Session<'_>, id: WorkloadId, who: WorkloadId) -> Standing {
    let spec = |id: WorkloadId| &s.cluster.workloads()[id].spec;
    let own = s.queue_of(id) == s.queue_of(who);
    let rule: &dyn Rule = if own { &Preempt } else { &Reclaim };
    if !spec(who).preemptible {
        return Standing::NotPreemptible;
    }
    if own && spec(who).priority >= spec(id).priority {
        return Standing::AsImportant { priority: spec(who).priority };
    }
    let safe_until = rule.safe_until(s, id, who);
    if safe_until > s.now && !jobs::is_elastic(s, who) {
        return Standing::GuaranteedUntil(safe_until);
    }
    let tasks = jobs::next_tasks(s, id, &Evicted::new());
    if !own && !rule.may_evict(s, id, jobs::asked(s, &tasks)) {
        return Standing::NotEntitled;
    }
    Standing::MayGive
}

fn outcome(s: &mut Session<'_>, means: Means, rule: &dyn Rule, id: WorkloadId) -> Outcome {
    let until = s.patient_until(id);
    if until > s.now {
        return Outcome::Patient { until };
    }
    let asked = jobs::asked(s, &jobs::next_tasks(s, id, &Evicted::new()));
    if !rule.may_evict(s, id, asked) {
        return refused(s, means, id, asked);
    }
    let refusals = refusals(s, means, id, asked);
    let victims = rule.victims(s, id);
    if victims.is_empty() {
        return Outcome::NoVictim(refusals);
    }
    if means == Means::Consolidate {
        return Outcome::NowhereToMove;
    }
    let start = s.cluster.checkpoint();
    let freed_gpu_millis = stop(s, &victims);
    let (placeable, pods) = fitting(s, id);
    s.cluster.rollback(start);
    if placeable == pods {
        return Outcome::NotFound;
    }
    let givers = u32::try_from(victims.len()).unwrap_or(u32::MAX);
    Outcome::NotEnough { givers, freed_gpu_millis, placeable, pods, refusals }
}

/// The reason why a job may not evict at all.
fn refused(s: &Session<'_>, means: Means, id: WorkloadId, asked: Resources) -> Outcome {
    let spec = &s.cluster.workloads()[id].spec;
    let queue_refuses = s.check_queue(id, asked).err().map(|refusal| s.refused(refusal, asked));
    match (means, queue_refuses) {
        (Means::Consolidate, _) if !spec.preemptible => Outcome::OnlyPreemptible,
        (Means::Consolidate, _) => {
            let free: Resources = s.nodes().map(|(_, node)| node.free(false)).sum();
            let (kind, requested) = (Kind::Gpu, asked.gpu_millis);
            Outcome::FreeTooLittle { kind, requested, free: free.gpu_millis }
        }
        (_, Some(reason @ Pending::NonPreemptibleOverQuota { .. })) => {
            Outcome::Refused(Box::new(reason))
        }
        (Means::Reclaim | Means::Preempt, _) => {
            let own = s.queue_of(id);
            let (queue, share) = (&s.cluster.queues()[own], s.fair()[&own]);
            let beyond = |kind: &Kind| queue.allocated[*kind] + asked[*kind] > share[*kind];
            let kind = Kind::ALL.into_iter().find(beyond).unwrap_or(Kind::Gpu);
            let (queue, requested) = (s.numbers(own, kind), asked[kind]);
            Outcome::NotEntitled { queue, requested }
        }
    }
}

/// Stops all of these jobs; returns the GPU thousandths freed.
fn stop(s: &mut Session<'_>, jobs: &[WorkloadId]) -> u64 {
    let mut freed_gpu_millis = 0;
    for pod in jobs.iter().flat_map(|&job| jobs::active(s, job)).collect::<Vec<_>>() {
        let place = s.cluster.pods()[pod].binding.effective();
        freed_gpu_millis += place.map_or(0, Placement::gpu_millis);
        s.set_target(pod, None, false);
    }
    freed_gpu_millis
}

/// Number of a job's next tasks that find a place, and number of its next tasks.
fn fitting(s: &mut Session<'_>, id: WorkloadId) -> (u32, u32) {
    let none = Evicted::new();
    let tasks = jobs::next_tasks(s, id, &none);
    let reserve = |s: &mut Session<'_>, pod, to| pipeline(s, &none, pod, to);
    let count = |tasks: usize| u32::try_from(tasks).unwrap_or(u32::MAX);
    if place_all(s, id, &tasks, &|_| true, Aim::Reserve, &reserve) {
        return (count(tasks.len()), count(tasks.len()));
    }
    let place = |&pod: &PodId| place_all(s, id, &[pod], &|_| true, Aim::Reserve, &reserve);
    let placed = tasks.iter().map(place).take_while(|placed| *placed).count();
    // All fit one by one, but not within the topology constraint.
    (count(placed.min(tasks.len().saturating_sub(1))), count(tasks.len()))
}
