//! Accepted fields of templates and of the defaults of policies are read back: every sample that is
//! posted as a submission is kept as both, and compared with what is shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::read_back::{check, compare, prepared, samples};

/// Fields of samples that templates and policies have to keep, at least.
const FIELDS_MIN: usize = 150;

#[tokio::test]
async fn every_field_of_a_template_that_is_accepted_is_read_back() {
    let server = prepared().await;
    let mut found = BTreeMap::new();
    for (number, (kind, spec)) in samples().into_iter().enumerate() {
        let meta = json!({"name": format!("t{number}"), "scopeType": "project", "scopeId": "1"});
        let path = format!("/api/v1/workload-templates/{kind}");
        let (status, made) = server.post(&path, json!({"meta": meta, "spec": spec})).await;
        if !status.is_success() {
            found.insert(format!("{kind} {spec}"), Some(made["message"].to_string()));
            continue;
        }
        let one = format!("{path}/{}", made["meta"]["id"].as_str().unwrap());
        compare("", &spec, &server.get(&one).await["spec"], &mut found);
    }
    assert!(found.len() > FIELDS_MIN, "{}", found.len());
    check(BTreeSet::new(), found, &[]);
}

#[tokio::test]
async fn every_default_of_a_policy_that_is_accepted_is_read_back() {
    let server = prepared().await;
    let mut found = BTreeMap::new();
    for (kind, defaults) in samples() {
        let path = format!("/api/v2/policy/{kind}");
        let meta = json!({"name": "p", "scope": "project", "projectId": 1});
        let parts = json!({"worker": defaults, "master": {"image": "m"}});
        let (of_policy, part) = match kind {
            "distributed" => (parts, "/policy/defaults/worker"),
            _ => (defaults.clone(), "/policy/defaults"),
        };
        let body = json!({"meta": meta, "policy": {"defaults": of_policy}});
        let (status, made) = server.raw("PUT", &path, &body.to_string()).await;
        if !status.is_success() {
            found.insert(format!("{kind} {defaults}"), Some(made["message"].to_string()));
            continue;
        }
        let shown = server.get(&format!("{path}?scope=project&projectId=1")).await;
        let kept = shown.pointer(part).unwrap_or(&Value::Null);
        compare("", &defaults, kept, &mut found);
    }
    assert!(found.len() > FIELDS_MIN, "{}", found.len());
    check(BTreeSet::new(), found, &[]);
}

#[tokio::test]
async fn every_kind_of_rule_that_is_accepted_is_read_back() {
    let server = prepared().await;
    let rules = json!({
        "compute": {
            "gpuDevicesRequest": {"min": 1, "max": 3, "step": 2, "required": true, "canEdit": true},
            "cpuMemoryRequest": {"min": "1G", "max": "4G"},
            "migProfile": {"blocked": true},
        },
        "backoffLimit": {"defaultFrom": {"field": "parallelism", "factor": 2}},
        "image": {"options": [{"value": "i", "displayed": "the image"}]},
        "environmentVariables": {"instances": {"canAdd": false, "locked": ["A"]}},
        "storage": {"emptyDirVolume": {"attributes": {"medium": {"options": [{"value": ""}]}}}},
    });
    let policy = json!({"rules": rules, "defaults": {"environmentVariables": {
        "instances": [{"name": "A", "value": "1"}]}}});
    let meta = json!({"name": "p", "scope": "tenant"});
    let body = json!({"meta": meta, "policy": policy}).to_string();
    let (status, said) = server.raw("PUT", "/api/v2/policy/trainings", &body).await;
    assert!(status.is_success(), "{said}");
    let shown = server.get("/api/v2/policy/trainings?scope=tenant").await;
    let mut found = BTreeMap::new();
    compare("", &policy, &shown["policy"], &mut found);
    check(BTreeSet::new(), found, &[]);
}
