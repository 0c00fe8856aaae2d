//! One sample: allocation and use of everything at one moment. Owns: the names of values, and how
//! those of pods add up to nodes, projects, departments and the cluster. A value that is not known
//! is left out, and so is every sum that it would be part of.

use std::collections::BTreeMap;
use std::fmt;

use engine::{GpuUse, Measured, RunKey, RunUse};
use units::{GPU_MILLIS, Instant, Resources};
use uuid::Uuid;

use super::Rates;
use spec::{NodeGpu, NodeSpec, Share, WorkloadKind, WorkloadSpec};
use view::{NodeView, OrgUnit, Phase, PodState, PodView, PoolShare, PoolView, View, WorkloadView};

/// Values of one subject by name ([`of`]).
pub type Values = BTreeMap<String, u64>;

/// Names of values.
pub mod of {
    /// Thousandths of GPUs that are held.
    pub const GPU: &str = "gpu";
    /// Thousandths of GPUs there are.
    pub const GPU_TOTAL: &str = "gpu_total";
    /// Thousandths of GPUs that are deserved.
    pub const GPU_QUOTA: &str = "gpu_quota";
    /// Nodes that have GPUs.
    pub const GPU_NODES: &str = "gpu_nodes";
    /// Thousandths of the time in which GPUs computed, on average.
    pub const BUSY: &str = "busy";
    /// Bytes of GPU memory in use.
    pub const GPU_MEMORY: &str = "gpu_memory";
    /// Bytes of memory of the GPUs that `GPU_MEMORY` is measured on.
    pub const GPU_MEMORY_TOTAL: &str = "gpu_memory_total";
    /// Bytes of GPU memory that are held.
    pub const GPU_MEMORY_HELD: &str = "gpu_memory_held";
    /// Milliseconds for which a GPU has not computed.
    pub const IDLE_MS: &str = "idle_ms";
    /// Thousandths of cores in use.
    pub const CPU: &str = "cpu";
    /// Thousandths of cores there are.
    pub const CPU_TOTAL: &str = "cpu_total";
    /// Thousandths of cores that are held.
    pub const CPU_HELD: &str = "cpu_held";
    /// Thousandths of cores that are deserved.
    pub const CPU_QUOTA: &str = "cpu_quota";
    /// Bytes of main memory in use.
    pub const MEMORY: &str = "memory";
    /// Bytes of main memory there are.
    pub const MEMORY_TOTAL: &str = "memory_total";
    /// Bytes of main memory that are held.
    pub const MEMORY_HELD: &str = "memory_held";
    /// Bytes of main memory that are deserved.
    pub const MEMORY_QUOTA: &str = "memory_quota";
    /// Thousandths of pods.
    pub const PODS: &str = "pods";
    /// Thousandths of pods that run.
    pub const PODS_RUNNING: &str = "pods_running";
    /// Thousandths of workloads that have not ended.
    pub const WORKLOADS: &str = "workloads";
    /// Milliseconds that workloads which have not ended have waited, on average.
    pub const WAITED_MS: &str = "waited_ms";
    /// Millionths of requests that were answered whole, each second.
    pub const ANSWERED: &str = "answered";
    /// Millionths of milliseconds that those took, together, each second.
    pub const ANSWER_MS: &str = "answer_ms";
    /// Thousandths of requests that waited or were being answered at a time.
    pub const REQUESTS: &str = "requests";
    /// Thousandths of replicas that are ready.
    pub const REPLICAS: &str = "replicas";

    /// A value of one GPU, by its number on the node.
    #[must_use]
    pub fn gpu(name: &str, index: u32) -> String {
        format!("{name}.{index}")
    }
}

/// Object that values describe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Everything.
    Cluster,
    /// A department.
    Department(u64),
    /// A project.
    Project(u64),
    /// The workloads of a kind.
    Kind(WorkloadKind),
    /// A node, by name.
    Node(String),
    /// The nodes of a node pool, by its id.
    Pool(String),
    /// A department in a node pool, by both ids, if there are several pools.
    DepartmentIn(u64, String),
    /// A project in a node pool, by both ids, if there are several pools.
    ProjectIn(u64, String),
    /// A pod.
    Pod(Uuid),
    /// Requests of an inference, over all replicas.
    Inference(Uuid),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("cluster"),
            Self::Department(id) => write!(f, "department/{id}"),
            Self::Project(id) => write!(f, "project/{id}"),
            Self::Kind(kind) => write!(f, "kind/{}", kind.name()),
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Pool(id) => write!(f, "pool/{id}"),
            Self::DepartmentIn(id, pool) => write!(f, "department/{id}/pool/{pool}"),
            Self::ProjectIn(id, pool) => write!(f, "project/{id}/pool/{pool}"),
            Self::Pod(id) => write!(f, "pod/{id}"),
            Self::Inference(id) => write!(f, "inference/{id}"),
        }
    }
}

/// Allocation and use of everything at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// Known values of each subject.
    pub values: BTreeMap<Subject, Values>,
}

/// Measurements, by run and GPU.
struct Seen<'a> {
    measured: bool,
    runs: BTreeMap<RunKey, &'a RunUse>,
    gpus: BTreeMap<&'a str, &'a GpuUse>,
    rates: &'a Rates,
}

/// Sums of measurements: `None` as soon as a part is unknown.
#[derive(Clone, Copy)]
struct Sum {
    cpu: Option<u64>,
    memory: Option<u64>,
}

impl Sum {
    fn add(&mut self, pod: &Values) {
        let plus = |sum: Option<u64>, name| Some(sum? + pod.get(name).copied()?);
        self.cpu = plus(self.cpu, of::CPU);
        self.memory = plus(self.memory, of::MEMORY);
    }

    fn and(&mut self, other: Self) {
        let plus = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        (self.cpu, self.memory) = (plus(self.cpu, other.cpu), plus(self.memory, other.memory));
    }
}

impl Sample {
    pub(crate) fn take(
        view: &View,
        measured: Option<&Measured>,
        rates: &Rates,
        now: Instant,
    ) -> Self {
        let runs = measured.map(|m| m.runs.as_slice()).unwrap_or_default();
        let gpus = measured.map(|m| m.gpus.as_slice()).unwrap_or_default();
        let seen = Seen {
            measured: measured.is_some(),
            runs: runs.iter().map(|run| (run.key, run)).collect(),
            gpus: gpus.iter().map(|gpu| (gpu.uuid.as_str(), gpu)).collect(),
            rates,
        };
        let mut values = BTreeMap::new();
        let nothing = seen.measured.then_some(0);
        let nothing = Sum { cpu: nothing, memory: nothing };
        let mut on_nodes: BTreeMap<&str, Sum> =
            view.nodes.iter().map(|node| (node.name.as_str(), nothing)).collect();
        let by_name = by_name(view);
        for (workload, pod) in placed(view) {
            let node = pod.node_name.as_deref().and_then(|name| by_name.get(name));
            let Some(node) = node else { continue };
            // A replica holds the resources of its own revision, not of the newest.
            let revision = pod.revision.and_then(|id| view.revisions.get(&id));
            let spec = revision.map_or(&workload.spec, |revision| &revision.spec);
            let of_pod = seen.pod(spec, pod, node);
            on_nodes.entry(&node.name).or_insert(nothing).add(&of_pod);
            for id in owners(view, workload, &node.name) {
                let org: &mut Values = values.entry(id).or_default();
                for name in [of::GPU_MEMORY, of::GPU_MEMORY_TOTAL] {
                    if let Some(bytes) = of_pod.get(name) {
                        *org.entry(name.to_owned()).or_default() += bytes;
                    }
                }
            }
            values.insert(Subject::Pod(pod.id), of_pod);
        }
        let requests = rates.flow.inferences.iter();
        values.extend(requests.map(|(id, own)| (Subject::Inference(*id), own.clone())));
        let mut whole = nothing;
        for node in &view.nodes {
            let sum = on_nodes.get(node.name.as_str()).copied().unwrap_or(nothing);
            whole.and(sum);
            values.insert(Subject::Node(node.name.clone()), seen.node(node, sum));
        }
        for project in view.projects.values() {
            units(&mut values, &project.unit, Subject::Project, Subject::ProjectIn);
        }
        for department in view.departments.values() {
            units(&mut values, department, Subject::Department, Subject::DepartmentIn);
        }
        kinds(&mut values, view);
        let all: Vec<&NodeSpec> = view.nodes.iter().map(|node| &*node.spec).collect();
        for pool in &view.pools {
            let own = all.iter().copied().filter(|node| pool.nodes.contains(&node.name));
            let own: Vec<&NodeSpec> = own.collect();
            let mut used = nothing;
            own.iter().for_each(|node| used.and(on_nodes[node.name.as_str()]));
            let inside = |workload: &&WorkloadView| workload.pool.as_ref() == Some(&pool.name);
            let workloads: Vec<_> = living(view).filter(inside).collect();
            let sums = sums(&values, &own, used, &workloads, now);
            values.insert(Subject::Pool(pool.id.clone()), sums);
        }
        let cluster = sums(&values, &all, whole, &living(view).collect::<Vec<_>>(), now);
        values.insert(Subject::Cluster, cluster);
        quotas(&mut values, view);
        Self { at: now, values }
    }

    /// A value of something, if it is known.
    #[must_use]
    pub fn value(&self, subject: &Subject, name: &str) -> Option<u64> {
        self.values.get(subject)?.get(name).copied()
    }
}

/// The pods that hold a place, with their workloads.
pub(super) fn placed(view: &View) -> impl Iterator<Item = (&WorkloadView, &PodView)> {
    let pods = view.workloads.values().flat_map(|w| w.pods.iter().map(move |pod| (&**w, pod)));
    pods.filter(|(_, pod)| pod.state.holds_place())
}

/// Nodes by their names.
pub(super) fn by_name(view: &View) -> BTreeMap<&str, &NodeSpec> {
    view.nodes.iter().map(|node| (node.name.as_str(), &*node.spec)).collect()
}

fn put(values: &mut Values, name: &str, value: impl Into<Option<u64>>) {
    if let Some(value) = value.into() {
        values.insert(name.to_owned(), value);
    }
}

/// Values of GPUs of which each is known, together: the mean of how busy they are, and memory.
#[derive(Default)]
struct Gpus {
    busy: Vec<u64>,
    memory: Option<(u64, u64)>,
}

impl Gpus {
    fn add(&mut self, values: &mut Values, index: u32, used: &GpuUse, memory_total: u64) {
        put(values, &of::gpu(of::BUSY, index), used.busy_millis);
        put(values, &of::gpu(of::GPU_MEMORY, index), used.memory_bytes);
        self.busy.extend(used.busy_millis);
        if let Some(bytes) = used.memory_bytes {
            let (sum, total) = self.memory.unwrap_or_default();
            self.memory = Some((sum + bytes, total + memory_total));
            put(values, &of::gpu(of::GPU_MEMORY_TOTAL, index), memory_total);
        }
    }

    fn finish(self, values: &mut Values) {
        let count = self.busy.len() as u64;
        put(values, of::BUSY, self.busy.iter().sum::<u64>().checked_div(count));
        put(values, of::GPU_MEMORY, self.memory.map(|(sum, _)| sum));
        put(values, of::GPU_MEMORY_TOTAL, self.memory.map(|(_, total)| total));
    }
}

impl Seen<'_> {
    fn pod(&self, spec: &WorkloadSpec, pod: &PodView, node: &NodeSpec) -> Values {
        let mut values = Values::new();
        let key = RunKey { pod: pod.id, generation: pod.generation };
        let run = self.runs.get(&key);
        put(&mut values, of::PODS, 1000);
        put(&mut values, of::PODS_RUNNING, if pod.state == PodState::Running { 1000 } else { 0 });
        put(&mut values, of::GPU, pod.gpus.iter().map(|(_, millis)| millis).sum::<u64>());
        let (set, _) = spec.set_of(pod.index as usize);
        put(&mut values, of::CPU_HELD, set.pod.cpu_millis);
        put(&mut values, of::MEMORY_HELD, set.pod.memory_bytes);
        put(&mut values, of::CPU, self.rates.cpu_millis.get(&key).copied());
        put(&mut values, of::MEMORY, run.map(|run| run.memory_bytes));
        values.extend(self.rates.flow.replicas.get(&key).cloned().unwrap_or_default());
        let (mut gpus, mut held) = (Gpus::default(), 0);
        for &(index, millis) in &pod.gpus {
            let Some(gpu) = node.gpus.get(index as usize) else { continue };
            held += gpu.memory_of(millis);
            // Use of a whole GPU is that of the device; of a shared one that of the run, as the
            // driver reports it.
            let is_whole = millis == GPU_MILLIS && gpu.instance.is_none();
            let whole = is_whole.then(|| self.gpus.get(gpu.uuid.as_str())).flatten();
            let own = || run?.gpus.iter().find(|own| own.uuid == gpu.looked_at());
            if let Some(used) = whole.copied().or_else(own) {
                gpus.add(&mut values, index, used, gpu.memory_of(millis));
            }
        }
        gpus.finish(&mut values);
        put(&mut values, of::GPU_MEMORY_HELD, held);
        values
    }

    fn node(&self, shown: &NodeView, sum: Sum) -> Values {
        let (mut values, node) = (Values::new(), &shown.spec);
        put(&mut values, of::CPU, sum.cpu);
        put(&mut values, of::MEMORY, sum.memory);
        put(&mut values, of::CPU_TOTAL, node.cpu_millis);
        put(&mut values, of::MEMORY_TOTAL, node.memory_bytes);
        put(
            &mut values,
            of::GPU_TOTAL,
            node.gpus.iter().map(NodeGpu::capacity_millis).sum::<u64>(),
        );
        put(&mut values, of::GPU, shown.used.gpu_millis);
        put(&mut values, of::CPU_HELD, shown.used.cpu_millis);
        put(&mut values, of::MEMORY_HELD, shown.used.memory_bytes);
        let held = shown.gpu_used_millis.iter().zip(&node.gpus);
        for (index, (millis, gpu)) in (0..).zip(held) {
            put(&mut values, &of::gpu(of::GPU, index), *millis);
            put(&mut values, &of::gpu(of::GPU_MEMORY_HELD, index), gpu.memory_of(*millis));
        }
        let mut gpus = Gpus::default();
        for (index, gpu) in (0..).zip(&node.gpus) {
            if let Some(used) = self.gpus.get(gpu.uuid.as_str()) {
                gpus.add(&mut values, index, used, gpu.memory_bytes);
            }
            let idle = self.rates.idle_ms.get(&gpu.uuid).copied();
            put(&mut values, &of::gpu(of::IDLE_MS, index), idle);
        }
        gpus.finish(&mut values);
        values
    }
}

/// Whose a pod on this node is: of a project and department, and of their parts of its pool.
fn owners(view: &View, workload: &WorkloadView, node: &str) -> Vec<Subject> {
    let (project, department) = (workload.project_id, workload.department_id);
    let mut owners = vec![Subject::Project(project), Subject::Department(department)];
    let has_it = |pool: &&std::sync::Arc<PoolView>| pool.nodes.iter().any(|own| own == node);
    let pool = view.pools.iter().find(has_it).filter(|_| view.pools.len() > 1);
    if let Some(pool) = pool {
        owners.push(Subject::ProjectIn(project, pool.id.clone()));
        owners.push(Subject::DepartmentIn(department, pool.id.clone()));
    }
    owners
}

/// The pools in which any queue deserves or holds anything, where there are several.
fn parts(pools: &[PoolShare]) -> impl Iterator<Item = &PoolShare> {
    let has = |part: &&PoolShare| {
        part.share.gpu_quota_millis > 0 || part.status.allocated != Resources::ZERO
    };
    pools.iter().filter(|_| pools.len() > 1).filter(has)
}

/// Values of a department or project, in total and in each pool.
fn units(
    values: &mut BTreeMap<Subject, Values>,
    unit: &OrgUnit,
    whole: fn(u64) -> Subject,
    part: fn(u64, String) -> Subject,
) {
    let all = values.entry(whole(unit.id)).or_default();
    status(all, unit.status.allocated, &unit.pools);
    for own in parts(&unit.pools) {
        let values = values.entry(part(unit.id, own.id.to_string())).or_default();
        status(values, own.status.allocated, std::slice::from_ref(own));
    }
}

/// Allocation, and quota in these pools together. A quota that is unlimited in one of them has no
/// sum.
fn status(values: &mut Values, held: Resources, pools: &[PoolShare]) {
    put(values, of::GPU, held.gpu_millis);
    put(values, of::CPU_HELD, held.cpu_millis);
    put(values, of::MEMORY_HELD, held.memory_bytes);
    let sum = |of: fn(&Share) -> Option<u64>| -> Option<u64> {
        pools.iter().map(|pool| of(&pool.share)).sum()
    };
    put(values, of::GPU_QUOTA, sum(|share| Some(share.gpu_quota_millis)));
    put(values, of::CPU_QUOTA, sum(|share| share.cpu_quota_millis));
    put(values, of::MEMORY_QUOTA, sum(|share| share.memory_quota_bytes));
}

/// GPU quotas of the departments in each pool, and in all.
fn quotas(values: &mut BTreeMap<Subject, Values>, view: &View) {
    for share in view.departments.values().flat_map(|department| &department.pools) {
        for id in [Subject::Cluster, Subject::Pool(share.id.to_string())] {
            let quota = values.entry(id).or_default().entry(of::GPU_QUOTA.to_owned()).or_default();
            *quota = quota.saturating_add(share.share.gpu_quota_millis);
        }
    }
}

fn has_ended(workload: &WorkloadView) -> bool {
    matches!(workload.phase, Phase::Completed | Phase::Failed)
}

fn kinds(values: &mut BTreeMap<Subject, Values>, view: &View) {
    for workload in view.workloads.values() {
        let of_kind = values.entry(Subject::Kind(workload.spec.kind)).or_default();
        *of_kind.entry(of::GPU.to_owned()).or_default() += workload.allocated.gpu_millis;
        let living = if has_ended(workload) { 0 } else { 1000 };
        *of_kind.entry(of::WORKLOADS.to_owned()).or_default() += living;
    }
}

fn living(view: &View) -> impl Iterator<Item = &WorkloadView> {
    view.workloads.values().map(AsRef::as_ref).filter(|workload| !has_ended(workload))
}

/// Totals of these nodes, with the workloads on them.
fn sums(
    values: &BTreeMap<Subject, Values>,
    nodes: &[&NodeSpec],
    used: Sum,
    workloads: &[&WorkloadView],
    now: Instant,
) -> Values {
    let mut sums = Values::new();
    let of_nodes = |name: &str| -> Vec<u64> {
        let found = nodes.iter().map(|node| Subject::Node(node.name.clone()));
        found.filter_map(|node| values.get(&node)?.get(name).copied()).collect()
    };
    put(&mut sums, of::CPU, used.cpu);
    put(&mut sums, of::MEMORY, used.memory);
    for name in [of::GPU, of::GPU_TOTAL, of::CPU_TOTAL, of::MEMORY_TOTAL] {
        put(&mut sums, name, of_nodes(name).iter().sum::<u64>());
    }
    for name in [of::GPU_MEMORY, of::GPU_MEMORY_TOTAL] {
        let known = of_nodes(name);
        put(&mut sums, name, (!known.is_empty()).then(|| known.iter().sum()));
    }
    let gpus = nodes.iter().flat_map(|node| (0..).zip(&node.gpus).map(move |(at, _)| (node, at)));
    let busy: Vec<u64> = gpus
        .filter_map(|(node, at)| {
            let node = values.get(&Subject::Node(node.name.clone()))?;
            node.get(&of::gpu(of::BUSY, at)).copied()
        })
        .collect();
    put(&mut sums, of::BUSY, busy.iter().sum::<u64>().checked_div(busy.len() as u64));
    let with_gpus = nodes.iter().filter(|node| !node.gpus.is_empty()).count();
    put(&mut sums, of::GPU_NODES, with_gpus as u64);
    let waited = workloads.iter().map(|workload| {
        let waits = workload.phase == Phase::Pending;
        workload.waited_ms + if waits { now.since_ms(workload.phase_since) } else { 0 }
    });
    let count = workloads.len() as u64;
    put(&mut sums, of::WORKLOADS, count * 1000);
    put(&mut sums, of::WAITED_MS, waited.sum::<u64>().checked_div(count));
    sums
}
