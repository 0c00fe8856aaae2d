//! The initial server of a scenario, as stored rows. Owns: every check of an object against the
//! others, and the conversion of objects to rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{POOL_DEFAULT, POOL_LABEL};
use orchestrator::{NodeList, SYSTEM, StoredState};
use records::{
    ClusterRow, Desired, LagRow, LagUnit, ObjectRow, PodBody, PodRow, Snapshot, UsageRow,
    WorkloadRow, WorkloadState,
};
use sched::Policy;
use serde_json::json;
use spec::{NodeGiven, NodeSpec, PoolSettings, Scheduling, TOPOLOGY, WorkloadPast, WorkloadSpec};
use units::{Instant, Kind, Resources};
use uuid::Uuid;
use view::{GpuFault, GpuFaults};

use super::names::{NODES_MAX, check_count, check_name, names, pool_id};
use super::org::{Org, own_name};
use super::parts::{Known, PODS_MAX};
use super::ranks::Ranks;
use super::{START, convert, nodes};
use crate::Error;
use crate::machine::Machine;
use crate::scenario::{self as wire, At, Queue, Scenario, TaskState, Workload};
use crate::suggest::hint;

/// The largest sum of resources that is allowed.
const SUM_MAX: u128 = 1 << 62;
/// Maximum number of topologies, and of levels of one.
const TOPOLOGIES_MAX: usize = 16;
/// The label that assigns the nodes of a scenario to node pools.
pub(crate) const IN_POOL: &str = "scenario/node-pool";

/// Scope of the names of nodes in `taken`; ids of projects begin with 1.
const NODES: u64 = 0;

/// The usage window if a scenario gives none.
const WEEK: wire::UsageWindow = wire::UsageWindow {
    window: wire::amount::Span::new(7 * 86_400_000),
    kind: wire::WindowKind::Sliding,
    half_life: None,
    began: None,
};

/// The labels of a node of a scenario, with its node pool under `IN_POOL`.
pub(super) fn labels(wire: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut labels = wire.clone();
    if let Some(pool) = labels.remove(POOL_LABEL) {
        labels.insert(IN_POOL.to_owned(), pool);
    }
    labels
}

/// The settings of a node pool of a scenario.
pub(super) fn pool_settings(name: &str, placement: sched::Placement) -> PoolSettings {
    let label = (name != POOL_DEFAULT).then(|| (IN_POOL.to_owned(), name.to_owned()));
    let sched::Placement { gpu, cpu, devices } = placement;
    PoolSettings { gpu, cpu, devices: Some(devices), ..PoolSettings::new(label) }
}

/// An initial workload.
pub(super) struct Begun<'a> {
    pub(super) wire: &'a At<Workload>,
    pub(super) name: String,
    pub(super) id: Uuid,
}

/// The initial state of a scenario.
pub(super) struct Start<'a> {
    pub(super) known: Known,
    pub(super) workloads: Vec<Begun<'a>>,
    /// Number of pods, and sum of their requests.
    pub(super) pods: u64,
    pub(super) asked: [u128; 3],
    /// Node pools, in the order in which they were named.
    pools: Vec<String>,
    /// Names of nodes, and of the workloads of each project.
    taken: BTreeSet<(u64, String)>,
    nodes: NodeList,
    gpus: GpuFaults,
    policy: Policy,
    rows: Snapshot,
}

impl<'a> Start<'a> {
    /// Reads the objects of a scenario.
    ///
    /// # Errors
    /// The first invalid object, with its position.
    pub(super) fn of(scenario: &'a Scenario) -> Result<Self, Error> {
        let policy = &scenario.policy;
        let mut knobs = convert::policy(policy).map_err(|fault| policy.fault(fault))?;
        let usage = policy.usage.or_else(|| uses_any(&scenario.queues).then_some(WEEK));
        if let Some(window) = &usage {
            let window =
                convert::usage_window(window, START).map_err(|fault| policy.fault(fault))?;
            knobs.usage = Some(window);
        }
        let evicted = scenario.world.evicted;
        let ranks =
            Ranks::of_scenario(scenario).map_err(|fault| match scenario.queues.first() {
                Some(queue) => queue.fault(fault),
                None => policy.fault(fault),
            })?;
        let profile = knobs.profile;
        let known = Known { topologies: BTreeMap::new(), profile, evicted, ranks };
        let mut start = Self {
            known,
            workloads: Vec::new(),
            pods: 0,
            asked: [0; 3],
            pools: vec![POOL_DEFAULT.to_owned()],
            taken: BTreeSet::new(),
            nodes: NodeList::default(),
            gpus: GpuFaults::default(),
            policy: knobs,
            rows: Snapshot::empty(ClusterRow { uuid: Uuid::from_u128(1), created_at: START }),
        };
        scenario.topologies.iter().try_for_each(|topology| start.add_topology(topology))?;
        scenario.nodes.iter().try_for_each(|node| start.add_node(node))?;
        for name in &scenario.empty_pools {
            start.name_pool(name);
        }
        start.add_pools(policy)?;
        let Org { departments, projects } =
            Org::of(&scenario.queues, &start.pools, &start.known.ranks)?;
        start.rows.last_department_id = departments.len() as u64 + 1;
        start.rows.last_project_id = projects.len() as u64;
        (start.rows.departments, start.rows.projects) = (departments, projects);
        start.add_usage(&scenario.queues);
        start.add_lags(&scenario.queues);
        scenario.workloads.iter().try_for_each(|workload| start.add_workload(workload))?;
        Ok(start)
    }

    /// Starts the server, whose scheduler decides only on request of the caller.
    ///
    /// # Errors
    /// No state can be built from the rows.
    pub(super) fn machine(&self, pods: Option<Vec<PodRow>>) -> Result<Machine, String> {
        let mut rows = self.rows.clone();
        rows.pods = pods.unwrap_or(rows.pods);
        let stored = StoredState {
            rows,
            nodes: self.nodes.clone(),
            gpus: self.gpus.clone(),
            policy: self.policy.clone(),
            settings: orchestrator::Settings::default(),
            now: START,
        };
        Machine::by_hand(stored).map_err(|error| error.to_string())
    }

    /// The rows of the pods, none of them placed.
    pub(super) fn pods(&self) -> Vec<PodRow> {
        self.rows.pods.clone()
    }

    fn add_topology(&mut self, wire: &At<wire::Topology>) -> Result<(), Error> {
        let name = &wire.name;
        let fault = |fault: String| Err(wire.fault(format!("topology `{name}`: {fault}")));
        check_name(name).map_err(|fault| wire.fault(fault))?;
        if self.known.topologies.contains_key(name) {
            return fault("there is another of this name".into());
        }
        if self.known.topologies.len() >= TOPOLOGIES_MAX {
            return fault(format!("a scenario has at most {TOPOLOGIES_MAX} topologies"));
        }
        let levels = &wire.levels;
        if !(1..=TOPOLOGIES_MAX).contains(&levels.len()) {
            let count = levels.len();
            return fault(format!("has {count} levels; 1 to {TOPOLOGIES_MAX} are allowed"));
        }
        if let Some((_, twice)) =
            levels.iter().enumerate().find(|(at, l)| levels[..*at].contains(l))
        {
            return fault(format!("level `{twice}` is given twice"));
        }
        self.known.topologies.insert(name.clone(), (name.clone(), levels.clone()));
        self.add_object(TOPOLOGY, name.clone(), name, json!({ "levels": levels }));
        Ok(())
    }

    fn add_node(&mut self, wire: &At<wire::Node>) -> Result<(), Error> {
        let fault = |fault: String| wire.fault(format!("node `{}`: {fault}", wire.name));
        let spec = nodes::node(wire, self.known.profile).map_err(fault)?;
        if self.nodes.nodes.len() + wire.count.unwrap_or(1) as usize > NODES_MAX {
            return Err(fault(format!("a scenario has at most {NODES_MAX} nodes")));
        }
        self.name_pool(model::pool_of(&wire.labels));
        let given = match (wire.draining, wire.cordoned) {
            (true, _) => Scheduling::Draining,
            (false, true) => Scheduling::Disabled,
            (false, false) => Scheduling::Enabled,
        };
        for name in names(&wire.name, wire.count) {
            if !self.taken.insert((NODES, name.clone())) {
                return Err(fault(format!("there is another node `{name}`")));
            }
            let node = nodes::named(&spec, &name, labels(&wire.labels));
            let out = out_of_service(&node, &wire.out_of_service).map_err(fault)?;
            Arc::make_mut(&mut self.gpus).extend(out);
            if !given.is_enabled() {
                let given = NodeGiven { scheduling: given, ..NodeGiven::default() };
                let body = serde_json::to_value(&given).unwrap_or_default();
                self.add_object("node", name.clone(), &name, body);
            }
            self.nodes.nodes.push(node);
        }
        Ok(())
    }

    fn name_pool(&mut self, name: &str) {
        if !self.pools.iter().any(|pool| pool == name) {
            self.pools.push(name.to_owned());
        }
    }

    fn add_pools(&mut self, policy: &At<wire::Policy>) -> Result<(), Error> {
        if let Some(name) = policy.pool_placement.keys().find(|name| !self.pools.contains(name)) {
            return Err(policy.fault(format!("`pool_placement`: there is no node pool `{name}`")));
        }
        for name in self.pools.clone() {
            let own = policy.pool_placement.get(&name).copied().map(convert::placement);
            let settings = pool_settings(&name, own.unwrap_or(self.policy.placement));
            let body = serde_json::to_value(&settings).unwrap_or_default();
            self.add_object("node-pool", pool_id(&name), &name, body);
        }
        Ok(())
    }

    fn add_object(&mut self, kind: &str, id: String, name: &str, body: serde_json::Value) {
        self.rows.last_object_seq += 1;
        self.rows.objects.push(ObjectRow {
            seq: self.rows.last_object_seq,
            kind: kind.to_owned(),
            id,
            scope: "cluster".to_owned(),
            owner: String::new(),
            name: name.to_owned(),
            body,
            created_at: START,
            created_by: SYSTEM.to_owned(),
            updated_at: START,
            updated_by: SYSTEM.to_owned(),
            deleted_at: None,
        });
    }

    /// Writes given figures of usage as a constant usage over the window.
    fn add_usage(&mut self, queues: &[At<Queue>]) {
        let mut held = Vec::new();
        for queue in queues {
            let project = self.rows.projects.iter().find(|project| project.name == queue.name);
            // The usage of a department is that of its projects.
            let Some(id) = project.map(|project| project.id) else { continue };
            held.extend(used(queue).map(|(pool, ppm)| (id, pool.to_owned(), ppm)));
        }
        let Some(window) = self.policy.usage.filter(|_| !held.is_empty()) else { return };
        let capacities: BTreeMap<&str, Resources> = self
            .pools
            .iter()
            .map(|pool| {
                let there = self.nodes.nodes.iter().filter(|node| {
                    node.labels.get(IN_POOL).map_or(POOL_DEFAULT, String::as_str) == pool
                });
                (pool.as_str(), there.map(|node| capacity(node, &self.gpus)).sum())
            })
            .collect();
        let steps = window.steps_before(START) as u64;
        let begin = window.step_start(START);
        for step in (1..=steps).rev() {
            let step_start = Instant(begin.0.saturating_sub(step * window.step_ms()));
            let row = |project_id, pool: &str, held| UsageRow {
                step_start,
                project_id,
                pool: kept_as(pool),
                held,
            };
            self.rows.usage.extend(capacities.iter().map(|(pool, held)| row(None, pool, *held)));
            self.rows.usage.extend(held.iter().map(|(id, pool, ppm)| {
                row(Some(*id), pool, part(capacities[pool.as_str()], *ppm))
            }));
        }
    }

    /// Writes given lags as those of the initial state.
    fn add_lags(&mut self, queues: &[At<Queue>]) {
        for queue in queues {
            let project = self.rows.projects.iter().find(|row| row.name == queue.name);
            let project = project.map(|row| LagUnit::Project(row.id));
            let name = own_name(&queue.name);
            let department = self.rows.departments.iter().find(|row| row.name == name);
            let department = department.map(|row| LagUnit::Department(row.id));
            let Some(unit) = project.or(department) else { continue };
            let own = [(POOL_DEFAULT, queue.lag)].into_iter();
            let pools = queue.pools.iter().map(|(pool, share)| (pool.as_str(), share.lag));
            let given = own.chain(pools).filter(|(_, lag)| *lag != wire::Lag::default());
            self.rows.lags.extend(given.map(|(pool, lag)| LagRow {
                unit,
                pool: kept_as(pool),
                value: lag.gpu_ms.saturating_mul(units::GPU_MILLIS.cast_signed()),
                since: START,
                // More than the queue can use, so that no initial pod begins a turn.
                fair_millis: u64::MAX,
                held_millis: u64::MAX,
                turn_since: lag.turn.map(|ago| Instant(START.0.saturating_sub(ago.0))),
            }));
        }
    }

    fn add_workload(&mut self, wire: &'a At<Workload>) -> Result<(), Error> {
        let fault = |fault: String| wire.fault(format!("workload `{}`: {fault}", wire.name));
        check_name(&wire.name).map_err(fault)?;
        check_count(wire.count, PODS_MAX).map_err(fault)?;
        let project = self.project(&wire.project).map_err(fault)?;
        let spec = self.known.specification(wire)?;
        self.check_workload(wire, &spec).map_err(fault)?;
        for name in names(&wire.name, wire.count) {
            if !self.taken.insert((project, name.clone())) {
                let why = format!("project `{}` has another of this name", wire.project);
                return Err(wire.fault(format!("workload `{name}`: {why}")));
            }
            self.add_one(wire, project, name, &spec);
        }
        Ok(())
    }

    /// The id of a project.
    fn project(&self, name: &str) -> Result<u64, String> {
        let found = self.rows.projects.iter().find(|project| project.name == name);
        found.map(|project| project.id).ok_or_else(|| {
            if self.rows.departments.iter().any(|one| one.name == super::org::own_name(name)) {
                return format!(
                    "queue `{name}` has queues below it; a queue cannot hold both queues and workloads"
                );
            }
            let near = hint(name, self.rows.projects.iter().map(|one| one.name.as_str()));
            format!("there is no queue `{name}`{near}")
        })
    }

    fn check_workload(&mut self, wire: &Workload, spec: &WorkloadSpec) -> Result<(), String> {
        for (at, pool) in wire.pools.iter().enumerate() {
            if wire.pools[..at].contains(pool) {
                return Err(format!("`pools` has `{pool}` twice"));
            }
            if !self.pools.contains(pool) {
                let near = hint(pool, self.pools.iter().map(String::as_str));
                return Err(format!("no node is in a pool `{pool}`{near}"));
            }
        }
        let at_a_time: u32 = spec.sets().map(spec::PodSet::wanted).sum();
        if wire.tasks.len() > at_a_time as usize {
            return Err(format!("has {} tasks and {at_a_time} pods", wire.tasks.len()));
        }
        if wire.count.is_some() && wire.tasks.iter().any(|task| task.state != TaskState::Pending) {
            return Err("`count` and `tasks` that have a place cannot be used together".into());
        }
        let count = u64::from(wire.count.unwrap_or(1));
        (self.pods, self.asked) = with_more((self.pods, self.asked), spec, count)?;
        Ok(())
    }

    fn add_one(&mut self, wire: &'a At<Workload>, project: u64, name: String, spec: &WorkloadSpec) {
        let seq = self.rows.last_workload_seq + 1;
        self.rows.last_workload_seq = seq;
        let id = Uuid::from_u128((1 << 100) + (u128::from(seq) << 32));
        let past = past(wire);
        if past != WorkloadPast::default() {
            self.rows.pasts.insert(id, past);
        }
        let desired = if wire.suspended { Desired::Suspend } else { Desired::Run };
        let phase = if wire.suspended { "stopped" } else { "pending" };
        self.rows.workloads.push(WorkloadRow {
            id,
            seq,
            project_id: project,
            created_at: wire.age.map_or(START, ago),
            spec: Arc::new(WorkloadSpec { name: name.clone(), ..spec.clone() }),
            state: WorkloadState {
                phase: phase.to_owned(),
                phase_since: START,
                desired,
                restarts: 0,
                not_before: wire.not_before.map(|wait| START.plus_ms(wait.0)),
                completed_at: None,
                waited_ms: 0,
                ran_ms: 0,
                eviction: None,
                deleted_at: None,
            },
        });
        self.rows.pods.extend((0..spec.pod_count()).map(|index| PodRow {
            id: Uuid::from_u128(id.as_u128() + u128::from(index) + 1),
            workload_id: id,
            index,
            generation: 0,
            body: PodBody::default(),
        }));
        self.workloads.push(Begun { wire, name, id });
    }
}

/// The time this span before the start.
pub(super) fn ago(span: wire::amount::Span) -> Instant {
    Instant(START.0.saturating_sub(span.0))
}

/// History of a workload before the start.
fn past(wire: &Workload) -> WorkloadPast {
    WorkloadPast {
        last_start: wire.started.map(ago),
        last_resize: wire.resized.map(ago),
        last_eviction: wire.last_evicted.map(ago),
        checkpointed_at: wire.checkpointed.map(ago),
        stale_since: wire.stale.map(ago),
        restarts: wire.restarts,
    }
}

/// The number of pods and the sum of their requests after adding `count` workloads.
pub(super) fn with_more(
    (pods, mut asked): (u64, [u128; 3]),
    spec: &WorkloadSpec,
    count: u64,
) -> Result<(u64, [u128; 3]), String> {
    let pods = pods.saturating_add(u64::from(spec.pod_count()).saturating_mul(count));
    if pods > PODS_MAX {
        return Err(format!("a scenario has at most {PODS_MAX} pods"));
    }
    for set in spec.sets() {
        let each = [
            u64::from(set.pod.gpu.devices()) * units::GPU_MILLIS,
            set.pod.cpu_millis,
            set.pod.memory_bytes,
        ];
        for (sum, each) in asked.iter_mut().zip(each) {
            *sum += u128::from(each) * u128::from(u64::from(set.pods) * count);
        }
    }
    if asked.iter().any(|sum| *sum > SUM_MAX) {
        return Err("all workloads together ask for more than can be counted".into());
    }
    Ok((pods, asked))
}

/// Faults of GPUs that accept no new pods while their present pods stay.
pub(super) fn out_of_service(
    node: &NodeSpec,
    gpus: &[u32],
) -> Result<Vec<(String, GpuFault)>, String> {
    let fault = |&gpu: &u32| {
        let (name, count) = (&node.name, node.gpus.len());
        let found = node.gpus.get(gpu as usize);
        let found =
            found.ok_or_else(|| format!("node `{name}` has no GPU {gpu}; it has {count}"))?;
        Ok((found.uuid.clone(), GpuFault::Taken(BTreeMap::new())))
    };
    gpus.iter().map(fault).collect()
}

/// The id of a node pool in stored rows.
fn kept_as(pool: &str) -> String {
    if pool == POOL_DEFAULT { String::new() } else { pool_id(pool) }
}

/// Usage of a queue that the scenario gives, by node pool.
fn used(queue: &Queue) -> impl Iterator<Item = (&str, wire::UsagePpm)> {
    let own = [(POOL_DEFAULT, queue.share().usage_ppm)];
    let pools = queue.pools.iter().map(|(pool, share)| (pool.as_str(), share.usage_ppm));
    pools.chain(own).filter(|(_, ppm)| *ppm != wire::UsagePpm::default())
}

fn uses_any(queues: &[At<Queue>]) -> bool {
    queues.iter().any(|queue| used(queue).next().is_some())
}

/// Capacity of a node without the faulty GPUs.
fn capacity(node: &NodeSpec, faults: &GpuFaults) -> Resources {
    let works = node.gpus.iter().filter(|gpu| !faults.contains_key(&gpu.uuid));
    let millis = works.map(|gpu| gpu.mig.map_or(units::GPU_MILLIS, |part| part.profile.millis()));
    Resources {
        gpu_millis: millis.sum(),
        cpu_millis: node.cpu_millis,
        memory_bytes: node.memory_bytes,
    }
}

/// Millionths of an amount.
fn part(of: Resources, ppm: wire::UsagePpm) -> Resources {
    let mut part = Resources::ZERO;
    for (kind, ppm) in Kind::ALL.into_iter().zip([ppm.gpu, ppm.cpu, ppm.memory]) {
        let exact = u128::from(of[kind]) * u128::from(ppm);
        part[kind] = u64::try_from(exact.div_ceil(1_000_000)).unwrap_or(u64::MAX);
    }
    part
}
