//! A cluster, its scheduler and a world around them, in virtual time. Owns: who is called what,
//! what time it is, and what the world does between decisions. Refuses to know: where a scenario
//! comes from and how an outcome is shown.

mod add;
mod change;
mod convert;
mod parts;
mod place;
mod run;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use model::{Cluster, NodeId, PodBinding, PodId, QueueId, UsageLedger, WorkloadId};
use sched::{Plan, Policy};
use units::Instant;

use crate::Error;
use crate::scenario::{self as wire, At, Evicted, Releasing, Scenario, State, World};

pub(crate) use add::names;
pub(crate) use change::actions;
pub use convert::policy;
pub(crate) use convert::{constraints, taints};
pub(crate) use parts::sets;
pub use run::{CYCLES_TO_REST_MAX, Failure, Outcome, Record, run};

/// Most pods of a scenario, over its whole length.
pub const PODS_MAX: u64 = 1_000_000;
/// Most nodes of a scenario.
pub const NODES_MAX: usize = 100_000;
/// Most queues of a scenario.
pub const QUEUES_MAX: usize = 100_000;
/// Most GPUs of one node.
pub const GPUS_PER_NODE_MAX: u32 = 1024;

/// Start of the virtual clock: late enough for things to have happened before.
const START: Instant = Instant(1 << 42);
/// Virtual time from one decision to the next, in milliseconds.
const CYCLE_MS: u64 = 1;

/// A workload, as long as the simulation lasts.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) project: String,
    pub(crate) name: String,
    /// Its place in the model, until it has ended.
    pub(crate) model: Option<WorkloadId>,
    pub(crate) suspended: bool,
    /// It is on its way out of the model.
    pub(crate) leaving: bool,
    /// How it ended.
    pub(crate) ended: Option<State>,
    pub(crate) runs_for_ms: Option<u64>,
    /// What becomes of its evicted pods.
    pub(crate) evicted: Evicted,
    pub(crate) runs: runs::Runs,
}

/// A cluster under a scheduler.
#[derive(Debug, Clone)]
pub struct Simulation {
    pub(crate) cluster: Cluster,
    pub(crate) policy: Policy,
    /// What the queues used, if that matters.
    usage: Option<UsageLedger>,
    pub(crate) world: World,
    pub(crate) now: Instant,
    pub(crate) plan: Plan,
    pub(crate) nodes: BTreeMap<String, NodeId>,
    /// Nodes that were lost and have not come back.
    pub(crate) lost: BTreeSet<String>,
    /// Every node pool a node has been in.
    pub(crate) pools: BTreeSet<String>,
    pub(crate) queues: BTreeMap<String, QueueId>,
    pub(crate) jobs: Vec<Job>,
    /// The newest job of each project and name.
    pub(crate) by_name: BTreeMap<(String, String), usize>,
    /// In how many projects a name was used: where it is one, the name alone will do.
    pub(crate) projects_of: BTreeMap<String, Vec<String>>,
    pub(crate) by_model: BTreeMap<WorkloadId, usize>,
    pub(crate) pods_added: u64,
    /// Sum of everything ever asked for: kept below what can be counted.
    asked: [u128; 3],
}

impl Simulation {
    /// The state a scenario begins with.
    ///
    /// # Errors
    /// The first object that cannot be, with its position.
    pub fn new(scenario: &Scenario) -> Result<Self, Error> {
        let mut simulation = Self {
            cluster: Cluster::new(),
            policy: convert::policy(&scenario.policy).map_err(|e| scenario.policy.fault(e))?,
            usage: None,
            world: scenario.world.clone(),
            now: START,
            plan: Plan::default(),
            nodes: BTreeMap::new(),
            lost: BTreeSet::new(),
            pools: BTreeSet::from([model::POOL_DEFAULT.to_owned()]),
            queues: BTreeMap::new(),
            jobs: Vec::new(),
            by_name: BTreeMap::new(),
            projects_of: BTreeMap::new(),
            by_model: BTreeMap::new(),
            pods_added: 0,
            asked: [0; 3],
        };
        simulation.pools.extend(scenario.empty_pools.iter().cloned());
        for topology in &scenario.topologies {
            simulation.add_topology(topology)?;
        }
        for node in &scenario.nodes {
            simulation.add_node(node)?;
        }
        simulation.place_in_pools(&scenario.policy)?;
        simulation.add_queues(&scenario.queues)?;
        for workload in &scenario.workloads {
            simulation.add_workload(workload)?;
        }
        simulation.begin_usage(scenario)?;
        Ok(simulation)
    }

    /// Says how places in single pools are taken.
    fn place_in_pools(&mut self, policy: &At<wire::Policy>) -> Result<(), Error> {
        for (name, &placement) in &policy.pool_placement {
            if !self.pools.contains(name) {
                let why = format!("`pool_placement`: there is no node pool `{name}`");
                return Err(policy.fault(why));
            }
            let pool = self.cluster.add_pool(name);
            self.policy.pools.insert(pool, convert::placement(placement));
        }
        Ok(())
    }

    /// Opens the ledger of usage: figures that are given are taken for those of an even past.
    fn begin_usage(&mut self, scenario: &Scenario) -> Result<(), Error> {
        let policy = &scenario.policy;
        let Some(window) = &policy.usage else { return Ok(()) };
        let window =
            convert::usage_window(window, self.now).map_err(|fault| policy.fault(fault))?;
        let mut ledger = UsageLedger::new(window);
        let none = model::Usage::default();
        if self.cluster.queues().iter().any(|(_, queue)| queue.usage != none) {
            ledger.assume_even_past(&self.cluster, self.now);
        }
        self.policy.usage = Some(window);
        self.usage = Some(ledger);
        Ok(())
    }

    fn observe_usage(&mut self) {
        if let Some(ledger) = &mut self.usage {
            ledger.observe(&mut self.cluster, self.now);
        }
    }

    /// The state.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The plan of the last decision.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Virtual milliseconds since the start.
    #[must_use]
    pub const fn elapsed_ms(&self) -> u64 {
        self.now.since_ms(START)
    }

    /// One decision.
    pub fn cycle(&mut self) {
        self.now = self.now.plus_ms(CYCLE_MS);
        self.observe_usage();
        self.plan = sched::cycle(&mut self.cluster, self.now, &self.policy);
        self.observe_usage();
        self.note_starts();
        self.forget_evicted();
    }

    /// What happens between two decisions without being asked.
    pub fn react(&mut self) {
        if self.world.releasing == Releasing::AtOnce {
            self.vacate(|_| true);
        }
    }

    /// Evicted pods of workloads that say so do not come back.
    fn forget_evicted(&mut self) {
        for step in &self.plan.steps {
            let sched::Step::Evict { pod, .. } = *step else { continue };
            let id = self.cluster.pods()[pod].workload;
            let Some(&job) = self.by_model.get(&id) else { continue };
            if self.jobs[job].evicted == Evicted::Pending {
                continue;
            }
            self.cluster.set_wants(pod, false);
            let wanted = |pod: &PodId| self.cluster.pods()[*pod].wants;
            if !self.cluster.workloads()[id].pods.iter().any(wanted) {
                self.jobs[job].leaving = true;
            }
        }
    }

    /// What was being stopped is gone, as far as the job is one of these.
    pub(crate) fn vacate(&mut self, of: impl Fn(usize) -> bool) {
        let releasing = |(id, pod): (PodId, &model::Pod)| {
            let job = self.by_model.get(&pod.workload).copied();
            (pod.binding.releasing && job.is_some_and(&of)).then_some(id)
        };
        for pod in self.cluster.pods().iter().filter_map(releasing).collect::<Vec<_>>() {
            self.cluster.vacate(pod);
        }
        self.bury();
    }

    /// Takes jobs that are leaving, and of which nothing is left, out of the model.
    pub(crate) fn bury(&mut self) {
        let empty = |id: WorkloadId| {
            let mut pods = self.cluster.workloads()[id].pods.iter();
            pods.all(|&pod| self.cluster.pods()[pod].binding == PodBinding::default())
        };
        let due = |(&id, &job): (&WorkloadId, &usize)| {
            (self.jobs[job].leaving && empty(id)).then_some((id, job))
        };
        for (id, job) in self.by_model.iter().filter_map(due).collect::<Vec<_>>() {
            self.end(id, job, State::Gone);
        }
    }

    fn end(&mut self, id: WorkloadId, job: usize, how: State) {
        if self.cluster.remove_workload(id).is_ok() {
            self.by_model.remove(&id);
            self.jobs[job].model = None;
            self.jobs[job].ended = Some(how);
        }
    }

    /// What people call a job: its name, with its project where the name alone is not enough.
    pub(crate) fn label(&self, job: &Job) -> String {
        match self.projects_of.get(&job.name) {
            Some(projects) if projects.len() > 1 => format!("{}/{}", job.project, job.name),
            _ => job.name.clone(),
        }
    }

    /// The newest job with this name, or `project/name`.
    ///
    /// # Errors
    /// There is none, or the name alone is not enough.
    pub(crate) fn job(&self, name: &str) -> Result<usize, String> {
        if let Some((project, name)) = name.split_once('/') {
            let found = self.by_name.get(&(project.to_owned(), name.to_owned()));
            return found.copied().ok_or_else(|| self.no_job(name));
        }
        match self.projects_of.get(name).map(Vec::as_slice) {
            Some([project]) => Ok(self.by_name[&(project.clone(), name.to_owned())]),
            Some(projects @ [first, ..]) => {
                Err(format!("`{name}` is in {} projects; write `{first}/{name}`", projects.len()))
            }
            _ => Err(self.no_job(name)),
        }
    }

    fn no_job(&self, name: &str) -> String {
        let known = self.projects_of.keys().map(String::as_str);
        format!("there is no workload `{name}`{}", crate::near::hint(name, known))
    }

    /// A node by its name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn node(&self, name: &str) -> Result<NodeId, String> {
        let hint = || crate::near::hint(name, self.nodes.keys().map(String::as_str));
        self.nodes.get(name).copied().ok_or_else(|| format!("there is no node `{name}`{}", hint()))
    }

    /// A queue by its name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueId, String> {
        let hint = || crate::near::hint(name, self.queues.keys().map(String::as_str));
        let found = self.queues.get(name).copied();
        found.ok_or_else(|| format!("there is no queue `{name}`{}", hint()))
    }
}
