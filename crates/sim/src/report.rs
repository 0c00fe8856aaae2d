//! Report of one decision and the state after it. Owns: the JSON of a report; keys in a fixed
//! order. Does not know about: layout.

use model::{Cluster, Placement, PodBinding, PodId};
use reasons::Cause;
use sched::Step;
use serde::Serialize;
use units::{Instant, Resources};

use crate::diagnosis::{Diagnosis, Reason};
use crate::play::{NamedQueue, Simulation};
use crate::scenario::{DecisionKind, ProfileName, State};

/// A decision and the state after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frame {
    /// Number of the decision, from 1.
    pub cycle: u64,
    /// Step of the scenario it followed; 0 is the state at the start.
    pub step: u32,
    /// Virtual milliseconds since the start.
    pub at_ms: u64,
    /// Decided steps, in pod order.
    pub decisions: Vec<Decision>,
    /// Every task of every workload that is not gone; empty if not recorded.
    pub tasks: Vec<Task>,
    /// Every queue; empty if not recorded.
    pub queues: Vec<Queue>,
    /// Reasons why workloads wait.
    pub pending: Vec<Waiting>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// `bind`, `reserve`, `unreserve`, `evict`, `move`, `resize`.
    pub kind: &'static str,
    /// Workload.
    pub workload: String,
    /// Its project.
    pub project: String,
    /// Number of the pod.
    pub task: u32,
    /// Place before the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Place>,
    /// Place after the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Place>,
    /// Code of the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The cause, with its numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Workload for which resources were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beneficiary: Option<String>,
}

/// A node and shares of its GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Node.
    pub node: String,
    /// GPUs.
    pub gpus: Vec<GpuShare>,
}

/// As text: `node[0 1:0.5 2:1g.5gb]`.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gpu = |gpu: &GpuShare| match (gpu.mig, gpu.millis) {
            (Some(profile), _) => format!("{}:{}", gpu.index, profile.0),
            (None, units::GPU_MILLIS) => gpu.index.to_string(),
            (None, millis) => format!("{}:{}", gpu.index, units::format_millis(millis)),
        };
        let gpus: Vec<_> = self.gpus.iter().map(gpu).collect();
        f.write_str(&self.node)?;
        if gpus.is_empty() { Ok(()) } else { write!(f, "[{}]", gpus.join(" ")) }
    }
}

/// A share of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GpuShare {
    /// Index on its node.
    pub index: u32,
    /// Thousandths of the GPU; for a MIG instance, the thousandths of a GPU that it counts for.
    pub millis: u64,
    /// Profile of the MIG instance, which is used as a whole; `None` for other GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig: Option<ProfileName>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Workload.
    pub workload: String,
    /// Its project.
    pub project: String,
    /// Number among the workload's pods.
    pub task: u32,
    /// State.
    pub state: State,
    /// Current place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The place reserved for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Place>,
}

/// Amounts of resources; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// Thousandths of GPUs.
    pub gpu_millis: Option<u64>,
    /// Thousandths of cores.
    pub cpu_millis: Option<u64>,
    /// Bytes of main memory.
    pub memory_bytes: Option<u64>,
}

/// A queue with its shares and usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Name of the parent queue; `None` under the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Node pool; `None` unless every pool has queues of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Quota.
    pub quota: Amounts,
    /// Limit.
    pub limit: Amounts,
    /// Resources that its workloads use.
    pub allocated: Amounts,
    /// Requests of its workloads, running or not.
    pub requested: Amounts,
    /// Fair share at this moment.
    pub fair_share: Amounts,
    /// Recent usage in millionths of the cluster; `None` if usage does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_ppm: Option<Usage>,
}

/// Usage in millionths of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Usage of GPUs.
    pub gpu: u64,
    /// Usage of cores.
    pub cpu: u64,
    /// Usage of memory.
    pub memory: u64,
}

/// A pending workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Workload.
    pub workload: String,
    /// Its project.
    pub project: String,
    /// Reasons why it waits.
    pub reasons: Vec<Reason>,
    /// Detailed diagnosis, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// Name of an equal workload that has the detailed diagnosis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
}

impl Queue {
    /// The title for output: its name, and its node pool if each pool has queues of its own.
    #[must_use]
    pub fn title(&self) -> String {
        let pool = self.pool.as_ref().map(|pool| format!(" in pool {pool}"));
        format!("{}{}", self.name, pool.unwrap_or_default())
    }
}

impl Frame {
    /// The decision without the state.
    pub(crate) fn decisions(simulation: &Simulation, cycle: u64, step: u32) -> Self {
        let steps = simulation.plan().steps.iter();
        Self {
            cycle,
            step,
            at_ms: simulation.elapsed_ms(),
            decisions: steps.map(|step| decision(simulation.cluster(), step)).collect(),
            tasks: Vec::new(),
            queues: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// The decision, and the state after it.
    pub(crate) fn whole(simulation: &Simulation, cycle: u64, step: u32) -> Self {
        let decisions = Self::decisions(simulation, cycle, step).decisions;
        Self { decisions, ..Self::state(simulation, cycle, step) }
    }

    /// The state, with the reasons why workloads wait.
    #[must_use]
    pub fn state(simulation: &Simulation, cycle: u64, step: u32) -> Self {
        let pending = simulation.plan().pending.iter();
        let waiting = pending.filter_map(|(id, reasons)| {
            let job = &simulation.jobs[*simulation.by_model.get(id)?];
            Some(Waiting {
                workload: job.name.clone(),
                project: job.project.clone(),
                reasons: reasons.iter().map(|why| reason(why, simulation.now())).collect(),
                diagnosis: None,
                like: None,
            })
        });
        Self {
            cycle,
            step,
            at_ms: simulation.elapsed_ms(),
            decisions: Vec::new(),
            tasks: tasks(simulation),
            queues: queues(simulation),
            pending: waiting.collect(),
        }
    }
}

fn reason(pending: &reasons::Pending, now: Instant) -> Reason {
    let code = pending.code();
    Reason { code: code.code, name: code.name, message: pending.as_of(now).to_string() }
}

fn tasks(simulation: &Simulation) -> Vec<Task> {
    let cluster = simulation.cluster();
    let alive = simulation.jobs.iter().filter_map(|job| Some((job, job.model?)));
    let pods =
        alive.flat_map(|(job, id)| cluster.workloads()[id].pods.iter().map(move |&pod| (job, pod)));
    pods.map(|(job, pod)| task(cluster, (&job.project, &job.name), pod)).collect()
}

/// The state of a pod of the workload with this project and name.
pub(crate) fn task(cluster: &Cluster, (project, name): (&str, &str), pod: PodId) -> Task {
    let pod = &cluster.pods()[pod];
    Task {
        workload: name.to_owned(),
        project: project.to_owned(),
        task: pod.index,
        state: task_state(pod),
        place: pod.binding.current.as_ref().map(|place| named(cluster, place)),
        next: pod.binding.next.as_ref().map(|place| named(cluster, place)),
    }
}

/// The state of one pod.
pub(crate) fn task_state(pod: &model::Pod) -> State {
    match &pod.binding {
        PodBinding { current: Some(_), releasing: true, .. } => State::Releasing,
        PodBinding { current: Some(_), .. } => State::Running,
        PodBinding { next: Some(_), .. } => State::Reserved,
        _ if pod.wants => State::Pending,
        _ => State::Suspended,
    }
}

/// The queues of the scenario, in its order, for one node pool after the other.
fn queues(simulation: &Simulation) -> Vec<Queue> {
    let cluster = simulation.cluster();
    let in_pool = |(at, named): (usize, &NamedQueue)| {
        cluster.queues_of(named.id).map(move |id| (cluster.queues()[id].pool, at, id)).collect()
    };
    let named = simulation.queues.iter().enumerate();
    let mut rows: Vec<_> = named.flat_map(|row| -> Vec<_> { in_pool(row) }).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, at, id)| queue_row(simulation, &simulation.queues[at], id)).collect()
}

fn queue_row(simulation: &Simulation, named: &NamedQueue, id: model::QueueId) -> Queue {
    let cluster = simulation.cluster();
    let (queue, fair) = (&cluster.queues()[id], simulation.fair_share(id));
    let model::Usage { gpu_ppm: gpu, cpu_ppm: cpu, memory_ppm: memory } = queue.usage;
    let usage = Usage { gpu, cpu, memory };
    Queue {
        name: named.name.clone(),
        parent: named.parent.clone(),
        pool: cluster.is_divided().then(|| cluster.pool_name(queue.pool).to_owned()),
        quota: amounts(queue.share.quota),
        limit: amounts(queue.share.limit),
        allocated: amounts(queue.allocated),
        requested: amounts(queue.requested),
        fair_share: amounts(fair),
        usage_ppm: simulation.policy().usage.map(|_| usage),
    }
}

fn amounts(resources: Resources) -> Amounts {
    let finite = |amount| (amount != u64::MAX).then_some(amount);
    Amounts {
        gpu_millis: finite(resources.gpu_millis),
        cpu_millis: finite(resources.cpu_millis),
        memory_bytes: finite(resources.memory_bytes),
    }
}

fn named(cluster: &Cluster, place: &Placement) -> Place {
    let node = &cluster.nodes()[place.node];
    let gpu = |share: &model::DeviceShare| GpuShare {
        index: share.gpu,
        millis: share.millis,
        mig: node.gpus[share.gpu as usize].profile().map(ProfileName),
    };
    Place { node: node.name.clone(), gpus: place.devices.iter().map(gpu).collect() }
}

/// The report of a step of a plan.
pub(crate) fn decision(cluster: &Cluster, step: &Step) -> Decision {
    let (pod, from, to, cause) = match step {
        Step::Bind { pod, to } | Step::Reserve { pod, to } => (*pod, None, Some(to), None),
        Step::Unreserve { pod } => (*pod, None, None, None),
        Step::Evict { pod, from, cause } => (*pod, Some(from), None, Some(cause)),
        Step::Move { pod, from, to, cause } | Step::Resize { pod, from, to, cause } => {
            (*pod, Some(from), Some(to), Some(cause))
        }
    };
    let workload = cluster.workload_of(pod);
    let project = &cluster.queues()[workload.spec.queue].name;
    Decision {
        kind: kind(step).as_str(),
        workload: workload.spec.name.clone(),
        project: project.clone(),
        task: cluster.pods()[pod].index,
        from: from.map(|place| named(cluster, place)),
        to: to.map(|place| named(cluster, place)),
        code: cause.map(|cause| cause.code().code),
        reason: cause.map(ToString::to_string),
        beneficiary: cause.and_then(Cause::beneficiary).map(ToString::to_string),
    }
}

/// Kind of a step of a plan.
pub(crate) const fn kind(step: &Step) -> DecisionKind {
    match step {
        Step::Bind { .. } => DecisionKind::Bind,
        Step::Reserve { .. } => DecisionKind::Reserve,
        Step::Unreserve { .. } => DecisionKind::Unreserve,
        Step::Evict { .. } => DecisionKind::Evict,
        Step::Move { .. } => DecisionKind::Move,
        Step::Resize { .. } => DecisionKind::Resize,
    }
}

/// Pods stopped by the last decision: labels of the workloads, and codes of the causes.
pub(crate) fn stopped(simulation: &Simulation) -> Vec<(String, String)> {
    let stops = simulation.plan().steps.iter().filter_map(|step| match step {
        Step::Evict { pod, cause, .. }
        | Step::Move { pod, cause, .. }
        | Step::Resize { pod, cause, .. } => Some((*pod, cause)),
        _ => None,
    });
    stops.map(|(pod, cause)| (label_of(simulation, pod), cause.code().code.to_owned())).collect()
}

/// The label of the workload of a pod.
pub(crate) fn label_of(simulation: &Simulation, pod: PodId) -> String {
    let id = simulation.cluster().pods()[pod].workload;
    match simulation.by_model.get(&id) {
        Some(&job) => simulation.label(&simulation.jobs[job]),
        None => simulation.cluster().workloads()[id].spec.name.clone(),
    }
}
