//! Conversion of the steps of a scenario to inputs of a machine. Owns: the effect of each step, and
//! finding the objects that it names. All steps take this way: those of scenario files, of
//! snapshots and of questions to a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::POOL_LABEL;
use orchestrator::{
    Command, Error, Input, NodeChange, NodeEvent, OrgChange, SYSTEM, Subject, Wanted,
    WorkloadChange, levels_of,
};
use sched::Profile;
use spec::{Exit, NodeSpec, PoolSpec, RunKey, Scheduling, TOPOLOGY, WorkloadSpec};
use uuid::Uuid;
use view::{GpuFault, Object, View};

use super::names::names;
use super::org::own_name;
use super::parts::Known;
use super::ranks::Ranks;
use super::start::{out_of_service, pool_settings};
use super::{convert, nodes};
use crate::machine::{Machine, Run};
use crate::scenario::{At, Evicted, Node, OneOrMany, Place, QuotaChange, Step, Workload};
use crate::suggest::hint;

fn by() -> String {
    SYSTEM.to_owned()
}

fn wrong(message: impl Into<String>) -> Error {
    Error::invalid("steps", message)
}

/// A machine that executes steps of scenarios.
pub(crate) struct Asking {
    pub(crate) machine: Machine,
    pub(crate) known: Known,
    /// `true` if a node may name a node pool that does not exist, which is then created.
    pub(crate) makes_pools: bool,
}

impl Asking {
    /// Wraps a server; the topologies and node pools are read from its view.
    pub(crate) fn of(machine: Machine) -> Self {
        let view = machine.view();
        let all = view.into_iter().flat_map(|view| view.objects.all(TOPOLOGY).to_vec());
        let topology = |one: Arc<Object>| (one.name.clone(), (one.id.clone(), levels_of(&one)));
        let topologies = all.map(topology).collect();
        let profile = machine.replica().map_or(Profile::Default, |(_, policy)| policy.profile);
        let known =
            Known { topologies, profile, evicted: Evicted::Pending, ranks: Ranks::default() };
        Self { machine, known, makes_pools: false }
    }

    fn view(&self) -> Result<&View, Error> {
        self.machine.view().ok_or_else(|| wrong("the server is down"))
    }

    /// Takes inputs as one batch; the first refusal is returned as an error.
    fn take(&mut self, inputs: Vec<Input>) -> Result<Vec<Subject>, Error> {
        let outcomes = self.machine.take(inputs, None)?;
        outcomes.into_iter().flatten().collect()
    }

    fn command(&mut self, command: Command) -> Result<Subject, Error> {
        self.machine.command(command)
    }

    /// Executes a step that takes no time; returns the ids of the workloads it submits.
    pub(crate) fn step(&mut self, step: &Step) -> Result<Vec<Uuid>, Error> {
        one_action(step).map_err(wrong)?;
        let mut submitted = Vec::new();
        for workload in step.submitted().iter().flatten() {
            let all = self.submit_all(workload).map_err(|error| wrong(error.message()))?;
            submitted.extend(all.into_iter().map(|(_, id)| id));
        }
        type Change = fn(&mut Asking, &str) -> Result<(), Error>;
        let changes: [(&Option<OneOrMany<String>>, Change); 6] = [
            (&step.delete, Self::delete),
            (&step.finish, Self::finish),
            (&step.suspend, Self::suspend),
            (&step.resume, Self::resume),
            (&step.ungate, Self::ungate),
            (&step.fail, Self::fail),
        ];
        for (names, change) in changes {
            for name in names.iter().flat_map(OneOrMany::as_slice) {
                change(self, name)?;
            }
        }
        if let Some(change) = &step.quota {
            self.quota(change)?;
        }
        self.change_nodes(step)?;
        Ok(submitted)
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
    /// Submits a workload, or several equal ones; returns their names and ids.
    pub(crate) fn submit_all(
        &mut self,
        wire: &At<Workload>,
    ) -> Result<Vec<(String, Uuid)>, crate::Error> {
        let fault = |fault: String| wire.fault(format!("workload `{}`: {fault}", wire.name));
        is_new(wire).map_err(fault)?;
        let project_id = self.project(&wire.project).map_err(fault)?;
        for pool in &wire.pools {
            self.pool(Some(pool)).map_err(|error| fault(error.to_string()))?;
        }
        let spec = self.known.specification(wire)?;
        let mut submitted = Vec::new();
        for name in names(&wire.name, wire.count) {
            let spec = WorkloadSpec { name: name.clone(), ..spec.clone() };
            let id = self.submit(project_id, spec, wire.suspended);
            let id = id.map_err(|error| fault(error.to_string()))?;
            submitted.extend(id.map(|id| (name, id)));
        }
        Ok(submitted)
    }

    /// Submits a workload, which may be suspended at once.
    pub(crate) fn submit(
        &mut self,
        project_id: u64,
        spec: WorkloadSpec,
        suspended: bool,
    ) -> Result<Option<Uuid>, Error> {
        let wanted = Box::new(Wanted { spec, runs: Ok(()), strict: false });
        let Subject::Submitted(id, _) = self.command(Command::Submit { project_id, wanted })?
        else {
            return Ok(None);
        };
        if suspended {
            self.command(Command::Suspend { by: by(), id })?;
        }
        Ok(Some(id))
    }

    /// Changes an inference, and stops one replica of its last revision; returns the new revision.
    pub(crate) fn replace(
        &mut self,
        id: Uuid,
        from: Uuid,
        spec: WorkloadSpec,
    ) -> Result<Option<Uuid>, Error> {
        let wanted = Box::new(Wanted { spec, runs: Ok(()), strict: false });
        self.command(Command::UpdateInference { by: by(), id, from, wanted })?;
        let Some(view) = self.machine.view() else { return Ok(None) };
        let Some([before @ .., next]) = view.workloads.get(&id).map(|head| &head.revisions[..])
        else {
            return Ok(None);
        };
        if *next == from {
            return Ok(None);
        }
        let next = *next;
        // The newest revision may have failed, so that an older one serves.
        let serving =
            before.iter().rev().filter_map(|id| view.revisions.get(id)).find(|revision| {
                revision.phase.holds() && revision.pods.iter().any(|pod| pod.wanted)
            });
        if let Some(serving) = serving {
            let pods = serving.pods.iter().filter(|pod| pod.wanted);
            let wanted = pods.map(|pod| pod.index).skip(1).collect();
            let (revision, why) = (serving.id, "it makes room for the next revision".to_owned());
            self.command(Command::Scale { revision, wanted, why })?;
        }
        Ok(Some(next))
    }

    fn delete(&mut self, name: &str) -> Result<(), Error> {
        let id = self.workload(name)?;
        self.command(Command::Delete { by: by(), id }).map(drop)
    }

    fn suspend(&mut self, name: &str) -> Result<(), Error> {
        let id = self.workload(name)?;
        self.command(Command::Suspend { by: by(), id }).map(drop)
    }

    fn resume(&mut self, name: &str) -> Result<(), Error> {
        let id = self.workload(name)?;
        self.command(Command::Resume { by: by(), id }).map(drop)
    }

    fn ungate(&mut self, name: &str) -> Result<(), Error> {
        let id = self.workload(name)?;
        let change = WorkloadChange { gates: Some(Vec::new()), ..WorkloadChange::default() };
        self.command(Command::UpdateWorkload { by: by(), id, change: Box::new(change) }).map(drop)
    }

    /// Ends the runs of a workload with success.
    fn finish(&mut self, name: &str) -> Result<(), Error> {
        for run in self.runs(name)? {
            self.machine.engine.end(run, Exit::Code(0), self.machine.clock.wall());
        }
        Ok(())
    }

    /// Ends the first run of a workload with a failure.
    fn fail(&mut self, name: &str) -> Result<(), Error> {
        for run in self.runs(name)?.into_iter().take(1) {
            self.machine.engine.end(run, Exit::Code(1), self.machine.clock.wall());
        }
        Ok(())
    }

    /// The runs of a workload, in the order of its pods; at least one.
    fn runs(&self, name: &str) -> Result<Vec<RunKey>, Error> {
        let id = self.workload(name)?;
        let workload = self.view()?.workloads.get(&id);
        let pods = workload.into_iter().flat_map(|workload| &workload.pods);
        let keys = pods.map(|pod| RunKey { pod: pod.id, generation: pod.generation });
        let runs = self.machine.engine.runs();
        let lives = |key: &RunKey| runs.get(key).is_some_and(Run::is_alive);
        let keys: Vec<_> = keys.filter(lives).collect();
        if keys.is_empty() {
            return Err(wrong(format!("workload `{name}` has no pod that runs")));
        }
        Ok(keys)
    }

    /// The id of a department: by its name among the queues of a snapshot, or its own name if no
    /// project has this name.
    fn department(&self, name: &str) -> Option<u64> {
        if name == own_name(name) && self.project(name).is_ok() {
            return None;
        }
        let mut all = self.machine.view()?.departments.values();
        all.find(|one| one.name == own_name(name)).map(|one| one.id)
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

    fn quota(&mut self, change: &QuotaChange) -> Result<(), Error> {
        let pool = self.pool(change.pool.as_deref())?;
        let shares = BTreeMap::from([(
            pool,
            convert::share_change(change, &self.known.ranks).map_err(wrong)?,
        )]);
        let org = OrgChange { shares, ..OrgChange::default() };
        let name = &change.project;
        let department = self.department(name);
        self.command(match department {
            Some(id) => Command::UpdateDepartment { by: by(), id, change: org },
            None => {
                let id = self.project(name).map_err(wrong)?;
                Command::UpdateProject { by: by(), id, change: org }
            }
        })?;
        Ok(())
    }

    /// The id of a node pool; of the first one if no name is given.
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

    /// Adds nodes.
    pub(crate) fn apply(&mut self, nodes: &[NodeSpec]) -> Result<(), Error> {
        let applied = nodes.iter().cloned().map(|spec| Input::Node(NodeEvent::Applied(spec)));
        self.take(applied.collect()).map(drop)
    }

    fn add_nodes(&mut self, wire: &At<Node>) -> Result<(), Error> {
        let fault = |fault: String| wrong(format!("node `{}`: {fault}", wire.name));
        let spec = nodes::node(wire, self.known.profile).map_err(fault)?;
        let labels = self.labels(wire)?;
        for name in names(&wire.name, wire.count) {
            if self.node(&name).is_ok() {
                return Err(fault(format!("there is another node `{name}`")));
            }
            let spec = nodes::named(&spec, &name, labels.clone());
            let out = out_of_service(&spec, &wire.out_of_service).map_err(fault)?;
            Arc::make_mut(&mut self.machine.gpus).extend(out);
            let seen = self.machine.gpus.clone();
            self.take(vec![Input::Gpus(seen), Input::Node(NodeEvent::Applied(spec))])?;
            // A node added again starts with the settings of this step.
            self.schedule(
                &name,
                match (wire.cordoned, wire.draining) {
                    (_, true) => Scheduling::Draining,
                    (true, false) => Scheduling::Disabled,
                    (false, false) => Scheduling::Enabled,
                },
            )?;
        }
        Ok(())
    }

    /// The labels of a new node. The server assigns nodes to pools by labels of its own.
    fn labels(&mut self, wire: &Node) -> Result<BTreeMap<String, String>, Error> {
        let mut labels = wire.labels.clone();
        let Some(name) = labels.remove(POOL_LABEL) else { return Ok(labels) };
        let is_new = self.makes_pools && self.pool(Some(&name)).is_err();
        if let Some((_, policy)) = self.machine.replica().filter(|_| is_new) {
            let settings = pool_settings(&name, policy.placement);
            let spec = PoolSpec { name: name.clone(), settings };
            self.command(Command::CreatePool { by: by(), spec })?;
        }
        let id = self.pool(Some(&name))?;
        let pool = self.view()?.pools.iter().find(|pool| pool.id == id);
        labels.extend(pool.and_then(|pool| pool.settings.label.clone()));
        Ok(labels)
    }

    /// UUIDs that the driver gives these GPUs.
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

/// Refuses fields that only an initial workload can have.
fn is_new(wire: &Workload) -> Result<(), String> {
    let of_the_start = [
        ("age", wire.age.is_some()),
        ("started", wire.started.is_some()),
        ("resized", wire.resized.is_some()),
        ("checkpointed", wire.checkpointed.is_some()),
        ("restarts", wire.restarts > 0),
        ("stale", wire.stale.is_some()),
        ("last_evicted", wire.last_evicted.is_some()),
        ("not_before", wire.not_before.is_some()),
        ("tasks", !wire.tasks.is_empty()),
    ];
    match of_the_start.iter().find(|(_, is)| *is) {
        Some((key, _)) => {
            Err(format!("has `{key}`, which is for a workload that is there already; leave it out"))
        }
        None => Ok(()),
    }
}

/// The action of a step; `None` if it has none.
pub(super) fn one_action(step: &Step) -> Result<Option<&'static str>, String> {
    let given = [
        ("submit", step.submit.is_some()),
        ("delete", step.delete.is_some()),
        ("finish", step.finish.is_some()),
        ("suspend", step.suspend.is_some()),
        ("resume", step.resume.is_some()),
        ("ungate", step.ungate.is_some()),
        ("fail", step.fail.is_some()),
        ("quota", step.quota.is_some()),
        ("advance", step.advance.is_some()),
        ("cycles", step.cycles.is_some()),
        ("gone", step.gone.is_some()),
        ("add_node", step.add_node.is_some()),
        ("cordon", step.cordon.is_some()),
        ("uncordon", step.uncordon.is_some()),
        ("drain", step.drain.is_some()),
        ("remove_node", step.remove_node.is_some()),
        ("lose_node", step.lose_node.is_some()),
        ("lose_gpu", step.lose_gpu.is_some()),
        ("return_gpu", step.return_gpu.is_some()),
    ];
    let given = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name);
    match *given.collect::<Vec<_>>() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        ref more => Err(format!("a step has one action; this one has {}", more.join(", "))),
    }
}
