//! What happens at one moment is decided at once: no work is started to be stopped at the same instant.

use std::collections::BTreeSet;

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

fn outcome(text: &str) -> Outcome {
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    outcome
}

/// Pods that were started and stopped at the same instant.
fn started_and_stopped(outcome: &Outcome) -> Vec<String> {
    let (mut at_ms, mut started, mut found) = (0, BTreeSet::new(), Vec::new());
    for frame in &outcome.frames {
        if frame.at_ms > at_ms {
            (at_ms, started) = (frame.at_ms, BTreeSet::new());
        }
        for decision in &frame.decisions {
            let pod = (&decision.project, &decision.workload, decision.task);
            match decision.kind {
                "bind" => drop(started.insert(pod)),
                "evict" | "move" if started.contains(&pod) => {
                    found.push(format!("{pod:?} at {at_ms} ms: {:?}", decision.reason));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn what_ends_and_what_is_submitted_at_one_moment_is_decided_at_once() {
    let text = "version: 1
nodes: [{name: n, gpus: 4}]
queues: [{name: a, quota: {gpu: 0}}, {name: b, quota: {gpu: 0}}]
steps:
  - submit: {name: x, project: a, gpu: 1, runs_for: 10m}
  - submit: {name: y, count: 3, project: a, gpu: 1, runs_for: 10m}
  - submit: {name: z, count: 8, project: a, gpu: 1, runs_for: 10m}
  - advance: 10m
  - submit: {name: b, count: 2, project: b, gpu: 1, runs_for: 10m}
    expect: {queues: {a: {gpu: 2}, b: {gpu: 2}}, stopped: {}}
  - advance: 10m
    expect: {queues: {a: {gpu: 4}, b: {gpu: 0}}, stopped: {}}
";
    let outcome = outcome(text);
    assert_eq!(started_and_stopped(&outcome), [""; 0]);
    let ends = outcome.frames.iter().filter(|frame| frame.at_ms == 600_000).count();
    assert_eq!(ends, 1, "x and y, started one after the other, end at the same moment");
}
