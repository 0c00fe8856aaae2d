//! Workloads as the server sends them.

use api_types::Workload;
use serde_json::json;

/// Time at which all samples are shown, in milliseconds.
pub(crate) const NOW_MS: u64 = 1_700_000_100_000;

/// A workload in one line: `a2 Training Running team-a held=2 asked=2 over age=7 on=node1`.
pub(crate) fn workload(line: &str) -> Workload {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, kind, phase, project, flags @ ..] = words.as_slice() else { panic!("{line}") };
    let flag = |key: &str| flags.iter().find_map(|flag| flag.strip_prefix(&format!("{key}=")));
    let number = |key: &str| flag(key).map_or(0.0, |text| text.parse::<f64>().unwrap());
    let age_s = flag("age").map_or(0, |text| text.parse::<u64>().unwrap());
    let at = api_types::Time(units::Instant(NOW_MS - age_s * 1000)).to_string();
    let running = u32::from(*phase == "Running");
    let pending = u32::from(*phase == "Pending");
    let memory = flag("memory");
    serde_json::from_value(json!({
        "id": format!("id-{name}"), "name": name, "type": kind, "tenantId": 1, "clusterId": "c",
        "projectId": "1", "projectName": project, "departmentId": "1", "departmentName": "default",
        "namespace": format!("runai-{project}"), "source": "CLI", "category": "Train",
        "priority": 40, "priorityClassName": "low",
        "preemptible": *kind == "Training" || flags.contains(&"preemptible"),
        "submittedBy": "ann", "createdAt": at, "updatedAt": at, "deletedAt": null,
        "phase": phase, "phaseUpdatedAt": at, "k8sPhase": phase, "k8sPhaseUpdatedAt": at,
        "conditions": [], "runningPods": running, "requestedPods": {"number": 1},
        "workloadRequestedResources": match memory {
            Some(size) => json!({"gpuRequestType": "memory", "gpuMemory": {"request": size}}),
            None => json!({"gpu": {"request": number("asked")}}),
        },
        "podsRequestedResources": {},
        "allocatedResources": {"gpu": number("held"), "cpu": 0, "cpuMemory": "0"},
        "actionsSupport": {"delete": true, "suspend": true}, "requestedNodePools": [],
        "currentNodePools": [],
        "distributedFramework": flag("framework"), "urls": Vec::from_iter(flag("url")), "images": ["gcr.io/run-ai-demo/quickstart"],
        "environmentVariables": {}, "totalPendingTimeSeconds": 0, "totalRunningTimeSeconds": 61,
        "additionalFields": {
            "nodes": flag("on").map(|nodes| nodes.split(',').collect::<Vec<_>>()).unwrap_or_default(),
            "requestedGpus": number("asked"), "overQuota": flags.contains(&"over"),
            "pods": {"running": running, "pending": pending},
            "commandLine": format!("runai submit {name}"),
        }
    }))
    .unwrap()
}
