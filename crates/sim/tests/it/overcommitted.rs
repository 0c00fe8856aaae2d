//! Quotas that together exceed the capacity: the claim of each project, and the turns of work that
//! is larger than a claim.

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

const MINUTE: u64 = 60_000;

fn outcome(text: &str) -> Outcome {
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, Record::Everything).unwrap_or_else(|error| panic!("{error}"))
}

/// Equal workloads of one project, enough for the whole scenario.
#[derive(Debug, Clone, Copy)]
struct Stream {
    project: &'static str,
    gpus: u64,
    /// Run time of each workload in minutes; `None` if it never ends.
    minutes: Option<u64>,
}

const fn stream(project: &'static str, gpus: u64, minutes: Option<u64>) -> Stream {
    Stream { project, gpus, minutes }
}

/// Plays streams on eight GPUs for some hours; all workloads wait from the start.
fn played(queues: &str, streams: [Stream; 2], hours: u64) -> Outcome {
    let work = |Stream { project, gpus, minutes }: Stream| {
        let runs = minutes.map_or(String::new(), |minutes| format!(", runs_for: {minutes}m"));
        let count = minutes.map_or(2, |minutes| (hours * 60).div_ceil(minutes) * (8 / gpus));
        format!("{{name: {project}-, count: {count}, project: {project}, gpu: {gpus}{runs}}}")
    };
    let works = streams.map(work).join("\n  - ");
    outcome(&format!(
        "version: 1\nnodes: [{{name: n, gpus: 8}}]\nqueues: {queues}\nworkloads:\n  - {works}\n\
         steps: [{{advance: {hours}h}}]\n"
    ))
}

/// GPU-minutes that a project held in the first `hours`.
fn gpu_minutes(outcome: &Outcome, project: &str, hours: u64) -> u64 {
    let held = |frame: &sim::Frame| {
        let row = frame.queues.iter().find(|row| row.name == project);
        row.and_then(|row| row.allocated.gpu_millis).unwrap_or(0)
    };
    let first = outcome.frames.first().map_or(0, |frame| frame.at_ms);
    let last = first + hours * 60 * MINUTE;
    let ends = outcome.frames.iter().skip(1).map(|frame| frame.at_ms).chain([last]);
    let spans = outcome.frames.iter().zip(ends);
    let spans = spans.map(|(frame, end)| held(frame) * end.min(last).saturating_sub(frame.at_ms));
    spans.sum::<u64>() / 1000 / MINUTE
}

fn decisions(outcome: &Outcome, kind: &str) -> usize {
    let all = outcome.frames.iter().flat_map(|frame| &frame.decisions);
    all.filter(|decision| decision.kind == kind).count()
}

/// GPUs that a project holds at the end.
fn held(outcome: &Outcome, project: &str) -> u64 {
    let last = outcome.frames.last().expect("it decided");
    let row = last.queues.iter().find(|row| row.name == project).expect("a project");
    row.allocated.gpu_millis.unwrap_or(0) / 1000
}

const QUOTAS: [&str; 2] = [
    "[{name: a, quota: {gpu: 6}}, {name: b, quota: {gpu: 5}}]",
    "[{name: b, quota: {gpu: 5}}, {name: a, quota: {gpu: 6}}]",
];

#[test]
fn a_quota_is_given_back_by_work_beyond_the_quota_of_another() {
    for quotas in QUOTAS {
        let outcome = outcome(&format!(
            "version: 1
nodes: [{{name: n, gpus: 8}}]
queues: {quotas}
workloads:
  - name: a1
    project: a
    gpu: 8
    started: 60m
    tasks: [{{state: running, node: n, gpus: [0, 1, 2, 3, 4, 5, 6, 7]}}]
  - {{name: b1, project: b, gpu: 5}}
steps: [{{advance: 3h}}]
"
        ));
        assert_eq!((held(&outcome, "a"), held(&outcome, "b")), (0, 5), "{quotas}");
        assert_eq!(decisions(&outcome, "evict"), 1, "{quotas}");
    }
}

#[test]
fn work_larger_than_the_claims_is_served_by_turn() {
    let rows = [(Some(10), Some(10)), (Some(60), Some(10)), (Some(10), None), (None, None)];
    for ((a, b), quotas) in rows.into_iter().flat_map(|row| QUOTAS.map(|quotas| (row, quotas))) {
        let streams = [stream("a", 6, a), stream("b", 5, b)];
        let outcome = played(quotas, streams, 40);
        let (a_had, b_had) = (gpu_minutes(&outcome, "a", 40), gpu_minutes(&outcome, "b", 40));
        let evictions = decisions(&outcome, "evict");
        // With one of them at a time, in equal turns, 40 hours are 7200 GPU-minutes of a and 6000
        // of b.
        assert!(
            a_had * 10 >= 7200 * 9 && b_had * 10 >= 6000 * 9,
            "{a:?} {b:?} {quotas}: {a_had} and {b_had} GPU-minutes"
        );
        assert!(evictions <= 40, "{a:?} {b:?} {quotas}: {evictions} evictions in 40 hours");
    }
}

#[test]
fn room_is_kept_for_work_larger_than_a_claim_beside_small_work() {
    for (minutes, quotas) in [10, 60].into_iter().flat_map(|minutes| QUOTAS.map(|of| (minutes, of)))
    {
        let streams = [stream("a", 1, Some(minutes)), stream("b", 5, Some(10))];
        let outcome = played(quotas, streams, 20);
        let (a_had, b_had) = (gpu_minutes(&outcome, "a", 20), gpu_minutes(&outcome, "b", 20));
        // Of 8 GPUs in 20 hours b claims 8 * 5 / 11. Some of them idle while its room gets complete.
        assert!(
            b_had * 11 * 10 >= 8 * 5 * 20 * 60 * 7,
            "{quotas}: {a_had} and {b_had} GPU-minutes"
        );
    }
}

#[test]
fn an_elastic_workload_is_not_stopped_whole_for_a_claim_of_a_part_of_it() {
    for quotas in [
        "[{name: a, quota: {gpu: 2}}, {name: b, quota: {gpu: 2}}]",
        "[{name: b, quota: {gpu: 2}}, {name: a, quota: {gpu: 2}}]",
    ] {
        let scenario = |gpus: u32, hours: u32| {
            format!(
                "version: 1
nodes: [{{name: n, gpus: 3}}]
queues: {quotas}
workloads:
  - name: e
    project: b
    gpu: 1
    pods: 3
    pods_min: 2
    started: 60m
    tasks:
      - {{state: running, node: n, gpus: [0]}}
      - {{state: running, node: n, gpus: [1]}}
      - {{state: running, node: n, gpus: [2]}}
  - {{name: p, project: a, gpu: {gpus}}}
steps: [{{advance: {hours}h}}]
"
            )
        };
        let one = outcome(&scenario(1, 0));
        assert_eq!((held(&one, "a"), held(&one, "b")), (1, 2), "{quotas}: e gives a spare pod");
        let two = outcome(&scenario(2, 0));
        assert_eq!((held(&two, "a"), held(&two, "b")), (0, 3), "{quotas}: no GPU stands idle");
        let turns = outcome(&scenario(2, 40));
        let (a_had, b_had) = (gpu_minutes(&turns, "a", 40), gpu_minutes(&turns, "b", 40));
        assert!(a_had.abs_diff(b_had) <= 3 * 60, "{quotas}: {a_had} and {b_had} GPU-minutes");
    }
}

#[test]
fn the_project_of_the_higher_priority_claims_first() {
    let outcome = outcome(
        "version: 1
nodes: [{name: n, gpus: 8}]
queues: [{name: a, quota: {gpu: 6}}, {name: b, quota: {gpu: 5}, priority: 200}]
workloads:
  - {name: a, count: 8, project: a, gpu: 1}
  - {name: b, count: 8, project: b, gpu: 1}
",
    );
    assert_eq!((held(&outcome, "a"), held(&outcome, "b")), (3, 5));
}

#[test]
fn work_that_cannot_be_preempted_is_taken_off_before_claims_are_scaled() {
    let outcome = outcome(
        "version: 1
nodes: [{name: n, gpus: 8}]
queues: [{name: a, quota: {gpu: 8}}, {name: b, quota: {gpu: 4}}, {name: c, quota: {gpu: 4}}]
workloads: [{name: i, project: b, gpu: 4, preemptible: false}]
steps:
  - submit: {name: a, count: 8, project: a, gpu: 1}
  - submit: {name: c, count: 8, project: c, gpu: 1}
",
    );
    // The four GPUs beside i, divided by unused quotas: a gets 8 * 4 / 12, c gets 4 * 4 / 12.
    assert_eq!(["a", "b", "c"].map(|project| held(&outcome, project)), [3, 4, 1]);
}

#[test]
fn what_scaling_leaves_of_a_gpu_is_taken_from_no_project() {
    let queue = |at: usize| format!("{{name: p{at}, quota: {{gpu: 3}}}}");
    let work = |at: usize| format!("{{name: p{at}-, count: 3, project: p{at}, gpu: 1}}");
    for (projects, gpus) in [(3, 5), (16, 8)] {
        let queues: Vec<_> = (0..projects).map(queue).collect();
        let works: Vec<_> = (0..projects).map(work).collect();
        let outcome = outcome(&format!(
            "version: 1\nnodes: [{{name: n, gpus: {gpus}}}]\nqueues: [{}]\nworkloads:\n  - {}\n\
             steps: [{{advance: 20h}}]\n",
            queues.join(", "),
            works.join("\n  - ")
        ));
        assert_eq!(decisions(&outcome, "evict"), 0, "{projects} projects on {gpus} GPUs");
    }
}
