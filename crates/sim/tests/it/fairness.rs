//! Fairness over time: a queue regains the GPU time that it did not get while others used the
//! cluster.

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

fn outcome(text: &str) -> Outcome {
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, Record::Everything).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    outcome
}

/// GPU minutes a queue held between two virtual times, in minutes since the start.
fn gpu_minutes(outcome: &Outcome, queue: &str, from: u64, to: u64) -> u64 {
    let held = |frame: &sim::Frame| {
        let row = frame.queues.iter().find(|row| row.name == queue);
        row.and_then(|row| row.allocated.gpu_millis).unwrap_or(0)
    };
    let ends = outcome.frames.iter().skip(1).map(|frame| frame.at_ms).chain([u64::MAX]);
    let spans = outcome.frames.iter().zip(ends).map(|(frame, end)| {
        let (a, b) = (frame.at_ms.max(from * 60_000), end.min(to * 60_000));
        held(frame) * b.saturating_sub(a)
    });
    spans.sum::<u64>() / 60_000_000
}

/// One queue always wants 8 GPUs; the other for six hours of every day.
fn bursts(policy: &str) -> Outcome {
    let day = "
  - advance: 18h
  - submit: {name: burst, count: 8, project: bursts, gpu: 1}
  - advance: 6h
  - delete: [burst1, burst2, burst3, burst4, burst5, burst6, burst7, burst8]";
    outcome(&format!(
        "version: 1
policy: {policy}
nodes: [{{name: n, gpus: 8}}]
queues: [{{name: always}}, {{name: bursts}}]
workloads: [{{name: a, count: 8, project: always, gpu: 1}}]
steps: {}
",
        day.repeat(4)
    ))
}

#[test]
fn who_wants_in_bursts_gets_its_part_back() {
    let minutes = |outcome: &Outcome, queue| gpu_minutes(outcome, queue, 3 * 1440, 4 * 1440);
    let without = bursts("{}");
    // Half of the cluster for six hours: an eighth of the day.
    assert!(minutes(&without, "bursts").abs_diff(4 * 6 * 60) < 5);
    let with = bursts("{usage: {window: 2d}}");
    let got = minutes(&with, "bursts");
    assert!(got > 5 * 6 * 60, "{got} GPU minutes: three quarters of the cluster for its six hours");
    let all = minutes(&with, "bursts") + minutes(&with, "always");
    assert!(all * 1000 > 8 * 1440 * 999, "{all} GPU minutes used of {}", 8 * 1440);
}

#[test]
fn two_that_always_want_use_the_same_in_the_long_run() {
    let text = "
version: 1
policy: {usage: {window: 1d, half_life: 6h}}
nodes: [{name: n, gpus: 8}]
queues: [{name: first}, {name: second, usage_ppm: {gpu: 0}}]
workloads: [{name: a, count: 8, project: first, gpu: 1}]
steps:
  - advance: 1d
  - submit: {name: b, count: 8, project: second, gpu: 1}
  - advance: 4d
";
    let outcome = outcome(text);
    let [first, second] =
        ["first", "second"].map(|queue| gpu_minutes(&outcome, queue, 1440, 5 * 1440));
    assert!(second > first, "it catches up: {second} over {first}");
    let [first, second] =
        ["first", "second"].map(|queue| gpu_minutes(&outcome, queue, 3 * 1440, 5 * 1440));
    assert_eq!(first, second, "then they share evenly");
}

#[test]
fn past_use_never_touches_a_quota() {
    let text = "
version: 1
policy: {usage: {window: 1d}}
nodes: [{name: n, gpus: 8}]
queues: [{name: heavy, quota: {gpu: 3}, usage_ppm: {gpu: 1000000}}, {name: light}]
workloads: [{name: a, count: 8, project: heavy, gpu: 1}]
steps:
  - submit: {name: b, count: 8, project: light, gpu: 1}
    expect: {queues: {heavy: {gpu: 3}, light: {gpu: 5}}}
";
    outcome(text);
}

#[test]
fn figures_given_without_a_window_are_those_of_a_week() {
    let text = "
version: 1
nodes: [{name: n, gpus: 8}]
queues: [{name: heavy, usage_ppm: {gpu: 750000}}, {name: light, usage_ppm: {gpu: 250000}}]
workloads: [{name: a, count: 8, project: heavy, gpu: 1}, {name: b, count: 8, project: light, gpu: 1}]
steps:
  - expect: {queues: {heavy: {gpu: 2}, light: {gpu: 6}}}
  - advance: 1h
    expect: {queues: {heavy: {gpu: 2}, light: {gpu: 6}}}
  - advance: 30d
    expect: {queues: {heavy: {gpu: 4}, light: {gpu: 4}}}
";
    outcome(text);
}

#[test]
fn a_tumbling_window_forgives_at_its_end() {
    let text = "
version: 1
policy: {usage: {window: 1d, kind: tumbling, began: 12h}}
nodes: [{name: n, gpus: 8}]
queues: [{name: heavy, usage_ppm: {gpu: 1000000}}, {name: light}]
workloads: [{name: a, count: 8, project: heavy, gpu: 1}, {name: b, count: 8, project: light, gpu: 1}]
steps:
  - expect: {queues: {heavy: {gpu: 0}, light: {gpu: 8}}}
  - advance: 11h
    expect: {queues: {light: {gpu: 5}}}
  - advance: 2h
    expect: {queues: {heavy: {gpu: 4}, light: {gpu: 4}}}
";
    outcome(text);
}

#[test]
fn every_level_of_the_tree_is_fair_over_time() {
    let text = "
version: 1
policy: {usage: {window: 1d}}
nodes: [{name: n, gpus: 8}]
queues:
  - {name: d1}
  - {name: d2}
  - {name: a, parent: d1}
  - {name: b, parent: d1}
  - {name: c, parent: d2}
workloads: [{name: a, count: 8, project: a, gpu: 1}]
steps:
  - advance: 12h
  - submit: {name: b, count: 8, project: b, gpu: 1}
    expect: {queues: {a: {gpu: 0}, b: {gpu: 8}}}
  - submit: {name: c, count: 8, project: c, gpu: 1}
    expect: {queues: {d1: {gpu: 0}, c: {gpu: 8}}}
";
    outcome(text);
}

#[test]
fn the_report_tells_the_usage() {
    let text = "
version: 1
policy: {usage: {window: 168m}}
nodes: [{name: n, gpus: 4}]
queues: [{name: q}]
workloads: [{name: a, project: q, gpu: 1}]
steps: [{advance: 10m}, {cycles: 1}]
";
    let outcome = outcome(text);
    let usage = outcome.frames.last().unwrap().queues[0].usage_ppm.unwrap();
    assert!((249_000..=250_000).contains(&usage.gpu), "{usage:?}");
}

#[test]
fn windows_that_make_no_sense_are_refused() {
    for (policy, said) in [
        ("{usage: {window: 1s}}", "between 1 minute and 10 years"),
        ("{usage: {window: 1d, half_life: 1s}}", "half-life of usage is between"),
        ("{usage: {window: 1d, began: 1h}}", "a sliding window does not begin"),
        ("{usage: {window: 1d, kind: tumbling, began: 2d}}", "longer ago than it lasts"),
        ("{usage: {half_life: 1d}}", "window"),
        ("{usage: {window: 1d, kind: cron}}", "known are sliding, tumbling"),
    ] {
        let text = format!("version: 1\npolicy: {policy}\n");
        let refused = match Scenario::read(&text) {
            Err(error) => error.to_string(),
            Ok(scenario) => run(&scenario, Record::Decisions).unwrap_err().to_string(),
        };
        assert!(refused.contains(said), "{policy}: {refused}");
    }
}

#[test]
fn the_lag_of_the_start_says_who_goes_first() {
    for (lag, first) in [("{}", "a a"), ("{gpu_ms: 60000}", "b b"), ("{gpu_ms: -60000}", "a a")] {
        outcome(&format!(
            "version: 1
nodes: [{{name: n, gpus: 2}}]
queues: [{{name: older}}, {{name: younger, lag: {lag}}}]
workloads: [{{name: a, project: older, gpu: 2}}, {{name: b, project: younger, gpu: 2}}]
steps: [{{expect: {{gpus: {{n: {first}}}}}}}]
"
        ));
    }
}

#[test]
fn a_turn_of_the_start_ends_an_hour_after_it_began() {
    let text = |lag: &str, then: &str| {
        format!(
            "version: 1
nodes: [{{name: n, gpus: 2}}]
queues: [{{name: a, lag: {lag}}}, {{name: b}}]
workloads:
  - {{name: big, project: a, gpu: 2, started: 20m, tasks: [{{state: running, node: n, gpus: [0, 1]}}]}}
  - {{name: one, project: b, gpu: 1}}
steps:
{then}
"
        )
    };
    let stopped = "stopped: {big: E101}";
    outcome(&text("{gpu_ms: 60000}", &format!("  - expect: {{{stopped}}}")));
    let turn = format!(
        "  - advance: 39m\n    expect: {{gpus: {{n: big big}}}}\n  - advance: 2m\n    expect: {{{stopped}}}"
    );
    outcome(&text("{gpu_ms: 60000, turn: 20m}", &turn));
}
