//! The nodes a server starts with: GPUs that a driver reports, or simulated ones, loudly. Owns: the
//! name this machine has as a node, which does not change with the name of the host.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use control::{NodeGpu, NodeSpec};
use gpu::{Gpu, NodeGpus};

use super::config::{Given, Machines};
use cli_kit::exit::Error;

/// Simulated when the machine has no GPU and nothing else is said.
const SIMULATED_DEFAULT: &str = "4x16GiB";
/// The file in the state directory with the name of this machine as a node.
const NAME_FILE: &str = "node-name";

/// The nodes, and how it came to them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) nodes: Vec<NodeSpec>,
    /// Why GPUs are simulated that nobody asked for.
    because: Option<&'static str>,
}

/// Finds the nodes. Blocks while the driver wakes up.
pub(crate) fn find(machines: &Machines, state_dir: &Path) -> Result<Found, Error> {
    let wrong =
        |given: &Given, error: gpu::Error| Error::Usage(format!("{}: {error}", given.origin));
    let asked_for = match machines {
        Machines::Gpus(given) => {
            let name = node_name(state_dir, &gpu::host_name())?;
            vec![gpu::simulate_gpus(&given.text, &name).map_err(|error| wrong(given, error))?]
        }
        Machines::Nodes(given) => {
            gpu::simulate_nodes(&given.text).map_err(|error| wrong(given, error))?
        }
        Machines::Found => {
            let name = node_name(state_dir, &gpu::host_name())?;
            return of_driver(gpu::discover().map_err(failed)?, &name);
        }
    };
    let labels = asked_for.iter().flat_map(|node| &node.labels);
    for (key, value) in labels {
        let wrong = |error: control::Error| Error::Usage(format!("--nodes: {error}"));
        control::check_label(key, value).map_err(wrong)?;
    }
    Ok(Found { nodes: asked_for.into_iter().map(node).collect(), because: None })
}

/// This machine, with the GPUs that the driver has, else with simulated ones.
pub(super) fn of_driver(driver: Option<Vec<Gpu>>, name: &str) -> Result<Found, Error> {
    let because = match driver {
        None => "no NVIDIA driver is installed here",
        Some(gpus) if gpus.is_empty() => "the NVIDIA driver counts no GPU here",
        Some(gpus) => {
            let found = NodeGpus { name: name.to_owned(), gpus, labels: BTreeMap::new() };
            return Ok(Found { nodes: vec![node(found)], because: None });
        }
    };
    let simulated = gpu::simulate_gpus(SIMULATED_DEFAULT, name).map_err(failed)?;
    Ok(Found { nodes: vec![node(simulated)], because: Some(because) })
}

fn failed(error: gpu::Error) -> Error {
    Error::Failed(error.to_string())
}

/// The name this machine got when the state directory was made: places are kept by the name of
/// their node, and what runs in them must outlive a new name of the host.
pub(super) fn node_name(state_dir: &Path, host: &str) -> Result<String, Error> {
    let path = state_dir.join(NAME_FILE);
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Error::Failed(format!("cannot {what} {}: {error}", path.display()))
    };
    match fs::read_to_string(&path) {
        Ok(text) => {
            let name = text.trim();
            units::check_name(name).map_err(|error| failed("use", &error))?;
            return Ok(name.to_owned());
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read", &error)),
    }
    let write = || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
        // Under another name first: a name cut short would be another name.
        let fresh = state_dir.join(format!("{NAME_FILE}.{}", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)?;
        writeln!(file, "{host}")?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    };
    write().map_err(|error: std::io::Error| failed("write", &error))?;
    Ok(host.to_owned())
}

/// Simulated nodes share this machine: each promises all of its cores and memory, because what is
/// simulated is the GPUs.
fn node(node: NodeGpus) -> NodeSpec {
    let capacity = gpu::host_capacity();
    let first = node.gpus.first();
    NodeSpec {
        gpu_type: first.map_or_else(|| "none".to_owned(), |gpu| gpu.product.clone()),
        simulated: first.is_some_and(|gpu| gpu.simulated),
        gpus: node
            .gpus
            .into_iter()
            .map(|gpu| NodeGpu { uuid: gpu.uuid, memory_bytes: gpu.memory_bytes, fault: gpu.fault })
            .collect(),
        name: node.name,
        cpu_millis: capacity.cpu_millis,
        memory_bytes: capacity.memory_bytes,
        labels: node.labels,
    }
}

/// One line per node and per GPU that is lost, and one that cannot be overlooked when GPUs are simulated.
pub(crate) fn announce(found: &Found) -> String {
    let mut text = String::new();
    if found.nodes.iter().any(|node| node.simulated) {
        let because = found.because.map(|why| format!(", because {why}")).unwrap_or_default();
        text.push_str(&format!(
            "  GPUs       *** SIMULATED{because}: they exist only in the books ***\n"
        ));
    }
    for node in &found.nodes {
        let sizes: Vec<u64> = node.gpus.iter().map(|gpu| gpu.memory_bytes).collect();
        let gpus = match sizes.as_slice() {
            [] => "no GPU".to_owned(),
            [first, ..] => {
                format!("{}x {} {}", sizes.len(), node.gpu_type, units::format_bytes(*first))
            }
        };
        let labels = node.labels.iter().map(|(key, value)| format!(", {key}={value}"));
        let labels: String = labels.collect();
        text.push_str(&format!("  Node       {}: {gpus}{labels}\n", node.name));
        for (number, gpu) in node.gpus.iter().enumerate() {
            if let Some(why) = &gpu.fault {
                text.push_str(&format!("             GPU {number} is lost (E207): {why}\n"));
            }
        }
    }
    text
}
