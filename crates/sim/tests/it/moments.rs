//! Changes of one moment are decided at once: no work is started and stopped at the same instant.

use std::collections::BTreeSet;
use std::fmt::Write;

use sched::Policy;
use sim::rng::Rng;
use sim::scenario::Scenario;
use sim::{Outcome, Record, run};
use spec::GpuRequest;

use crate::machine::{rest, server, submit, training};

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

/// Two hours on 20 GPUs with a demand of 130 %: single pods, and gangs of three and six.
fn history(seed: u64) -> String {
    let mut numbers = Rng::new(seed);
    let mut text = "version: 1
world: {evicted: pending, releasing: at-once}
nodes: [{name: n, count: 5, gpus: 4}]
queues:
  - {name: a, quota: {gpu: 0}, weight: {gpu: 1}}
  - {name: b, quota: {gpu: 0}, weight: {gpu: 2}}
  - {name: c, quota: {gpu: 0}, weight: {gpu: 3}}
  - {name: d, quota: {gpu: 0}, weight: {gpu: 4}}
steps:
"
    .to_owned();
    for minute in 0..120 {
        let count = numbers.below(3);
        if count > 0 {
            text.push_str("  - submit:\n");
        }
        for at in 0..count {
            let project = ["a", "b", "c", "d"][numbers.below(4)];
            let pods = [1, 1, 1, 3, 3, 6][numbers.below(6)];
            let minutes = [5, 5, 15, 40][numbers.below(4)];
            let priority = [40, 50, 50, 50][numbers.below(4)];
            writeln!(
                text,
                "      - {{name: j{minute}-{at}, project: {project}, gpu: 1, pods: {pods}, \
                 runs_for: {minutes}m, priority: {priority}}}"
            )
            .expect("writing to a text does not fail");
        }
        text.push_str("  - advance: 1m\n");
    }
    text
}

/// A decision is repeated at most twice, so that a few starts are still taken back at once.
#[test]
fn few_starts_are_stopped_at_the_same_instant() {
    let (mut starts, mut stops, mut stopped_at_once) = (0, 0, Vec::new());
    for seed in 0..6 {
        let outcome = outcome(&history(seed));
        let decisions = outcome.frames.iter().flat_map(|frame| &frame.decisions);
        let kinds: Vec<_> = decisions.map(|decision| decision.kind).collect();
        starts += kinds.iter().filter(|kind| **kind == "bind").count();
        stops += kinds.iter().filter(|kind| **kind == "evict").count();
        stopped_at_once.extend(started_and_stopped(&outcome));
    }
    assert!(starts > 500 && stops > 50, "{starts} starts, {stops} stops");
    assert!(stopped_at_once.len() <= 1, "of {stops} stops {stopped_at_once:#?}");
}

#[test]
fn the_wait_for_kept_room_is_told_each_minute_without_a_decision() {
    let mut machine = server(2, [2000, 0], Policy::default());
    submit(&mut machine, 1, training("first", GpuRequest::Whole(1)));
    rest(&mut machine);
    submit(&mut machine, 1, training("large", GpuRequest::Whole(2)));
    rest(&mut machine);
    machine.clock.advance_ms(6 * 60_000);
    submit(&mut machine, 1, training("behind", GpuRequest::Whole(1)));
    rest(&mut machine);
    let mut decisions = 0;
    for minute in 6..60 {
        let view = machine.view().expect("a server");
        let behind = view.workloads.values().find(|one| one.spec.name == "behind");
        let why = view.why(behind.expect("it is there"));
        let told = why.iter().any(|why| why.message.contains(&format!("has waited {minute} min")));
        assert!(told, "{minute}: {why:?}");
        let due = machine.due().expect("the text changes by itself");
        machine.clock.advance_ms(due.since_ms(machine.clock.now()));
        machine.take(Vec::new(), None).expect("it goes on");
        decisions += u32::from(!machine.is_quiet());
        rest(&mut machine);
    }
    assert!(decisions <= 1, "{decisions}: one, when room could be kept for the other");
}
