//! Limits in time: how long a workload may run before it is suspended. Owns: that nobody is stopped
//! who was not told some time before, also where a rule is made while it runs.
//!
//! A limit counts from when a workload was last given places: starting again in them does not begin
//! it anew, being evicted or suspended does.

use store::Desired;
use units::Instant;
use uuid::Uuid;

use crate::reasons::TIME_LIMIT;
use crate::state::{News, Project, State, Workload};
use crate::view::Rules;

/// Longest time between the announcement and the end; a tenth of a shorter limit.
const NOTICE_MS_MAX: u64 = 300_000;

/// A workload that holds places, with a limit.
struct Limited {
    id: Uuid,
    since: Instant,
    limit_ms: u64,
    told_at: Option<Instant>,
}

impl Limited {
    fn notice_ms(&self) -> u64 {
        (self.limit_ms / 10).min(NOTICE_MS_MAX)
    }

    /// When it is to be told, or, once it was, to be stopped.
    fn next(&self) -> Instant {
        let end = self.since.plus_ms(self.limit_ms);
        match self.told_at {
            None => Instant(end.0.saturating_sub(self.notice_ms())),
            Some(told) => end.max(told.plus_ms(self.notice_ms())),
        }
    }
}

impl State {
    /// The rules of a project and of its department.
    pub(crate) fn effective_rules(&self, project: &Project) -> Rules {
        let department = self.departments.get(&project.department_id);
        project.unit.rules.and(department.map(|found| found.unit.rules).unwrap_or_default())
    }

    /// Everything that holds places and has a limit. Costs nothing where there are no rules.
    fn limited(&self) -> Vec<Limited> {
        let any = self.projects.values().any(|one| one.unit.rules != Rules::default())
            || self.departments.values().any(|one| one.unit.rules != Rules::default());
        let running = self.by_model.values().filter(|_| any);
        let limited = running.filter_map(|id| {
            let holds = |w: &&Workload| w.phase.holds();
            let workload = self.workloads.get(id).filter(holds)?;
            let rules = self.effective_rules(self.projects.get(&workload.project_id)?);
            let since = workload.held_since().unwrap_or(workload.phase_since);
            let told = self.warned.get(id).filter(|(ran, _)| *ran == since);
            Some(Limited {
                id: *id,
                since,
                limit_ms: rules.run_ms_max(workload.spec.kind)?,
                told_at: told.map(|(_, at)| *at),
            })
        });
        limited.collect()
    }

    /// Says when the next limit has something to do; phases have been settled.
    pub(crate) fn plan_run_limits(&mut self) {
        let limited = self.limited();
        self.limit_at = limited.iter().map(Limited::next).min();
        if !self.warned.is_empty() {
            let told = limited.into_iter().filter(|one| one.told_at.is_some());
            let told: std::collections::BTreeSet<_> = told.map(|one| one.id).collect();
            self.warned.retain(|id, _| told.contains(id));
        }
    }

    /// Announces the ends that are near, and suspends what has run for as long as it may.
    pub(crate) fn enforce_run_limits(&mut self) {
        let now = self.now;
        if self.limit_at.is_none_or(|at| at > now) {
            return;
        }
        for mut one in self.limited().into_iter().filter(|one| one.next() <= now) {
            let limit = seconds(one.limit_ms);
            if one.told_at.is_none() {
                self.warned.insert(one.id, (one.since, now));
                one.told_at = Some(now);
                let left = seconds(one.next().since_ms(now));
                let text = format!("it may run for {limit} at a time; it is suspended in {left}");
                self.say(one.id, News::new("TimeLimitNear", text).warning().code(TIME_LIMIT.code));
                continue;
            }
            let message = format!(
                "suspended after {limit}, which is as long as its project or department allows; \
                 resume it to go on"
            );
            self.evicted(one.id, TIME_LIMIT.code, message.clone());
            self.set_desired(one.id, Desired::Suspend);
            self.say(one.id, News::new("TimedOut", message).warning().code(TIME_LIMIT.code));
            self.release_all(one.id);
        }
    }
}

fn seconds(ms: u64) -> String {
    format!("{} s", units::format_millis(ms))
}
