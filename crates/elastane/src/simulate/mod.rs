//! `elastane simulate`: input files and clocks for the simulator, and its printed results. Owns:
//! the choice of the mode. Does not know about: decisions.

mod args;
mod faults;
mod show;
mod trace;
pub(crate) mod what_if;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use api_types::{NodePatch, NodeScheduling, NodeStatus, SimulatedNode};
use client::Client;
use sim::scenario::Scenario;
use sim::states::State;
use sim::{Outcome, Record};

pub(crate) use args::{Drill, NewNode, Simulate};

use cli_kit::exit::{self, Error};
use cli_kit::input::read_text;
use cli_kit::message::print_always;

/// Maximum number of workloads that are diagnosed at the end; equal ones count once.
const DIAGNOSED_MAX: usize = 8;

/// Maximum size of a scenario file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Runs the command, with output to `out`.
pub(super) fn run(flags: &Simulate, out: &mut dyn Write) -> Result<(), Error> {
    if let Some(name) = &flags.state {
        return state(flags, name, out);
    }
    if let Some(dir) = &flags.trace {
        return trace::run(flags, dir, out);
    }
    if let Some(seeds) = flags.seeds {
        return faults::run(flags, seeds, out);
    }
    if let Some(file) = &flags.from {
        return what_if::run(flags, file, out);
    }
    let Some(file) = &flags.file else {
        return Err(Error::Usage(
            "nothing to simulate; give a scenario FILE, --from, --state, --trace or --seeds".into(),
        ));
    };
    let scenario = read(file, flags)?;
    let outcome = simulate(&scenario, file, flags)?;
    show::outcome(&outcome, flags, out)?;
    finish(&outcome, file)
}

/// Makes a simulated GPU of the running server fail, or adds or removes a simulated node.
pub(super) async fn drill(state_dir: PathBuf, drill: Drill) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let named = match &drill {
        Drill::NodeAdd(new) => &*new.nodes,
        Drill::GpuFail { node, .. }
        | Drill::GpuHeal { node, .. }
        | Drill::NodeRemove { node }
        | Drill::Drain { node } => std::slice::from_ref(node),
    };
    for node in named {
        units::check_name(node).map_err(|error| Error::Usage(error.to_string()))?;
    }
    let said = match drill {
        Drill::GpuFail { node, gpu } => {
            client.fail_gpu(&node, gpu, true).await?;
            format!("GPU {gpu} of {node} has failed (simulated); gpu-heal brings it back")
        }
        Drill::GpuHeal { node, gpu } => {
            client.fail_gpu(&node, gpu, false).await?;
            format!("GPU {gpu} of {node} works")
        }
        Drill::NodeAdd(new) => {
            let NewNode { mut nodes, gpus, gpu_memory, cpu, memory, label } = new;
            let labels = label.into_iter().collect();
            let (gpu_memory_bytes, cpu_millis, memory_bytes) = (gpu_memory, cpu, memory);
            let name = nodes.remove(0);
            let node = SimulatedNode {
                name,
                more: nodes,
                gpus,
                gpu_memory_bytes,
                cpu_millis,
                memory_bytes,
                labels,
            };
            client.add_simulated_node(&node).await?;
            let names = std::iter::once(&node.name).chain(&node.more);
            let lines = names
                .map(|name| format!("node {name} added (simulated); node-remove takes it away"));
            lines.collect::<Vec<_>>().join("\n")
        }
        Drill::NodeRemove { node } => {
            let there = client.status().await?.nodes;
            client.remove_simulated_node(&node).await?;
            let command = there.iter().find(|one| one.name == node).and_then(addition);
            let again = command.map(|command| format!("; `{command}` adds it again"));
            format!("node {node} removed (simulated){}", again.unwrap_or_default())
        }
        Drill::Drain { node } => {
            is_simulated(&client, &node).await?;
            let scheduling = Some(NodeScheduling::Draining);
            let drains = NodePatch { scheduling, ..NodePatch::default() };
            client.change_node(&node, &drains, true).await?;
            format!("node {node} is being drained; `elastane node uncordon {node}` ends that")
        }
    };
    writeln!(std::io::stdout(), "{said}")?;
    Ok(())
}

/// The command that adds a simulated node like this one; `None` if no flags describe its GPUs.
fn addition(node: &NodeStatus) -> Option<String> {
    let NodeStatus { name, gpu_memory_bytes, cpu_millis, memory_bytes, labels, .. } = node;
    let amounts = (*cpu_millis, *memory_bytes);
    let flags = convert::simulated_node_flags(gpu_memory_bytes, amounts, labels);
    let flags = flags.filter(|_| node.mig_instances.is_empty())?;
    Some(format!("elastane simulate node-add {name}{flags}"))
}

/// Refuses a node with real GPUs; the server checks that the node exists.
async fn is_simulated(client: &Client, node: &str) -> Result<(), Error> {
    let nodes = client.status().await?.nodes;
    let found = nodes.iter().find(|found| found.name == node);
    match found.filter(|found| !found.simulated && !found.gpu_used.is_empty()) {
        None => Ok(()),
        Some(_) => Err(Error::Usage(format!(
            "the GPUs of {node} are real; drain it with `elastane node drain {node}`"
        ))),
    }
}

/// Reads a file, or standard input.
fn text(file: &Path) -> Result<String, Error> {
    read_text(file, FILE_BYTES_MAX)
}

/// Adds the name of the file to an error.
fn in_file(file: &Path, error: &sim::Error) -> Error {
    let name =
        if file == Path::new("-") { "standard input".into() } else { file.display().to_string() };
    Error::Failed(match error {
        sim::Error::Scenario { line: 0, message, .. } => format!("{name}: {message}"),
        other => format!("{name}:{other}"),
    })
}

fn read(file: &Path, flags: &Simulate) -> Result<Scenario, Error> {
    let mut scenario = Scenario::read(&text(file)?).map_err(|error| in_file(file, &error))?;
    scenario.set_policy(&flags.policy).map_err(|error| Error::Usage(error.to_string()))?;
    Ok(scenario)
}

/// An empty scenario with the policy of the command line.
fn knobs(flags: &Simulate) -> Result<Scenario, Error> {
    let mut scenario = Scenario::empty();
    scenario.set_policy(&flags.policy).map_err(|error| Error::Usage(error.to_string()))?;
    Ok(scenario)
}

/// The policy of the command line.
fn policy(flags: &Simulate) -> Result<sched::Policy, Error> {
    sim::policy(&knobs(flags)?.policy).map_err(Error::Usage)
}

/// Runs a scenario, and writes the chart if one is requested.
fn simulate(scenario: &Scenario, file: &Path, flags: &Simulate) -> Result<Outcome, Error> {
    let whole = flags.json || flags.svg.is_some();
    let record = if whole { Record::Everything } else { Record::Decisions };
    let mut outcome = sim::run(scenario, record).map_err(|error| in_file(file, &error))?;
    outcome.diagnose(DIAGNOSED_MAX);
    if let Some(picture) = &flags.svg {
        let title = scenario.description.as_deref().map(str::trim);
        let title = title.map_or_else(|| file.display().to_string(), ToOwned::to_owned);
        let drawn = sim::svg(&outcome.frames, &outcome.simulation, &title);
        std::fs::write(picture, drawn).map_err(|error| {
            Error::Failed(format!("cannot write {}: {error}", picture.display()))
        })?;
    }
    Ok(outcome)
}

/// An error if an expectation of the scenario failed.
fn finish(outcome: &Outcome, file: &Path) -> Result<(), Error> {
    if outcome.failures.is_empty() {
        return Ok(());
    }
    for failure in &outcome.failures {
        let place = match failure.line {
            0 => file.display().to_string(),
            line => format!("{}:{line}:{}", file.display(), failure.column),
        };
        print_always(&format!("{place}: {}", failure.message));
    }
    let failures = outcome.failures.len();
    print_always(&format!("error: {} did not hold", units::counted(failures, "expectation")));
    Err(Error::Said(exit::FAILED))
}

/// Decides once on a generated state, and prints the time.
fn state(flags: &Simulate, name: &str, out: &mut dyn Write) -> Result<(), Error> {
    let known = State::ALL.into_iter().find(|state| state.name() == name);
    let state = known.ok_or_else(|| Error::Usage(format!("there is no state `{name}`")))?;
    let policy = policy(flags)?;
    let mut cluster = state.build(flags.nodes);
    let (pods, workloads) = (cluster.pods().len(), cluster.workloads().len());
    let waiting = cluster.waiting().len();
    let start = Instant::now();
    let plan = sched::cycle(&mut cluster, units::Instant(1), &policy);
    let ms = start.elapsed().as_secs_f64() * 1000.0;
    show::plan(
        &plan,
        flags.json,
        out,
        &show::Size {
            state: name,
            nodes: flags.nodes,
            workloads,
            pods,
            waiting,
            still_waiting: cluster.waiting().len(),
            decision_ms: ms,
        },
    )
}
