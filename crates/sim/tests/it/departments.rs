//! Queues below queues: reclaim across departments.

use sim::scenario::Scenario;

#[test]
fn what_a_sibling_gives_lets_the_department_take_from_others() {
    // With a1 the department would hold 3 GPUs, and its quota is 2.
    let text = "version: 1
nodes: [{name: n1, gpus: 4}]
queues:
  - {name: d, quota: {gpu: 2}}
  - {name: a, parent: d}
  - {name: c, parent: d, quota: {gpu: 2}}
  - {name: b, quota: {gpu: 2}}
workloads:
  - {name: b1, project: b, count: 3, gpu: 1}
  - {name: a1, project: a, gpu: 1}
steps:
  - submit: {name: new, project: c, gpu: 2}
    expect: {waiting: [b13, a1], workloads: {new: {state: running}}}
";
    let scenario = Scenario::read(text).expect("a sound scenario");
    let outcome = sim::run(&scenario, sim::Record::Decisions).expect("a sound scenario");
    assert_eq!(outcome.failures, []);
}
