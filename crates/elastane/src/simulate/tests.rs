//! Command lines of `elastane simulate` with their output.

use std::path::Path;

use clap::Parser as _;
use expect_test::expect;

use super::run;
use crate::args::{Cli, Command};
use cli_kit::exit::Error;

const SCENARIO: &str = "version: 1
nodes: [{name: n1, gpus: 2}]
queues: [{name: team-a, quota: {gpu: 1}}, {name: team-b, quota: {gpu: 1}}]
workloads:
  - {name: a1, project: team-a, gpu: 1, tasks: [{state: running, node: n1, gpus: [0]}]}
  - {name: a2, project: team-a, gpu: 1, tasks: [{state: running, node: n1, gpus: [1]}]}
";

fn typed(words: &[&str]) -> Result<String, Error> {
    let line = ["elastane", "simulate"].iter().chain(words);
    let cli = Cli::try_parse_from(line).map_err(|error| Error::Usage(error.to_string()))?;
    let Command::Simulate(flags) = cli.command else { panic!("not a simulation") };
    let mut out = Vec::new();
    run(&flags, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn a_scenario_is_told_in_tables() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "{SCENARIO}steps:\n  - submit: {{name: b1, project: team-b, gpu: 1}}\n    expect: {{waiting: [a2]}}\n"
    );
    let path = file(dir.path(), "s.yaml", &text);
    let picture = dir.path().join("s.svg");
    let said = typed(&[&path, "--svg", &picture.to_string_lossy()]).unwrap();
    expect![[r#"
        Step  At   Decision  Workload     Where
        ───────────────────────────────────────
        1     0ms  evict     team-a/a2-0  n1[1]
            E101 stopped so that team-b/b1 gets its quota: team-a held 2 GPUs (quota 1,
                fair share 1); team-b held 0 GPUs (quota 1, fair share 1) and asked for
                1
        1     0ms  reserve   team-b/b1-0  n1[1]
        1     0ms  bind      team-b/b1-0  n1[1]"#]]
    .assert_eq(said.split("\n\n").next().unwrap_or_default());
    assert!(said.ends_with("1 expectation held\n"), "{said}");
    assert!(std::fs::read_to_string(picture).unwrap().contains("n1 GPU 1"));
}

#[test]
fn json_has_a_fixed_order_and_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "s.yaml", &format!("{SCENARIO}steps: [{{cycles: 1}}]\n"));
    let said = typed(&[&path, "--json"]).unwrap();
    let value: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(value["frames"][0]["tasks"][1]["place"]["gpus"][0]["index"], 1);
    assert_eq!(value["frames"][0]["queues"][0]["quota"]["cpu_millis"], serde_json::Value::Null);
    assert_eq!(said, typed(&[&path, "--json"]).unwrap());
}

#[test]
fn what_is_not_as_expected_ends_with_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        dir.path(),
        "s.yaml",
        &format!("{SCENARIO}steps: [{{expect: {{queues: {{team-a: {{gpu: 1}}}}}}}}]\n"),
    );
    assert!(matches!(typed(&[&path]), Err(Error::Said(1))));
}

#[test]
fn what_if_says_who_would_have_to_go_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "s.yaml", SCENARIO);
    let said = typed(&["--from", &path, "--submit", "new -g 1 -p team-b"]).unwrap();
    assert!(said.starts_with("team-b/new-0 would start on n1[1]\n"), "{said}");
    assert!(said.contains("team-a/a2-0") && said.contains("E101"), "{said}");
    let said = typed(&["--from", &path, "--submit", "training submit t -g 1 -p team-a"]).unwrap();
    assert!(said.contains("team-a/t-0 would wait\n  P"), "{said}");
    assert!(said.ends_with("Nothing else changes.\n"), "{said}");
    let said = typed(&["--from", &path, "--submit", "big -g 3 -p team-b --interactive"]).unwrap();
    assert!(said.contains("P101"), "{said}");
    let elastic = |kind: &str| {
        let words = format!("{kind} submit big -g 3 -p team-b");
        typed(&["--from", &path, "--submit", &words]).unwrap().contains("let it be elastic")
    };
    assert_eq!(["training", "workspace"].map(elastic), [true, false]);
    let said = typed(&["--from", &path, "--submit", "-g 1 -p team-b"]).unwrap();
    assert!(said.starts_with("team-b/what-if-0-0 would start"), "{said}");
    let again = Path::new(&path);
    assert_eq!(std::fs::read_to_string(again).unwrap(), SCENARIO, "nothing is touched");
}

#[test]
fn what_if_asks_for_whatever_a_scenario_can_say() {
    let dir = tempfile::tempdir().unwrap();
    let text = "version: 1
topologies: [{name: net, levels: [rack]}]
nodes:
  - {name: n1, gpus: 2, labels: {rack: r1, node-pool: fast}}
  - {name: n2, gpus: 2, labels: {rack: r2}}
queues: [{name: team, quota: {gpu: 4}}]
";
    let path = file(dir.path(), "s.yaml", text);
    let asked = |submit: &str| typed(&["--from", &path, "--submit", submit]).unwrap();
    let said = asked(
        "{name: ring, project: team, gpu: 1, pods: 3, topology: {name: net, required: rack}}",
    );
    assert!(said.starts_with("team/ring-0 would wait\n") && said.contains("P108"), "{said}");
    let said = asked("{name: g, project: team, gpu: 1, gated: true}");
    assert!(said.contains("P305"), "{said}");
    let said = asked("{name: p, project: team, gpu: 1, pools: [fast, default]}");
    assert!(said.starts_with("team/p-0 would start on n1[0]\n"), "{said}");
    for (words, place) in [
        ("submit w -g 1 --node-pools 'fast default'", "would start on n1[0]"),
        ("submit w -g 1 --node-pools default", "would start on n2[0]"),
        ("training submit w -g 1 --node-type a100", "would wait"),
        ("training pytorch submit w -g 1 --workers 1 --node-pools default", "would start on n2[1]"),
        (
            "training pytorch submit w -g 1 --workers 3 --required-pod-topology-key rack",
            "would wait",
        ),
        ("inference submit w -g 1 --serving-port 80 --min-replicas 2", "w-1 would start on n2[1]"),
    ] {
        let said = asked(&format!("{words} -i x -p team"));
        assert!(said.contains(place), "{words}: {said}");
    }
    let said = asked(
        "name: parts
project: team
groups: [{name: g, topology: {name: net, required: rack}}]
pod_sets:
  - {name: head, cpu: 1}
  - {name: work, pods: 2, gpu: 1, group: g}",
    );
    assert!(said.contains("team/parts-2 would start on n2[1]\n"), "{said}");
    let said =
        asked("[{name: a, count: 2, project: team, gpu: 1}, {name: b, project: team, gpu: 2}]");
    for line in ["team/a1-0 would start", "team/a2-0 would start", "team/b-0 would start"] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn wrong_input_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "s.yaml", SCENARIO);
    let wrong = file(dir.path(), "wrong.yaml", "version: 1\nnods: []\n");
    for (words, said) in [
        (vec![], "nothing to simulate"),
        (vec!["/nowhere/x.yaml"], "cannot read /nowhere/x.yaml"),
        (vec![wrong.as_str()], "wrong.yaml:2:1: unknown key `nods`; did you mean `nodes`?"),
        (vec![&path, "--policy", "placment=spread"], "did you mean `placement`?"),
        (vec![&path, "--policy", "placement"], "not of the form KEY=VALUE"),
        (vec!["--from", &path, "--submit", "x -g 1"], "say in which project with -p"),
        (vec!["--from", &path, "--submit", "x -g nan -p team-a"], "nan"),
        (vec!["--from", &path, "--submit", "list"], "--submit"),
        (vec!["--from", &path, "--submit", "x -g 1 -p nope"], "there is no queue `nope`"),
        (
            vec!["--from", &path, "--submit", "{name: x, project: team-a, gpus: 1}"],
            "--submit:1:28: unknown key `gpus`; did you mean `gpu`?",
        ),
        (vec!["--from", &path, "--submit", "{name: x}"], "key `project` is missing"),
        (
            vec!["--from", &path, "--submit", "{name: x, project: team-a, pods: 2, pods_min: 3}"],
            "workload `x`: `pods_min` is 3; 1 to 2 (all its pods) are allowed",
        ),
        (
            vec!["--from", &path, "--submit", "{name: x, project: team-a, pools: [fast]}"],
            "no node is in a pool `fast`",
        ),
        (
            vec![
                "--from",
                &path,
                "--submit",
                "{name: x, project: team-a, topology: {name: net, required: rack}}",
            ],
            "there is no topology `net`",
        ),
        (vec!["--state", "nope"], "nope"),
        (vec!["--state", "full", "--nodes", "0"], "write a whole number from 1 to 20000"),
        (vec![&path, "--seeds", "3"], "cannot be used with"),
    ] {
        let fault = typed(&words).expect_err(said).to_string();
        assert!(fault.contains(said), "{words:?}: {fault}");
    }
}

#[test]
fn a_generated_state_a_trace_and_random_histories() {
    let said = typed(&["--state", "reclaim-gang", "--nodes", "10"]).unwrap();
    assert!(said.contains("8 evict") && said.contains("time "), "{said}");
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,4,T4\n");
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1024,1,1000\n";
    file(dir.path(), "pods-default.csv", pods);
    let said = typed(&["--trace", &dir.path().to_string_lossy(), "--runs", "2"]).unwrap();
    assert!(said.contains("100 %    100.00 %"), "{said}");
    // Two that share a GPU each, and one that needs both GPUs.
    let nodes = "sn,cpu_milli,memory_mib,gpu,model\na,64000,9000,2,T4\nb,64000,9000,2,T4\n";
    file(dir.path(), "nodes.csv", nodes);
    let pods = "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,500\n1,1,1,500\n1,1,1,500\n\
        1,1,1,500\n1,1,2,1000\n";
    file(dir.path(), "pods-default.csv", pods);
    let spread = ["--policy", "placement=spread", "--runs", "5"];
    let trace = ["--trace", dir.path().to_str().unwrap()];
    let said = typed(&[&trace[..], &spread, &["--moves"]].concat()).unwrap();
    assert!(said.contains(" move") && !said.contains(" 0 moves"), "{said}");
    assert!(said.contains("100 %    100.00 %"), "{said}");
    let said = typed(&["--seeds", "2", "--seed", "7", "--steps", "10"]).unwrap();
    assert!(
        said.starts_with("2 histories (seeds 7 to 8), every invariant held\n20 steps"),
        "{said}"
    );
}
