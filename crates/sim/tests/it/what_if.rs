//! Predictions of the effect of requests on a server.

use orchestrator::{Error, StoredState};
use sched::Policy;
use sim::machine::Machine;
use sim::scenario::Step;
use sim::what_if::{Asked, WouldHappen, what_if};
use spec::GpuRequest;

use super::machine::{rest, server, submit, training};

fn stored(machine: &Machine) -> StoredState {
    let (_, policy) = machine.replica().expect("a server that runs");
    StoredState {
        rows: machine.rows.snapshot(),
        nodes: machine.nodes.clone(),
        gpus: machine.gpus.clone(),
        policy: policy.clone(),
        settings: machine.settings.clone(),
        now: machine.clock.now(),
    }
}

/// A server with four GPUs; team-a has a quota of one of them and holds three, team-b has three.
fn busy() -> StoredState {
    let mut machine = server(4, [1000, 3000], Policy::default());
    for name in ["a1", "a2", "a3"] {
        submit(&mut machine, 1, training(name, GpuRequest::Whole(1)));
        rest(&mut machine);
        machine.clock.advance_ms(1000);
    }
    stored(&machine)
}

fn asked(steps: &[&str]) -> Result<WouldHappen, Error> {
    let step = |text: &&str| {
        let step = Step::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Asked::Step(Box::new(step))
    };
    what_if(busy(), &steps.iter().map(step).collect::<Vec<_>>(), 5)
}

/// The decisions: kind, workload and code of each.
fn decisions(came: &WouldHappen) -> String {
    let one = |decision: &sim::Decision| {
        let code = decision.code.map(|code| format!(" {code}")).unwrap_or_default();
        format!("{} {}{code}", decision.kind, decision.workload)
    };
    came.decisions.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Places of the pods of submitted workloads.
fn places(steps: &[&str]) -> String {
    let came = asked(steps).unwrap_or_else(|error| panic!("{steps:?}: {error}"));
    let place = |task: &sim::Task| {
        let place = task.place.as_ref().or(task.next.as_ref());
        place.map_or_else(|| "-".to_owned(), ToString::to_string)
    };
    came.tasks.iter().map(place).collect::<Vec<_>>().join(" ")
}

#[test]
fn others_are_stopped_for_what_is_submitted_and_only_that_is_told() {
    let came = asked(&["{submit: {name: b, project: team-b, gpu: 3}}"]).expect("an answer");
    assert_eq!(decisions(&came), "evict a2 E101, evict a3 E101, reserve b, bind b");
    assert_eq!((came.tasks.len(), came.waiting.len()), (1, 0));
    assert_eq!(decisions(&asked(&[]).expect("an answer")), "");
}

/// The diagnosis of a workload that was not submitted.
fn lines(waiting: &sim::what_if::WouldWait) -> String {
    let found = waiting.diagnosis.as_ref().expect("a diagnosis");
    found.details_before_submission(waiting.at).join("\n")
}

#[test]
fn what_would_wait_says_why_and_alike_ones_only_once() {
    let came = asked(&["{submit: {name: b, count: 2, project: team-b, gpu: 5}}"]);
    let waiting = came.expect("an answer").waiting;
    assert_eq!((waiting[0].workload.as_str(), waiting[0].reasons[0].code.as_ref()), ("b1", "P101"));
    assert!(waiting[0].diagnosis.is_some() && waiting[0].like.is_none(), "{waiting:?}");
    assert_eq!(waiting[1].like.as_deref(), Some("team-b/b1"));
}

#[test]
fn no_command_changes_a_request_that_was_not_submitted() {
    let came = asked(&["{submit: {name: more, project: team-a, gpu: 2}}"]).expect("an answer");
    let lines = lines(&came.waiting[0]);
    assert!(lines.contains("raise its priority"), "{lines}");
    assert!(!lines.contains("runai workload update"), "{lines}");
    assert!(lines.contains("runai delete a"), "what is there can be changed: {lines}");
}

#[test]
fn the_quota_of_a_department_that_is_a_sum_rises_with_that_of_the_project() {
    let mut machine = server(4, [1000, 0], Policy::default());
    rest(&mut machine);
    let step = Step::read("{submit: {name: x, project: team-a, gpu: 2, preemptible: false}}");
    let asked = Asked::Step(Box::new(step.expect("a step")));
    let came = what_if(stored(&machine), &[asked], 5).expect("an answer");
    let lines = lines(&came.waiting[0]);
    assert!(lines.contains("raise the quota of team-a from 1 to 2 GPUs"), "{lines}");
    let advice = lines.split("What would let it start").nth(1).expect("advice");
    assert!(!advice.contains("department"), "{lines}");
}

#[test]
fn each_change_of_the_cluster_makes_its_difference() {
    let b = "{submit: {name: b, project: team-b, gpu: 2, preemptible: false}}";
    for (first, place) in [
        ("{add_node: {name: new, gpus: 2}}", "new[0 1]"),
        ("{add_node: {name: new, gpus: 2, cordoned: true}}", "n1[2 3]"),
        ("{add_node: {name: new, gpus: 2, out_of_service: [0]}}", "n1[2 3]"),
        ("{delete: a1}", "n1[0 3]"),
        ("{finish: team-a/a1}", "n1[0 3]"),
        ("{suspend: [a1, a2]}", "n1[0 1]"),
        ("{quota: {project: team-b, quota: {gpu: 1}}}", "-"),
        ("{cordon: n1}", "-"),
        ("{drain: n1}", "-"),
        ("{lose_node: n1}", "-"),
        ("{lose_gpu: {node: n1, gpus: [0, 1, 2]}}", "-"),
    ] {
        assert_eq!(places(&[first, b]), place, "{first}");
    }
    let back = ["{lose_gpu: {node: n1, gpus: [3]}}", "{return_gpu: {node: n1, gpus: [3]}}", b];
    assert_eq!(places(&back), "n1[2 3]");
    assert_eq!(places(&["{cordon: n1}", "{uncordon: n1}", b]), "n1[2 3]");
}

#[test]
fn a_submission_may_say_all_that_one_in_a_scenario_may() {
    let two = "{add_node: {name: new, count: 2, gpus: 2, labels: {zone: z}}}";
    for (keys, place) in [
        ("gpu: 1, selector: {zone: z}", "new1[0]"),
        ("gpu: 0.5, affinity: {required: [[{key: zone, operator: Exists}]]}", "new1[0:0.5]"),
        (
            "gpu: 1, affinity: {preferred: [{weight: 9, term: [{key: zone, operator: Exists}]}]}",
            "new1[0]",
        ),
        (
            "gpu: 1, pods: 2, selector: {zone: z}, labels: {app: x}, pod_anti_affinity: \
             {required: [{labels: {app: x}, topology_key: hostname}]}",
            "new1[0] new2[0]",
        ),
        ("gpu: 1, completions: 5, pods: 2, selector: {zone: z}", "new1[0] new1[1]"),
        ("gpu: 1, gated: true", "-"),
        (
            "children_min: 1, pod_sets: [{name: x, gpu: 2, selector: {zone: z}}, \
             {name: y, gpu: 9, pods_min: 0}]",
            "new1[0 1] -",
        ),
        ("gpu: 1, suspended: true", "-"),
    ] {
        let submit = format!("{{submit: {{name: w, project: team-b, {keys}}}}}");
        assert_eq!(places(&[two, &submit]), place, "{keys}");
    }
    let divided = "{add_node: {name: m, gpus: 2, mig: [{}, {1g.5gb: 2}], pods_max: 1}}";
    let two = "{submit: {name: w, count: 2, project: team-b, gpu: {mig: {1g.5gb: 1}}}}";
    assert_eq!(places(&[divided, two]), "m[1:1g.5gb] -");
    assert_eq!(
        places(&["{submit: {name: w, project: team-b, gpu: 1, gated: true}}", "{ungate: w}"]),
        "n1[3]"
    );
}

#[test]
fn a_run_that_has_failed_is_the_first_to_give_way() {
    let came = asked(&["{fail: a1}", "{submit: {name: b, project: team-b, gpu: 2}}"]);
    assert_eq!(decisions(&came.expect("an answer")), "evict a1 E101, reserve b, bind b");
}

#[test]
fn what_is_not_there_or_would_be_refused_is_an_error() {
    for (step, said) in [
        ("{delete: a9}", "there is no workload `a9`; did you mean `a1`?"),
        ("{fail: missing}", "there is no workload `missing`"),
        ("{cordon: n2}", "there is no node `n2`; did you mean `n1`?"),
        ("{remove_node: n1}", "node `n1` is still used by a1, a2, a3; `drain` it first"),
        ("{lose_gpu: {node: n1, gpus: [4]}}", "node `n1` has no GPU 4; it has 4"),
        ("{add_node: {name: n1, gpus: 1}}", "there is another node `n1`"),
        ("{add_node: {name: m, gpus: 1, mig: {1g.5gb: 9}}}", "`mig` has 9 slices"),
        ("{add_node: {name: m, gpus: 1, labels: {node-pool: x}}}", "no node is in a pool `x`"),
        ("{quota: {project: team-c}}", "there is no queue `team-c`; did you mean `team-a`?"),
        ("{quota: {project: team-a, priority: 7}}", "a project has one of 25, 50, 100"),
        ("{quota: {project: team-a, pool: x}}", "no node is in a pool `x`"),
        ("{delete: a1, cordon: n1}", "a step has one action; this one has delete, cordon"),
        ("{submit: {name: w, project: team-d}}", "workload `w`: there is no queue `team-d`"),
        ("{submit: {name: w, project: team-a, started: 1m}}", "has `started`, which is for"),
        ("{submit: {name: W, project: team-a}}", "name `W` is not allowed"),
        ("{submit: {name: a1, project: team-a}}", "workload `a1` already exists"),
        (
            "{submit: {name: w, project: team-a, topology: {name: net, required: rack}}}",
            "there is no topology `net`",
        ),
    ] {
        let error = asked(&[step]).expect_err(step).to_string();
        assert!(error.contains(said), "{step}: {error}");
    }
}
