//! Node affinity in scenario files, and nodes that are added and removed.

use sim::scenario::Scenario;
use sim::{Record, run};

/// Runs a scenario whose expectations must all hold.
fn holds(body: &str) {
    let scenario = Scenario::read(&format!("version: 1\n{body}")).expect("a sound scenario");
    let outcome = run(&scenario, Record::Decisions).expect("a sound state");
    assert!(outcome.expectations > 0 && outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
}

const NODES: &str = "
nodes:
  - {name: old, gpus: 1, labels: {zone: a, gen: '6'}}
  - {name: new, gpus: 1, labels: {zone: b, gen: '9', fast: ''}}
queues: [{name: q, quota: {gpu: 2}}]
";

/// Asserts that a workload with this affinity is placed on `to`, or not placed if `to` is `waits`.
fn goes(affinity: &str, to: &str) {
    let expected = if to == "waits" {
        "{state: pending, pending: [P107, P204]}".to_owned()
    } else {
        format!("{{state: running, nodes: {to}}}")
    };
    holds(&format!(
        "{NODES}steps:
  - submit: {{name: a, project: q, gpu: 1, affinity: {affinity}}}
    expect: {{workloads: {{a: {expected}}}}}
"
    ));
}

#[test]
fn every_operator_of_a_required_affinity() {
    for (requirement, to) in [
        ("{key: zone, operator: In, values: [b, c]}", "new"),
        ("{key: zone, operator: In, values: c}", "waits"),
        ("{key: zone, operator: NotIn, values: [a]}", "new"),
        ("{key: fast, operator: NotIn, values: ['']}", "old"),
        ("{key: fast, operator: Exists}", "new"),
        ("{key: fast, operator: DoesNotExist}", "old"),
        ("{key: gen, operator: Gt, values: '6'}", "new"),
        ("{key: gen, operator: Lt, values: ['9']}", "old"),
        ("{key: zone, operator: Lt, values: '9'}", "waits"),
    ] {
        goes(&format!("{{required: [[{requirement}]]}}"), to);
    }
}

#[test]
fn all_of_a_term_and_one_of_the_terms() {
    let a = "{key: zone, operator: In, values: a}";
    let fast = "{key: fast, operator: Exists}";
    goes(&format!("{{required: [[{a}, {fast}]]}}"), "waits");
    goes(&format!("{{required: [[{a}, {fast}], [{fast}]]}}"), "new");
}

#[test]
fn what_is_preferred_is_taken_if_it_is_free() {
    let prefer = |zone: &str, weight: u32| {
        format!("{{weight: {weight}, term: [{{key: zone, operator: In, values: {zone}}}]}}")
    };
    goes(&format!("{{preferred: [{}]}}", prefer("b", 1)), "new");
    goes(&format!("{{preferred: [{}, {}]}}", prefer("b", 1), prefer("a", 2)), "old");
    goes(&format!("{{preferred: [{}]}}", prefer("c", 100)), "[old]");
}

#[test]
fn a_drained_node_is_emptied_removed_and_added_again() {
    holds(&format!(
        "{NODES}workloads: [{{name: a, count: 2, project: q, gpu: 1}}]
steps:
  - drain: old
    expect: {{gpus: {{old: '.', new: a2}}, stopped: {{a1: E106}}, waiting: [a1]}}
  - remove_node: old
    expect: {{queues: {{q: {{gpu: 1, fair_share: 1}}}}}}
  - add_node: {{name: old, gpus: 1}}
    expect: {{gpus: {{old: a1, new: a2}}}}
"
    ));
}

#[test]
fn pools_are_tried_in_their_order_and_told_by_a_snapshot() {
    let text = "
nodes: [{name: a, gpus: 2, labels: {node-pool: slow}}, {name: b, gpus: 2}]
queues: [{name: q, quota: {gpu: 4}}]
workloads:
  - {name: one, project: q, gpu: 1, pools: [default]}
  - {name: gang, project: q, gpu: 1, pods: 2, pools: [default, slow]}
steps: [{expect: {gpus: {a: gang gang, b: one .}}}]
";
    holds(text);
    let scenario = Scenario::read(&format!("version: 1{text}")).unwrap();
    let outcome = run(&scenario, Record::Decisions).unwrap();
    let cluster = outcome.simulation.cluster();
    let told = sim::snapshot(cluster, units::Instant(1 << 42), &sched::Policy::default());
    assert_eq!(told.workloads[1].pools, ["default", "slow"]);
}

#[test]
fn evicted_pods_of_one_workload_do_not_come_back() {
    holds(
        "nodes: [{name: n, gpus: 2}]
queues: [{name: q, quota: {gpu: 2}}]
workloads:
  - {name: a, project: q, gpu: 1}
  - {name: b, project: q, gpu: 1, evicted: gone}
steps:
  - drain: n
    expect: {waiting: [a], workloads: {b: {state: gone}}}
",
    );
}

#[test]
fn a_snapshot_keeps_affinities_and_nodes_that_are_drained() {
    let text = format!(
        "version: 1{NODES}workloads:
  - name: a
    project: q
    affinity:
      required: [[{{key: gen, operator: Gt, values: '3'}}, {{key: x, operator: DoesNotExist}}]]
      preferred: [{{weight: 3, term: [{{key: zone, operator: NotIn, values: [a, b]}}]}}]
steps: [{{drain: old}}]
"
    );
    let outcome = run(&Scenario::read(&text).unwrap(), Record::Decisions).unwrap();
    let simulation = &outcome.simulation;
    let policy = sched::Policy::default();
    let told = sim::snapshot(simulation.cluster(), units::Instant(1 << 42), &policy);
    let again = Scenario::read(&told.to_json().unwrap()).unwrap();
    assert_eq!(again.nodes, told.nodes);
    assert!(again.nodes[0].draining && !again.nodes[0].cordoned);
    assert_eq!(again.workloads[0].affinity, told.workloads[0].affinity);
    assert_eq!(told.workloads[0].affinity.required[0].len(), 2);
}
