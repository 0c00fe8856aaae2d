//! What the advice says happens. On random servers the commands that are said of each workload that
//! waits are typed on a copy, each read by the parser of its dialect, and what was said comes about:
//! the workload starts, and as many others are stopped or moved for it.
//!
//! `ELASTANE_SEEDS=N` tries so many servers, from `ELASTANE_SEED` on.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{NodePatch, WorkloadType};
use clap::Parser as _;
use dialects::intent::{Intent, Kind, Verb};
use orchestrator::{Command as Asked, NodeList, OrgChange, Subject, Wanted};
use sched::Policy;
use sim::machine::Machine;
use sim::rng::Rng;
use spec::{NodeGpu, NodeSpec};
use view::WorkloadView;

use crate::args::{Cli, Command};
use crate::department::Department;
use crate::node;
use crate::project::Project;
use crate::share::{Share, given};

const SEEDS: u64 = 24;
const NODES: [(&str, u32); 3] = [("n1", 4), ("n2", 2), ("n3", 2)];
const ADMIN: &str = "admin";

/// A server, and what was typed to submit each workload of it.
struct Server {
    machine: Machine,
    submitted: BTreeMap<String, String>,
}

impl Server {
    /// A server on which these lines were typed one after the other.
    fn after(lines: &[String]) -> Self {
        let nodes = NODES.iter().map(|&(name, gpus)| machine_node(name, gpus)).collect();
        let nodes = NodeList { nodes, origin: "a test".to_owned() };
        let machine = Machine::new(nodes, Policy::default(), None);
        let mut server = Self { machine, submitted: BTreeMap::new() };
        server.machine.start().unwrap();
        server.rest();
        for line in lines {
            // A submission that is refused is not there.
            let done = server.typed(line);
            assert!(done.is_ok() || line.starts_with("runai"), "{done:?}");
        }
        server
    }

    fn rest(&mut self) {
        assert!((0..200).any(|_| !self.machine.go_on().unwrap()), "it does not come to rest");
    }

    /// Does what a line says, and what follows of it.
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
        let org = |name: &str, share: &Share| OrgChange {
            name: Some(name.to_owned()),
            shares: convert::some_shares(&Vec::from_iter(given(share))).unwrap(),
            ..OrgChange::default()
        };
        let command = match typed.command {
            Command::Department(Department::Create { name, share }) => {
                Asked::CreateDepartment { by, spec: org(&name, &share) }
            }
            Command::Department(Department::Update { name, share }) => {
                let change = OrgChange { name: None, ..org("", &share) };
                Asked::UpdateDepartment { by, id: self.department(&name), change }
            }
            Command::Project(Project::Create { name, department, share }) => {
                let department_id = self.department(&department.unwrap());
                Asked::CreateProject { by, department_id, spec: org(&name, &share) }
            }
            Command::Project(Project::Update { name, share }) => {
                let change = OrgChange { name: None, ..org("", &share) };
                Asked::UpdateProject { by, id: self.project(&name), change }
            }
            Command::Node(verb) => {
                let (node, patch, _) = node::changed(verb).unwrap_or_else(|_| panic!("{line}"));
                let change = convert::node_change(NodePatch { ..patch });
                Asked::ChangeNode { by, node, change }
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
                Asked::Submit { project_id: self.project(&project), wanted }
            }
            Intent::Change(change) if change.verb == Verb::Delete => {
                let names = change.names.unwrap();
                let [name] = &names[..] else { panic!("{line}") };
                Asked::Delete { by, id: self.workload(&project, name).id }
            }
            Intent::Update(update) => {
                let (asked, none) = (dialects::change(&update).spec, Default::default());
                let change = convert::change(asked, &none).unwrap();
                let id = self.workload(&project, &update.of.name).id;
                Asked::UpdateWorkload { by, id, change: Box::new(change) }
            }
            other => panic!("{line}: {other:?}"),
        };
        let done = self.machine.command(command).map_err(|error| format!("{line}: {error}"))?;
        assert!(matches!(done, Subject::Submitted(..) | Subject::Workload(_)), "{line}");
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

    /// The advice for a workload, each with its kind, whom it disturbs and what to type.
    fn advice(&self, workload: &WorkloadView) -> Vec<(api_types::Advice, Vec<String>)> {
        let (cluster, policy) = self.machine.replica().unwrap();
        let now = self.machine.clock.now();
        let Some(found) = sched::diagnose(cluster, workload.model.unwrap(), now, policy) else {
            return Vec::new();
        };
        let (name, project) = (&workload.spec.name, &workload.project_name);
        let with_lines = |advice: api_types::Advice| {
            let mut lines = advice.commands.clone();
            if lines.is_empty() {
                let line = &self.submitted[name];
                let to = advice.to.as_deref();
                let again = dialects::again(line, project, &advice.kind, to);
                lines.extend(again.iter().map(|_| format!("runai delete {name} -p {project}")));
                lines.extend(again);
            }
            (advice, lines)
        };
        convert::diagnosis(&found, now).advice.into_iter().map(with_lines).collect()
    }

    /// Where the pods of each workload run, and which run of each it is.
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

/// The lines by which a random server comes about.
fn history(rng: &mut Rng) -> Vec<String> {
    fn any<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
        of[rng.below(of.len())]
    }
    // None is below the quota.
    fn at_most(rng: &mut Rng, quota: usize) -> String {
        let above = rng.below(6);
        if above < 3 { format!(" --gpu-limit {}", quota + above) } else { String::new() }
    }
    let mut lines = Vec::new();
    for (department, projects) in [("d1", ["a", "b"]), ("d2", ["c", "d"])] {
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
            _ => String::new(),
        };
        let (name, project) = (format!("w{number}"), any(rng, &["a", "b", "c", "d"]));
        let head = match (v1, rng.below(6)) {
            (true, 0) => format!("runai submit {name} --interactive"),
            (true, 1) => format!("runai submit-dist pytorch {name} --workers 2"),
            (true, 2) => format!("runai submit {name} --elastic"),
            (true, _) => format!("runai submit {name}"),
            (false, 0) => format!("runai workspace submit {name}"),
            (false, 1) => format!("runai training pytorch submit {name} --workers 2"),
            (false, _) => {
                let priority = any(rng, &["", "", " --priority low", " --priority medium-high"]);
                format!("runai training submit {name}{priority}")
            }
        };
        lines.push(format!("{head} -i img {size}{host}{place} -p {project}"));
    }
    lines
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// One advice, and the server about which it is said.
struct Said<'a> {
    server: &'a Server,
    lines: &'a [String],
    name: &'a str,
    advice: &'a api_types::Advice,
    commands: &'a [String],
}

impl Said<'_> {
    /// Types the commands on a server like it. What did not come about as it was said.
    fn is_so(&self) -> Result<(), String> {
        let mut then = Server::after(self.lines);
        self.commands.iter().try_for_each(|command| then.typed(command))?;
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

#[test]
fn what_the_advice_says_happens() {
    let first = number("ELASTANE_SEED").unwrap_or(0);
    let seeds = first..first + number("ELASTANE_SEEDS").unwrap_or(SEEDS);
    let (mut kinds, mut wrong) = (BTreeMap::<String, u32>::new(), Vec::new());
    for seed in seeds.clone() {
        let lines = history(&mut Rng::new(seed));
        let server = Server::after(&lines);
        let waiting = server.workloads().filter(|one| one.waits_for_a_place());
        for workload in waiting.filter(|one| one.model.is_some()) {
            let (name, project) = (&workload.spec.name, &workload.project_name);
            for (advice, commands) in server.advice(workload) {
                // Nothing is typed to wait or to buy.
                let has_none = ["wait", "more_nodes"].contains(&&*advice.kind);
                assert_eq!(commands.is_empty(), has_none, "seed {seed}, {name}: {advice:?}");
                if has_none {
                    continue;
                }
                let (advice, lines) = (&advice, &lines);
                let said = Said { server: &server, lines, name, advice, commands: &commands };
                if let Err(instead) = said.is_so() {
                    wrong.push(format!(
                        "seed {seed}, {project}/{name}: {}\n{}\n{instead}\n{}",
                        advice.message,
                        commands.join("\n"),
                        lines.join("\n")
                    ));
                }
                *kinds.entry(advice.kind.clone()).or_default() += 1;
            }
        }
    }
    let followed = kinds.values().sum::<u32>();
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} of {followed} are wrong:\n{}", wrong.join("\n\n"));
    let all = seeds.end - seeds.start >= SEEDS;
    assert!(!all || (followed > 100 && kinds.len() >= 10), "{followed}: {kinds:?}");
}
