//! Lists and single workloads where the older ended ones are archived: everything is as if they
//! were in memory.

use axum::http::StatusCode;
use engine::Exit;
use serde_json::{Value, json};

use crate::server::Server;

/// Names, projects and whether they fail, in the order in which they end; then two that go on.
const ENDED: [(&str, &str, bool); 6] = [
    ("c1", "1", false),
    ("a1", "2", true),
    ("b2", "1", false),
    ("a2", "1", true),
    ("d1", "2", false),
    ("b1", "1", false),
];

impl Server {
    /// A server on which these workloads ran, which keeps `kept` ended ones in memory.
    async fn after_all(kept: usize) -> Self {
        let server = Self::that_keeps(kept).await;
        server.begins("runs", "1").await;
        for (name, project, fails) in ENDED {
            server.begins(name, project).await;
            let exit = if fails { Exit::CannotRun("no image".into()) } else { Exit::Code(0) };
            server.engine.end(name, exit);
            server.list(&format!("filterBy=name=={name},phase!=Running&limit=1"), 1).await;
        }
        server.begins("a3", "2").await;
        server
    }

    async fn begins(&self, name: &str, project: &str) {
        let labels =
            json!([{"name": "team", "value": if project == "1" { "red" } else { "blue" }}]);
        let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 0}, "labels": labels});
        let body = json!({"name": name, "projectId": project, "clusterId": self.cluster_id(),
            "spec": spec});
        let (status, made) = self.post("/api/v1/workloads/trainings", body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        self.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    }

    /// Waits until a list has `rows` rows.
    async fn list(&self, query: &str, rows: usize) -> Value {
        let has = |page: &Value| page["workloads"].as_array().unwrap().len() == rows;
        self.until(&format!("/api/v1/workloads?{query}"), has).await
    }

    /// The names that a list shows, and where its next page begins.
    async fn names(&self, query: &str) -> (String, Value) {
        let page = self.get(&format!("/api/v1/workloads?{query}")).await;
        let rows = page["workloads"].as_array().unwrap().iter();
        let names: Vec<_> = rows.map(|row| row["name"].as_str().unwrap()).collect();
        (names.join(" "), page["next"].clone())
    }

    async fn count(&self, of: &str, query: &str) -> Value {
        self.get(&format!("/api/v1/workloads{of}/count?{query}")).await["count"].clone()
    }
}

/// Every kind of list, in every kind of order.
const QUERIES: [&str; 34] = [
    "",
    "sortBy=activity",
    "sortBy=activity&sortOrder=desc",
    "sortBy=name",
    "sortBy=name&sortOrder=desc",
    "sortBy=qualifiedName",
    "sortBy=qualifiedName&sortOrder=desc",
    "sortBy=createdAt&sortOrder=desc",
    "sortBy=completedAt",
    "sortBy=completedAt&sortOrder=desc",
    "sortBy=phaseUpdatedAt",
    "sortBy=phase",
    "sortBy=phase&sortOrder=desc",
    "sortBy=projectName",
    "sortBy=submittedBy",
    "sortBy=labels&sortOrder=desc",
    "sortBy=allocatedGPU",
    "filterBy=projectName==team-a",
    "filterBy=projectName=^team,departmentName==default&sortBy=name",
    "filterBy=phase==Completed&sortBy=name",
    "filterBy=phase!=Completed&sortBy=activity",
    "filterBy=phase==Running|Failed",
    "filterBy=name==a1|b1|runs",
    "filterBy=name==a1,name==b1",
    "filterBy=name=@1&sortBy=name",
    "filterBy=name!=a1",
    "filterBy=labels==team=red&sortBy=name",
    "filterBy=type==Training,category==Train",
    "filterBy=type!=Training",
    "filterBy=submittedBy==ada&sortBy=createdAt",
    "filterBy=submittedBy==bob",
    "filterBy=nodes==node-1",
    "filterBy=nodepool==default",
    "search=B",
];

#[tokio::test]
async fn a_list_is_the_same_as_if_all_were_in_memory() {
    let (all, some) = tokio::join!(Server::after_all(99), Server::after_all(1));
    assert_eq!(all.control.view().archived_count(), 0);
    assert_eq!(some.control.view().archived_count(), 5);
    for query in QUERIES {
        let whole = all.names(query).await;
        // The second time in an order that is known.
        for _ in 0..3 {
            assert_eq!(some.names(query).await, whole, "{query}");
        }
        assert_eq!(some.count("", query).await, all.count("", query).await, "{query}");
        for (offset, limit) in [(0, 1), (1, 2), (3, 3), (5, 2), (7, 1), (9, 5)] {
            let page = format!("{query}&offset={offset}&limit={limit}");
            let page = page.trim_start_matches('&');
            assert_eq!(some.names(page).await, all.names(page).await, "{page}");
        }
    }
    assert_eq!(all.names("sortBy=name").await.0, "a1 a2 a3 b1 b2 c1 d1 runs", "there is something");
}

#[tokio::test]
async fn pods_are_listed_over_the_border_too() {
    let (all, some) = tokio::join!(Server::after_all(99), Server::after_all(1));
    let pods = async |server: &Server, query: &str| {
        let page = server.get(&format!("/api/v1/workloads/pods?{query}")).await;
        let rows = page["pods"].as_array().unwrap().iter();
        let names: Vec<_> = rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect();
        (names, page["next"].clone())
    };
    for query in [
        "",
        "limit=3&offset=2",
        "sortBy=name&sortOrder=desc&limit=4",
        "filterBy=workloadName==a1",
        "filterBy=projectName==team-b&sortBy=name",
        "filterBy=k8sPhase==Succeeded",
        "search=b",
    ] {
        assert_eq!(pods(&some, query).await, pods(&all, query).await, "{query}");
        let count = some.count("/pods", query).await;
        assert_eq!(count, all.count("/pods", query).await, "{query}");
    }
    assert_eq!(pods(&all, "").await.0.len(), 8);
}

#[tokio::test]
async fn one_that_left_memory_is_shown_as_before() {
    let server = Server::that_keeps(1).await;
    server.begins("old", "1").await;
    server.engine.end("old", Exit::CannotRun("no image".into()));
    let page = server.list("filterBy=name==old,phase==Failed", 1).await;
    let (id, before) = (page["workloads"][0]["id"].as_str().unwrap(), &page["workloads"][0]);
    let paths =
        ["", "/pods", "/events", "/history"].map(|of| format!("/api/v1/workloads/{id}{of}"));
    let typed = format!("/api/v1/workloads/trainings/{id}");
    let explained = format!("/elastane/v1/workloads/{id}/explain");
    let paths = paths.into_iter().chain([typed, explained]).collect::<Vec<_>>();
    let mut shown = Vec::new();
    for path in &paths {
        shown.push(server.get(path).await);
    }
    server.begins("next", "1").await;
    server.engine.end("next", Exit::Code(0));
    server.list("filterBy=name==next,phase==Completed", 1).await;
    assert_eq!(server.control.view().archived_count(), 1);
    for (path, before) in paths.iter().zip(shown) {
        assert_eq!(server.get(path).await, before, "{path}");
    }
    assert_eq!(&server.list("filterBy=name==old", 1).await["workloads"][0], before);
    let status = server.get("/elastane/v1/status").await;
    assert_eq!(status["workloads"], 2);
    let counts = "/api/v1/workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Phase";
    let counts = server.get(counts).await.to_string();
    assert!(counts.contains("Failed") && counts.contains("Completed"), "{counts}");
}

#[tokio::test]
async fn one_that_left_memory_is_deleted_resumed_and_named_as_any_other() {
    let server = Server::after_all(0).await;
    let page = server.get("/api/v1/workloads?filterBy=name==c1").await;
    let id = page["workloads"][0]["id"].as_str().unwrap().to_owned();
    let (status, why) =
        server.raw("POST", &format!("/api/v1/workloads/trainings/{id}/resume"), "").await;
    assert_eq!(status, StatusCode::CONFLICT, "{why}");
    assert!(why.to_string().contains("has ended"), "{why}");
    let body = server.job("c1", &json!({"image": "i"}));
    let (status, why) = server.post("/api/v1/workloads/trainings", body.clone()).await;
    assert_eq!(status, StatusCode::CONFLICT, "{why}");
    let (status, _) = server.raw("DELETE", &format!("/api/v1/workloads/trainings/{id}"), "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(server.names("filterBy=name==c1").await.0, "");
    assert_eq!(server.names("filterBy=name==c1&deleted=true").await.0, "c1");
    let (status, made) = server.post("/api/v1/workloads/trainings", body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
}

#[tokio::test]
async fn what_would_happen_knows_those_that_left_memory() {
    let server = Server::after_all(0).await;
    let ask = async |name: &str| {
        let job = server.job(name, &json!({"image": "i", "compute": {"gpuDevicesRequest": 1}}));
        server.post("/elastane/v1/what-if", json!({"trainings": [job]})).await
    };
    let (status, answer) = ask("new").await;
    assert_eq!((status, &answer["pods"][0]["fate"]), (StatusCode::OK, &json!("start")), "{answer}");
    let (status, why) = ask("c1").await;
    assert_eq!(status, StatusCode::CONFLICT, "{why}");
    let submits = async |submit: Value| {
        server.post("/elastane/v1/what-if", json!({"steps": [{"submit": submit}]})).await
    };
    for taken in [json!({"name": "c1"}), json!({"name": "c", "count": 2})] {
        let mut submit = taken.clone();
        submit["project"] = json!("team-a");
        let (status, why) = submits(submit).await;
        let said = why.to_string();
        assert!(status.is_client_error() && said.contains("already exists"), "{status} {said}");
    }
    let (status, answer) = submits(json!({"name": "c", "project": "team-b", "count": 2})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}
