//! From the steps of a scenario to the inputs of a machine. Owns: what each does, and finding by
//! their names what it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orchestrator::view::View;
use orchestrator::{
    Command, Error, GpuFault, Input, NodeChange, NodeEvent, OrgChange, SYSTEM, Subject,
    WorkloadChange,
};
use spec::{Exit, NodeGpu, NodeSpec, QUOTA_MILLIS_MAX, Rank, Scheduling, ShareChange};
use uuid::Uuid;

use super::{Asking, submission};
use crate::near::hint;
use crate::scenario::{Amounts, At, Node, OneOrMany, Place, QuotaChange, Step, Workload};
use crate::world::{actions, names, taints};

/// Before the names of departments among the queues of a snapshot.
const DEPARTMENT: &str = "department:";

fn by() -> String {
    SYSTEM.to_owned()
}

fn wrong(message: impl Into<String>) -> Error {
    Error::invalid("steps", message)
}

impl Asking {
    fn view(&self) -> Result<&View, Error> {
        self.machine.view().ok_or_else(|| wrong("the server is down"))
    }

    /// Carries out a step.
    pub(super) fn step(&mut self, step: &Step) -> Result<(), Error> {
        let given = actions(step);
        if given.len() > 1 {
            let given = given.join(", ");
            return Err(wrong(format!("a step has one action; this one has {given}")));
        }
        for workload in step.submitted().iter().flatten() {
            self.submit_all(workload)?;
        }
        for name in step.delete.iter().chain(&step.finish).flat_map(OneOrMany::as_slice) {
            let id = self.workload(name)?;
            self.command(Command::Delete { by: by(), id })?;
        }
        for name in step.suspend.iter().flat_map(OneOrMany::as_slice) {
            let id = self.workload(name)?;
            self.command(Command::Suspend { by: by(), id })?;
        }
        for name in step.resume.iter().flat_map(OneOrMany::as_slice) {
            let id = self.workload(name)?;
            self.command(Command::Resume { by: by(), id })?;
        }
        for name in step.ungate.iter().flat_map(OneOrMany::as_slice) {
            let id = self.workload(name)?;
            let change = WorkloadChange { gates: Some(Vec::new()), ..WorkloadChange::default() };
            self.command(Command::UpdateWorkload { by: by(), id, change: Box::new(change) })?;
        }
        for name in step.fail.iter().flat_map(OneOrMany::as_slice) {
            self.fail(name)?;
        }
        if let Some(change) = &step.quota {
            self.quota(change)?;
        }
        self.change_nodes(step)
    }

    fn change_nodes(&mut self, step: &Step) -> Result<(), Error> {
        if let Some(node) = &step.add_node {
            self.add_nodes(node)?;
        }
        for (names, scheduling) in [
            (&step.cordon, Scheduling::Disabled),
            (&step.uncordon, Scheduling::Enabled),
            (&step.drain, Scheduling::Draining),
        ] {
            for name in names.iter().flat_map(OneOrMany::as_slice) {
                self.schedule(name, scheduling)?;
            }
        }
        for name in step.remove_node.iter().flat_map(OneOrMany::as_slice) {
            self.is_unused(name)?;
            self.take(vec![Input::Node(NodeEvent::Deleted(name.clone()))])?;
        }
        for name in step.lose_node.iter().flat_map(OneOrMany::as_slice) {
            self.node(name)?;
            self.take(vec![Input::Node(NodeEvent::Deleted(name.clone()))])?;
        }
        if let Some(gpus) = &step.lose_gpu {
            self.break_gpus(gpus)?;
        }
        if let Some(gpus) = &step.return_gpu {
            self.repair_gpus(gpus)?;
        }
        Ok(())
    }
}

/// Workloads and projects.
impl Asking {
    fn submit_all(&mut self, wire: &At<Workload>) -> Result<(), Error> {
        let fault = |fault: String| wrong(format!("workload `{}`: {fault}", wire.name));
        let project_id = self.project(&wire.project).map_err(fault)?;
        for name in names(&wire.name, wire.count) {
            let spec = submission::specification(self.view()?, wire, name).map_err(fault)?;
            let id = self.submit(project_id, spec)?;
            if let Some(id) = id.filter(|_| wire.suspended) {
                self.command(Command::Suspend { by: by(), id })?;
            }
        }
        Ok(())
    }

    fn project(&self, name: &str) -> Result<u64, String> {
        let projects = self.machine.view().into_iter().flat_map(|view| view.projects.values());
        let projects: Vec<_> = projects.map(|one| (one.unit.name.as_str(), one.unit.id)).collect();
        let found = projects.iter().find(|(known, _)| *known == name);
        found.map(|(_, id)| *id).ok_or_else(|| {
            let near = hint(name, projects.iter().map(|(known, _)| *known));
            format!("there is no queue `{name}`{near}")
        })
    }

    /// The workload with this name, or `project/name`.
    fn workload(&self, name: &str) -> Result<Uuid, Error> {
        let (project, own) = name.split_once('/').map_or((None, name), |(p, n)| (Some(p), n));
        let all = || self.machine.view().into_iter().flat_map(|view| view.workloads.values());
        let found = all().filter(|one| {
            one.spec.name == own && project.is_none_or(|project| one.project_name == project)
        });
        match found.collect::<Vec<_>>().as_slice() {
            [one] => Ok(one.id),
            [] => {
                let near = hint(own, all().map(|one| one.spec.name.as_str()));
                Err(wrong(format!("there is no workload `{name}`{near}")))
            }
            [first, ..] => {
                let first = &first.project_name;
                Err(wrong(format!("`{name}` is in several projects; write `{first}/{name}`")))
            }
        }
    }

    /// The first run of a workload fails.
    fn fail(&mut self, name: &str) -> Result<(), Error> {
        let id = self.workload(name)?;
        let workload = self.view()?.workloads.get(&id);
        let pods = workload.map(|one| one.pods.iter().map(|pod| pod.id).collect());
        let pods: BTreeSet<Uuid> = pods.unwrap_or_default();
        let mut runs = self.machine.engine.alive().map(|(key, _)| *key);
        let run = runs.find(|key| pods.contains(&key.pod));
        drop(runs);
        let run = run.ok_or_else(|| wrong(format!("workload `{name}` has no pod that runs")))?;
        let at = self.machine.clock.wall();
        self.machine.engine.end(run, Exit::Code(1), at);
        Ok(())
    }

    fn quota(&mut self, change: &QuotaChange) -> Result<(), Error> {
        let pool = self.pool(change.pool.as_deref())?;
        let shares = BTreeMap::from([(pool, share(change).map_err(wrong)?)]);
        let org = OrgChange { shares, ..OrgChange::default() };
        let name = &change.project;
        let department = name.strip_prefix(DEPARTMENT).and_then(|name| {
            let mut all = self.machine.view()?.departments.values();
            all.find(|department| department.name == name).map(|department| department.id)
        });
        self.command(match department {
            Some(id) => Command::UpdateDepartment { by: by(), id, change: org },
            None => {
                let id = self.project(name).map_err(wrong)?;
                Command::UpdateProject { by: by(), id, change: org }
            }
        })?;
        Ok(())
    }

    /// The id of a node pool; of the first one where none is named.
    fn pool(&self, name: Option<&str>) -> Result<String, Error> {
        let pools = &self.view()?.pools;
        let found = pools.iter().find(|pool| name.is_none_or(|name| pool.name == name));
        found.map(|pool| pool.id.clone()).ok_or_else(|| {
            let name = name.unwrap_or_default();
            let near = hint(name, pools.iter().map(|pool| pool.name.as_str()));
            wrong(format!("no node is in a pool `{name}`{near}"))
        })
    }
}

/// What a project is given instead.
fn share(change: &QuotaChange) -> Result<ShareChange, String> {
    let limit = |amount: u64| (amount < u64::MAX).then_some(amount);
    let Amounts { gpu, cpu, memory } = change.quota;
    let (most, weight) = (change.limit, change.weight);
    Ok(ShareChange {
        gpu_quota_millis: gpu.map(|amount| amount.0.min(QUOTA_MILLIS_MAX)),
        gpu_limit_millis: most.gpu.map(|amount| limit(amount.0)),
        over_quota_weight: weight.gpu.map(u64::from),
        cpu_quota_millis: cpu.map(|amount| limit(amount.0)),
        memory_quota_bytes: memory.map(|amount| limit(amount.0)),
        cpu_limit_millis: most.cpu.map(|amount| limit(amount.0)),
        memory_limit_bytes: most.memory.map(|amount| limit(amount.0)),
        cpu_weight: weight.cpu.map(|weight| Some(weight.into())),
        memory_weight: weight.memory.map(|weight| Some(weight.into())),
        rank: change.priority.map(rank).transpose()?,
    })
}

fn rank(priority: u32) -> Result<Rank, String> {
    let found = Rank::ALL.into_iter().find(|rank| rank.value() == priority);
    found.ok_or_else(|| {
        let all: Vec<_> = Rank::ALL.iter().map(|rank| rank.value().to_string()).collect();
        format!("`priority` is {priority}; a project has one of {}", all.join(", "))
    })
}

/// Nodes.
impl Asking {
    fn node(&self, name: &str) -> Result<&NodeSpec, Error> {
        let nodes = &self.view()?.nodes;
        let found = nodes.iter().find(|node| node.name == name);
        found.map(|node| &*node.spec).ok_or_else(|| {
            let near = hint(name, nodes.iter().map(|node| node.name.as_str()));
            wrong(format!("there is no node `{name}`{near}"))
        })
    }

    fn schedule(&mut self, name: &str, scheduling: Scheduling) -> Result<Subject, Error> {
        self.node(name)?;
        let scheduling = Some(scheduling);
        let change = NodeChange { scheduling, ..NodeChange::default() };
        self.command(Command::ChangeNode { by: by(), node: name.to_owned(), change })
    }

    fn is_unused(&self, name: &str) -> Result<(), Error> {
        self.node(name)?;
        let Some((cluster, _)) = self.machine.replica() else { return Ok(()) };
        let nodes = cluster.nodes().iter().filter(|(_, node)| node.name == name);
        let pods = nodes.flat_map(|(_, node)| &node.pods);
        let there: BTreeSet<_> =
            pods.map(|&pod| cluster.workload_of(pod).spec.name.as_str()).collect();
        if there.is_empty() {
            return Ok(());
        }
        let there = Vec::from_iter(there).join(", ");
        Err(wrong(format!("node `{name}` is still used by {there}; `drain` it first")))
    }

    fn add_nodes(&mut self, wire: &At<Node>) -> Result<(), Error> {
        let fault = |fault: &str| wrong(format!("node `{}`: {fault}", wire.name));
        if wire.mig.is_some() || wire.pods_max.is_some() {
            let why = "`mig` and `pods_max` are for `elastane simulate --from` a snapshot";
            return Err(fault(why));
        }
        for name in names(&wire.name, wire.count) {
            if self.node(&name).is_ok() {
                return Err(fault(&format!("there is another node `{name}`")));
            }
            let spec = self.node_spec(wire, &name)?;
            self.take(vec![Input::Node(NodeEvent::Applied(spec))])?;
            match (wire.cordoned, wire.draining) {
                (_, true) => drop(self.schedule(&name, Scheduling::Draining)?),
                (true, false) => drop(self.schedule(&name, Scheduling::Disabled)?),
                (false, false) => {}
            }
            self.break_gpus(&Place { node: name, gpus: wire.out_of_service.clone() })?;
        }
        Ok(())
    }

    fn node_spec(&self, wire: &Node, name: &str) -> Result<NodeSpec, Error> {
        let fault = |fault: String| wrong(format!("node `{name}`: {fault}"));
        let (count, sizes) = (wire.gpus as usize, wire.gpu_memory.as_slice());
        if count > crate::GPUS_PER_NODE_MAX as usize {
            let most = crate::GPUS_PER_NODE_MAX;
            return Err(fault(format!("has {count} GPUs; at most {most} are allowed")));
        }
        if sizes.len() != 1 && sizes.len() != count {
            let given = sizes.len();
            return Err(fault(format!("has {count} GPUs and {given} sizes of their memory")));
        }
        let gpu = |(at, size): (usize, &crate::scenario::amount::Size)| NodeGpu {
            uuid: format!("{name}/{at}"),
            memory_bytes: size.0,
            fault: None,
        };
        let mut labels = wire.labels.clone();
        // A server says by a label of its own which nodes are in a pool.
        if let Some(pool) = labels.remove(model::POOL_LABEL) {
            let id = self.pool(Some(&pool))?;
            let pool = self.view()?.pools.iter().find(|pool| pool.id == id);
            labels.extend(pool.and_then(|pool| pool.settings.label.clone()));
        }
        Ok(NodeSpec {
            name: name.to_owned(),
            gpu_type: "simulated".to_owned(),
            simulated: true,
            gpus: sizes.iter().cycle().take(count).enumerate().map(gpu).collect(),
            cpu_millis: wire.cpu.0,
            memory_bytes: wire.memory.0,
            labels,
            taints: taints(&wire.taints),
        })
    }

    /// What the driver calls these GPUs.
    fn uuids(&self, of: &Place) -> Result<Vec<String>, Error> {
        let node = self.node(&of.node)?;
        let uuid = |&gpu: &u32| {
            let (name, count) = (&of.node, node.gpus.len());
            let found = node.gpus.get(gpu as usize).map(|gpu| gpu.uuid.clone());
            found.ok_or_else(|| wrong(format!("node `{name}` has no GPU {gpu}; it has {count}")))
        };
        of.gpus.iter().map(uuid).collect()
    }

    fn break_gpus(&mut self, of: &Place) -> Result<(), Error> {
        let lost = self.uuids(of)?.into_iter();
        let lost = lost.map(|uuid| (uuid, GpuFault::Lost("a step took it away".to_owned())));
        Arc::make_mut(&mut self.machine.gpus).extend(lost);
        let seen = self.machine.gpus.clone();
        self.take(vec![Input::Gpus(seen)]).map(drop)
    }

    fn repair_gpus(&mut self, of: &Place) -> Result<(), Error> {
        for uuid in self.uuids(of)? {
            Arc::make_mut(&mut self.machine.gpus).remove(&uuid);
        }
        let seen = self.machine.gpus.clone();
        self.take(vec![Input::Gpus(seen)])?;
        let is_simulated = self.node(&of.node)?.simulated;
        for &gpu in of.gpus.iter().filter(|_| is_simulated) {
            self.command(Command::HealGpu { by: by(), node: of.node.clone(), gpu })?;
        }
        Ok(())
    }
}
