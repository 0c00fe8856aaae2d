//! When a workload that waits may start. Owns: how long workloads are taken to run, and saying so.
//! Does not know how that is played forward.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use api_types::StartEstimate;
use http_kit::{ApiError, run_blocking};
use orchestrator::{Error, StoredState};
use sim::{Course, Forecast};
use spec::{Restart, WorkloadKind};
use units::Instant;
use uuid::Uuid;
use view::{Phase, PodState, PodView, View, WorkloadView};

use crate::Server;

/// How long an estimate waits for its turn: an explanation is of use without it.
const TURN_WAIT: Duration = Duration::from_secs(2);
/// Fewest that have to have ended before others are taken to run as long.
const SAMPLES_MIN: usize = 5;
/// The earliest start supposes that all run as long as this part of those before them, in percent.
const SHORT_PERCENT: usize = 25;
/// And the latest start, this part.
const LONG_PERCENT: usize = 75;
/// Most workloads named whose end is not known.
const NAMES_MAX: usize = 10;

/// Between which times a workload may start, if it waits and the server has the time to find out.
/// None, too, if it does not wait any more, or where this state cannot be played forward: why it
/// waits is of use without it.
pub(crate) async fn start_estimate(
    (state, caller): (&Server, &Caller),
    workload: &WorkloadView,
) -> Result<Option<StartEstimate>, ApiError> {
    if !waits_whole(workload) {
        return Ok(None);
    }
    let turn = state.questions.forecast_within(caller, TURN_WAIT).await;
    let Some(turn) = turn else { return Ok(None) };
    let stored = state.control.stored_state().await?;
    let (view, id) = (state.control.view(), workload.id);
    // The workload may have ended since it was found.
    if !view.workloads.get(&id).is_some_and(|workload| waits_whole(workload)) {
        return Ok(None);
    }
    let work = move || estimate(stored, &view, id);
    let (estimate, _turn) = run_blocking(turn, work).await?;
    let said = |error: &Error| tracing::error!(workload = %id, %error, "no start can be estimated");
    Ok(estimate.inspect_err(said).ok())
}

/// True if no pod of a workload has a place: a forecast is about its first start.
fn waits_whole(workload: &WorkloadView) -> bool {
    workload.waits_for_a_place() && matches!(workload.phase, Phase::Pending | Phase::Resuming)
}

fn estimate(stored: StoredState, view: &View, id: Uuid) -> Result<StartEstimate, Error> {
    let now = stored.now;
    let history = History::of(view);
    let mut said = Taken::default();
    let mut fails = Course::default();
    let (mut soonest, mut known, mut latest) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut open = Vec::new();
    for workload in view.workloads.values().filter(|workload| workload.model.is_some()) {
        let failures = failures(workload, view, now);
        let all_fail = fails_whole(workload, &failures);
        fails.failures.extend(failures);
        if all_fail {
            said.failing += usize::from(workload.id != id);
            continue;
        }
        let taken = history.run_ms(view, workload, now);
        if workload.id != id {
            said.count(&taken);
        }
        soonest.insert(workload.id, taken.short_ms);
        match taken.long_ms {
            Some(ms) => {
                known.insert(workload.id, taken.short_ms);
                latest.insert(workload.id, ms);
            }
            None if workload.id != id => open.push(workload),
            None => {}
        }
    }
    let of = |ends: BTreeMap<Uuid, u64>| Course { ends, ..fails.clone() };
    let (soonest, known, latest) = (of(soonest), of(known), of(latest));
    let after = |course: &Course| {
        Ok::<_, Error>(match sim::forecast(stored.clone(), id, course)? {
            Forecast::StartsAfterMs(ms) => Some(now.plus_ms(ms).into()),
            Forecast::Never | Forecast::TooFarAhead => None,
        })
    };
    let mut earliest = after(&soonest)?;
    let mut unknown_ends = Vec::new();
    // When these end is not known: no time that follows from it can be promised.
    if earliest.is_some() && !open.is_empty() && after(&known)? != earliest {
        earliest = None;
        unknown_ends = names(open);
    }
    Ok(StartEstimate { earliest, latest: after(&latest)?, unknown_ends, assumption: said.text() })
}

/// Names of the running workloads, or of all if none runs.
fn names(mut open: Vec<&Arc<WorkloadView>>) -> Vec<String> {
    if open.iter().any(|workload| runs(workload)) {
        open.retain(|workload| runs(workload));
    }
    let name = |one: &Arc<WorkloadView>| format!("{}/{}", one.project_name, one.spec.name);
    let mut names: Vec<_> = open.into_iter().map(name).collect();
    names.sort_unstable();
    names.truncate(NAMES_MAX);
    names
}

fn runs(workload: &WorkloadView) -> bool {
    workload.pods.iter().any(|pod| pod.state.is_starting_or_running())
}

/// The pods of a workload of which the last run failed, and that have not run longer since, with the
/// length of that run in milliseconds: each further run is taken to fail as soon.
fn failures(workload: &WorkloadView, view: &View, now: Instant) -> Vec<(Uuid, u64)> {
    let revisions = workload.revisions.iter().filter_map(|id| view.revisions.get(id));
    let pods = workload.pods.iter().chain(revisions.flat_map(|revision| &revision.pods));
    let fails = |pod: &PodView| {
        let after_ms = pod.failed_after_ms?;
        let runs_ms = pod.started_at.map_or(0, |at| now.since_ms(at));
        let again = pod.state == PodState::Running && runs_ms <= after_ms;
        (pod.state.is_crash_looping() || again).then_some((pod.id, after_ms))
    };
    pods.filter_map(fails).collect()
}

/// True if no pod of a workload goes on when these fail.
fn fails_whole(workload: &WorkloadView, failures: &[(Uuid, u64)]) -> bool {
    let fails = |pod: &PodView| failures.iter().any(|(failing, _)| *failing == pod.id);
    let spec = &*workload.spec;
    let is_of_gang = |pod: &&PodView| {
        let (set, _) = spec.set_of(pod.index as usize);
        let spare = set.pods_min < set.pods || set.pod.restart != Restart::Never;
        spec.distributed.is_some() && !spare
    };
    let failing = workload.pods.iter().filter(|pod| fails(pod)).filter(is_of_gang);
    let lost: BTreeSet<_> = failing.flat_map(|pod| spec.gang_with(pod.index as usize)).collect();
    let mut placed = workload.pods.iter().filter(|pod| pod.state.is_starting_or_running());
    !failures.is_empty() && placed.all(|pod| lost.contains(&(pod.index as usize)) || fails(pod))
}

/// How long a workload is taken to run since its last start, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunTime {
    short_ms: u64,
    /// Longest run time, in milliseconds; `None` if it may run for ever.
    long_ms: Option<u64>,
    limited: bool,
}

/// How long workloads that completed ran, in order.
#[derive(Default)]
struct History {
    of_project: BTreeMap<(u64, WorkloadKind), Vec<u64>>,
    of_kind: BTreeMap<WorkloadKind, Vec<u64>>,
}

impl History {
    fn of(view: &View) -> Self {
        let Self { mut of_project, mut of_kind } = Self::default();
        for workload in view.workloads.values().filter(|one| one.phase == Phase::Completed) {
            let kind = workload.spec.kind;
            let of_project: &mut Vec<u64> =
                of_project.entry((workload.project_id, kind)).or_default();
            of_project.push(workload.ran_ms);
            of_kind.entry(kind).or_default().push(workload.ran_ms);
        }
        of_project.values_mut().chain(of_kind.values_mut()).for_each(|all| all.sort_unstable());
        Self { of_project, of_kind }
    }

    /// How long a workload is taken to run, all in all.
    fn run_ms(&self, view: &View, workload: &WorkloadView, now: Instant) -> RunTime {
        let kind = workload.spec.kind;
        let rules = view.projects.get(&workload.project_id).map(|project| project.effective_rules);
        let allowed = rules.and_then(|rules| rules.run_ms_max(kind));
        let limit = allowed.into_iter().chain(workload.spec.time_limit_ms).min();
        let placed = workload.pods.iter().filter(|pod| pod.state.is_starting_or_running());
        let started = placed.filter_map(|pod| pod.placed_at).max();
        let elapsed_ms = started.map_or(0, |at| now.since_ms(at));
        let own = self.of_project.get(&(workload.project_id, kind));
        let samples = [own, self.of_kind.get(&kind)].into_iter().flatten();
        let samples = samples.into_iter().find(|all| all.len() >= SAMPLES_MIN);
        let longer =
            samples.map_or(&[][..], |all| &all[all.partition_point(|&s| s <= elapsed_ms)..]);
        let at = |percent: usize| longer.get(longer.len() * percent / 100).copied();
        let within = |ms: u64| limit.map_or(ms, |limit| ms.min(limit));
        RunTime {
            // One of which nothing is known may end at any moment.
            short_ms: within(at(SHORT_PERCENT).unwrap_or(elapsed_ms)),
            long_ms: at(LONG_PERCENT).map(within).or(limit),
            limited: limit.is_some(),
        }
    }
}

/// Numbers of workloads by the source of their run time.
#[derive(Default)]
struct Taken {
    known: usize,
    limited: usize,
    failing: usize,
    unknown: usize,
}

impl Taken {
    fn count(&mut self, of: &RunTime) {
        match (of.long_ms, of.limited) {
            (None, _) => self.unknown += 1,
            (Some(_), true) => self.limited += 1,
            (Some(_), false) => self.known += 1,
        }
    }

    fn text(&self) -> String {
        let Self { known, limited, failing, unknown } = self;
        let mut parts = Vec::new();
        if *known > 0 {
            let run = if *known == 1 { "workload runs" } else { "workloads run" };
            parts.push(format!("{known} {run} as long as the middle half of those that completed"));
        }
        if *limited > 0 {
            let end = match limited {
                1 => "workload ends at its time limit",
                _ => "workloads end at their time limits",
            };
            parts.push(format!("{limited} {end} at the latest"));
        }
        if *failing > 0 {
            let fail = match failing {
                1 => "workload that restarts after a failure fails again",
                _ => "workloads that restart after failures fail again",
            };
            parts.push(format!("{failing} {fail}"));
        }
        if *unknown > 0 {
            let which = if *unknown == 1 { "workload" } else { "workloads" };
            parts.push(format!("the end of {unknown} {which} cannot be estimated"));
        }
        parts.insert(0, "nothing else is submitted".to_owned());
        parts.join("; ")
    }
}
