//! Workloads that are gated, whose pods end one by one, and that fail.

use sim::scenario::Scenario;
use sim::{Record, run};

/// Runs a scenario on one node of four GPUs; its expectations must all hold.
fn holds(body: &str) {
    let head = "version: 1\nnodes: [{name: n, gpus: 4}]\nqueues: [{name: q, quota: {gpu: 4}}]\n";
    let scenario = Scenario::read(&format!("{head}{body}")).expect("a sound scenario");
    let outcome = run(&scenario, Record::Decisions).expect("a sound state");
    assert!(outcome.expectations > 0 && outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
}

#[test]
fn two_at_a_time_until_five_have_finished() {
    holds(
        "workloads: [{name: s, project: q, gpu: 1, pods: 2, completions: 5, runs_for: 10m}]
steps:
  - expect: {gpus: {n: s s . .}}
  - advance: 11m
    expect: {gpus: {n: s s . .}}
  - advance: 10m
    expect: {gpus: {n: s . . .}, workloads: {s: {running: 1}}, queues: {q: {gpu: 1}}}
  - advance: 10m
    expect: {workloads: {s: {state: finished}}}
",
    );
}

#[test]
fn fewer_runs_than_pods_take_only_so_many_places() {
    holds(
        "workloads: [{name: s, project: q, gpu: 1, pods: 4, completions: 2, runs_for: 10m}]
steps:
  - expect: {workloads: {s: {running: 2}}}
  - suspend: s
  - resume: s
    expect: {workloads: {s: {running: 2}}}
  - advance: 1h
    expect: {workloads: {s: {state: finished}}}
",
    );
}

#[test]
fn its_pods_are_independent_of_each_other() {
    holds(
        "workloads:
  - {name: other, project: q, gpu: 3, runs_for: 5m}
  - {name: s, project: q, gpu: 1, pods: 3, completions: 6, runs_for: 10m}
steps:
  - expect: {gpus: {n: other other other s}}
  - advance: 6m
    expect: {workloads: {s: {running: 3}}}
  - advance: 5m
    expect: {workloads: {s: {running: 3}}}
  - advance: 20m
    expect: {workloads: {s: {state: finished}}}
",
    );
}

#[test]
fn a_failed_pod_runs_again_in_its_place_the_others_go_on() {
    holds(
        "workloads: [{name: s, project: q, gpu: 1, pods: 2, completions: 4, runs_for: 10m}]
steps:
  - fail: s
    expect: {gpus: {n: s s . .}}
  - advance: 2s
    expect: {workloads: {s: {running: 2}}}
",
    );
}

#[test]
fn a_gang_that_fails_restarts_whole_and_is_given_up_in_the_end() {
    holds(
        "workloads: [{name: g, project: q, gpu: 2, pods: 2, backoff_limit: 2}]
steps:
  - fail: g
    expect: {gpus: {n: g g g g}}
  - advance: 2s
  - fail: g
  - advance: 3s
    expect: {gpus: {n: g g g g}, workloads: {g: {state: running}}}
  - fail: g
    expect: {workloads: {g: {state: failed}}, gpus: {n: . . . .}}
",
    );
}

#[test]
fn gated_and_suspended_at_submission() {
    holds(
        "workloads:
  - {name: g, project: q, gpu: 1, pods: 2, gated: true}
  - {name: s, project: q, gpu: 1, suspended: true}
steps:
  - expect:
      gpus: {n: . . . .}
      workloads: {g: {state: pending, pending: P305}, s: {state: suspended}}
  - ungate: g
    expect: {gpus: {n: g g . .}}
  - delete: g
  - resume: s
    expect: {gpus: {n: s . . .}}
",
    );
}

#[test]
fn what_grows_ends_sooner() {
    holds(
        "workloads:
  - {name: a, project: q, gpu: 1, pods: 3, work: 30m, warm_up: 1m}
  - {name: b, project: q, gpu: 1, pods: 4, pods_min: 1, work: 30m, warm_up: 1m}
steps:
  - expect: {gpus: {n: a a a b}}
  - advance: 10m
    expect: {workloads: {a: {running: 3}, b: {running: 1}}}
  - advance: 61s
    expect: {workloads: {a: {state: finished}, b: {running: 4}}}
  - advance: 5m
    expect: {workloads: {b: {running: 4}}}
  - advance: 1m
    expect: {workloads: {b: {state: finished}}}
",
    );
}
