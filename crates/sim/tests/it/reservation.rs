//! A large gang against an endless stream of small jobs, in virtual time: it starts after bounded
//! work, and few GPUs are idle meanwhile.

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

const MINUTE: u64 = 60_000;

/// A full cluster of 64 GPUs, a stream of jobs that never ends, a gang of 64 GPUs behind the
/// first of them.
fn outcome(policy: &str, limits: bool, gang: &str) -> Outcome {
    let limit = |minutes: u64| {
        if limits { format!(", time_limit: {minutes}m") } else { String::new() }
    };
    let mut text = format!(
        "version: 1
policy: {policy}
nodes: [{{name: n, count: 8, gpus: 8}}]
queues: [{{name: q, quota: {{gpu: 64}}}}]
workloads:
"
    );
    // Four streams of different lengths, so that they do not all end at the same time.
    for (name, minutes, count) in [("a", 7, 16), ("b", 11, 16), ("c", 13, 16), ("d", 5, 16)] {
        let job = format!("project: q, gpu: 1, runs_for: {minutes}m{}", limit(minutes));
        text.push_str(&format!("  - {{name: first-{name}, count: {count}, {job}}}\n"));
    }
    text.push_str(&format!("  - {{name: gang, project: q, {gang}, runs_for: 1h}}\n"));
    for round in 0..6 {
        for (name, minutes, count) in [("a", 7, 24), ("b", 11, 16), ("c", 13, 14), ("d", 5, 32)] {
            let job = format!("project: q, gpu: 1, runs_for: {minutes}m{}", limit(minutes));
            text.push_str(&format!("  - {{name: s{round}-{name}-, count: {count}, {job}}}\n"));
        }
    }
    text.push_str("steps:\n  - advance: 50m\n");
    let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    outcome
}

/// Time when the gang was placed.
fn started_ms(outcome: &Outcome) -> Option<u64> {
    let binds = |frame: &&sim::Frame| {
        frame.decisions.iter().any(|d| d.workload == "gang" && d.kind == "bind")
    };
    outcome.frames.iter().find(binds).map(|frame| frame.at_ms)
}

/// GPU minutes in which jobs ran before the gang did; no job is ever stopped.
fn busy_minutes(outcome: &Outcome, minutes: impl Fn(&str) -> u64) -> u64 {
    let until = started_ms(outcome).expect("it starts");
    let binds = outcome
        .frames
        .iter()
        .flat_map(|frame| frame.decisions.iter().map(move |decision| (frame.at_ms, decision)));
    let small = binds.filter(|(at, decision)| {
        assert_eq!(decision.kind, "bind");
        decision.workload != "gang" && *at < until
    });
    small.map(|(at, decision)| ((until - at) / MINUTE).min(minutes(&decision.workload))).sum()
}

/// Idle GPU minutes before the gang ran.
fn idle_minutes(outcome: &Outcome) -> u64 {
    let minutes = |name: &str| match name.split('-').nth(1) {
        Some("a") => 7,
        Some("b") => 11,
        Some("c") => 13,
        _ => 5,
    };
    let whole = 64 * (started_ms(outcome).expect("it starts") / MINUTE);
    whole.saturating_sub(busy_minutes(outcome, minutes))
}

const GANGS: [&str; 3] = ["gpu: 8, pods: 8", "gpu: 1, pods: 64", "gpu: 4, pods: 16"];

#[test]
fn without_reservations_the_gang_starves() {
    let outcome = outcome("{reservations_max: 0}", false, GANGS[0]);
    assert_eq!(started_ms(&outcome), None);
}

#[test]
fn the_gang_starts_when_the_longest_job_is_over() {
    for gang in GANGS {
        let outcome = outcome("{}", false, gang);
        let started = started_ms(&outcome).expect("it starts");
        // Room is reserved after five minutes; a job that began just before runs for thirteen.
        assert!(started <= 18 * MINUTE + 100, "{gang}: {started}");
        // Never more than the gang needs, never longer than the longest job.
        let idle = idle_minutes(&outcome);
        assert!(idle <= 64 * 13, "{gang}: {idle} GPU minutes idle");
    }
}

#[test]
fn jobs_that_say_when_they_end_fill_the_gap() {
    let [without, with] = [false, true].map(|limits| outcome("{}", limits, GANGS[0]));
    let started = started_ms(&with).expect("it starts");
    assert!(started <= 18 * MINUTE + 100, "{started}");
    let [idle_without, idle_with] = [without, with].map(|outcome| idle_minutes(&outcome));
    assert!(idle_with < idle_without, "{idle_with} GPU minutes idle, {idle_without} without");
}

/// Six GPUs are free after ten minutes, the other two after an hour.
fn gap(limits: bool) -> u64 {
    let limit = |minutes: u32| {
        if limits { format!(", time_limit: {minutes}m") } else { String::new() }
    };
    let text = format!(
        "version: 1
nodes: [{{name: n, gpus: 8}}]
queues: [{{name: q, quota: {{gpu: 8}}}}]
workloads:
  - {{name: early, count: 6, project: q, gpu: 1, runs_for: 10m{}}}
  - {{name: late, count: 2, project: q, gpu: 1, runs_for: 60m{}}}
  - {{name: gang, project: q, gpu: 8, runs_for: 1h}}
  - {{name: small, count: 100, project: q, gpu: 1, runs_for: 10m{}}}
steps: [{{advance: 2h}}]
",
        limit(10),
        limit(60),
        limit(10)
    );
    let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
    let started = started_ms(&outcome).expect("it starts");
    assert!(started.abs_diff(60 * MINUTE) < 1000, "when the late ones are over: {started}");
    let minutes = |name: &str| if name.starts_with("late") { 60 } else { 10 };
    8 * 60 - busy_minutes(&outcome, minutes)
}

#[test]
fn what_ends_in_time_runs_in_the_gap() {
    assert!(gap(false).abs_diff(6 * 50) < 10, "{} GPU minutes idle", gap(false));
    assert!(gap(true) < 10, "the last ten minutes are enough: {} GPU minutes idle", gap(true));
}

#[test]
fn two_gangs_follow_each_other() {
    let text = "version: 1
nodes: [{name: n, count: 2, gpus: 8}]
queues: [{name: q, quota: {gpu: 16}}]
workloads:
  - {name: x, count: 8, project: q, gpu: 1, runs_for: 7m}
  - {name: y, count: 8, project: q, gpu: 1, runs_for: 12m}
  - {name: one, project: q, gpu: 8, pods: 2, runs_for: 30m}
  - {name: two, project: q, gpu: 1, pods: 16, runs_for: 30m}
  - {name: small, count: 300, project: q, gpu: 1, runs_for: 11m}
steps:
  - advance: 20m
    expect: {workloads: {one: {state: running}, two: {state: pending}}}
  - advance: 30m
    expect: {workloads: {one: {state: finished}, two: {state: running}}}
";
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
}
