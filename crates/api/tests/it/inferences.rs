//! Inferences through the interface: what may be asked for, what is shown, and who may ask one.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, read};

const ALL: &str = "/api/v1/workloads/inferences";

fn spec() -> Value {
    json!({
        "image": "i",
        "servingPort": {"container": 8000},
        "autoscaling": {"minReplicas": 0, "maxReplicas": 2, "metric": "throughput",
                        "metricThreshold": 10, "initialReplicas": 0},
    })
}

fn with(path: &str, value: Value) -> Value {
    let mut spec = spec();
    let mut at = &mut spec;
    for part in path.split('.') {
        at = &mut at[part];
    }
    *at = value;
    spec
}

async fn made(server: &Server, name: &str, spec: &Value) -> Value {
    let (status, made) = server.post(ALL, server.job(name, spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made
}

async fn patch(server: &Server, id: &str, change: &Value) -> (StatusCode, Value) {
    server.raw("PATCH", &format!("{ALL}/{id}"), &change.to_string()).await
}

/// A request to an inference, with a token or without.
async fn ask(server: &Server, of: &str, token: Option<&String>) -> (StatusCode, Value) {
    let mut request = Request::builder().uri("/x").header("host", format!("{of}.localhost"));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    read(server.send(request.body(Body::empty()).unwrap()).await).await
}

#[tokio::test]
async fn what_is_asked_for_is_shown_with_its_defaults() {
    let server = Server::with_teams().await;
    let answer = made(&server, "svc", &spec()).await;
    let spec = &answer["spec"];
    assert_eq!(spec["priorityClass"], "inference");
    assert_eq!(spec["preemptibility"], "non-preemptible");
    assert_eq!(spec["category"], "Deploy");
    assert_eq!(spec["autoscaling"]["metricThresholdPercentage"], 70);
    assert_eq!(spec["servingPort"]["authorizationType"], "authenticatedUsers");
    assert_eq!(spec["servingConfiguration"]["requestTimeoutSeconds"], 300);
    let id = answer["workloadId"].as_str().unwrap();
    let shown = server.get(&format!("/api/v1/workloads/{id}")).await;
    assert_eq!((&shown["type"], &shown["phase"]), (&json!("Inference"), &json!("Running")));
    assert_eq!(shown["requestedPods"], json!({"number": 0, "min": 0, "max": 2}));
    assert_eq!(shown["urls"], json!(["http://svc--team-a.localhost/"]));
    assert_eq!(shown["actionsSupport"], json!({"delete": true, "suspend": false}));
    // Its revisions are no workloads of their own in any list.
    assert_eq!(server.get("/api/v1/workloads/count").await["count"], 1);
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_say() {
    let server = Server::with_teams().await;
    let answer = made(&server, "svc", &spec()).await;
    let id = answer["workloadId"].as_str().unwrap();
    let change = json!({"spec": {"autoscaling": {"maxReplicas": 5}, "image": "j"}});
    let (status, changed) = patch(&server, id, &change).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{changed}");
    let mut want = answer["spec"].clone();
    want["autoscaling"]["maxReplicas"] = json!(5);
    want["image"] = json!("j");
    assert_eq!(changed["spec"], want);

    let all = server.get(&format!("{ALL}/{id}/revisions")).await;
    let names: Vec<_> = all["revisions"].as_array().unwrap().iter().map(|r| &r["name"]).collect();
    // The old one is retired as soon as anybody looks: it has no replicas.
    assert_eq!(names, ["svc.1", "svc.2"]);
    assert_eq!(server.get(&format!("{ALL}/{id}/revisions/count")).await["count"], 2);
    let second = &all["revisions"][1];
    assert_eq!((&second["workloadId"], &second["images"]), (&json!(id), &json!(["j"])));
    let one = format!("{ALL}/revisions/{}", second["id"].as_str().unwrap());
    assert_eq!(server.get(&one).await["name"], "svc.2");
    assert_eq!(server.get(&format!("{one}/pods")).await["pods"], json!([]));
    let events = server.get(&format!("{one}/events")).await;
    assert_eq!(events["events"][0]["reason"], "RevisionCreated");
    assert_eq!(events["events"].as_array().unwrap().len(), 1, "only its own");
    let none = server.get(&format!("{one}/events?offset=1&limit=1")).await;
    assert_eq!((&none["events"], &none["next"]), (&json!([]), &Value::Null));
    let history = server.get(&format!("{one}/history")).await;
    assert_eq!(history["records"].as_array().unwrap().len(), 1);

    let (status, error) = patch(&server, id, &json!({"spec": {"assets": {}}})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error["message"].as_str().unwrap().contains("spec.assets"), "{error}");
}

#[tokio::test]
async fn numbers_of_replicas_change_without_a_revision() {
    let server = Server::with_teams().await;
    let answer = made(&server, "svc", &spec()).await;
    let id = answer["workloadId"].as_str().unwrap();
    let scaling = json!({"maxReplicas": 5, "scaleDownDelaySeconds": 9, "concurrencyHardLimit": 3});
    let (status, changed) = patch(&server, id, &json!({"spec": {"autoscaling": scaling}})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{changed}");
    for (name, value) in scaling.as_object().unwrap() {
        assert_eq!(&changed["spec"]["autoscaling"][name], value, "{name}");
    }
    assert_eq!(server.get(&format!("{ALL}/{id}/revisions/count")).await["count"], 1);
    let (_, same) = patch(&server, id, &json!({"spec": {"autoscaling": scaling}})).await;
    assert_eq!(same["spec"], changed["spec"]);
    assert_eq!(server.get(&format!("{ALL}/{id}/revisions/count")).await["count"], 1);
    // Other values beside the numbers need other replicas.
    let both = json!({"spec": {"autoscaling": {"maxReplicas": 6}, "image": "j"}});
    patch(&server, id, &both).await;
    assert_eq!(server.get(&format!("{ALL}/{id}/revisions/count")).await["count"], 2);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_its_field() {
    let server = Server::with_teams().await;
    let window = |text: &str| {
        let name = "autoscaling.knative.dev/window";
        with("annotations", json!([{"name": name, "value": text}]))
    };
    let public_with_users =
        json!({"container": 1, "authorizationType": "public", "authorizedUsers": ["ada"]});
    for (spec, status, field) in [
        (json!({"image": "i"}), 400, "spec.servingPort.container: must be set"),
        (with("servingPort.protocol", json!("grpc")), 422, "spec.servingPort.protocol: grpc"),
        (with("servingPort", public_with_users), 400, "authorizationType"),
        (
            with("servingPort.authorizationType", json!("authorizedUsers")),
            400,
            "spec.servingPort.authorizedUsers: must name a user or group",
        ),
        (
            with("servingPort.authorizationType", json!("authorizedGroups")),
            422,
            "spec.servingPort.authorizedGroups",
        ),
        (with("autoscaling.metric", json!("gpu")), 400, "use concurrency, throughput or latency"),
        (with("autoscaling.metricThreshold", Value::Null), 400, "spec.autoscaling.metricThreshold"),
        (with("autoscaling.metricThresholdPercentage", json!(101)), 400, "from 1 to 100"),
        (with("autoscaling.scaleDownDelaySeconds", json!(3601)), 400, "use 0 to 3600"),
        (
            with("servingConfiguration", json!({"requestTimeoutSeconds": 3601})),
            400,
            "spec.servingConfiguration.requestTimeoutSeconds: 3601 s is not allowed; use 1 to 3600",
        ),
        (
            with("servingConfiguration", json!({"initializationTimeoutSeconds": u32::MAX})),
            400,
            "use 1 to 86400",
        ),
        (
            with("probes", json!({"readiness": {"timeoutSeconds": 3601}})),
            400,
            "spec.probes.readiness.timeoutSeconds: 3601 s is not allowed",
        ),
        (
            with("probes", json!({"readiness": {"initialDelaySeconds": 3601}})),
            400,
            "spec.probes.readiness.initialDelaySeconds: 3601 s is not allowed",
        ),
        (with("autoscaling.maxReplicas", json!(101)), 400, "use 1 to 100"),
        (with("restartPolicy", json!("Never")), 400, "spec.restartPolicy"),
        (
            with("probes", json!({"readiness": {"handler": {"httpGet": {"port": 1}}}})),
            400,
            "spec.probes.readiness.handler.httpGet.port",
        ),
        (window("1s"), 400, "from 6s to 1h"),
        (window("6é"), 400, "from 6s to 1h"),
        (window(""), 400, "from 6s to 1h"),
    ] {
        let (got, error) = server.post(ALL, server.job("svc", &spec)).await;
        let text = error["message"].as_str().unwrap_or_default();
        assert!(got.as_u16() == status && text.contains(field), "{got} {error}, not {field}");
    }
    let (status, error) =
        server.post("/api/v1/workloads/trainings", server.job("t", &spec())).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error["message"].as_str().unwrap().contains("inferences only"), "{error}");
}

#[tokio::test]
async fn only_its_audience_may_ask() {
    let server = Server::with_teams().await;
    let closed = |kind: &str, users: Value| {
        let mut spec = with("servingPort.authorizationType", json!(kind));
        spec["servingPort"]["authorizedUsers"] = users;
        spec["servingConfiguration"] = json!({"requestTimeoutSeconds": 1});
        spec
    };
    let me = made(&server, "open", &closed("public", Value::Null)).await["createdBy"].clone();
    made(&server, "known", &closed("authenticatedUsers", Value::Null)).await;
    made(&server, "mine", &closed("authorizedUsers", json!([me]))).await;
    made(&server, "others", &closed("authorizedUsers", json!(["somebody@else"]))).await;
    // An admitted caller finds no replica in time: the runs of this engine do not listen.
    for (name, without, with_token) in
        [("open", 503, 503), ("known", 401, 503), ("mine", 401, 503), ("others", 401, 403)]
    {
        let path = format!("{name}--team-a");
        let (status, answer) = ask(&server, &path, None).await;
        assert_eq!(status.as_u16(), without, "{name}: {answer}");
        let (status, answer) = ask(&server, &path, Some(&server.token)).await;
        assert_eq!(status.as_u16(), with_token, "{name}: {answer}");
    }
    let (status, answer) = ask(&server, "open--team-a", Some(&server.token)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let why = answer["message"].as_str().unwrap();
    assert!(why.contains("no replica was ready within 1 s"), "{why}");
    let (status, _) = ask(&server, "open--team-b", Some(&server.token)).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "it is another project's");
}

#[tokio::test]
async fn what_has_failed_says_why() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "broken", "servingPort": {"container": 1}});
    let id = made(&server, "svc", &spec).await["workloadId"].as_str().unwrap().to_owned();
    let failed = |shown: &Value| shown["phase"] == "Failed";
    let shown = server.until(&format!("/api/v1/workloads/{id}"), failed).await;
    assert_eq!(shown["phaseMessage"], "could not be started: the image is broken");
    let explained = server.get(&format!("/elastane/v1/workloads/{id}/explain")).await;
    let summary = "svc has failed: could not be started: the image is broken";
    assert_eq!(explained["summary"], summary);
    let reasons = [&explained["pendingReasons"], &shown["additionalFields"]["pendingReasons"]];
    for reason in reasons.map(|reasons| &reasons[0]) {
        let why = "failed: could not be started: the image is broken";
        assert_eq!((&reason["code"], &reason["message"]), (&json!("E212"), &json!(why)));
    }
    // Its earlier output can be read.
    let logs = server.request("GET", &format!("/elastane/v1/workloads/{id}/logs"));
    assert_eq!(server.send(logs.body(Body::empty()).unwrap()).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_change_may_not_name_a_pool_that_is_not_there() {
    let server = Server::with_teams().await;
    let id = made(&server, "svc", &spec()).await["workloadId"].as_str().unwrap().to_owned();
    let (status, answer) = patch(&server, &id, &json!({"spec": {"nodePools": ["gone"]}})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    let said = answer["message"].as_str().unwrap();
    assert!(said.starts_with("nodePools: there is no node pool `gone`"), "{said}");
}

#[tokio::test]
async fn a_change_may_start_from_an_earlier_revision() {
    let server = Server::with_teams().await;
    let id = made(&server, "svc", &spec()).await["workloadId"].as_str().unwrap().to_owned();
    let better = json!({"spec": {"image": "better", "command": "serve"}});
    let (status, changed) = patch(&server, &id, &better).await;
    assert_eq!((status, &changed["spec"]["image"]), (StatusCode::ACCEPTED, &json!("better")));
    let (status, back) = patch(&server, &id, &json!({"spec": {}, "fromRevision": 1})).await;
    assert_eq!((status, &back["spec"]["image"]), (StatusCode::ACCEPTED, &json!("i")), "{back}");
    assert!(back["spec"]["command"].is_null(), "{back}");
    let newer = json!({"spec": {"priorityClass": "high"}, "fromRevision": 2});
    let (_, newer) = patch(&server, &id, &newer).await;
    assert_eq!(
        (&newer["spec"]["image"], &newer["spec"]["command"]),
        (&json!("better"), &json!("serve"))
    );
    let (status, error) = patch(&server, &id, &json!({"spec": {}, "fromRevision": 9})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let why = "fromRevision: there is no revision 9; known are 1, 2, 3, 4";
    assert_eq!(error["message"], why);
}
