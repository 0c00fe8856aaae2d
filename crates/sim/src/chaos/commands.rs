//! Commands of users and of parts of the server in a history.

use std::collections::BTreeSet;

use orchestrator::{
    Command, Edit, NewId, NewObject, PoolChange, Readiness, Wanted, WorkloadChange, new_topology,
};
use serde_json::json;
use view::{Scope, WorkloadView};

use super::history::History;
use super::specs::{self, KIND, LEVELS, Named, priority};
use super::step::{Asked, Kind};
use crate::rng::Rng;

/// A kind of objects whose content has no meaning to the server.
const NOTE: &str = "note";

fn by() -> String {
    "alice".to_owned()
}

impl History {
    /// Sends a command of this kind, if there is an object that it can be about.
    pub(super) fn ask(&mut self, kind: Kind, rng: &mut Rng) {
        match kind {
            Kind::Submit => self.submit(rng),
            Kind::Delete | Kind::Suspend | Kind::Resume | Kind::Change => self.about(kind, rng),
            Kind::Serve => self.serve(rng),
            Kind::Project => self.project(rng),
            Kind::Department => self.department(rng),
            Kind::Pool => self.pool(rng),
            Kind::AddNode => {
                let number = 1 + u32::try_from(rng.below(6)).unwrap_or_default();
                let spec = specs::node(number, false, rng);
                self.send(Asked::Other, Command::AddNode { by: by(), spec, more: Vec::new() });
            }
            Kind::RemoveNode => {
                if let Some(node) = self.node(rng) {
                    self.send(Asked::Other, Command::RemoveNode { by: by(), node });
                }
            }
            Kind::ChangeNode => {
                if let Some(node) = self.node(rng) {
                    let change = specs::node_change(rng);
                    self.send(Asked::Other, Command::ChangeNode { by: by(), node, change });
                }
            }
            Kind::FailGpu | Kind::HealGpu => {
                let Some(node) = self.node(rng) else { return };
                let gpu = u32::try_from(rng.below(4)).unwrap_or_default();
                let command = match kind {
                    Kind::FailGpu => Command::FailGpu { by: by(), node, gpu },
                    _ => Command::HealGpu { by: by(), node, gpu },
                };
                self.send(Asked::Other, command);
            }
            Kind::Object => self.object(rng),
            // After that little else happens until the next start.
            Kind::StopEverything if rng.below(6) == 0 => {
                self.send(Asked::Other, Command::StopEverything { by: by() });
            }
            // The other kinds are no commands.
            _ => {}
        }
    }

    fn new_name(&mut self, of: &str) -> String {
        self.named += 1;
        format!("{of}{}", self.named)
    }

    fn node(&self, rng: &mut Rng) -> Option<String> {
        let nodes = &self.machine.view()?.nodes;
        nodes.get(rng.below(nodes.len())).map(|node| node.name.clone())
    }

    fn any<T>(all: impl Iterator<Item = T>, rng: &mut Rng) -> Option<T> {
        let all: Vec<T> = all.collect();
        let at = rng.below(all.len());
        all.into_iter().nth(at)
    }

    /// Objects that a command can name.
    fn named(&self) -> Named {
        let Some(view) = self.machine.view() else { return Named::default() };
        let pools = view.pools.iter().skip(1).map(|pool| pool.id.clone()).collect();
        let topologies = view.objects.all(spec::TOPOLOGY).into_iter();
        Named { pools, topologies: topologies.map(|one| one.id.clone()).collect() }
    }

    fn submit(&mut self, rng: &mut Rng) {
        let Some(view) = self.machine.view() else { return };
        let Some(project_id) = Self::any(view.projects.keys().copied(), rng) else { return };
        let pools: Vec<_> = view.pools.iter().skip(1).map(|pool| pool.name.clone()).collect();
        let name = match rng.below(6) {
            // The name may be in use, or may have been used before.
            0 => format!("w{}", rng.below(20)),
            _ => self.new_name("w"),
        };
        let mut spec = specs::workload(rng, project_id, name, &self.named());
        if rng.below(5) == 0 {
            spec.node_pools = pools;
        }
        let may_go = spec.delete_after_ms.is_some() || spec.delete_when_preempted;
        let wanted = Box::new(Wanted { spec, runs: Ok(()), strict: false });
        self.send(Asked::Submit { may_go }, Command::Submit { project_id, wanted });
    }

    fn about(&mut self, kind: Kind, rng: &mut Rng) {
        let Some(id) = Self::any(self.known.keys().copied(), rng) else { return };
        let (asked, command) = match kind {
            Kind::Delete => (Asked::MayGo(id), Command::Delete { by: by(), id }),
            Kind::Suspend => (Asked::Other, Command::Suspend { by: by(), id }),
            Kind::Resume => (Asked::Other, Command::Resume { by: by(), id }),
            _ if rng.below(4) == 0 => {
                let ago_ms = rng.below(60_000) as u64;
                let hangs = Command::NoteHang { id, workers: 2, idle_ms: ago_ms };
                let pods = ["a", "b"].map(str::to_owned);
                let parts =
                    Command::NoteParting { id, pods, leaves: "b".to_owned(), for_ms: ago_ms };
                let command = match ago_ms % 4 {
                    0 => hangs,
                    2 => parts,
                    _ => Command::NoteCheckpoint { id, ago_ms },
                };
                (Asked::Other, command)
            }
            _ => {
                let ends = rng.below(4) == 0;
                let change = WorkloadChange {
                    priority: (rng.below(2) == 0).then(|| priority([40, 50, 60][rng.below(3)])),
                    preemptible: (rng.below(4) == 0).then(|| rng.below(2) == 0),
                    backoff_limit: Some(2),
                    delete_after_ms: ends.then_some(10_000),
                    gates: (rng.below(2) == 0).then(Vec::new),
                    ..WorkloadChange::default()
                };
                let asked = if ends { Asked::MayGo(id) } else { Asked::Other };
                (asked, Command::UpdateWorkload { by: by(), id, change: Box::new(change) })
            }
        };
        self.send(asked, command);
    }

    /// Sends a command of the part of the server that serves inferences.
    fn serve(&mut self, rng: &mut Rng) {
        let Some(view) = self.machine.view() else { return };
        let Some(one) = Self::any(view.revisions.values().cloned(), rng) else { return };
        let revision = one.id;
        let count = one.pods.len();
        let command = match rng.below(8) {
            0..4 => {
                let all =
                    (0..u32::try_from(count).unwrap_or_default()).filter(|_| rng.below(2) == 0);
                let wanted: BTreeSet<u32> = all.collect();
                Command::Scale { revision, wanted, why: "requests".to_owned() }
            }
            4 => Command::Retire { revision },
            5 => Command::GiveUp { revision, why: "never ready".to_owned() },
            6 => Command::NoteReady(readiness(&one, rng)),
            _ => {
                let Some(of) = one.spec.revision.map(|revision| revision.of) else { return };
                let Some(head) = view.workloads.get(&of) else { return };
                let Some(&from) = head.revisions.last() else { return };
                let wanted =
                    Wanted { spec: specs::changed(&head.spec, rng), runs: Ok(()), strict: false };
                Command::UpdateInference { by: by(), id: of, from, wanted: Box::new(wanted) }
            }
        };
        self.send(Asked::Other, command);
    }

    fn project(&mut self, rng: &mut Rng) {
        let named = self.named();
        let Some(view) = self.machine.view() else { return };
        let department = Self::any(view.departments.keys().copied(), rng);
        let project = Self::any(view.projects.keys().copied(), rng);
        let command = match (rng.below(5), department, project) {
            (0, Some(department_id), _) => {
                let name = self.new_name("team-");
                Command::CreateProject {
                    by: by(),
                    department_id,
                    spec: specs::given(rng, Some(name), &named),
                }
            }
            (1, _, Some(id)) => Command::DeleteProject { by: by(), id },
            (_, _, Some(id)) => {
                Command::UpdateProject { by: by(), id, change: specs::given(rng, None, &named) }
            }
            _ => return,
        };
        self.send(Asked::Other, command);
    }

    fn department(&mut self, rng: &mut Rng) {
        let named = self.named();
        let Some(view) = self.machine.view() else { return };
        let one = Self::any(view.departments.keys().copied(), rng);
        let command = match (rng.below(4), one) {
            (0, _) => {
                let name = self.new_name("dep-");
                Command::CreateDepartment { by: by(), spec: specs::given(rng, Some(name), &named) }
            }
            (1, Some(id)) => Command::DeleteDepartment { by: by(), id },
            (_, Some(id)) => {
                Command::UpdateDepartment { by: by(), id, change: specs::given(rng, None, &named) }
            }
            _ => return,
        };
        self.send(Asked::Other, command);
    }

    fn pool(&mut self, rng: &mut Rng) {
        let named = self.named();
        let Some(view) = self.machine.view() else { return };
        let one = Self::any(view.pools.iter().map(|pool| pool.id.clone()), rng);
        let command = match (rng.below(4), one) {
            (0 | 1, _) => {
                let name = self.new_name("pool-");
                Command::CreatePool { by: by(), spec: specs::pool(rng, name, &named) }
            }
            (2, Some(id)) => Command::DeletePool { by: by(), id },
            (_, Some(id)) => {
                let value = ["a", "b"][rng.below(2)].to_owned();
                let change = PoolChange {
                    label_key: Some(KIND.to_owned()),
                    label_value: Some(value),
                    min_runtime_ms: Some((rng.below(2) == 0).then_some(3_000)),
                    topology: Some(named.topologies.get(rng.below(3)).cloned()),
                    ..PoolChange::default()
                };
                Command::UpdatePool { by: by(), id, change }
            }
            _ => return,
        };
        self.send(Asked::Other, command);
    }

    fn object(&mut self, rng: &mut Rng) {
        let Some(view) = self.machine.view() else { return };
        let one = Self::any(view.objects.all(NOTE).into_iter(), rng);
        let topology = Self::any(view.objects.all(spec::TOPOLOGY).into_iter(), rng);
        let project = Self::any(view.projects.keys().copied(), rng);
        let command = match (rng.below(6), one, topology) {
            (0, _, _) => {
                let new = new_topology(self.new_name("net-"), &LEVELS.map(str::to_owned));
                Command::CreateObject { by: by(), new }
            }
            (1, _, Some(topology)) => {
                let kind = spec::TOPOLOGY;
                Command::DeleteObject { by: by(), kind, id: topology.id.clone() }
            }
            (2, Some(one), _) => Command::DeleteObject { by: by(), kind: NOTE, id: one.id.clone() },
            (3, Some(one), _) => {
                let text = rng.below(9);
                let edit = Edit::new(move |one| Ok((one.name.clone(), json!({ "text": text }))));
                let edited = Box::new(edit.made_to(Some(&one)));
                Command::UpdateObject { by: by(), kind: NOTE, id: one.id.clone(), edited }
            }
            _ => {
                let scope = project.map_or(Scope::Tenant, Scope::Project);
                let new = NewObject {
                    kind: NOTE,
                    id: NewId::Any,
                    scope,
                    owner: String::new(),
                    name: format!("note-{}", rng.below(5)),
                    body: json!({}),
                    newest: None,
                };
                Command::CreateObject { by: by(), new }
            }
        };
        self.send(Asked::Other, command);
    }
}

fn readiness(revision: &WorkloadView, rng: &mut Rng) -> Vec<Readiness> {
    let fault = (rng.below(2) == 0).then(|| "does not answer".to_owned());
    let of = |pod: &view::PodView| Readiness {
        pod: pod.id,
        generation: pod.generation,
        fault: fault.clone(),
    };
    revision.pods.iter().map(of).collect()
}
