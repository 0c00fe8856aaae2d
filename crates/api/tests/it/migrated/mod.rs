//! Databases of earlier revisions, with something of everything in them: today's server opens them
//! and says the same of every object. How they were made is in `README.md` beside this.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use axum::http::StatusCode;
use control::Clock;
use engine::{RunKey, RunState};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use spec::{NodeGpu, NodeSpec};
use spec::{RunSpec, SecretTo};
use units::Instant;
use uuid::Uuid;

use crate::engine_double::EngineDouble;
use crate::iam::grant_client;
use crate::server::Server;

const DATABASE: &str = include_str!("be8399f.sql");

/// Recorded answers of the server of that revision.
#[derive(Deserialize)]
struct Left {
    /// Time of the recording, in milliseconds.
    at_ms: u64,
    /// Key that encrypts its credentials.
    credentials_key: String,
    /// Secret of its service account.
    client_secret: String,
    /// Answers by path.
    answers: BTreeMap<String, Value>,
}

/// Time stands still at this moment: nothing is over, or too old, because the test runs later.
struct Still(u64);

impl Clock for Still {
    fn now(&self) -> Instant {
        Instant(self.0)
    }
    fn up_ms(&self) -> u64 {
        1_000_000
    }
    fn boot(&self) -> Uuid {
        Uuid::nil()
    }
    fn sleep_until_up_ms(&self, _: u64) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

fn left() -> Left {
    serde_json::from_str(include_str!("be8399f.json")).unwrap()
}

/// The nodes of that server, without the labels that they were given while it ran.
fn nodes(left: &Left) -> Vec<NodeSpec> {
    let told = left.answers["/api/v1/nodes"]["nodes"].as_array().unwrap();
    let node = |told: &Value| NodeSpec {
        taints: Vec::new(),
        name: told["name"].as_str().unwrap().to_owned(),
        gpu_type: "simulated".into(),
        simulated: true,
        gpus: told["gpuMemoryBytes"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
            .map(|(index, bytes)| NodeGpu::new(format!("GPU-sim-{index}"), bytes.as_u64().unwrap()))
            .collect(),
        cpu_millis: 64_000,
        memory_bytes: 64 << 30,
        pods_max: None,
        labels: BTreeMap::default(),
    };
    told.iter().map(node).collect()
}

/// An engine in which everything that ran still runs.
async fn engine(dir: &std::path::Path) -> EngineDouble {
    let engine = EngineDouble::default();
    let stored = store::Store::open(dir).await.unwrap().load().await.unwrap();
    for pod in stored.pods.iter().filter(|pod| pod.body.current.is_some()) {
        let workload = stored.workloads.iter().find(|one| one.id == pod.workload_id).unwrap();
        let (set, _) = workload.spec.set_of(pod.index as usize);
        let key = RunKey { pod: pod.id, generation: pod.generation };
        let spec = RunSpec { key, ..spec::without_place(&workload.spec, set) };
        let started = pod.body.started_at_ms.map(Instant);
        let running = |started_at| RunState::Running { pid: None, started_at };
        engine.goes_on(spec, started.map_or(RunState::Starting, running));
    }
    engine
}

/// Today's server with that state.
async fn server(left: &Left) -> Server {
    let dir = tempfile::tempdir().unwrap();
    store::testing::fill(dir.path(), DATABASE).await;
    let key = dir.path().join(auth::VAULT_FILE);
    std::fs::write(&key, &left.credentials_key).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let engine = engine(dir.path()).await;
    Server::over(dir, nodes(left), engine, Arc::new(Still(left.at_ms))).await
}

/// Fields that may differ.
const MAY_DIFFER: [&str; 20] = [
    // Changes with time: timestamps, and sums of the time until now.
    "allocatedGpuHours",
    "at",
    "cost",
    "lastLiveness",
    "lastTransitionTime",
    "lastUpdatedTime",
    "measuredGpuHours",
    "to",
    "totalPendingTimeSeconds",
    "totalRunningTimeSeconds",
    "fairShare",
    // Properties of the server: its version, and its address.
    "version",
    "url",
    "urls",
    // Sentences, which are made when they are read.
    "conditions",
    "message",
    "pendingReasons",
    "phaseMessage",
    // Restarts are those of the pods by now, and a revision without pods asks for nothing.
    "restarts",
    "revisionRequestedResources",
];

/// True for a pod that never ran, which has the name of its first run now.
fn is_name_of_first_run(then: &Value, now: &Value) -> bool {
    let first = then.as_str().and_then(|then| then.strip_suffix("-0"));
    first.is_some_and(|pod| now.as_str() == Some(&*format!("{pod}-1")))
}

/// Everything in `then` that is not the same in `now`, which may have more.
fn differences(at: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            // A node is reported to each server again.
            let may_differ = |key: &str| {
                MAY_DIFFER.contains(&key) || (at.starts_with("/api/v1/nodes") && key == "updatedAt")
            };
            for (key, then) in then.iter().filter(|(key, _)| !may_differ(key)) {
                let now = now.get(key).unwrap_or(&Value::Null);
                differences(&format!("{at}.{key}"), then, now, found);
            }
        }
        (Value::Array(then), Value::Array(now))
            if then.len() == now.len() || (at.ends_with(".records") && then.len() < now.len()) =>
        {
            for (number, (then, now)) in then.iter().zip(now).enumerate() {
                differences(&format!("{at}[{number}]"), then, now, found);
            }
        }
        _ if then == now => {}
        _ if at.ends_with("].name") && is_name_of_first_run(then, now) => {}
        // Its first reason was that of a node pool without a place for it.
        _ if at.ends_with(".phaseReason")
            && *then == "OverLimit"
            && *now == "NonPreemptibleOverQuota" => {}
        // Rows of lists leave it out.
        _ if at.starts_with("/api/v1/workloads.") && at.ends_with(".environmentVariables") => {}
        _ => found.push(format!("{at}: {then} has become {now}")),
    }
}

#[tokio::test]
async fn every_object_of_be8399f_is_there_with_the_same_meaning() {
    let left = left();
    let server = server(&left).await;
    let mut found = Vec::new();
    for (path, then) in &left.answers {
        let (status, now) = server.raw("GET", path, "").await;
        assert_eq!(status, StatusCode::OK, "{path}: {now}");
        // These lists were arrays then.
        let now = if path.ends_with("/access-keys") { &now["accessKeys"] } else { &now };
        differences(path, then, now, &mut found);
    }
    assert!(left.answers.len() > 100 && found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn secrets_of_be8399f_are_known() {
    let left = left();
    let server = server(&left).await;
    let client = &server.get("/api/v1/service-accounts").await[0]["clientId"];
    let (status, granted) =
        grant_client(&server, client.as_str().unwrap(), &left.client_secret).await;
    assert_eq!(status, 200, "{granted}");
    // A run that starts now gets what was stored then.
    let secret = json!({"name": "KEY", "secret": {"name": "generic", "key": "a"}});
    let spec = json!({"image": "i", "environmentVariables": [secret]});
    let (_, made) = server.post("/api/v1/workloads/trainings", server.job("new", &spec)).await;
    server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    let place = SecretTo::Run(spec::SecretPlace::Variable("KEY".into()));
    let want = format!("{:?}=hush hush", place.place().unwrap());
    assert_eq!(server.engine.secrets_of("new"), [want]);
}
