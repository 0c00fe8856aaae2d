//! Why nothing was moved or taken for a job. Owns: naming what stands in the way of each action, on
//! the side; the described scheduler has no words for it. What it tries it undoes.

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

/// Why each of the actions did not help.
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

/// Whether a job may be taken from for another, and why not.
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

/// Why a job may not even ask.
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

/// Stops all of these; GPU thousandths that comes free.
fn stop(s: &mut Session<'_>, jobs: &[WorkloadId]) -> u64 {
    let mut freed_gpu_millis = 0;
    for pod in jobs.iter().flat_map(|&job| jobs::active(s, job)).collect::<Vec<_>>() {
        let place = s.cluster.pods()[pod].binding.effective();
        freed_gpu_millis += place.map_or(0, Placement::gpu_millis);
        s.set_target(pod, None, false);
    }
    freed_gpu_millis
}

/// How many of a job's next tasks find a place, and how many there are.
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
    // All fit one by one, but not as close together as they must be.
    (count(placed.min(tasks.len().saturating_sub(1))), count(tasks.len()))
}
