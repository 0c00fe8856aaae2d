//! Reasons why nothing was moved or evicted for a workload. Owns: trying each action to its bounds,
//! in isolation, and naming the bound that it hit. All trials are undone.

use std::collections::{BTreeMap, BTreeSet};

use model::{Share, WorkloadId};
use units::{Instant, Kind, Resources};

use super::holders::{holds_any_where_it_may_go, standings};
use crate::actions::consolidate::Consolidation;
use crate::actions::explain::not_counted;
use crate::actions::preempt::Preempt;
use crate::actions::reclaim::Reclaim;
use crate::entitlement::not_entitled;
use crate::session::Session;
use crate::victims::{NodeCostCache, Rule, SETS_OF_ONE, make_room, needs_others, take};
use crate::{Action, Policy};
use reasons::diagnosis::{Means, Outcome, Refusals, Search, Standing};

/// The reason why each action did not help.
pub(super) fn searches(s: &mut Session<'_>, id: WorkloadId) -> Vec<Search> {
    let actions = s.policy.actions.clone();
    let searches = actions.into_iter().filter_map(|action| {
        let (means, outcome) = match action {
            Action::Consolidate => (Means::Consolidate, moving(s, id)),
            Action::Reclaim => (Means::Reclaim, taking(s, &Reclaim, Means::Reclaim, id)),
            Action::Preempt => (Means::Preempt, taking(s, &Preempt, Means::Preempt, id)),
            _ => return None,
        };
        Some(Search { means, outcome })
    });
    searches.collect()
}

fn common(s: &mut Session<'_>, id: WorkloadId) -> Option<Outcome> {
    let refused = s.check_queue(id, s.ask(id, None)).is_err();
    if !refused && not_counted(s, id).is_some_and(|(_, starts)| !starts) {
        return Some(Outcome::NotCounted);
    }
    let until = s.patient_until(id);
    (until > s.now).then_some(Outcome::Patient { until })
}

fn moving(s: &mut Session<'_>, id: WorkloadId) -> Outcome {
    if let Some(outcome) = common(s, id) {
        return outcome;
    }
    let asked = s.ask(id, None);
    if let Err(refusal) = s.check_queue(id, asked) {
        return Outcome::Refused(Box::new(s.refused(refusal, asked)));
    }
    let free = s.cluster.free_soon();
    if let Some(kind) = Kind::ALL.into_iter().find(|&kind| asked[kind] > free[kind]) {
        return Outcome::FreeTooLittle { kind, requested: asked[kind], free: free[kind] };
    }
    if !holds_any_where_it_may_go(s, id) {
        return Outcome::NothingInTheWay;
    }
    let unbounded = Policy { consolidation_moves_max: usize::MAX, ..s.policy.clone() };
    let mut side = s.cluster.clone();
    let Some(moves) = moves_needed(&mut side, s.now, &unbounded, id) else {
        return Outcome::NowhereToMove;
    };
    Outcome::MovesMax { moves, moves_max: s.policy.consolidation_moves_max }
}

/// The number of workloads to move if any number were allowed; `None` if that does not help either.
fn moves_needed(
    cluster: &mut model::Cluster,
    now: Instant,
    policy: &Policy,
    id: WorkloadId,
) -> Option<u32> {
    let _ = cluster.commit();
    let mut s = Session::begin(cluster, now, policy);
    s.trials_left = policy.trials_max;
    let helps = make_room(&mut s, &Consolidation, &mut NodeCostCache::default(), id, None);
    let moved = s.causes.keys().map(|&pod| s.cluster.pods()[pod].workload);
    let moved: BTreeSet<_> = moved.collect();
    helps.then(|| u32::try_from(moved.len()).unwrap_or(u32::MAX))
}

fn taking(s: &mut Session<'_>, rule: &dyn Rule, means: Means, id: WorkloadId) -> Outcome {
    if let Some(outcome) = common(s, id) {
        return outcome;
    }
    let start = s.cluster.checkpoint();
    let outcome = take_all(s, rule, means, id);
    s.cluster.rollback(start);
    outcome
}

/// Evicts all that the rule allows, and finds out which pods then fit.
fn take_all(s: &mut Session<'_>, rule: &dyn Rule, means: Means, id: WorkloadId) -> Outcome {
    let asked = s.ask(id, None);
    let refusals = refusals(s, means, id, asked);
    let queue = s.queue_of(id);
    let held_before = s.cluster.queues()[queue].held();
    let mut givers: BTreeMap<WorkloadId, u64> = BTreeMap::new();
    let clear = |s: &Session<'_>| s.check_queue(id, asked).is_ok() && rule.may_evict(s, id, asked);
    if !clear(s) {
        let mut own = s.workloads_below(s.refusing_queue(id, asked));
        own.retain(|&who| who != id && rule.own_gives_way(s, id, who));
        own.sort_by_key(|&who| std::cmp::Reverse(crate::rank::by_rank(s.cluster, who)));
        for who in own {
            if clear(s) {
                break;
            }
            give(s, rule, id, asked, who, &mut givers);
        }
    }
    if let Err(refusal) = s.check_queue(id, asked) {
        return Outcome::Refused(Box::new(s.refused(refusal, asked)));
    }
    if let Some(kind) = not_entitled(s, id, asked).filter(|_| !rule.may_evict(s, id, asked)) {
        return Outcome::NotEntitled { queue: s.numbers(queue, kind), requested: asked[kind] };
    }
    let mut others: Vec<_> = s.cluster.workloads().ids().filter(|&who| who != id).collect();
    others.retain(|&who| s.shares_pool(id, who) && rule.is_victim(s, id, who));
    others.sort_by_key(|&who| std::cmp::Reverse(crate::rank::by_rank(s.cluster, who)));
    for who in others {
        give(s, rule, id, asked, who, &mut givers);
    }
    // A workload larger than the claim takes only the surplus over the claims of others.
    let takes_nothing = givers.is_empty() && means == Means::Reclaim;
    if let Some(kind) = not_entitled(s, id, asked).filter(|_| takes_nothing) {
        return Outcome::NotEntitled { queue: s.numbers(queue, kind), requested: asked[kind] };
    }
    let pods = s.next_pods(id);
    let mut placeable = 0;
    for &pod in &pods {
        let ask = s.requirements(pod, None);
        if let Some(to) = s.find(ask, false) {
            s.set_target(pod, Some(to), false);
            placeable += 1;
        }
    }
    if givers.is_empty() {
        return Outcome::NoVictim(refusals);
    }
    if (placeable as usize) < pods.len() && needs_others(s, id) {
        let givers = u32::try_from(givers.len()).unwrap_or(u32::MAX);
        return Outcome::NotFoundInSets { givers, sets_max: SETS_OF_ONE };
    }
    if (placeable as usize) < pods.len() {
        return Outcome::NotEnough {
            givers: u32::try_from(givers.len()).unwrap_or(u32::MAX),
            freed_gpu_millis: givers.values().sum(),
            placeable,
            pods: u32::try_from(pods.len()).unwrap_or(u32::MAX),
            refusals,
        };
    }
    if !rule.fair_outcome(s, id, held_before) {
        let kind = Kind::ALL.into_iter().find(|&kind| asked[kind] > 0).unwrap_or(Kind::Gpu);
        return Outcome::Unfair { queue: s.numbers(queue, kind) };
    }
    Outcome::NotFound
}

/// Evicts as much of a workload as the rule allows.
fn give(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    id: WorkloadId,
    asked: Resources,
    who: WorkloadId,
    givers: &mut BTreeMap<WorkloadId, u64>,
) {
    let held = |s: &Session<'_>| -> u64 {
        let pods = s.cluster.workloads()[who].pods.iter();
        let places = pods.filter_map(|&pod| s.cluster.pods()[pod].binding.effective());
        places.map(model::Placement::gpu_millis).sum()
    };
    let before = held(s);
    for piece in rule.eviction_units(s, id, who) {
        if !rule.just(s, id, asked, who, piece) {
            break;
        }
        take(s, piece);
        *givers.entry(who).or_default() = before - held(s);
    }
}

/// Counts of the workloads that may not be evicted, among those that the action considers.
pub(crate) fn refusals(
    s: &Session<'_>,
    means: Means,
    id: WorkloadId,
    asked: Resources,
) -> Refusals {
    let mut refusals = Refusals::default();
    let own = |who: WorkloadId| s.queue_of(who) == s.queue_of(id);
    let asks = |who: &WorkloadId| {
        s.shares_pool(id, *who)
            && match means {
                Means::Consolidate => true,
                Means::Reclaim => !own(*who),
                Means::Preempt => own(*who),
            }
    };
    for (_, standing) in standings(s, id, asked).filter(|(who, _)| asks(who)) {
        match standing {
            Standing::MayGive | Standing::NotEntitled | Standing::OtherRevision => {}
            Standing::NotPreemptible => refusals.not_preemptible += 1,
            Standing::AsImportant { .. } => refusals.as_important += 1,
            Standing::WithinItsShare => refusals.within_share += 1,
            Standing::TurnUntil(_) => refusals.in_turn += 1,
            Standing::KeepsQuota => refusals.keep_quota += 1,
            Standing::LessImportantFirst => refusals.less_important_first += 1,
            Standing::GuaranteedUntil(until) => {
                refusals.guaranteed += 1;
                let first = refusals.guaranteed_until.map_or(until, |first| first.min(until));
                refusals.guaranteed_until = Some(first);
            }
        }
    }
    refusals
}

/// Times at which something that keeps the workload waiting may change by itself: ends of
/// guaranteed run times and of its own delays.
pub(super) fn times(s: &Session<'_>, id: WorkloadId) -> Vec<Instant> {
    let running = s.cluster.workloads().iter().filter(|(_, row)| row.placed > 0);
    let guaranteed = running.flat_map(|(who, _)| {
        [
            s.safe_until(who, |share: &Share| share.reclaim_min_runtime_ms),
            s.safe_until(who, |share: &Share| share.preempt_min_runtime_ms),
        ]
    });
    let own = [s.patient_until(id), s.cluster.workloads()[id].not_before];
    let times: BTreeSet<_> = guaranteed.chain(own).filter(|&at| at > s.now).collect();
    times.into_iter().collect()
}
