//! Accepted fields of departments, projects, node pools and assets are read back: every field of the
//! request, from the description of the interface, is posted and compared with the object as shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::read_back::{check, compare, leaves};
use crate::server::Server;

/// Fields of these objects that are not read back as they were posted, each with its reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("*.autoDelete", "is refused"),
    ("*.private", "is refused"),
    ("*.exclude", "takes away an inherited item, which is not there then"),
    ("* nodeTypes.names", "a map: its keys are in the samples"),
    ("* overtimeData", "is refused"),
    ("*.cpu.overQuotaWeight", "is refused: one weight holds for all"),
    ("*.memory.overQuotaWeight", "is refused: one weight holds for all"),
    ("*.rank", "another word for the priority, which is in the samples"),
    (
        "*.deservedFromProjects",
        "of departments only; the sum is shown, so that it can be sent back",
    ),
    ("NFSCreationRequest meta.*", "the fields of other assets"),
    ("NodepoolCreateFields gpuNetworkAcceleration*", "is refused"),
    ("NodepoolCreateFields gpuResourceOptimization*", "is refused"),
    ("NodepoolCreateFields networkTopologyId", "the id of an object that has to be made"),
    ("NodepoolCreateFields overProvisioningRatio", "is refused"),
    ("*.minGuaranteedRuntime", "the same span, in milliseconds"),
];

/// Schema of the request, path, and body of each department, project and node pool.
fn units(server: &Server) -> Vec<(&'static str, &'static str, Value)> {
    let cluster = server.cluster_id();
    let shares = json!([{
        "nodePool": {"id": "1", "name": "default"},
        "gpu": {"deserved": 1, "limit": 2, "overQuotaWeight": 3},
        "cpu": {"deserved": 1000, "limit": 2000},
        "memory": {"deserved": 1024, "limit": 2048, "units": "Mib"},
        "priority": "High",
    }]);
    let rules = json!({
        "interactiveJobMaxIdleDurationSeconds": 3600, "interactiveJobTimeLimitSeconds": 7200,
        "interactiveJobPreemptIdleDurationSeconds": 1800, "trainingJobMaxIdleDurationSeconds": 5400,
        "trainingJobTimeLimitSeconds": 9000,
    });
    let unit = |name: &str| {
        json!({
            "name": name, "clusterId": cluster, "description": "text", "resources": shares,
            "schedulingRules": rules, "defaultNodePools": ["default"],
            "nodeTypes": {"training": ["dgx"], "workspace": ["pc"], "names": {"dgx": "DGX"}},
        })
    };
    let mut summed = unit("d2");
    summed["resources"][0] = json!({
        "nodePool": {"id": "1", "name": "default"},
        "gpu": {"deservedFromProjects": true}, "cpu": {"deservedFromProjects": true},
        "memory": {"deservedFromProjects": true, "units": "Mib"},
    });
    let mut project = unit("p1");
    project["requestedNamespace"] = json!("runai-p1");
    project["enforceRunaiScheduler"] = json!(true);
    project["parentId"] = json!("1");
    project["namespaces"] = json!(["lab"]);
    vec![
        ("DepartmentCreationRequest", "/api/v1/org-unit/departments", unit("d1")),
        ("DepartmentCreationRequest", "/api/v1/org-unit/departments", summed),
        ("ProjectCreationRequest", "/api/v1/org-unit/projects", project),
        (
            "NodepoolCreateFields",
            "/api/v1/node-pools",
            json!({
                "name": "fast", "clusterId": cluster, "labelKey": "gpu", "labelValue": "fast",
                "placementStrategy": {"cpu": "spread", "gpu": "binpack"},
                "gpuTimeSlicing": "fair", "gpuFractions": "hard",
                "schedulingConfiguration": {
                    "minGuaranteedRuntime": "10m",
                    "placementStrategy": {"cpu": "spread", "gpu": "binpack"},
                },
            }),
        ),
    ]
}

/// Schema of the request, path, and body of each asset.
fn assets(server: &Server) -> Vec<(&'static str, &'static str, Value)> {
    let cluster = server.cluster_id();
    vec![
        (
            "ComputeCreationRequest",
            "/api/v1/asset/compute",
            json!({
                "meta": {
                    "name": "c", "scope": "project", "projectId": 1, "description": "text",
                    "workloadSupportedTypes": {"training": true, "workspace": true},
                },
                "spec": {
                    "gpuDevicesRequest": 1, "gpuRequestType": "portion",
                    "gpuPortionRequest": 0.5, "gpuPortionLimit": 0.75, "cpuCoreRequest": 0.5,
                    "cpuCoreLimit": 1, "cpuMemoryRequest": "100M", "cpuMemoryLimit": "200M",
                    "largeShmRequest": true,
                },
            }),
        ),
        (
            "ComputeCreationRequest",
            "/api/v1/asset/compute",
            json!({
                "meta": {"name": "m", "scope": "department", "departmentId": "1",
                    "workloadSupportedTypes": {"distributed": true, "distFramework": "PyTorch"}},
                "spec": {"gpuDevicesRequest": 1, "gpuRequestType": "memory",
                    "gpuMemoryRequest": "4G", "gpuMemoryLimit": "8G"},
            }),
        ),
        (
            "ComputeCreationRequest",
            "/api/v1/asset/compute",
            json!({
                "meta": {"name": "e", "scope": "cluster", "clusterId": cluster,
                    "workloadSupportedTypes": {"inference": true}},
                "spec": {"extendedResources": [
                    {"resource": "nvidia.com/mig-1g.10gb", "quantity": "1"}]},
            }),
        ),
        (
            "NFSCreationRequest",
            "/api/v1/asset/datasource/nfs",
            json!({
                "meta": {"name": "n", "scope": "tenant", "description": "text"},
                "spec": {"server": "s", "path": "/x", "mountPath": "/y", "readOnly": true},
            }),
        ),
    ]
}

#[tokio::test]
async fn every_field_of_an_object_that_is_accepted_is_read_back() {
    let server = Server::with_teams().await;
    let document = server.get("/elastane/v1/openapi.json").await;
    let (mut not_posted, mut found) = (BTreeSet::new(), BTreeMap::new());
    for (schema, path, body) in units(&server).into_iter().chain(assets(&server)) {
        let of = json!({"$ref": format!("#/components/schemas/{schema}")});
        let mut own = BTreeSet::new();
        leaves(&document, &of, "", &mut own);
        not_posted.extend(own.into_iter().map(|field| format!("{schema} {field}")));
        let (status, made) = server.post(path, body.clone()).await;
        if !status.is_success() {
            found.insert(path.to_owned(), Some(made["message"].to_string()));
            continue;
        }
        let id = [&made["id"], &made["meta"]["id"]].into_iter().find(|id| !id.is_null()).unwrap();
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let mut outcomes = BTreeMap::new();
        compare("", &body, &server.get(&format!("{path}/{id}")).await, &mut outcomes);
        found.extend(outcomes.into_iter().map(|(field, of)| (format!("{schema} {field}"), of)));
    }
    check(not_posted, found, EXCEPTIONS);
}
