//! Pod sets, groups and topologies in scenario files: accepted, refused, placed.

use sim::scenario::Scenario;
use sim::{Record, run};

/// Two racks in each of two blocks, one node of 2 GPUs in each rack.
const NODES: &str = "version: 1
topologies: [{name: net, levels: [block, rack]}]
nodes:
  - {name: n1, gpus: 2, labels: {block: a, rack: r1}}
  - {name: n2, gpus: 2, labels: {block: a, rack: r2}}
  - {name: n3, gpus: 2, labels: {block: b, rack: r1}}
  - {name: n4, gpus: 2, labels: {block: b, rack: r2}}
queues: [{name: q, quota: {gpu: 8}}]
";

/// Runs steps whose expectations must all hold.
fn holds(steps: &str) {
    let scenario = Scenario::read(&format!("{NODES}{steps}")).expect("a sound scenario");
    let outcome = run(&scenario, Record::Decisions).expect("a sound state");
    assert!(outcome.expectations > 0 && outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
}

/// The error of a workload with these keys.
fn refused(keys: &str) -> String {
    let text = format!("{NODES}workloads:\n  - {{name: w, project: q, {keys}}}\n");
    let scenario = match Scenario::read(&text) {
        Ok(scenario) => scenario,
        Err(error) => return error.to_string(),
    };
    match run(&scenario, Record::Decisions) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted: {keys}"),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (keys, said) in cases {
        let fault = refused(keys);
        assert!(fault.contains(said), "{keys}\n{fault}");
    }
}

/// The state of `w` after one decision of profile `kai` on a node of four GPUs.
fn mixed(keys: &str) -> Result<String, String> {
    let text = format!(
        "version: 1
policy: {{profile: kai}}
world: {{schedule: by-hand, releasing: until-gone}}
nodes: [{{name: n, gpus: 4, labels: {{zone: a}}}}]
queues: [{{name: q, quota: {{gpu: 9}}}}]
workloads: [{{name: w, project: q, {keys}}}]
steps: [{{cycles: {{actions: [allocate]}}}}]
"
    );
    let scenario = Scenario::read(&text).map_err(|error| error.to_string())?;
    let outcome = run(&scenario, Record::Decisions).map_err(|error| error.to_string())?;
    let pods = outcome.simulation.cluster().pods().iter().map(|(_, pod)| &pod.binding);
    let held = |place: &model::Placement| units::format_millis(place.gpu_millis());
    let told = pods.map(|pod| pod.current.as_ref().map_or(".".into(), held));
    Ok(told.collect::<Vec<_>>().join(" "))
}

#[test]
fn tasks_may_ask_for_something_of_their_own() {
    assert_eq!(mixed("gpu: 1, pods: 3, tasks: [{gpu: 2}]").unwrap(), "2 1 1");
    assert_eq!(mixed("gpu: 1, pods: 3, tasks: [{}, {gpu: 0.5}, {gpu: 2}]").unwrap(), "1 0.5 2");
    // All of the pods are placed, or as many as are needed.
    assert_eq!(mixed("gpu: 1, pods: 3, tasks: [{gpu: 3}]").unwrap(), ". . .");
    assert_eq!(mixed("gpu: 1, pods: 3, pods_min: 2, tasks: [{gpu: 3}]").unwrap(), "3 1 .");
    assert_eq!(
        mixed("pods: 2, tasks: [{selector: {zone: a}}, {selector: {zone: b}}]").unwrap(),
        ". ."
    );
}

#[test]
fn tasks_with_requests_of_their_own_are_refused_where_they_make_no_sense() {
    for (keys, said) in [
        (
            "pods: 300, tasks: [{gpu: 2}]",
            "has 300 pods, and a task that asks for something of its own",
        ),
        ("gpu: 1, elastic: true, tasks: [{gpu: 2}]", "is not for `completions` and `elastic`"),
        ("pods: 2, pods_min: 3, tasks: [{gpu: 2}]", "`pods_min` is 3; 1 to 2 (all its pods)"),
        ("pod_sets: [{name: a}], tasks: [{gpu: 2}]", "task 0 asks for something of its own"),
        ("pods: 2, tasks: [{gpu: -1}]", "-1"),
        ("pods: 1, tasks: [{gpu: 1}, {gpu: 2}]", "has 2 tasks and 1 pods"),
    ] {
        let error = mixed(keys).unwrap_err();
        assert!(error.contains(said), "{keys}: {error}");
    }
}

#[test]
fn a_gang_starts_in_one_rack() {
    holds(
        "workloads: [{name: a, project: q, gpu: 1, tasks: [{state: running, node: n1}]}]
steps:
  - submit: {name: w, project: q, pods: 2, gpu: 1, topology: {name: net, required: rack}}
    expect: {workloads: {w: {state: running, nodes: n2}}}
",
    );
}

#[test]
fn a_gang_that_no_rack_has_room_for_waits_and_in_a_block_it_starts() {
    holds(
        "steps:
  - submit: {name: w, project: q, pods: 3, gpu: 1, topology: {name: net, required: rack}}
    expect: {workloads: {w: {state: pending, pending: [P108, P204]}}}
  - submit: {name: x, project: q, pods: 4, gpu: 1, topology: {name: net, required: block}}
    expect: {workloads: {x: {state: running, nodes: [n1, n2]}}}
",
    );
}

#[test]
fn a_preferred_rack_is_no_reason_to_wait() {
    holds(
        "steps:
  - submit: {name: w, project: q, pods: 3, gpu: 1, topology: {name: net, preferred: rack}}
    expect: {workloads: {w: {state: running, nodes: [n1, n2]}}}
",
    );
}

#[test]
fn each_set_is_in_a_rack_of_its_own_and_both_in_one_block() {
    holds(
        "workloads: [{name: a, project: q, gpu: 1, tasks: [{state: running, node: n2}]}]
steps:
  - submit:
      name: w
      project: q
      topology: {name: net, required: block}
      pod_sets:
        - {name: x, pods: 2, gpu: 1, topology: {name: net, required: rack}}
        - {name: y, pods: 2, gpu: 1, topology: {name: net, required: rack}}
    expect: {workloads: {w: {state: running, nodes: [n3, n4]}}}
",
    );
}

#[test]
fn one_of_two_groups_is_enough_if_the_minimum_says_so() {
    for (minimum, expected) in [(1, "{state: partly, gpu: 2}"), (2, "{state: pending}")] {
        holds(&format!(
            "steps:
  - submit:
      name: w
      project: q
      children_min: {minimum}
      groups: [{{name: big}}, {{name: small}}]
      pod_sets: [{{name: x, gpu: 4, group: big}}, {{name: y, gpu: 2, group: small}}]
    expect: {{workloads: {{w: {expected}}}}}
"
        ));
    }
}

#[test]
fn tasks_are_those_of_one_set_after_the_other() {
    holds(
        "workloads:
  - name: w
    project: q
    pod_sets: [{name: x, pods: 2, gpu: 1}, {name: y, gpu: 2}]
    tasks: [{state: running, node: n1}, {state: running, node: n1}, {state: running, node: n4}]
steps:
  - expect: {gpus: {n1: w w, n4: w w}}
",
    );
}

#[test]
fn a_set_goes_where_its_own_selector_says() {
    holds(
        "steps:
  - submit:
      name: w
      project: q
      pod_sets: [{name: x, gpu: 1, selector: {block: b, rack: r1}}, {name: y, gpu: 2, selector: {block: a, rack: r2}}]
    expect: {gpus: {n3: w ., n2: w w}}
",
    );
}

#[test]
fn all_sets_are_in_one_pool_of_the_workload() {
    let steps = "  - {name: p1, gpus: 2, labels: {node-pool: p}}
  - {name: s1, gpus: 4, labels: {node-pool: s}}
queues: [{name: q, quota: {gpu: 8}}]
steps:
  - submit: {name: w, project: q, pools: [p, s], pod_sets: [{name: x, gpu: 2}, {name: y, gpu: 1}]}
    expect: {gpus: {p1: . ., s1: w w w .}}
";
    let text = format!("version: 1\nnodes:\n{steps}");
    let outcome = run(&Scenario::read(&text).expect("a sound scenario"), Record::Decisions);
    assert_eq!(outcome.expect("a sound state").failures, []);
}

#[test]
fn a_snapshot_says_all_of_it_again() {
    let workload = "workloads:
  - name: w
    project: q
    topology: {name: net, required: block, preferred: rack}
    children_min: 1
    groups:
      - {name: g, children_min: 1, topology: {name: net, preferred: rack}}
      - {name: h, parent: g}
    pod_sets:
      - {name: x, pods: 2, pods_min: 0, gpu: 1, group: h, task_priority: 7}
      - {name: y, gpu: 1, group: g, selector: {block: a}, tolerations: [{key: k}]}
      - {name: z, topology: {name: net, required: rack}}
  - {name: v, project: q, pods: 2, topology: {name: net, required: rack}}
";
    let told = |text: &str| {
        let outcome = run(&Scenario::read(text).expect(text), Record::Decisions).expect(text);
        let cluster = outcome.simulation.cluster();
        let now = units::Instant((1 << 42) + outcome.simulation.elapsed_ms());
        sim::snapshot(cluster, now, &sched::Policy::default())
    };
    let first = told(&format!("{NODES}{workload}"));
    let again = told(&first.to_json().expect("JSON"));
    assert_eq!(again.topologies, first.topologies);
    let (found, written) = (&first.workloads[0], Scenario::read(&format!("{NODES}{workload}")));
    let written = &written.expect("a sound scenario").workloads[0];
    assert_eq!(found.groups, written.groups);
    assert_eq!(found.topology, written.topology);
    assert_eq!(found.children_min, written.children_min);
    let keys = |sets: &[sim::scenario::At<sim::scenario::PodSet>]| {
        let key = |set: &sim::scenario::At<sim::scenario::PodSet>| {
            let set = set.value.clone();
            (set.name, set.pods, set.task_priority, set.group, set.topology)
        };
        sets.iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(keys(&found.pod_sets), keys(&written.pod_sets));
    // A selector becomes an equivalent affinity.
    let affinity = &found.pod_sets[1].affinity.required;
    assert_eq!((affinity[0][0].key.as_str(), affinity[0].len()), ("block", 1));
    for (again, first) in again.workloads.iter().zip(&first.workloads) {
        assert_eq!(again.pod_sets, first.pod_sets);
        assert_eq!(again.groups, first.groups);
        assert_eq!(again.topology, first.topology);
        assert_eq!(again.tasks, first.tasks);
    }
    assert_eq!(again.workloads.len(), 2);
}

#[test]
fn topologies_that_cannot_be() {
    for (list, said) in [
        ("[{name: net, levels: []}]", "2:14: topology `net`: has 0 levels; 1 to 16 are allowed"),
        ("[{name: net, levels: [a, a]}]", "level `a` is given twice"),
        ("[{name: a/b, levels: [a]}]", "name `a/b` is not allowed"),
        ("[{name: n, levels: [a]}, {name: n, levels: [b]}]", "there is another of this name"),
        ("[{name: n, level: [a]}]", "unknown key `level`; did you mean `levels`?"),
        ("[{name: n}]", "key `levels` is missing"),
    ] {
        let scenario = Scenario::read(&format!("version: 1\ntopologies: {list}\n"));
        let fault = match scenario.map(|scenario| run(&scenario, Record::Decisions)) {
            Err(error) | Ok(Err(error)) => error.to_string(),
            Ok(Ok(_)) => panic!("accepted: {list}"),
        };
        assert!(fault.contains(said), "{list}\n{fault}");
    }
}

#[test]
fn constraints_on_what_is_not_known() {
    check(&[
        (
            "topology: {name: nett, required: rack}",
            "10:5: workload `w`: there is no topology `nett`; did you mean `net`?",
        ),
        (
            "topology: {name: zzzzzzz, required: rack}",
            "there is no topology `zzzzzzz`; known are net",
        ),
        (
            "topology: {name: net, required: rak}",
            "topology `net`: there is no level `rak`; did you mean `rack`?",
        ),
        (
            "topology: {name: net, preferred: zone}",
            "there is no level `zone`; known are block, rack",
        ),
        (
            "topology: {name: net}",
            "neither `required` nor `preferred`; give one, a level of block, rack",
        ),
        ("topology: {required: rack}", "key `name` is missing"),
        ("topology: {name: net, require: rack}", "unknown key `require`; did you mean `required`?"),
        (
            "pod_sets: [{name: x, topology: {name: net, required: rak}}]",
            "workload `w`: pod set `x`: topology `net`: there is no level `rak`",
        ),
        (
            "pod_sets: [{name: x, group: g}], groups: [{name: g, topology: {name: ne, required: rack}}]",
            "workload `w`: group `g`: there is no topology `ne`; did you mean `net`?",
        ),
    ]);
}

#[test]
fn sets_and_groups_that_do_not_fit_together() {
    check(&[
        ("pods: 1, pod_sets: [{name: x}]", "10:5: workload `w`: has `pods` and `pod_sets`"),
        ("gpu: 0, pod_sets: [{name: x}]", "has `gpu` and `pod_sets`; write it in the pod sets"),
        ("selector: {a: b}, pod_sets: [{name: x}]", "has `selector` and `pod_sets`"),
        ("completions: 2, pod_sets: [{name: x}]", "`completions` and `pod_sets` cannot be used"),
        ("pod_sets: [{name: x}, {name: x}]", "pod set `x`: there is another of this name"),
        ("pod_sets: [{gpu: 1}]", "key `name` is missing"),
        ("pod_sets: [{name: ''}]", "pod set ``: name `` is not allowed"),
        ("pod_sets: [{name: x, pods: 0}]", "10:38: workload `w`: pod set `x`: `pods` is 0"),
        ("pod_sets: [{name: x, pods: 2, pods_min: 3}]", "`pods_min` is 3; 0 to 2 (all its pods)"),
        ("pod_sets: [{name: x, pods_min: 0}]", "`pods_min` is 0 in every pod set"),
        (
            "pod_sets: [{name: x, group: gg}], groups: [{name: g}]",
            "no group `gg`; did you mean `g`?",
        ),
        ("pod_sets: [{name: x, group: g}]", "pod set `x`: there is no group `g`"),
        ("pod_sets: [{name: x}], groups: [{name: g}]", "group `g`: has no parts; name it as"),
        (
            "pod_sets: [{name: x, group: g}], groups: [{name: g, parent: h}, {name: h}]",
            "group `g`: there is no earlier group `h`",
        ),
        (
            "pod_sets: [{name: x, group: g}], groups: [{name: g}, {name: g}]",
            "there is another of this name",
        ),
        (
            "pod_sets: [{name: x, group: g}], groups: [{name: g, children_min: 2}]",
            "group `g`: `children_min` is 2; 1 to 1",
        ),
        ("pod_sets: [{name: x}], children_min: 0", "workload `w`: `children_min` is 0; 1 to 1"),
        ("groups: [{name: g}]", "`groups` and `children_min` are of `pod_sets`; it has none"),
        ("children_min: 1", "`groups` and `children_min` are of `pod_sets`"),
        ("pod_sets: [{name: x}, {name: y}], tasks: [{}, {}, {}]", "has 3 tasks and 2 pods"),
        (
            "pod_sets: [{name: x, pods: 4000000000}, {name: y, pods: 4000000000}]",
            "at most 1000000 pods",
        ),
        ("elastic: true, pod_sets: [{name: x, gpu: 1}, {name: y}]", "elastic"),
        ("pod_sets: [{name: x, pod: 1}]", "unknown key `pod`; did you mean `pods`?"),
    ]);
}
