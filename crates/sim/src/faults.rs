//! Random histories that follow from a seed: submits, ends, quotas, lost nodes (reported twice),
//! slow kills, observations that come late and out of order. Owns: drawing the history and checking every invariant
//! after each step. A history that breaks one is a scenario that repeats it.

use model::{Cluster, MigProfile, MigRequest, Pod, PodId, WorkloadId};
use sched::Step as Decided;

use crate::rng::Rng;
use crate::scenario::amount::{CountLimit, Span};
use crate::scenario::{
    Amounts, At, Evicted, Gone, GpuAsk, Mig, Node, NodeAffinity, OneOrMany, Operator, Policy,
    Preference, Profile, Queue, QuotaChange, Releasing, Requirement, Scenario, Schedule, Step,
    Submit, Workload, World,
};
use crate::world::{Record, Run, Simulation};

/// What histories came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps.
    pub steps: u64,
    /// Decisions.
    pub cycles: u64,
    /// Pods that got a place at once.
    pub starts: u64,
    /// Pods that were stopped.
    pub stops: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.cycles += other.cycles;
        self.starts += other.starts;
        self.stops += other.stops;
    }
}

/// An invariant that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// After which step; 0 is the start.
    pub step: usize,
    /// What was wrong.
    pub fault: String,
    /// The history up to there, as a scenario.
    pub script: String,
}

/// Runs the history of a seed.
///
/// # Errors
/// An invariant was broken; the script repeats the history.
pub fn run(seed: u64, steps: u32, policy: &Policy) -> Result<Tally, Box<Broken>> {
    let mut rng = Rng::new(seed);
    let mut scenario = start(&mut rng, seed, policy);
    scenario.policy = At::from(policy.clone());
    let broken = |scenario: &Scenario, fault: String| {
        let script = scenario.to_json().unwrap_or_else(|error| format!("# {error}\n"));
        Box::new(Broken { step: scenario.steps.len(), fault, script })
    };
    let mut run = Run::new(&scenario, Record::Decisions, Some(check_decision))
        .map_err(|error| broken(&scenario, error.to_string()))?;
    for number in 0..steps {
        let step = At::from(draw(&mut rng, &run.simulation, number));
        scenario.steps.push(step.clone());
        run.take(&step).map_err(|error| broken(&scenario, error.to_string()))?;
        let twice = lost_twice(&run.simulation, &step);
        if let Some(fault) = run.broken.take().or(twice.err()) {
            return Err(broken(&scenario, fault));
        }
    }
    Ok(Tally { steps: u64::from(steps), cycles: run.cycles, starts: run.starts, stops: run.stops })
}

/// The history of a seed as a scenario, as far as it can be told; its last step is not run.
#[must_use]
pub fn script(seed: u64, steps: u32, policy: &Policy) -> String {
    let mut rng = Rng::new(seed);
    let mut scenario = start(&mut rng, seed, policy);
    scenario.policy = At::from(policy.clone());
    if let Ok(mut run) = Run::new(&scenario, Record::Decisions, None) {
        for number in 0..steps {
            let step = At::from(draw(&mut rng, &run.simulation, number));
            scenario.steps.push(step.clone());
            if number + 1 < steps && run.take(&step).is_err() {
                break;
            }
        }
    }
    scenario.to_json().unwrap_or_default()
}

/// A node that is lost is lost: nobody was placed there by the decisions that followed, so hearing
/// of the loss a second time changes nothing.
fn lost_twice(simulation: &Simulation, step: &Step) -> Result<(), String> {
    if step.lose_node.is_none() {
        return Ok(());
    }
    let mut again = simulation.clone();
    for name in step.lose_node.iter().flat_map(OneOrMany::as_slice) {
        again.lose_node(name)?;
    }
    let same = again.cluster().pods().iter().eq(simulation.cluster().pods().iter());
    if same { Ok(()) } else { Err("somebody was placed on a node that is lost".into()) }
}

/// A few nodes and queues.
fn start(rng: &mut Rng, seed: u64, policy: &Policy) -> Scenario {
    let mut scenario = Scenario::empty();
    scenario.description = Some(format!("seed {seed}"));
    scenario.world = World {
        evicted: if rng.below(4) == 0 { Evicted::Gone } else { Evicted::Pending },
        releasing: Releasing::UntilGone,
        schedule: Schedule::ToRest,
    };
    for number in 1..=1 + rng.below(4) {
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
    if seed.is_multiple_of(3) && policy.profile != Some(Profile::Kai) {
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
    node.cpu = crate::scenario::amount::Count::new([4_000, 100_000][rng.below(2)]);
    if rng.below(4) == 0 {
        let mut each = vec![Mig::default(); gpus as usize];
        each[0] = Mig::count(profiles(&[SMALL, SMALL, LARGE]));
        node.mig = Some(OneOrMany::Many(each));
    }
    node.labels.insert(ZONE.to_owned(), ["a", "b"][rng.below(2)].to_owned());
    node
}

/// A label that every node has.
const ZONE: &str = "zone";

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

fn workload(rng: &mut Rng, number: u32) -> Workload {
    let project = ["a", "b", "c"][rng.below(3)];
    let mut workload = Workload::named(&format!("w{number}"), project);
    let shape = match rng.below(8) {
        0 => instances(rng),
        _ => SHAPES[rng.below(SHAPES.len())],
    };
    workload.gpu = Some(GpuAsk(shape));
    workload.cpu = Some(crate::scenario::amount::Count::new([100, 1000][rng.below(2)]));
    workload.preemptible = Some(rng.below(4) != 0);
    workload.elastic = matches!(shape, model::GpuRequest::Whole(1..)) && rng.below(4) == 0;
    if rng.below(4) == 0 {
        workload.affinity = affinity(rng);
    }
    workload.gated = rng.below(10) == 0;
    if rng.below(4) == 0 {
        let pools = [["odd", "default"], ["default", "odd"]][rng.below(2)];
        workload.pools = pools[rng.below(2)..].iter().map(ToString::to_string).collect();
    }
    if rng.below(8) == 0 {
        workload.evicted = Some(Evicted::Gone);
    }
    workload.priority = (rng.below(4) == 0).then(|| [30, 80, 120][rng.below(3)]);
    if !workload.elastic && rng.below(3) == 0 {
        let pods = 2 + rng.below(4);
        workload.pods = u32::try_from(pods).ok();
        let fewest = 1 + rng.below(pods);
        workload.pods_min = u32::try_from(fewest).ok();
    }
    workload
}

/// One thing that happens.
fn draw(rng: &mut Rng, simulation: &Simulation, number: u32) -> Step {
    let alive: Vec<_> = simulation.jobs.iter().filter(|job| job.model.is_some()).collect();
    let some = |rng: &mut Rng| {
        let job = alive.get(rng.below(alive.len()))?;
        Some(OneOrMany::One(format!("{}/{}", job.project, job.name)))
    };
    let staying: Vec<_> = alive.iter().filter(|job| !job.leaving).collect();
    let nodes: Vec<_> = simulation.nodes.keys().cloned().collect();
    let node = OneOrMany::One(nodes[rng.below(nodes.len())].clone());
    let mut step = Step::default();
    match rng.below(20) {
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
            step.quota = Some(QuotaChange { project, pool, quota, ..QuotaChange::default() });
        }
        18 => step.advance = Some(Span::new([5, 1000, 20_000, 100_000][rng.below(4)])),
        _ => match rng.below(7) {
            0 if simulation.nodes.len() > 1 => step.lose_node = Some(node),
            1 => step.cordon = Some(node),
            2 => step.drain = Some(node),
            3 | 4 => match simulation.lost.first() {
                Some(lost) => step.add_node = Some(At::from(self::node(rng, lost))),
                None => step.uncordon = Some(node),
            },
            _ => step.uncordon = Some(node),
        },
    }
    step
}

/// What must hold of every state.
fn check(simulation: &Simulation) -> Result<(), String> {
    let cluster = simulation.cluster();
    cluster.verify()?;
    for (_, queue) in cluster.queues().iter() {
        if !queue.allocated_non_preemptible.fits_in(queue.allocated) {
            return Err(format!("queue {} holds less than what cannot be preempted", queue.name));
        }
    }
    Ok(())
}

/// What must hold of every decision.
fn check_decision(old: &Simulation, new: &Simulation) -> Result<(), String> {
    check(new)?;
    let mut again = old.clone();
    again.cycle();
    if again.plan() != new.plan() {
        return Err("equal input gave another plan".into());
    }
    let cluster = new.cluster();
    for id in cluster.waiting() {
        if new.plan().pending.get(&id).is_none_or(Vec::is_empty) {
            return Err(format!("{} waits without a reason", name(cluster, id)));
        }
    }
    for (id, workload) in cluster.workloads().iter() {
        check_gang(old.cluster(), cluster, id, workload)?;
    }
    check_beneficiaries(new)
}

/// A gang starts with all it needs or not at all.
fn check_gang(
    old: &Cluster,
    new: &Cluster,
    id: WorkloadId,
    workload: &model::Workload,
) -> Result<(), String> {
    let runs = |cluster: &Cluster, pod: &PodId| cluster.pods().get(*pod).is_some_and(Pod::runs);
    let count = |cluster| workload.pods.iter().filter(|pod| runs(cluster, pod)).count();
    let (before, after) = (count(old), count(new));
    if after > before && !new.runs(id) {
        return Err(format!(
            "{} starts with {after} of at least {} pods",
            name(new, id),
            workload.spec.pods_min()
        ));
    }
    Ok(())
}

/// Nobody is stopped for somebody who then has no place.
fn check_beneficiaries(new: &Simulation) -> Result<(), String> {
    let cluster = new.cluster();
    for decided in &new.plan().steps {
        let (Decided::Evict { pod, cause, .. }
        | Decided::Move { pod, cause, .. }
        | Decided::Resize { pod, cause, .. }) = decided
        else {
            continue;
        };
        let Some(beneficiary) = cause.beneficiary() else { continue };
        let placed = cluster.workloads().get(beneficiary.id).is_some_and(|row| row.placed > 0);
        if !placed {
            let victim = &cluster.workload_of(*pod).spec.name;
            return Err(format!("{victim} is stopped for {beneficiary}, which gets no place"));
        }
    }
    Ok(())
}

fn name(cluster: &Cluster, id: WorkloadId) -> String {
    cluster.workloads()[id].spec.name.clone()
}
