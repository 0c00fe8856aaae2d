//! No caller raises its own limits.

use serde_json::{Value, json};

use crate::iam::{call, give, program};
use crate::server::Server;

#[tokio::test]
async fn quotas_and_time_limits_are_changed_from_one_level_up() {
    let server = Server::with_teams().await;
    let cluster = server.cluster_id();
    // 2 Department administrator, 4 Editor, 5 Research manager.
    let mut people = Vec::new();
    for (name, role, scope) in [
        ("of-project", 5, ("project", "1")),
        ("editor", 4, ("project", "1")),
        ("of-department", 2, ("department", "1")),
        ("of-cluster", 2, ("cluster", cluster.as_str())),
    ] {
        let (account, _, token) = program(&server, name).await;
        give(&server, &account, role, scope).await;
        people.push(token);
    }
    let project = "/api/v1/org-unit/projects/1";
    let department = "/api/v1/org-unit/departments/1";
    let shares = |path: &str| format!("{path}/resources");
    let more = json!([{"gpu": {"deserved": 3}}]);
    let summed = json!([{"gpu": {"deservedFromProjects": true}}]);
    let timed: Value =
        json!({"resources": [{}], "schedulingRules": {"trainingJobTimeLimitSeconds": 60}});
    let described = json!({"resources": [{"gpu": {"deserved": 2}}], "description": "ours"});
    for (what, method, path, body, may) in [
        ("describe a project", "PUT", project.to_owned(), described, [true, true, true, true]),
        ("its quota", "PATCH", shares(project), more.clone(), [false, false, true, true]),
        ("the same again", "PATCH", shares(project), more.clone(), [true, true, true, true]),
        ("its defaults", "PUT", shares(project), json!([{}]), [false, false, true, true]),
        ("its time", "PUT", project.to_owned(), timed, [false, false, true, true]),
        ("a department's quota", "PATCH", shares(department), more, [false, false, false, true]),
        ("the sum for it", "PATCH", shares(department), summed, [false, false, false, true]),
    ] {
        for (at, token) in people.iter().enumerate() {
            let (status, said) = call(&server, token, (method, &path), &body).await;
            let allowed = status.is_success();
            assert_eq!(allowed, may[at], "{what} by {at}: {status} {said}");
            if !allowed {
                assert_eq!(status, 403, "{what} by {at}: {said}");
            }
        }
    }
}
