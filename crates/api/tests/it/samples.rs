//! Samples: a new installation has them, all can use and see them, and a deleted one stays away.
//! The databases in `migrated` test that an older installation gets none.

use axum::http::StatusCode;
use serde_json::{Value, json};
use store::Database;
use store::testing::PgServer;

use crate::iam::{call, get, give, user};
use crate::refusals::refused;
use crate::server::{Server, Setup};

const COMPUTE: &str = "/api/v1/asset/compute";
const ENVIRONMENTS: &str = "/api/v1/asset/environment";

/// A new installation.
async fn new(database: Database) -> Server {
    Server::on(tempfile::tempdir().unwrap(), Setup::with_samples(database)).await
}

/// A new installation with the project team-a.
async fn with_team() -> Server {
    let server = new(Database::Sqlite).await;
    let (status, made) = server.post("/api/v1/org-unit/projects", server.team("team-a")).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    server
}

/// The server after a restart.
async fn again(server: Server, database: Database) -> Server {
    Server::on(server.end().await, Setup::with_samples(database)).await
}

fn names(list: &Value) -> Vec<&str> {
    let entries = list["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["meta"]["name"].as_str().unwrap()).collect()
}

/// The id of the sample with this name.
fn id<'a>(list: &'a Value, name: &str) -> &'a str {
    let entries = list["entries"].as_array().unwrap();
    let found = entries.iter().find(|entry| entry["meta"]["name"] == name).unwrap();
    found["meta"]["id"].as_str().unwrap()
}

async fn a_deleted_sample_stays_away(database: Database) {
    let server = new(database.clone()).await;
    let all = server.get(COMPUTE).await;
    assert_eq!(names(&all), ["one-gpu", "two-gpus", "half-gpu", "small-fraction", "cpu-only"]);
    let environments = server.get(ENVIRONMENTS).await;
    let shipped =
        ["jupyter-lab", "jupyter-tensorboard", "tensorboard", "llm-server", "chatbot-ui", "gpt2"];
    assert_eq!(names(&environments), shipped);
    for (path, list, name) in
        [(COMPUTE, &all, "half-gpu"), (ENVIRONMENTS, &environments, "tensorboard")]
    {
        let one = format!("{path}/{}", id(list, name));
        let (status, gone) = server.raw("DELETE", &one, "").await;
        assert_eq!(status, StatusCode::ACCEPTED, "{gone}");
    }
    let server = again(again(server, database.clone()).await, database).await;
    let left = ["one-gpu", "two-gpus", "small-fraction", "cpu-only"];
    assert_eq!(names(&server.get(COMPUTE).await), left);
    assert_eq!(server.get(ENVIRONMENTS).await["entries"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_new_installation_has_samples_and_a_deleted_one_stays_away() {
    a_deleted_sample_stays_away(Database::Sqlite).await;
}

#[tokio::test]
async fn a_new_installation_has_samples_and_a_deleted_one_stays_away_in_postgres() {
    let Some(server) = PgServer::shared() else { return };
    a_deleted_sample_stays_away(Database::Postgres(server.database().await)).await;
}

#[tokio::test]
async fn an_installation_that_began_without_samples_gets_none() {
    let server = Server::new().await;
    let server = again(server, Database::Sqlite).await;
    assert_eq!(names(&server.get(COMPUTE).await), [""; 0]);
    assert_eq!(names(&server.get(ENVIRONMENTS).await), [""; 0]);
}

#[tokio::test]
async fn a_sample_is_of_the_server_and_its_name_is_taken() {
    let server = with_team().await;
    let all = server.get(COMPUTE).await;
    for entry in all["entries"].as_array().unwrap() {
        let meta = &entry["meta"];
        let of = (&meta["createdBy"], &meta["scope"], &meta["clusterId"]);
        assert_eq!(of, (&json!("elastane"), &json!("cluster"), &json!(server.cluster_id())));
    }
    let log = "/api/v1/audit/log?numberOfSamples=500&filterBy=entity_name==one-gpu";
    let row = &server.get(log).await["audit_logs"][0];
    let told = (&row["subject"], &row["subject_type"], &row["action"], &row["entity_id"]);
    let id = json!(id(&all, "one-gpu"));
    assert_eq!(told, (&json!("elastane"), &json!("App"), &json!("create"), &id), "{row}");

    let of_cluster =
        |name| json!({"name": name, "scope": "cluster", "clusterId": server.cluster_id()});
    let own = json!({"meta": of_cluster("one-gpu"), "spec": {"gpuDevicesRequest": 1}});
    refused(&server, ("POST", COMPUTE, &own), 409, "compute asset `one-gpu` already exists").await;
    let own = json!({"meta": of_cluster("jupyter-lab"), "spec": {"image": "i"}});
    refused(
        &server,
        ("POST", ENVIRONMENTS, &own),
        409,
        "environment asset `jupyter-lab` already exists",
    )
    .await;
    // A project can have its own asset of that name.
    let meta = json!({"name": "one-gpu", "scope": "project", "projectId": 1});
    let own = json!({"meta": meta, "spec": {"gpuDevicesRequest": 1}});
    let (status, made) = server.post(COMPUTE, own).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
}

#[tokio::test]
async fn everyone_sees_the_samples_and_submits_with_them() {
    let server = with_team().await;
    let (_, ann) = user(&server, "ann@corp.com").await;
    give(&server, "ann@corp.com", 6, ("project", "1")).await;
    let (_, compute) = get(&server, &ann, COMPUTE).await;
    let (_, environments) = get(&server, &ann, ENVIRONMENTS).await;
    assert_eq!((names(&compute).len(), names(&environments).len()), (5, 6));

    let submit = async |kind: &str, name: &str, spec: Value| {
        let path = format!("/api/v1/workloads/{kind}");
        let (status, made) = call(&server, &ann, ("POST", &path), &server.job(name, &spec)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        made["spec"].clone()
    };
    let small = json!({"image": "i", "assets": {"compute": id(&compute, "small-fraction")}});
    let made = submit("trainings", "t", small).await;
    assert_eq!(made["compute"]["gpuPortionRequest"], 0.1, "{made}");
    let (lab, cpu) = (id(&environments, "jupyter-lab"), id(&compute, "cpu-only"));
    let lab = json!({"assets": {"compute": cpu, "environment": lab}});
    let made = submit("workspaces", "w", lab).await;
    assert_eq!(made["image"], "jupyter/scipy-notebook");
    assert_eq!(made["exposedUrls"][0]["container"], 8888, "{made}");
    let (llm, one) = (id(&environments, "llm-server"), id(&compute, "one-gpu"));
    let llm = json!({"assets": {"compute": one, "environment": llm}});
    let made = submit("inferences", "m", llm).await;
    assert_eq!(made["servingPort"]["container"], 8000, "{made}");
}
