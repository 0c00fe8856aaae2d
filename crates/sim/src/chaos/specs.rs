//! Random specifications for histories: workloads of every kind, projects, node pools. Owns: the
//! probability of each shape.

use std::collections::BTreeMap;

use model::{
    Effect, Fill, MigRequest, Operator, Requirement, Taint, Toleration, UsageWindow, WindowKind,
};
use orchestrator::{NodeChange, NodeList, OrgChange, POOL_DEFAULT_ID, volume_name};
use sched::{OverQuota, Placement, Policy};
use spec::{
    Audience, Bounds, CleanPods, Colocation, Container, Device, DistributedSpec, Framework,
    GpuRequest, Group, LEADER, MASTER, Metric, Mount, MountSource, NodeGpu, NodeSpec, Place,
    PodSet, PodSpec, PoolSettings, PoolSpec, Port, Priority, Probe, Rank, Restart, Rules, RunKey,
    RunSpec, Scaling, Scheduling, Serving, ShareChange, Target, TopologyUse, WORKER, WorkloadKind,
    WorkloadSpec, without_place,
};
use units::{GPU_MILLIS, Instant};
use uuid::Uuid;

use crate::rng::Rng;

/// The label of nodes whose values define node pools.
pub(super) const KIND: &str = "kind";
/// The labels of the topology levels of nodes, from the widest to the narrowest.
pub(super) const LEVELS: [&str; 2] = ["zone", "rack"];

/// The key of the taint set on nodes.
const TAINT: &str = "odd";

pub(super) const GIB: u64 = 1 << 30;

/// One to four nodes, some of them with real GPUs.
pub(super) fn nodes(rng: &mut Rng) -> NodeList {
    let real = rng.below(4) == 0;
    let count = 1 + below(rng, 4);
    let nodes = (1..=count).map(|number| node(number, real, rng)).collect();
    // The origin stays equal for one start in three: then nodes added and removed at run time are
    // kept.
    NodeList { nodes, origin: rng.below(3).to_string() }
}

/// The node with this number.
pub(super) fn node(number: u32, real: bool, rng: &mut Rng) -> NodeSpec {
    let memory_bytes = [16, 16, 40][rng.below(3)] * GIB;
    NodeSpec {
        name: format!("node-{number}"),
        gpu_type: if real { "A100" } else { "simulated" }.to_owned(),
        simulated: !real,
        gpus: (0..[1, 2, 2, 4][rng.below(4)])
            .map(|gpu| NodeGpu::new(format!("GPU-{number}-{gpu}"), memory_bytes))
            .collect(),
        cpu_millis: [1_000, 64_000][rng.below(2)],
        memory_bytes: 256 * GIB,
        pods_max: None,
        labels: labels(rng),
        taints: Vec::new(),
    }
}

/// A change of a node.
pub(super) fn node_change(rng: &mut Rng) -> NodeChange {
    let labels = labels(rng).into_iter().map(|(key, value)| (key, Some(value))).collect();
    let effect = [Effect::NoSchedule, Effect::NoExecute, Effect::PreferNoSchedule][rng.below(3)];
    let taint = Taint { key: TAINT.to_owned(), value: String::new(), effect };
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
    let mut labels: BTreeMap<_, _> =
        [pick(rng, KIND, &["a", "b"]), pick(rng, LEVELS[0], &["a", "b"])].into();
    // A node without the label is outside of the topology.
    if rng.below(6) != 0 {
        labels.extend([pick(rng, LEVELS[1], &["1", "2"])]);
    }
    labels
}

/// The policy; parameters that have default values are drawn at random.
pub(super) fn policy(rng: &mut Rng, mut policy: Policy) -> Policy {
    let usual = Policy::default();
    let mut draw = |knob: &mut u64, usual: u64, of: [u64; 2]| {
        let one = rng.below(3);
        if *knob == usual && one > 0 {
            *knob = of[one - 1];
        }
    };
    draw(&mut policy.reserve_after_ms, usual.reserve_after_ms, [5_000, 0]);
    draw(&mut policy.reclaim_min_runtime_ms, usual.reclaim_min_runtime_ms, [0, 4_000]);
    draw(&mut policy.preempt_min_runtime_ms, usual.preempt_min_runtime_ms, [0, 4_000]);
    if policy.usage.is_none() && rng.below(4) == 0 {
        let kind = [WindowKind::Sliding, WindowKind::Tumbling { start: Instant(0) }][rng.below(2)];
        let half_life_ms = (rng.below(2) == 0).then_some(60_000);
        policy.usage = UsageWindow::new(3_600_000, kind, half_life_ms).ok();
    }
    if policy.placement == usual.placement && rng.below(3) == 0 {
        let mut fill = || [Fill::BinPack, Fill::Spread][rng.below(2)];
        policy.placement = Placement { gpu: fill(), cpu: fill(), devices: fill() };
    }
    if policy.over_quota == usual.over_quota && rng.below(3) == 0 {
        policy.over_quota = OverQuota::ByQuota;
    }
    policy
}

/// Objects that a specification can name.
#[derive(Default)]
pub(super) struct Named {
    /// Ids of node pools.
    pub(super) pools: Vec<String>,
    /// Ids of network topologies.
    pub(super) topologies: Vec<String>,
}

/// The shares of a project or department.
pub(super) fn given(rng: &mut Rng, name: Option<String>, named: &Named) -> OrgChange {
    let mut shares = BTreeMap::from([(POOL_DEFAULT_ID.to_owned(), share(rng))]);
    if let Some(pool) = named.pools.get(rng.below(4)) {
        shares.insert(pool.clone(), share(rng));
    }
    let rules = Rules {
        training_run_ms_max: some(rng, 2, 60_000, 60),
        training_idle_ms_max: some(rng, 2, 60_000, 1),
        ..Rules::default()
    };
    OrgChange {
        name,
        shares,
        replaces_shares: rng.below(2) == 0,
        rules: (rng.below(5) == 0).then_some(rules),
        ..OrgChange::default()
    }
}

/// A random multiple of `step`, up to `most` steps, with a probability of 1 in `one_in`; else
/// `None`.
fn some(rng: &mut Rng, one_in: usize, step: u64, most: usize) -> Option<u64> {
    let value = step * (1 + rng.below(most) as u64);
    (rng.below(one_in) == 0).then_some(value)
}

fn share(rng: &mut Rng) -> ShareChange {
    ShareChange {
        gpu_quota_millis: Some(500 * rng.below(9) as u64),
        gpu_limit_millis: some(rng, 5, 1000, 4).map(Some),
        cpu_limit_millis: some(rng, 12, 500, 8).map(Some),
        over_quota_weight: some(rng, 2, 1, 3).map(|weight| weight - 1),
        rank: (rng.below(4) == 0).then(|| [Rank::Low, Rank::High][rng.below(2)]),
        ..ShareChange::default()
    }
}

/// A node pool.
pub(super) fn pool(rng: &mut Rng, name: String, named: &Named) -> PoolSpec {
    let label = (KIND.to_owned(), ["a", "b"][rng.below(2)].to_owned());
    let mut settings = PoolSettings::new(Some(label));
    settings.gpu = [Fill::BinPack, Fill::Spread][rng.below(2)];
    settings.topology = named.topologies.get(rng.below(3)).cloned();
    PoolSpec { name, settings }
}

/// A workload of a project.
pub(super) fn workload(rng: &mut Rng, project: u64, name: String, named: &Named) -> WorkloadSpec {
    let mut spec = plain(rng, project, name);
    match rng.below(14) {
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
        8 | 9 => sets(rng, &mut spec, named),
        10 => spec = of_groups(rng, spec),
        _ => {}
    }
    if spec.serving.is_none() {
        spec.topology = together(rng, 10, named);
    }
    spec
}

/// Several pod sets, some of them in groups.
fn sets(rng: &mut Rng, spec: &mut WorkloadSpec, named: &Named) {
    let groups = rng.below(3);
    let count = groups.max(1) + rng.below(3);
    let mut sets: Vec<_> = (0..count)
        .map(|number| {
            let mut set = spec.pods.clone();
            set.role = format!("s{number}");
            set.pods = 1 + below(rng, 3);
            set.pods_min = 1 + below(rng, set.pods as usize);
            set.pod_priority = below(rng, 2);
            set.group = (number < groups).then(|| format!("g{number}"));
            set.set_topology = together(rng, 6, named);
            set.pod.gpu = gpus(rng);
            set.pod.place = place(rng);
            set
        })
        .collect();
    let group = |number: usize| Group {
        name: format!("g{number}"),
        // The second group may be in the first.
        parent: (number == 1 && rng.below(2) == 0).then(|| "g0".to_owned()),
        children_min: (rng.below(2) == 0).then_some(1),
        topology: together(rng, 4, named),
        recreate: false,
    };
    spec.groups = (0..groups).map(group).collect();
    spec.children_min = (rng.below(2) == 0).then_some(1);
    spec.pods = sets.remove(0);
    spec.more = sets;
}

/// A topology constraint, with a probability of 1 in `one_in`; else `None`.
fn together(rng: &mut Rng, one_in: usize, named: &Named) -> Option<TopologyUse> {
    let id = named.topologies.get(rng.below(named.topologies.len()))?.clone();
    let level = |at: usize| Some(LEVELS[at].to_owned());
    let (required, preferred) = match rng.below(3 * one_in) {
        0 => (level(rng.below(2)), None),
        1 => (None, level(rng.below(2))),
        2 => (level(0), level(1)),
        _ => return None,
    };
    Some(TopologyUse { id, required, preferred })
}

/// Node constraints of a pod set, for some sets.
fn place(rng: &mut Rng) -> Place {
    let mut place = Place::default();
    if rng.below(8) == 0 {
        let zones = vec![["a", "b"][rng.below(2)].to_owned()];
        let operator = [Operator::In, Operator::NotIn][rng.below(2)](zones);
        let key = LEVELS[0].to_owned();
        place.affinity = vec![vec![Requirement { key, operator }]];
    }
    if rng.below(8) == 0 {
        let key = Some(TAINT.to_owned());
        place.tolerations = vec![Toleration { key, value: None, effect: None }];
    }
    if rng.below(12) == 0 {
        place.colocation =
            Some(Colocation { key: LEVELS[1].to_owned(), required: rng.below(2) == 0 });
    }
    place
}

fn below(rng: &mut Rng, end: usize) -> u32 {
    u32::try_from(rng.below(end)).unwrap_or_default()
}

/// A run of a pod that no server knows, with a whole GPU.
pub(super) fn stray(rng: &mut Rng, node: String, gpu: &NodeGpu) -> RunSpec {
    let spec = plain(rng, 1, "stray".to_owned());
    let device = Device {
        index: 0,
        uuid: gpu.uuid.clone(),
        simulated: true,
        millis: GPU_MILLIS,
        memory_bytes: gpu.memory_bytes,
        memory: Bounds::of(gpu.memory_bytes),
    };
    let pod = Uuid::from_u128(u128::from(rng.next()));
    RunSpec {
        key: RunKey { pod, generation: 1 },
        node_name: node,
        devices: vec![device],
        container: Container::default(),
        ..without_place(&spec, &spec.pods)
    }
}

/// The specification of an inference, with another image.
pub(super) fn changed(spec: &WorkloadSpec, rng: &mut Rng) -> WorkloadSpec {
    let mut spec = spec.clone();
    spec.pods.pod.image = format!("image-{}", rng.below(3));
    spec
}

fn gpus(rng: &mut Rng) -> GpuRequest {
    match rng.below(20) {
        0 | 1 => GpuRequest::Whole(0),
        2..=4 => GpuRequest::share(1, [300, 500, 700][rng.below(3)]),
        5 => GpuRequest::share(2, [300, 500][rng.below(2)]),
        6..=8 => GpuRequest::memory(1 + below(rng, 2), [4, 20][rng.below(2)] * GIB),
        // No node has instances: the workload waits.
        9 => {
            let instances = "1g.5gb".parse().ok().map(|profile| (profile, 1));
            MigRequest::new(instances).map_or(GpuRequest::Whole(1), GpuRequest::Mig)
        }
        10..=12 => GpuRequest::Whole(2),
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
        place: place(rng),
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
        submitted_by: "alice".to_owned(),
        submitter_id: "user/1".to_owned(),
        source: "CLI".to_owned(),
        priority: priority([50, 50, 60, 40][rng.below(4)]),
        backoff_limit: [0, 1, 6][rng.below(3)],
        delete_after_ms: (rng.below(10) == 0).then_some(30_000),
        delete_when_preempted: rng.below(12) == 0,
        gates: (0..usize::from(rng.below(16) == 0)).map(|_| "review".to_owned()).collect(),
        preemption_delay_ms: [0, 0, 0, 60_000][rng.below(4)],
        time_limit_ms: (rng.below(10) == 0).then_some(600_000),
        ..WorkloadSpec::new(name, WorkloadKind::Training, PodSet::one(pod))
    }
}

/// Several equal pods, which may run one after the other.
fn several(rng: &mut Rng, spec: &mut WorkloadSpec) {
    spec.pods.pods = 2 + below(rng, 3);
    match rng.below(3) {
        0 => spec.pods.parallelism = Some(1 + below(rng, 2)),
        1 => spec.pods.pods_min = spec.pods.pods,
        _ => {}
    }
}

/// A master and its workers.
fn distributed(rng: &mut Rng, spec: WorkloadSpec) -> WorkloadSpec {
    let pods = 1 + below(rng, 2);
    let framework = [Framework::PyTorch, Framework::Tf, Framework::Mpi][rng.below(3)];
    // Only PyTorch can run with fewer workers, and only MPI has a launcher that may wait.
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

/// Groups of a leader and one or two workers.
fn of_groups(rng: &mut Rng, mut spec: WorkloadSpec) -> WorkloadSpec {
    let (number, workers) = (1 + below(rng, 3), 1 + below(rng, 2));
    let recreate = rng.below(2) == 0;
    spec.pods.pod.restart = [Restart::Never, Restart::OnFailure, Restart::Always][rng.below(3)];
    let group = |at| Group { name: format!("g{at}"), recreate, ..Group::default() };
    let of = |at| {
        let leader =
            PodSet { role: LEADER.to_owned(), group: Some(group(at).name), ..spec.pods.clone() };
        let (role, pods) = (WORKER.to_owned(), workers);
        [leader.clone(), PodSet { role, pods, pods_min: pods, ..leader }]
    };
    let mut sets: Vec<_> = (0..number).flat_map(of).collect();
    let (first_waits, clean) = (false, [CleanPods::Running, CleanPods::None][rng.below(2)]);
    let framework = Framework::Lws;
    WorkloadSpec {
        kind: WorkloadKind::Distributed,
        groups: (0..number).map(group).collect(),
        children_min: Some(1),
        pods: sets.remove(0),
        more: sets,
        distributed: Some(DistributedSpec { framework, slots_per_worker: 1, first_waits, clean }),
        ..spec
    }
}

fn inference(rng: &mut Rng, mut spec: WorkloadSpec) -> WorkloadSpec {
    let replicas_min = below(rng, 2);
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
        recreate: false,
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
