//! Policies at the terminal: a submission is filled and judged there as it is anywhere else.

use std::time::Duration;

use serde_json::json;

use crate::sandbox::{Sandbox, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);

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
    assert!(wait_until(PATIENCE, || said().contains("at north")), "{}", said());
}
