//! Printed outcome of a submission that is only predicted.

use api_types::{PodFate, WouldDo, WouldHappen};
use serde_json::json;

use crate::what_if::lines;
use cli_kit::table::wrapped;

fn would(pods: &[(&str, Option<&str>)], decisions: Vec<WouldDo>) -> WouldHappen {
    let pod = |(number, (fate, place)): (u32, &(&str, Option<&str>))| PodFate {
        project_name: "team-a".to_owned(),
        workload_name: "t".to_owned(),
        pod: number,
        fate: (*fate).to_owned(),
        place: place.map(str::to_owned),
    };
    let as_of = "2026-11-21T20:00:00Z".parse().unwrap();
    let pods = (0..).zip(pods).map(pod).collect();
    WouldHappen { as_of, pods, waiting: Vec::new(), decisions }
}

fn decision(kind: &str, workload: &str) -> WouldDo {
    let one = json!({"kind": kind, "projectName": "team-a", "workloadName": workload, "pod": 0,
        "from": "node-0[0]", "code": "E101", "reason": "its project is above its fair share"});
    serde_json::from_value(one).unwrap()
}

#[test]
fn whom_it_would_stop_is_told_and_its_own_start_only_once() {
    let own = decision("bind", "t");
    let said =
        lines("t", &would(&[("start", Some("node-0[0]"))], vec![decision("evict", "b"), own]));
    let want = [
        "t would start on node-0[0].",
        "team-a/b would be stopped on node-0[0]: E101 its project is above its fair share",
        "Nothing was submitted.",
    ];
    assert_eq!(said, want);
    assert!(said.iter().all(|line| wrapped(line).lines().all(|line| line.len() <= 80)));
}

#[test]
fn pods_that_fare_alike_are_told_of_at_once() {
    let start = ("start", Some("node-0[0]"));
    let said = lines("t", &would(&[start, start, ("wait", None)], Vec::new()));
    let want = [
        "2 of the 3 pods of t would start on node-0[0].",
        "1 of the 3 pods of t would wait:",
        "Nothing else would change.",
        "Nothing was submitted.",
    ];
    assert_eq!(said, want);
}
