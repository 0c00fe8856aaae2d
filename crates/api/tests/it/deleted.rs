//! Deleted workloads are listed on request.

use serde_json::{Value, json};

use crate::iam::{get, give, program};
use crate::server::Server;

const DELETED: &str = "/api/v1/workloads?deleted=true";

/// A server on which these trainings were created and deleted, one after the other, and their ids.
async fn after(names: &[&str]) -> (Server, Vec<String>) {
    let server = Server::with_teams().await;
    let mut ids = Vec::new();
    for name in names {
        let id = server.train(name, 1).await;
        server.phase(&id, "Running").await;
        server.raw("DELETE", &format!("/api/v1/workloads/trainings/{id}"), "").await;
        let here = |list: &Value| list["workloads"].to_string().contains(&id);
        server.until("/api/v1/workloads", |list| !here(list)).await;
        ids.push(id);
    }
    (server, ids)
}

fn names(list: &Value) -> Vec<&str> {
    list["workloads"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_was_deleted_is_listed_as_it_was_last() {
    let (server, ids) = after(&["a1"]).await;
    server.train("lives", 1).await;
    let list = server.get(DELETED).await;
    assert_eq!(names(&list), ["a1"]);
    let gone = &list["workloads"][0];
    assert_eq!((&gone["id"], &gone["phase"]), (&json!(ids[0]), &json!("Deleting")));
    assert!(gone["deletedAt"].is_string() && gone["projectName"] == "team-a", "{gone}");
    assert_eq!(gone["workloadRequestedResources"]["gpu"]["request"], 1);
    assert_eq!((&gone["runningPods"], &gone["allocatedResources"]["gpu"]), (&json!(0), &json!(0)));
    assert_eq!(gone["actionsSupport"]["delete"], false);
    assert_eq!(names(&server.get("/api/v1/workloads").await), ["lives"]);
    let (status, _) = server.raw("GET", &format!("/api/v1/workloads/{}", ids[0]), "").await;
    assert_eq!(status, 404, "it is not there any more");
}

#[tokio::test]
async fn its_pods_are_listed_as_they_ended() {
    let (server, ids) = after(&["a1"]).await;
    let living = server.train("lives", 1).await;
    for path in [format!("/api/v1/workloads/{}/pods", ids[0]), "/api/v1/workloads/pods".into()] {
        let pods = server.get(&format!("{path}?deleted=true")).await["pods"].clone();
        assert_eq!(pods.as_array().unwrap().len(), 1, "{path}: {pods}");
        assert_eq!((&pods[0]["workloadId"], &pods[0]["state"]), (&json!(ids[0]), &json!("Gone")));
        assert_eq!((&pods[0]["generation"], &pods[0]["nodeName"]), (&json!(1), &Value::Null));
    }
    let count = server.get("/api/v1/workloads/pods/count?deleted=true").await;
    assert_eq!(count["count"], 1);
    let none = server.get(&format!("/api/v1/workloads/{living}/pods?deleted=true")).await;
    assert_eq!(none["pods"], json!([]));
}

#[tokio::test]
async fn the_deleted_are_sorted_filtered_searched_and_paged_like_the_living() {
    let (server, _) = after(&["a1", "b1", "b2"]).await;
    let newest = server.get(&format!("{DELETED}&sortBy=deletedAt&sortOrder=desc&limit=2")).await;
    assert_eq!((names(&newest), &newest["next"]), (vec!["b2", "b1"], &json!(2)));
    let rest = server.get(&format!("{DELETED}&sortBy=deletedAt&sortOrder=desc&offset=2")).await;
    assert_eq!((names(&rest), &rest["next"]), (vec!["a1"], &Value::Null));
    assert_eq!(names(&server.get(&format!("{DELETED}&filterBy=name=^b")).await), ["b1", "b2"]);
    assert_eq!(names(&server.get(&format!("{DELETED}&search=A1")).await), ["a1"]);
    let since = format!("{DELETED}&filterBy=deletedAt%3E=2999-01-01");
    assert!(names(&server.get(&since).await).is_empty());
    let count = "/api/v1/workloads/count?deleted=true&filterBy=name=^b";
    assert_eq!(server.get(count).await["count"], 2);
}

#[tokio::test]
async fn only_who_could_see_it_sees_it_deleted() {
    let (server, ids) = after(&["a1"]).await;
    let (mine, _, in_a) = program(&server, "in-a").await;
    let (other, _, in_b) = program(&server, "in-b").await;
    give(&server, &mine, 6, ("project", "1")).await;
    give(&server, &other, 6, ("project", "2")).await;
    let events = format!("/api/v1/workloads/{}/events", ids[0]);
    for (token, sees) in [(&in_a, true), (&in_b, false)] {
        let (_, list) = get(&server, token, DELETED).await;
        assert_eq!(names(&list).is_empty(), !sees, "{list}");
        let (status, _) = get(&server, token, &events).await;
        assert_eq!(status, if sees { 200 } else { 404 });
    }
}

#[tokio::test]
async fn who_sees_the_cluster_sees_what_was_deleted_with_its_project() {
    let (server, _) = after(&["a1"]).await;
    let (reader, _, token) = program(&server, "reader").await;
    give(&server, &reader, 9, ("cluster", &server.cluster_id())).await;
    let (status, said) = server.raw("DELETE", "/api/v1/org-unit/projects/1", "").await;
    assert!(status.is_success(), "{said}");
    let (_, list) = get(&server, &token, DELETED).await;
    assert_eq!(names(&list), ["a1"]);
}

#[tokio::test]
async fn the_status_says_what_is_still_being_deleted_and_why_it_stays() {
    let server = Server::new().await;
    assert!(server.get("/elastane/v1/status").await.get("leftovers").is_none(), "there is nothing");
    let left = |entries, why: Option<&str>| {
        let why = why.map(str::to_owned);
        engine::Leftover { folder: "/state/trash".into(), entries, why }
    };
    server.engine.has_leftovers(vec![left(7, None), left(1, Some("Permission denied"))]);
    let status = server.get("/elastane/v1/status").await;
    let stuck = json!({"folder": "/state/trash", "entries": 1, "message": "Permission denied"});
    assert_eq!(status["leftovers"], json!([{"folder": "/state/trash", "entries": 7}, stuck]));
}
