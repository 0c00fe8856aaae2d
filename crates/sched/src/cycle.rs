//! One decision: every action in order, inside one transaction. Owns: the order of actions and
//! the bookkeeping of starts and resizes.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cluster, Share};
use units::Instant;

use crate::actions::consolidate::Consolidation;
use crate::actions::elastic::{self, GiveBack};
use crate::actions::preempt::Preempt;
use crate::actions::reclaim::Reclaim;
use crate::actions::{allocate, drain, explain, promote, stale};
use crate::plan::step;
use crate::session::Session;
use crate::{Action, Plan, Policy, Profile, Step, kai};

/// When a search that was cut short goes on, in milliseconds.
const RETRY_MS: u64 = 1000;

/// Decides what to do now. The cluster is left as it will be when the plan has been started:
/// pods to be stopped are releasing, places are held or reserved.
///
/// Bounded by [`Policy::trials_max`] trial placements for each action. The same cluster, instant and policy give
/// the same plan.
pub fn cycle(cluster: &mut Cluster, now: Instant, policy: &Policy) -> Plan {
    let mut s = Session::begin(cluster, now, policy);
    let kai = matches!(policy.profile, Profile::Kai(_));
    if kai {
        kai::begin(&mut s);
    }
    drain::run(&mut s);
    for &action in &policy.actions {
        s.trials_left = policy.trials_max;
        if !(kai && kai::run(&mut s, action)) {
            run(&mut s, action);
        }
    }
    finish(s)
}

fn run(s: &mut Session<'_>, action: Action) {
    match action {
        Action::Promote => promote::run(s),
        Action::Allocate => allocate::run(s),
        Action::GiveBack => allocate::by_rule(s, &GiveBack),
        Action::Consolidate => allocate::by_rule(s, &Consolidation),
        Action::Reclaim => allocate::by_rule(s, &Reclaim),
        Action::Preempt => allocate::by_rule(s, &Preempt),
        Action::Stale => stale::run(s),
        Action::Fit => elastic::fit(s),
        Action::Grow => elastic::grow(s),
    }
}

fn finish(mut s: Session<'_>) -> Plan {
    let held_back = s.cluster.waiting();
    for due in held_back.map(|id| s.cluster.workloads()[id].not_before).collect::<Vec<_>>() {
        if due > s.now {
            s.wake(due);
        }
    }
    wake_when_safety_ends(&mut s);
    if let Some(window) = s.policy.usage
        && s.cluster.waiting().len() > 0
    {
        // Then the queues have other figures, and perhaps other shares.
        s.wake(window.next_step(s.now));
    }
    let reserved = s.cluster.reserved().iter().map(|&pod| s.cluster.pods()[pod].workload);
    let gated = s.cluster.gated().iter().map(|&pod| s.cluster.pods()[pod].workload);
    let waiting: BTreeSet<_> = reserved.chain(s.cluster.waiting()).chain(gated).collect();
    let mut known = BTreeMap::new();
    let pending =
        waiting.into_iter().map(|id| (id, explain::reasons(&mut s, id, &mut known))).collect();
    if s.stats.exhausted {
        // What was cut short goes on soon, but lets others have their say in between.
        s.wake(s.now.plus_ms(RETRY_MS));
    }
    let Session { cluster, now, fair, causes, stats, wake_at, .. } = s;
    let changes = cluster.commit();
    let steps: Vec<_> =
        changes.iter().map(|change| step(cluster, change, causes.get(&change.pod))).collect();
    record_times(cluster, now, &steps);
    Plan { steps, pending, shares: fair, wake_at, stats }
}

/// Somebody waits: when the next guaranteed run time ends, others may be asked again.
fn wake_when_safety_ends(s: &mut Session<'_>) {
    let guaranteed = |share: &Share| share.reclaim_min_runtime_ms.max(share.preempt_min_runtime_ms);
    let any = s.cluster.queues().iter().any(|(_, queue)| guaranteed(&queue.share) > Some(0));
    if !(any || guaranteed(&s.policy.usual_share()) > Some(0)) || s.waiting().next().is_none() {
        return;
    }
    let running = s.cluster.workloads().iter().filter(|(_, row)| row.placed > 0).map(|(id, _)| id);
    let ends = running.flat_map(|id| {
        [
            s.safe_until(id, |share| share.reclaim_min_runtime_ms),
            s.safe_until(id, |share| share.preempt_min_runtime_ms),
        ]
    });
    if let Some(next) = ends.filter(|&end| end > s.now).min() {
        s.wake(next);
    }
}

fn record_times(cluster: &mut Cluster, now: Instant, steps: &[Step]) {
    let mut stopped = BTreeSet::new();
    for step in steps {
        if let Step::Evict { pod, .. } | Step::Move { pod, .. } | Step::Resize { pod, .. } = step {
            stopped.insert(cluster.pods()[*pod].workload);
        }
        match *step {
            Step::Bind { pod, .. } => {
                let id = cluster.pods()[pod].workload;
                let last_resize = cluster.workloads()[id].last_resize;
                cluster.set_starts(id, Some(now), last_resize);
            }
            Step::Evict { pod, .. } => {
                let id = cluster.pods()[pod].workload;
                if cluster.workloads()[id].placed == 0 {
                    cluster.set_evicted(id, now);
                }
            }
            Step::Resize { pod, .. } => {
                let id = cluster.pods()[pod].workload;
                let last_start = cluster.workloads()[id].last_start;
                cluster.set_starts(id, last_start, Some(now));
            }
            _ => {}
        }
    }
    for id in stopped {
        let restarts = cluster.workloads()[id].restarts.saturating_add(1);
        cluster.set_restarts(id, restarts);
    }
}
