//! Credentials: what is shown of them, what is stored, who can use them, and what a run gets.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep, of_tenant};
use crate::iam::{get, give, program};
use crate::refusals::refused;
use crate::server::Server;

const ALL: &str = "/api/v1/asset/credentials";
const TRAININGS: &str = "/api/v1/workloads/trainings";
const HUSH: &str = "hush-9c1e";

/// Each kind: where it lies, its word, one of it, and what is shown of that.
pub(crate) fn one_of_each() -> Vec<(&'static str, &'static str, Value, Value)> {
    vec![
        (
            "credentials/password",
            "password",
            json!({"user": "ann", "password": HUSH}),
            json!({"user": "ann"}),
        ),
        (
            "credentials/access-key",
            "accessKey",
            json!({"accessKeyId": "AK", "secretAccessKey": HUSH}),
            json!({"accessKeyId": "AK"}),
        ),
        (
            "credentials/docker-registry",
            "dockerRegistry",
            json!({"url": "nvcr.io", "user": "ann", "password": HUSH}),
            json!({"url": "nvcr.io", "user": "ann"}),
        ),
        (
            "credentials/generic-secret",
            "genericSecret",
            json!({"keyValuePairs": [{"key": "a", "value": HUSH}, {"key": "b", "value": ""}]}),
            json!({"keyValuePairs": [{"key": "a"}, {"key": "b"}]}),
        ),
        ("credentials/ngc-api-key", "ngcApiKey", json!({"ngc_api_key": HUSH}), json!({})),
    ]
}

/// The shown specification without the number of the key, which must be there.
fn shown(spec: &Value) -> Value {
    let mut spec = spec.clone();
    assert!(spec.as_object_mut().unwrap().remove("keyId").unwrap().is_u64());
    spec
}

#[tokio::test]
async fn no_answer_shows_a_secret_and_nothing_is_stored_in_clear() {
    let server = Server::with_teams().await;
    let mut answers = Vec::new();
    for (path, kind, spec, public) in one_of_each() {
        let id = keep(&server, path, &of_tenant(kind), &spec).await;
        let one = format!("/api/v1/asset/{path}/{id}");
        let kept = server.get(&one).await;
        assert_eq!(shown(&kept["spec"]), public, "{path}");
        assert_eq!(kept["meta"]["kind"], *kind);
        let all = server.get(&format!("{ALL}?name={kind}")).await;
        assert_eq!(shown(&all["entries"][0]["spec"][kind]), public, "{path}");
        let renamed = json!({"meta": {"description": "d"}}).to_string();
        let (status, changed) = server.raw("PUT", &one, &renamed).await;
        assert_eq!((status, shown(&changed["spec"])), (StatusCode::ACCEPTED, public.clone()));
        assert_eq!(changed["meta"]["description"], "d");
        let anew = json!({"spec": spec}).to_string();
        let (status, again) = server.raw("PUT", &one, &anew).await;
        assert_eq!((status, shown(&again["spec"])), (StatusCode::ACCEPTED, public));
        answers.extend([kept, all, changed, again]);
        if kind == "ngcApiKey" {
            let (status, _) = server.raw("DELETE", &one, "").await;
            assert_eq!(status, StatusCode::ACCEPTED);
        }
    }
    answers.push(server.get("/api/v1/audit/log?limit=500").await);
    answers.push(server.get(ALL).await);
    assert!(answers.iter().all(|answer| !answer.to_string().contains(HUSH)));
    let mut looked_at = 0;
    for entry in std::fs::read_dir(server.dir.path()).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        looked_at += bytes.len();
        let found = bytes.windows(HUSH.len()).any(|part| part == HUSH.as_bytes());
        assert!(!found, "{}", entry.path().display());
    }
    assert!(looked_at > 100_000, "the database is among them");
}

#[tokio::test]
async fn a_run_gets_the_values_and_the_workload_shows_where_they_come_from() {
    let server = Server::with_teams().await;
    let pairs = json!({"keyValuePairs": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]});
    let id = keep(&server, "credentials/generic-secret", &of_tenant("pairs"), &pairs).await;
    let ngc = json!({"ngc_api_key": "k-1"});
    keep(&server, "credentials/ngc-api-key", &of_tenant("ngc"), &ngc).await;
    let lab = json!({"image": "lab", "environmentVariables": [
        {"name": "A", "credential": {"assetId": id, "key": "a"}},
        {"name": "B", "value": "plain"}]});
    let lab = keep(&server, "environment", &of_tenant("lab"), &lab).await;
    let files = json!({"credentialAssetId": id, "mountPath": "/creds", "defaultMode": "0400"});
    let files = keep(&server, "datasource/secrets", &of_tenant("files"), &files).await;
    let spec = json!({
        "assets": {"environment": lab, "datasources": [{"id": files, "kind": "secret-volume"}]},
        "environmentVariables": [{"name": "NGC", "secret": {"name": "ngc"}}],
        "storage": {"secretVolume": [{"secret": "ngc", "mountPath": "/ngc"}]},
    });
    let (status, made) = server.post(TRAININGS, server.job("t", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let workload = made["workloadId"].as_str().unwrap();
    server.phase(workload, "Running").await;
    let given = server.engine.secrets_of("t");
    let want = [
        "Variable(\"A\")=1",
        "Variable(\"NGC\")=k-1",
        "File { path: \"/creds/a\", mode: 256 }=1",
        "File { path: \"/creds/b\", mode: 256 }=2",
        "File { path: \"/ngc/NGC_API_KEY\", mode: 384 }=k-1",
    ];
    assert_eq!(given, want);
    let kept = server.get(&format!("{TRAININGS}/{workload}")).await["spec"].clone();
    let variables = json!([
        {"name": "B", "value": "plain"},
        {"name": "A", "secret": {"name": id, "key": "a"}},
        {"name": "NGC", "secret": {"name": "ngc", "key": "NGC_API_KEY"}},
    ]);
    assert_eq!(kept["environmentVariables"], variables);
    assert_eq!(kept["storage"]["secretVolume"][1]["secret"], "ngc");
    let one = format!("{ALL}/generic-secret/{id}");
    let used = server.get(&format!("{one}?usageInfo=true")).await;
    assert_eq!(used["usedBy"]["trainings"][0]["name"], "t");
    let busy = "workload `t` uses it; delete the workload first";
    refused(&server, ("DELETE", &one, &Value::Null), 409, busy).await;
}

#[tokio::test]
async fn a_project_uses_its_own_credentials_and_those_around_it() {
    let server = Server::with_teams().await;
    let of = |name: &str, id: u64| json!({"name": name, "scope": "project", "projectId": id});
    let spec = |value: &str| json!({"keyValuePairs": [{"key": "k", "value": value}]});
    let kind = "credentials/generic-secret";
    keep(&server, kind, &of_tenant("both"), &spec("outer")).await;
    keep(&server, kind, &of("both", 1), &spec("inner")).await;
    let theirs = keep(&server, kind, &of("theirs", 2), &spec("x")).await;
    let password = json!({"user": "u", "password": "p"});
    keep(&server, "credentials/password", &of_tenant("twice"), &password).await;
    keep(&server, kind, &of_tenant("twice"), &spec("x")).await;
    let job = |secret: Value| {
        server.job(
            "t",
            &json!({"image": "i", "environmentVariables": [
            {"name": "K", "secret": secret}]}),
        )
    };
    for (secret, status, why) in [
        (json!({"name": theirs}), 404, "spec.environmentVariables[0].secret.name: credential"),
        (
            json!({"name": "theirs"}),
            404,
            "spec.environmentVariables[0].secret.name: credential theirs",
        ),
        (
            json!({"name": "twice"}),
            400,
            "spec.environmentVariables[0].secret.name: `twice` is the name of several; give an id",
        ),
        (
            json!({"name": "both", "key": "z"}),
            400,
            "spec.environmentVariables[0].secret.key: `z` is none of its values; `both` has k",
        ),
        (json!({"key": "k"}), 400, "spec.environmentVariables[0].secret.name: must be the name"),
    ] {
        refused(&server, ("POST", TRAININGS, &job(secret)), status, why).await;
    }
    let (status, made) = server.post(TRAININGS, job(json!({"name": "both"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    assert_eq!(server.engine.secrets_of("t"), ["Variable(\"K\")=inner"], "the nearest");
    let (account, _, token) = program(&server, "viewer").await;
    give(&server, &account, 9, ("project", "1")).await;
    let path = format!("{ALL}/generic-secret/{theirs}");
    assert_eq!(get(&server, &token, &path).await.0, 404);
}

#[tokio::test]
async fn wrong_credentials_are_refused_by_the_name_of_the_field_and_without_the_value() {
    let server = Server::with_teams().await;
    let pairs = |pairs: Value| json!({ "keyValuePairs": pairs });
    for (kind, spec, status, why) in [
        ("password", json!({"user": "u"}), 400, "spec.password: must be set"),
        ("password", json!({"password": HUSH}), 400, "spec.user: must be set"),
        ("password", json!({"user": "u", "password": ""}), 400, "spec.password: is empty"),
        (
            "password",
            json!({"user": "u", "password": 4711}),
            400,
            "spec.password: must be a string",
        ),
        ("password", json!({"existingSecretName": "s"}), 422, "spec.existingSecretName: not"),
        ("access-key", json!({"accessKeyId": "a"}), 400, "spec.secretAccessKey: must be set"),
        ("ngc-api-key", json!({"ngc_api_key": "a b"}), 400, "spec.ngc_api_key: holds what no"),
        ("ngc-api-key", json!({"ngc_api_key": "a", "keyId": 7}), 400, "spec.keyId: is the server"),
        ("generic-secret", pairs(json!([])), 400, "spec.keyValuePairs: must be set"),
        (
            "generic-secret",
            pairs(json!([{"key": "../x", "value": HUSH}])),
            400,
            "spec.keyValuePairs[0].key: is no",
        ),
        (
            "generic-secret",
            pairs(json!([{"key": "a"}])),
            400,
            "spec.keyValuePairs[0].value: must be",
        ),
        (
            "generic-secret",
            pairs(json!([{"key": "a", "value": "1"}, {"key": "a", "value": HUSH}])),
            400,
            "spec.keyValuePairs[1].key: `a` is there twice",
        ),
        (
            "generic-secret",
            pairs(json!([{"key": "a", "value": "\0"}])),
            400,
            "spec.keyValuePairs[0].value: has a control character",
        ),
        (
            "generic-secret",
            pairs(json!([{"key": "a", "value": "x".repeat(300_000)}])),
            400,
            "spec: the values have 300000 bytes; at most 262144 are allowed",
        ),
    ] {
        let body = json!({"meta": of_tenant("a"), "spec": spec});
        let path = format!("{ALL}/{kind}");
        let said = server.post(&path, body.clone()).await.1.to_string();
        assert!(!said.contains(HUSH) && !said.contains("4711"), "{said}");
        refused(&server, ("POST", &path, &body), status, why).await;
    }
}
