//! A scenario played on a machine: the initial server, the steps, and virtual time. Owns: the names
//! of objects, and the times of decisions. Does not know about: the source of a scenario, and the
//! output of results.
//!
//! ```text
//! nodes, queues, workloads, tasks -> rows of a server (start, org, nodes, parts, place) -> machine
//! steps, questions to a server    -> inputs (steps) --------------------------------------^
//! ```

mod convert;
mod names;
mod nodes;
mod org;
mod parts;
mod place;
mod ranks;
mod run;
mod start;
mod steps;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Cluster, PoolId, QueueId, WorkloadId};
use sched::{Plan, Policy};
use units::{Instant, Resources};
use uuid::Uuid;
use view::Phase;

use crate::Error;
use crate::scenario::{At, OneOrMany, Releasing, Scenario, State, Step, Workload, World};
use crate::suggest::hint;
use start::Start;
use work::Until;

pub(crate) use start::IN_POOL;

pub use convert::policy;
pub(crate) use names::names;
pub use names::{GPUS_PER_NODE_MAX, NODES_MAX, QUEUES_MAX};
pub use parts::PODS_MAX;
pub use run::{CYCLES_TO_REST_MAX, Failure, Outcome, Record, run};
pub(crate) use steps::Asking;

/// Start of the virtual clock: late enough for events before it.
const START: Instant = Instant(1 << 42);

/// A workload; it is kept after its end.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) project: String,
    pub(crate) name: String,
    id: Uuid,
    /// Its id in the model, until it has ended.
    pub(crate) model: Option<WorkloadId>,
    /// Its final state; `None` until it has ended.
    pub(crate) ended: Option<State>,
    until: Until,
}

/// A queue with its name in the scenario.
#[derive(Debug, Clone)]
pub(crate) struct NamedQueue {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) id: QueueId,
}

/// A server on a machine, under a scenario.
pub struct Simulation {
    asking: Asking,
    world: World,
    /// The last plan, with the reasons why workloads wait.
    plan: Arc<Plan>,
    /// Fair shares of queues as of the last decision.
    shares: BTreeMap<QueueId, Resources>,
    pub(crate) queues: Vec<NamedQueue>,
    pub(crate) jobs: Vec<Job>,
    /// Number of jobs that exist at the start; later ones are submitted by steps.
    pub(crate) jobs_at_start: usize,
    /// The newest job of each project and name.
    by_name: BTreeMap<(String, String), usize>,
    /// Projects in which a name was used: if there is one, the name alone is unique.
    projects_of: BTreeMap<String, Vec<String>>,
    pub(crate) by_model: BTreeMap<WorkloadId, usize>,
    by_id: BTreeMap<Uuid, usize>,
    /// Time up to which the work of workloads was counted.
    worked_until: Instant,
    pods_added: u64,
    /// Sum of all resource requests so far, which is kept below the range of the counters.
    asked: [u128; 3],
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

impl Simulation {
    /// The initial state of a scenario.
    ///
    /// # Errors
    /// The first invalid object, with its position.
    pub fn new(scenario: &Scenario) -> Result<Self, Error> {
        let start = Start::of(scenario)?;
        let failed = |message: String| At::from(()).fault(message);
        let mut machine = start.machine(None).map_err(failed)?;
        let models = models(&machine);
        let placed = match machine.replica() {
            Some((cluster, _)) => place::places(&start, cluster, &models)?,
            None => None,
        };
        if let Some(pods) = placed {
            machine = start.machine(Some(pods)).map_err(failed)?;
        }
        machine.engine.faults.stubborn = scenario.world.releasing == Releasing::UntilGone;
        let known = start.known.clone();
        let mut simulation = Self {
            asking: Asking { machine, known, makes_pools: true },
            world: scenario.world.clone(),
            plan: Arc::default(),
            shares: BTreeMap::new(),
            queues: Vec::new(),
            jobs: Vec::new(),
            jobs_at_start: 0,
            by_name: BTreeMap::new(),
            projects_of: BTreeMap::new(),
            by_model: BTreeMap::new(),
            by_id: BTreeMap::new(),
            worked_until: START,
            pods_added: start.pods,
            asked: start.asked,
        };
        simulation.name_queues(scenario);
        for begun in start.workloads {
            simulation.add_job(begun.wire, begun.name, begun.id);
        }
        simulation.jobs_at_start = simulation.jobs.len();
        simulation.look();
        Ok(simulation)
    }

    fn name_queues(&mut self, scenario: &Scenario) {
        let cluster = self.cluster();
        let own = cluster.queues().ids().filter(|&id| cluster.project_of(id) == id);
        let ids: BTreeMap<&str, QueueId> =
            own.map(|id| (cluster.queues()[id].name.as_str(), id)).collect();
        let named = scenario.queues.iter().filter_map(|queue| {
            let department = format!("{}{}", org::DEPARTMENT, org::own_name(&queue.name));
            let id = ids.get(queue.name.as_str()).or_else(|| ids.get(department.as_str()))?;
            let (name, parent) = (queue.name.clone(), queue.parent.clone());
            Some(NamedQueue { name, parent, id: *id })
        });
        self.queues = named.collect();
    }

    fn add_job(&mut self, wire: &Workload, name: String, id: Uuid) {
        let (project, until) = (wire.project.clone(), Until::of(wire));
        let number = self.jobs.len();
        self.by_name.insert((project.clone(), name.clone()), number);
        let projects = self.projects_of.entry(name.clone()).or_default();
        if !projects.contains(&project) {
            projects.push(project.clone());
        }
        self.by_id.insert(id, number);
        self.jobs.push(Job { project, name, id, model: None, ended: None, until });
    }

    /// Updates the states of the workloads from the view.
    fn look(&mut self) {
        let Some(view) = self.asking.machine.view() else { return };
        for (number, job) in self.jobs.iter_mut().enumerate().filter(|(_, job)| job.ended.is_none())
        {
            let seen = view.workloads.get(&job.id);
            job.ended = match seen.map(|seen| seen.phase) {
                None => Some(State::Gone),
                Some(Phase::Completed) => Some(State::Finished),
                Some(Phase::Failed) => Some(State::Failed),
                Some(_) => None,
            };
            let model = seen.and_then(|seen| seen.model).filter(|_| job.ended.is_none());
            if model != job.model {
                job.model.map(|before| self.by_model.remove(&before));
                self.by_model.extend(model.map(|model| (model, number)));
                job.model = model;
            }
        }
    }

    /// The cluster as the scheduler sees it.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        // It was started, and nothing stops it.
        self.asking.machine.replica().map(|(cluster, _)| cluster).expect("a server that runs")
    }

    /// The policy of the scheduler.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        self.asking.machine.replica().map(|(_, policy)| policy).expect("a server that runs")
    }

    /// The plan of the last decision.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The fair share of a queue at the last decision.
    pub(crate) fn fair_share(&self, queue: QueueId) -> Resources {
        self.shares.get(&queue).copied().unwrap_or_default()
    }

    /// Virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.asking.machine.clock.now()
    }

    /// Virtual milliseconds since the start.
    #[must_use]
    pub const fn elapsed_ms(&self) -> u64 {
        self.now().since_ms(START)
    }

    /// The label of a job: its name, with its project where the name alone is not unique.
    pub(crate) fn label(&self, job: &Job) -> String {
        match self.projects_of.get(&job.name) {
            Some(projects) if projects.len() > 1 => format!("{}/{}", job.project, job.name),
            _ => job.name.clone(),
        }
    }

    /// The newest job with this name, or `project/name`.
    ///
    /// # Errors
    /// There is no such job, or the name alone is not unique.
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
        format!("there is no workload `{name}`{}", hint(name, known))
    }

    /// A node by its name.
    ///
    /// # Errors
    /// There is no such node.
    pub(crate) fn node(&self, name: &str) -> Result<model::NodeId, String> {
        let nodes = self.cluster().nodes();
        let found = nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| id);
        found.ok_or_else(|| {
            let near = hint(name, nodes.iter().map(|(_, node)| node.name.as_str()));
            format!("there is no node `{name}`{near}")
        })
    }

    /// A queue by its name.
    ///
    /// # Errors
    /// There is no such queue.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueId, String> {
        let found = self.queues.iter().find(|queue| queue.name == name);
        found.map(|queue| queue.id).ok_or_else(|| {
            let near = hint(name, self.queues.iter().map(|queue| queue.name.as_str()));
            format!("there is no queue `{name}`{near}")
        })
    }

    /// A node pool by its name.
    ///
    /// # Errors
    /// There is no such node pool.
    pub(crate) fn pool(&self, name: &str) -> Result<PoolId, String> {
        self.cluster().pool_named(name).ok_or_else(|| {
            let view = self.asking.machine.view().map(|view| view.pools.as_slice());
            let known = view.unwrap_or_default().iter().map(|pool| pool.name.as_str());
            format!("no node is in a pool `{name}`{}", hint(name, known))
        })
    }

    /// Refuses a step about a workload that has ended.
    fn are_alive(&self, step: &Step) -> Result<(), String> {
        let changes =
            [&step.delete, &step.finish, &step.suspend, &step.resume, &step.ungate, &step.fail];
        for name in changes.into_iter().flatten().flat_map(OneOrMany::as_slice) {
            let row = &self.jobs[self.job(name)?];
            let may_be_over = step.delete.is_some() && row.ended != Some(State::Gone);
            if let Some(how) = row.ended.filter(|_| !may_be_over) {
                return Err(format!("workload `{}` is {} already", self.label(row), how.as_str()));
            }
        }
        Ok(())
    }
}

/// The ids of workloads in the model.
fn models(machine: &crate::machine::Machine) -> BTreeMap<Uuid, WorkloadId> {
    let all = machine.view().into_iter().flat_map(|view| view.workloads.values());
    all.filter_map(|workload| Some((workload.id, workload.model?))).collect()
}
