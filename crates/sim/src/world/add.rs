//! What comes into being: nodes, the queue tree, workloads. Owns: every check of an object
//! against the others, so that the model is never given what it cannot hold.

use std::collections::{BTreeMap, VecDeque};

use model::{MigProfile, NodeSpec, POOL_DEFAULT, PoolId, QueueSpec, WorkloadSpec};
use sched::Profile;
use units::Kind;

use super::runs::{BACKOFF_LIMIT, Runs};
use super::{GPUS_PER_NODE_MAX, Job, NODES_MAX, PODS_MAX, QUEUES_MAX, START, Simulation, convert};
use crate::Error;
use crate::near::hint;
use crate::scenario::{At, Mig, Node, OneOrMany, Place, Queue, QueueShare, TaskState, Workload};

/// The largest sum that is counted with.
const SUM_MAX: u128 = 1 << 62;

/// A name people and reports can live with.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    if name.is_empty() || name.chars().count() > 253 || name.contains(bad) {
        return Err(format!(
            "name `{name}` is not allowed; a name is 1 to 253 characters, none of them a blank or `/`"
        ));
    }
    Ok(())
}

/// Names of an object, or of several that are alike.
pub(crate) fn names(name: &str, count: Option<u32>) -> impl Iterator<Item = String> {
    let one = count.is_none().then(|| name.to_owned());
    let name = name.to_owned();
    let several = (1..=count.unwrap_or(0)).map(move |number| format!("{name}{number}"));
    one.into_iter().chain(several)
}

fn check_count(count: Option<u32>, max: u64) -> Result<(), String> {
    match count {
        Some(0) => Err("`count` is 0; at least 1 is allowed".into()),
        Some(count) if u64::from(count) > max => {
            Err(format!("`count` is {count}; at most {max} are allowed"))
        }
        _ => Ok(()),
    }
}

impl Simulation {
    /// Adds a node, or several that are alike.
    ///
    /// # Errors
    /// A value is not allowed, or a name is taken.
    pub fn add_node(&mut self, wire: &At<Node>) -> Result<(), Error> {
        self.try_add_node(wire)
            .map_err(|fault| wire.fault(format!("node `{}`: {fault}", wire.name)))
    }

    fn try_add_node(&mut self, wire: &Node) -> Result<(), String> {
        check_name(&wire.name)?;
        check_count(wire.count, NODES_MAX as u64)?;
        if self.nodes.len() + wire.count.unwrap_or(1) as usize > NODES_MAX {
            return Err(format!("a scenario has at most {NODES_MAX} nodes"));
        }
        if wire.gpus > GPUS_PER_NODE_MAX {
            let gpus = wire.gpus;
            return Err(format!("has {gpus} GPUs; at most {GPUS_PER_NODE_MAX} are allowed"));
        }
        let gpus = wire.gpus as usize;
        let sizes: Vec<u64> = match wire.gpu_memory.as_slice() {
            [one] => vec![one.0; gpus],
            many if many.len() == gpus => many.iter().map(|size| size.0).collect(),
            many => {
                return Err(format!("has {gpus} GPUs and {} sizes of their memory", many.len()));
            }
        };
        if sizes.contains(&0) {
            return Err("a GPU has more than 0 bytes of memory".into());
        }
        let mig = self.mig(wire)?;
        self.pools.insert(model::pool_of(&wire.labels).to_owned());
        for name in names(&wire.name, wire.count) {
            if self.nodes.contains_key(&name) {
                return Err(format!("there is another node `{name}`"));
            }
            let mut spec = NodeSpec::new(&name, sizes.clone(), wire.cpu.0, wire.memory.0);
            spec.mig.clone_from(&mig);
            spec.pods_max = wire.pods_max.unwrap_or(spec.pods_max);
            spec.labels = wire.labels.clone();
            spec.taints = convert::taints(&wire.taints);
            let id = self.cluster.add_node(spec);
            self.cluster.set_schedulable(id, !wire.cordoned);
            if wire.draining {
                self.cluster.drain(id);
            }
            self.lost.remove(&name);
            self.nodes.insert(name.clone(), id);
            self.set_in_service(&Place { node: name, gpus: wire.out_of_service.clone() }, false)?;
        }
        Ok(())
    }

    /// The MIG instances of each GPU.
    fn mig(&self, wire: &Node) -> Result<Vec<Vec<MigProfile>>, String> {
        let Some(mig) = &wire.mig else { return Ok(Vec::new()) };
        let gpus = wire.gpus as usize;
        let mut each = mig.as_slice().iter().map(Mig::of_one_gpu).collect::<Result<Vec<_>, _>>()?;
        match (mig, each.len()) {
            _ if gpus == 0 => return Err("has `mig` and no GPU; say how many with `gpus`".into()),
            (OneOrMany::One(_), _) => each = vec![each.concat(); gpus],
            (OneOrMany::Many(_), given) if given == gpus => {}
            (OneOrMany::Many(_), given) => {
                return Err(format!("has {gpus} GPUs and a list of {given} for `mig`"));
            }
        }
        let value = convert::slice_value(self.policy.profile);
        each.iter_mut().flatten().for_each(|profile| *profile = profile.valued(value));
        Ok(each)
    }

    /// Adds the queue tree; parents may be listed after their children.
    pub(super) fn add_queues(&mut self, wire: &[At<Queue>]) -> Result<(), Error> {
        if let Some(first) = wire.get(QUEUES_MAX) {
            return Err(first.fault(format!("a scenario has at most {QUEUES_MAX} queues")));
        }
        let mut by_name = BTreeMap::new();
        for (at, queue) in wire.iter().enumerate() {
            check_name(&queue.name).map_err(|fault| queue.fault(fault))?;
            if by_name.insert(queue.name.as_str(), at).is_some() {
                return Err(queue.fault(format!("there is another queue `{}`", queue.name)));
            }
        }
        let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut ready = VecDeque::new();
        for (at, queue) in wire.iter().enumerate() {
            match &queue.parent {
                None => ready.push_back(at),
                Some(parent) => {
                    let found = by_name.get(parent.as_str()).ok_or_else(|| {
                        let near = hint(parent, by_name.keys().copied());
                        queue.fault(format!(
                            "queue `{}`: there is no queue `{parent}` above it{near}",
                            queue.name
                        ))
                    })?;
                    below.entry(*found).or_default().push(at);
                }
            }
        }
        while let Some(at) = ready.pop_front() {
            self.add_queue(&wire[at], at as u64)?;
            ready.extend(below.remove(&at).into_iter().flatten());
        }
        self.divide(wire)?;
        match wire.iter().find(|queue| !self.queues.contains_key(&queue.name)) {
            None => Ok(()),
            Some(queue) => Err(queue.fault(format!(
                "queue `{}` is above itself; one queue of this circle must have no parent",
                queue.name
            ))),
        }
    }

    /// Gives every node pool queues of its own, if any queue says what it has in one.
    fn divide(&mut self, wire: &[At<Queue>]) -> Result<(), Error> {
        for queue in wire.iter().filter(|queue| !queue.pools.is_empty()) {
            let fault = |fault: String| queue.fault(format!("queue `{}`: {fault}", queue.name));
            if queue.share() != QueueShare::default() {
                return Err(fault(format!(
                    "has `pools`, so what it is entitled to belongs there: `pools: {{{POOL_DEFAULT}: {{quota: …}}}}`"
                )));
            }
            self.cluster.divide_by_pool();
            let Some(&id) = self.queues.get(&queue.name) else { continue };
            for (name, share) in &queue.pools {
                let pool = self.pool(name).map_err(fault)?;
                let result = self.cluster.set_share_in(id, pool, convert::share(share));
                result.map_err(|error| fault(error.to_string()))?;
                let own = self.cluster.queue_in(id, pool);
                self.cluster.set_usage(own, convert::usage(share.usage_ppm));
            }
        }
        Ok(())
    }

    /// The pool of this name; one that a node is in or was.
    pub(crate) fn pool(&self, name: &str) -> Result<PoolId, String> {
        let found = self.cluster.pool_named(name).filter(|_| self.pools.contains(name));
        found.ok_or_else(|| {
            let near = hint(name, self.pools.iter().map(String::as_str));
            format!("no node is in a pool `{name}`{near}")
        })
    }

    fn add_queue(&mut self, wire: &At<Queue>, seq: u64) -> Result<(), Error> {
        let parent = wire.parent.as_ref().and_then(|parent| self.queues.get(parent)).copied();
        let own = wire.pools.get(POOL_DEFAULT).copied().unwrap_or_else(|| wire.share());
        let spec = QueueSpec { name: wire.name.clone(), parent, share: convert::share(&own), seq };
        let id = self.cluster.add_queue(spec).map_err(|error| wire.fault(error.to_string()))?;
        self.cluster.set_usage(id, convert::usage(own.usage_ppm));
        self.queues.insert(wire.name.clone(), id);
        Ok(())
    }

    /// Adds a workload, or several that are alike.
    ///
    /// # Errors
    /// A value is not allowed, its project is not there, or its name is taken.
    pub fn add_workload(&mut self, wire: &At<Workload>) -> Result<(), Error> {
        let fault = |fault: String| wire.fault(format!("workload `{}`: {fault}", wire.name));
        check_name(&wire.name).map_err(fault)?;
        check_count(wire.count, PODS_MAX).map_err(fault)?;
        let spec = self.parts(wire)?;
        self.check_workload(wire, &spec).map_err(fault)?;
        for name in names(&wire.name, wire.count) {
            self.add_one(wire, name, spec.clone())?;
        }
        Ok(())
    }

    fn check_workload(&mut self, wire: &Workload, spec: &WorkloadSpec) -> Result<(), String> {
        if wire.completions == Some(0) {
            return Err("`completions` is 0; at least 1 is allowed".into());
        }
        for (at, pool) in wire.pools.iter().enumerate() {
            if wire.pools[..at].contains(pool) {
                return Err(format!("`pools` has `{pool}` twice"));
            }
            self.pool(pool)?;
        }
        if wire.tasks.len() > spec.pods() as usize {
            return Err(format!("has {} tasks and {} pods", wire.tasks.len(), spec.pods()));
        }
        if wire.count.is_some() && wire.tasks.iter().any(|task| task.state != TaskState::Pending) {
            return Err("`count` and `tasks` that have a place cannot be used together".into());
        }
        let count = u64::from(wire.count.unwrap_or(1));
        let pods = u64::from(spec.pods()) * count;
        if self.pods_added + pods > PODS_MAX {
            return Err(format!("a scenario has at most {PODS_MAX} pods"));
        }
        let mut asked = self.asked;
        for set in &spec.pod_sets {
            let each = convert::most(set.request);
            for (sum, kind) in asked.iter_mut().zip(Kind::ALL) {
                *sum += u128::from(each[kind]) * u128::from(u64::from(set.pods) * count);
            }
        }
        if asked.iter().any(|sum| *sum > SUM_MAX) {
            return Err("all workloads together ask for more than can be counted".into());
        }
        self.pods_added += pods;
        self.asked = asked;
        Ok(())
    }

    /// Whether a workload is preemptible, and its priority: each profile derives what is not given
    /// from the other in its own way.
    fn standing(&self, wire: &Workload) -> (bool, u32) {
        if let Profile::Kai(_) = self.policy.profile {
            let priority = wire.priority.unwrap_or(50);
            return (wire.preemptible.unwrap_or(priority < 100), priority);
        }
        let preemptible = wire.preemptible.unwrap_or(true);
        (preemptible, wire.priority.unwrap_or(if preemptible { 50 } else { 100 }))
    }

    fn add_one(
        &mut self,
        wire: &At<Workload>,
        name: String,
        mut spec: WorkloadSpec,
    ) -> Result<(), Error> {
        let fault = |fault: String| wire.fault(format!("workload `{name}`: {fault}"));
        let key = (wire.project.clone(), name.clone());
        if self.by_name.get(&key).is_some_and(|&at| self.jobs[at].ended.is_none()) {
            return Err(fault(format!("project `{}` has another of this name", wire.project)));
        }
        spec.name.clone_from(&name);
        spec.seq = self.jobs.len() as u64;
        (spec.preemptible, spec.priority) = self.standing(wire);
        spec.elastic = wire.elastic;
        spec.time_limit_ms = wire.time_limit.map(|span| span.0);
        spec.preemption_delay_ms = wire.preemption_delay.map_or(0, |span| span.0);
        spec.created_at = ago(self.now, wire.age.map_or(0, |span| span.0));
        let id = self.cluster.add_workload(spec).map_err(|error| fault(error.to_string()))?;
        let starts = wire.started.map(|span| ago(self.now, span.0));
        let resizes = wire.resized.map(|span| ago(self.now, span.0));
        self.cluster.set_starts(id, starts, resizes);
        let checkpointed = wire.checkpointed.map(|span| ago(self.now, span.0));
        self.cluster.set_checkpointed(id, checkpointed);
        self.cluster.set_restarts(id, wire.restarts);
        self.cluster.set_stale(id, wire.stale.map(|span| ago(self.now, span.0)));
        if let Some(span) = wire.last_evicted {
            self.cluster.set_evicted(id, ago(self.now, span.0));
        }
        if let Some(wait) = wire.not_before {
            self.cluster.set_not_before(id, self.now.plus_ms(wait.0));
        }
        self.by_model.insert(id, self.jobs.len());
        self.by_name.insert(key, self.jobs.len());
        let projects = self.projects_of.entry(name.clone()).or_default();
        if !projects.contains(&wire.project) {
            projects.push(wire.project.clone());
        }
        self.jobs.push(Job {
            project: wire.project.clone(),
            name,
            model: Some(id),
            suspended: wire.suspended,
            leaving: false,
            ended: None,
            runs_for_ms: wire.runs_for.map(|span| span.0),
            evicted: wire.evicted.unwrap_or(self.world.evicted),
            runs: Runs::new(wire.completions, wire.backoff_limit.unwrap_or(BACKOFF_LIMIT)),
        });
        self.put_tasks(id, wire)
    }
}

/// So long ago, but not before the clock began.
fn ago(now: units::Instant, span_ms: u64) -> units::Instant {
    debug_assert!(now >= START);
    units::Instant(now.0.saturating_sub(span_ms))
}
