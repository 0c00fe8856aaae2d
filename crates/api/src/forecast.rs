//! When a workload that waits may start. Owns: how long workloads are taken to run, and saying so.
//! Does not know how that is played forward.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::StartEstimate;
use http_kit::{ApiError, run_blocking};
use orchestrator::view::{Phase, View, WorkloadKind, WorkloadView};
use sim::Forecast;
use sim::scenario::Scenario;
use sim::scenario::amount::Span;
use units::Instant;

use crate::Server;

/// How long an estimate waits for its turn: an explanation is of use without it.
const TURN_WAIT: Duration = Duration::from_secs(2);
/// Fewest that have to have ended before others are taken to run as long.
const SAMPLES_MIN: usize = 5;
/// The earliest start supposes that all run as long as this part of those before them, in percent.
const SHORT_PERCENT: usize = 25;
/// And the latest start, this part.
const LONG_PERCENT: usize = 75;

/// Between which times a workload may start, if it waits and the server has the time to find out.
/// None, too, if it does not wait any more, or where this state cannot be played forward: why it
/// waits is of use without it.
pub(crate) async fn start_estimate(
    state: &Server,
    workload: &WorkloadView,
) -> Result<Option<StartEstimate>, ApiError> {
    if !workload.waits_for_a_place() {
        return Ok(None);
    }
    let turn = tokio::time::timeout(TURN_WAIT, state.forecasting.clone().acquire_owned()).await;
    let Ok(turn) = turn else { return Ok(None) };
    let turn = turn.map_err(ApiError::internal)?;
    let seen = state.control.scheduling_state().await?;
    // It may have ended since it was found. An inference is known here by its newest revision.
    let view = state.control.view();
    let model = view.workloads.get(&workload.id).and_then(|workload| workload.model);
    let there = |id: &_| seen.cluster.workloads().get(*id).is_some();
    let Some(waiting) = model.filter(there) else { return Ok(None) };
    let work = move || {
        let scenario = sim::snapshot(&seen.cluster, seen.now, &seen.policy);
        let spec = &seen.cluster.workloads()[waiting].spec;
        let project = &seen.cluster.queues()[spec.queue].name;
        estimate(&scenario, &History::of(&view), (project, &spec.name), seen.now)
    };
    let (estimate, _turn) = run_blocking(turn, work).await?;
    Ok(estimate
        .inspect_err(|error| {
            tracing::error!(workload = %workload.id, %error, "no start can be estimated");
        })
        .ok())
}

fn estimate(
    scenario: &Scenario,
    history: &History,
    (project, name): (&str, &str),
    now: Instant,
) -> Result<StartEstimate, sim::Error> {
    let mut said = Taken::default();
    let mut soonest = scenario.clone();
    let mut latest = scenario.clone();
    for (short, long) in soonest.workloads.iter_mut().zip(&mut latest.workloads) {
        let elapsed = short.started.map_or(0, |span| span.0);
        let key = (short.project.clone(), short.name.clone());
        let taken = history.run_ms(&key, elapsed);
        said.count(&taken);
        short.value.runs_for = Some(Span::new(taken.short_ms));
        long.value.runs_for = taken.long_ms.map(Span::new);
    }
    let after = |scenario: &Scenario| {
        Ok::<_, sim::Error>(match sim::forecast(scenario, project, name)? {
            Forecast::StartsAfterMs(ms) => Some(now.plus_ms(ms).into()),
            Forecast::Never | Forecast::TooFarAhead => None,
        })
    };
    Ok(StartEstimate {
        earliest: after(&soonest)?,
        latest: after(&latest)?,
        assumption: said.text(),
    })
}

/// How long a workload is taken to run since its last start, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunTime {
    short_ms: u64,
    /// None: it may run for ever.
    long_ms: Option<u64>,
    limited: bool,
}

/// What is known of run times.
struct History {
    /// Kind and limit of each workload, by project and name.
    workloads: BTreeMap<(String, String), (WorkloadKind, Option<u64>)>,
    /// How long those that completed ran, in order, by project and kind, and by kind.
    of_project: BTreeMap<(String, WorkloadKind), Vec<u64>>,
    of_kind: BTreeMap<WorkloadKind, Vec<u64>>,
}

impl History {
    fn of(view: &View) -> Self {
        let (mut workloads, mut of_project) = (BTreeMap::new(), BTreeMap::new());
        let mut of_kind: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for workload in view.workloads.values() {
            let (project, kind) = (workload.project_name.clone(), workload.spec.kind);
            let rules = view.projects.get(&workload.project_id).map(|p| p.effective_rules);
            let limit = rules.and_then(|rules| rules.run_ms_max(kind));
            workloads.insert((project.clone(), workload.spec.name.clone()), (kind, limit));
            if workload.phase == Phase::Completed {
                let of_project: &mut Vec<u64> = of_project.entry((project, kind)).or_default();
                of_project.push(workload.ran_ms);
                of_kind.entry(kind).or_default().push(workload.ran_ms);
            }
        }
        of_project.values_mut().chain(of_kind.values_mut()).for_each(|all| all.sort_unstable());
        Self { workloads, of_project, of_kind }
    }

    /// How long one that has run for so long is taken to run, all in all.
    fn run_ms(&self, key: &(String, String), elapsed_ms: u64) -> RunTime {
        let Some(&(kind, limit)) = self.workloads.get(key) else {
            return RunTime { short_ms: elapsed_ms, long_ms: None, limited: false };
        };
        let own = self.of_project.get(&(key.0.clone(), kind));
        let samples = [own, self.of_kind.get(&kind)].into_iter().flatten();
        let samples = samples.into_iter().find(|all| all.len() >= SAMPLES_MIN);
        let longer =
            samples.map_or(&[][..], |all| &all[all.partition_point(|&s| s <= elapsed_ms)..]);
        let at = |percent: usize| longer.get(longer.len() * percent / 100).copied();
        let within = |ms: u64| limit.map_or(ms, |limit| ms.min(limit));
        RunTime {
            // Of one nothing is known of, it may end at any moment.
            short_ms: within(at(SHORT_PERCENT).unwrap_or(elapsed_ms)),
            long_ms: at(LONG_PERCENT).map(within).or(limit),
            limited: limit.is_some(),
        }
    }
}

/// By what the run times were found.
#[derive(Default)]
struct Taken {
    known: usize,
    limited: usize,
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
        let Self { known, limited, unknown } = self;
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
        if *unknown > 0 {
            let which = if *unknown == 1 { "workload" } else { "workloads" };
            parts.push(format!("the end of {unknown} {which} cannot be estimated"));
        }
        parts.insert(0, "nothing else is submitted".to_owned());
        parts.join("; ")
    }
}
