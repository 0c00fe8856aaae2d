//! Comparison of expectations with the state of a simulation. Owns: the comparison, and the texts
//! of differences.

use std::collections::{BTreeMap, BTreeSet};

use model::{Placement, PodBinding};
use units::{GPU_MILLIS, format_millis};

use crate::play::Simulation;
use crate::report::{label_of, task_state};
use crate::scenario::{
    DecisionKind, Expect, ExpectPool, ExpectQueue, ExpectState, ExpectTask, ExpectWorkload,
    OneOrMany, State,
};

/// Decisions since the last action of a scenario.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decided {
    /// Labels of stopped pods, and the codes of the causes.
    pub(crate) stopped: Vec<(String, String)>,
    /// Kinds of all decisions.
    pub(crate) kinds: Vec<DecisionKind>,
}

/// Every difference, one sentence each.
pub(crate) fn differences(
    simulation: &Simulation,
    decided: &Decided,
    expected: &Expect,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut groups = BTreeMap::new();
    for (name, want) in &expected.gpus {
        match simulation.node(name) {
            Err(fault) => found.push(fault),
            Ok(node) => {
                let want = want.split_whitespace().collect::<Vec<_>>().join(" ");
                differ(&mut found, &format!("GPUs of {name}"), want, gpus(simulation, node));
            }
        }
    }
    if let Some(want) = &expected.waiting {
        let list = |names: &[String]| format!("[{}]", names.join(", "));
        differ(&mut found, "waiting", list(want), list(&waiting(simulation)));
    }
    for (name, want) in &expected.workloads {
        match simulation.job(name) {
            Err(fault) => found.push(fault),
            Ok(job) => {
                workload(&mut found, simulation, name, job, want);
                tasks(&mut found, simulation, (name, job), &want.tasks, &mut groups);
            }
        }
    }
    for (kind, &want) in &expected.decisions {
        let is = decided.kinds.iter().filter(|other| *other == kind).count();
        let what = format!("decisions of kind {}", kind.as_str());
        differ(&mut found, &what, want.to_string(), is.to_string());
    }
    for (name, want) in &expected.queues {
        match simulation.queue(name) {
            Err(fault) => found.push(fault),
            Ok(id) => queue(&mut found, simulation, name, id, want),
        }
    }
    if let Some(want) = &expected.stopped {
        let want = want.iter().map(|(name, codes)| (name.clone(), codes.as_slice().to_vec()));
        let mut is: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, code) in &decided.stopped {
            let codes = is.entry(name.clone()).or_default();
            if !codes.contains(code) {
                codes.push(code.clone());
            }
        }
        differ(&mut found, "stopped", codes(&want.collect()), codes(&is));
    }
    found
}

fn differ(found: &mut Vec<String>, what: &str, want: String, is: String) {
    if want != is {
        found.push(format!("{what}\n    expected  {want}\n    found     {is}"));
    }
}

fn codes(stopped: &BTreeMap<String, Vec<String>>) -> String {
    let each = stopped.iter().map(|(name, codes)| format!("{name}: {}", codes.join(" ")));
    format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
}

/// Occupants of each GPU of a node: `a2 a2 frac:0.5+other:0.3 .`; `!` marks a pod that is being
/// stopped.
pub(crate) fn gpus(simulation: &Simulation, node: model::NodeId) -> String {
    let row = &simulation.cluster().nodes()[node];
    let mut users = vec![Vec::new(); row.gpus.len()];
    for &pod in &row.pods {
        let binding = &simulation.cluster().pods()[pod].binding;
        let here = binding.current.as_ref().filter(|place| place.node == node);
        for share in here.iter().flat_map(|place| &place.devices) {
            let mut user = label_of(simulation, pod);
            if binding.releasing {
                user.push('!');
            }
            let instance = row.gpus[share.gpu as usize].profile().is_some();
            if share.millis != GPU_MILLIS && !instance {
                user.push_str(&format!(":{}", format_millis(share.millis)));
            }
            users[share.gpu as usize].push(user);
        }
    }
    let one = |users: Vec<String>| {
        if users.is_empty() { ".".to_owned() } else { users.join("+") }
    };
    users.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

fn waiting(simulation: &Simulation) -> Vec<String> {
    let ids = simulation.cluster().waiting();
    let mut jobs: Vec<_> = ids.filter_map(|id| simulation.by_model.get(&id)).collect();
    jobs.sort_unstable();
    jobs.iter().map(|&&job| simulation.label(&simulation.jobs[job])).collect()
}

/// The state of a workload as a whole.
pub(crate) fn state(simulation: &Simulation, job: usize) -> State {
    let row = &simulation.jobs[job];
    let Some(id) = row.model else { return row.ended.unwrap_or(State::Gone) };
    let pods = &simulation.cluster().workloads()[id].pods;
    let states: Vec<_> =
        pods.iter().map(|&pod| task_state(&simulation.cluster().pods()[pod])).collect();
    let any = |state| states.contains(&state);
    match states.first() {
        Some(&first) if states.iter().all(|&state| state == first) => first,
        _ if any(State::Running) => State::Partly,
        _ if any(State::Releasing) => State::Releasing,
        _ if any(State::Reserved) => State::Reserved,
        _ => State::Pending,
    }
}

fn workload(
    found: &mut Vec<String>,
    simulation: &Simulation,
    name: &str,
    job: usize,
    want: &ExpectWorkload,
) {
    let cluster = simulation.cluster();
    let id = simulation.jobs[job].model;
    let pods = id.map(|id| cluster.workloads()[id].pods.as_slice()).unwrap_or_default();
    let places = || {
        let current = |&pod: &model::PodId| cluster.pods()[pod].binding.current.as_ref();
        pods.iter().filter_map(current)
    };
    if let Some(want) = want.state {
        let is = state(simulation, job);
        differ(found, &format!("state of {name}"), want.as_str().into(), is.as_str().into());
    }
    if let Some(want) = &want.nodes {
        let mut nodes: Vec<&str> = Vec::new();
        for place in places() {
            let node = cluster.nodes()[place.node].name.as_str();
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        differ(found, &format!("nodes of {name}"), want.as_slice().join(", "), nodes.join(", "));
    }
    if let Some(want) = want.gpu {
        let is: u64 = places().map(Placement::gpu_millis).sum();
        differ(found, &format!("GPUs of {name}"), format_millis(want.0), format_millis(is));
    }
    let counts = [
        (ExpectState::Running, want.running),
        (ExpectState::Pipelined, want.pipelined),
        (ExpectState::Releasing, want.releasing),
    ];
    for (state, want) in counts {
        let Some(want) = want else { continue };
        let is = pods.iter().filter(|&&pod| pod_state(&cluster.pods()[pod]) == state).count();
        let what = format!("{} pods of {name}", state.as_str());
        differ(found, &what, want.to_string(), is.to_string());
    }
    if let Some(want) = &want.pending {
        let reasons = id.and_then(|id| simulation.plan().pending.get(&id));
        let reasons = reasons.into_iter().flat_map(|reasons| reasons.iter());
        let is: Vec<_> = reasons.map(|reason| reason.code().code).collect();
        differ(found, &format!("why {name} waits"), joined(want), is.join(" "));
    }
}

/// The state of a pod in terms of expectations.
fn pod_state(pod: &model::Pod) -> ExpectState {
    match &pod.binding {
        PodBinding { next: Some(_), .. } => ExpectState::Pipelined,
        PodBinding { current: Some(_), releasing, .. } if *releasing => ExpectState::Releasing,
        PodBinding { current: Some(_), .. } => ExpectState::Running,
        _ if pod.wants => ExpectState::Pending,
        _ => ExpectState::Ended,
    }
}

/// A GPU: its node and index.
type Device = (model::NodeId, u32);

/// Compares single pods; `groups` maps each name to its GPU.
fn tasks<'a>(
    found: &mut Vec<String>,
    simulation: &Simulation,
    (name, job): (&str, usize),
    expected: &'a [ExpectTask],
    groups: &mut BTreeMap<&'a str, Device>,
) {
    let cluster = simulation.cluster();
    let id = simulation.jobs[job].model;
    let pods = id.map(|id| cluster.workloads()[id].pods.as_slice()).unwrap_or_default();
    for (number, want) in expected.iter().enumerate() {
        let task = format!("task {number} of {name}");
        let Some(&pod) = pods.get(number) else {
            found.push(format!("{task} is not there: it has {} tasks", pods.len()));
            continue;
        };
        let pod = &cluster.pods()[pod];
        let binding = &pod.binding;
        let place = binding.next.as_ref().or(binding.current.as_ref());
        if let Some(want) = want.state {
            let what = format!("state of {task}");
            differ(found, &what, want.as_str().into(), pod_state(pod).as_str().into());
        }
        if let Some(want) = &want.node {
            let is = place.map_or("none", |place| cluster.nodes()[place.node].name.as_str());
            differ(found, &format!("node of {task}"), want.clone(), is.into());
        }
        if let Some(want) = want.gpu {
            let is = place.map_or(0, Placement::gpu_millis);
            let what = format!("GPUs of {task}");
            differ(found, &what, format_millis(want.0), format_millis(is));
        }
        let devices = || place.iter().flat_map(|place| &place.devices).map(|share| share.gpu);
        if let Some(want) = &want.gpus {
            let (want, is) = (format!("{want:?}"), format!("{:?}", devices().collect::<Vec<_>>()));
            differ(found, &format!("GPU indices of {task}"), want, is);
        }
        let Some(want) = &want.groups else { continue };
        let is: BTreeSet<Device> = place
            .map_or_else(BTreeSet::new, |place| devices().map(|gpu| (place.node, gpu)).collect());
        same_groups(found, &task, want.as_slice(), is, groups);
    }
}

/// Compares the GPUs of a task with names of GPUs; a name stands for one GPU in all tasks.
fn same_groups<'a>(
    found: &mut Vec<String>,
    task: &str,
    want: &'a [String],
    mut is: BTreeSet<Device>,
    groups: &mut BTreeMap<&'a str, Device>,
) {
    if want.len() != is.len() {
        found.push(format!("{task} is on {} GPUs, expected {}", is.len(), want.join(", ")));
        return;
    }
    let (known, new): (Vec<_>, Vec<_>) =
        want.iter().map(String::as_str).partition(|name| groups.contains_key(name));
    for name in known {
        if !is.remove(&groups[name]) {
            found.push(format!("{task} is not on GPU group {name}"));
        }
    }
    for (name, device) in new.into_iter().zip(is) {
        match groups.iter().find(|(_, other)| **other == device) {
            Some((other, _)) => found.push(format!("{task} is on GPU group {other}, not {name}")),
            None => drop(groups.insert(name, device)),
        }
    }
}

fn joined(words: &OneOrMany<String>) -> String {
    words.as_slice().join(" ")
}

fn queue(
    found: &mut Vec<String>,
    simulation: &Simulation,
    name: &str,
    id: model::QueueId,
    want: &ExpectQueue,
) {
    let all: Vec<_> = simulation.cluster().queues_of(id).collect();
    let whole = ExpectPool { gpu: want.gpu, fair_share: want.fair_share };
    figures(found, simulation, name, &all, whole);
    for (pool, &want) in &want.pools {
        match simulation.pool(pool) {
            Err(fault) => found.push(format!("queue {name}: {fault}")),
            Ok(_) if !simulation.cluster().is_divided() => {
                found.push(format!("queue {name}: no queue has `pools`"));
            }
            Ok(pool) => {
                let own = simulation.cluster().queue_in(id, pool);
                let name = simulation.cluster().queue_name(own);
                figures(found, simulation, &name, &[own], want);
            }
        }
    }
}

/// Compares the sums of resources used by queues, and of their fair shares.
fn figures(
    found: &mut Vec<String>,
    simulation: &Simulation,
    name: &str,
    ids: &[model::QueueId],
    want: ExpectPool,
) {
    if let Some(want) = want.gpu {
        let held = ids.iter().map(|&id| simulation.cluster().queues()[id].allocated.gpu_millis);
        let (want, is) = (format_millis(want.0), format_millis(held.sum()));
        differ(found, &format!("GPUs of queue {name}"), want, is);
    }
    if let Some(want) = want.fair_share {
        let shares = ids.iter().map(|&id| simulation.fair_share(id).gpu_millis);
        let (want, is) = (format_millis(want.0), format_millis(shares.sum()));
        differ(found, &format!("fair share of queue {name}"), want, is);
    }
}
