//! Limits in time: how long a workload may run, and leave its GPUs idle, before it is suspended.
//! Owns: that a workload gets a warning some time before it is stopped, also where a rule is made
//! while it runs.
//!
//! The time to run counts from when a workload was last given places: starting again in them does
//! not restart the count, being evicted or suspended does. Idle time counts from the first sample
//! in which none of its GPUs computed, and any use restarts it (`control/meter/idle`).

use std::collections::BTreeSet;

use records::Desired;
use units::Instant;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::limits::{Limit, MEASURE_EVERY_MS};
use crate::reasons::{IDLE_LIMIT, TIME_LIMIT};
use crate::state::State;
use crate::workloads::Workload;

/// Longest time between the announcement and the end; a tenth of a shorter limit.
const NOTICE_MS_MAX: u64 = 300_000;

/// After so long without a sample no workload is warned, or stopped, for being idle.
const STALE_MS: u64 = 3 * MEASURE_EVERY_MS;

impl Limit {
    const fn code(self) -> &'static str {
        match self {
            Self::Run => TIME_LIMIT.code,
            Self::Idle => IDLE_LIMIT.code,
        }
    }

    /// The event before the end and that of the end, and what the workload has done for so long.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Run => ("TimeLimitNear", "TimedOut", "it may run for"),
            Self::Idle => ("IdleLimitNear", "IdleTimedOut", "its GPUs may be idle for"),
        }
    }
}

/// A workload that holds places, with a limit.
struct Limited {
    id: Uuid,
    by: Limit,
    since: Instant,
    limit_ms: u64,
    told_at: Option<Instant>,
    /// Nothing is done to it before.
    not_before: Instant,
}

impl Limited {
    fn notice_ms(&self) -> u64 {
        (self.limit_ms / 10).min(NOTICE_MS_MAX)
    }

    /// When it is to be told, or, once it was, to be stopped.
    fn next(&self) -> Instant {
        let end = self.since.plus_ms(self.limit_ms);
        let at = match (self.told_at, self.by) {
            (None, _) => Instant(end.0.saturating_sub(self.notice_ms())),
            (Some(told), Limit::Run) => end.max(told.plus_ms(self.notice_ms())),
            // One more look: it may have computed since the last.
            (Some(told), Limit::Idle) => {
                end.max(told.plus_ms(self.notice_ms())).plus_ms(MEASURE_EVERY_MS)
            }
        };
        at.max(self.not_before)
    }
}

impl State {
    /// The limits of a workload that holds places.
    fn limits_of(&self, id: Uuid) -> impl Iterator<Item = Limited> {
        self.both_limits_of(id).into_iter().flatten().flatten()
    }

    fn both_limits_of(&self, id: Uuid) -> Option<[Option<Limited>; 2]> {
        let holds = |workload: &&Workload| workload.model.is_some() && workload.phase.holds();
        let workload = self.workloads.get(&id).filter(holds)?;
        let rules = self.org.effective_rules(self.org.project(workload.project_id).ok()?);
        let run_ms_max = self.run_limit_ms(workload);
        let (kind, preemptible) = (workload.spec.kind, workload.spec.preemptible);
        // What has not been measured for long is not known to be idle still.
        let is_stale = self.now.since_ms(self.limits.idle.measured_at) > STALE_MS;
        let next_sample = if is_stale { self.now.plus_ms(MEASURE_EVERY_MS) } else { Instant(0) };
        let limited = |by, since, limit_ms: Option<u64>| {
            let told = self.limits.warned.get(&(id, by)).filter(|(counts, _)| *counts == since);
            let not_before = if by == Limit::Idle { next_sample } else { Instant(0) };
            let told_at = told.map(|(_, at)| *at);
            Some(Limited { id, by, since, limit_ms: limit_ms?, told_at, not_before })
        };
        let since = workload.held_since().unwrap_or(workload.phase_since);
        // The last look may be of the time before it was suspended and began again.
        let idle = self.limits.idle.since.get(&id).copied().filter(|at| *at >= since);
        Some([
            limited(Limit::Run, since, run_ms_max),
            idle.and_then(|since| {
                limited(Limit::Idle, since, rules.idle_ms_max(kind, preemptible))
            }),
        ])
    }

    /// Says when the next limit has something to do; phases have been settled.
    pub(crate) fn plan_limits(&mut self) {
        let was_stale = self.now.since_ms(self.limits.planned.idle.measured_at) > STALE_MS;
        let changed_org = self.outbox.org_changes();
        let recomputes = changed_org.all
            || !changed_org.departments.is_empty()
            || !changed_org.projects.is_empty()
            || was_stale && self.limits.planned.idle != self.limits.idle
            || self.limits.planned.idle.since != self.limits.idle.since;
        let touched = self.outbox.touched();
        let changed = touched.workloads.iter().chain(touched.deleted.keys()).copied();
        let ids: BTreeSet<Uuid> = if recomputes {
            // After a start also those with a limit of their own are to be found.
            let all = self.org.has_rules() || touched.everything;
            let running = all.then(|| self.workloads.in_model());
            let planned = self.limits.planned.at.keys().copied();
            running.into_iter().flatten().chain(planned).chain(changed).collect()
        } else {
            let told = self.limits.warned.keys().map(|(id, _)| *id);
            changed.chain(told).chain(self.limits.planned.due(self.now)).collect()
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

    /// True if nothing is to be done to a workload before it is planned.
    fn is_planned(&self, id: Uuid) -> bool {
        let next = self.limits_of(id).map(|one| one.next()).min();
        match (self.limits.planned.at.get(&id), next) {
            (Some(planned), Some(next)) => *planned <= next,
            (planned, next) => planned.is_none() && next.is_none(),
        }
    }

    /// Announces the ends that are near, and suspends what has run, or was idle, for as long as it
    /// may.
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
            let message = match one.by {
                Limit::Run => format!(
                    "suspended after {limit}, which is as long as its project or department \
                     allows; resume it to go on"
                ),
                Limit::Idle => format!(
                    "suspended after its GPUs were idle for {limit}, which is as long as its \
                     project or department allows; resume it to go on"
                ),
            };
            self.evicted(one.id, code, message.clone());
            self.set_desired(one.id, Desired::Suspend);
            self.emit(one.id, EventBuilder::new(over, message).warning().code(code));
            self.release_all(one.id);
        }
    }

    /// Says that what was announced will not happen, because it computes again.
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

/// Workloads that delete themselves. When one has ended is stored, so a restart forgets nothing.
impl State {
    /// Deletes what has ended for as long as it was to be kept.
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

    /// Deletes a workload that goes when it is evicted, and is.
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
