//! Checks that advice is true. On random servers, the commands of the advice for each waiting
//! workload are run on a copy, each parsed by its dialect, and the promised result has to occur:
//! the workload starts, and only as many others are stopped or moved for it as promised.
//!
//! `ELASTANE_SEEDS=N` tries this many servers, from `ELASTANE_SEED` on.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{
    AdvisedChange, Diagnosis, NodePatch, ResourcesNodePool, ShareRequest, WorkloadType,
};
use clap::Parser as _;
use convert::Made;
use dialects::intent::{Intent, Kind, Verb};
use orchestrator::{Command as OrchestratorCommand, NodeList, OrgChange, Subject, Wanted};
use reasons::diagnosis::Change;
use sched::Policy;
use sim::machine::Machine;
use sim::rng::Rng;
use spec::{NodeGpu, NodeSpec, PoolSettings, PoolSpec};
use view::WorkloadView;

use crate::args::{Cli, Command};
use crate::department::{Department, NodePool};
use crate::node;
use crate::project::Project;
use crate::share::{Share, given};
use crate::simulate::{Drill, NewNode};

mod values;

const SEEDS: u64 = 24;
const NODES: [(&str, u32); 3] = [("n1", 4), ("n2", 2), ("n3", 2)];
const ADMIN: &str = "admin";
/// Projects; their names are no words of a sentence.
const PROJECTS: [&str; 4] = ["ann", "bob", "cid", "dan"];
const ANN: &str = PROJECTS[0];

/// A server, and the command line that submitted each of its workloads.
struct Server {
    machine: Machine,
    submitted: BTreeMap<String, String>,
}

impl Server {
    /// A server after these lines.
    fn after(lines: &[String]) -> Self {
        let nodes = NODES.iter().map(|&(name, gpus)| machine_node(name, gpus)).collect();
        let nodes = NodeList { nodes, origin: "a test".to_owned() };
        let machine = Machine::new(nodes, Policy::default(), None);
        let mut server = Self { machine, submitted: BTreeMap::new() };
        server.machine.start().unwrap();
        server.rest();
        for line in lines {
            // A refused submission adds no workload.
            let done = server.typed(line);
            assert!(done.is_ok() || line.starts_with("runai"), "{done:?}");
        }
        server
    }

    fn rest(&mut self) {
        assert!((0..200).any(|_| !self.machine.go_on().unwrap()), "it does not come to rest");
    }

    /// Runs a line, and the decisions that follow.
    fn typed(&mut self, line: &str) -> Result<(), String> {
        let words = shell_words::split(line).unwrap();
        match words[0].as_str() {
            "runai" => self.researcher(line, &words)?,
            _ => self.administrator(line, &words)?,
        }
        self.rest();
        Ok(())
    }

    fn administrator(&mut self, line: &str, words: &[String]) -> Result<(), String> {
        let typed = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        let by = ADMIN.to_owned();
        let view = self.machine.view().unwrap();
        let pool = |name: &String| {
            let found = view.pools.iter().find(|pool| pool.name == *name).unwrap();
            ResourcesNodePool { id: found.id.clone(), name: None }
        };
        let org = |name: &str, share: &Share| {
            let node_pool = share.node_pool.as_ref().map(pool);
            let given = given(share).map(|given| ShareRequest { node_pool, ..given });
            OrgChange {
                name: Some(name.to_owned()),
                shares: convert::some_shares(&Vec::from_iter(given)).unwrap(),
                ..OrgChange::default()
            }
        };
        let command = match typed.command {
            Command::Department(Department::Create { name, share }) => {
                OrchestratorCommand::CreateDepartment { by, spec: org(&name, &share) }
            }
            Command::Department(Department::Update { name, share, .. }) => {
                let change = OrgChange { name: None, ..org("", &share) };
                OrchestratorCommand::UpdateDepartment { by, id: self.department(&name), change }
            }
            Command::Project(Project::Create { name, department, share, .. }) => {
                let department_id = self.department(&department.unwrap());
                OrchestratorCommand::CreateProject { by, department_id, spec: org(&name, &share) }
            }
            Command::Project(Project::Update { name, share, .. }) => {
                let change = OrgChange { name: None, ..org("", &share) };
                OrchestratorCommand::UpdateProject { by, id: self.project(&name), change }
            }
            Command::Node(verb) => {
                let (node, patch, _) = node::changed(verb).unwrap_or_else(|_| panic!("{line}"));
                let change = convert::node_change(NodePatch { ..patch });
                OrchestratorCommand::ChangeNode { by, node, change }
            }
            Command::Simulate(simulate) => match simulate.drill {
                Some(Drill::NodeAdd(new)) => {
                    let mut nodes = added(&new);
                    let spec = nodes.remove(0);
                    OrchestratorCommand::AddNode { by, spec, more: nodes }
                }
                other => panic!("{line}: {other:?}"),
            },
            Command::NodePool(NodePool::Create { name, label, .. }) => {
                let spec = PoolSpec { name, settings: PoolSettings::new(Some(label)) };
                OrchestratorCommand::CreatePool { by, spec }
            }
            other => panic!("{line}: {other:?}"),
        };
        self.machine.command(command).map(drop).map_err(|error| format!("{line}: {error}"))
    }

    fn researcher(&mut self, line: &str, words: &[String]) -> Result<(), String> {
        let typed = dialects::understood(words.iter().map(Into::into).collect());
        let typed = typed.unwrap_or_else(|error| panic!("{line}: {error}"));
        let project = typed.global.project.unwrap_or_else(|| panic!("{line}: no project"));
        let by = ADMIN.to_owned();
        let command = match typed.intent {
            Intent::Submit(submit) => {
                let dialects::intent::Name::Given(name) = &submit.name else { panic!("{line}") };
                let request = dialects::creation(&submit, name, "1".to_owned());
                let workload_type = match submit.kind {
                    Kind::Training(_) => WorkloadType::Training,
                    Kind::Workspace => WorkloadType::Workspace,
                    Kind::Distributed(_) => WorkloadType::Distributed,
                    Kind::Inference(_) => WorkloadType::Inference,
                };
                let spec = api::workload_asked_for(workload_type, request)?;
                self.submitted.insert(name.clone(), line.to_owned());
                let wanted = Box::new(Wanted { spec, runs: Ok(()), strict: false });
                OrchestratorCommand::Submit { project_id: self.project(&project), wanted }
            }
            Intent::Change(change) if change.verb == Verb::Delete => {
                let names = change.names.unwrap();
                let [name] = &names[..] else { panic!("{line}") };
                OrchestratorCommand::Delete { by, id: self.workload(&project, name).id }
            }
            Intent::Update(update) => {
                let (asked, none) = (dialects::change(&update).spec, Default::default());
                let change = convert::change(asked, &none).unwrap();
                let id = self.workload(&project, &update.of.name).id;
                OrchestratorCommand::UpdateWorkload { by, id, change: Box::new(change) }
            }
            other => panic!("{line}: {other:?}"),
        };
        let done = self.machine.command(command).map_err(|error| format!("{line}: {error}"))?;
        assert!(matches!(done, Subject::Submitted(..) | Subject::Workload(_)), "{line}");
        Ok(())
    }

    /// Makes an advised change for a workload.
    fn made(&mut self, change: &AdvisedChange, name: &str) -> Result<(), String> {
        let by = ADMIN.to_owned();
        let view = self.machine.view().unwrap();
        let workload = self.workloads().find(|one| one.spec.name == name).unwrap();
        for made in convert::steps_of(change, workload, view).map_err(|error| error.message())? {
            let by = by.clone();
            let command = match made {
                Made::Submit(project_id, spec) => {
                    let wanted = Box::new(Wanted { spec: *spec, runs: Ok(()), strict: false });
                    OrchestratorCommand::Submit { project_id, wanted }
                }
                Made::Nodes(mut nodes) => {
                    let spec = nodes.remove(0);
                    OrchestratorCommand::AddNode { by, spec, more: nodes }
                }
                made => made.command().map_err(|error| error.message())?.unwrap(),
            };
            self.machine.command(command).map_err(|error| error.to_string())?;
            self.rest();
        }
        Ok(())
    }

    fn department(&self, name: &str) -> u64 {
        let all = &self.machine.view().unwrap().departments;
        let found = all.iter().find(|(_, one)| one.name == name);
        *found.unwrap_or_else(|| panic!("no department {name}")).0
    }

    fn project(&self, name: &str) -> u64 {
        let all = &self.machine.view().unwrap().projects;
        let found = all.iter().find(|(_, one)| one.unit.name == name);
        *found.unwrap_or_else(|| panic!("no project {name}")).0
    }

    fn workloads(&self) -> impl Iterator<Item = &WorkloadView> {
        let all = self.machine.view().unwrap().workloads.values();
        all.map(|one| &**one).filter(|one| one.deleted_at.is_none())
    }

    fn workload(&self, project: &str, name: &str) -> &WorkloadView {
        let mut all = self.workloads();
        let found = all.find(|one| one.spec.name == name && one.project_name == project);
        found.unwrap_or_else(|| panic!("no workload {project}/{name}"))
    }

    /// The diagnosis of a workload.
    fn diagnosed(&self, workload: &WorkloadView) -> Option<reasons::diagnosis::Diagnosis> {
        let (cluster, policy) = self.machine.replica().unwrap();
        sched::diagnose(cluster, workload.model.unwrap(), self.machine.clock.now(), policy)
    }

    /// The advice for a workload, each with its index in [`KINDS`] and its commands.
    fn advice(
        &self,
        workload: &WorkloadView,
        found: &reasons::diagnosis::Diagnosis,
        said: Diagnosis,
    ) -> Vec<(usize, api_types::Advice, Vec<String>)> {
        let (name, project) = (&workload.spec.name, &workload.project_name);
        let with_lines = |(of, advice): (&reasons::diagnosis::Advice, api_types::Advice)| {
            let mut lines = advice.commands.clone();
            if lines.is_empty() {
                let line = &self.submitted[name];
                let to = advice.to.as_deref();
                let again = dialects::again(line, project, &advice.kind, to);
                lines.extend(again.iter().map(|_| format!("runai delete {name} -p {project}")));
                lines.extend(again);
            }
            (line_of(&of.change), advice, lines)
        };
        found.advice.iter().zip(said.advice).map(with_lines).collect()
    }

    /// Places of the pods of each workload, with the number of the run.
    fn places(&self) -> BTreeMap<String, BTreeSet<String>> {
        let places = |one: &WorkloadView| {
            let placed = one.pods.iter().filter(|pod| pod.node_name.is_some());
            let place = placed.map(|pod| {
                format!("{} {} {:?} {:?}", pod.index, pod.generation, pod.node_name, pod.gpus)
            });
            (one.spec.name.clone(), place.collect::<BTreeSet<_>>())
        };
        self.workloads().map(places).collect()
    }
}

fn machine_node(name: &str, gpus: u32) -> NodeSpec {
    let gpu = |number| NodeGpu::new(format!("GPU-{name}-{number}"), 16 << 30);
    NodeSpec {
        name: name.to_owned(),
        gpu_type: "simulated".to_owned(),
        simulated: true,
        gpus: (0..gpus).map(gpu).collect(),
        cpu_millis: 16_000,
        memory_bytes: 64 << 30,
        pods_max: None,
        labels: BTreeMap::new(),
        taints: Vec::new(),
    }
}

/// The node of a `simulate node-add` command.
fn added(new: &NewNode) -> Vec<NodeSpec> {
    let gpus = u32::try_from(new.gpus).unwrap();
    let named = |name: &String| {
        let node = machine_node(name, gpus);
        assert!(node.gpus.iter().all(|gpu| Some(gpu.memory_bytes) == new.gpu_memory));
        assert_eq!((new.cpu, new.memory), (Some(node.cpu_millis), Some(node.memory_bytes)));
        NodeSpec { labels: new.label.iter().cloned().collect(), ..node }
    };
    new.nodes.iter().map(named).collect()
}

/// Random lines that set up a server.
fn history(rng: &mut Rng) -> Vec<String> {
    fn any<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
        of[rng.below(of.len())]
    }
    // A limit is never below the quota.
    fn at_most(rng: &mut Rng, quota: usize) -> String {
        let above = rng.below(6);
        if above < 3 { format!(" --gpu-limit {}", quota + above) } else { String::new() }
    }
    let mut lines = Vec::new();
    for (department, projects) in [("d1", &PROJECTS[..2]), ("d2", &PROJECTS[2..])] {
        let quota = rng.below(6);
        let limit = at_most(rng, quota);
        lines.push(format!("elastane department create {department} --gpu-quota {quota}{limit}"));
        for project in projects {
            let (quota, weight) = (rng.below(4), rng.below(3));
            let limit = at_most(rng, quota);
            lines.push(format!(
                "elastane project create {project} --department {department} --gpu-quota {quota} \
                 --over-quota-weight {weight}{limit}"
            ));
        }
    }
    for number in 0..4 + rng.below(10) {
        let node = NODES[rng.below(NODES.len())].0;
        match rng.below(10) {
            0 => lines.push(format!("elastane node cordon {node}")),
            1 => lines.push(format!("elastane node taint {node} own=me:NoSchedule")),
            _ => {}
        }
        let v1 = rng.below(2) == 0;
        let size = match v1 {
            true => any(rng, &["-g 1", "-g 2", "-g 3", "-g 4", "-g 0.5", "--gpu-memory 12G"]),
            false => any(
                rng,
                &["-g 1", "-g 2", "-g 3", "--gpu-portion-request 0.65", "--gpu-memory-request 12G"],
            ),
        };
        let host = match v1 {
            true => any(rng, &["", "", " --cpu 12", " --memory 48G"]),
            false => any(rng, &["", "", " --cpu-core-request 12", " --cpu-memory-request 48G"]),
        };
        let place = match rng.below(8) {
            0 => format!(" --node-affinity kubernetes.io/hostname={node}"),
            1 => format!(" --exclude-node {node}"),
            2 => " --required-pod-topology-key kubernetes.io/hostname".to_owned(),
            _ => String::new(),
        };
        let (name, project) = (format!("w{number}"), any(rng, &PROJECTS));
        let head = match (v1, rng.below(6)) {
            (true, 0) => format!("runai submit {name} --interactive"),
            (true, 1) => format!("runai submit-dist pytorch {name} --workers 2"),
            (true, 2) => format!("runai submit {name} --elastic"),
            (true, _) => format!("runai submit {name}"),
            (false, 0) => format!("runai workspace submit {name}"),
            (false, 1) => format!("runai training pytorch submit {name} --workers 2"),
            (false, 2) => format!("runai training submit {name} --elastic"),
            (false, _) => {
                let priority = any(rng, &["", "", " --priority low", " --priority medium-high"]);
                format!("runai training submit {name}{priority}")
            }
        };
        lines.push(format!("{head} -i img {size}{host}{place} -p {project}"));
    }
    lines
}

/// Servers with the rarer kinds of advice, each in both dialects: the quota of a project, earlier
/// lines, and the waiting submission in two forms.
fn chosen() -> Vec<Vec<String>> {
    let each = |flags: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("runai submit f{number} -i img {flags} -p {ANN}")).collect()
    };
    let near = "--required-pod-topology-key kubernetes.io/hostname";
    let n1 = "-g 1 --node-affinity kubernetes.io/hostname=n1";
    let n2 = "--node-affinity kubernetes.io/hostname=n2";
    let training = |v1: &str, v2: &str| {
        [format!("runai submit w {v1}"), format!("runai training submit w {v2}")]
    };
    let together = |flags: &str| {
        let [v1, v2] = ["runai submit-dist pytorch w", "runai training pytorch submit w"];
        [v1, v2].map(|head| format!("{head} {flags}"))
    };
    let (one, on_n2) = ("-g 1", format!("-g 1 {n2}"));
    let [with_master, _] = together("-g 1 --workers 4");
    let [_, without] = together("-g 1 --workers 5 --no-master");
    let without_master = [with_master, without];
    let workspace = ["runai submit w --interactive -g 1", "runai workspace submit w -g 1"];
    let workspace = workspace.map(str::to_owned);
    let of_mpi = [
        "runai submit-dist mpi w -g 1 --workers 99".to_owned(),
        "runai training mpi submit w -g 1 --workers 98".to_owned(),
    ];
    let ranks = [
        "runai submit-mpi w -g 1 --processes 99".to_owned(),
        "runai training mpi submit w -g 1 --workers 99".to_owned(),
    ];
    let mig = training("--mig-profile 1g.10gb", "--extended-resource nvidia.com/mig-1g.10gb=1");
    let (gated, in_zone) = ("-g 1 --scheduling-gate data", "-g 1 --node-affinity zone=a");
    let states = [
        ("8", each("-g 0.6", 8), training("-g 0.5", "--gpu-portion-request 0.5")),
        ("8", each("-g 0.6", 8), training("--gpu-memory 12G", "--gpu-memory-request 12G")),
        ("8", each("-g 2", 2), without_master),
        ("8", Vec::new(), mig),
        ("8", Vec::new(), training(gated, gated)),
        ("8", Vec::new(), training(in_zone, in_zone)),
        ("8", Vec::new(), ranks),
        ("8", Vec::new(), of_mpi),
        ("8", each("-g 1 --cpu 12", 3), training("--cpu 12", "--cpu-core-request 12")),
        ("8", each("-g 1 --memory 48G", 3), training("--memory 48G", "--cpu-memory-request 48G")),
        ("8", each(&format!("-g 2 {n2}"), 1), training(&on_n2, &on_n2)),
        ("8", each(n1, 1), together(&format!("-g 2 --workers 2 {near}"))),
        ("8", each("-g 1", 1), training("-g 4", "-g 4")),
        ("8", each("-g 2", 4), training(one, one)),
        ("0", Vec::new(), workspace),
        ("1 --gpu-limit 1", Vec::new(), training("-g 2", "-g 2")),
    ];
    let lines = |(quota, before, waiting): (&str, Vec<String>, [String; 2])| {
        let department = "elastane department create d1 --gpu-quota 8".to_owned();
        let project = format!("elastane project create {ANN} --department d1 --gpu-quota {quota}");
        let lines: Vec<_> = [department, project].into_iter().chain(before).collect();
        waiting.map(|last| [&lines[..], &[format!("{last} -i img -p {ANN}")]].concat())
    };
    let closed = ["cordon n1", "taint n1 own=me:NoSchedule"].into_iter().flat_map(|verb| {
        lines(("8", vec![format!("elastane node {verb}")], training("-g 4", "-g 4")))
    });
    let pool = "elastane node-pool create gold --label tier=gold".to_owned();
    let named = training("-g 1 --node-pools gold", "-g 1 --node-pools gold");
    let elsewhere = lines(("8", vec![pool], named));
    states.into_iter().flat_map(lines).chain(closed).chain(elsewhere).collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// An advice, and its server.
struct Said<'a> {
    server: &'a Server,
    lines: &'a [String],
    name: &'a str,
    advice: &'a api_types::Advice,
    commands: &'a [String],
}

impl Said<'_> {
    /// Runs the commands on a copy of the server. The error says which promised result did not
    /// occur.
    fn is_so(&self) -> Result<(), String> {
        let mut then = Server::after(self.lines);
        self.commands.iter().try_for_each(|command| then.typed(command))?;
        self.came(&then)
    }

    /// Makes the change on a copy of the server from its values, as they are on the wire.
    fn is_so_by_its_values(&self) -> Result<(), String> {
        let mut then = Server::after(self.lines);
        let wire = serde_json::to_string(&self.advice.change).unwrap();
        let kind = serde_json::from_str::<serde_json::Value>(&wire).unwrap()["kind"].clone();
        assert_eq!(kind, *self.advice.kind);
        let change: AdvisedChange = serde_json::from_str(&wire).unwrap();
        then.made(&change, self.name)?;
        self.came(&then)
    }

    fn came(&self, then: &Server) -> Result<(), String> {
        let (before, after) = (self.server.places(), then.places());
        if after[self.name].is_empty() {
            return Err("it does not start".to_owned());
        }
        let gone = (self.advice.kind == "end").then(|| self.commands[0].split(' ').nth(2).unwrap());
        let disturbed = before.iter().filter(|(other, places)| {
            Some(&***other) != gone
                && *other != self.name
                && !places.is_subset(after.get(*other).unwrap_or(&BTreeSet::new()))
        });
        let disturbed: Vec<_> = disturbed.map(|(other, _)| other).collect();
        match disturbed.len() == self.advice.disturbs as usize {
            true => Ok(()),
            false => Err(format!("{disturbed:?} are stopped or moved")),
        }
    }
}

/// Commands for a kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A command.
    Typed,
    /// Advice without a command, for this reason.
    Nothing(&'static str),
    /// Advice that never occurs, for this reason.
    Unsaid(&'static str),
}

use Form::{Nothing, Typed, Unsaid};

/// Each kind of change, with its commands for a workload that was submitted in the first dialect
/// and in the second.
const KINDS: [(&str, [Form; 2]); 24] = [
    ("fewer_gpus", [Typed; 2]),
    ("smaller_share", [Typed; 2]),
    ("less_gpu_memory", [Typed; 2]),
    ("fewer_pods", [Typed; 2]),
    ("less_cpu", [Typed; 2]),
    ("less_memory", [Typed; 2]),
    ("elastic", [Typed; 2]),
    ("preemptible", [Typed; 2]),
    ("priority", [Typed; 2]),
    ("without_selector", [Unsaid("on a server what selects labels is an affinity"); 2]),
    ("without_affinity", [Typed; 2]),
    ("without_pod_affinity", [Typed; 2]),
    ("tolerate", [Typed; 2]),
    ("wait", [Nothing("time passes by itself"); 2]),
    ("end", [Typed; 2]),
    ("quota", [Typed; 2]),
    ("limit", [Typed; 2]),
    ("uncordon", [Typed; 2]),
    ("more_nodes", [Typed; 2]),
    ("node_pool", [Typed; 2]),
    ("untaint", [Typed; 2]),
    ("part_of_gpu", [Typed; 2]),
    ("ungate", [Typed; 2]),
    ("label", [Typed; 2]),
];

/// Index of a change in [`KINDS`]. A new kind needs an entry.
const fn line_of(change: &Change) -> usize {
    match change {
        Change::Gpus { .. } => 0,
        Change::Share { .. } => 1,
        Change::GpuMemory { .. } => 2,
        Change::Pods { .. } => 3,
        Change::Cpu { .. } => 4,
        Change::Memory { .. } => 5,
        Change::Elastic => 6,
        Change::Preemptible => 7,
        Change::Priority { .. } => 8,
        Change::WithoutSelector { .. } => 9,
        Change::WithoutAffinity { .. } => 10,
        Change::WithoutPodAffinity => 11,
        Change::Tolerate { .. } => 12,
        Change::Wait { .. } => 13,
        Change::End { .. } => 14,
        Change::Quota(_) => 15,
        Change::Limit(_) => 16,
        Change::Uncordon { .. } => 17,
        Change::Nodes { .. } => 18,
        Change::NodePool { .. } => 19,
        Change::Untaint { .. } => 20,
        Change::PartOfGpu { .. } => 21,
        Change::Ungate => 22,
        Change::Label { .. } => 23,
    }
}

/// Number of times that a kind of change was advised, in each dialect.
type Counts = [[u32; 2]; KINDS.len()];

/// Follows the advice for all waiting workloads of a server; returns the advice that was not true.
fn follow(lines: &[String], counts: &mut Counts) -> Vec<String> {
    let server = Server::after(lines);
    let waiting = server.workloads().filter(|one| one.waits_for_a_place());
    let mut wrong = Vec::new();
    for workload in waiting.filter(|one| one.model.is_some()) {
        let (name, project) = (&workload.spec.name, &workload.project_name);
        let submitted = &server.submitted[name];
        let dialect = usize::from(!submitted.starts_with("runai submit"));
        let Some(found) = server.diagnosed(workload) else { continue };
        let (view, now) = (server.machine.view().unwrap(), server.machine.clock.now());
        let diagnosis = convert::diagnosis(&found, view, now, &|_| true, Vec::new());
        wrong.extend(values::unsaid(&found, &diagnosis, now));
        for (line, advice, commands) in server.advice(workload, &found, diagnosis) {
            let (kind, forms) = KINDS[line];
            let form = forms[dialect];
            let is_typed = form == Typed;
            assert_eq!(
                (kind, is_typed),
                (&*advice.kind, !commands.is_empty()),
                "{submitted}: {form:?}"
            );
            counts[line][dialect] += 1;
            if !is_typed {
                continue;
            }
            let (advice, commands) = (&advice, &commands[..]);
            let said = Said { server: &server, lines, name, advice, commands };
            for instead in
                [said.is_so(), said.is_so_by_its_values()].into_iter().filter_map(Result::err)
            {
                let (message, commands, lines) =
                    (&advice.message, commands.join("\n"), lines.join("\n"));
                let text = format!("{project}/{name}: {message}\n{commands}\n{instead}\n{lines}");
                wrong.push(text);
            }
        }
    }
    wrong
}

#[test]
fn what_the_advice_says_happens() {
    let first = number("ELASTANE_SEED").unwrap_or(0);
    let seeds = first..first + number("ELASTANE_SEEDS").unwrap_or(SEEDS);
    let (mut counts, mut wrong) = (Counts::default(), Vec::new());
    for seed in seeds {
        let found = follow(&history(&mut Rng::new(seed)), &mut counts);
        wrong.extend(found.into_iter().map(|text| format!("seed {seed}, {text}")));
    }
    for lines in chosen() {
        wrong.extend(follow(&lines, &mut counts));
    }
    let (count, all) = (wrong.len(), counts.iter().flatten().sum::<u32>());
    assert!(wrong.is_empty(), "{count} of {all} are wrong:\n{}", wrong.join("\n\n"));
    let each = KINDS.iter().zip(counts);
    let each =
        each.flat_map(|((kind, forms), by)| std::iter::zip(forms, by).map(move |of| (kind, of)));
    // Every kind of advice occurs as the table says.
    let is_as_told = |(form, count): (&Form, u32)| match form {
        Typed => count > 0,
        Nothing(_) => true,
        Unsaid(_) => count == 0,
    };
    let not: Vec<_> = each.filter(|(_, of)| !is_as_told(*of)).collect();
    assert!(not.is_empty(), "of {all}: {not:?} in {counts:?}");
}
