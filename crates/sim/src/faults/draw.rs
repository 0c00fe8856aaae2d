//! What happens in a history. Owns: how likely each thing is, in every shape that a scenario can
//! say.

use model::{Cluster, MigProfile, MigRequest};

use crate::rng::Rng;
use crate::scenario::amount::{Count, CountLimit, Span};
use crate::scenario::{
    Amounts, At, Evicted, Gone, GpuAsk, Group, Mig, Node, NodeAffinity, OneOrMany, Operator,
    OverQuota, Place, Placement, PodSet, Policy, Preference, Queue, QuotaChange, Releasing,
    Requirement, Scenario, Schedule, Step, Strategy, Submit, Topology, TopologyConstraint,
    UsageWindow, WindowKind, Workload, World,
};
use crate::world::{Job, Simulation};

/// A few nodes and queues, and knobs where the policy says nothing.
pub(super) fn start(rng: &mut Rng, seed: u64, given: &Policy) -> Scenario {
    let mut scenario = Scenario::empty();
    scenario.description = Some(format!("seed {seed}"));
    scenario.world = World {
        evicted: if rng.below(4) == 0 { Evicted::Gone } else { Evicted::Pending },
        releasing: Releasing::UntilGone,
        schedule: Schedule::ToRest,
    };
    scenario.policy = At::from(policy(rng, given));
    let levels = vec![ZONE.to_owned(), RACK.to_owned()];
    scenario.topologies.push(At::from(Topology { name: NET.to_owned(), levels }));
    for number in 1..=1 + rng.below(5) {
        scenario.nodes.push(At::from(node(rng, &format!("n{number}"))));
    }
    for node in scenario.nodes.iter_mut().step_by(2) {
        node.value.labels.insert(model::POOL_LABEL.to_owned(), ODD.to_owned());
    }
    scenario.queues.push(At::from(queue(rng, "d", None)));
    for name in ["a", "b", "c"] {
        let parent = (rng.below(2) == 0).then_some("d");
        scenario.queues.push(At::from(queue(rng, name, parent)));
    }
    // A department that nobody is in would be a project.
    if scenario.queues.iter().all(|queue| queue.parent.is_none()) {
        scenario.queues[1].value.parent = Some("d".into());
    }
    if rng.below(3) == 0 {
        scenario.queues.iter_mut().for_each(|row| row.value = divided(rng, &row.value));
    }
    scenario
}

/// The pool of every other node.
const ODD: &str = "odd";

/// A queue that says what it has in each node pool.
fn divided(rng: &mut Rng, whole: &Queue) -> Queue {
    let other = queue(rng, &whole.name, None).share();
    let shares = [(model::POOL_DEFAULT, whole.share()), (ODD, other)];
    let pools = shares.map(|(pool, share)| (pool.to_owned(), share)).into();
    Queue { parent: whole.parent.clone(), pools, ..Queue::named(&whole.name) }
}

fn node(rng: &mut Rng, name: &str) -> Node {
    let gpus = [1, 2, 4, 8][rng.below(4)];
    let mut node: Node = Node::named(name);
    node.gpus = gpus;
    node.cpu = Count::new([4_000, 100_000][rng.below(2)]);
    node.labels.insert(ZONE.to_owned(), ["a", "b"][rng.below(2)].to_owned());
    if rng.below(4) == 0 {
        let mut each = vec![Mig::default(); gpus as usize];
        each[0] = Mig::count(profiles(&[SMALL, SMALL, LARGE]));
        node.mig = Some(OneOrMany::Many(each));
    }
    // A node without the label is outside of the topology.
    if rng.below(6) != 0 {
        node.labels.insert(RACK.to_owned(), ["1", "2"][rng.below(2)].to_owned());
    }
    node
}

/// Labels that nodes have, and the topology of them.
const ZONE: &str = "zone";
const RACK: &str = "rack";
const NET: &str = "net";

fn policy(rng: &mut Rng, given: &Policy) -> Policy {
    let mut policy = given.clone();
    if policy.reserve_after.is_none() {
        policy.reserve_after = [None, Some(5_000), Some(20_000)][rng.below(3)].map(Span::new);
    }
    if policy.over_quota.is_none() {
        policy.over_quota = (rng.below(3) == 0).then_some(OverQuota::ByQuota);
    }
    if policy.placement.is_none() && rng.below(3) == 0 {
        let [gpu, cpu, devices] =
            [0; 3].map(|_| [Strategy::BinPack, Strategy::Spread][rng.below(2)]);
        policy.placement = Some(Placement { gpu, cpu, devices });
    }
    if policy.usage.is_none() && rng.below(4) == 0 {
        let half_life = (rng.below(2) == 0).then_some(Span::new(60_000));
        let kind = [WindowKind::Sliding, WindowKind::Tumbling][rng.below(2)];
        let window = Span::new(60_000);
        policy.usage = Some(UsageWindow { window, kind, half_life, began: None });
    }
    policy
}

/// Somewhere else than in one of the zones, or better not there.
fn affinity(rng: &mut Rng) -> NodeAffinity {
    let zone = OneOrMany::One(["a", "b"][rng.below(2)].to_owned());
    let operator = [Operator::In, Operator::NotIn][rng.below(2)];
    let term = vec![Requirement { key: ZONE.to_owned(), operator, values: zone }];
    if rng.below(2) == 0 {
        return NodeAffinity { required: vec![term], preferred: Vec::new() };
    }
    NodeAffinity { required: Vec::new(), preferred: vec![Preference { weight: 10, term }] }
}

fn gpus(rng: &mut Rng) -> CountLimit {
    CountLimit::new(if rng.below(6) == 0 { u64::MAX } else { rng.below(9) as u64 * 500 })
}

fn queue(rng: &mut Rng, name: &str, parent: Option<&str>) -> Queue {
    let mut queue = Queue::named(name);
    queue.parent = parent.map(Into::into);
    queue.quota = Amounts { gpu: Some(gpus(rng)), ..Amounts::default() };
    if rng.below(4) == 0 {
        queue.limit = Amounts { gpu: Some(gpus(rng)), ..Amounts::default() };
    }
    queue.weight.gpu = Some(u32::try_from(rng.below(4)).unwrap_or(0));
    queue.priority = (rng.below(4) == 0).then_some(200);
    let span = |rng: &mut Rng| (rng.below(6) == 0).then_some(Span::new(4_000));
    (queue.preempt_min_runtime, queue.reclaim_min_runtime) = (span(rng), span(rng));
    queue
}

/// Profiles of instances that some nodes have.
const SMALL: &str = "1g.5gb";
const LARGE: &str = "3g.20gb";

fn profiles(names: &[&str]) -> impl Iterator<Item = MigProfile> {
    names.iter().filter_map(|name| name.parse().ok())
}

/// One or two instances on a node.
fn instances(rng: &mut Rng) -> model::GpuRequest {
    let wanted = [&[SMALL][..], &[LARGE], &[SMALL, LARGE], &[SMALL, SMALL]][rng.below(4)];
    let request = MigRequest::new(profiles(wanted).map(|profile| (profile, 1)));
    request.map_or(model::GpuRequest::Whole(1), model::GpuRequest::Mig)
}

fn shape(rng: &mut Rng) -> model::GpuRequest {
    match rng.below(8) {
        0 => instances(rng),
        _ => SHAPES[rng.below(SHAPES.len())],
    }
}

const SHAPES: [model::GpuRequest; 9] = [
    model::GpuRequest::Whole(0),
    model::GpuRequest::Whole(1),
    model::GpuRequest::Whole(1),
    model::GpuRequest::Whole(2),
    model::GpuRequest::Whole(4),
    model::GpuRequest::Share { devices: 1, millis: 500 },
    model::GpuRequest::Share { devices: 1, millis: 300 },
    model::GpuRequest::Share { devices: 2, millis: 500 },
    model::GpuRequest::Memory { devices: 1, bytes: 5 << 30 },
];

fn some_u32(rng: &mut Rng, end: usize) -> u32 {
    u32::try_from(rng.below(end)).unwrap_or(0)
}

fn workload(rng: &mut Rng, number: u32) -> Workload {
    let project = ["a", "b", "c"][rng.below(3)];
    let mut workload = Workload::named(&format!("w{number}"), project);
    workload.preemptible = Some(rng.below(4) != 0);
    workload.gated = rng.below(10) == 0;
    if rng.below(4) == 0 {
        let pools = [["odd", "default"], ["default", "odd"]][rng.below(2)];
        workload.pools = pools[rng.below(2)..].iter().map(ToString::to_string).collect();
    }
    workload.evicted = (rng.below(8) == 0).then_some(Evicted::Gone);
    workload.priority = (rng.below(4) == 0).then(|| [30, 80, 120][rng.below(3)]);
    workload.time_limit = (rng.below(6) == 0).then(|| Span::new([5_000, 60_000][rng.below(2)]));
    workload.preemption_delay = (rng.below(10) == 0).then_some(Span::new(3_000));
    workload.topology = near(rng, 8);
    if rng.below(4) == 0 {
        parts(rng, &mut workload);
    } else {
        alike(rng, &mut workload);
    }
    workload
}

/// One kind of pod: alone, elastic, a gang, or ending one by one.
fn alike(rng: &mut Rng, workload: &mut Workload) {
    let shape = shape(rng);
    workload.gpu = Some(GpuAsk(shape));
    workload.cpu = Some(Count::new([100, 1000][rng.below(2)]));
    workload.elastic = matches!(shape, model::GpuRequest::Whole(1..)) && rng.below(4) == 0;
    if rng.below(4) == 0 {
        workload.affinity = affinity(rng);
    }
    if workload.elastic {
        return;
    }
    if rng.below(3) == 0 {
        let pods = 2 + some_u32(rng, 4);
        workload.pods = Some(pods);
        workload.pods_min = Some(1 + some_u32(rng, pods as usize));
    }
    if rng.below(8) == 0 {
        workload.completions = Some(1 + some_u32(rng, 6));
        workload.backoff_limit = Some(some_u32(rng, 3));
        workload.runs_for = Some(Span::new([4_000, 30_000][rng.below(2)]));
        workload.pods_min = None;
    }
}

/// Several kinds of pods, some of them in groups.
fn parts(rng: &mut Rng, workload: &mut Workload) {
    let groups = rng.below(3);
    let sets = groups.max(1) + rng.below(3);
    for number in 0..sets {
        let pods = 1 + some_u32(rng, 3);
        // The first needs a pod, so that the workload does; so does each group.
        let least = u32::from(number < groups.max(1));
        let pods_min = least + some_u32(rng, (pods + 1 - least) as usize);
        workload.pod_sets.push(At::from(PodSet {
            pods,
            pods_min: Some(pods_min),
            gpu: GpuAsk(shape(rng)),
            cpu: Some(Count::new([100, 1000][rng.below(2)])),
            affinity: if rng.below(6) == 0 { affinity(rng) } else { NodeAffinity::default() },
            task_priority: some_u32(rng, 2),
            group: (number < groups).then(|| format!("g{number}")),
            topology: near(rng, 6),
            ..PodSet::named(&format!("s{number}"))
        }));
    }
    for number in 0..groups {
        workload.groups.push(At::from(Group {
            name: format!("g{number}"),
            // The second may be in the first.
            parent: (number == 1 && rng.below(2) == 0).then(|| "g0".to_owned()),
            children_min: (rng.below(2) == 0).then_some(1),
            topology: near(rng, 4),
        }));
    }
    workload.children_min = (rng.below(2) == 0).then_some(1);
}

/// Close together, one time in `of`.
fn near(rng: &mut Rng, of: usize) -> Option<TopologyConstraint> {
    if rng.below(of) != 0 {
        return None;
    }
    let level = |rng: &mut Rng| Some([ZONE, RACK][rng.below(2)].to_owned());
    let (required, preferred) = match rng.below(3) {
        0 => (level(rng), None),
        1 => (None, level(rng)),
        _ => (Some(ZONE.to_owned()), Some(RACK.to_owned())),
    };
    Some(TopologyConstraint { name: NET.to_owned(), required, preferred })
}

/// One thing that happens.
pub(super) fn step(rng: &mut Rng, simulation: &Simulation, number: u32) -> Step {
    let cluster = simulation.cluster();
    let alive: Vec<_> = simulation.jobs.iter().filter(|job| job.model.is_some()).collect();
    let some = |rng: &mut Rng| {
        let job = alive.get(rng.below(alive.len()))?;
        Some(OneOrMany::One(format!("{}/{}", job.project, job.name)))
    };
    let staying: Vec<_> = alive.iter().filter(|job| !job.leaving).collect();
    let nodes: Vec<_> = simulation.nodes.keys().cloned().collect();
    let node = OneOrMany::One(nodes[rng.below(nodes.len())].clone());
    let mut step = Step::default();
    match rng.below(25) {
        0..6 => step.submit = Some(At::from(Submit(vec![At::from(workload(rng, number))]))),
        6..8 => step.finish = some(rng),
        8..10 => step.delete = some(rng),
        10 => step.suspend = some(rng),
        11 if rng.below(3) == 0 => step.ungate = some(rng),
        11 => {
            let job = staying.get(rng.below(staying.len()));
            step.resume = job.map(|job| OneOrMany::One(format!("{}/{}", job.project, job.name)));
        }
        12..16 => step.gone = Some(Gone::All),
        16 => step.gone = some(rng).map(Gone::Of),
        17 => {
            let project = ["a", "b", "c", "d"][rng.below(4)].to_owned();
            let quota = Amounts { gpu: Some(gpus(rng)), ..Amounts::default() };
            let divided = simulation.cluster.is_divided() && rng.below(2) == 0;
            let pool = divided.then(|| ODD.to_owned());
            let mut change = QuotaChange { project, pool, quota, ..QuotaChange::default() };
            if rng.below(3) == 0 {
                change.limit.gpu = Some(gpus(rng));
                change.weight.gpu = Some(some_u32(rng, 4));
            }
            step.quota = Some(change);
        }
        18 | 19 => step.advance = Some(Span::new([5, 1000, 20_000, 100_000][rng.below(4)])),
        20 => {
            let running: Vec<_> = alive.iter().filter(|job| runs(cluster, job)).collect();
            let job = running.get(rng.below(running.len()));
            step.fail = job.map(|job| OneOrMany::One(format!("{}/{}", job.project, job.name)));
        }
        21..24 => {
            let mut more = workload(rng, number);
            // Somebody with a right to it, so that others are stopped.
            (more.topology, more.gated, more.priority) = (None, false, Some(120));
            step.submit = Some(At::from(Submit(vec![At::from(more)])));
        }
        _ => match rng.below(10) {
            6 => step.lose_gpu = Some(gpu(rng, simulation)),
            7 => step.return_gpu = Some(gpu(rng, simulation)),
            0 if simulation.nodes.len() > 1 => step.lose_node = Some(node),
            1 => step.cordon = Some(node),
            2 => step.drain = Some(node),
            3 => match simulation.lost.first() {
                Some(lost) => step.add_node = Some(At::from(self::node(rng, lost))),
                None => step.uncordon = Some(node),
            },
            4 if nodes.len() < 6 => {
                step.add_node = Some(At::from(self::node(rng, &format!("m{number}"))));
            }
            5 if nodes.len() > 1
                && cluster.nodes()[simulation.nodes[&nodes[0]]].pods.is_empty() =>
            {
                step.remove_node = Some(OneOrMany::One(nodes[0].clone()));
            }
            _ => step.uncordon = Some(node),
        },
    }
    step
}

/// A GPU, or an instance of one.
fn gpu(rng: &mut Rng, simulation: &Simulation) -> Place {
    let nodes: Vec<_> = simulation.nodes.iter().collect();
    let (name, id) = nodes[rng.below(nodes.len())];
    let gpus = simulation.cluster().nodes()[*id].gpus.len();
    Place { node: name.clone(), gpus: vec![some_u32(rng, gpus)] }
}

fn runs(cluster: &Cluster, job: &Job) -> bool {
    let pods = job.model.into_iter().flat_map(|id| &cluster.workloads()[id].pods);
    pods.into_iter().any(|&pod| cluster.pods()[pod].runs())
}
