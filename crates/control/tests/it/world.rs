//! A dispatcher with a fake engine, a clock set by hand and a state directory, and short functions
//! for the steps of scenarios.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

use control::{Handle, Options, Service};
use fixture::STUCK_AFTER;
use orchestrator::{Error, NewId, NewObject, NodeList, OrgChange, Settings};
use records::EventFilter;
use serde_json::json;
use spec::{
    CleanPods, DistributedSpec, Framework, GpuRequest, MASTER, NodeGpu, NodeSpec, Place, PodSet,
    PodSpec, Priority, Restart, ShareChange, UserLimit, UserLimits, WORKER, WorkloadKind,
    WorkloadSpec,
};
use sqlx::Connection;
use store::{Database, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use units::Instant;
use uuid::Uuid;
use view::{Event, Phase, ReasonView, Scope, View, WorkloadView};

use crate::fake::{FakeEngine, ManualClock};

/// Maximum size of a recording in bytes: more than any test needs.
const RECORDING_MAX: u64 = 1 << 30;

/// Settings of the state that a world keeps.
#[derive(Clone, Copy)]
struct Kept {
    /// Maximum size of the recording in bytes.
    recording_max: u64,
    /// Number of ended workloads that stay in memory.
    ended: usize,
    /// `true` if a new database gets a sample.
    samples: bool,
    /// Time for which places are kept, in milliseconds.
    places_kept_ms: u64,
    /// A limit of users and its value; `None` for the usual ones.
    limit: Option<(UserLimit, u64)>,
}

impl Default for Kept {
    fn default() -> Self {
        let Settings { ended_kept: ended, places_kept_ms, .. } = Settings::default();
        Self { recording_max: RECORDING_MAX, ended, samples: false, places_kept_ms, limit: None }
    }
}

impl Kept {
    fn user_limits(self) -> UserLimits {
        let mut limits = UserLimits::default();
        self.limit.into_iter().for_each(|(limit, most)| limits.set(limit, most));
        limits
    }
}

/// A running dispatcher and the way to end it.
type Server = (oneshot::Sender<()>, JoinHandle<Result<(), Error>>);

pub(crate) struct World {
    pub(crate) engine: FakeEngine,
    pub(crate) clock: ManualClock,
    /// Handle whose requests are answered once no decision is pending.
    pub(crate) handle: Handle,
    /// Handle whose requests are answered as soon as they are written.
    pub(crate) prompt: Handle,
    pub(crate) gate: Gate,
    pub(crate) dir: tempfile::TempDir,
    nodes: Vec<NodeSpec>,
    policy: sched::Policy,
    database: Database,
    kept: Kept,
    server: Option<Server>,
}

/// `count` nodes with `gpus` GPUs of 16 GiB each.
pub(crate) fn nodes(count: u32, gpus: u32) -> Vec<NodeSpec> {
    let node = |number| NodeSpec {
        name: format!("node-{number}"),
        gpu_type: "simulated".to_owned(),
        simulated: true,
        gpus: (0..gpus)
            .map(|gpu| NodeGpu::new(format!("GPU-sim-node-{number}-{gpu}"), 16 << 30))
            .collect(),
        cpu_millis: 64_000,
        memory_bytes: 256 << 30,
        pods_max: None,
        labels: Default::default(),
        taints: Vec::new(),
    };
    (1..=count).map(node).collect()
}

/// A training with this many GPUs.
pub(crate) fn training(name: &str, gpus: u32) -> WorkloadSpec {
    let pod = PodSpec {
        image: "quickstart".to_owned(),
        command: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        working_dir: None,
        place: Place::default(),
        gpu: GpuRequest::Whole(gpus),
        cpu_millis: 100,
        memory_bytes: 1 << 20,
        restart: Restart::Never,
        grace_ms: 1000,
        stdin: false,
        tty: false,
        container: Default::default(),
    };
    WorkloadSpec {
        submitted_by: "alice".to_owned(),
        submitter_id: "user/1".to_owned(),
        source: "CLI".to_owned(),
        ..WorkloadSpec::new(name.to_owned(), WorkloadKind::Training, PodSet::one(pod))
    }
}

pub(crate) fn elastic(name: &str, gpus: u32) -> WorkloadSpec {
    WorkloadSpec { elastic: true, ..training(name, gpus) }
}

/// The workload with its pod changed.
pub(crate) fn with(mut spec: WorkloadSpec, change: impl FnOnce(&mut PodSpec)) -> WorkloadSpec {
    change(&mut spec.pods.pod);
    spec
}

/// A PyTorch training of a master and `workers` workers, each with a GPU.
pub(crate) fn distributed(name: &str, workers: u32) -> WorkloadSpec {
    let one = training(name, 1);
    let worker =
        PodSet { role: WORKER.to_owned(), pods: workers, pods_min: workers, ..one.pods.clone() };
    WorkloadSpec {
        kind: WorkloadKind::Distributed,
        pods: PodSet { role: MASTER.to_owned(), ..one.pods },
        more: vec![worker],
        distributed: Some(DistributedSpec {
            framework: Framework::PyTorch,
            slots_per_worker: 1,
            first_waits: false,
            clean: CleanPods::Running,
        }),
        ..training(name, 1)
    }
}

/// An interactive workload.
pub(crate) fn workspace(name: &str, gpus: u32) -> WorkloadSpec {
    let spec = WorkloadSpec {
        kind: WorkloadKind::Workspace,
        priority: Priority::default_of(WorkloadKind::Workspace),
        preemptible: false,
        backoff_limit: 0,
        ..training(name, gpus)
    };
    with(spec, |pod| pod.restart = Restart::OnFailure)
}

/// A project, created or replaced, with that many GPUs as its quota.
pub(crate) fn project(name: &str, quota: u64) -> OrgChange {
    OrgChange { name: Some(name.to_owned()), replaces_shares: true, ..given(gpus(quota)) }
}

/// A quota of that many GPUs.
pub(crate) fn gpus(quota: u64) -> ShareChange {
    ShareChange { gpu_quota_millis: Some(quota * 1000), ..ShareChange::default() }
}

/// A share in the pool `default`.
pub(crate) fn given(share: ShareChange) -> OrgChange {
    let shares = [(orchestrator::POOL_DEFAULT_ID.to_owned(), share)].into();
    OrgChange { shares, ..OrgChange::default() }
}

impl World {
    /// A running server with these nodes and, as projects 1, 2, …, these quotas.
    pub(crate) async fn new(nodes: Vec<NodeSpec>, quotas: &[u64]) -> Self {
        Self::with(nodes, quotas, sched::Policy::default()).await
    }

    /// [`Self::new`] with this policy.
    pub(crate) async fn with(nodes: Vec<NodeSpec>, quotas: &[u64], policy: sched::Policy) -> Self {
        Self::on(Database::Sqlite, nodes, quotas, policy).await
    }

    /// [`Self::with`] with its state in this database.
    pub(crate) async fn on(
        database: Database,
        nodes: Vec<NodeSpec>,
        quotas: &[u64],
        policy: sched::Policy,
    ) -> Self {
        Box::pin(Self::open((database, Kept::default()), nodes, quotas, policy)).await
    }

    /// A world whose recording has at most `bytes_max` bytes.
    pub(crate) async fn recording(nodes: Vec<NodeSpec>, quotas: &[u64], bytes_max: u64) -> Self {
        let policy = sched::Policy::default();
        let kept = Kept { recording_max: bytes_max, ..Kept::default() };
        Box::pin(Self::open((Database::Sqlite, kept), nodes, quotas, policy)).await
    }

    /// A world whose new database gets a sample.
    pub(crate) async fn with_sample(database: Database) -> Self {
        let (kept, policy) = (Kept { samples: true, ..Kept::default() }, sched::Policy::default());
        Box::pin(Self::open((database, kept), nodes(1, 1), &[], policy)).await
    }

    /// A world with 8 GPUs that keeps `ended` ended workloads in memory.
    pub(crate) async fn that_keeps(ended: usize, database: Database) -> Self {
        let (kept, policy) = (Kept { ended, ..Kept::default() }, sched::Policy::default());
        Box::pin(Self::open((database, kept), nodes(1, 8), &[8, 8], policy)).await
    }

    /// A world of two projects with this limit of users.
    pub(crate) async fn that_limits(limit: UserLimit, most: u64, database: Database) -> Self {
        let kept = Kept { limit: Some((limit, most)), ..Kept::default() };
        let policy = sched::Policy::default();
        Box::pin(Self::open((database, kept), nodes(1, 1), &[1, 1], policy)).await
    }

    /// A world that keeps no ended workload in memory, with this limit of users.
    pub(crate) async fn that_archives_and_limits(
        limit: UserLimit,
        most: u64,
        database: Database,
    ) -> Self {
        let kept = Kept { ended: 0, limit: Some((limit, most)), ..Kept::default() };
        let policy = sched::Policy::default();
        Box::pin(Self::open((database, kept), nodes(1, 1), &[1, 1], policy)).await
    }

    /// A world with one GPU that keeps no place through a failure.
    pub(crate) async fn that_keeps_no_places() -> Self {
        let kept = Kept { places_kept_ms: 0, ..Kept::default() };
        let database = (Database::Sqlite, kept);
        Box::pin(Self::open(database, nodes(1, 1), &[1], sched::Policy::default())).await
    }

    async fn open(
        (database, kept): (Database, Kept),
        nodes: Vec<NodeSpec>,
        quotas: &[u64],
        policy: sched::Policy,
    ) -> Self {
        let clock = ManualClock::new();
        let engine = FakeEngine::new(clock.clone());
        let dir = tempfile::tempdir().unwrap();
        let gate = Gate::default();
        let at = (&dir, &database, kept);
        let opened = open(at, &nodes, (&engine, &clock), &policy, &gate).await;
        let (service, prompt) = opened.unwrap();
        let (handle, server) = (prompt.that_waits(), None);
        let mut world = Self {
            engine,
            clock,
            handle,
            prompt,
            gate,
            dir,
            nodes,
            policy,
            database,
            kept,
            server,
        };
        world.serve(service);
        for (name, quota) in ["team-a", "team-b", "team-c"].into_iter().zip(quotas) {
            world.handle.create_project("admin", 1, project(name, *quota)).await.unwrap();
        }
        world
    }

    fn serve(&mut self, service: Service) {
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { stopped.await.unwrap_or(()) };
        self.server = Some((stop, tokio::spawn(service.run(shutdown))));
    }

    /// The server ends in the middle of whatever it does.
    pub(crate) async fn crash(&mut self) {
        let (_stop, server) = self.server.take().unwrap();
        server.abort();
        let _ = server.await;
        self.forget_handle().await;
    }

    /// The server ends in order.
    pub(crate) async fn end(&mut self) {
        let (stop, server) = self.server.take().unwrap();
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
    }

    /// The handle keeps the state directory; a process that ended keeps nothing.
    async fn forget_handle(&mut self) {
        let clock = ManualClock::new();
        let engine = FakeEngine::new(clock.clone());
        let spare = tempfile::tempdir().unwrap();
        let at = (&spare, &Database::Sqlite, Kept::default());
        let opened =
            open(at, &[], (&engine, &clock), &self.policy, &Gate::default()).await.unwrap();
        (self.prompt, self.handle) = (opened.1.clone(), opened.1);
    }

    /// A server on the same state and the same machine.
    pub(crate) async fn start(&mut self) {
        self.try_start().await.unwrap();
    }

    /// [`Self::start`], which may fail.
    pub(crate) async fn try_start(&mut self) -> Result<(), Error> {
        let at = (&self.dir, &self.database, self.kept);
        let machine = (&self.engine, &self.clock);
        let (service, prompt) = open(at, &self.nodes, machine, &self.policy, &self.gate).await?;
        (self.handle, self.prompt) = (prompt.that_waits(), prompt);
        self.serve(service);
        Ok(())
    }

    /// Waits until the server ends by itself; says why.
    pub(crate) async fn gives_up(&mut self) -> String {
        let (_stop, server) = self.server.take().unwrap();
        let why = server.await.unwrap().unwrap_err().to_string();
        self.forget_handle().await;
        why
    }

    pub(crate) async fn restart(&mut self) {
        self.crash().await;
        self.start().await;
    }

    pub(crate) fn set_nodes(&mut self, nodes: Vec<NodeSpec>) {
        self.nodes = nodes;
    }

    /// Makes the database refuse events, as a full disk would refuse everything.
    pub(crate) async fn refuse_events(&self, refuse: bool) {
        let file = self.dir.path().join("elastane.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
        let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        let sql = if refuse {
            "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no space'); END"
        } else {
            "DROP TRIGGER full"
        };
        sqlx::query(sql).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
    }

    /// Makes the database refuse pods that stand as they were written.
    pub(crate) async fn refuse_same_pods(&self) {
        let file = self.dir.path().join("elastane.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
        let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        let sql = "CREATE TRIGGER same BEFORE UPDATE ON pods
            WHEN OLD.body = NEW.body AND OLD.generation = NEW.generation
            BEGIN SELECT RAISE(ABORT, 'the same again'); END";
        sqlx::query(sql).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
    }

    pub(crate) async fn submit(&self, project: u64, spec: WorkloadSpec) -> Arc<WorkloadView> {
        self.handle.submit(project, spec, false).await.unwrap().workload
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.handle.delete_workload("alice", self.id(name)).await.unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<WorkloadView>> {
        self.handle.view().workloads.values().find(|w| w.spec.name == name).cloned()
    }

    /// Why a workload waits.
    pub(crate) fn why(&self, name: &str) -> Vec<ReasonView> {
        let view = self.handle.view();
        let found = view.workloads.values().find(|w| w.spec.name == name);
        view.why(found.unwrap_or_else(|| panic!("no workload {name}")))
    }

    pub(crate) fn id(&self, name: &str) -> Uuid {
        self.get(name).unwrap_or_else(|| panic!("no workload {name}")).id
    }

    /// Waits until the view is as described; returns it.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&View) -> bool) -> Arc<View> {
        let deadline = tokio::time::Instant::now() + STUCK_AFTER;
        loop {
            let view = self.handle.view();
            if holds(&view) {
                return view;
            }
            assert!(tokio::time::Instant::now() < deadline, "never: {what}\n{}", self.picture());
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Waits until all workloads, in order of submission, read like `a1 Running 2/1`: name,
    /// phase, allocated and requested GPUs.
    pub(crate) async fn becomes(&self, expected: &str) {
        let expected: Vec<_> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let expected = expected.join("\n");
        self.until(&expected, |_| self.picture() == expected).await;
    }

    pub(crate) fn picture(&self) -> String {
        let view = self.handle.view();
        let mut workloads: Vec<_> = view.workloads.values().collect();
        workloads.sort_by_key(|w| w.seq);
        let line = |w: &Arc<WorkloadView>| {
            let gpus = |r: units::Resources| units::format_millis(r.gpu_millis);
            format!("{} {:?} {}/{}", w.spec.name, w.phase, gpus(w.allocated), gpus(w.requested))
        };
        workloads.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(crate) async fn phase(&self, name: &str, phase: Phase) -> Arc<WorkloadView> {
        let is = |v: &View| v.workloads.values().any(|w| w.spec.name == name && w.phase == phase);
        self.until(&format!("{name} {phase:?}"), is).await;
        self.get(name).unwrap()
    }

    /// Waits until nothing is left to decide about, as far as the dispatcher knows.
    pub(crate) async fn decided(&self) {
        self.handle.note_ready(Vec::new()).await.unwrap();
    }

    /// Waits until a workload waits for this reason first.
    pub(crate) async fn waits_for(&self, name: &str, code: &str) -> Arc<WorkloadView> {
        let is = || self.why(name).first().is_some_and(|first| first.code == code);
        let holds = |_: &View| self.get(name).is_some() && is();
        self.until(&format!("{name} waits for {code}"), holds).await;
        self.get(name).unwrap()
    }

    /// Kinds of the events about a workload, oldest first.
    pub(crate) async fn story(&self, id: Uuid) -> Vec<String> {
        self.events(id).await.into_iter().map(|event| event.kind).collect()
    }

    pub(crate) async fn events(&self, id: Uuid) -> Vec<Event> {
        let filter = EventFilter { workload: Some(id), ..EventFilter::default() };
        self.handle.events(filter).await.unwrap()
    }
}

/// The recording of each world replays to an equal result.
impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            crate::recording::plays_again(self.dir.path());
        }
    }
}

/// Holds decisions up: they use the state at their beginning.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    is_shut: bool,
    waiting: usize,
    pods_most: usize,
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.0.0.lock().unwrap().is_shut = true;
    }

    pub(crate) fn open(&self) {
        self.0.0.lock().unwrap().is_shut = false;
        self.0.1.notify_all();
    }

    /// Lets through the decision that waits, and holds up the next.
    pub(crate) fn let_one_pass(&self) {
        let mut held = self.0.0.lock().unwrap();
        held.waiting -= 1;
        self.0.1.notify_all();
    }

    /// Waits until a decision is held up.
    pub(crate) async fn is_holding(&self) {
        while self.0.0.lock().unwrap().waiting == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Most pods that the scheduler has known at a decision.
    pub(crate) fn pods_most(&self) -> usize {
        self.0.0.lock().unwrap().pods_most
    }

    fn pass(&self, cluster: &model::Cluster) {
        let mut held = self.0.0.lock().unwrap();
        held.pods_most = held.pods_most.max(cluster.pods().len());
        if held.is_shut {
            held.waiting += 1;
            while held.is_shut && held.waiting > 0 {
                held = self.0.1.wait(held).unwrap();
            }
            held.waiting = 0;
        }
    }
}

/// Time after the start of a world when `poison-later` begins to make decisions fail, in
/// milliseconds.
pub(crate) const LATER_MS: u64 = 100_000;

/// Fails as a scheduler with a fault: when it looks at a workload called `poison`, later at one
/// called `poison-later` or at two called `pair-…`, and at `poison-room` when a GPU is free.
fn poisoned(cluster: &model::Cluster, now: Instant) {
    let looked_at = cluster.waiting().map(|id| &cluster.workloads()[id]);
    let names: Vec<_> =
        looked_at.filter(|row| row.not_before <= now).map(|row| row.spec.name.as_str()).collect();
    let is_later = now >= Instant(1_000_000 + LATER_MS);
    let pair = names.iter().filter(|name| name.starts_with("pair-")).count();
    let mut gpus = cluster.nodes().iter().flat_map(|(_, node)| &node.gpus);
    let room = names.contains(&"poison-room") && gpus.any(|gpu| gpu.used_millis == 0);
    let later = is_later && (names.iter().any(|name| name.starts_with("poison-later")) || pair > 1);
    let fails = names.contains(&"poison") || later || room;
    assert!(!fails, "a fault of the scheduler, for trial");
}

/// Fails on a state that has a workload called `poison-batch`, later on one called
/// `poison-batch-later`.
fn poisoned_batch(view: &View, now: Instant) {
    let is_later = now >= Instant(1_000_000 + LATER_MS);
    let fails = |name: &str| name == "poison-batch" || is_later && name == "poison-batch-later";
    let all = view.workloads.values();
    let fault = all.map(|workload| workload.spec.name.as_str()).find(|name| fails(name));
    assert_eq!(fault, None, "a fault of the state, for trial");
}

/// Opens `{"key": "value"}`, and nothing else.
fn unseal(of: &str, text: &str) -> Result<BTreeMap<String, String>, String> {
    if of.starts_with(control::JOB_TOKEN) {
        return Ok(BTreeMap::from([("token".to_owned(), of.to_owned())]));
    }
    serde_json::from_str(text).map_err(|_| format!("{of} is sealed with another key"))
}

/// Sample that a new database gets.
fn sample() -> NewObject {
    NewObject {
        kind: "asset",
        id: NewId::Any,
        scope: Scope::Cluster,
        owner: String::new(),
        name: "sample".to_owned(),
        body: json!({}),
        newest: None,
    }
}

async fn open(
    (dir, database, kept): (&tempfile::TempDir, &Database, Kept),
    nodes: &[NodeSpec],
    (engine, clock): (&FakeEngine, &ManualClock),
    policy: &sched::Policy,
    gate: &Gate,
) -> Result<(Service, Handle), Error> {
    let gate = gate.clone();
    let before_decision = move |cluster: &model::Cluster, now| {
        gate.pass(cluster);
        poisoned(cluster, now);
    };
    let options = Options {
        replaces_nodes: true,
        cluster_name: "test".to_owned(),
        version: "0".to_owned(),
        nodes: NodeList { nodes: nodes.to_vec(), origin: format!("{} nodes", nodes.len()) },
        engine: Arc::new(engine.clone()),
        store: Store::open_in(dir.path(), database).await.unwrap(),
        policy: policy.clone(),
        clock: Arc::new(clock.clone()),
        unseal: Arc::new(unseal),
        node_access: Default::default(),
        settings: Settings {
            ended_kept: kept.ended,
            places_kept_ms: kept.places_kept_ms,
            user_limits: kept.user_limits(),
            default_project: None,
        },
        samples: if kept.samples { vec![sample()] } else { Vec::new() },
        kept: control::RetentionPolicy::default(),
        recording: crate::recording::writer(dir.path(), kept.recording_max),
        decision_fault: Some(Arc::new(before_decision)),
        batch_fault: Some(Arc::new(poisoned_batch)),
    };
    Service::open(options).await
}
