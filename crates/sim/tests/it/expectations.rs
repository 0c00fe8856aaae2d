//! Expectations that do not hold are reported; those that hold are not.

use sim::scenario::Scenario;
use sim::{Record, run};

/// The failed expectations after one decision: `a` runs on GPU 0, a gang of two waits for the GPU
/// of `old`, half a GPU is shared by `s` and `t`.
fn wrong(expect: &str) -> Vec<String> {
    let text = format!(
        "version: 1
world: {{schedule: by-hand, releasing: until-gone}}
nodes: [{{name: n, gpus: 4}}]
queues: [{{name: q, quota: {{gpu: 4}}}}]
workloads:
  - {{name: a, project: q, gpu: 1}}
  - {{name: old, project: q, gpu: 1, tasks: [{{state: releasing, node: n, gpus: [1], unwanted: true}}]}}
  - {{name: s, project: q, gpu: 0.5, tasks: [{{state: running, node: n, gpus: [2]}}]}}
  - {{name: t, project: q, gpu: 0.5}}
  - {{name: g, project: q, gpu: 1, pods: 2}}
steps: [{{cycles: {{actions: [allocate]}}, expect: {{{expect}}}}}]
"
    );
    let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
    outcome.failures.into_iter().map(|failure| failure.message).collect()
}

#[test]
fn what_holds_is_silent() {
    for expect in [
        "decisions: {bind: 2, reserve: 2, evict: 0}",
        "workloads: {g: {state: reserved, pipelined: 2, running: 0, releasing: 0}}",
        "workloads: {g: {tasks: [{state: pipelined, node: n, gpu: 1}, {state: reserved}]}}",
        "workloads: {old: {releasing: 1, tasks: [{state: releasing, gpus: [1]}]}}",
        "workloads: {a: {tasks: [{state: bound, groups: x}]}, old: {tasks: [{groups: y}]}}",
        "workloads: {s: {tasks: [{groups: x}]}, t: {tasks: [{groups: [x], gpu: 0.5}]}}",
    ] {
        assert_eq!(wrong(expect), Vec::<String>::new(), "{expect}");
    }
}

#[test]
fn what_does_not_hold_is_told() {
    for (expect, said) in [
        ("decisions: {bind: 3}", "decisions of kind bind\n    expected  3\n    found     2"),
        ("workloads: {g: {pipelined: 1}}", "pipelined pods of g"),
        ("workloads: {g: {tasks: [{state: running}]}}", "found     pipelined"),
        ("workloads: {a: {tasks: [{}, {}]}}", "task 1 of a is not there: it has 1 tasks"),
        ("workloads: {a: {tasks: [{node: m}]}}", "node of task 0 of a"),
        ("workloads: {s: {tasks: [{gpu: 1}]}}", "GPUs of task 0 of s"),
        ("workloads: {a: {tasks: [{gpus: [3]}]}}", "GPU indices of task 0 of a"),
        ("workloads: {a: {tasks: [{groups: [x, y]}]}}", "task 0 of a is on 1 GPUs"),
        (
            "workloads: {a: {tasks: [{groups: x}]}, old: {tasks: [{groups: x}]}}",
            "task 0 of old is not on GPU group x",
        ),
        (
            "workloads: {s: {tasks: [{groups: x}]}, t: {tasks: [{groups: y}]}}",
            "task 0 of t is on GPU group x, not y",
        ),
    ] {
        let found = wrong(expect);
        assert!(found.len() == 1 && found[0].contains(said), "{expect}\n{found:#?}");
    }
}

#[test]
fn profiles_derive_preemptibility_and_priority_each_in_its_own_way() {
    let of = |profile: &str, keys: &str| {
        let text = format!(
            "version: 1\npolicy: {{profile: {profile}}}\nqueues: [{{name: q}}]\n\
             workloads: [{{name: a, project: q{keys}}}]\n"
        );
        let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
        let mut rows = outcome.simulation.cluster().workloads().iter();
        let spec = rows.next().map(|(_, row)| (row.spec.preemptible, row.spec.priority));
        spec.unwrap_or_else(|| panic!("no workload in {text}"))
    };
    for (keys, ours, kai) in [
        ("", (true, 50), (true, 50)),
        (", priority: 99", (true, 99), (true, 99)),
        (", priority: 100", (true, 100), (false, 100)),
        (", preemptible: false", (false, 100), (false, 50)),
        (", preemptible: true, priority: 125", (true, 125), (true, 125)),
    ] {
        assert_eq!((of("default", keys), of("kai", keys)), (ours, kai), "{keys}");
    }
}

#[test]
fn a_gang_can_be_stale_at_the_start() {
    for (stale, state) in [("59s", "partly"), ("61s", "releasing")] {
        let text = format!(
            "version: 1
world: {{schedule: by-hand, releasing: until-gone}}
nodes: [{{name: n, gpus: 1}}]
queues: [{{name: q}}]
workloads: [{{name: g, project: q, gpu: 1, pods: 2, stale: {stale}, tasks: [{{state: running, node: n}}]}}]
steps: [{{cycles: {{actions: [stale]}}, expect: {{workloads: {{g: {{state: {state}}}}}}}}}]
"
        );
        let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let outcome = run(&scenario, Record::Decisions).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    }
}
