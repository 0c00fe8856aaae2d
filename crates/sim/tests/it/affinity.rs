//! Pod affinity and anti-affinity in scenario files.

use sim::scenario::Scenario;
use sim::{Record, run};

fn holds(body: &str) -> sim::Outcome {
    let scenario = Scenario::read(&format!("version: 1\n{body}")).expect("a sound scenario");
    let outcome = run(&scenario, Record::Decisions).expect("a sound state");
    assert!(outcome.expectations > 0 && outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
    outcome
}

const NODES: &str = "
nodes:
  - {name: a1, gpus: 2, labels: {zone: a}}
  - {name: a2, gpus: 2, labels: {zone: a}}
  - {name: b1, gpus: 2, labels: {zone: b}}
queues: [{name: q, quota: {gpu: 6}}]
";

#[test]
fn pods_go_with_others_and_keep_apart() {
    holds(&format!(
        "{NODES}steps:
  - submit:
      name: replicas
      project: q
      gpu: 1
      pods: 3
      labels: {{app: web}}
      pod_anti_affinity: {{required: [{{labels: {{app: web}}, topology_key: hostname}}]}}
    expect: {{gpus: {{a1: replicas ., a2: replicas ., b1: replicas .}}}}
  - submit:
      name: cache
      project: q
      gpu: 1
      selector: {{zone: b}}
      labels: {{app: cache}}
      pod_affinity: {{required: [{{labels: {{app: web}}, topology_key: zone}}]}}
    expect: {{gpus: {{b1: replicas cache}}}}
  - submit:
      name: alone
      project: q
      gpu: 1
      pod_anti_affinity: {{required: [{{labels: {{app: web}}, topology_key: zone}}]}}
    expect: {{workloads: {{alone: {{state: pending, pending: [P110, P205]}}}}}}
  - delete: replicas
    expect: {{waiting: []}}
"
    ));
}

#[test]
fn preferences_have_weights() {
    holds(&format!(
        "{NODES}workloads:
  - {{name: db, project: q, gpu: 1, labels: {{app: db}}, tasks: [{{state: running, node: b1}}]}}
  - {{name: noise, project: q, gpu: 0, labels: {{app: noise}}, tasks: [{{state: running, node: b1}}]}}
steps:
  - submit:
      name: near
      project: q
      gpu: 1
      pod_affinity:
        preferred: [{{weight: 60, term: {{labels: {{app: db}}, topology_key: hostname}}}}]
      pod_anti_affinity:
        preferred: [{{weight: 50, term: {{labels: {{app: noise}}, topology_key: zone}}}}]
    expect: {{workloads: {{near: {{nodes: b1}}}}}}
  - submit:
      name: away
      project: q
      gpu: 1
      pod_affinity:
        preferred: [{{weight: 50, term: {{labels: {{app: db}}, topology_key: hostname}}}}]
      pod_anti_affinity:
        preferred: [{{weight: 60, term: {{labels: {{app: noise}}, topology_key: zone}}}}]
    expect: {{workloads: {{away: {{nodes: a1}}}}}}
"
    ));
}

#[test]
fn a_snapshot_says_it_again() {
    let outcome = holds(&format!(
        "{NODES}workloads:
  - name: w
    project: q
    pod_sets:
      - name: lead
        gpu: 1
        labels: {{role: lead}}
        pod_affinity:
          preferred: [{{weight: 7, term: {{labels: {{app: db}}, topology_key: zone}}}}]
      - name: work
        gpu: 1
        pod_affinity: {{required: [{{labels: {{role: lead}}, topology_key: zone}}]}}
        pod_anti_affinity:
          required: [{{labels: {{role: lead}}, topology_key: hostname}}]
          preferred: [{{weight: 9, term: {{labels: {{app: db}}, topology_key: zone}}}}]
steps:
  - expect: {{gpus: {{a1: w ., a2: w .}}}}
"
    ));
    let told = |simulation: &sim::Simulation| {
        let policy = sched::Policy::default();
        let now = units::Instant(1 << 42);
        sim::snapshot(simulation.cluster(), now, &policy).to_json().unwrap()
    };
    let text = told(&outcome.simulation);
    assert!(text.contains("pod_anti_affinity"), "{text}");
    let again = sim::Simulation::new(&Scenario::read(&text).unwrap()).unwrap();
    assert_eq!(told(&again), text);
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    for (keys, said) in [
        (
            "pod_affinity: {required: [{labels: {}, topology_key: zone}]}",
            "`pod_affinity` has a term without `labels`; write at least one",
        ),
        (
            "pod_anti_affinity: {required: [{labels: {a: b}, topology_key: ''}]}",
            "`pod_anti_affinity` has an empty `topology_key`; write `hostname` or a label of nodes",
        ),
        ("pod_affinity: {required: [{labels: {a: b}}]}", "key `topology_key` is missing"),
        ("pod_afinity: {}", "unknown key `pod_afinity`; did you mean `pod_affinity`?"),
        (
            "pod_affinity: {preferred: [{weight: 101, term: {labels: {a: b}, topology_key: z}}]}",
            "`pod_affinity`: a `weight` is 101; 1 to 100 are allowed",
        ),
        ("labels: {a: b}, pod_sets: [{name: x}]", "has `labels` and `pod_sets`"),
    ] {
        let text = format!("version: 1\n{NODES}workloads: [{{name: w, project: q, {keys}}}]");
        let fault = match Scenario::read(&text) {
            Err(error) => error.to_string(),
            Ok(scenario) => run(&scenario, Record::Decisions)
                .err()
                .map_or_else(|| panic!("accepted: {keys}"), |error| error.to_string()),
        };
        assert!(fault.contains(said), "{keys}\n{fault}");
    }
}
