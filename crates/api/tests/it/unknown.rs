//! Things that a caller may not see are answered as things that are not there: same status, same
//! words.

use serde_json::{Value, json};

use crate::assets::keep;
use crate::iam::{call, get, give, program, text, user};
use crate::server::Server;

/// A training and an asset of each of these kinds in a project.
struct Things {
    training: String,
    environment: String,
    credential: String,
    template: String,
}

const UUID: &str = "01900000-0000-7000-8000-000000000001";

/// Requests about things of a project.
fn requests(things: &Things) -> Vec<(&'static str, String, Value)> {
    let Things { training, environment, credential, template } = things;
    let one = format!("/api/v1/workloads/{training}");
    let typed = format!("/api/v1/workloads/trainings/{training}");
    let batch = json!({"ids": [training], "action": "suspend"});
    let change = json!({"meta": {"name": "b"}, "spec": {}});
    let mut all = vec![("POST", "/api/v1/workloads/batch".to_owned(), batch)];
    for path in [one.clone(), format!("{one}/pods"), format!("{one}/events"), typed.clone()] {
        all.push(("GET", path, Value::Null));
    }
    all.push(("POST", format!("{typed}/suspend"), Value::Null));
    all.push(("DELETE", typed, Value::Null));
    all.push(("GET", format!("/elastane/v1/workloads/{training}/explain"), Value::Null));
    for (kind, id) in [
        ("asset/environment", environment),
        ("asset/credentials/password", credential),
        ("workload-templates/trainings", template),
    ] {
        let path = format!("/api/v1/{kind}/{id}");
        all.push(("GET", path.clone(), Value::Null));
        all.push(("PUT", path.clone(), change.clone()));
        all.push(("DELETE", path, Value::Null));
    }
    all
}

#[tokio::test]
async fn the_same_is_said_of_an_unknown_id_and_of_somebody_elses() {
    let server = Server::with_teams().await;
    let (stranger, _, token) = program(&server, "stranger").await;
    give(&server, &stranger, 6, ("project", "2")).await;
    let meta = json!({"name": "a", "scope": "project", "projectId": 1});
    let of_project = json!({"name": "a", "scopeType": "project", "scopeId": "1"});
    let password = json!({"user": "u", "password": "p"});
    let training = json!({"image": "i"});
    let template = json!({"meta": of_project, "spec": training});
    let path = "/api/v1/workload-templates/trainings";
    let (_, template) = server.post(path, template).await;
    let theirs = Things {
        training: server.train("t", 0).await,
        environment: keep(&server, "environment", &meta, &training).await,
        credential: keep(&server, "credentials/password", &meta, &password).await,
        template: text(&template["meta"], "id"),
    };
    let [training, environment, credential, template] = std::array::from_fn(|_| UUID.to_owned());
    let unknown = Things { training, environment, credential, template };
    for (theirs, unknown) in requests(&theirs).into_iter().zip(requests(&unknown)) {
        let mut said = Vec::new();
        for (method, path, body) in [&theirs, &unknown] {
            let (status, answer) = call(&server, &token, (method, path), body).await;
            said.push(format!("{status} {answer}"));
        }
        let ids = |text: &str| -> String {
            let all = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
            let ids: Vec<_> = all.filter(|word| word.len() == 36).collect();
            ids.iter().fold(text.to_owned(), |text, id| text.replace(id, "ID"))
        };
        assert_eq!(ids(&said[0]), ids(&said[1]), "{} {}", theirs.0, theirs.1);
        assert!(!said[0].starts_with("20") || theirs.1.ends_with("batch"), "{said:?}");
    }
}

#[tokio::test]
async fn members_of_a_project_read_names_of_users_only() {
    let server = Server::with_teams().await;
    let (ann, _) = user(&server, "ann@example.org").await;
    let (editor, _, editors) = program(&server, "editor").await;
    give(&server, &editor, 4, ("project", "1")).await;
    let (manager, _, managers) = program(&server, "manager").await;
    give(&server, &manager, 2, ("department", "1")).await;
    let one = format!("/api/v1/users/{ann}");
    let (status, seen) = get(&server, &editors, &one).await;
    assert_eq!((status, &seen["username"], &seen["lastLogin"]), (200, &json!("ann"), &Value::Null));
    let (_, list) = get(&server, &editors, "/api/v1/users").await;
    let (_, accounts) = get(&server, &editors, "/api/v1/service-accounts").await;
    assert!(!list.to_string().contains("example.org"), "{list}");
    let is_bare = |account: &Value| account["lastLogin"].is_null() && account["name"].is_string();
    assert!(accounts.as_array().unwrap().iter().all(is_bare), "{accounts}");
    // Nor does a filter reveal hidden values.
    let filter = "filterBy=username==ann@example.org";
    let (_, count) = get(&server, &editors, &format!("/api/v1/users/count?{filter}")).await;
    assert_eq!(count["count"], 0);
    // A manager of access rules needs the name of a user.
    let (_, whole) = get(&server, &managers, &one).await;
    assert_eq!(whole["username"], "ann@example.org");
    assert!(whole["lastLogin"].is_string(), "{whole}");
}
