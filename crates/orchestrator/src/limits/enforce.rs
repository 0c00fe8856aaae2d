//! Time limits: how long a workload may run, and leave its GPUs idle, before it is suspended. Owns:
//! that a workload gets a warning some time before it is stopped, also for a rule that is set while
//! it runs.
//!
//! The run time counts from the last placement of a workload: restarting in place does not reset
//! it, an eviction or a suspension does. Idle time counts from the first sample in which none of
//! its GPUs computed, and any use resets it (`control/meter/idle`).

use std::collections::BTreeSet;

use records::Desired;
use units::Instant;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::limits::{Limit, MEASURE_EVERY_MS};
use crate::state::State;
use crate::workloads::Workload;
use view::codes::{IDLE_LIMIT, TIME_LIMIT};

/// Maximum time between the warning and the end, in milliseconds; a tenth of a shorter limit.
const NOTICE_MS_MAX: u64 = 300_000;

/// Age of the last sample, in milliseconds, above which no workload is warned, or stopped, for
/// being idle.
const STALE_MS: u64 = 3 * MEASURE_EVERY_MS;

impl Limit {
    const fn code(self) -> &'static str {
        match self {
            Self::Run => TIME_LIMIT.code,
            Self::Idle => IDLE_LIMIT.code,
        }
    }

    /// Kinds of the events of the warning and of the end, and the text for the limited time.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Run => ("TimeLimitNear", "TimedOut", "it may run for"),
            Self::Idle => ("IdleLimitNear", "IdleTimedOut", "its GPUs may be idle for"),
        }
    }
}

/// A placed workload with a limit.
struct Limited {
    id: Uuid,
    by: Limit,
    since: Instant,
    limit_ms: u64,
    told_at: Option<Instant>,
    /// Earliest time of an action.
    not_before: Instant,
}

impl Limited {
    fn notice_ms(&self) -> u64 {
        (self.limit_ms / 10).min(NOTICE_MS_MAX)
    }

    /// Time of its warning, or, after that, of its end.
    fn next(&self) -> Instant {
        let end = self.since.plus_ms(self.limit_ms);
        let at = match (self.told_at, self.by) {
            (None, _) => Instant(end.0.saturating_sub(self.notice_ms())),
            (Some(told), Limit::Run) => end.max(told.plus_ms(self.notice_ms())),
            // One more sample: it may have computed since the last.
            (Some(told), Limit::Idle) => {
                end.max(told.plus_ms(self.notice_ms())).plus_ms(MEASURE_EVERY_MS)
            }
        };
        at.max(self.not_before)
    }
}

impl State {
    /// The limits of a placed workload. The owners of adopted pods decide how long these run.
    fn limits_of(&self, id: Uuid) -> impl Iterator<Item = Limited> {
        self.both_limits_of(id).into_iter().flatten().flatten()
    }

    fn both_limits_of(&self, id: Uuid) -> Option<[Option<Limited>; 2]> {
        let holds = |w: &&Workload| !w.is_adopted && w.model.is_some() && w.phase.holds();
        let workload = self.workloads.get(&id).filter(holds)?;
        let rules = self.org.effective_rules(self.org.project(workload.project_id).ok()?);
        let run_ms_max = self.run_limit_ms(workload);
        let (kind, preemptible) = (workload.spec.kind, workload.spec.preemptible);
        // Without recent samples it is not known to be still idle.
        let is_stale = self.now.since_ms(self.limits.idle.measured_at) > STALE_MS;
        let next_sample = if is_stale { self.now.plus_ms(MEASURE_EVERY_MS) } else { Instant(0) };
        let limited = |by, since, limit_ms: Option<u64>| {
            let told = self.limits.warned.get(&(id, by)).filter(|(counts, _)| *counts == since);
            let not_before = if by == Limit::Idle { next_sample } else { Instant(0) };
            let told_at = told.map(|(_, at)| *at);
            Some(Limited { id, by, since, limit_ms: limit_ms?, told_at, not_before })
        };
        let since = workload.held_since().unwrap_or(workload.phase_since);
        Some([
            limited(Limit::Run, since, run_ms_max),
            self.idle_since(workload).and_then(|since| {
                limited(Limit::Idle, since, rules.idle_ms_max(kind, preemptible))
            }),
        ])
    }

    /// Start of the idle time of a workload, as far as it is measured.
    pub(crate) fn idle_since(&self, workload: &Workload) -> Option<Instant> {
        let since = workload.held_since().unwrap_or(workload.phase_since);
        let idle = self.limits.idle.since.get(&workload.id).copied();
        // The last sample may be from before it was suspended and resumed.
        idle.filter(|at| workload.phase.holds() && *at >= since)
    }

    /// Plans the next action of limits; phases are up to date.
    pub(crate) fn plan_limits(&mut self) {
        let was_stale = self.now.since_ms(self.limits.planned.idle.measured_at) > STALE_MS;
        let changed_org = self.outbox.org_changes();
        let recomputes = changed_org.all
            || !changed_org.departments.is_empty()
            || !changed_org.projects.is_empty()
            || was_stale && self.limits.planned.idle != self.limits.idle;
        let touched = self.outbox.touched();
        let idle = self.limits.planned.idle.changed_to(&self.limits.idle);
        let changed = touched.workloads.iter().chain(touched.deleted.keys()).copied();
        let ids: BTreeSet<Uuid> = if recomputes {
            // After a start also workloads with a limit of their own must be found.
            let all = self.org.has_rules() || touched.everything;
            let running = all.then(|| self.workloads.in_model());
            let planned = self.limits.planned.at.keys().copied();
            running.into_iter().flatten().chain(planned).chain(changed).chain(idle).collect()
        } else {
            let told = self.limits.warned.keys().map(|(id, _)| *id);
            changed.chain(told).chain(self.limits.planned.due(self.now)).chain(idle).collect()
        };
        for id in ids {
            let next = self.limits_of(id).map(|one| one.next()).min();
            self.limits.planned.set(id, next);
        }
        self.limits.planned.idle = self.limits.idle.clone();
        let is_told = |(id, by): &(Uuid, Limit)| {
            self.limits_of(*id).any(|one| one.by == *by && one.told_at.is_some())
        };
        let over: Vec<_> = self.limits.warned.keys().filter(|key| !is_told(key)).copied().collect();
        for key in over {
            self.limits.warned.remove(&key);
        }
        debug_assert!(self.workloads.in_model().all(|id| self.is_planned(id)));
    }

    /// True if no action on a workload is due before the planned one.
    fn is_planned(&self, id: Uuid) -> bool {
        let next = self.limits_of(id).map(|one| one.next()).min();
        match (self.limits.planned.at.get(&id), next) {
            (Some(planned), Some(next)) => *planned <= next,
            (planned, next) => planned.is_none() && next.is_none(),
        }
    }

    /// Warns workloads whose end is near, and suspends those that have run, or were idle, up to
    /// their limit.
    pub(crate) fn enforce_limits(&mut self) {
        self.take_back_notices();
        let now = self.now;
        let due = self.limits.planned.due(now).flat_map(|id| self.limits_of(id));
        let due: Vec<Limited> = due.filter(|one| one.next() <= now).collect();
        for mut one in due {
            let (limit, code) = (seconds(one.limit_ms), one.by.code());
            let (near, over, what) = one.by.words();
            if one.told_at.is_none() {
                self.limits.warned.insert((one.id, one.by), (one.since, now));
                one.told_at = Some(now);
                let left = seconds(one.next().since_ms(now));
                let text = format!("{what} {limit} at a time; it is suspended in {left}");
                self.emit(one.id, EventBuilder::new(near, text).warning().code(code));
                continue;
            }
            let own = self.workloads.get(&one.id).and_then(|of| of.spec.time_limit_ms);
            let limited = match one.by {
                Limit::Run if own == Some(one.limit_ms) => ", its time limit",
                Limit::Run => ", the time limit of its project or department",
                Limit::Idle => " of idle GPUs, the limit of its project or department",
            };
            let message = format!("suspended after {limit}{limited}; resume it to go on");
            self.evicted(one.id, code, message.clone());
            self.set_desired(one.id, Desired::Suspend);
            self.emit(one.id, EventBuilder::new(over, message).warning().code(code));
            self.release_all(one.id);
        }
    }

    /// Withdraws warnings of workloads that compute again.
    fn take_back_notices(&mut self) {
        let idle = self.limits.idle.since.clone();
        let back = |((id, by), (since, _)): (&(Uuid, Limit), &(Instant, Instant))| {
            let computes = *by == Limit::Idle && idle.get(id) != Some(since);
            let runs = |workload: &&Workload| workload.phase.holds();
            (computes && self.workloads.get(id).filter(runs).is_some()).then_some(*id)
        };
        let back: Vec<Uuid> = self.limits.warned.iter().filter_map(back).collect();
        for id in back {
            self.limits.warned.remove(&(id, Limit::Idle));
            let text = "its GPUs compute again, or may be idle again; it is not suspended";
            self.emit(id, EventBuilder::new("IdleLimitOff", text).code(IDLE_LIMIT.code));
        }
    }
}

/// Workloads that delete themselves. The time of the end is stored, so a restart forgets none.
impl State {
    /// Deletes ended workloads whose time to live is over.
    pub(crate) fn expire_due(&mut self) {
        while let Some(&(at, id)) = self.limits.expiring.first().filter(|(at, _)| *at <= self.now) {
            self.limits.expiring.remove(&(at, id));
            let after = self.workloads.get(&id).and_then(|workload| workload.spec.delete_after_ms);
            let seconds = units::format_millis(after.unwrap_or_default());
            self.delete_itself(
                id,
                format!("ended {seconds} s ago, which is as long as it is kept"),
            );
        }
    }

    /// Deletes an evicted workload that is not to be queued again.
    pub(crate) fn delete_preempted(&mut self, id: Uuid) {
        self.delete_itself(id, "evicted for others, and not to be queued again".to_owned());
    }

    fn delete_itself(&mut self, id: Uuid, why: String) {
        let Some(workload) = self.workloads.get(&id) else { return };
        if workload.desired == Desired::Delete {
            return;
        }
        self.set_desired(id, Desired::Delete);
        self.emit(id, EventBuilder::new("Deleting", why));
        self.release_all(id);
        self.finish_deletion(id);
    }
}

fn seconds(ms: u64) -> String {
    format!("{} s", units::format_millis(ms))
}
