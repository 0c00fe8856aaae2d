//! When a workload that waits would start, in virtual time.

use sim::scenario::Scenario;
use sim::{Forecast, forecast};

const MINUTE: u64 = 60_000;

/// One node of four GPUs; four trainings of one GPU run on it.
fn full(more: &str) -> Scenario {
    let text = format!(
        "version: 1
nodes: [{{name: n, gpus: 4}}]
queues: [{{name: q, quota: {{gpu: 4}}}}]
workloads:
  - {{name: a, project: q, gpu: 1, runs_for: 10m, started: 4m, tasks: [{{state: running, node: n, gpus: [0]}}]}}
  - {{name: b, project: q, gpu: 1, runs_for: 20m, started: 4m, tasks: [{{state: running, node: n, gpus: [1]}}]}}
  - {{name: c, project: q, gpu: 1, time_limit: 30m, started: 4m, tasks: [{{state: running, node: n, gpus: [2]}}]}}
  - {{name: d, project: q, gpu: 1, started: 4m, tasks: [{{state: running, node: n, gpus: [3]}}]}}
{more}"
    );
    Scenario::read(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn minutes(scenario: &Scenario, name: &str) -> Option<u64> {
    match forecast(scenario, "q", name).unwrap_or_else(|error| panic!("{error}")) {
        // A decision takes a millisecond of virtual time.
        Forecast::StartsAfterMs(ms) => Some(ms / MINUTE),
        Forecast::Never | Forecast::TooFarAhead => None,
    }
}

#[test]
fn the_first_in_line_starts_when_the_first_ends() {
    let state = full("  - {name: e, project: q, gpu: 1, runs_for: 1h}");
    assert_eq!(minutes(&state, "e"), Some(6));
}

#[test]
fn who_is_behind_waits_for_more() {
    let state = full(
        "  - {name: e, project: q, gpu: 1, runs_for: 1h}
  - {name: f, project: q, gpu: 2, runs_for: 1h}",
    );
    assert_eq!(minutes(&state, "f"), Some(26), "b ends after 16 minutes, c at its limit after 26");
}

#[test]
fn what_waits_for_one_that_never_ends_never_starts() {
    let state = full("  - {name: e, project: q, gpu: 4}");
    assert_eq!(forecast(&state, "q", "e"), Ok(Forecast::Never));
}

#[test]
fn who_runs_already_starts_at_once_and_who_is_not_there_is_an_error() {
    let state = full("");
    assert_eq!(minutes(&state, "a"), Some(0));
    assert!(forecast(&state, "q", "nobody").is_err());
}
