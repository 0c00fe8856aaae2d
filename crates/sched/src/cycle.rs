//! One decision: every action in order, inside one transaction. Owns: the order of actions and
//! the bookkeeping of starts and resizes.

use std::collections::{BTreeMap, BTreeSet};

use model::{Change, Cluster, Workload};
use units::Instant;

use crate::actions::{self, drain, explain};
use crate::entitlement::{next_turn, turn_of};
#[cfg(feature = "kai")]
use crate::kai;
use crate::knowledge::{Knowledge, QuietCycle};
use crate::memory::Memory;
use crate::session::Session;
use crate::session::reserve::{self, Reservations};
use crate::victims::{NodeCostCache, SETS_MAX};
use crate::{Action, Plan, Policy, Profile, Step};
use reasons::ClassId;
use reasons::plan::step;

/// Time until a search that was cut short continues, in milliseconds.
const RETRY_MS: u64 = 1000;

/// Makes a decision. The cluster is left in the state after the plan has been started: pods to be
/// stopped are releasing, places are held or reserved.
///
/// Bounded by [`Policy::trials_max`] trial placements for each action. Equal cluster, instant and
/// policy give equal plans.
pub fn cycle(cluster: &mut Cluster, now: Instant, policy: &Policy) -> Plan {
    let mut memory = Memory::default();
    let mut plan = memory.cycle(cluster, now, policy);
    plan.pending.retain(|_, waits| !waits.is_empty());
    // A single plan has no earlier ones to which class numbers could refer.
    plan.pending.values_mut().for_each(|waits| waits.class = None);
    plan.is_renumbered = false;
    plan.shares = memory.known.into_shares();
    plan
}

impl Memory {
    /// Decides like [`cycle`], and keeps its findings, like [`Memory::propose`].
    pub fn cycle(&mut self, cluster: &mut Cluster, now: Instant, policy: &Policy) -> Plan {
        let plan = self.propose(cluster, now, policy);
        carry(cluster, now, &plan);
        plan
    }

    /// Computes a plan and leaves the cluster unchanged; [`carry`] carries the plan out. Findings
    /// of earlier decisions are reused. The plan has only new reasons to wait: none for a workload
    /// that no longer waits after the plan. The fair shares of queues are in [`Memory::shares`].
    pub fn propose(&mut self, cluster: &mut Cluster, now: Instant, policy: &Policy) -> Plan {
        let known = &mut self.known;
        let news = known.learn(cluster, now, policy);
        known.quiet = known.quiet.take().filter(|quiet| {
            let rests = quiet.wake_at.is_none_or(|at| now < at);
            rests && quiet.revision == cluster.state_revision() && news.is_more_of_the_same
        });
        if let Some(quiet) = self.known.quiet.clone() {
            if news.classes.is_empty() {
                return nothing_new(&mut self.known, &quiet);
            }
            if let Some(plan) = self.only_new(cluster, now, policy, &quiet, news.classes) {
                return plan;
            }
        }
        let Self { known, least_costs } = self;
        known.quiet = None;
        least_costs.clear();
        let mut s = Session::resume(std::mem::take(known), cluster, now, policy);
        let start = s.cluster.checkpoint();
        act(&mut s, least_costs);
        if s.cluster.changed_since(start).next().is_some() {
            // Costs were computed in the changed state, which may have been restored since.
            least_costs.clear();
        }
        let plan;
        (plan, *known) = finish(s);
        plan
    }

    /// Tries only these classes; `None` if one of them can be placed, because then everything has
    /// to be tried.
    fn only_new(
        &mut self,
        cluster: &mut Cluster,
        now: Instant,
        policy: &Policy,
        quiet: &QuietCycle,
        classes: BTreeSet<ClassId>,
    ) -> Option<Plan> {
        let Self { known, least_costs } = self;
        let room = policy.reservations_max.saturating_mul(reserve::TRIES);
        let trials = quiet.trials.saturating_add(TRIALS_OF_CLASS * classes.len() as u64);
        if quiet.due + classes.len() > room || trials > policy.trials_max {
            return None;
        }
        known.only = Some(classes);
        let mut s = Session::resume(std::mem::take(known), cluster, now, policy);
        least_costs.values_mut().for_each(|costs| costs.resume(&s));
        let start = s.cluster.checkpoint();
        act(&mut s, least_costs);
        let is_blocked = s.cluster.changed_since(start).next().is_none()
            && !s.stats.exhausted
            && !s.is_room_kept();
        if !is_blocked {
            s.cluster.abort();
            *known = std::mem::take(&mut s.known);
            known.only = None;
            known.follow(cluster, now);
            return None;
        }
        let earlier = quiet.wake_at;
        s.wake_at = s.wake_at.into_iter().chain(earlier).min();
        let plan;
        (plan, *known) = finish(s);
        Some(plan)
    }
}

/// A plan without changes: all workloads wait, new ones for the reasons of their class.
fn nothing_new(known: &mut Knowledge, quiet: &QuietCycle) -> Plan {
    let mut plan = Plan { wake_at: quiet.wake_at, ..Plan::default() };
    known.tell_fresh(&mut plan);
    plan
}

/// Maximum number of trials of one class in an action: one in each of its node pools, and a margin.
const TRIALS_OF_CLASS: u64 = 1000;

fn act(s: &mut Session<'_>, least_costs: &mut BTreeMap<Action, NodeCostCache>) {
    #[cfg(not(feature = "kai"))]
    let run = actions::run;
    #[cfg(feature = "kai")]
    let run = match s.policy.profile {
        Profile::Default => actions::run,
        Profile::Kai(_) => {
            kai::begin(s);
            kai::run
        }
    };
    let round = |s: &mut Session<'_>, least_costs: &mut BTreeMap<Action, NodeCostCache>| {
        for &action in &s.policy.actions {
            s.trials_left = s.policy.trials_max;
            s.sets_left = SETS_MAX;
            run(s, action, least_costs.entry(action).or_default());
        }
    };
    drain::run(s);
    round(s, least_costs);
    match s.policy.profile {
        Profile::Default => {
            for _ in 0..ROUNDS_MORE_MAX {
                if !starts_exposed_work(s) {
                    break;
                }
                let before = s.cluster.state_revision();
                s.reservations = Reservations::default();
                least_costs.clear();
                round(s, least_costs);
                if s.cluster.state_revision() == before {
                    break;
                }
            }
            leave_running(s);
            start_whole(s);
        }
        Profile::Kai(_) => {
            #[cfg(feature = "kai")]
            kai::end(s);
        }
    }
}

/// Maximum number of times that the actions of a decision are repeated because of workloads that it
/// starts.
const ROUNDS_MORE_MAX: usize = 2;

/// `true` if the next decision, at the same instant, could stop a workload that this decision
/// starts: others were stopped after it was placed, or it is in reserved room, and the reservation
/// moves elsewhere.
fn starts_exposed_work(s: &Session<'_>) -> bool {
    let starts =
        |change: &Change| change.before.current.is_none() && s.cluster.pods()[change.pod].runs();
    (!s.causes.is_empty() || s.is_room_kept()) && s.cluster.proposed().iter().any(starts)
}

/// Puts back workloads that were stopped for a beneficiary which has lost the place in this
/// decision to a smaller workload, if they fit where they still run.
fn leave_running(s: &mut Session<'_>) {
    let stopped = s.causes.iter().filter(|(_, cause)| cause.takes());
    let stopped = stopped.map(|(&pod, _)| s.cluster.pods()[pod].workload);
    let mut stopped: Vec<_> = stopped.collect::<BTreeSet<_>>().into_iter().collect();
    stopped.sort_by_key(|&id| crate::rank::by_rank(s.cluster, id));
    for id in stopped {
        while s.put_back(id, &[]) {}
    }
}

/// Makes pods of a gang that got places in this cycle wait as long as one of its pods waits for its
/// place and the others are fewer than its minimum: a gang never starts in part.
fn start_whole(s: &mut Session<'_>) {
    let started = |change: &Change| {
        let row = &s.cluster.pods()[change.pod];
        (change.before.current.is_none() && row.runs()).then_some(row.workload)
    };
    let started: BTreeSet<_> = s.cluster.proposed().iter().filter_map(started).collect();
    for id in started {
        let pods = s.cluster.workloads()[id].pods.clone();
        let one_waits = pods.iter().any(|&pod| s.cluster.pods()[pod].binding.next.is_some());
        if !one_waits || s.cluster.runs(id) {
            continue;
        }
        for pod in pods {
            if let Some(to) = s.cluster.pods()[pod].binding.effective().cloned() {
                s.set_target(pod, Some(to), false);
            }
        }
    }
}

fn finish(mut s: Session<'_>) -> (Plan, Knowledge) {
    s.follow();
    if let Some(&(due, _)) = s.known.resting.first() {
        s.wake(due);
    }
    wake_when_safety_ends(&mut s);
    wake_when_turns_end(&mut s);
    if let Some(window) = s.policy.usage
        && s.cluster.waiting().len() > 0
    {
        // Usage, and perhaps shares, change then.
        s.wake(window.next_step(s.now));
    }
    let told = explain::all(&mut s);
    if s.stats.exhausted {
        // A search that was cut short continues soon, with time for other inputs in between.
        s.wake(s.now.plus_ms(RETRY_MS));
    }
    let earlier = s.known.quiet.take();
    let quiet = s.rests(earlier);
    let Session { cluster, now, mut known, causes, stale, stats, wake_at, .. } = s;
    let changes = cluster.proposed();
    let steps: Vec<_> =
        changes.iter().map(|change| step(cluster, change, causes.get(&change.pod))).collect();
    cluster.abort();
    known.only = None;
    known.follow(cluster, now);
    known.quiet = quiet.filter(|_| steps.is_empty() && stale.is_empty());
    if let Some(quiet) = &mut known.quiet {
        quiet.revision = cluster.state_revision();
    }
    (Plan { steps, stale, wake_at, stats, ..told }, known)
}

/// While workloads wait: wakes at the end of the next guaranteed run time, to find new victims.
fn wake_when_safety_ends(s: &mut Session<'_>) {
    if !s.guarantees_time() || s.waiting().next().is_none() {
        return;
    }
    let running = s.cluster.queues().iter().flat_map(|(_, queue)| &queue.placed).copied();
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

/// While workloads wait: wakes when the next turn begins or ends, to find new victims, and when
/// kept room may be lent.
fn wake_when_turns_end(s: &mut Session<'_>) {
    if s.waiting().next().is_none() {
        return;
    }
    let ends = s.cluster.queues().ids().filter_map(|queue| turn_of(s, queue)).min();
    if let Some(next) = ends.into_iter().chain(next_turn(s)).chain(s.next_loan()).min() {
        s.wake(next);
    }
}

/// Carries out a plan, on the cluster that it was made for, or on one that differs only where no
/// step applies.
///
/// # Panics
/// A step exceeds a capacity.
pub fn carry(cluster: &mut Cluster, now: Instant, plan: &Plan) {
    cluster.begin();
    for step in &plan.steps {
        let pod = step.pod();
        let after = step.taken(&cluster.pods()[pod].binding);
        cluster.set_binding(pod, after);
    }
    cluster.commit();
    record_times(cluster, now, &plan.steps);
    for (&id, &since) in &plan.stale {
        cluster.set_stale(id, since);
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
            Step::Resize { pod, ref from, ref to, .. } => {
                let id = cluster.pods()[pod].workload;
                let Workload { last_start, shrinks, .. } = cluster.workloads()[id];
                cluster.set_starts(id, last_start, Some(now));
                if to.devices.len() < from.devices.len() {
                    cluster.set_shrinks(id, shrinks.with_one_more(now));
                }
            }
            _ => {}
        }
    }
    for id in stopped {
        let restarts = cluster.workloads()[id].restarts.saturating_add(1);
        cluster.set_restarts(id, restarts);
    }
}
