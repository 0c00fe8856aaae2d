//! Every kind of invalid scenario is refused with its position and a remedy, without a panic.

use sim::scenario::Scenario;
use sim::{Record, run};

fn refused(text: &str) -> String {
    match Scenario::read(text) {
        Err(error) => error.to_string(),
        Ok(scenario) => match run(&scenario, Record::Decisions) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted:\n{text}"),
        },
    }
}

fn check(cases: &[(&str, &str)]) {
    for (body, said) in cases {
        let fault = refused(&format!("version: 1\n{body}"));
        assert!(fault.contains(said), "{body}\n{fault}");
    }
}

#[test]
fn other_versions_and_files_that_are_no_scenario() {
    for (text, said) in [
        ("version: 2\nnew_key: 1\n", "1:10: version 2 is not known; this program reads version 1"),
        ("version: 2\n", "version 2 is not known"),
        ("nodes: []\n", "key `version` is missing"),
        ("", "empty"),
        ("hello", ""),
        ("{\"version\": 1, \"nodes\": [}", "1:"),
        ("version: 1\nversion: 1\n", "2:1: key `version` is given twice"),
        ("version: 1\nnodes: {a: b}\n", "2:8: "),
        ("- 1\n- 2\n", ""),
        ("version: 1\nnodes: [{name: n, gpus: [1]}]\n", "2:"),
    ] {
        let fault = refused(text);
        assert!(fault.contains(said), "{text}\n{fault}");
    }
}

#[test]
fn unknown_keys_and_words_name_the_nearest_one() {
    check(&[
        ("nodes: [{name: n, gpus: -1}]", "whole number from 0 to 4294967295"),
        ("nods: []", "2:1: unknown key `nods`; did you mean `nodes`?"),
        ("nodes:\n  - nmae: n1\n", "3:5: unknown key `nmae`; did you mean `name`?"),
        ("nodes: [{name: n1, zzzzzz: 1}]", "unknown key `zzzzzz`; known are name, count, gpus"),
        ("policy: {placement: spred}", "unknown value `spred`; did you mean `spread`?"),
        ("policy: {placement: {gpu: spred}}", "unknown value `spred`; did you mean `spread`?"),
        ("policy: {placement: {gpus: spread}}", "unknown key `gpus`; did you mean `gpu`?"),
        ("policy: {placement: 3}", "`bin-pack`, `spread`, or a map of `gpu`, `cpu` and `devices`"),
        ("world: {evicted: lost}", "unknown value `lost`; known are pending, gone"),
        ("queues: [{name: q, quota: {gpus: 1}}]", "unknown key `gpus`; did you mean `gpu`?"),
        ("steps: [{submitt: {name: a, project: q}}]", "did you mean `submit`?"),
        ("steps: [{submit: {name: a, projct: q}}]", "did you mean `project`?"),
    ]);
}

#[test]
fn numbers_that_are_none() {
    check(&[
        ("nodes: [{name: n, gpus: -1}]", "2:"),
        ("nodes: [{name: n, gpus: .nan}]", "2:"),
        ("nodes: [{name: n, gpus: 99999999999}]", "2:"),
        ("nodes: [{name: n, gpus: 1025}]", "2:9: node `n`: has 1025 GPUs; at most 1024"),
        ("nodes: [{name: n, cpu: .nan}]", "2:24: `.nan` is not a number"),
        ("nodes: [{name: n, cpu: -2}]", "2:24: `-2` is negative"),
        ("nodes: [{name: n, cpu: 1e300}]", "too large"),
        ("nodes: [{name: n, memory: 9999999P}]", "too large"),
        ("nodes: [{name: n, memory: nan}]", "is not a size"),
        ("nodes: [{name: n, gpus: 1, gpu_memory: 0}]", "more than 0 bytes"),
        ("nodes: [{name: n, gpus: 2, gpu_memory: [1GiB, 1GiB, 1GiB]}]", "3 sizes"),
        ("queues: [{name: q, quota: {gpu: nan}}]", "is not a number"),
        ("queues: [{name: q, weight: {gpu: -1}}]", "2:"),
        ("queues: [{name: q}]\nworkloads: [{name: a, project: q, gpu: 1.5}]", "neither a fraction"),
        ("queues: [{name: q}]\nworkloads: [{name: a, project: q, gpu: 4000}]", "at most 1024"),
        ("queues: [{name: q}]\nworkloads: [{name: a, project: q, gpu: {share: 2}}]", "below 1"),
        (
            "queues: [{name: q}]\nworkloads: [{name: a, project: q, gpu: {share: 0.5, memory: 1G}}]",
            "together",
        ),
        ("steps: [{advance: soon}]", "is not a span of time"),
    ]);
}

#[test]
fn objects_that_do_not_fit_together() {
    let q = "queues: [{name: q}]\nworkloads: ";
    check(&[
        ("nodes: [{name: n}, {name: n}]", "2:20: node `n`: there is another node `n`"),
        ("nodes: [{name: \"\"}]", "name `` is not allowed"),
        ("nodes: [{name: n, count: 0}]", "`count` is 0"),
        ("nodes: [{name: n, count: 4000000000}]", "at most 100000 are allowed"),
        ("queues: [{name: q}, {name: q}]", "there is another queue `q`"),
        (
            "queues: [{name: q, parent: depp}, {name: dept}]",
            "there is no queue `depp` above it; did you mean `dept`?",
        ),
        ("queues: [{name: a, parent: b}, {name: b, parent: a}]", "queue `a` is above itself"),
        ("queues: [{name: a, parent: a}]", "queue `a` is above itself"),
        (
            "queues: [{name: a}, {name: b, parent: a}]\nworkloads: [{name: w, project: a}]",
            "cannot hold both",
        ),
        (
            "queues: [{name: a}, {name: b, parent: a}, {name: c, parent: b}]",
            "queue `c`: `b` above it has a `parent` too; a project is in a department",
        ),
        (
            "queues: [{name: a, priority: 1}, {name: b, priority: 2}, {name: c, priority: 3}]",
            "queues have 3 different priorities below 100 and 0 above; at most 2 and 4 are allowed",
        ),
        (
            &format!("{q}[{{name: a, project: qq}}]"),
            "workload `a`: there is no queue `qq`; did you mean `q`?",
        ),
        (
            &format!("{q}[{{name: a, project: q}}, {{name: a, project: q}}]"),
            "has another of this name",
        ),
        (&format!("{q}[{{name: a, project: q, pods: 0}}]"), "`pods` is 0"),
        (
            &format!(
                "nodes: [{{name: n, labels: {{node-pool: fast}}}}]\n{q}[{{name: a, project: q, pools: [fsat]}}]"
            ),
            "no node is in a pool `fsat`; did you mean `fast`?",
        ),
        (
            &format!("{q}[{{name: a, project: q, pools: [default, default]}}]"),
            "`pools` has `default` twice",
        ),
        (&format!("{q}[{{name: a, project: q, completions: 0}}]"), "`completions` is 0"),
        (&format!("{q}[{{name: a, project: q, completions: -1}}]"), "3:"),
        (&format!("{q}[{{name: a, project: q, work: 1m, runs_for: 1m}}]"), "`work` and `runs_for`"),
        (
            &format!("{q}[{{name: a, project: q, work: 1m, completions: 2}}]"),
            "`completions` cannot",
        ),
        (&format!("{q}[{{name: a, project: q, warm_up: 1m}}]"), "`warm_up` is for"),
        (&format!("{q}[{{name: a, project: q, pods: 2, pods_min: 3}}]"), "1 to 2 (all its pods)"),
        (&format!("{q}[{{name: a, project: q, pods: 2000000}}]"), "at most 1000000 pods"),
        (
            &format!("{q}[{{name: a, project: q, memory: 100P, pods: 1000}}]"),
            "more than can be counted",
        ),
    ]);
}

#[test]
fn affinities_that_cannot_be() {
    let with = |affinity: &str| {
        let workload = format!("{{name: a, project: q, affinity: {affinity}}}");
        format!("queues: [{{name: q}}]\nworkloads: [{workload}]")
    };
    for (affinity, said) in [
        ("{required: [[{key: z, operator: Has}]]}", "unknown value `Has`"),
        ("{required: [[{key: z, operator: In}]]}", "In takes at least one value"),
        ("{required: [[]]}", "term of the `affinity` is empty"),
        (
            "{required: [[{key: z, operator: Exists, values: b}]]}",
            "Exists takes no values, not `b`",
        ),
        (
            "{required: [[{key: z, operator: Gt, values: [b]}]]}",
            "Gt takes one whole number, not `b`",
        ),
        ("{required: [[{key: z, operator: Lt, values: ['1', '2']}]]}", "not `1, 2`"),
        ("{preferred: [{weight: 0, term: [{key: z, operator: Exists}]}]}", "1 to 100 are allowed"),
        ("{preferred: [{weight: -1, term: []}]}", "3:"),
    ] {
        check(&[(&with(affinity), said)]);
    }
}

#[test]
fn places_that_are_not_there_or_taken() {
    let busy = "nodes: [{name: n1, gpus: 1, cpu: 2}]\nqueues: [{name: q}]\nworkloads:\n";
    check(&[
        (
            &format!(
                "{busy}  - {{name: a, project: q, gpu: 1, tasks: [{{state: running, node: n2}}]}}"
            ),
            "there is no node `n2`; did you mean `n1`?",
        ),
        (
            &format!("{busy}  - {{name: a, project: q, gpu: 1, tasks: [{{state: running}}]}}"),
            "say which with `node`",
        ),
        (
            &format!(
                "{busy}  - {{name: a, project: q, gpu: 1, tasks: [{{state: running, node: n1, gpus: [1]}}]}}"
            ),
            "has no GPU 1; it has 1",
        ),
        (
            &format!(
                "{busy}  - {{name: a, project: q, gpu: 2, tasks: [{{state: running, node: n1}}]}}"
            ),
            "asks for 2 GPUs",
        ),
        (
            &format!(
                "{busy}  - {{name: a, project: q, cpu: 3, tasks: [{{state: running, node: n1}}]}}"
            ),
            "has not that much CPU",
        ),
        (
            &format!(
                "{busy}  - {{name: a, project: q, gpu: 0.6, tasks: [{{state: running, node: n1, gpus: [0]}}]}}\n  - {{name: b, project: q, gpu: 0.6, tasks: [{{state: running, node: n1, gpus: [0]}}]}}"
            ),
            "6:45: task 0 of `b`: GPU 0 of node `n1` is given out twice: 0.6 is asked for, 0.4 is free beside a",
        ),
        (
            &format!(
                "{busy}  - {{name: a, project: q, gpu: 1, tasks: [{{next: {{node: n1}}, state: running, node: n1}}]}}"
            ),
            "neither pending nor releasing",
        ),
    ]);
}

#[test]
fn steps_that_name_what_is_not_there() {
    check(&[
        ("steps: [{delete: a}]", "2:9: there is no workload `a`"),
        ("steps: [{quota: {project: q}}]", "there is no queue `q`"),
        ("steps: [{cordon: n}]", "there is no node `n`"),
        ("steps: [{fail: a}]", "there is no workload `a`"),
        (
            "queues: [{name: q}]\nsteps: [{submit: {name: a, project: q, gpu: 1}}, {fail: a}]",
            "workload `a` has no pod that runs",
        ),
        ("steps: [{drain: n}]", "there is no node `n`"),
        (
            "nodes: [{name: n}]\nqueues: [{name: q}]\nsteps: [{submit: {name: a, project: q}}, {remove_node: n}]",
            "node `n` is still used by a; `drain` it first",
        ),
        ("nodes: [{name: n}]\nsteps: [{lose_node: n}, {cordon: n}]", "there is no node `n`"),
        ("steps: [{cycles: 1, gone: all}]", "one action; this one has cycles, gone"),
        (
            "nodes: [{name: n}]\nqueues: [{name: q}]\nsteps: [{submit: {name: a, project: q}}, {finish: a}, {finish: a}]",
            "is finished already",
        ),
        (
            "queues: [{name: p}, {name: q}]\nsteps: [{submit: [{name: a, project: q}, {name: a, project: p}]}, {delete: a}]",
            "write `q/a`",
        ),
    ]);
}

#[test]
fn extreme_numbers_that_are_allowed_have_a_defined_result() {
    let text = "version: 1
nodes: [{name: n, count: 3, gpus: 8}]
queues:
  - {name: zero, weight: {gpu: 0, cpu: 0, memory: 0}}
  - {name: all, quota: {gpu: unlimited}, weight: {gpu: 4294967295}}
  - {name: over, quota: {gpu: 100000000}, limit: {gpu: 100000000}, priority: 4294967295}
workloads:
  - {name: z, project: zero, gpu: 8, count: 2}
  - {name: a, project: all, gpu: 8, count: 2, priority: 4294967295}
  - {name: o, project: over, gpu: 8, count: 2}
";
    let outcome = run(&Scenario::read(text).unwrap(), Record::Everything).unwrap();
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
}

#[test]
fn knobs_and_actions_belong_to_a_profile() {
    check(&[
        ("policy: {profile: kia}", "unknown value `kia`; did you mean `kai`?"),
        ("policy: {queue_depth: 3}", "2:9: policy `queue_depth` needs `profile: kai`"),
        ("policy: {reclaim_runtime: lca}", "policy `reclaim_runtime` needs `profile: kai`"),
        ("policy: {profile: kai, saturation_multiplier: 0.9}", "1 or more is allowed"),
        ("policy: {actions: [alocate]}", "unknown value `alocate`; did you mean `allocate`?"),
        ("policy: {profile: kai, actions: [promote]}", "action `promote` is not allowed"),
        ("steps: [{cycles: -1}]", "fewer than 0 cycles"),
        ("steps: [{cycles: {cuont: 1}}]", "unknown key `cuont`; did you mean `count`?"),
        ("steps: [{cycles: {actions: [reclam]}}]", "did you mean `reclaim`?"),
        (
            "policy: {profile: kai}\nsteps: [{cycles: {actions: [promote]}}]",
            "3:18: action `promote` is not allowed",
        ),
        ("steps: [{expect: {decisions: {bnd: 1}}}]", "did you mean `bind`?"),
        (
            "steps: [{expect: {workloads: {a: {tasks: [{state: runing}]}}}}]",
            "did you mean `running`?",
        ),
    ]);
}
