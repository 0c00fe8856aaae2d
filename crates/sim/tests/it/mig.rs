//! MIG instances in scenario files: accepted and refused input, and reports.

use sim::scenario::Scenario;
use sim::{Record, run};

fn outcome(body: &str) -> sim::Outcome {
    let scenario = Scenario::read(&format!("version: 1\n{body}")).expect("a sound scenario");
    let outcome = run(&scenario, Record::Everything).expect("a sound state");
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
    outcome
}

const NODES: &str = "
nodes:
  - {name: n, gpus: 3, gpu_memory: 40GiB, mig: [{}, {3g.20gb: 1, 1g.5gb: 2}, {1g.5gb: 1}]}
queues: [{name: q, quota: {gpu: 4}}]
";

#[test]
fn each_instance_has_a_number_in_the_place_of_its_gpu() {
    let outcome = outcome(&format!(
        "{NODES}workloads:
  - name: a
    project: q
    gpu: {{mig: {{1g.5gb: 2}}}}
    tasks: [{{state: running, node: n, gpus: [2, 4]}}]
  - name: b
    project: q
    gpu: {{mig: {{3g.20gb: 1}}}}
    tasks: [{{state: running, node: n}}]
  - {{name: c, project: q, gpu: 1, tasks: [{{state: running, node: n}}]}}
steps:
  - expect: {{gpus: {{n: c . a b a}}}}
"
    ));
    assert_eq!(outcome.expectations, 1);
}

#[test]
fn a_snapshot_says_what_the_gpus_are_divided_into() {
    for profile in ["default", "kai"] {
        let before = outcome(&format!(
            "policy: {{profile: {profile}}}{NODES}workloads:
  - {{name: a, project: q, gpu: {{mig: {{1g.5gb: 2, 3g.20gb: 1}}}}}}
"
        ));
        let mut policy = sched::Policy::default();
        if profile == "kai" {
            policy = sched::Policy::kai().expect("built");
        }
        let told = |simulation: &sim::Simulation| {
            let now = units::Instant(1 << 42);
            sim::snapshot(simulation.cluster(), now, &policy).to_json().unwrap()
        };
        let text = told(&before.simulation);
        assert!(text.contains("3g.20gb"), "{text}");
        let again = sim::Simulation::new(&Scenario::read(&text).unwrap()).unwrap();
        assert_eq!(told(&again), text);
    }
}

#[test]
fn kai_counts_each_slice_for_a_gpu() {
    for (profile, millis) in [("default", 428), ("kai", 3000)] {
        let outcome = outcome(&format!(
            "policy: {{profile: {profile}}}{NODES}workloads:
  - {{name: a, project: q, gpu: {{mig: {{3g.20gb: 1}}}}}}
"
        ));
        let queue = &outcome.frames.last().unwrap().queues[0];
        assert_eq!(queue.allocated.gpu_millis, Some(millis));
        let task = &outcome.frames.last().unwrap().tasks[0];
        let json = serde_json::to_string(&task.place).unwrap();
        assert_eq!(
            json,
            format!(r#"{{"node":"n","gpus":[{{"index":3,"millis":{millis},"mig":"3g.20gb"}}]}}"#)
        );
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    for (body, said) in [
        (
            "nodes: [{name: n, gpus: 1, mig: {1g: 1}}]",
            "2:34: `1g` is not a MIG profile; write slices (1 to 7)",
        ),
        ("nodes: [{name: n, gpus: 1, mig: {8g.80gb: 1}}]", "is not a MIG profile"),
        ("nodes: [{name: n, gpus: 1, mig: {1g.5gb: 8}}]", "`mig` has 8 slices; a GPU has 7"),
        ("nodes: [{name: n, gpus: 1, mig: {1g.5gb: -1}}]", "a whole number from 0 to 4294967295"),
        ("nodes: [{name: n, gpus: 1, mig: {1g.5gb: 4294967295}}]", "`mig` has 4294967295 slices"),
        ("nodes: [{name: n, gpus: 2, mig: [{1g.5gb: 1}]}]", "has 2 GPUs and a list of 1 for `mig`"),
        ("nodes: [{name: n, mig: {1g.5gb: 1}}]", "has `mig` and no GPU; say how many with `gpus`"),
        ("WORK {}", "`mig` asks for no MIG instance; ask for 1 or more of a profile"),
        ("WORK {1g.5gb: 0}", "`mig` asks for no MIG instance"),
        ("WORK {1g.5gb: 1025}", "asks for 1025 MIG instances; at most 1024 are allowed"),
        ("WORK {1g.5gb: 4294967295, 1g.10gb: 9}", "asks for 4294967304 MIG instances"),
        (
            "WORK {1g.5gb: 1, 1g.10gb: 1, 2g.10gb: 1, 3g.20gb: 1, 4g.20gb: 1}",
            "more than 4 different MIG profiles",
        ),
        (
            "WORK {1g.5gb: 1}, share: 0.5",
            "`mig` stands alone; leave `devices`, `share` and `memory` out",
        ),
        ("WORK 2", ""),
        ("TASK [0]", "GPU 0 of node `n` is whole; it asks for 1 × 3g.20gb"),
        ("TASK [1]", "GPU 1 of node `n` is a MIG instance, 1g.5gb"),
        ("TASK [9]", "node `n` has no GPU 9; it has 5, counted from 0"),
    ] {
        let body = match (body.strip_prefix("WORK "), body.strip_prefix("TASK ")) {
            (Some(mig), _) => {
                format!("{NODES}workloads: [{{name: a, project: q, gpu: {{mig: {mig}}}}}]")
            }
            (_, Some(gpus)) => format!(
                "{NODES}workloads: [{{name: a, project: q, gpu: {{mig: {{3g.20gb: 1}}}}, tasks: \
                 [{{state: running, node: n, gpus: {gpus}}}]}}]"
            ),
            _ => body.to_owned(),
        };
        let fault = match Scenario::read(&format!("version: 1\n{body}")) {
            Err(error) => error.to_string(),
            Ok(scenario) => run(&scenario, Record::Decisions)
                .err()
                .unwrap_or_else(|| panic!("accepted: {body}"))
                .to_string(),
        };
        assert!(fault.contains(said), "{body}\n{fault}");
    }
}
