//! The nodes a server starts with: GPUs that a driver reports, or simulated ones, loudly.

use control::{NodeGpu, NodeSpec};
use gpu::NodeGpus;

use super::config::{Given, Machines};
use crate::exit::Error;

/// Simulated when the machine has no GPU and nothing else is said.
const SIMULATED_DEFAULT: &str = "4x16GiB";

/// The nodes. Blocks while the driver wakes up.
pub(crate) fn nodes(machines: &Machines) -> Result<Vec<NodeSpec>, Error> {
    let wrong =
        |given: &Given, error: gpu::Error| Error::Usage(format!("{}: {error}", given.origin));
    let found = match machines {
        Machines::Gpus(given) => {
            vec![gpu::simulate_gpus(&given.text, &gpu::host_name()).map_err(|e| wrong(given, e))?]
        }
        Machines::Nodes(given) => {
            gpu::simulate_nodes(&given.text).map_err(|error| wrong(given, error))?
        }
        Machines::Found => vec![this_machine()?],
    };
    Ok(found.into_iter().map(node).collect())
}

fn this_machine() -> Result<NodeGpus, Error> {
    let failed = |error: gpu::Error| Error::Failed(error.to_string());
    let name = gpu::host_name();
    match gpu::discover().map_err(failed)? {
        Some(gpus) if !gpus.is_empty() => Ok(NodeGpus { name, gpus }),
        _ => gpu::simulate_gpus(SIMULATED_DEFAULT, &name).map_err(failed),
    }
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
        text.push_str(&format!("  Node       {}: {gpus}\n", node.name));
    }
    text
}
