//! Advice over the wire: what-if answers each change with the promised start, and the request of an
//! advice makes its change.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::iam::{call, give, program};
use crate::server::Server;

/// A server with a workload `w` of team-a that waits: trainings of so many GPUs before it,
/// requests, and the kind and the specification of `w`.
struct Case {
    before: Vec<Value>,
    requests: Vec<(&'static str, &'static str, Value)>,
    kind: &'static str,
    spec: Value,
}

impl Case {
    fn new(spec: Value) -> Self {
        Self { before: Vec::new(), requests: Vec::new(), kind: "trainings", spec }
    }

    /// Puts node-1 into a pool of its own, `fast`, in which team-a has no quota.
    fn of_pools(mut self) -> Self {
        let labels = json!({"labels": {"gpu": "a100"}});
        self.requests.push(("PUT", "/elastane/v1/nodes/node-1/labels", labels));
        let pool =
            json!({"name": "fast", "labelKey": "gpu", "labelValue": "a100", "clusterId": ""});
        self.requests.push(("POST", "/api/v1/node-pools", pool));
        self
    }

    /// The server, and the id of `w`.
    async fn server(&self) -> (Server, String) {
        let server = Server::with_teams().await;
        for (number, compute) in self.before.iter().enumerate() {
            let spec = json!({"image": "i", "compute": compute});
            let job = server.job(&format!("a{number}"), &spec);
            let (_, made) = server.post("/api/v1/workloads/trainings", job).await;
            server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
        }
        for (method, path, mut body) in self.requests.clone() {
            if body.get("clusterId").is_some() {
                body["clusterId"] = server.cluster_id().into();
            }
            let (status, answer) = server.raw(method, path, &body.to_string()).await;
            assert!(status.is_success(), "{path}: {answer}");
        }
        let path = format!("/api/v1/workloads/{}", self.kind);
        let (status, made) = server.post(&path, server.job("w", &self.spec)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        (server, made["workloadId"].as_str().unwrap().to_owned())
    }
}

fn cases() -> Vec<Case> {
    let gpus = |gpus: u32| json!({"image": "i", "compute": {"gpuDevicesRequest": gpus}});
    let with = |field: &str, value: Value| {
        let mut spec = gpus(1);
        spec[field] = value;
        spec
    };
    let asks = |field: &str, value: Value| {
        let mut spec = gpus(1);
        spec["compute"][field] = value;
        spec
    };
    let part = json!({"image": "i", "compute": {"gpuDevicesRequest": 1, "gpuRequestType": "portion",
                                                "gpuPortionRequest": 0.5}});
    let expression = json!({"key": "zone", "operator": "In", "values": ["a"]});
    let in_zone = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    let node = |body: Value| vec![("PATCH", "/elastane/v1/nodes/node-1", body)];
    let taint = json!({"taints": [{"key": "own", "value": "me", "effect": "NoSchedule"}]});
    let limit = json!([{"gpu": {"deserved": 1, "limit": 1}}]);
    let whole = vec![json!({"gpuDevicesRequest": 4})];
    let one =
        json!({"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.6});
    let parts = vec![one; 4];
    vec![
        Case { before: whole, ..Case::new(gpus(2)) },
        Case { before: parts, ..Case::new(part) },
        Case { requests: node(json!({"scheduling": "disabled"})), ..Case::new(gpus(1)) },
        Case { requests: node(taint), ..Case::new(gpus(1)) },
        Case::new(with("nodeAffinityRequired", in_zone)),
        Case::new(with("schedulingGates", json!(["data"]))),
        Case { kind: "workspaces", ..Case::new(gpus(3)) },
        Case {
            requests: vec![("PATCH", "/api/v1/org-unit/projects/1/resources", limit)],
            ..Case::new(gpus(2))
        },
        Case::new(asks("cpuCoreRequest", json!(10_000))),
        Case::new(asks("cpuMemoryRequest", json!("8T"))),
        Case::new(json!({"image": "i", "compute": {"gpuDevicesRequest": 1,
            "gpuRequestType": "memory", "gpuMemoryRequest": "500G"}})),
        Case::new(with("nodeType", json!("big"))),
        Case::new(with("podAffinity", json!({"type": "Required", "key": "rack"}))),
        Case::new(with("nodePools", json!(["default"]))).of_pools(),
        Case { kind: "workspaces", ..Case::new(with("nodePools", json!(["fast"]))) }.of_pools(),
        Case {
            kind: "distributed",
            ..Case::new(json!({"image": "i", "numWorkers": 6,
            "distributedFramework": "PyTorch", "compute": {"gpuDevicesRequest": 1}}))
        },
    ]
}

async fn advice(server: &Server, id: &str) -> Vec<Value> {
    let path = format!("/elastane/v1/workloads/{id}/explain?parts=diagnosis");
    let found = server.until(&path, |one| one["diagnosis"]["advice"][0].is_object()).await;
    found["diagnosis"]["advice"].as_array().unwrap().clone()
}

#[tokio::test]
async fn each_change_is_a_question_and_each_request_makes_it() {
    let mut seen: BTreeMap<String, bool> = BTreeMap::new();
    for case in cases() {
        let (server, id) = case.server().await;
        let all = advice(&server, &id).await;
        for (at, said) in all.iter().enumerate() {
            let kind = said["kind"].as_str().unwrap();
            assert_eq!(said["change"]["kind"], kind, "{said}");
            let question = json!({"changes": [{"workloadId": id, "change": said["change"]}]});
            let (status, answer) = server.post("/elastane/v1/what-if", question).await;
            assert_eq!(status, StatusCode::OK, "{said}: {answer}");
            let pods = answer["pods"].as_array().unwrap();
            let starts = pods.iter().any(|pod| pod["fate"] != "wait" && pod["workloadName"] == "w");
            assert!(starts, "{said}: {answer}");
            let others = pods.iter().filter(|pod| pod["workloadName"] != "w").count();
            assert_eq!(others, 0, "{answer}");
            let has_request = said["request"].is_object();
            if has_request {
                let (server, id) = case.server().await;
                let request = advice(&server, &id).await[at]["request"].clone();
                let (method, path) = (request["method"].as_str().unwrap(), &request["path"]);
                let body = match &request["body"] {
                    Value::Null => String::new(),
                    body => body.to_string(),
                };
                let (status, answer) = server.raw(method, path.as_str().unwrap(), &body).await;
                assert!(status.is_success(), "{request}: {answer}");
                server.phase(&id, "Running").await;
            }
            seen.insert(kind.to_owned(), has_request);
        }
    }
    let with =
        |has: bool| seen.iter().filter(move |(_, had)| **had == has).map(|(kind, _)| kind.as_str());
    let requests = [
        "end",
        "label",
        "limit",
        "more_nodes",
        "preemptible",
        "priority",
        "quota",
        "uncordon",
        "ungate",
        "untaint",
    ];
    assert_eq!(with(true).collect::<Vec<_>>(), requests, "{seen:?}");
    // `part_of_gpu`, `repair`, `wait`, `without_selector`: only in the random servers of `elastane`.
    let questions = [
        "elastic",
        "fewer_gpus",
        "fewer_pods",
        "less_cpu",
        "less_gpu_memory",
        "less_memory",
        "node_pool",
        "smaller_share",
        "tolerate",
        "without_affinity",
        "without_pod_affinity",
    ];
    assert_eq!(with(false).collect::<Vec<_>>(), questions, "{seen:?}");
}

#[tokio::test]
async fn a_change_that_cannot_be_asked_for_is_refused() {
    let server = Server::with_teams().await;
    let waits = server.train("w", 5).await;
    let of = |id: &str, change: Value| json!({"changes": [{"workloadId": id, "change": change}]});
    let twice = |change: Value| {
        let one = json!({"workloadId": waits, "change": change});
        json!({"changes": [one, one]})
    };
    let ended = json!({"kind": "end", "workload": {"name": "gone", "projectName": "team-a"}});
    let raise = json!({"name": "gone", "resource": "gpu", "from": 0, "to": 1000});
    for (what, said) in [
        (of(&waits, json!({"kind": "fewer_gpu"})), "fewer_gpu"),
        (of(&waits, json!({"kind": "fewer_gpus", "gpus": "many"})), "changes"),
        (of(&waits, json!({"kind": "uncordon", "node": "gone"})), "there is no node `gone`"),
        (of(&waits, ended), "there is no workload team-a/gone"),
        (of(&waits, json!({"kind": "quota", "raises": [raise]})), "project or department `gone`"),
        (of(&waits, json!({"kind": "fewer_pods", "set": "ps", "pods": 1})), "does not request"),
        (
            of(&waits, json!({"kind": "more_nodes", "node": "node-1", "nodes": 4_000_000_000_u32})),
            "4000000000 nodes are too many; 1000 at most",
        ),
        (of(&waits, json!({"kind": "wait", "until": "soon"})), "soon"),
        (twice(json!({"kind": "fewer_gpus", "gpus": 1})), "the request of `w` is changed twice"),
        (twice(json!({"kind": "more_nodes", "node": "node-1", "nodes": 1})), "is changed twice"),
        (twice(json!({"kind": "wait", "until": "2026-11-30T00:00:00Z"})), "wait once"),
        (
            json!({"changes": vec![json!({"workloadId": waits, "change": {"kind": "elastic"}}); 101]}),
            "101 are too many",
        ),
    ] {
        let (status, answer) = server.post("/elastane/v1/what-if", what).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(said), "{said}: {answer}");
    }
    let gone = of("00000000-0000-0000-0000-000000000000", json!({"kind": "elastic"}));
    assert_eq!(server.post("/elastane/v1/what-if", gone).await.0, StatusCode::NOT_FOUND);
    // Those who may not see the workload may not ask about it.
    let (account, _, other) = program(&server, "ann").await;
    give(&server, &account, 6, ("project", "2")).await;
    let question = of(&waits, json!({"kind": "fewer_gpus", "gpus": 1}));
    let asked = ("POST", "/elastane/v1/what-if");
    assert_eq!(call(&server, &other, asked, &question).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_end_of_anothers_inference_is_its_deletion_and_no_new_revision() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 2},
                      "servingPort": {"container": 80}});
    let (_, made) = server.post("/api/v1/workloads/inferences", server.job("svc", &spec)).await;
    let svc = made["workloadId"].as_str().unwrap();
    let holds = |one: &Value| one["allocatedResources"]["gpu"] == 2;
    server.until(&format!("/api/v1/workloads/{svc}"), holds).await;
    let waits = server.train("w", 4).await;
    let all = advice(&server, &waits).await;
    let end = all.iter().find(|one| one["kind"] == "end").unwrap();
    assert_eq!(end["change"]["workload"]["name"], "svc", "{end}");
    let path = format!("/api/v1/workloads/inferences/{svc}");
    assert_eq!(end["request"], json!({"method": "DELETE", "path": path}));
    let question = json!({"changes": [{"workloadId": waits, "change": end["change"]}]});
    let (_, answer) = server.post("/elastane/v1/what-if", question).await;
    assert_eq!(answer["pods"][0]["fate"], "start", "{answer}");
}

#[tokio::test]
async fn an_inference_that_waits_is_asked_about_as_its_next_revision() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 3},
                      "servingPort": {"container": 80}});
    let (_, made) = server.post("/api/v1/workloads/inferences", server.job("svc", &spec)).await;
    let id = made["workloadId"].as_str().unwrap();
    for said in advice(&server, id).await {
        let question = json!({"changes": [{"workloadId": id, "change": said["change"]}]});
        let (status, answer) = server.post("/elastane/v1/what-if", question).await;
        assert_eq!(status, StatusCode::OK, "{said}: {answer}");
        assert_eq!(answer["pods"][0]["fate"], "start", "{said}: {answer}");
    }
}

#[tokio::test]
async fn without_the_right_to_see_all_only_advice_may_be_asked_about() {
    let server = Server::with_teams().await;
    let (account, _, ann) = program(&server, "ann").await;
    give(&server, &account, 6, ("project", "1")).await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 5}});
    let made = ("POST", "/api/v1/workloads/trainings");
    let (_, made) = call(&server, &ann, made, &server.job("w", &spec)).await;
    let id = made["workloadId"].as_str().unwrap().to_owned();
    let ask = async |change: &Value, times: usize| {
        let changes = vec![json!({"workloadId": id, "change": change}); times];
        let route = ("POST", "/elastane/v1/what-if");
        call(&server, &ann, route, &json!({"changes": changes})).await
    };
    let all = advice(&server, &id).await;
    let (status, answer) = ask(&all[0]["change"], 1).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let other = json!({"kind": "end", "workload": {"name": "x", "projectName": "team-b"}});
    let (status, answer) = ask(&other, 1).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "it may not ask about others: {answer}");
    let (status, answer) = ask(&all[0]["change"], 4).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "each takes a diagnosis: {answer}");
}

#[tokio::test]
async fn node_types_of_a_project_are_changed_by_its_administrator() {
    let server = Server::with_teams().await;
    let types = json!({"resources": [{"gpu": {"deserved": 2}}],
                       "nodeTypes": {"training": ["big"]}});
    let (status, said) = server
        .raw("PUT", "/elastane/v1/nodes/node-1/labels", r#"{"labels": {"run.ai/type": "small"}}"#)
        .await;
    assert!(status.is_success(), "{said}");
    let (status, said) = server.raw("PUT", "/api/v1/org-unit/projects/1", &types.to_string()).await;
    assert!(status.is_success(), "{said}");
    let (account, _, ann) = program(&server, "ann").await;
    give(&server, &account, 6, ("project", "1")).await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 1}});
    let made = ("POST", "/api/v1/workloads/trainings");
    let (_, made) = call(&server, &ann, made, &server.job("w", &spec)).await;
    let id = made["workloadId"].as_str().unwrap().to_owned();
    let of = |all: &[Value]| all.iter().find(|one| one["kind"] == "without_affinity").cloned();
    let to_all = of(&advice(&server, &id).await).unwrap();
    assert_eq!(
        to_all["ask"],
        Value::Null,
        "an administrator may change the project and needs nobody else: {to_all}"
    );
    let path = format!("/elastane/v1/workloads/{id}/explain?parts=diagnosis");
    let (_, found) = call(&server, &ann, ("GET", &path), &Value::Null).await;
    let to_ann = of(found["diagnosis"]["advice"].as_array().unwrap()).unwrap();
    assert_eq!(to_ann["ask"], "an administrator of project team-a", "{to_ann}");
}
