//! A server to send requests to.

use std::sync::Arc;
use std::time::Duration;

use api::State;
use auth::Authority;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, Response, StatusCode};
use control::{Clock, Handle, NodeAccess, Options, Service, SystemClock};
use fixture::STUCK_AFTER;
use http_kit::Shutdown;
use iam::LoginProvider;
use orchestrator::{NewObject, NodeList, Settings};
use serde_json::{Value, json};
use spec::UserLimits;
use spec::{NodeGpu, NodeSpec};
use store::Database;
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt as _;

use crate::engine_double::EngineDouble;

pub(crate) struct Server {
    pub(crate) router: Router,
    pub(crate) control: Handle,
    pub(crate) engine: EngineDouble,
    pub(crate) shutdown: Shutdown,
    pub(crate) token: String,
    pub(crate) authority: Arc<Authority>,
    clock: Arc<dyn Clock>,
    pub(crate) dir: tempfile::TempDir,
    served: JoinHandle<Result<(), orchestrator::Error>>,
    /// Services beside the dispatcher.
    beside: JoinSet<()>,
}

/// Settings of a server.
pub(crate) struct Setup {
    login_provider: Option<LoginProvider>,
    ended_kept: usize,
    user_limits: UserLimits,
    database: Database,
    /// Objects of a new database.
    samples: Vec<NewObject>,
    /// Address for users; `None` for one of this machine.
    public_url: Option<&'static str>,
}

impl Setup {
    /// The settings of `elastane up` with this database.
    pub(crate) fn with_samples(database: Database) -> Self {
        Self { database, samples: ::assets::samples().unwrap(), ..Self::default() }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            login_provider: None,
            ended_kept: orchestrator::ENDED_KEPT,
            user_limits: UserLimits::default(),
            database: Database::Sqlite,
            samples: Vec::new(),
            public_url: None,
        }
    }
}

fn node(name: &str, gpus: u32) -> NodeSpec {
    let gpu = |index| NodeGpu::new(format!("GPU-{name}-{index}"), 16 << 30);
    NodeSpec {
        name: name.into(),
        gpu_type: "simulated".into(),
        simulated: true,
        gpus: (0..gpus).map(gpu).collect(),
        cpu_millis: 64_000,
        memory_bytes: 64 << 30,
        pods_max: None,
        labels: Default::default(),
        taints: Vec::new(),
    }
}

impl Server {
    /// A server with one node of four GPUs and one without, and no project.
    pub(crate) async fn new() -> Self {
        Self::open(None).await
    }

    /// [`Self::new`] with a login provider.
    pub(crate) async fn with_provider(issuer: &str, creates_users: bool) -> Self {
        Self::with_login(issuer, |login| login.creates_users = creates_users).await
    }

    /// [`Self::with_provider`] that exchanges tokens, with other settings.
    pub(crate) async fn with_login(issuer: &str, change: impl FnOnce(&mut LoginProvider)) -> Self {
        let settings = oidc::Settings::new(issuer, "elastane");
        let provider = oidc::Provider::new(settings).unwrap();
        let mut login = LoginProvider { provider, creates_users: true, exchanges_tokens: true };
        change(&mut login);
        Self::open(Some(login)).await
    }

    async fn open(login_provider: Option<LoginProvider>) -> Self {
        Self::new_with(Setup { login_provider, ..Setup::default() }).await
    }

    async fn new_with(setup: Setup) -> Self {
        Self::on(tempfile::tempdir().unwrap(), setup).await
    }

    /// A server with the state in this folder.
    pub(crate) async fn on(dir: tempfile::TempDir, setup: Setup) -> Self {
        let nodes = vec![node("node-1", 4), node("node-2", 0)];
        Self::with(dir, nodes, EngineDouble::default(), Arc::new(SystemClock), setup).await
    }

    /// Ends, and returns the folder with the state. The database is free then.
    pub(crate) async fn end(mut self) -> tempfile::TempDir {
        self.shutdown.trigger();
        self.served.await.unwrap().unwrap();
        self.beside.shutdown().await;
        self.dir
    }

    /// A server that goes on with the state in this folder, at this time.
    pub(crate) async fn over(
        dir: tempfile::TempDir,
        nodes: Vec<NodeSpec>,
        engine: EngineDouble,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with(dir, nodes, engine, clock, Setup::with_samples(Database::Sqlite)).await
    }

    async fn with(
        dir: tempfile::TempDir,
        nodes: Vec<NodeSpec>,
        engine: EngineDouble,
        clock: Arc<dyn Clock>,
        setup: Setup,
    ) -> Self {
        let Setup { login_provider, ended_kept, user_limits, database, samples, public_url } =
            setup;
        let store = store::Store::open_in(dir.path(), &database).await.unwrap();
        let authority = Authority::open(dir.path(), &store, "ada", clock.now()).await.unwrap();
        let vault = auth::Vault::open(&dir.path().join(auth::VAULT_FILE)).unwrap();
        let options = Options {
            replaces_nodes: true,
            cluster_name: "local".into(),
            version: "1.2.3".into(),
            nodes: NodeList { nodes, origin: String::new() },
            engine: Arc::new(engine.clone()),
            store,
            policy: sched::Policy::default(),
            recording: Default::default(),
            clock: Arc::clone(&clock),
            unseal: api::unseal(vault.clone()),
            node_access: Arc::new(
                NodeAccess::new(&["/usr/share".into()], &[dir.path().into()]).unwrap(),
            ),
            settings: Settings { ended_kept, user_limits, ..Settings::default() },
            samples,
            kept: control::RetentionPolicy::default(),
            decision_fault: None,
            batch_fault: None,
        };
        let (service, control) = Service::open(options).await.unwrap();
        let control = control.that_waits();
        let shutdown = Shutdown::default();
        let stop = shutdown.clone();
        let served = tokio::spawn(service.run(async move { stop.wait().await }));
        let serving = serving::Service::new(control.clone());
        let mut beside = JoinSet::new();
        beside.spawn(serving.clone().run());
        let training = training::Service::new(control.clone(), api::unseal(vault.clone()));
        let authority = Arc::new(authority);
        let router = api::router(State {
            serving,
            training,
            url: public_url.unwrap_or("http://elastane.test").into(),
            url_is_public: public_url.is_some(),
            control: control.clone(),
            authority: authority.clone(),
            login_provider: login_provider.map(Arc::new),
            vault,
            clock: clock.clone(),
            hosts: http_kit::Hosts { names: vec!["gpu-box".into()], ..Default::default() },
            proxies: "10.0.0.0/8".parse().unwrap(),
            workloads_domain: "localhost".into(),
            client_program: Some(dir.path().join("runai")),
            shutdown: shutdown.clone(),
        });
        let token = std::fs::read_to_string(dir.path().join(auth::TOKEN_FILE)).unwrap();
        let token = token.trim().to_owned();
        Self { router, control, engine, shutdown, token, authority, clock, dir, served, beside }
    }

    /// The time there.
    pub(crate) fn now(&self) -> units::Instant {
        self.clock.now()
    }

    /// A server with the projects team-a (id 1) and team-b (id 2), two GPUs each.
    pub(crate) async fn at(public_url: &'static str) -> Self {
        Self::new_with(Setup { public_url: Some(public_url), ..Setup::default() }).await
    }

    /// A server with two teams of two GPUs each.
    pub(crate) async fn with_teams() -> Self {
        Self::that_keeps(orchestrator::ENDED_KEPT).await
    }

    /// [`Self::with_teams`] that keeps `ended` ended workloads in memory.
    pub(crate) async fn that_keeps(ended: usize) -> Self {
        Self::that_keeps_and_limits(ended, UserLimits::default()).await
    }

    /// A server with both projects and these limits for users.
    pub(crate) async fn that_limits(limits: UserLimits) -> Self {
        Self::that_keeps_and_limits(orchestrator::ENDED_KEPT, limits).await
    }

    /// A server with both projects, which keeps `ended` ended workloads in memory and limits users.
    pub(crate) async fn that_keeps_and_limits(ended_kept: usize, user_limits: UserLimits) -> Self {
        let server = Self::new_with(Setup { ended_kept, user_limits, ..Setup::default() }).await;
        for name in ["team-a", "team-b"] {
            let (status, made) = server.post("/api/v1/org-unit/projects", server.team(name)).await;
            assert_eq!(status, StatusCode::CREATED, "{made}");
        }
        server
    }

    pub(crate) fn cluster_id(&self) -> String {
        self.control.cluster().uuid.to_string()
    }

    pub(crate) fn team(&self, name: &str) -> Value {
        json!({"name": name, "clusterId": self.cluster_id(), "resources": [{"gpu": {"deserved": 2}}]})
    }

    /// Body of a creation in team-a.
    pub(crate) fn job(&self, name: &str, spec: &Value) -> Value {
        json!({"name": name, "projectId": "1", "clusterId": self.cluster_id(), "spec": spec})
    }

    /// Creates a training in team-a and returns its id.
    pub(crate) async fn train(&self, name: &str, gpus: u32) -> String {
        let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": gpus}});
        let (status, made) = self.post("/api/v1/workloads/trainings", self.job(name, &spec)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        made["workloadId"].as_str().unwrap().to_owned()
    }

    /// The port it listens on from now on.
    pub(crate) async fn listens(&self) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(http_kit::serve(listener, None, self.router.clone(), self.shutdown.clone()));
        port
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> axum::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost:8080")
            .header("authorization", format!("Bearer {}", self.token))
    }

    /// A request with a JSON body.
    pub(crate) fn request_with_json(
        &self,
        method: &str,
        path: &str,
    ) -> axum::http::request::Builder {
        self.request(method, path).header("content-type", "application/json")
    }

    /// Sends a body as it is and reads the JSON answer; an empty answer is null.
    pub(crate) async fn raw(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        let request = self.request_with_json(method, path);
        let request = request.body(Body::from(body.to_owned())).unwrap();
        read(self.send(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.raw("GET", path, "").await;
        assert_eq!(status, StatusCode::OK, "GET {path}: {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.raw("POST", path, &body.to_string()).await
    }

    /// Waits until what a path shows is as wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + STUCK_AFTER;
        loop {
            let last = self.get(path).await;
            if wanted(&last) {
                return last;
            }
            assert!(tokio::time::Instant::now() < deadline, "GET {path} stayed {last:#}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) async fn phase(&self, id: &str, phase: &str) -> Value {
        self.until(&format!("/api/v1/workloads/{id}"), |workload| workload["phase"] == phase).await
    }
}

pub(crate) async fn bytes(response: Response<Body>) -> Bytes {
    to_bytes(response.into_body(), usize::MAX).await.unwrap()
}

pub(crate) async fn read(response: Response<Body>) -> (StatusCode, Value) {
    let status = response.status();
    let body = bytes(response).await;
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap_or_else(|_| panic!("not JSON: {body:?}"))
    };
    (status, body)
}
