//! Permissions: every role on every route, in its own project, in another, and everywhere.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use expect_test::expect_file;
use serde_json::{Value, json};

use crate::assets::{keep, one_of_each};
use crate::credentials;
use crate::iam::{call, get, give, program, text, user};
use crate::server::{Server, read};

const RULES: &str = "/api/v1/authorization/access-rules";

/// An operation of the description: its id, method and path.
type Operation = (String, String, String);

/// Every operation there is that needs a token; what destroys comes last.
async fn operations(server: &Server) -> Vec<Operation> {
    let document = server.get("/elastane/v1/openapi.json").await;
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if !operation["security"].is_null() {
                let id = text(operation, "operationId");
                all.push((id, method.to_uppercase(), path.clone()));
            }
        }
    }
    all.sort_by_key(|(id, method, _)| (id == "stop_server", method == "DELETE", id.clone()));
    all
}

/// Things of one project that requests are about.
struct Target {
    project: String,
    training: String,
    workspace: String,
    inference: String,
    /// The first of the inference.
    revision: String,
    rule: String,
    /// By the path of their kind.
    documents: Vec<(String, String)>,
}

impl Target {
    /// `true` for an error that reports an existing object as unknown. A request for a training as
    /// an inference has another message.
    fn is_said_to_be_unknown(&self, said: &str) -> bool {
        let workloads = [&self.training, &self.workspace, &self.inference].into_iter();
        let others = self.documents.iter().map(|(_, id)| id).chain([&self.revision]);
        workloads.map(|id| format!("workload {id} was")).any(|start| said.starts_with(&start))
            || others.map(|id| format!(" {id} was not found")).any(|end| said.contains(&end))
    }
}

const TEMPLATES: &str = "/api/v1/workload-templates/";

/// An asset of every kind and a template of every type in a project.
async fn documents(server: &Server, project: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let number: u64 = project.parse().unwrap();
    let credentials =
        credentials::one_of_each().into_iter().map(|(path, kind, spec, _)| (path, kind, spec));
    for (path, _, spec) in one_of_each().into_iter().chain(credentials) {
        let meta = json!({"name": "a", "scope": "project", "projectId": number});
        all.push((format!("/api/v1/asset/{path}/"), keep(server, path, &meta, &spec).await));
    }
    for of_type in ["trainings", "workspaces", "distributed", "inferences"] {
        let meta = json!({"name": of_type, "scopeType": "project", "scopeId": project});
        let path = format!("{TEMPLATES}{of_type}");
        let (_, made) = server.post(&path, json!({"meta": meta})).await;
        all.push((format!("{path}/"), text(&made["meta"], "id")));
    }
    let any = all.last().unwrap().1.clone();
    all.push((TEMPLATES.to_owned(), any));
    all
}

/// The path with the scope in the query, if it belongs there.
fn of_scope(path: String, project: &str) -> String {
    if path.starts_with("/api/v2/policy/") {
        return format!("{path}?scope=project&projectId={project}");
    }
    path
}

/// A server with a role in it, and things of two projects.
struct Stage {
    server: Server,
    token: String,
    targets: [Target; 2],
    user: String,
    account: String,
}

impl Stage {
    /// A caller with this role in this scope; a role of 0 is none.
    async fn new(role: u64, scope: (&str, &str)) -> Self {
        let server = Server::with_teams().await;
        let (account, _, token) = program(&server, "asker").await;
        if role > 0 {
            give(&server, &account, role, scope).await;
        }
        let (other, _, _) = program(&server, "other").await;
        let (_, made) = server.post("/api/v1/users", json!({"email": "u@x.org"})).await;
        let mut targets = Vec::new();
        for project in ["1", "2"] {
            let start = async |kind: &str| {
                let mut body = json!({
                    "name": format!("theirs-{kind}"), "projectId": project,
                    "clusterId": server.cluster_id(), "spec": {"image": "i"},
                });
                if kind == "inferences" {
                    body["spec"]["servingPort"] = json!({"container": 8000});
                    body["spec"]["autoscaling"] = json!({"minReplicas": 0, "initialReplicas": 0});
                }
                let (_, made) = server.post(&format!("/api/v1/workloads/{kind}"), body).await;
                text(&made, "workloadId")
            };
            let inference = start("inferences").await;
            let revisions = format!("/api/v1/workloads/inferences/{inference}/revisions");
            let revisions = server.get(&revisions).await;
            targets.push(Target {
                revision: text(&revisions["revisions"][0], "id"),
                inference,
                project: project.to_owned(),
                training: start("trainings").await,
                workspace: start("workspaces").await,
                documents: documents(&server, project).await,
                rule: give(&server, &other, 9, ("project", project)).await.to_string(),
            });
        }
        let targets = targets.try_into().ok().unwrap();
        Self { server, token, targets, user: text(&made, "id"), account: other }
    }

    /// The path of an operation on what is of the project.
    fn path(&self, path: &str, target: &Target) -> String {
        let workload = match path {
            path if path.contains("/workspaces") => &target.workspace,
            path if path.contains("/inferences") => &target.inference,
            _ => &target.training,
        };
        let document = target.documents.iter().find(|(kind, _)| path.starts_with(kind));
        let document = document.map_or("", |(_, id)| id);
        let path = path
            .replace("{assetId}", document)
            .replace("{templateId}", document)
            .replace("{projectId}", &target.project)
            .replace("{departmentId}", "1")
            .replace("{workloadId}", workload)
            .replace("{revisionId}", &target.revision)
            .replace("{accessRuleId}", &target.rule)
            .replace("{clusterUuid}", &self.server.cluster_id())
            .replace("{userId}", &self.user)
            .replace("{serviceAccountId}", &self.account)
            .replace(['{', '}'], "");
        of_scope(path, &target.project)
    }

    /// `+` if the caller may do this to what is of the project, `-` if not.
    async fn may(&self, (id, method, path): &Operation, target: &Target) -> char {
        let path = self.path(path, target);
        let job = |name: &str| {
            json!({"name": format!("{name}-{}", target.project), "projectId": target.project,
                   "spec": {"image": "i"}})
        };
        let body = match id.as_str() {
            "create_project" => self.server.team(&format!("new-{}", target.project)),
            "create_department" => self.server.team(&format!("department-{}", target.project)),
            _ if method == "POST" && path.starts_with("/api/v1/asset/") => json!({
                "meta": {"name": "new", "scope": "project",
                         "projectId": target.project.parse::<u64>().unwrap()},
                "spec": {},
            }),
            _ if method == "POST" && path.starts_with(TEMPLATES) => json!({
                "meta": {"name": id, "scopeType": "project", "scopeId": target.project},
            }),
            _ if method == "PUT" && path.starts_with("/api/v1/asset/") => json!({"spec": {}}),
            _ if path.starts_with(TEMPLATES) && method.starts_with('P') => json!({"spec": {}}),
            _ if method.starts_with('P') && path.starts_with("/api/v2/policy/") => json!({
                "meta": {"name": "p", "scope": "project",
                         "projectId": target.project.parse::<u64>().unwrap()},
            }),
            "create_training1" => job("new-training"),
            "create_workspace1" => job("new-workspace"),
            "create_distributed" => with(job("new-d"), json!({"distributedFramework": "PyTorch"})),
            "create_inference1" => with(job("new-i"), json!({"servingPort": {"container": 8000}})),
            "create_workload_v2" => json!({
                "metadata": {"projectId": target.project},
                "manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new-v2"},
                             "spec": {"containers": [{"name": "main", "image": "i"}]}},
            }),
            "what_if" => json!({"trainings": [job("what-if")]}),
            "quota_effects" => json!({"project": {"id": target.project, "resources": [{}]}}),
            "batch_workloads" => json!({"action": "suspend", "ids": [target.training]}),
            "create_access_rule" => json!({
                "subjectId": self.account, "subjectType": "service-account", "roleId": 10,
                "scopeType": "project", "scopeId": target.project,
            }),
            "access_rules_batch" => {
                json!({"action": "validate_delete", "ids": [target.rule]})
            }
            "access_rules_batch_create" => json!({"payload": {
                "roleId": 11, "subjects": [{"subjectId": self.account, "subjectType": "app"}],
                "scopes": [{"scopeId": target.project, "scopeType": "project"}],
            }}),
            _ => Value::Null,
        };
        let request = Request::builder().method(method.as_str()).uri(&path);
        let request = request
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.server.send(request.body(Body::from(body)).unwrap()).await;
        let status = answer.status();
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert!(!fails(status), "{method} {path}: {status}");
        if id.contains("batch") && status == StatusCode::OK {
            let refused = &read(answer).await.1["failed"][0]["code"];
            return if [403, 404].iter().any(|code| refused == code) { '-' } else { '+' };
        }
        // Things that a caller may not see are not there for it.
        let is_unknown = status == StatusCode::NOT_FOUND && {
            let said = text(&read(answer).await.1, "message");
            target.is_said_to_be_unknown(&said)
        };
        if status == StatusCode::FORBIDDEN || is_unknown { '-' } else { '+' }
    }
}

/// A submission with one more thing in what it asks for.
fn with(mut body: Value, more: Value) -> Value {
    if let (Some(spec), Value::Object(more)) = (body["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    body
}

/// Some published operations are not served; their answer is no failure.
fn fails(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// Permissions of a caller with this role on objects of these projects, a column for each.
async fn columns(
    operations: &[Operation],
    role: u64,
    scope: (&str, &str),
    targets: &[usize],
) -> Vec<Vec<char>> {
    let stage = Box::pin(Stage::new(role, scope)).await;
    let mut columns = Vec::new();
    for target in targets {
        let mut column = Vec::new();
        for operation in operations {
            column.push(stage.may(operation, &stage.targets[*target]).await);
        }
        columns.push(column);
    }
    columns
}

/// The whole table: for each operation a caller without a token, then each role in project 1 on
/// things of project 1, the same on things of project 2, and each role in the whole installation on
/// things of project 2.
#[tokio::test]
async fn every_role_on_every_route() {
    let all = operations(&Server::new().await).await;
    assert!(all.len() > 60, "{}", all.len());
    let without_token = Box::pin(columns(&all, 0, ("", ""), &[0])).await;
    // Deleting objects of the other project does not affect the own one.
    let here = (1..=15).map(|role| columns(&all, role, ("project", "1"), &[1, 0]));
    let here = futures_util::future::join_all(here).await;
    let everywhere = (1..=15).map(|role| columns(&all, role, ("tenant", "1"), &[1]));
    let everywhere = futures_util::future::join_all(everywhere).await;
    let mut table = String::from(
        "operation                               nobody, roles 1-15: own project, other project, \
         everywhere\n",
    );
    for (at, (id, ..)) in all.iter().enumerate() {
        let roles = |of: &[Vec<Vec<char>>], column: usize| -> String {
            of.iter().map(|role| role[column][at]).collect()
        };
        let (own, other) = (roles(&here, 1), roles(&here, 0));
        let everywhere = roles(&everywhere, 0);
        writeln!(table, "{id:<40}{} {own} {other} {everywhere}", without_token[0][at]).unwrap();
    }
    expect_file!["access.txt"].assert_eq(&table);
}

/// Open routes are not in the table, so no route may leave it by mistake.
#[tokio::test]
async fn only_these_routes_are_open_to_everyone() {
    let document = Server::new().await.get("/elastane/v1/openapi.json").await;
    let paths = document["paths"].as_object().unwrap().values();
    let all = paths.flat_map(|item| item.as_object().unwrap().values());
    let open = all.filter(|operation| operation["security"].is_null());
    let mut open: Vec<_> = open.map(|operation| text(operation, "operationId")).collect();
    open.sort();
    let installers = ["linux", "mac", "unix"];
    let lines = ["linux", "mac", "unix", "windows"];
    let mut expected: Vec<String> = [
        "begin_browser_session",
        "begin_login",
        "get_binary",
        "get_docs",
        "get_health",
        "get_manual_document",
        "get_openapi",
        "grant_token",
        "grant_token_v2",
        "show_login_code",
    ]
    .map(str::to_owned)
    .into();
    expected.extend(installers.map(|system| format!("get_installer_{system}")));
    expected.extend(lines.map(|system| format!("get_installer_{system}_commands")));
    expected.sort();
    assert_eq!(open, expected, "every other route is a line of access.txt");
}

#[tokio::test]
async fn lists_show_what_the_caller_may_see() {
    let server = Server::with_teams().await;
    server.train("mine", 0).await;
    let other = json!({"name": "theirs", "projectId": "2", "spec": {"image": "i"}});
    server.post("/api/v1/workloads/trainings", other).await;
    let (id, _, token) = program(&server, "ci").await;
    give(&server, &id, 6, ("project", "1")).await;
    let shown = async |path: &str| get(&server, &token, path).await.1.to_string();
    for path in ["/api/v1/workloads", "/api/v1/workloads/pods", "/api/v1/org-unit/projects"] {
        let shown = shown(path).await;
        assert!(shown.contains("team-a") || shown.contains("mine"), "{path}: {shown}");
        assert!(!shown.contains("team-b") && !shown.contains("theirs"), "{path}: {shown}");
    }
    for path in ["/api/v1/workloads/count", "/api/v1/workloads/pods/count"] {
        assert_eq!(get(&server, &token, path).await.1["count"], 1, "{path}");
    }
    let department = shown("/api/v1/org-unit/departments").await;
    assert_eq!(department, r#"{"departments":[]}"#, "its sums tell of other projects");
    // Nodes and what is free on them, everybody may see.
    assert!(shown("/api/v1/nodes").await.contains("node-1"));
    assert!(shown("/elastane/v1/status").await.contains("gpusAllocated"));
    let (status, refused) = get(&server, &token, "/api/v1/org-unit/projects/2").await;
    assert_eq!((status, &refused["code"]), (403, &json!(403)));
    assert_eq!(
        refused["message"],
        "ci may not read projects in project 2; ask an administrator for a role that allows it"
    );
    let missing = &refused["missingPermission"];
    assert_eq!((&missing["action"], &missing["resourceType"]), (&json!("read"), &json!("project")));
    assert!(missing["roles"].as_array().unwrap().contains(&json!("Viewer")), "{missing}");
}

#[tokio::test]
async fn a_role_is_gone_at_once_when_its_rule_is() {
    let server = Server::with_teams().await;
    let (id, _, token) = program(&server, "ci").await;
    assert_eq!(get(&server, &token, "/api/v1/workloads").await.0, 403);
    let rule = give(&server, &id, 9, ("tenant", "1")).await;
    assert_eq!(get(&server, &token, "/api/v1/workloads").await.0, 200);
    let (status, _) = server.raw("DELETE", &format!("{RULES}/{rule}"), "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(get(&server, &token, "/api/v1/workloads").await.0, 403);
}

#[tokio::test]
async fn rules_end_with_their_project_and_subject() {
    let server = Server::with_teams().await;
    let (id, _, _) = program(&server, "ci").await;
    give(&server, &id, 6, ("project", "1")).await;
    give(&server, &id, 6, ("project", "2")).await;
    let count = async || server.get(&format!("{RULES}/count")).await["count"].clone();
    server.raw("DELETE", "/api/v1/org-unit/projects/2", "").await;
    assert_eq!(count().await, 1);
    server.raw("DELETE", &format!("/api/v1/service-accounts/{id}"), "").await;
    assert_eq!(count().await, 0);
}

#[tokio::test]
async fn nobody_gives_or_takes_more_than_it_has() {
    let server = Server::with_teams().await;
    let (id, _, token) = program(&server, "head").await;
    give(&server, &id, 2, ("department", "1")).await;
    let (other, _, _) = program(&server, "other").await;
    let above = give(&server, &other, 1, ("department", "1")).await;
    let rule = |role: u64, scope: &str, id: &str| {
        json!({"subjectId": other, "subjectType": "service-account", "roleId": role,
               "scopeType": scope, "scopeId": id})
    };
    for (body, status) in [
        (rule(6, "project", "1"), 201),
        (rule(2, "department", "1"), 201),
        (rule(1, "project", "1"), 403),
        (rule(6, "tenant", "1"), 403),
        (rule(6, "cluster", &server.cluster_id()), 403),
    ] {
        let (got, answer) = call(&server, &token, ("POST", RULES), &body).await;
        assert_eq!(got.as_u16(), status, "{body} {answer}");
    }
    let path = format!("{RULES}/{above}");
    let (status, _) = call(&server, &token, ("DELETE", &path), &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_l2_researcher_changes_only_its_own() {
    let server = Server::with_teams().await;
    let theirs = server.train("theirs", 0).await;
    let (id, _, token) = program(&server, "ci").await;
    give(&server, &id, 7, ("project", "1")).await;
    let job = server.job("mine", &json!({"image": "i"}));
    let trainings = "/api/v1/workloads/trainings";
    let (_, made) = call(&server, &token, ("POST", trainings), &job).await;
    let mine = text(&made, "workloadId");
    for (id, status) in [(&theirs, 403), (&mine, 202)] {
        let path = format!("{trainings}/{id}/suspend");
        let got = call(&server, &token, ("POST", &path), &Value::Null).await.0;
        assert_eq!(got.as_u16(), status, "{path}");
        let path = format!("{trainings}/{id}");
        assert_eq!(get(&server, &token, &path).await.0, 200);
    }
    let batch = json!({"action": "delete", "ids": [theirs, mine]});
    let (_, done) = call(&server, &token, ("POST", "/api/v1/workloads/batch"), &batch).await;
    assert_eq!(done["succeeded"], json!([mine]), "{done}");
    assert_eq!(done["failed"][0]["code"], 403, "{done}");
}

#[tokio::test]
async fn wrong_rules_are_refused_by_the_name_of_their_field() {
    let server = Server::with_teams().await;
    user(&server, "ann@example.org").await;
    let right = json!({"subjectId": "ann@example.org", "subjectType": "user", "roleId": 6,
                       "scopeType": "project", "scopeId": "1"});
    for (field, value, status, message) in [
        ("subjectId", json!("bob@example.org"), 400, "subjectId: there is no user `bob@"),
        ("subjectType", json!("group"), 400, "subjectType: groups come from"),
        ("subjectType", json!("king"), 400, "subjectType: `king` is not allowed; write"),
        ("roleId", json!(99), 400, "roleId: there is no role 99; see GET"),
        ("roleId", json!("6"), 400, "roleId: a whole number"),
        ("scopeId", json!("9"), 400, "scopeId: there is no project with id `9`"),
        ("scopeType", json!("system"), 400, "scopeId: there is no system with id"),
        ("scopeId", json!("1"), 201, ""),
        ("scopeId", json!("1"), 409, "access rule `L1 researcher` already exists"),
    ] {
        let mut body = right.clone();
        body[field] = value;
        let (got, answer) = server.post(RULES, body.clone()).await;
        assert_eq!(got.as_u16(), status, "{body} {answer}");
        let said = answer["message"].as_str().unwrap_or_default();
        assert!(said.starts_with(message), "{body}\n{said}");
    }
}

#[tokio::test]
async fn callers_learn_what_they_may() {
    let server = Server::with_teams().await;
    let (id, _, token) = program(&server, "ci").await;
    give(&server, &id, 6, ("project", "2")).await;
    let (_, own) = get(&server, &token, "/api/v1/authorization/me/access-rules").await;
    let rule = &own["accessRules"]["accessRules"][0];
    assert_eq!(
        (&rule["roleName"], &rule["scopeName"], &own["accessRules"]["totalRecords"]),
        (&json!("L1 researcher"), &json!("team-b"), &json!(1))
    );
    let path = "/api/v1/authorization/permitted-scopes";
    let ask = async |token: &str| {
        let body = json!({"resourceType": "trainings", "action": "create"});
        call(&server, token, ("POST", path), &body).await.1
    };
    assert_eq!(ask(&token).await["create"]["projects"], json!(["2"]));
    assert_eq!(ask(&token).await["delete"]["projects"], json!([]));
    assert_eq!(ask(&server.token).await["create"]["tenant"], "1");
    let (status, roles) = get(&server, &token, "/api/v1/authorization/roles").await;
    assert_eq!((status, roles.as_array().unwrap().len()), (200, 15));
    assert_eq!(get(&server, &token, "/api/v1/authorization/roles/99").await.0, 404);
}

#[tokio::test]
async fn many_rules_are_made_and_taken_at_once() {
    let server = Server::with_teams().await;
    let (one, _, _) = program(&server, "one").await;
    let (two, _, _) = program(&server, "two").await;
    let subject = |id: &str| json!({"subjectId": id, "subjectType": "service-account"});
    let body = json!({"payload": {
        "roleId": 6, "subjects": [subject(&one), subject(&two), subject("nobody")],
        "scopes": [{"scopeId": "1", "scopeType": "project"}, {"scopeId": "2", "scopeType": "project"}],
    }});
    let (status, done) = server.post(&format!("{RULES}/batch-create"), body).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(done["succeeded"].as_array().unwrap().len(), 4, "{done}");
    assert_eq!(done["failed"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!(done["failed"][0]["code"], 400);
    assert_eq!(done["failed"][0]["payload"]["subjectId"], "nobody");
    let mut ids: Vec<String> =
        done["succeeded"].as_array().unwrap().iter().map(|rule| rule["id"].to_string()).collect();
    ids.push("99999".to_owned());
    let count = async || server.get(&format!("{RULES}/count")).await["count"].clone();
    for (action, left) in [("validate_delete", 4), ("delete", 0)] {
        let body = json!({"action": action, "ids": ids});
        let (_, done) = server.post(&format!("{RULES}/batch"), body).await;
        assert_eq!(done["succeeded"].as_array().unwrap().len(), 4, "{done}");
        assert_eq!(done["failed"][0]["code"], 404, "{done}");
        assert_eq!(count().await, left, "{action}");
    }
    let (status, _) = server
        .post(&format!("{RULES}/batch"), json!({"action": "delete", "ids": vec!["1"; 501]}))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn every_route_says_who_may_use_it() {
    let server = Server::new().await;
    for (id, method, path) in operations(&server).await {
        let path = path.replace(['{', '}'], "");
        let request = server.request(&method, &path).body(Body::empty()).unwrap();
        let answer = server.send(request).await;
        // Streams have no end, and are no refusals.
        if answer.status() == StatusCode::FORBIDDEN {
            let said = text(&read(answer).await.1, "message");
            assert!(!said.starts_with("this route says not"), "{id} needs `.needs(…)` or `.own()`");
        }
    }
}
