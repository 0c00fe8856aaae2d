//! Types, priorities and categories of workloads.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::refusals::refused;
use crate::server::Server;

const TYPES: &str = "/api/v1/workload-types";

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_programs_own_are_listed() {
    let server = Server::new().await;
    let all = server.get("/api/v1/workload-categories").await;
    assert_eq!(names(&all["categories"]), ["Build", "Train", "Deploy"]);
    assert_eq!(server.get("/api/v1/workload-categories/train").await["name"], "Train");
    let all = server.get("/api/v1/workload-priorities?filterBy=value%3E%3D125&sortBy=name").await;
    assert_eq!(names(&all["priorities"]), ["high", "inference", "very-high"]);
    let all = server.get(TYPES).await;
    let own =
        ["TrainingWorkload", "InteractiveWorkload", "DistributedWorkload", "InferenceWorkload"];
    assert_eq!(names(&all["types"]), own);
    for one in all["types"].as_array().unwrap() {
        let category = one["categoryId"].as_str().unwrap();
        let category = server.get(&format!("/api/v1/workload-categories/{category}")).await;
        assert_eq!(category["name"], one["categoryName"], "{one}");
    }
    let training = server.get(&format!("{TYPES}/training")).await;
    let said = (&training["priorityName"], &training["categoryName"]);
    assert_eq!(said, (&json!("train"), &json!("Train")));
}

#[tokio::test]
async fn a_type_is_added_changed_and_deleted() {
    let server = Server::new().await;
    let ray =
        json!({"name": "RayJob", "group": "ray.io", "categoryId": "train", "priorityId": "low"});
    let (status, made) = server.post(TYPES, ray.clone()).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    refused(&server, ("POST", TYPES, &ray), 409, "workload type `RayJob.ray.io` already").await;
    let one = format!("{TYPES}/{}", made["id"].as_str().unwrap());
    let (_, made) = server.raw("PUT", &one, &json!({"priorityId": "high"}).to_string()).await;
    assert_eq!((&made["priorityId"], &made["categoryId"]), (&json!("high"), &json!("train")));
    let all = server.get(&format!("{TYPES}?externalTypesOnly=true")).await;
    assert_eq!(names(&all["types"]), ["RayJob"]);
    let all = server.get(&format!("{TYPES}?filterBy=group==ray.io")).await;
    assert_eq!(names(&all["types"]), ["RayJob"]);
    let kind = json!({"group": "ray.io", "version": "v1", "kind": "RayJob"});
    let interface = json!({"spec": {"structureDefinition": {"rootComponent": {"kind": kind}}}});
    let given = json!({"resourceInterfaces": [interface, {}]});
    let (status, made) = server.raw("PUT", &one, &given.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    let shown = json!([{"version": "v1", "resourceInterface": interface},
                       {"resourceInterface": {}}]);
    assert_eq!(server.get(&one).await["resourceInterfaces"], shown);
    let (_, left) = server.raw("PUT", &one, &json!({"priorityId": "low"}).to_string()).await;
    assert_eq!(left["resourceInterfaces"], shown, "what is left out stays");
    assert_eq!(server.raw("DELETE", &one, "").await.0, StatusCode::NO_CONTENT);
    refused(&server, ("GET", &one, &Value::Null), 404, "workload-type").await;
}

#[tokio::test]
async fn a_wrong_type_is_refused_by_the_name_of_its_field() {
    let server = Server::new().await;
    let with = |name: &str, group: &str, category: &str, priority: &str| json!({"name": name, "group": group, "categoryId": category, "priorityId": priority});
    let with_interfaces = |all: Value| {
        let mut body = with("RayJob", "ray.io", "train", "low");
        body["resourceInterfaces"] = all;
        body
    };
    for (body, status, message) in [
        (with("rayJob", "ray.io", "train", "low"), 400, "name: `rayJob` is not a valid kind"),
        (with("Ray_Job", "ray.io", "train", "low"), 400, "name: `Ray_Job` is not a valid kind"),
        (with("", "ray.io", "train", "low"), 400, "name: `` is not a valid kind"),
        (with("RayJob", "Ray", "train", "low"), 400, "group: `Ray` is not a valid group"),
        (with("RayJob", "ray.", "train", "low"), 400, "group: `ray.` is not a valid group"),
        (
            with("RayJob", "ray.io", "x", "low"),
            400,
            "categoryId: `x` is not a category; allowed are",
        ),
        (with("RayJob", "ray.io", "train", "x"), 400, "priorityId: `x` is not a priority class"),
        (
            with("TrainingWorkload", "run.ai", "train", "low"),
            409,
            "type TrainingWorkload.run.ai is",
        ),
        (json!({"name": "A", "group": "a"}), 400, "`categoryId` is missing"),
        (with_interfaces(json!([{}, {}, {}, {}, {}])), 400, "resourceInterfaces: has 5 items"),
        (with_interfaces(json!([{}, "x"])), 400, "resourceInterfaces[1]: is not an object"),
        (
            with_interfaces(json!([{"x": "y".repeat(70_000)}])),
            400,
            "resourceInterfaces: has 70008 bytes; at",
        ),
    ] {
        refused(&server, ("POST", TYPES, &body), status, message).await;
    }
    for (method, path, status, message) in [
        ("DELETE", "/api/v1/workload-types/training", 409, "type `training` is the program's own"),
        ("PUT", "/api/v1/workload-types/training", 400, "the body is empty"),
        ("GET", "/api/v1/workload-types/x", 404, "workload-type x was not found"),
        ("GET", "/api/v1/workload-types?externalTypesOnly=1", 400, "externalTypesOnly: `1` is not"),
        ("GET", "/api/v1/workload-types?filterBy=a==1", 400, "filterBy: unknown field `a`"),
        ("GET", "/api/v1/workload-categories/x", 404, "category x was not found"),
        ("GET", "/api/v1/workload-priorities?sortBy=x", 400, "sortBy: unknown field `x`"),
    ] {
        refused(&server, (method, path, &Value::Null), status, message).await;
    }
}
