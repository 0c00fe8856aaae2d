//! Histories of hours in which one workload waits behind many: room is reserved for work of any
//! shape, and growth does not use it up.

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

const MINUTE: u64 = 60_000;

fn outcome(text: &str) -> Outcome {
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"))
}

/// A cluster with one `late` workload after ten minutes of a stream: `jobs` in each minute.
fn stream(cluster: &str, (jobs, each_minute): (&str, usize), late: &str, minutes: usize) -> String {
    let mut text = format!("version: 1\n{cluster}\nsteps:\n");
    for minute in 0..minutes {
        text.push_str("  - submit:\n");
        for at in 0..each_minute {
            text.push_str(&format!("      - {{name: s{minute}-{at}, {jobs}}}\n"));
        }
        if minute == 10 {
            text.push_str(&format!("      - {late}\n"));
        }
        text.push_str("  - advance: 1m\n");
    }
    text
}

/// Minute in which a workload got its first place.
fn started(outcome: &Outcome, name: &str) -> Option<u64> {
    let binds = |frame: &&sim::Frame| {
        frame.decisions.iter().any(|d| d.workload == name && d.kind == "bind")
    };
    outcome.frames.iter().find(binds).map(|frame| frame.at_ms / MINUTE)
}

fn decisions(outcome: &Outcome, kind: &str) -> usize {
    let all = outcome.frames.iter().flat_map(|frame| &frame.decisions);
    all.filter(|decision| decision.kind == kind).count()
}

/// Reasons why a workload waits at the end.
fn waits(outcome: &Outcome, name: &str) -> Vec<String> {
    let last = outcome.frames.last().expect("it decided");
    let waiting = last.pending.iter().filter(|waiting| waiting.workload == name);
    let reasons = waiting.flat_map(|waiting| &waiting.reasons);
    reasons.map(|reason| format!("{} {}", reason.code, reason.message)).collect()
}

#[test]
fn room_is_kept_for_work_of_any_shape() {
    let racks = "topologies: [{name: t, levels: [rack]}]
nodes:
  - {name: n0, gpus: 4, labels: {rack: r0}}
  - {name: n1, gpus: 4, labels: {rack: r0}}
  - {name: n2, gpus: 4, labels: {rack: r1}}
  - {name: n3, gpus: 4, labels: {rack: r1}}
queues: [{name: a, quota: {gpu: 16}}]";
    let nodes = "nodes: [{name: n, count: 2, gpus: 4}]\nqueues: [{name: a, quota: {gpu: 8}}]";
    let one = "nodes: [{name: n, gpus: 2}]\nqueues: [{name: a, quota: {gpu: 2}}]";
    let single = "project: a, gpu: 1, runs_for: 10m";
    let half = "project: a, gpu: 0.5, runs_for: 4m";
    let late = |what: &str| format!("{{name: late, project: a, runs_for: 20m, {what}}}");
    let rows = [
        ("one rack", racks, (single, 2), "gpu: 1, pods: 8, topology: {name: t, required: rack}"),
        (
            "a group in one rack, and one pod anywhere",
            racks,
            (single, 2),
            "groups: [{name: g, topology: {name: t, required: rack}}], pod_sets: \
             [{name: l, gpu: 1}, {name: w, pods: 8, gpu: 1, group: g}]",
        ),
        (
            "two sets on the nodes that both need",
            nodes,
            (single, 1),
            "pod_sets: [{name: l, gpu: 0, cpu: 1}, {name: w, pods: 8, gpu: 1, cpu: 4}]",
        ),
        ("as much as its minimum", nodes, (single, 1), "gpu: 1, pods: 12, pods_min: 8"),
        ("an elastic one", one, (half, 1), "gpu: 2, elastic: true"),
    ];
    for (what, cluster, jobs, shape) in rows {
        let outcome = outcome(&stream(cluster, jobs, &late(shape), 60));
        // Five minutes until room is reserved, and ten until the youngest job ends.
        let started = started(&outcome, "late");
        assert!(started.is_some_and(|at| at <= 10 + 5 + 10 + 1), "{what}: {started:?}");
    }
}

#[test]
fn work_that_may_not_be_stopped_is_waited_for_where_it_has_a_time_limit() {
    let cluster = "nodes: [{name: n, gpus: 8}]\nqueues: [{name: a, quota: {gpu: 8}}]";
    let jobs = "project: a, gpu: 1, runs_for: 10m, priority: 40, preemptible: false";
    let gang = "{name: late, project: a, gpu: 1, pods: 8, runs_for: 20m, priority: 80}";
    let unlimited = outcome(&stream(cluster, (jobs, 1), gang, 120));
    assert_eq!(started(&unlimited, "late"), None, "each of them may stay for ever");
    let limited = format!("{jobs}, time_limit: 12m");
    let limited = started(&outcome(&stream(cluster, (&limited, 1), gang, 60)), "late");
    // Five minutes until room is reserved, and at most twelve until the youngest job ends.
    assert!(limited.is_some_and(|at| at <= 10 + 5 + 12 + 1), "{limited:?}");
}

#[test]
fn the_rack_that_is_free_first_is_kept() {
    let text = "version: 1
topologies: [{name: t, levels: [rack]}]
nodes:
  - {name: n0, gpus: 2, labels: {rack: r0}}
  - {name: n1, gpus: 2, labels: {rack: r1}}
queues: [{name: a, quota: {gpu: 4}}]
workloads:
  - {name: early, project: a, gpu: 1, time_limit: 20m, runs_for: 8m}
  - {name: later, project: a, gpu: 1, time_limit: 20m, runs_for: 20m}
  - {name: long, project: a, gpu: 1, time_limit: 3h, runs_for: 8m}
  - {name: longest, project: a, gpu: 1, time_limit: 3h, runs_for: 3h}
  - {name: gang, project: a, gpu: 1, pods: 2, topology: {name: t, required: rack}}
  - {name: x, project: a, gpu: 1}
  - {name: y, project: a, gpu: 1}
steps: [{advance: 30m}]
";
    let outcome = outcome(text);
    assert_eq!(started(&outcome, "x"), Some(8), "beside the longest");
    assert_eq!(started(&outcome, "gang"), Some(20));
}

#[test]
fn work_above_its_share_gets_a_turn_where_nothing_is_guaranteed_to_others() {
    let cluster = |quota: u32| {
        format!(
            "nodes: [{{name: n, gpus: 8}}]
queues: [{{name: b, quota: {{gpu: {quota}}}}}, {{name: a, quota: {{gpu: {quota}}}}}]"
        )
    };
    let gang = "{name: late, project: a, gpu: 1, pods: 6, runs_for: 20m}";
    let jobs = ("project: b, gpu: 1, runs_for: 10m", 1);
    let turn = outcome(&stream(&cluster(0), jobs, gang, 120));
    assert!(started(&turn, "late").is_some_and(|at| at <= 40), "{:?}", started(&turn, "late"));
    let claimed = outcome(&stream(&cluster(4), jobs, gang, 120));
    assert_eq!(started(&claimed, "late"), None, "b claims its quota");
}

#[test]
fn how_long_the_first_has_waited_is_as_of_now() {
    let text = "version: 1
nodes: [{name: n, gpus: 2}]
queues: [{name: a, quota: {gpu: 2}}]
workloads:
  - {name: s, project: a, gpu: 1}
  - {name: gang, project: a, gpu: 2}
steps:
  - advance: 6m
  - submit: {name: x, project: a, gpu: 1}
  - advance: 6h
";
    let told = waits(&outcome(text), "x").join("; ");
    assert!(told.contains("has waited 366 min"), "{told}");
}

#[test]
fn an_elastic_workload_beside_a_stream_restarts_seldom() {
    let mut text = "version: 1
nodes: [{name: n, gpus: 8}]
queues: [{name: a, quota: {gpu: 2}}, {name: b, quota: {gpu: 6}}]
workloads: [{name: e, project: a, gpu: 2, elastic: true}]
steps:
"
    .to_owned();
    for at in 0..75 {
        text.push_str(&format!(
            "  - submit: {{name: s{at}, project: b, gpu: 1, runs_for: 3m}}\n  - advance: 4m\n"
        ));
    }
    let outcome = outcome(&text);
    let resizes = decisions(&outcome, "resize");
    assert!((10..=50).contains(&resizes), "{resizes} restarts in five hours, 150 if none waits");
    let grown = outcome.frames.iter().find(|frame| {
        frame.decisions.iter().any(|decision| decision.kind == "resize" && decision.workload == "e")
    });
    let at_once = grown.is_some_and(|frame| frame.at_ms < 1000);
    assert!(at_once, "nothing is in the way of the first: {grown:?}");
}
