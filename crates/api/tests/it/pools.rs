//! Node pools over the wire: made, used, shown everywhere, taken away.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::refusals::refused;
use crate::server::Server;

const POOLS: &str = "/api/v1/node-pools";
const PROJECT: &str = "/api/v1/org-unit/projects/1";

/// A server whose node-1 (four GPUs) is in pool `fast`; the id of that.
async fn divided() -> (Server, String) {
    let server = Server::with_teams().await;
    label(&server, "node-1", json!({"gpu": "a100", "run.ai/type": "big"})).await;
    let body = json!({
        "name": "fast", "labelKey": "gpu", "labelValue": "a100", "clusterId": server.cluster_id(),
    });
    let (status, made) = server.post(POOLS, body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    (server, id)
}

async fn label(server: &Server, node: &str, labels: Value) -> Value {
    let path = format!("/elastane/v1/nodes/{node}/labels");
    let body = json!({ "labels": labels }).to_string();
    let (status, node) = server.raw("PUT", &path, &body).await;
    assert_eq!(status, StatusCode::OK, "{node}");
    node
}

async fn send(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = server.raw(method, path, &body.to_string()).await;
    assert!(status.is_success(), "{method} {path} {body}: {status} {answer}");
    answer
}

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_pool_is_made_listed_changed_and_deleted() {
    let (server, id) = divided().await;
    let all = server.get(POOLS).await;
    assert_eq!(names(&all["nodepools"], "name"), ["default", "fast"]);
    assert_eq!(server.get(&format!("{POOLS}/count")).await["count"], 2);
    let some = server.get(&format!("{POOLS}?filterBy=isDefault==false,phase==Ready")).await;
    assert_eq!(names(&some["nodepools"], "id"), [id.as_str()]);
    let one = format!("{POOLS}/{id}");
    let pool = server.get(&one).await;
    assert_eq!(pool["status"]["nodes"], json!(["node-1"]));
    assert_eq!(pool["placementStrategy"], json!({"cpu": "binpack", "gpu": "binpack"}));
    assert_eq!((&pool["phase"], &pool["isDefault"]), (&json!("Ready"), &json!(false)));
    let nodes = server.get("/api/v1/nodes?filterBy=nodePool==fast").await;
    assert_eq!(names(&nodes["nodes"], "name"), ["node-1"]);
    assert_eq!(nodes["nodes"][0]["labels"]["gpu"], "a100");

    let spread = json!({"placementStrategy": {"gpu": "spread"},
        "schedulingConfiguration": {"minGuaranteedRuntime": "1h30m"}});
    let changed = send(&server, "PATCH", &one, &spread).await;
    assert_eq!(changed["placementStrategy"], json!({"cpu": "binpack", "gpu": "spread"}));
    assert_eq!(changed["schedulingConfiguration"]["minGuaranteedRuntime"], "5400000ms");
    let kept = send(&server, "PATCH", &one, &json!({"labelValue": "h100"})).await;
    assert_eq!((&kept["phase"], &kept["labelKey"]), (&json!("Empty"), &json!("gpu")));
    assert_eq!(kept["placementStrategy"]["gpu"], "spread", "what is left out stays");
    let fair = send(&server, "PATCH", &one, &json!({"gpuTimeSlicing": "fair"})).await;
    assert_eq!(fair["gpuTimeSlicing"], "fair");
    let hard = send(&server, "PATCH", &one, &json!({"gpuFractions": "hard"})).await;
    assert_eq!((&hard["gpuFractions"], &hard["gpuTimeSlicing"]), (&json!("hard"), &json!("fair")));
    let body = json!({"gpuFractions": "mostly"}).to_string();
    let (status, wrong) = server.raw("PATCH", &one, &body).await;
    let why = wrong["message"].as_str().unwrap();
    assert!(status == 400 && why.contains("write none or hard"), "{wrong}");
    let body = json!({"gpuTimeSlicing": "often"}).to_string();
    let (status, wrong) = server.raw("PATCH", &one, &body).await;
    let why = wrong["message"].as_str().unwrap();
    assert!(status == 400 && why.contains("write none, strict or fair"), "{wrong}");
    let after = send(&server, "PUT", &one, &json!({"placementStrategy": {"cpu": "spread"}})).await;
    assert_eq!(after["gpuTimeSlicing"], Value::Null, "as the server was started");
    assert_eq!(after["gpuFractions"], Value::Null, "as the server was started");
    assert_eq!(after["placementStrategy"], json!({"cpu": "spread", "gpu": "binpack"}));
    assert_eq!(after["schedulingConfiguration"]["minGuaranteedRuntime"], Value::Null);
    assert_eq!(after["labelValue"], "h100", "the label stays");
    let read_back = send(
        &server,
        "PUT",
        &one,
        &json!({
            "placementStrategy": pool["placementStrategy"], "labelValue": "a100",
            "schedulingConfiguration": pool["schedulingConfiguration"],
            "overProvisioningRatio": 1, "gpuNetworkAccelerationDetection": "Auto",
            "gpuResourceOptimization": {"swapEnabled": false},
        }),
    )
    .await;
    assert_eq!(read_back["status"], pool["status"]);
    assert_eq!(server.raw("DELETE", &one, "").await.0, StatusCode::NO_CONTENT);
    refused(&server, ("GET", &one, &Value::Null), 404, "node pool").await;
    assert_eq!(
        server.get(POOLS).await["nodepools"][0]["status"]["nodes"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn projects_have_resources_in_each_pool() {
    let (server, id) = divided().await;
    let project = server.get(PROJECT).await;
    assert_eq!(project["resources"][1]["nodePool"], json!({"id": id, "name": "fast"}));
    assert_eq!(project["resources"][1]["gpu"]["deserved"], 0);
    assert_eq!(project["resources"][1]["gpu"]["overQuotaWeight"], 2);
    let fast = |gpus: u64| {
        json!([{"nodePool": {"id": id}, "gpu": {"deserved": gpus, "limit": 4},
        "priority": "High"}])
    };
    let resources = format!("{PROJECT}/resources");
    let changed = send(&server, "PATCH", &resources, &fast(3)).await;
    assert_eq!(changed[0]["gpu"]["deserved"], 2, "the other pool keeps its share");
    assert_eq!(changed[1]["gpu"]["deserved"], 3);
    assert_eq!(changed[1]["rank"], "High");
    assert_eq!(server.get(PROJECT).await["totalResources"]["gpuQuota"], 5);
    let after = send(&server, "PUT", &resources, &fast(1)).await;
    assert_eq!(after[0]["gpu"]["deserved"], 0, "what is left out gets its default");
    assert_eq!(server.get(PROJECT).await["totalResources"]["gpuQuota"], 1);
    let department = server.get("/api/v1/org-unit/departments/1").await;
    assert_eq!(department["resources"][1]["gpu"]["deserved"], 1);

    let spec = json!({"image": "i", "nodePools": ["fast", "default"],
        "compute": {"gpuDevicesRequest": 2}});
    let (_, made) = server.post("/api/v1/workloads/trainings", server.job("t", &spec)).await;
    let workload = server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    assert_eq!(workload["requestedNodePools"], json!(["fast", "default"]));
    assert_eq!(workload["currentNodePools"], json!(["fast"]));
    let listed = server.get("/api/v1/workloads?filterBy=nodepool==fast").await;
    assert_eq!(names(&listed["workloads"], "name"), ["t"]);
    let pods = server.get("/api/v1/workloads/pods").await;
    assert_eq!(pods["pods"][0]["currentNodePool"], "fast");
    let quotas = &server.get(PROJECT).await["status"]["nodePoolQuotaStatuses"];
    assert_eq!(names(quotas, "nodePoolName"), ["default", "fast"]);
    assert_eq!(quotas[0]["allocated"]["gpu"], 0);
    assert_eq!(quotas[1]["allocated"]["gpu"], 2);
    let snapshot = server.get("/elastane/v1/snapshot").await;
    assert_eq!(snapshot["nodes"][0]["labels"]["node-pool"], "fast");
    assert_eq!(snapshot["workloads"][0]["pools"], json!(["fast", "default"]));
    let one = format!("{POOLS}/{id}");
    let message = "team-a would hold 2 GPUs in node pool default and have a quota of 0 GPUs there";
    refused(&server, ("DELETE", &one, &Value::Null), 409, message).await;
    let message = "node pool `fast` is named by 1 workload (t)";
    refused(&server, ("DELETE", &format!("{one}?force=true"), &Value::Null), 409, message).await;
}

#[tokio::test]
async fn a_change_that_leaves_less_quota_than_is_held_is_shown_and_needs_force() {
    const EFFECTS: &str = "/elastane/v1/quota-effects";
    let server = Server::with_teams().await;
    server.train("t", 1).await;
    label(&server, "node-1", json!({"gpu": "a100"})).await;
    let pool = json!({"name": "fast", "labelKey": "gpu", "labelValue": "a100"});
    let held = "team-a would hold 1 GPU in node pool fast and have a quota of 0 GPUs there";
    let effects = server.post(EFFECTS, json!({"createNodePool": pool})).await.1;
    let lines = [
        "1 node of node pool default would be in fast: node-1",
        "node pool default would have 0 GPUs, fewer than the quotas there: team-a 2, team-b 2",
        held,
    ];
    assert_eq!(effects, json!({"lines": lines, "needsForce": true}));
    refused(&server, ("POST", POOLS, &pool), 409, held).await;
    assert_eq!(names(&server.get(POOLS).await["nodepools"], "name"), ["default"]);
    let made = send(&server, "POST", &format!("{POOLS}?force=true"), &pool).await;
    let id = made["id"].as_str().unwrap();

    let resources = format!("{PROJECT}/resources");
    let fast = |gpus: u64| json!([{"nodePool": {"id": id}, "gpu": {"deserved": gpus}}]);
    send(&server, "PATCH", &resources, &fast(2)).await;
    let less = json!({"project": {"id": "1", "resources": fast(0)}});
    let effects = server.post(EFFECTS, less).await.1;
    let held = "team-a holds 1 GPU in node pool fast and would have a quota of 0 GPUs there";
    let changed = "quota of team-a in node pool fast: 0 GPUs instead of 2 GPUs";
    assert_eq!(effects, json!({"lines": [changed, held], "needsForce": true}));
    refused(&server, ("PATCH", &resources, &fast(0)), 409, held).await;
    let whole = json!({"resources": fast(0)});
    refused(&server, ("PUT", PROJECT, &whole), 409, held).await;
    send(&server, "PATCH", &resources, &fast(1)).await;
    send(&server, "PATCH", &format!("{resources}?force=true"), &fast(0)).await;
    send(&server, "PATCH", &resources, &fast(1)).await;

    let one = format!("{POOLS}/{id}");
    let moves = json!({"labelValue": "h100"});
    send(&server, "PATCH", &one, &moves).await;
    let back = json!({"labelValue": "a100"});
    send(&server, "PATCH", &one, &back).await;
    let effects = server.post(EFFECTS, json!({"deleteNodePool": id})).await.1;
    let lines = [
        "1 node of node pool fast would be in default: node-1",
        "the GPU quotas in node pool fast would be deleted with it: team-a 1",
    ];
    assert_eq!(effects, json!({"lines": lines, "needsForce": false}));
    assert_eq!(server.raw("DELETE", &one, "").await.0, StatusCode::NO_CONTENT);
    let nothing = json!({});
    let message = "send one of createNodePool, deleteNodePool, labelNode, drainNode, project and \
                   department";
    refused(&server, ("POST", EFFECTS, &nothing), 400, message).await;
}

#[tokio::test]
async fn a_label_that_moves_a_node_to_another_pool_shows_its_effects_and_needs_force() {
    const EFFECTS: &str = "/elastane/v1/quota-effects";
    const NODE: &str = "/elastane/v1/nodes/node-1";
    let server = Server::with_teams().await;
    server.train("t", 1).await;
    let pool = json!({"name": "fast", "labelKey": "gpu", "labelValue": "a100"});
    send(&server, "POST", POOLS, &pool).await;
    let node_of = async || server.get(POOLS).await["nodepools"][1]["status"]["nodes"].clone();

    let to = json!({"labels": {"gpu": "a100"}});
    let asked = json!({"labelNode": {"name": "node-1", "labels": {"gpu": "a100"}}});
    let held = "team-a would hold 1 GPU in node pool fast and have a quota of 0 GPUs there";
    let effects = server.post(EFFECTS, asked).await.1;
    let lines = [
        "1 node of node pool default would be in fast: node-1",
        "node pool default would have 0 GPUs, fewer than the quotas there: team-a 2, team-b 2",
        held,
    ];
    assert_eq!(effects, json!({"lines": lines, "needsForce": true}));
    refused(&server, ("PATCH", NODE, &to), 409, held).await;
    refused(&server, ("PUT", &format!("{NODE}/labels"), &to), 409, held).await;
    assert_eq!(node_of().await, json!([]), "nothing was changed");
    let other = json!({"labels": {"zone": "a"}});
    send(&server, "PATCH", NODE, &other).await;
    send(&server, "PATCH", &format!("{NODE}?force=true"), &to).await;
    assert_eq!(node_of().await, json!(["node-1"]));

    let asked = json!({"labelNode": {"name": "node-1", "labels": {"gpu": null}}});
    let effects = server.post(EFFECTS, asked).await.1;
    let lines = ["1 node of node pool fast would be in default: node-1"];
    assert_eq!(effects, json!({"lines": lines, "needsForce": false}));
    send(&server, "PUT", &format!("{NODE}/labels"), &json!({"labels": {}})).await;
    assert_eq!(node_of().await, json!([]));
    let unknown = json!({"labelNode": {"name": "node-9", "labels": {}}});
    refused(&server, ("POST", EFFECTS, &unknown), 404, "node node-9").await;
}

#[tokio::test]
async fn quotas_of_cores_and_memory_are_effects_too() {
    const EFFECTS: &str = "/elastane/v1/quota-effects";
    let (server, id) = divided().await;
    let quotas = json!([{
        "nodePool": {"id": id}, "cpu": {"deserved": 3000}, "memory": {"deserved": 1024, "units": "Mib"},
    }]);
    send(&server, "PATCH", &format!("{PROJECT}/resources"), &quotas).await;
    let effects = server.post(EFFECTS, json!({"deleteNodePool": id})).await.1;
    let lines = [
        "1 node of node pool fast would be in default: node-1",
        "the CPU quotas in node pool fast would be deleted with it: team-a 3 cores",
        "the memory quotas in node pool fast would be deleted with it: team-a 1GiB of memory",
    ];
    assert_eq!(effects, json!({"lines": lines, "needsForce": false}));
    let asked = json!({"labelNode": {"name": "node-1", "labels": {"gpu": null}}});
    let effects = server.post(EFFECTS, asked).await.1;
    let lines = [
        "1 node of node pool fast would be in default: node-1",
        "node pool fast would have 0 cores, fewer than the quotas there: team-a 3 cores",
        "node pool fast would have 0B of memory, less than the quotas there: team-a 1GiB of memory",
    ];
    assert_eq!(effects, json!({"lines": lines, "needsForce": false}));
}

#[tokio::test]
async fn the_pool_default_is_not_deleted_and_no_effects_are_shown() {
    let (server, _) = divided().await;
    let default = server.get(POOLS).await["nodepools"][0]["id"].clone();
    let asked = json!({"deleteNodePool": default});
    let effects = server.post("/elastane/v1/quota-effects", asked).await.1;
    assert_eq!(effects, json!({"lines": [], "needsForce": false}));
    let one = format!("{POOLS}/{}", default.as_str().unwrap());
    let message = "node pool `default` cannot be deleted: it has the nodes that no other pool has";
    refused(&server, ("DELETE", &one, &Value::Null), 409, message).await;
}

#[tokio::test]
async fn explain_tells_the_quota_of_a_project_in_the_pools_that_the_workload_can_use() {
    let (server, id) = divided().await;
    let quotas = json!([{"nodePool": {"id": id}, "gpu": {"deserved": 1}}]);
    send(&server, "PATCH", &format!("{PROJECT}/resources"), &quotas).await;
    let any = server.train("any", 8).await;
    let explained = server.get(&format!("/elastane/v1/workloads/{any}/explain")).await;
    assert_eq!(explained["projectQuota"], 3, "2 in default and 1 in fast");
    let pools = &explained["projectPools"];
    assert_eq!(names(pools, "nodePool"), ["default", "fast"]);
    assert_eq!((&pools[0]["quota"], &pools[1]["quota"]), (&json!(2), &json!(1)));
    let compute = json!({"gpuDevicesRequest": 8});
    let spec = json!({"image": "i", "compute": compute, "nodePools": ["fast"]});
    let (_, made) = server.post("/api/v1/workloads/trainings", server.job("one", &spec)).await;
    let id = made["workloadId"].as_str().unwrap();
    let explained = server.get(&format!("/elastane/v1/workloads/{id}/explain")).await;
    assert_eq!(
        (&explained["projectQuota"], explained["projectPools"].as_array().unwrap().len()),
        (&json!(1), 1)
    );
}

#[tokio::test]
async fn a_node_with_more_cores_in_use_than_the_quota_of_its_next_pool_needs_force() {
    const EFFECTS: &str = "/elastane/v1/quota-effects";
    let server = Server::with_teams().await;
    let compute = json!({"gpuDevicesRequest": 1, "cpuCoreRequest": 2.0, "cpuMemoryRequest": "2Gi"});
    let spec = server.job("t", &json!({"image": "i", "compute": compute}));
    let (status, made) = server.post("/api/v1/workloads/trainings", spec).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    server.until("/api/v1/workloads", |all| all["workloads"][0]["phase"] == "Running").await;
    let pool = json!({"name": "fast", "labelKey": "gpu", "labelValue": "a100"});
    let id = send(&server, "POST", POOLS, &pool).await["id"].clone();
    let quotas = json!([{
        "nodePool": {"id": id}, "cpu": {"deserved": 1000}, "memory": {"deserved": 1024, "units": "Mib"},
    }]);
    send(&server, "PATCH", &format!("{PROJECT}/resources"), &quotas).await;
    let asked = json!({"labelNode": {"name": "node-1", "labels": {"gpu": "a100"}}});
    let effects = server.post(EFFECTS, asked).await.1;
    assert_eq!(effects["needsForce"], true, "{effects}");
    let lines: Vec<_> = effects["lines"].as_array().unwrap().iter().rev().take(2).collect();
    let cores = "team-a would hold 2 cores in node pool fast and have a quota of 1 core there";
    let memory = "team-a would hold 2GiB of memory in node pool fast and have a quota of 1GiB of \
                  memory there";
    assert_eq!(lines, [memory, cores], "{effects}");
}

#[tokio::test]
async fn projects_say_where_their_workloads_go() {
    let (server, _) = divided().await;
    let places = json!({
        "resources": [{"gpu": {"deserved": 4}}], "defaultNodePools": ["fast"],
        "nodeTypes": {"training": ["big"], "workspace": [], "names": {"big": "Big ones"}},
    });
    let project = send(&server, "PUT", PROJECT, &places).await;
    assert_eq!(project["defaultNodePools"], json!(["fast"]));
    assert_eq!(project["effective"]["defaultNodePools"], json!(["fast"]));
    assert_eq!(project["nodeTypes"]["names"]["big"], "Big ones");
    let other = server.get("/api/v1/org-unit/projects/2").await;
    assert_eq!(other["effective"]["defaultNodePools"], json!(["default", "fast"]));
    server.train("t", 1).await;
    let told = server.get("/elastane/v1/snapshot").await["workloads"][0].clone();
    assert_eq!(told["pools"], json!(["fast"]));
    assert!(told.to_string().contains("run.ai/type"), "{told}");
    let job = |spec: Value| server.job("u", &spec);
    let trainings = "/api/v1/workloads/trainings";
    let spec = |field: &str, value: Value| json!({"image": "i", field: value});
    for (spec, message) in [
        (spec("nodePools", json!(["no"])), "nodePools: there is no node pool `no`; there are"),
        (spec("nodeType", json!("small")), "nodeType: project `team-a` does not allow"),
        (spec("nodeType", json!("")), "spec.nodeType: is empty"),
    ] {
        refused(&server, ("POST", trainings, &job(spec)), 400, message).await;
    }
    let department = "/api/v1/org-unit/departments/1";
    let body = json!({"resources": [], "defaultNodePools": ["no"]});
    let message = "defaultNodePools: there is no node pool `no`";
    refused(&server, ("PUT", department, &body), 400, message).await;
    let body = json!({"resources": [], "defaultNodePools": ["default"],
        "nodeTypes": {"workspace": ["big"]}});
    let made = send(&server, "PUT", department, &body).await;
    assert_eq!(made["nodeTypes"]["workspace"], json!(["big"]));
    let other = server.get("/api/v1/org-unit/projects/2").await;
    assert_eq!(other["effective"]["defaultNodePools"], json!(["default"]));
    assert_eq!(other["effective"]["nodeTypes"]["workspace"], json!(["big"]));
}

#[tokio::test]
async fn wrong_pools_are_refused_by_the_name_of_their_field() {
    let (server, id) = divided().await;
    let with = |field: &str, value: Value| {
        let mut body = json!({"name": "x", "labelKey": "a", "labelValue": "b"});
        body[field] = value;
        body
    };
    for (body, status, message) in [
        (json!({}), 400, "`name` is missing"),
        (with("name", json!("fast")), 409, "node pool `fast` already exists"),
        (with("labelKey", json!("a b")), 400, "`a b` is not a valid label key"),
        (with("clusterId", json!("x")), 404, "no cluster `x`"),
        (with("overProvisioningRatio", json!(2)), 422, "overProvisioningRatio: not supported"),
        (with("gpuNetworkAccelerationLabelKey", json!("x")), 422, "gpuNetworkAccelerationLabelKey"),
        (
            with("gpuResourceOptimization", json!({"swapEnabled": true})),
            422,
            "gpuResourceOptimization.swapEnabled: not supported yet",
        ),
        (
            with("schedulingConfiguration", json!({"minGuaranteedRuntime": "soon"})),
            400,
            "schedulingConfiguration.minGuaranteedRuntime: `soon` is not a duration",
        ),
        (
            with("placementStrategy", json!({"gpu": "pack"})),
            400,
            "placementStrategy.gpu: `pack` is not allowed; write spread or binpack",
        ),
        (with("color", json!("red")), 400, "color: unknown field"),
    ] {
        refused(&server, ("POST", POOLS, &body), status, message).await;
    }
    let both = json!({"placementStrategy": {"gpu": "spread"},
        "schedulingConfiguration": {"placementStrategy": {"gpu": "binpack"}}});
    let one = format!("{POOLS}/{id}");
    refused(&server, ("PATCH", &one, &both), 400, "placementStrategy.gpu: is another than").await;
    let default = format!("{POOLS}/1");
    let label = json!({"labelKey": "a"});
    refused(&server, ("PATCH", &default, &label), 400, "node pool `default` has no label").await;
    refused(
        &server,
        ("DELETE", &default, &Value::Null),
        409,
        "node pool `default` cannot be deleted",
    )
    .await;
    let unknown = json!([{"nodePool": {"id": "9"}}]);
    let resources = format!("{PROJECT}/resources");
    let message = "resources: there is no node pool with id `9`";
    refused(&server, ("PATCH", &resources, &unknown), 400, message).await;
    let labels = "/elastane/v1/nodes/node-9/labels";
    refused(&server, ("PUT", labels, &json!({"labels": {}})), 404, "node node-9").await;
}

#[tokio::test]
async fn telemetry_tells_each_pool_by_itself() {
    let (server, id) = divided().await;
    server.train("t", 1).await;
    let told = async |path: &str| {
        let answer = server.get(path).await;
        let values = answer["values"].as_array().unwrap().iter().map(|one| {
            let groups = one["groups"].as_array().into_iter().flatten();
            let groups: Vec<_> = groups.map(|group| group["value"].as_str().unwrap()).collect();
            format!("{} {}", groups.join(" "), one["value"].as_str().unwrap())
        });
        values.collect::<Vec<_>>()
    };
    let gpus = "/api/v1/nodes/telemetry?telemetryType=TOTAL_GPUS";
    assert_eq!(told(&format!("{gpus}&groupBy=Nodepool")).await, ["default 0", "fast 4"]);
    assert_eq!(told(&format!("{gpus}&nodepoolName=fast")).await, [" 4"]);
    let unknown = format!("{gpus}&nodepoolName=no");
    refused(&server, ("GET", &unknown, &Value::Null), 404, "node pool no was not found").await;
    let held = "/api/v1/org-unit/projects/telemetry?telemetryType=GPU_ALLOCATION";
    let by_pool = told(&format!("{held}&groupBy=NodepoolId")).await;
    assert_eq!(by_pool, [format!("{id} 1"), "1 0".to_owned()]);
    let quota = "/api/v1/org-unit/projects/telemetry?telemetryType=GPU_QUOTA";
    assert_eq!(told(&format!("{quota}&nodepoolId={id}")).await, [" 0"]);
    assert_eq!(told(quota).await, [" 4"]);
}

#[tokio::test]
async fn series_tell_each_pool_by_itself() {
    let (server, id) = divided().await;
    let quota = json!([{"nodePool": {"id": id}, "gpu": {"deserved": 1}}]);
    send(&server, "PATCH", &format!("{PROJECT}/resources"), &quota).await;
    server.train("t", 1).await;
    while server.control.sample().at.0 == 0 {
        tokio::task::yield_now().await;
    }
    let span = "start=2020-01-01T00:00:00Z&end=2099-01-01T00:00:00Z";
    let told = async |path: &str, types: &str| {
        let answer = server.get(&format!("{path}/metrics?metricType={types}&{span}")).await;
        let series = answer["measurements"].as_array().unwrap().iter();
        let value = |one: &Value| one["values"][0]["value"].as_str().unwrap_or("-").to_owned();
        series.map(value).collect::<Vec<_>>().join(" ")
    };
    let cluster = format!("/api/v1/clusters/{}", server.cluster_id());
    let fast = format!("{cluster}/nodepools/fast");
    assert_eq!(told(&fast, "TOTAL_GPU,GPU_QUOTA,WORKLOADS_COUNT").await, "4 1 1");
    for (pool, of_project, of_department, of_cluster) in [
        ("&nodepoolName=fast", "1 1", "1 1", "1 4"),
        ("&nodepoolName=default", "2 0", "4 0", "4 0"),
    ] {
        let org = format!("GPU_QUOTA,GPU_ALLOCATION{pool}");
        assert_eq!(told(PROJECT, &org).await, of_project, "{pool}");
        assert_eq!(told("/api/v1/org-unit/departments/1", &org).await, of_department, "{pool}");
        assert_eq!(told(&cluster, &format!("GPU_QUOTA,TOTAL_GPU{pool}")).await, of_cluster);
    }
    assert_eq!(told(PROJECT, "GPU_QUOTA,GPU_ALLOCATION").await, "3 1", "all pools together");
    let by_project = "GPU_QUOTA&groupBy=Project&nodepoolName=fast";
    assert_eq!(told(&cluster, by_project).await, "1 -", "team-b has nothing there");
    let unknown = format!("{PROJECT}/metrics?metricType=GPU_QUOTA&{span}&nodepoolName=no");
    refused(&server, ("GET", &unknown, &Value::Null), 404, "node pool no was not found").await;
    let category = format!(
        "{cluster}/metrics?metricType=WORKLOADS_COUNT&{span}&groupBy=Category&nodepoolName=fast"
    );
    refused(&server, ("GET", &category, &Value::Null), 400, "groupBy: Category cannot").await;
}
