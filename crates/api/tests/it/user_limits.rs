//! How much users can make: each limit of the table is reached, and its refusal says what is there,
//! the limit, and what to do.

use axum::http::StatusCode;
use serde_json::{Value, json};
use spec::{AtLimit, UserLimit, UserLimits};

use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";
const MAPS: &str = "/elastane/v1/projects/1/config-maps";

/// A request that makes one more, and the limit at which the second is refused.
fn request(server: &Server, limit: UserLimit, number: usize) -> Option<(Value, String, Value)> {
    let train = |spec: Value| {
        let body = server.job(&format!("job-{number}"), &spec);
        Some((json!("POST"), TRAININGS.to_owned(), body))
    };
    let map = |bytes: usize| {
        let body = json!({"data": {"k": "x".repeat(bytes)}});
        Some((json!("PUT"), format!("{MAPS}/map-{number}"), body))
    };
    let variable = |bytes: usize| json!([{"name": "A", "value": "x".repeat(bytes)}]);
    let large = if number == 0 { 10 } else { 1000 };
    match limit {
        UserLimit::EnvironmentBytes => {
            train(json!({"image": "i", "environmentVariables": variable(large)}))
        }
        UserLimit::LabelsBytes => train(json!({"image": "i", "annotations": variable(large)})),
        UserLimit::ProjectWorkloads | UserLimit::UserWorkloads => train(json!({"image": "i"})),
        UserLimit::ProjectPods | UserLimit::UserPods => {
            let mut body = server.job(&format!("job-{number}"), &json!({"image": "i"}));
            body["spec"]["distributedFramework"] = json!("PyTorch");
            body["spec"]["numWorkers"] = json!(2);
            Some((json!("POST"), "/api/v1/workloads/distributed".to_owned(), body))
        }
        UserLimit::ProjectWorkloadBytes | UserLimit::UserWorkloadBytes => {
            train(json!({"image": "i", "args": "x".repeat(large * 10)}))
        }
        UserLimit::Objects
        | UserLimit::ObjectsOfOne
        | UserLimit::UserObjects
        | UserLimit::UserObjectsOfOne => map(10),
        UserLimit::ObjectsOfOneBytes
        | UserLimit::UserObjectsBytes
        | UserLimit::UserObjectsOfOneBytes => map(large),
        // The data of a config map does not count, and an access rule has little other content.
        UserLimit::ObjectBytes => {
            let meta = json!({"name": format!("asset-{number}"), "scope": "project", "projectId": 1,
                "description": "x".repeat(large / 5)});
            let body = json!({"meta": meta, "spec": {"image": "i"}});
            Some((json!("POST"), "/api/v1/asset/environment".to_owned(), body))
        }
        UserLimit::ProjectArchivedWorkloads
        | UserLimit::UserArchivedWorkloads
        | UserLimit::ProjectArchivedBytes
        | UserLimit::UserArchivedBytes
        | UserLimit::Sessions
        | UserLimit::DeletedWorkloads
        | UserLimit::Events
        | UserLimit::AuditRows => None,
    }
}

/// A value of the limit that the first request keeps, and the second does not.
fn small(limit: UserLimit) -> u64 {
    match limit {
        UserLimit::ProjectWorkloadBytes | UserLimit::UserWorkloadBytes => 4000,
        UserLimit::ProjectPods | UserLimit::UserPods => 3,
        UserLimit::EnvironmentBytes | UserLimit::LabelsBytes => 500,
        UserLimit::ObjectsOfOneBytes
        | UserLimit::UserObjectsBytes
        | UserLimit::UserObjectsOfOneBytes => 700,
        UserLimit::ObjectBytes => 250,
        _ => 1,
    }
}

#[tokio::test]
async fn what_is_beyond_a_limit_is_refused_with_what_helps() {
    for &limit in UserLimit::ALL {
        let mut limits = UserLimits::default();
        limits.set(limit, small(limit));
        let server = Server::that_limits(limits).await;
        let mut answers = Vec::new();
        for number in 0..2 {
            let Some((method, path, body)) = request(&server, limit, number) else { continue };
            let method = method.as_str().unwrap();
            answers.push(server.raw(method, &path, &body.to_string()).await);
        }
        let [(first, kept), (second, refused)] = &answers[..] else {
            // Nothing is refused, or after more than two requests.
            continue;
        };
        let name = limit.name();
        assert!(first.is_success(), "{name}: {kept}");
        let want = match limit.at_limit() {
            AtLimit::RefusesField(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::CONFLICT,
        };
        assert_eq!(*second, want, "{name}: {refused}");
        let why = refused["message"].as_str().unwrap();
        let most = format!("limited to {}", small(limit));
        for part in [most.as_str(), limit.relief(), &format!("--user-limits {name}=")] {
            assert!(why.contains(part), "{name}, {part}: {why}");
        }
    }
}

#[tokio::test]
async fn ended_workloads_that_are_not_deleted_have_a_limit_too() {
    for (limit, most) in [
        (UserLimit::ProjectArchivedWorkloads, 1),
        (UserLimit::UserArchivedWorkloads, 1),
        (UserLimit::ProjectArchivedBytes, 1700),
        (UserLimit::UserArchivedBytes, 1700),
    ] {
        let mut limits = UserLimits::default();
        limits.set(limit, most);
        let server = Server::that_keeps_and_limits(0, limits).await;
        let id = server.train("a", 0).await;
        server.phase(&id, "Running").await;
        server.engine.end("a", engine::Exit::Code(0));
        server.phase(&id, "Completed").await;
        let next = server.job("c", &json!({"image": "i", "args": "x".repeat(1000)}));
        let (status, said) = server.post(TRAININGS, next).await;
        assert_eq!(status, StatusCode::CONFLICT, "{said}");
        let set = format!("--user-limits {}=", limit.name());
        assert!(said["message"].as_str().unwrap().contains(&set), "{said}");
    }
}

#[tokio::test]
async fn rows_of_lists_have_no_environment_and_no_long_commands() {
    let server = Server::with_teams().await;
    let environment = json!([{"name": "A", "value": "x".repeat(100_000)}]);
    let spec = json!({"image": "i", "environmentVariables": environment,
        "command": format!("sh {}", "y".repeat(100_000)), "args": "short"});
    let (status, made) = server.post(TRAININGS, server.job("a", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let list = server.get("/api/v1/workloads").await;
    let row = &list["workloads"][0];
    assert_eq!((row.get("environmentVariables"), row.get("command")), (None, None));
    assert_eq!(row["arguments"], "short");
    assert!(list.to_string().len() < 10_000);
    let one = server.get(&format!("/api/v1/workloads/{}", row["id"].as_str().unwrap())).await;
    assert_eq!(one["environmentVariables"]["A"].as_str().map(str::len), Some(100_000));
    assert!(one["command"].as_str().unwrap().len() > 100_000);
}
