//! Places that are kept through short failures: a failed attempt, a node that is away.

use sim::scenario::Scenario;
use sim::{Record, run};

/// Runs a scenario of one project with a quota of four GPUs; its expectations must all hold.
fn holds(body: &str) {
    let head = "version: 1\nqueues: [{name: q, quota: {gpu: 4}}]\n";
    let scenario = Scenario::read(&format!("{head}{body}")).expect("a sound scenario");
    let outcome = run(&scenario, Record::Decisions).expect("a sound state");
    assert!(outcome.expectations > 0 && outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
}

#[test]
fn a_failed_attempt_does_not_cost_the_place() {
    for workload in ["gpu: 4", "gpu: 2, pods: 2", "gpu: 1, pods: 4, pods_min: 2"] {
        holds(&format!(
            "nodes: [{{name: n, gpus: 4}}]
workloads: [{{name: big, project: q, {workload}}}]
steps:
  - submit: {{name: single, count: 4, project: q, gpu: 1}}
  - fail: big
  - advance: 5s
    expect: {{gpus: {{n: big big big big}}, workloads: {{big: {{state: running}}}}}}
"
        ));
    }
}

/// Pauses of 1, 2, 4, 8 and 16 seconds; the next would be the 64th second.
#[test]
fn a_crash_loop_idles_no_gpu_for_more_than_a_minute() {
    let fails = "  - fail: loop
  - {advance: 17s, expect: {gpus: {n: loop loop loop loop}}}
";
    for workload in ["gpu: 4", "gpu: 1, pods: 4", "gpu: 2, pods: 2"] {
        holds(&format!(
            "nodes: [{{name: n, gpus: 4}}]
workloads: [{{name: loop, project: q, {workload}, backoff_limit: 99}}]
steps:
  - submit: {{name: single, count: 4, project: q, gpu: 1}}
{}  - fail: loop
    expect: {{gpus: {{n: single1 single2 single3 single4}}, workloads: {{loop: {{state: pending}}}}}}
",
            fails.repeat(5)
        ));
    }
}

/// Outages of a node count with the pauses: the second may last only for what is left of a minute.
#[test]
fn a_node_that_flaps_idles_no_gpu_for_more_than_a_minute() {
    let lost = |again: &str| {
        format!(
            "nodes: [{{name: n, count: 4, gpus: 1}}]
workloads: [{{name: gang, project: q, gpu: 1, pods: 4}}]
steps:
  - submit: {{name: single, count: 4, project: q, gpu: 1}}
  - lose_node: n4
  - {{advance: 50s, expect: {{workloads: {{gang: {{running: 3}}, single1: {{state: pending}}}}}}}}
  - add_node: {{name: n4, gpus: 1}}
  - advance: 1s
  - lose_node: n4
{again}"
        )
    };
    holds(&lost("  - {advance: 5s, expect: {workloads: {gang: {running: 3}}}}\n"));
    holds(&lost("  - {advance: 15s, expect: {workloads: {single1: {state: running}}}}\n"));
}

/// A place in which nothing runs is taken from work that is not preemptible, too.
#[test]
fn work_that_is_not_preemptible_keeps_no_idle_place_from_more_important_work() {
    for taker in ["", ", preemptible: false"] {
        holds(&format!(
            "nodes: [{{name: n, gpus: 4}}]
workloads:
  - {{name: runs, project: q, gpu: 2, preemptible: false}}
  - {{name: late, project: q, gpu: 2, preemptible: false}}
steps:
  - advance: 10m
  - fail: runs
  - submit: {{name: taker, gpu: 2, project: q, priority: 125{taker}}}
    expect: {{gpus: {{n: taker taker late late}}, workloads: {{runs: {{state: pending}}}}}}
"
        ));
    }
}

#[test]
fn draining_deletion_and_a_time_limit_take_a_kept_place_at_once() {
    let paused = "nodes: [{name: n, count: 2, gpus: 2}]
workloads: [{name: a, project: q, gpu: 2, time_limit: 30s}, {name: b, project: q, gpu: 2}]
steps:
  - advance: 29s
  - fail: a
    expect: {gpus: {n1: a a, n2: b b}}
";
    for (takes, then) in [
        ("drain: n1", "gpus: {n1: . .}"),
        ("delete: a", "gpus: {n1: . .}"),
        ("advance: 1s", "gpus: {n1: . .}, workloads: {a: {state: suspended}}"),
    ] {
        holds(&format!("{paused}  - {takes}\n    expect: {{{then}}}\n"));
    }
}

#[test]
fn more_important_work_a_quota_and_draining_take_the_places_of_a_gang_in_its_grace() {
    for takes in [
        "submit: {name: taker, gpu: 1, project: q, priority: 60}
    expect: {workloads: {taker: {state: running}}}",
        "submit: {name: taker, gpu: 1, project: r}
    expect: {workloads: {taker: {state: running}}}",
        "drain: n3
    expect: {gpus: {n3: .}}",
        "delete: gang
    expect: {gpus: {n1: ., n2: ., n3: .}}",
    ] {
        let text = format!(
            "version: 1
nodes: [{{name: n, count: 4, gpus: 1}}]
queues: [{{name: q}}, {{name: r, quota: {{gpu: 4}}}}]
workloads: [{{name: gang, project: q, gpu: 1, pods: 4, age: 20h}}]
steps:
  - lose_node: n4
    expect: {{workloads: {{gang: {{running: 3}}}}}}
  - {takes}
"
        );
        let scenario = Scenario::read(&text).expect("a sound scenario");
        let outcome = run(&scenario, Record::Decisions).expect("a sound state");
        assert!(outcome.failures.is_empty(), "{takes}: {:?}", outcome.failures);
    }
}

/// A sixth pause of 32 seconds is within 60 and 5 % of an hour; one of 64 is too long by itself.
#[test]
fn a_workload_that_has_run_keeps_its_place_for_longer() {
    let fails = "  - fail: old
  - {advance: 33s, expect: {gpus: {n: old old old old}}}
";
    holds(&format!(
        "nodes: [{{name: n, gpus: 4}}]
workloads: [{{name: old, project: q, gpu: 4, backoff_limit: 99}}]
steps:
  - advance: 1h
  - submit: {{name: single, count: 4, project: q, gpu: 1}}
{}  - fail: old
    expect: {{workloads: {{old: {{state: pending}}, single1: {{state: running}}}}}}
",
        fails.repeat(6)
    ));
}

#[test]
fn more_important_work_and_a_quota_take_a_kept_place_at_once() {
    let paused = "version: 1
nodes: [{name: n, gpus: 4}]
queues: [{name: q}, {name: r, quota: {gpu: 4}}]
workloads:
  - {name: runs, project: q, gpu: 2}
  - {name: late, project: q, gpu: 2}
steps:
  - advance: 10m
  - fail: runs
";
    for taker in ["project: q, priority: 60", "project: r"] {
        let text = format!(
            "{paused}  - submit: {{name: taker, gpu: 2, {taker}}}
    expect: {{gpus: {{n: taker taker late late}}, workloads: {{runs: {{state: pending}}}}}}
"
        );
        let scenario = Scenario::read(&text).expect("a sound scenario");
        let outcome = run(&scenario, Record::Decisions).expect("a sound state");
        assert!(outcome.failures.is_empty(), "{taker}: {:?}", outcome.failures);
    }
}

const FOUR_NODES: &str = "nodes: [{name: n, count: 4, gpus: 1}]
workloads: [{name: gang, project: q, gpu: 1, pods: 4, age: 20h}]
steps:
  - submit: {name: single, count: 4, project: q, gpu: 1}
  - lose_node: n4
";

#[test]
fn a_gang_keeps_its_other_places_while_a_node_is_away() {
    for away in ["2s", "1m"] {
        holds(&format!(
            "{FOUR_NODES}  - advance: {away}
    expect: {{workloads: {{gang: {{running: 3}}}}}}
  - add_node: {{name: n4, gpus: 1}}
    expect: {{workloads: {{gang: {{state: running}}}}}}
  - advance: 24h
    expect: {{workloads: {{gang: {{state: running}}, single1: {{state: pending}}}}}}
"
        ));
    }
}

#[test]
fn a_group_keeps_its_other_places_while_a_node_is_away() {
    let lost = "nodes: [{name: n, count: 4, gpus: 1}]
workloads:
  - name: w
    project: q
    age: 20h
    groups: [{name: a}, {name: b}]
    pod_sets: [{name: x, pods: 2, gpu: 1, group: a}, {name: y, pods: 2, gpu: 1, group: b}]
steps:
  - submit: {name: single, count: 4, project: q, gpu: 1}
  - lose_node: n4
  - advance: 2s
    expect: {workloads: {w: {running: 3}, single1: {state: pending}}}
";
    holds(&format!(
        "{lost}  - add_node: {{name: n4, gpus: 1}}
  - advance: 24h
    expect: {{workloads: {{w: {{state: running}}, single1: {{state: pending}}}}}}
"
    ));
    holds(&format!(
        "{lost}  - advance: 61s
    expect: {{workloads: {{w: {{state: pending}}, single3: {{state: running}}}}}}
"
    ));
}

#[test]
fn it_goes_on_elsewhere_if_it_can_and_gives_up_after_a_minute() {
    holds(&format!(
        "{FOUR_NODES}  - add_node: {{name: other, gpus: 1}}
    expect: {{workloads: {{gang: {{state: running}}}}}}
"
    ));
    holds(&format!(
        "{FOUR_NODES}  - advance: 61s
    expect: {{workloads: {{gang: {{state: pending}}, single3: {{state: running}}}}}}
"
    ));
}

#[test]
fn a_drained_node_costs_a_gang_nothing_where_it_is_back_soon() {
    holds(
        "nodes: [{name: n, count: 2, gpus: 1}]
workloads: [{name: gang, project: q, gpu: 1, pods: 2}]
steps:
  - advance: 1h
  - submit: {name: filler, project: q, gpu: 1, count: 2}
  - lose_node: n2
  - advance: 1m
  - add_node: {name: n2, gpus: 1}
    expect: {workloads: {gang: {state: running}}}
  - drain: n2
  - advance: 1m
  - uncordon: n2
  - advance: 10m
    expect: {workloads: {gang: {state: running}}}
",
    );
}
