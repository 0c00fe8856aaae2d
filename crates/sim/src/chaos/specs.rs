//! What is asked for in a history: workloads of every kind, projects, node pools. Owns: how likely each shape
//! is.

use std::collections::BTreeMap;

use model::Fill;
use model::{Effect, Taint};
use orchestrator::{NodeChange, NodeList, OrgChange, POOL_DEFAULT_ID, volume_name};
use spec::{
    Audience, CleanPods, Container, DistributedSpec, Framework, GpuRequest, MASTER, Metric, Mount,
    MountSource, NodeGpu, NodeSpec, Place, PodSet, PodSpec, PoolSettings, PoolSpec, Port, Priority,
    Probe, Rank, Restart, Rules, Scaling, Scheduling, Serving, ShareChange, Target, WORKER,
    WorkloadKind, WorkloadSpec,
};

use crate::rng::Rng;

/// The label of nodes whose values make node pools.
pub(super) const KIND: &str = "kind";
/// The label of nodes that are close together.
pub(super) const RACK: &str = "rack";

pub(super) const GIB: u64 = 1 << 30;

/// One to four nodes, some of them with GPUs that are real.
pub(super) fn nodes(rng: &mut Rng) -> NodeList {
    let real = rng.below(4) == 0;
    let count = 1 + u32::try_from(rng.below(4)).unwrap_or_default();
    let nodes = (1..=count).map(|number| node(number, real, rng)).collect();
    // The same one time in so many: then nodes that came and went while it ran are kept.
    NodeList { nodes, origin: rng.below(3).to_string() }
}

/// The node with this number.
pub(super) fn node(number: u32, real: bool, rng: &mut Rng) -> NodeSpec {
    NodeSpec {
        name: format!("node-{number}"),
        gpu_type: if real { "A100" } else { "simulated" }.to_owned(),
        simulated: !real,
        gpus: (0..[1, 2, 2, 4][rng.below(4)])
            .map(|gpu| NodeGpu {
                uuid: format!("GPU-{number}-{gpu}"),
                memory_bytes: 16 * GIB,
                fault: None,
            })
            .collect(),
        cpu_millis: [1_000, 64_000][rng.below(2)],
        memory_bytes: 256 * GIB,
        labels: labels(rng),
        taints: Vec::new(),
    }
}

/// What is given to a node.
pub(super) fn node_change(rng: &mut Rng) -> NodeChange {
    let labels = labels(rng).into_iter().map(|(key, value)| (key, Some(value))).collect();
    let taint = Taint { key: "odd".to_owned(), value: String::new(), effect: Effect::NoSchedule };
    let none = NodeChange::default();
    match rng.below(8) {
        0 => NodeChange { scheduling: Some(Scheduling::Disabled), ..none },
        1 => NodeChange { scheduling: Some(Scheduling::Draining), ..none },
        2..=4 => NodeChange { scheduling: Some(Scheduling::Enabled), ..none },
        5 => NodeChange { taints: vec![taint], ..none },
        6 => NodeChange { removed_taints: vec![(taint.key, None)], ..none },
        _ => NodeChange { labels, replaces_labels: true, ..none },
    }
}

/// Labels of a node.
pub(super) fn labels(rng: &mut Rng) -> BTreeMap<String, String> {
    let pick = |rng: &mut Rng, key: &str, of: &[&str]| {
        (key.to_owned(), of[rng.below(of.len())].to_owned())
    };
    [pick(rng, KIND, &["a", "b"]), pick(rng, RACK, &["1", "2"])].into()
}

/// What a project or department has.
pub(super) fn given(rng: &mut Rng, name: Option<String>) -> OrgChange {
    // A number of steps up to `most`, one time in so many.
    let some = |rng: &mut Rng, one_in: usize, step: u64, most: usize| {
        let value = step * (1 + rng.below(most) as u64);
        (rng.below(one_in) == 0).then_some(value)
    };
    let share = ShareChange {
        gpu_quota_millis: Some(500 * rng.below(9) as u64),
        gpu_limit_millis: some(rng, 5, 1000, 4).map(Some),
        over_quota_weight: some(rng, 2, 1, 3).map(|weight| weight - 1),
        rank: (rng.below(4) == 0).then(|| [Rank::Low, Rank::High][rng.below(2)]),
        ..ShareChange::default()
    };
    let rules = Rules {
        training_run_ms_max: some(rng, 2, 60_000, 60),
        training_idle_ms_max: some(rng, 2, 60_000, 1),
        ..Rules::default()
    };
    OrgChange {
        name,
        shares: [(POOL_DEFAULT_ID.to_owned(), share)].into(),
        replaces_shares: rng.below(2) == 0,
        rules: (rng.below(5) == 0).then_some(rules),
        ..OrgChange::default()
    }
}

/// A node pool.
pub(super) fn pool(rng: &mut Rng, name: String) -> PoolSpec {
    let label = (KIND.to_owned(), ["a", "b"][rng.below(2)].to_owned());
    let mut settings = PoolSettings::new(Some(label));
    settings.gpu = [Fill::BinPack, Fill::Spread][rng.below(2)];
    PoolSpec { name, settings }
}

/// A workload of a project.
pub(super) fn workload(rng: &mut Rng, project: u64, name: String) -> WorkloadSpec {
    let mut spec = plain(rng, project, name);
    match rng.below(12) {
        0 | 1 => {
            spec.kind = WorkloadKind::Workspace;
            (spec.priority.value, spec.preemptible, spec.backoff_limit) =
                (100, rng.below(4) == 0, 0);
            spec.pods.pod.restart = Restart::OnFailure;
        }
        2 | 3 => spec = distributed(rng, spec),
        4 => several(rng, &mut spec),
        5 => {
            spec.elastic = true;
            spec.pods.pod.gpu = GpuRequest::Whole([1, 2, 4][rng.below(3)]);
        }
        6 => spec = inference(rng, spec),
        7 => spec.pods.pod.restart = [Restart::OnFailure, Restart::Always][rng.below(2)],
        _ => {}
    }
    spec
}

/// The specification of an inference again, with another image.
pub(super) fn changed(spec: &WorkloadSpec, rng: &mut Rng) -> WorkloadSpec {
    let mut spec = spec.clone();
    spec.pods.pod.image = format!("image-{}", rng.below(3));
    spec
}

fn gpus(rng: &mut Rng) -> GpuRequest {
    match rng.below(8) {
        0 => GpuRequest::Whole(0),
        1 | 2 => GpuRequest::share(1, [300, 500, 700][rng.below(3)]),
        3 => GpuRequest::memory(1, 4 * GIB),
        4 => GpuRequest::Whole(2),
        _ => GpuRequest::Whole(1),
    }
}

fn plain(rng: &mut Rng, project: u64, name: String) -> WorkloadSpec {
    let gpu = gpus(rng);
    let mut container = Container::default();
    if rng.below(8) == 0 {
        container.mounts.push(Mount {
            to: "/data".into(),
            from: MountSource::Volume { name: volume_name(project, "data"), ephemeral: false },
            read_only: false,
        });
    }
    if rng.below(12) == 0 {
        container.ports.push(Port { container: 80, host: Some(30_000) });
    }
    let pod = PodSpec {
        image: "image".to_owned(),
        command: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        working_dir: None,
        place: Place::default(),
        gpu,
        cpu_millis: 100,
        memory_bytes: GIB,
        restart: Restart::Never,
        grace_ms: 1000,
        stdin: false,
        tty: false,
        container,
    };
    WorkloadSpec {
        name,
        kind: WorkloadKind::Training,
        submitted_by: "alice".to_owned(),
        submitter_id: "user/1".to_owned(),
        source: "CLI".to_owned(),
        pods: PodSet::one(pod),
        more: Vec::new(),
        distributed: None,
        serving: None,
        revision: None,
        elastic: false,
        priority: priority([50, 50, 60, 40][rng.below(4)]),
        preemptible: true,
        backoff_limit: [0, 1, 6][rng.below(3)],
        delete_after_ms: (rng.below(10) == 0).then_some(30_000),
        delete_when_preempted: rng.below(12) == 0,
        command_line: None,
        uses: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        node_pools: Vec::new(),
        node_types: Vec::new(),
        topology: None,
        groups: Vec::new(),
        children_min: None,
        gates: (0..usize::from(rng.below(16) == 0)).map(|_| "review".to_owned()).collect(),
        preemption_delay_ms: [0, 0, 0, 60_000][rng.below(4)],
        time_limit_ms: (rng.below(10) == 0).then_some(600_000),
        urls: Vec::new(),
        related_urls: Vec::new(),
        manifest: None,
    }
}

/// A few pods that are alike, which may take turns.
fn several(rng: &mut Rng, spec: &mut WorkloadSpec) {
    spec.pods.pods = 2 + u32::try_from(rng.below(3)).unwrap_or_default();
    match rng.below(3) {
        0 => spec.pods.parallelism = Some(1 + u32::try_from(rng.below(2)).unwrap_or_default()),
        1 => spec.pods.pods_min = spec.pods.pods,
        _ => {}
    }
}

/// A master and its workers.
fn distributed(rng: &mut Rng, spec: WorkloadSpec) -> WorkloadSpec {
    let pods = 1 + u32::try_from(rng.below(2)).unwrap_or_default();
    let framework = [Framework::PyTorch, Framework::Tf, Framework::Mpi][rng.below(3)];
    // Only PyTorch can do with fewer, and only MPI has a launcher that may wait.
    let is_elastic = framework == Framework::PyTorch && rng.below(2) == 0;
    let first_waits = framework == Framework::Mpi && rng.below(2) == 0;
    let pods_min = if is_elastic { 1 } else { pods };
    let worker = PodSet { role: WORKER.to_owned(), pods, pods_min, ..spec.pods.clone() };
    let clean = [CleanPods::Running, CleanPods::All, CleanPods::None][rng.below(3)];
    WorkloadSpec {
        kind: WorkloadKind::Distributed,
        pods: PodSet { role: MASTER.to_owned(), ..spec.pods },
        more: vec![worker],
        distributed: Some(DistributedSpec { framework, slots_per_worker: 1, first_waits, clean }),
        ..spec
    }
}

fn inference(rng: &mut Rng, mut spec: WorkloadSpec) -> WorkloadSpec {
    let replicas_min = u32::try_from(rng.below(2)).unwrap_or_default();
    let scaling = Scaling {
        replicas_min,
        replicas_max: 3,
        replicas_initial: replicas_min,
        replicas_activation: 1,
        target: Some(Target { metric: Metric::Concurrency, threshold: 10, percent_millis: 70_000 }),
        window_ms: 60_000,
        down_delay_ms: 0,
        zero_retention_ms: 0,
    };
    let serving = Serving {
        container_port: 8000,
        scaling,
        concurrency_max: None,
        start_ms_max: 600_000,
        request_ms_max: 300_000,
        local_only: false,
        audience: Audience::Everyone,
        probe: Probe::default(),
    };
    spec.pods.pod.restart = Restart::Always;
    spec.pods.pod.container.ports.clear();
    WorkloadSpec {
        kind: WorkloadKind::Inference,
        serving: Some(serving),
        priority: Priority::default_of(WorkloadKind::Inference),
        preemptible: false,
        delete_when_preempted: false,
        delete_after_ms: None,
        ..spec
    }
}

/// A priority of any value.
pub(super) fn priority(value: u32) -> Priority {
    Priority { value, class: "train".to_owned() }
}
