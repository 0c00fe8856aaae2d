//! A person's use of the interface, from the token to the end of a workload.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, read};

fn names(list: &Value, key: &str) -> Vec<String> {
    let items = list[key].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_secret_buys_a_token_that_opens_the_door() {
    let server = Server::new().await;
    let file = std::fs::read(server.dir.path().join(auth::CREDENTIALS_FILE)).unwrap();
    let own: Value = serde_json::from_slice(&file).unwrap();
    let body = json!({"grantType": "app_token", "AppId": own["clientId"],
        "AppSecret": own["clientSecret"]});
    let request = Request::post("/api/v1/token").header("host", "127.0.0.1");
    let request = request.header("content-type", "application/json");
    let answer = server.send(request.body(Body::from(body.to_string())).unwrap()).await;
    let (status, granted) = read(answer).await;
    assert_eq!((status, granted["expiresIn"].as_u64()), (StatusCode::OK, Some(86_400)));
    let request = Request::get("/api/v1/clusters")
        .header("host", "[::1]:80")
        .header("authorization", format!("Bearer {}", granted["accessToken"].as_str().unwrap()));
    let (status, clusters) = read(server.send(request.body(Body::empty()).unwrap()).await).await;
    assert_eq!(
        (status, clusters[0]["uuid"].as_str()),
        (StatusCode::OK, Some(&*server.cluster_id()))
    );
}

#[tokio::test]
async fn a_project_is_created_changed_and_deleted() {
    let server = Server::new().await;
    let (status, made) = server.post("/api/v1/org-unit/projects", server.team("team-a")).await;
    assert_eq!(status, StatusCode::CREATED);
    let path = format!("/api/v1/org-unit/projects/{}", made["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await["resources"][0]["gpu"]["deserved"], 2);

    let body = json!({"description": "d", "resources": [{"gpu": {"deserved": 1.5, "limit": 3}}]});
    let (status, changed) = server.raw("PUT", &path, &body.to_string()).await;
    assert_eq!((status, &changed["totalResources"]["gpuQuota"]), (StatusCode::OK, &json!(1.5)));
    let shares = format!("{path}/resources");
    let (_, kept) = server.raw("PATCH", &shares, r#"[{"gpu":{"deserved":1}}]"#).await;
    assert_eq!(kept[0]["gpu"]["limit"], 3);
    assert_eq!(server.get(&path).await["description"], "d");
    let (_, replaced) = server.raw("PUT", &shares, r#"[{"gpu":{"deserved":1}}]"#).await;
    assert_eq!(replaced[0]["gpu"]["limit"], -1);

    let (status, nothing) = server.raw("DELETE", &path, "").await;
    assert_eq!((status, nothing), (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(server.get("/api/v1/org-unit/projects").await, json!({"projects": []}));
}

#[tokio::test]
async fn a_training_runs_is_suspended_resumed_and_deleted() {
    let server = Server::with_teams().await;
    let id = server.train("a1", 1).await;
    let running = server.phase(&id, "Running").await;
    assert_eq!(
        (&running["runningPods"], &running["allocatedResources"]["gpu"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(running["additionalFields"]["gpus"], json!([[0, 1000]]));
    assert_eq!(running["allocatedResources"]["gpuMemory"], "16Gi");

    let path = format!("/api/v1/workloads/trainings/{id}");
    let (status, _) = server.raw("POST", &format!("{path}/suspend"), "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.phase(&id, "Stopped").await;
    assert_eq!(server.get(&path).await["desiredPhase"], "Stopped");
    server.raw("POST", &format!("{path}/resume"), "").await;
    server.phase(&id, "Running").await;

    let (status, _) = server.raw("DELETE", &path, "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let none = |list: &Value| list["workloads"].as_array().unwrap().is_empty();
    server.until("/api/v1/workloads", none).await;
    let events = server.get(&format!("/api/v1/workloads/{id}/events")).await;
    assert!(!events["events"].as_array().unwrap().is_empty(), "history outlives the workload");

    let path = format!("/api/v1/workloads/{id}/history?limit=1");
    let (mut one_by_one, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let page = server.get(&format!("{path}&offset={at}")).await;
        let records = page["records"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{page}");
        one_by_one.extend(records.clone());
        offset = page["next"].as_u64();
    }
    let whole = server.get(&format!("/api/v1/workloads/{id}/history")).await;
    assert_eq!(whole["records"], Value::from(one_by_one));
    let beyond = server.get(&format!("{path}&offset=1000")).await;
    assert_eq!(beyond["records"], json!([]));
}

#[tokio::test]
async fn what_waits_says_why() {
    let server = Server::with_teams().await;
    let id = server.train("big", 8).await;
    let waiting = server.phase(&id, "Pending").await;
    let reason = &waiting["additionalFields"]["pendingReasons"][0];
    assert_eq!(reason["code"], "P101");
    assert_eq!(waiting["phaseMessage"], reason["message"]);
    let explained = server.get(&format!("/elastane/v1/workloads/{id}/explain")).await;
    assert!(explained["summary"].as_str().unwrap().starts_with("big waits: "), "{explained}");
    assert_eq!(explained["projectQuota"], 2);
    let diagnosis = &explained["diagnosis"];
    assert_eq!(diagnosis["searches"][0]["code"], "P401", "{explained:#}");
    assert_eq!(diagnosis["advice"][0]["kind"], "fewer_gpus", "{explained:#}");
    assert_eq!(diagnosis["complete"], true);

    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 3}});
    let (_, made) = server.post("/api/v1/workloads/workspaces", server.job("ws", &spec)).await;
    let waiting = server.phase(made["workloadId"].as_str().unwrap(), "Pending").await;
    assert_eq!(waiting["phaseReason"], "NonPreemptibleOverQuota", "{waiting:#}");
}

#[tokio::test]
async fn lists_are_filtered_sorted_paged_and_counted() {
    let server = Server::with_teams().await;
    for name in ["c", "a", "b"] {
        server.train(name, 0).await;
    }
    let path = "/api/v1/workloads";
    assert_eq!(names(&server.get(path).await, "workloads"), ["c", "a", "b"], "as created");
    let page = server.get(&format!("{path}?sortBy=name&limit=2")).await;
    assert_eq!(
        (names(&page, "workloads"), &page["next"]),
        (vec!["a".into(), "b".into()], &json!(2))
    );
    let last = server.get(&format!("{path}?sortBy=name&limit=2&offset=2")).await;
    assert!(last.get("next").is_none());
    let filtered =
        server.get(&format!("{path}?filterBy=name%3D%3Db%2CprojectName%3D%5Eteam")).await;
    assert_eq!(names(&filtered, "workloads"), ["b"]);
    let count = server.get(&format!("{path}/count?filterBy=name!=b&search=TEAM-A")).await;
    assert_eq!(count, json!({"count": 2}));
    let pods = server.get("/api/v1/workloads/pods?filterBy=workloadName==a").await;
    assert_eq!(pods["pods"][0]["workloadName"], "a");
    let projects = server.get("/api/v1/org-unit/projects?filterBy=name==team-b").await;
    assert_eq!(names(&projects, "projects"), ["team-b"]);
    let (status, posted) = server.raw("POST", path, "").await;
    assert_eq!((status, names(&posted, "workloads").len()), (StatusCode::OK, 3), "curl --data ''");
}

#[tokio::test]
async fn the_source_is_what_the_client_says_it_is() {
    let server = Server::with_teams().await;
    for (said, want) in
        [(Some("CLI"), "CLI"), (None, "Control-plane"), (Some("x"), "Control-plane")]
    {
        let name = format!("w{}", said.unwrap_or("none").to_lowercase());
        let body = server.job(&name, &json!({"image": "i", "commandLine": "runai submit w"}));
        let mut request = server.request_with_json("POST", "/api/v1/workloads/trainings");
        if let Some(said) = said {
            request = request.header(api_types::SOURCE_HEADER, said);
        }
        let body = Body::from(body.to_string());
        let (_, made) = read(server.send(request.body(body).unwrap()).await).await;
        let path = format!("/api/v1/workloads/{}", made["workloadId"].as_str().unwrap());
        let shown = server.get(&path).await;
        assert_eq!(shown["source"], want);
        assert_eq!(shown["additionalFields"]["commandLine"], "runai submit w");
    }
}

#[tokio::test]
async fn a_batch_does_what_it_can_and_names_the_rest() {
    let server = Server::with_teams().await;
    let id = server.train("a", 0).await;
    let gone = "00000000-0000-4000-8000-000000000000";
    let body = json!({"ids": [id, gone, "x"], "action": "delete"});
    let (status, done) = server.post("/api/v1/workloads/batch", body).await;
    assert_eq!((status, &done["succeeded"]), (StatusCode::OK, &json!([id])));
    let failed: Vec<_> = done["failed"].as_array().unwrap().iter().map(|f| &f["code"]).collect();
    assert_eq!(failed, [404, 404]);
}

#[tokio::test]
async fn a_batch_is_short_and_names_each_workload_once() {
    let server = Server::with_teams().await;
    let id = server.train("a", 0).await;
    let batch = async |ids: Value| {
        let body = json!({"ids": ids, "action": "delete"});
        server.post("/api/v1/workloads/batch", body).await
    };
    let many: Vec<_> = (0..501).map(|n| n.to_string()).collect();
    let (status, refused) = batch(json!(many)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert_eq!(refused["message"], "ids: has 501 ids; at most 500 are allowed in a request");
    let (status, refused) = batch(json!([id, "x", id.to_uppercase()])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    let said = refused["message"].as_str().unwrap();
    assert!(said.starts_with("ids[2]: `") && said.contains("is there twice"), "{said}");
    let (status, _) = batch(json!(vec!["x"; 250_000])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "a body that costs memory is not read");
    assert_eq!(server.get("/api/v1/workloads/count").await["count"], 1, "nothing was done");
    assert_eq!(batch(json!(many[..500])).await.0, StatusCode::OK);
}

#[tokio::test]
async fn down_stops_the_workloads_and_then_the_server() {
    let server = Server::with_teams().await;
    let id = server.train("a", 1).await;
    server.phase(&id, "Running").await;
    let (status, _) = server.raw("POST", "/elastane/v1/down", "").await;
    assert_eq!((status, server.engine.alive()), (StatusCode::OK, 0));
    server.shutdown.wait().await;
}

#[tokio::test]
async fn a_snapshot_is_a_scenario_of_what_the_scheduler_sees() {
    let server = Server::with_teams().await;
    let id = server.train("a1", 1).await;
    server.phase(&id, "Running").await;
    let before = server.get("/elastane/v1/status").await;
    let snapshot = server.get("/elastane/v1/snapshot").await;
    assert_eq!(snapshot["workloads"][0]["name"], "a1");
    assert_eq!(snapshot["workloads"][0]["tasks"][0]["state"], "running");
    let scenario = sim::scenario::Scenario::read(&snapshot.to_string()).unwrap();
    let outcome = sim::run(&scenario, sim::Record::Decisions).unwrap();
    let decided = outcome.frames.iter().flat_map(|frame| &frame.decisions).count();
    assert_eq!(decided, 0, "what the server has decided stands");
    let after = server.get("/elastane/v1/status").await;
    assert_eq!(after["eventSeq"], before["eventSeq"], "looking leaves no trace");
}
