//! Node pools with queues of their own, in scenario files.

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

/// Two nodes of four GPUs, one of them in pool `h100`.
const NODES: &str =
    "nodes: [{name: big, gpus: 4, labels: {node-pool: h100}}, {name: small, gpus: 4}]";

fn outcome(text: &str) -> Outcome {
    let text = format!("version: 1\n{NODES}\n{text}");
    let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, Record::Everything).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
    outcome
}

fn refused(text: &str) -> String {
    let text = format!("version: 1\n{NODES}\n{text}");
    let fault = |scenario: Scenario| run(&scenario, Record::Decisions).err();
    match Scenario::read(&text).map(fault) {
        Err(error) | Ok(Some(error)) => error.to_string(),
        Ok(None) => panic!("accepted:\n{text}"),
    }
}

#[test]
fn each_pool_is_divided_by_its_own_figures() {
    outcome(
        "
queues:
  - {name: a, pools: {h100: {quota: {gpu: 1}, weight: {gpu: 3}}, default: {limit: {gpu: 1}}}}
  - {name: b, pools: {h100: {quota: {gpu: 1}}, default: {quota: {gpu: 4}}}}
workloads:
  - {name: x, project: a, gpu: 1, count: 4, pools: [h100]}
  - {name: y, project: b, gpu: 1, count: 4, pools: [h100]}
  - {name: z, project: a, gpu: 1, count: 2, pools: [default]}
steps:
  - expect:
      waiting: [x4, y2, y3, y4, z2]
      queues:
        a: {gpu: 4, fair_share: 4, pools: {h100: {gpu: 3, fair_share: 3}, default: {gpu: 1}}}
        b: {gpu: 1, pools: {h100: {gpu: 1, fair_share: 1}, default: {gpu: 0, fair_share: 0}}}
      workloads: {z2: {pending: [P201, P107]}}
  - submit: {name: w, project: b, gpu: 4, pools: [default]}
    expect:
      stopped: {z1: E101}
  - quota: {project: b, pool: h100, quota: {gpu: 2}}
    expect:
      stopped: {x3: E101}
",
    );
}

#[test]
fn a_report_tells_the_shares_of_each_pool() {
    let text = "
queues: [{name: d, pools: {h100: {quota: {gpu: 4}}}}, {name: a, parent: d, pools: {h100: {quota: {gpu: 2}}}}, {name: b}]
workloads: [{name: x, project: a, gpu: 3}, {name: y, project: b, gpu: 2, count: 3}]
steps: [{cycles: 1}]
";
    let outcome = outcome(text);
    let rows = &outcome.frames.last().unwrap().queues;
    let told = rows.iter().map(|row| {
        let held = row.allocated.gpu_millis.unwrap_or(0) / 1000;
        format!("{}: {held} of {}", row.title(), row.fair_share.gpu_millis.unwrap_or(0) / 1000)
    });
    expect_test::expect![[r#"
        d in pool default: 0 of 0
        a in pool default: 0 of 0
        b in pool default: 4 of 4
        d in pool h100: 3 of 3
        a in pool h100: 3 of 3
        b in pool h100: 0 of 1"#]]
    .assert_eq(&told.collect::<Vec<_>>().join("\n"));
}

#[test]
fn each_pool_fills_its_nodes_in_its_own_order() {
    let nodes = "nodes: [{name: p, gpus: 4, count: 2}, {name: q, gpus: 4, count: 2, labels: {node-pool: h100}}]";
    let text = format!(
        "
version: 1
policy: {{placement: bin-pack, pool_placement: {{h100: spread}}}}
{nodes}
queues: [{{name: a, pools: {{h100: {{quota: {{gpu: 8}}}}, default: {{quota: {{gpu: 8}}}}}}}}]
workloads:
  - {{name: x, project: a, gpu: 1, count: 2, pools: [default]}}
  - {{name: y, project: a, gpu: 1, count: 2, pools: [h100]}}
  - {{name: s, project: a, gpu: 0.5, count: 2, pools: [default]}}
  - {{name: t, project: a, gpu: 0.5, count: 2, pools: [h100]}}
steps: [{{cycles: 1}}]
"
    );
    let scenario = Scenario::read(&text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&scenario, Record::Everything).unwrap_or_else(|error| panic!("{error}"));
    let cluster = outcome.simulation.cluster();
    let used = cluster.nodes().iter().map(|(_, node)| {
        let gpus: Vec<_> = node.gpus.iter().map(|gpu| gpu.used_millis).collect();
        format!("{} {gpus:?}", node.name)
    });
    expect_test::expect![[r#"
        p1 [1000, 1000, 1000, 0]
        p2 [0, 0, 0, 0]
        q1 [1000, 500, 0, 0]
        q2 [1000, 500, 0, 0]"#]]
    .assert_eq(&used.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    for (text, said) in [
        (
            "queues: [{name: a, pools: {h10: {}}}]",
            "3:10: queue `a`: no node is in a pool `h10`; did you mean `h100`?",
        ),
        (
            "queues: [{name: a, pools: {h100: {qota: {gpu: 1}}}}]",
            "unknown key `qota`; did you mean `quota`?",
        ),
        (
            "queues: [{name: a, quota: {gpu: 1}, pools: {h100: {}}}]",
            "belongs there: `pools: {default: {quota: …}}`",
        ),
        (
            "queues: [{name: a, pools: {h100: {}}}]\nsteps: [{quota: {project: a, pool: x}}]",
            "no node is in a pool `x`",
        ),
    ] {
        let fault = refused(text);
        assert!(fault.contains(said), "{text}\n{fault}");
    }
}

#[test]
fn a_pool_that_comes_with_a_node_has_queues_without_quota() {
    outcome(
        "
queues: [{name: a, pools: {h100: {quota: {gpu: 4}}}}, {name: b, pools: {default: {quota: {gpu: 4}}}}]
steps:
  - add_node: {name: late, gpus: 2, labels: {node-pool: b200}}
  - submit: {name: x, project: a, gpu: 1, count: 2, pools: [b200]}
    expect:
      queues: {a: {gpu: 2, pools: {b200: {gpu: 2, fair_share: 2}}}}
  - quota: {project: b, pool: b200, quota: {gpu: 1}}
  - submit: {name: y, project: b, gpu: 1, pools: [b200, default]}
    expect:
      workloads: {y: {state: running, nodes: small}}
",
    );
}

#[test]
fn profile_kai_decides_in_each_pool_and_a_snapshot_says_so() {
    let state = "
policy: {profile: kai}
queues:
  - {name: a, pools: {h100: {quota: {gpu: 3}}, default: {quota: {gpu: 0}, limit: {gpu: 1}}}}
  - {name: b, pools: {h100: {quota: {gpu: 1}}, default: {quota: {gpu: 4}}}}
workloads:
  - {name: x, project: b, gpu: 1, count: 4, pools: [h100]}
  - {name: y, project: a, gpu: 1, count: 2, pools: [default]}
";
    let steps = "
steps:
  - submit: {name: z, project: a, gpu: 2, pools: [h100]}
    expect:
      waiting: [x3, x4, y2]
      queues:
        a: {pools: {h100: {gpu: 2, fair_share: 2}, default: {gpu: 1, fair_share: 1}}}
        b: {pools: {h100: {gpu: 2, fair_share: 2}, default: {gpu: 0, fair_share: 0}}}
";
    outcome(&format!("{state}{steps}"));
    let before = outcome(&format!("{state}steps: [{{expect: {{waiting: [y2]}}}}]")).simulation;
    let told = sim::snapshot(
        before.cluster(),
        units::Instant(1 << 42),
        &sched::Policy::kai().expect("built"),
    );
    let again = Scenario::read(&told.to_json().expect("JSON")).expect("a sound scenario");
    assert_eq!((&again.queues, &again.policy), (&told.queues, &told.policy));
    let steps = Scenario::read(&format!("version: 1{steps}")).expect("sound steps").steps;
    let outcome = run(&Scenario { steps, ..again }, Record::Decisions).expect("a sound state");
    assert_eq!(outcome.failures, []);
}

#[test]
fn time_based_fairness_counts_each_pool_on_its_own() {
    outcome(
        "
policy: {usage: {window: 1h}}
queues: [{name: a, pools: {h100: {usage_ppm: {gpu: 500000}}}}, {name: b, pools: {h100: {}}}]
workloads:
  - {name: x, project: a, gpu: 1, count: 4, pools: [h100]}
  - {name: y, project: b, gpu: 1, count: 4, pools: [h100]}
  - {name: v, project: a, gpu: 1, count: 4, pools: [default]}
  - {name: w, project: b, gpu: 1, count: 4, pools: [default]}
steps:
  - expect:
      queues:
        a: {pools: {h100: {fair_share: 1}, default: {fair_share: 2}}}
        b: {pools: {h100: {fair_share: 3}, default: {fair_share: 2}}}
",
    );
}
