//! Bad input, kind by kind: each causes a clear error, or has a result that is defined here.

use expect_test::{Expect, expect};
use sim::scenario::Scenario;
use sim::{Record, run};

fn refused(text: &str, expected: &Expect) {
    let said = match Scenario::read(text) {
        Err(error) => error.to_string(),
        Ok(scenario) => match run(&scenario, Record::Decisions) {
            Err(error) => error.to_string(),
            Ok(_) => "accepted".into(),
        },
    };
    expected.assert_eq(&said);
}

#[test]
fn what_cannot_be_is_refused_with_its_place_and_what_is_allowed() {
    let queue = "version: 1\nqueues: [{name: q}]\nworkloads: ";
    let net = "version: 1\ntopologies: [{name: net, levels: [block, rack]}]\nqueues: [{name: q}]\n";
    for (text, expected) in [
        (
            "version: 1\nqueues: [{name: q, quota: {gpu: .nan}}]".to_owned(),
            expect!["2:33: `.nan` is not a number that can be counted with"],
        ),
        ("version: 1\nqueues: [{name: q, quota: {gpu: -1}}]".to_owned(), expect!["2:33: `-1` is negative; the smallest amount is 0"]),
        ("version: 1\nqueues: [{name: q, quota: {gpu: 1e30}}]".to_owned(), expect!["2:33: `1000000000000000000000000000000` is too large"]),
        ("version: 1\nqueues: [{name: q, weight: {gpu: 5000000000}}]".to_owned(), expect!["2:34: this must be a whole number from 0 to 4294967295"]),
        (format!("{queue}[{{name: w, project: q, gpu: -1}}]"), expect!["3:40: `-1` is negative; the smallest amount is 0"]),
        (format!("{queue}[{{name: w, project: q, gpu: .inf}}]"), expect!["3:40: `.inf` is not a number that can be counted with"]),
        (format!("{queue}[{{name: w, project: q, memory: -1GiB}}]"), expect!["3:43: `-1GiB` is not a size; write a number with a unit such as 500M, 16GiB or 8G"]),
        (format!("{queue}[{{name: w, project: q, priority: -1}}]"), expect!["3:45: this must be a whole number from 0 to 4294967295"]),
        (
            "version: 1\nqueues: [{name: a, parent: b}, {name: b, parent: c}, {name: c, parent: a}]"
                .to_owned(),
            expect!["2:10: queue `a` is above itself; one queue of this circle must have no parent"],
        ),
        (format!("{queue}[{{name: w, project: q, pods: 1000001}}]"), expect!["3:13: workload `w`: a scenario has at most 1000000 pods"]),
        (
            format!("{net}workloads: [{{name: w, project: q, topology: {{name: net, required: rak}}}}]"),
            expect!["4:13: workload `w`: topology `net`: there is no level `rak`; did you mean `rack`?"],
        ),
        (
            format!("{net}workloads: [{{name: w, project: q, topology: {{name: nett, required: rack}}}}]"),
            expect!["4:13: workload `w`: there is no topology `nett`; did you mean `net`?"],
        ),
        ("{\"version\": 2, \"nodes\": []}".to_owned(), expect!["1:13: version 2 is not known; this program reads version 1"]),
        ("version: 1\nnodes: 3".to_owned(), expect!["2:8: this must be a list, such as `[a, b]` or lines that begin with `- `"]),
        ("version: 1\nnodes: [3]".to_owned(), expect!["2:9: this must be keys with values, such as `{name: a}`"]),
        ("{\"nodes\": []}".to_owned(), expect!["1:2: key `version` is missing"]),
    ] {
        refused(&text, &expected);
    }
}

/// Number of GPUs that each of the queues holds in the end.
fn held(queues: &str) -> Vec<String> {
    let text = format!(
        "version: 1
nodes: [{{name: n, count: 2, gpus: 4}}]
queues: [{queues}]
workloads:
  - {{name: a, project: a, gpu: 1, count: 9}}
  - {{name: b, project: b, gpu: 1, count: 9}}
"
    );
    let outcome = run(&Scenario::read(&text).expect("sound"), Record::Everything).expect("sound");
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()));
    let last = outcome.frames.last().expect("a frame");
    let of = |row: &sim::Queue| units::format_millis(row.allocated.gpu_millis.unwrap_or(0));
    last.queues.iter().map(of).collect()
}

#[test]
fn weight_0_has_no_part_of_what_is_left_over_but_takes_what_nobody_else_wants() {
    assert_eq!(held("{name: a, weight: {gpu: 0}}, {name: b}"), ["0", "8"]);
    assert_eq!(held("{name: a, weight: {gpu: 0}}, {name: b, limit: {gpu: 3}}"), ["5", "3"]);
}

#[test]
fn quotas_beyond_the_capacity_shrink_in_proportion() {
    assert_eq!(held("{name: a, quota: {gpu: 9}}, {name: b, quota: {gpu: 3}}"), ["6", "2"]);
    assert_eq!(held("{name: a, quota: {gpu: unlimited}}, {name: b, quota: {gpu: 0}}"), ["8", "0"]);
}

#[test]
fn as_many_pods_as_are_allowed_are_counted_and_wait() {
    let text = "version: 1
nodes: [{name: n, gpus: 4}]
queues: [{name: q}]
workloads: [{name: w, project: q, gpu: 1, pods: 100000, pods_min: 1}]
";
    let outcome = run(&Scenario::read(text).unwrap(), Record::Decisions).unwrap();
    let cluster = outcome.simulation.cluster();
    let placed = cluster.workloads().iter().map(|(_, row)| row.placed).sum::<u32>();
    assert_eq!((cluster.pods().len(), placed), (100_000, 4));
}

#[test]
fn knobs_are_set_one_by_one_and_keep_what_is_not_given() {
    let mut scenario = Scenario::empty();
    let knobs = ["queue_depth=3", "stale_grace=2m", "queue_depth=5", "pool_placement={a: spread}"];
    scenario.set_policy(&knobs.map(str::to_owned)).expect("known keys");
    scenario.set_policy(&["pool_placement={b: bin-pack}".to_owned()]).expect("a known key");
    expect![[
        r#"{"queue_depth":5,"pool_placement":{"a":"spread","b":"bin-pack"},"stale_grace":"2m"}"#
    ]]
    .assert_eq(&serde_json::to_string(&scenario.policy).expect("a document"));
    for (knob, told) in [
        ("depth", "policy `depth` is not of the form KEY=VALUE"),
        ("queue_dept=3", "unknown key `queue_dept`; did you mean `queue_depth`?"),
    ] {
        let error = scenario.set_policy(&[knob.to_owned()]).expect_err(knob).to_string();
        assert!(error.contains(told), "{error}");
    }
}
