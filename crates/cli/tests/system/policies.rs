//! Policies at the terminal: their defaults and rules apply to submissions there.

use serde_json::json;

use crate::sandbox::{Sandbox, wait_until};

/// Sets the policy of the tenant for a kind of workload.
fn set(sandbox: &Sandbox, kind: &str, policy: &serde_json::Value) {
    let body = json!({"meta": {"name": "p", "scope": "tenant"}, "policy": policy}).to_string();
    let answer = sandbox.ask("PUT", &format!("/api/v2/policy/{kind}"), &body).expect("an answer");
    assert_eq!(answer.0, 200, "{}", answer.1);
}

#[test]
fn what_is_submitted_at_the_terminal_keeps_policies_or_is_told_the_rule() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    assert_eq!(sandbox.shell("elastane project create team-a --gpu-quota 4").code, Some(0));
    let rules = json!({"compute": {"gpuDevicesRequest": {"max": 1}},
        "environmentVariables": {"instances": {"locked": ["SITE"]}}});
    let defaults =
        json!({"environmentVariables": {"instances": [{"name": "SITE", "value": "north"}]}});
    set(&sandbox, "trainings", &json!({"rules": rules, "defaults": defaults}));
    set(&sandbox, "workspaces", &json!({"rules": {"workingDir": {"required": true}}}));
    let gpus = "spec.compute.gpuDevicesRequest: 2 is not allowed; max is 1";
    for (line, why) in [
        ("runai submit a -i ubuntu -g 2 -p team-a", gpus),
        ("runai training submit a -i ubuntu -g 2 -p team-a", gpus),
        ("runai submit a -i ubuntu -e SITE=south -p team-a", "`SITE` is locked; leave it out"),
        ("runai workspace submit a -i ubuntu -p team-a", "spec.workingDir: is required"),
    ] {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(1), "{line}: {}", output.text);
        assert!(output.text.contains(why), "{line}: {}", output.text);
        assert!(output.text.contains("(policy `p` of the tenant)"), "{line}: {}", output.text);
    }
    let line = "runai submit b -i ubuntu -g 1 -p team-a --command -- sh -c 'echo at $SITE'";
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(0), "{}", output.text);
    let said = || sandbox.shell("runai logs b -p team-a").text;
    assert!(wait_until(|| said().contains("at north")), "{}", said());
}

#[test]
fn a_policy_is_applied_from_a_file_and_shown_with_those_around_it() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    let says = |line: &str, code: i32, parts: &[&str]| {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
        for part in parts {
            assert!(output.text.contains(part), "{line} lacks {part:?}\n{}", output.text);
        }
    };
    says(
        "elastane project create team-a --gpu-quota 4 --default-node-pools default",
        0,
        &["team-a"],
    );
    says("elastane project describe team-a", 0, &["Default node pools: default"]);
    says("elastane project update team-a --default-node-pools none", 0, &["team-a"]);
    says("elastane project describe team-a", 0, &["Default node pools: all"]);
    let file = "printf 'rules:\n  compute:\n    gpuDevicesRequest:\n      max: 1\n' > p.yaml";
    says(file, 0, &[]);
    let (own, all) = ("--type training --project team-a", "--type training --everywhere");
    let check = format!("elastane policy apply {own} -f p.yaml --dry-run");
    says(&check, 0, &["is valid; nothing was changed"]);
    says(&format!("elastane policy get {own}"), 4, &["set one with `elastane policy apply`"]);
    says(&format!("elastane policy apply {own} -f p.yaml --name small"), 0, &["is set"]);
    says(&format!("elastane policy get {own} > q.yaml && cat q.yaml"), 0, &["max: 1"]);
    says(&format!("elastane policy apply {all} -f q.yaml"), 0, &["the installation is set"]);
    let both = ["# policy small of the project", "---\n# policy policy of the installation"];
    says(&format!("elastane policy get {own} --effective"), 0, &both);
    says("elastane policy list", 0, &["small", "project team-a", "installation"]);
    says("runai submit a -i ubuntu -g 2 -p team-a", 1, &["max is 1", "(policy `small` of"]);
    says(&format!("elastane policy delete {own}"), 0, &["deleted"]);
    says("elastane policy list -o name", 0, &["policy/policy"]);
    says(
        "echo 'rulez: {}' | elastane policy apply --type training --everywhere -f -",
        2,
        &["rulez"],
    );
    says(&format!("echo 'rules:' | elastane policy apply {own} -f -"), 2, &["has no rules"]);
}

#[test]
fn both_programs_complete_names_of_the_server() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    assert_eq!(sandbox.shell("elastane project create team-a --gpu-quota 1").code, Some(0));
    let goes_on = |program: &str, words: &str| {
        let count = words.split(' ').count();
        let asks = "COMPLETE=bash _CLAP_COMPLETE_COMP_TYPE=9 _CLAP_COMPLETE_SPACE=true";
        let line = format!("{asks} _CLAP_COMPLETE_INDEX={count} {program} -- {program} {words}");
        sandbox.shell(&line).text
    };
    for (program, words) in [
        ("elastane", "project describe te"),
        ("elastane", "policy get --project te"),
        ("runai", "list -p te"),
    ] {
        assert!(goes_on(program, words).contains("team-a"), "{program} {words}");
    }
    assert_eq!(sandbox.shell("elastane completion bash | grep -c COMPLETE").code, Some(0));
}
