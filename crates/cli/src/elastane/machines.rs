//! The nodes a server starts with: GPUs that a driver reports, or simulated ones, loudly. Owns: the
//! name this machine has as a node, which does not change with the name of the host.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use control::{NodeGpu, NodeSpec};
use gpu::NodeGpus;

use super::config::{Given, Machines};
use crate::exit::Error;

/// Simulated when the machine has no GPU and nothing else is said.
const SIMULATED_DEFAULT: &str = "4x16GiB";
/// The file in the state directory with the name of this machine as a node.
const NAME_FILE: &str = "node-name";

/// The nodes. Blocks while the driver wakes up.
pub(crate) fn nodes(machines: &Machines, state_dir: &Path) -> Result<Vec<NodeSpec>, Error> {
    let wrong =
        |given: &Given, error: gpu::Error| Error::Usage(format!("{}: {error}", given.origin));
    let found = match machines {
        Machines::Gpus(given) => {
            let name = node_name(state_dir, &gpu::host_name())?;
            vec![gpu::simulate_gpus(&given.text, &name).map_err(|error| wrong(given, error))?]
        }
        Machines::Nodes(given) => {
            gpu::simulate_nodes(&given.text).map_err(|error| wrong(given, error))?
        }
        Machines::Found => vec![this_machine(state_dir)?],
    };
    let labels = found.iter().flat_map(|node| &node.labels);
    for (key, value) in labels {
        let wrong = |error: control::Error| Error::Usage(format!("--nodes: {error}"));
        control::check_label(key, value).map_err(wrong)?;
    }
    Ok(found.into_iter().map(node).collect())
}

fn this_machine(state_dir: &Path) -> Result<NodeGpus, Error> {
    let failed = |error: gpu::Error| Error::Failed(error.to_string());
    let name = node_name(state_dir, &gpu::host_name())?;
    match gpu::discover().map_err(failed)? {
        Some(gpus) if !gpus.is_empty() => Ok(NodeGpus { name, gpus, labels: BTreeMap::new() }),
        _ => gpu::simulate_gpus(SIMULATED_DEFAULT, &name).map_err(failed),
    }
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
            .map(|gpu| NodeGpu { uuid: gpu.uuid, memory_bytes: gpu.memory_bytes })
            .collect(),
        name: node.name,
        cpu_millis: capacity.cpu_millis,
        memory_bytes: capacity.memory_bytes,
        labels: node.labels,
    }
}

/// One line per node, and one that cannot be overlooked when GPUs are simulated.
pub(crate) fn announce(nodes: &[NodeSpec]) -> String {
    let mut text = String::new();
    let simulated = nodes.iter().any(|node| node.simulated);
    if simulated {
        text.push_str("  GPUs       *** SIMULATED: they exist only in the books ***\n");
    }
    for node in nodes {
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
    }
    text
}
