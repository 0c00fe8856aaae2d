//! Shapes of answers against the published field lists (reference C.4): a field with `*` must be
//! there, and beyond the list only what is documented as our own.

use serde_json::{Value, json};

use crate::server::Server;

const CLUSTER: &str = "uuid* tenantId* name* createdAt* domain version status updatedAt deletedAt \
    lastLiveness deleteRequestedAt";
const NODE_POOL: &str = "name* labelKey* labelValue* clusterId* overProvisioningRatio \
    placementStrategy gpuNetworkAccelerationLabelKey gpuNetworkAccelerationDetection \
    networkTopologyName networkTopologyId gpuResourceOptimization schedulingConfiguration phase \
    phaseMessage status id* tenantId* clusterName* createdBy* createdAt* updatedBy* updatedAt* \
    deletedBy deletedAt isDefault*";
const NODE: &str = "status* conditions taints nodePool* createdAt* gpuInfo nvLinkDomainUid \
    nvLinkCliqueId name* id clusterUuid* updatedAt*";
const DEPARTMENT: &str = "description schedulingRules defaultNodePools nodeTypes name* clusterId* \
    overtimeData id* createdAt* updatedAt* createdBy updatedBy children status totalResources* \
    resources*";
const PROJECT: &str = "id* name* clusterId* parentId requestedNamespace enforceRunaiScheduler \
    description createdAt* createdBy updatedAt* updatedBy status* totalResources* resources* \
    parent effective overtimeData schedulingRules defaultNodePools nodeTypes";
const TRAINING: &str = "name* requestedName* workloadId* projectId* departmentId clusterId* \
    createdBy* createdAt* deletedAt desiredPhase* actualPhase spec";
const WORKLOAD: &str = "tenantId* runningPods* phaseUpdatedAt* k8sPhaseUpdatedAt* updatedAt* \
    source* deletedAt* type* name* id* priority* priorityClassName* submittedBy clusterId* \
    projectName* projectId* departmentName* departmentId* namespace* createdAt* \
    workloadRequestedResources podsRequestedResources allocatedResources actionsSupport phase* \
    conditions* phaseMessage k8sPhase* requestedPods requestedNodePools currentNodePools \
    completedAt images childrenIds urls datasources environments externalConnections \
    distributedFramework additionalFields preemptible environmentVariables command arguments \
    phaseReason idleGpus idleAllocatedGpus totalPendingTimeSeconds totalRunningTimeSeconds \
    category* guaranteedRuntimeEndsAt aiApplicationId aiApplicationName sourceApi topology";
const POD: &str = "name* priorityClassName* id* workloadId* revisionId clusterId* projectId \
    nodeName createdAt* completedAt containers* currentNodePool requestedNodePools \
    requestedResources allocatedResources tolerations k8sPhase* ip nodeAffinity tenantId* \
    k8sPhaseUpdatedAt* updatedAt* deletedAt projectName workloadName";
const EVENT: &str = "createdAt* id type* clusterId* message* reason source involvedObject";

/// Checks one object against a list and our own additions.
fn check(what: &str, object: &Value, published: &str, own: &[&str]) {
    let fields = object.as_object().unwrap_or_else(|| panic!("{what} is not an object: {object}"));
    for name in published.split_whitespace().filter_map(|name| name.strip_suffix('*')) {
        assert!(fields.contains_key(name), "{what} lacks {name}: {object:#}");
    }
    let known: Vec<&str> =
        published.split_whitespace().map(|name| name.trim_end_matches('*')).collect();
    for name in fields.keys().map(String::as_str) {
        assert!(known.contains(&name) || own.contains(&name), "{what} has unknown {name}");
    }
}

/// Checks that every time in an answer can be parsed.
fn check_times(value: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let time = name.ends_with("At") || name.ends_with("Time") || name == "at";
                if let (true, Some(text)) = (time, value.as_str()) {
                    assert!(text.parse::<api_types::Time>().is_ok(), "{name}: {text}");
                }
                check_times(value);
            }
        }
        Value::Array(items) => items.iter().for_each(check_times),
        _ => {}
    }
}

async fn busy_server() -> (Server, Vec<String>) {
    let server = Server::with_teams().await;
    let running = server.train("running", 1).await;
    server.phase(&running, "Running").await;
    let pending = server.train("pending", 8).await;
    let portion = json!({"image": "i", "command": "sh -c", "args": "'a b'", "compute":
        {"gpuRequestType": "portion", "gpuPortionRequest": 0.5, "gpuDevicesRequest": 1}});
    let mut ids = vec![running, pending];
    for (name, spec) in [
        ("portion", portion),
        (
            "memory",
            json!({"image": "i", "compute":
            {"gpuRequestType": "memory", "gpuMemoryRequest": "4Gi"}}),
        ),
        ("cpu", json!({"command": "true"})),
    ] {
        let (status, made) =
            server.post("/api/v1/workloads/workspaces", server.job(name, &spec)).await;
        assert_eq!(status, 202, "{made}");
        check("workspace", &made, TRAINING, &[]);
        ids.push(made["workloadId"].as_str().unwrap().to_owned());
    }
    (server, ids)
}

#[tokio::test]
async fn workloads_have_the_published_shape_in_every_state() {
    let (server, ids) = busy_server().await;
    let list = server.get("/api/v1/workloads").await;
    check_times(&list);
    assert_eq!(list["workloads"].as_array().unwrap().len(), ids.len());
    for workload in list["workloads"].as_array().unwrap() {
        check("workload", workload, WORKLOAD, &[]);
        for integer in ["tenantId", "runningPods", "priority", "totalPendingTimeSeconds"] {
            assert!(workload[integer].is_u64(), "{integer}: {}", workload[integer]);
        }
        assert!(workload["projectId"].is_string());
        assert_eq!(workload["deletedAt"], Value::Null);
    }
    for id in &ids {
        let own = format!("/api/v1/workloads/{id}");
        let pods = server.get(&format!("{own}/pods")).await;
        check_times(&pods);
        for pod in pods["pods"].as_array().unwrap() {
            check(
                "pod",
                pod,
                POD,
                &["generation", "restarts", "role", "gpus", "state", "lastExit"],
            );
        }
        for event in server.get(&format!("{own}/events")).await["events"].as_array().unwrap() {
            check("event", event, EVENT, &[]);
            check("object", &event["involvedObject"], "uid* kind* name* namespace*", &[]);
        }
        for record in server.get(&format!("{own}/history")).await["records"].as_array().unwrap() {
            check("history", record, "meta* spec*", &[]);
            check("history meta", &record["meta"], "creationTimestamp* type*", &[]);
            let (kind, spec) = (&record["meta"]["type"], &record["spec"]);
            let matching = if kind == "Event" { "event*" } else { "phaseUpdate*" };
            check("history spec", spec, matching, &[]);
        }
    }
}

#[tokio::test]
async fn what_was_asked_for_is_told_back() {
    let (server, ids) = busy_server().await;
    let path = format!("/api/v1/workloads/workspaces/{}", ids[2]);
    let portion = server.get(&path).await;
    let spec = &portion["spec"];
    assert_eq!((&spec["command"], &spec["args"]), (&json!("sh -c"), &json!("'a b'")));
    let compute = json!({"gpuDevicesRequest": 1, "gpuRequestType": "portion",
        "gpuPortionRequest": 0.5, "cpuCoreRequest": 0.1, "cpuMemoryRequest": "100M"});
    assert_eq!(spec["compute"], compute);
    let general = server.get(&format!("/api/v1/workloads/{}", ids[3])).await;
    let asked = &general["workloadRequestedResources"];
    assert_eq!(
        (&asked["gpuRequestType"], &asked["gpuMemory"]["request"]),
        (&json!("memory"), &json!("4Gi"))
    );
}

#[tokio::test]
async fn the_organisation_has_the_published_shapes() {
    let server = Server::with_teams().await;
    let clusters = server.get("/api/v1/clusters").await;
    check("cluster", &clusters[0], CLUSTER, &[]);
    assert_eq!(clusters[0]["status"]["state"], "Connected");
    let pools = server.get("/api/v1/node-pools").await;
    check("node pool", &pools["nodepools"][0], NODE_POOL, &[]);
    assert!(!pools["nodepools"][0]["labelValue"].as_str().unwrap().is_empty());
    let nodes = server.get("/api/v1/nodes").await;
    for node in nodes["nodes"].as_array().unwrap() {
        let amounts = ["gpuMemoryBytes", "gpuUsed", "cpuMillis", "cpuUsedMillis", "memoryBytes"];
        let others = ["memoryUsedBytes", "simulated", "labels", "taints", "scheduling"];
        let own = [&amounts[..], &others].concat();
        check("node", node, NODE, &own);
    }
    assert_eq!(nodes["nodes"][0]["gpuInfo"], json!({"gpuType": "simulated", "gpuCount": 4}));
    assert!(nodes["nodes"][1].get("gpuInfo").is_none(), "a node without GPUs has none to tell of");
    let departments = server.get("/api/v1/org-unit/departments").await;
    check("department", &departments["departments"][0], DEPARTMENT, &[]);
    assert_eq!(departments["departments"][0]["totalResources"]["gpuQuota"], 4);
    for project in server.get("/api/v1/org-unit/projects").await["projects"].as_array().unwrap() {
        check("project", project, PROJECT, &[]);
        let status = &project["status"];
        let published = "namespace* phase* phaseMessage lastUpdatedTime nodePoolQuotaStatuses* \
            quotaStatus* additionalStatusData";
        check("project status", status, published, &[]);
        let quota = "allocated* allocatedNonPreemptible* requested* nodePoolName* nodePoolId*";
        check("quota", &status["nodePoolQuotaStatuses"][0], quota, &[]);
        let share = "nodePool* gpu* cpu memory priority";
        check("share", &project["resources"][0], share, &["rank"]);
    }
    for (path, count) in [("nodes", 2), ("node-pools", 1), ("org-unit/projects", 2)] {
        assert_eq!(server.get(&format!("/api/v1/{path}/count")).await, json!({"count": count}));
    }
    for answer in [clusters, pools, nodes, departments] {
        check_times(&answer);
    }
}

#[tokio::test]
async fn our_own_answers_are_what_our_client_reads() {
    let (server, ids) = busy_server().await;
    let read = async |path: String| server.get(&path).await.to_string();
    let status: api_types::Status =
        serde_json::from_str(&read("/elastane/v1/status".into()).await).unwrap();
    assert_eq!((status.version.as_str(), status.runtime.as_str()), ("1.2.3", "double"));
    assert!(status.simulated && status.fraction_enforcement == "none");
    let limits = status.limits;
    assert_eq!((limits.cpu, limits.memory), (false, true));
    assert_eq!(limits.why.as_deref(), Some("this is a test"));
    assert_eq!((status.gpus.0, status.projects, status.workloads), (4000, 2, 5));
    let list = read("/api/v1/workloads".into()).await;
    let list: api_types::WorkloadsPage = serde_json::from_str(&list).unwrap();
    assert_eq!(list.workloads[0].additional_fields.nodes, ["node-1"]);
    let projects = read("/api/v1/org-unit/projects".into()).await;
    let projects: api_types::ProjectsPage = serde_json::from_str(&projects).unwrap();
    assert_eq!(projects.projects[0].total_resources.gpu_quota.0, 2000);
    for id in ids {
        let explained = read(format!("/elastane/v1/workloads/{id}/explain")).await;
        let explained: api_types::Explanation = serde_json::from_str(&explained).unwrap();
        assert!(!explained.events.is_empty());
        let pods = read(format!("/api/v1/workloads/{id}/pods")).await;
        serde_json::from_str::<api_types::PodsPage>(&pods).unwrap();
    }
}

/// Bodies as the published quick starts have them.
#[tokio::test]
async fn the_amount_says_the_type_of_a_share_and_a_name_may_be_a_prefix() {
    let server = Server::with_teams().await;
    let body = serde_json::json!({
        "name": "w1", "projectId": "1", "useGivenNameAsPrefix": true,
        "spec": {"image": "ubuntu", "command": "sleep 10", "compute": {"gpuDevicesRequest": 1,
            "gpuMemoryRequest": "4G", "gpuMemoryLimit": "12G", "largeShmRequest": true}},
    });
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let (status, made) = server.post("/api/v1/workloads/workspaces", body.clone()).await;
        assert_eq!(status, 202, "{made}");
        assert_eq!(made["spec"]["compute"]["gpuRequestType"], "memory");
        let name = made["name"].as_str().unwrap().to_owned();
        assert_eq!(name.strip_prefix("w1-").map(str::len), Some(5), "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 2);
}
