//! Departments, and the projects in them.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::iam::{call, get, give, program};
use crate::server::Server;

const ALL: &str = "/api/v1/org-unit/departments";
const PROJECTS: &str = "/api/v1/org-unit/projects";

async fn department(server: &Server, name: &str, resources: Value) -> String {
    let body = json!({"name": name, "clusterId": server.cluster_id(), "resources": resources});
    let (status, made) = server.post(ALL, body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

async fn project(server: &Server, name: &str, parent: &str) -> Value {
    let mut body = server.team(name);
    body["parentId"] = json!(parent);
    let (status, made) = server.post(PROJECTS, body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made
}

#[tokio::test]
async fn a_set_quota_goes_back_to_the_sum_of_its_projects() {
    let server = Server::with_teams().await;
    let one = "/api/v1/org-unit/departments/1";
    let quota = async || server.get(one).await["totalResources"]["gpuQuota"].clone();
    let resources = format!("{one}/resources");
    let change = async |gpu: Value| {
        let body = json!([{"gpu": gpu}]).to_string();
        server.raw("PATCH", &resources, &body).await.0
    };
    assert_eq!(quota().await, 4);
    assert_eq!(change(json!({"deserved": 9})).await, StatusCode::OK);
    assert_eq!(quota().await, 9);
    assert_eq!(change(json!({"deservedFromProjects": true})).await, StatusCode::OK);
    assert_eq!(quota().await, 4);
    let more = json!([{"gpu": {"deserved": 3}}]).to_string();
    server.raw("PATCH", "/api/v1/org-unit/projects/1/resources", &more).await;
    assert_eq!(quota().await, 5, "it follows the projects again");
    let of_project = json!([{"gpu": {"deservedFromProjects": true}}]).to_string();
    let project = "/api/v1/org-unit/projects/1/resources";
    let (status, refused) = server.raw("PATCH", project, &of_project).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
}

#[tokio::test]
async fn a_department_is_created_read_changed_and_deleted() {
    let server = Server::new().await;
    let gpu = json!([{"gpu": {"deserved": 3, "limit": 4, "overQuotaWeight": 1}}]);
    let path = format!("{ALL}/{}", department(&server, "research", gpu).await);
    let made = server.get(&path).await;
    assert_eq!(
        made["resources"][0]["gpu"],
        json!({"deserved": 3, "limit": 4, "overQuotaWeight": 1})
    );
    assert_eq!((&made["name"], &made["createdBy"]), (&json!("research"), &json!("ada")));

    let body = json!({"description": "d", "resources": []});
    let (status, kept) = server.raw("PUT", &path, &body.to_string()).await;
    assert_eq!((status, &kept["description"]), (StatusCode::OK, &json!("d")));
    assert_eq!(kept["totalResources"]["gpuQuota"], 3);
    let shares = format!("{path}/resources");
    let (_, kept) = server.raw("PATCH", &shares, r#"[{"gpu":{"deserved":2}}]"#).await;
    assert_eq!(kept[0]["gpu"]["limit"], 4);
    let (_, replaced) = server.raw("PUT", &shares, r#"[{"gpu":{"deserved":1}}]"#).await;
    assert_eq!(replaced[0]["gpu"]["limit"], -1);

    let (status, nothing) = server.raw("DELETE", &path, "").await;
    assert_eq!((status, nothing), (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(server.raw("GET", &path, "").await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.get(&format!("{ALL}/count")).await, json!({"count": 1}));
}

#[tokio::test]
async fn what_a_department_was_not_given_it_has_from_its_projects() {
    let server = Server::with_teams().await;
    let path = format!("{ALL}/1");
    let shares = format!("{path}/resources");
    for (method, at, body, quota, limit) in [
        ("PATCH", &shares, json!([{"gpu": {"limit": 9}}]), 4, 9),
        ("PUT", &shares, json!([{"gpu": {"deserved": 1}}]), 1, -1),
        ("PUT", &path, json!({"description": "d"}), 1, -1),
        ("PUT", &path, json!({"resources": []}), 1, -1),
        ("PUT", &shares, json!([{"cpu": {"limit": 9}}]), 4, -1),
        ("PATCH", &shares, json!([{"gpu": {"deserved": 2}}]), 2, -1),
        ("PUT", &shares, json!([]), 4, -1),
    ] {
        let (status, now) = server.raw(method, at, &body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{now}");
        let shares = if at == &path { &now["resources"] } else { &now };
        let gpu = &shares[0]["gpu"];
        assert_eq!((&gpu["deserved"], &gpu["limit"]), (&json!(quota), &json!(limit)), "{body}");
    }
}

#[tokio::test]
async fn a_time_limit_is_set_without_saying_the_quota_again() {
    let server = Server::with_teams().await;
    let path = format!("{PROJECTS}/1");
    let rules = json!({"schedulingRules": {"trainingJobTimeLimitSeconds": 60}});
    let (status, changed) = server.raw("PUT", &path, &rules.to_string()).await;
    assert_eq!((status, &changed["totalResources"]["gpuQuota"]), (StatusCode::OK, &json!(2)));
    assert_eq!(changed["schedulingRules"], rules["schedulingRules"]);
}

#[tokio::test]
async fn a_project_says_that_its_department_has_less() {
    let server = Server::new().await;
    let gpu = json!([{"gpu": {"deserved": 1}}]);
    let made = project(&server, "big", &department(&server, "small", gpu).await).await;
    assert_eq!(
        made["status"]["phaseMessage"],
        "the quota is more than department small has: 2 of 1 GPU in node pool default; what is \
         above counts as over quota"
    );
}

#[tokio::test]
async fn a_project_says_that_the_quotas_of_its_department_do_not_suffice_for_all() {
    let server = Server::new().await;
    let gpu = json!([{"gpu": {"deserved": 3, "limit": 3}}]);
    let small = department(&server, "small", gpu).await;
    let first = project(&server, "first", &small).await;
    assert_eq!(first["status"]["phaseMessage"], "");
    let second = project(&server, "second", &small).await;
    assert_eq!(
        second["status"]["phaseMessage"],
        "the quotas of the projects of department small are together more than it has: 4 of 3 GPUs \
         in node pool default; they cannot all be used at once"
    );
}

#[tokio::test]
async fn a_project_belongs_to_the_department_it_names_or_to_the_default_one() {
    let server = Server::with_teams().await;
    let id = department(&server, "research", json!([])).await;
    let made = project(&server, "vision", &id).await;
    assert_eq!((&made["parentId"], &made["parent"]["name"]), (&json!(id), &json!("research")));
    let found = server.get(&format!("{PROJECTS}?filterBy=parentName==research")).await;
    assert_eq!(found["projects"][0]["name"], "vision");
    assert_eq!(server.get(&format!("{PROJECTS}/1")).await["parent"]["name"], "default");

    let parent = server.get(&format!("{ALL}/{id}")).await;
    assert_eq!(parent["children"], json!([{"id": "3", "name": "vision"}]));
    // Without resources of its own: those of its projects together.
    assert_eq!(parent["totalResources"]["gpuQuota"], 2);
    assert_eq!(server.get(&format!("{ALL}/1")).await["totalResources"]["gpuQuota"], 4);

    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 1}});
    let job =
        json!({"name": "w", "projectId": "3", "clusterId": server.cluster_id(), "spec": spec});
    let (_, made) = server.post("/api/v1/workloads/trainings", job).await;
    assert_eq!(made["departmentId"], json!(id));
    let workload = server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    assert_eq!(workload["departmentName"], "research");
    let parent = server.get(&format!("{ALL}/{id}")).await;
    assert_eq!(parent["status"]["quotaStatus"]["allocated"]["gpu"], 1);
}

#[tokio::test]
async fn departments_are_listed_filtered_sorted_and_paged() {
    let server = Server::new().await;
    for (name, quota) in [("b", 1), ("a", 3), ("c", 2)] {
        department(&server, name, json!([{"gpu": {"deserved": quota}}])).await;
    }
    let names = |page: Value| {
        let all = page["departments"].as_array().unwrap().clone();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = async |query: &str| server.get(&format!("{ALL}?{query}")).await;
    assert_eq!(names(list("sortBy=name").await), ["a", "b", "c", "default"]);
    assert_eq!(names(list("filterBy=totalGpuQuota%3E%3D2&sortBy=totalGpuQuota").await), ["c", "a"]);
    assert_eq!(names(list("search=DEF").await), ["default"]);
    let page = list("sortBy=name&limit=3&sortOrder=desc").await;
    assert_eq!((names(page.clone()).len(), &page["next"]), (3, &json!(3)));
    assert_eq!(names(list("sortBy=name&limit=3&offset=3&sortOrder=desc").await), ["a"]);
    assert_eq!(server.get(&format!("{ALL}/count?filterBy=name==a")).await, json!({"count": 1}));
}

#[tokio::test]
async fn what_cannot_be_done_to_departments_is_refused_and_says_why() {
    let server = Server::with_teams().await;
    let id = department(&server, "research", json!([{}])).await;
    project(&server, "vision", &id).await;
    let cluster = server.cluster_id();
    let one = format!("{ALL}/{id}");
    let named = |name: &str| json!({"name": name, "clusterId": cluster, "resources": [{}]});
    for (method, path, body, status, message) in [
        ("POST", ALL, named("research"), 409, "department `research` already exists"),
        ("POST", ALL, named("No Good"), 400, "name `No Good` is not allowed"),
        ("POST", ALL, json!({"name": "x", "clusterId": "y"}), 404, "no cluster `y`"),
        (
            "POST",
            ALL,
            json!({"name": "x", "resources": [{"gpu": {"deserved": -3}}]}),
            400,
            "resources[0].gpu.deserved: `-3` is negative",
        ),
        (
            "POST",
            ALL,
            json!({"name": "x", "resources": [{"gpu": {"deserved": 3, "limit": 1}}]}),
            400,
            "the GPU limit (1) is below the GPU quota (3)",
        ),
        ("PUT", &one, json!({"resource": []}), 400, "resource: unknown field `resource`; did you"),
        ("GET", &format!("{ALL}/77"), Value::Null, 404, "department 77 was not found"),
        ("GET", &format!("{ALL}?sortBy=nam"), Value::Null, 400, "sortBy: unknown field `nam`"),
        ("DELETE", &one, Value::Null, 409, "department `research` still has 1 project (vision)"),
        (
            "DELETE",
            &format!("{ALL}/1"),
            Value::Null,
            409,
            "department `default` is where projects go that name none; it cannot be deleted",
        ),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (got, answer) = server.raw(method, path, &body).await;
        assert_eq!(got.as_u16(), status, "{method} {path} {body}: {answer}");
        let said = answer["message"].as_str().unwrap();
        assert!(said.starts_with(message), "{method} {path}\n got: {said}\nwant: {message}");
    }
    for project in ["1", "2"] {
        server.raw("DELETE", &format!("{PROJECTS}/{project}"), "").await;
    }
    let (status, answer) = server.raw("DELETE", &format!("{ALL}/1"), "").await;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
}

#[tokio::test]
async fn what_a_project_cannot_be_yet_is_refused_by_name() {
    let server = Server::new().await;
    for (extra, want) in [
        (json!({"parentId": "9"}), "parentId: there is no department `9`"),
        (
            json!({"requestedNamespace": "x"}),
            "requestedNamespace: a namespace other than `runai-team-a`",
        ),
        (json!({"enforceRunaiScheduler": false}), "enforceRunaiScheduler: false is not supported"),
        (json!({"defaultNodePools": ["a100"]}), "defaultNodePools: there is no node pool `a100`"),
        (
            json!({"schedulingRules": {"trainingJobMaxIdleDurationSeconds": 0}}),
            "schedulingRules.trainingJobMaxIdleDurationSeconds: `0` is not allowed; write 1 to",
        ),
        (
            json!({"schedulingRules": {"trainingJobTimeLimitSeconds": 0}}),
            "schedulingRules.trainingJobTimeLimitSeconds: `0` is not allowed; write 1 to",
        ),
    ] {
        let mut body = server.team("team-a");
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let (_, answer) = server.post(PROJECTS, body).await;
        let got = answer["message"].as_str().unwrap();
        assert!(got.starts_with(want), "{extra}\n got: {got}\nwant: {want}");
    }
}

#[tokio::test]
async fn a_department_administrator_acts_in_that_department_only() {
    let server = Server::with_teams().await;
    let id = department(&server, "research", json!([])).await;
    project(&server, "vision", &id).await;
    let (head, _, token) = program(&server, "head").await;
    give(&server, &head, 2, ("department", &id)).await;
    let list = get(&server, &token, PROJECTS).await.1;
    let names = list["projects"].as_array().unwrap().iter().map(|one| &one["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["vision"]);
    let departments = get(&server, &token, ALL).await.1;
    assert_eq!(departments["departments"].as_array().unwrap().len(), 1);
    let below = |name: &str, parent: &str| {
        let mut body = server.team(name);
        body["parentId"] = json!(parent);
        body
    };
    let (own, others) = (format!("{ALL}/{id}"), format!("{ALL}/1"));
    for (method, path, body, status) in [
        ("POST", PROJECTS, below("more", &id), 201),
        ("POST", PROJECTS, below("elsewhere", "1"), 403),
        ("POST", PROJECTS, server.team("nowhere"), 403),
        ("GET", &format!("{PROJECTS}/3"), Value::Null, 200),
        ("GET", &format!("{PROJECTS}/1"), Value::Null, 403),
        ("PUT", &own, json!({"description": "d", "resources": []}), 200),
        ("PUT", &others, json!({"description": "d", "resources": []}), 403),
        ("DELETE", &own, Value::Null, 403),
        ("POST", ALL, json!({"name": "third"}), 403),
    ] {
        let (got, answer) = call(&server, &token, (method, path), &body).await;
        assert_eq!(got.as_u16(), status, "{method} {path} {body}: {answer}");
    }
}

#[tokio::test]
async fn shares_of_every_resource_and_rules_are_told_back() {
    let server = Server::with_teams().await;
    let path = format!("{PROJECTS}/1");
    let cpu = json!({"deserved": 1000, "limit": 2000, "overQuotaWeight": 5});
    let memory = json!({"deserved": -1, "limit": 64, "overQuotaWeight": 1, "units": "Mib"});
    let shares = json!({"gpu": {"deserved": 1}, "cpu": cpu, "memory": memory, "rank": "High"});
    let mut rules = json!({
        "trainingJobTimeLimitSeconds": 60, "interactiveJobTimeLimitSeconds": 90,
        "trainingJobMaxIdleDurationSeconds": 61, "interactiveJobMaxIdleDurationSeconds": 62,
        "interactiveJobPreemptIdleDurationSeconds": 63,
    });
    let body = json!({"resources": [shares], "schedulingRules": rules});
    let (status, changed) = server.raw("PUT", &path, &body.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let told = &changed["resources"][0];
    assert_eq!((&told["cpu"], &told["memory"], &told["rank"]), (&cpu, &memory, &json!("High")));
    assert_eq!(changed["schedulingRules"], rules);

    // The department's rules tighten those of its projects; a project's own stay its own.
    let own = json!({"resources": [], "schedulingRules": {"trainingJobTimeLimitSeconds": 30}});
    let (_, above) = server.raw("PUT", &format!("{ALL}/1"), &own.to_string()).await;
    assert_eq!(above["schedulingRules"], own["schedulingRules"]);
    let project = server.get(&path).await;
    assert_eq!(project["schedulingRules"], rules);
    let own = std::mem::replace(&mut rules["trainingJobTimeLimitSeconds"], json!(30));
    assert_eq!(project["effective"]["schedulingRules"], rules);
    rules["trainingJobTimeLimitSeconds"] = own;
    // An omitted field keeps its value; an empty object removes it.
    let kept = json!({"resources": [{"gpu": {"deserved": 1}}]}).to_string();
    let (_, kept) = server.raw("PUT", &path, &kept).await;
    assert_eq!(kept["schedulingRules"], rules);
    let none = json!({"resources": [{}], "schedulingRules": {}}).to_string();
    let (_, none) = server.raw("PUT", &path, &none).await;
    assert_eq!(none["schedulingRules"], json!({}));
}
