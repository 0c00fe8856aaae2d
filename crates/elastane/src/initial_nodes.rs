//! Initial nodes of a server: GPUs that a driver reports, or simulated ones, which are announced as
//! such. Owns: the name of this machine as a node, which does not change with the host name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use control::node_on_host;
use gpu::{Gpu, HostPart, MigInstance, NodeGpus};
use orchestrator::NodeList;
use spec::{Instance, NodeGpu, NodeSpec};

use super::config::Machines;
use super::settings::SettingText;
use cli_kit::exit::Error;

/// Simulated GPUs of a machine without GPUs, by default.
const SIMULATED_DEFAULT: &str = "4x16GiB";
/// File in the state directory with the name of this machine as a node.
const NAME_FILE: &str = "node-name";

/// File in the state directory with the simulated nodes of the last server, as a flag and its
/// value.
const LAYOUT_FILE: &str = "nodes";

/// The nodes, and their source. The default: those that the engine reports.
#[derive(Debug, Default)]
pub(crate) struct InitialNodes {
    pub(crate) nodes: Vec<NodeSpec>,
    /// Flag and value of the simulated nodes; `None` if the nodes are those of the machine.
    layout: Option<String>,
    /// Reason why GPUs are simulated without a request.
    because: Option<&'static str>,
    /// The MIG instances of GPUs in MIG mode, by UUID of the GPU.
    pub(crate) instances: BTreeMap<String, Vec<MigInstance>>,
}

impl InitialNodes {
    /// The nodes for the server, and their source. `gives_instances` is true if MIG instances are
    /// allocated.
    pub(crate) fn list(&mut self, gives_instances: bool) -> NodeList {
        self.give_instances(gives_instances);
        let simulated = || format!("gpus {SIMULATED_DEFAULT}, because there are none");
        let found = || if self.because.is_some() { simulated() } else { "found".to_owned() };
        let origin = self.layout.clone().unwrap_or_else(found);
        NodeList { nodes: self.nodes.clone(), origin }
    }

    /// UUIDs of the real GPUs that work and are not in MIG mode.
    pub(crate) fn whole_gpus(&self) -> Vec<String> {
        let real = self.nodes.iter().filter(|node| node.has_real_gpus());
        let works = real.flat_map(|node| &node.gpus).filter(|gpu| gpu.fault.is_none());
        let whole = works.filter(|gpu| !self.instances.contains_key(&gpu.uuid));
        whole.map(|gpu| gpu.uuid.clone()).collect()
    }

    /// Marks GPUs as out of service that are unusable with, or without, the allocation of MIG
    /// instances, and replaces GPUs by their instances if these are allocated.
    pub(crate) fn give_instances(&mut self, gives: bool) {
        for node in self.nodes.iter_mut().filter(|node| node.has_real_gpus()) {
            for (at, gpu) in node.gpus.iter_mut().enumerate().filter(|(_, gpu)| gpu.fault.is_none())
            {
                gpu.fault = mig_fault(at, self.instances.get(&gpu.uuid), gives);
            }
            let gpus = std::mem::take(&mut node.gpus);
            let parts = (0..).zip(gpus).flat_map(|(at, gpu)| match self.instances.get(&gpu.uuid) {
                Some(own) if gives && gpu.fault.is_none() => instances(at, &gpu, own),
                _ => vec![gpu],
            });
            node.gpus = parts.collect();
        }
    }
}

/// Finds the nodes. Without a setting they are those of the last server, unless `replaced` is true.
/// Blocks while the driver wakes up.
pub(crate) fn find(
    machines: &Machines,
    state_dir: &Path,
    replaced: bool,
) -> Result<InitialNodes, Error> {
    let stored = match machines {
        Machines::Found if !replaced => last(state_dir)?,
        _ => None,
    };
    let machines = stored.as_ref().unwrap_or(machines);
    let own_name = || node_name(state_dir, &gpu::host_name());
    let Some(asked_for) = simulated(machines, own_name)? else {
        return of_driver(gpu::discover().map_err(failed)?, &own_name()?);
    };
    let layout = match machines {
        Machines::Gpus(given) => Some(format!("gpus {}", given.text)),
        Machines::Nodes(given) => Some(format!("nodes {}", given.text)),
        Machines::Found => None,
    };
    let nodes = asked_for.into_iter().map(node_on_host).collect();
    Ok(InitialNodes { nodes, layout, because: None, instances: BTreeMap::new() })
}

/// Validates the nodes of a setting; those of the machine are not checked.
pub(crate) fn check(machines: &Machines) -> Result<(), Error> {
    simulated(machines, || Ok("node".to_owned())).map(|_| ())
}

/// The simulated nodes of a text; `None` if the nodes are those of the machine.
fn simulated(
    machines: &Machines,
    own_name: impl FnOnce() -> Result<String, Error>,
) -> Result<Option<Vec<NodeGpus>>, Error> {
    let wrong = |given: &SettingText, error: &dyn std::error::Error| {
        Error::Usage(format!("{}: {error}", given.origin))
    };
    let (given, asked_for) = match machines {
        Machines::Gpus(given) => {
            let node = gpu::simulate_gpus(&given.text, &own_name()?);
            (given, vec![node.map_err(|error| wrong(given, &error))?])
        }
        Machines::Nodes(given) => {
            let nodes = gpu::simulate_nodes(&given.text);
            (given, nodes.map_err(|error| wrong(given, &error))?)
        }
        Machines::Found => return Ok(None),
    };
    for (key, value) in asked_for.iter().flat_map(|node| &node.labels) {
        orchestrator::check_label(key, value).map_err(|error| wrong(given, &error))?;
    }
    Ok(Some(asked_for))
}

/// The simulated nodes of the last server; `None` if there were none.
fn last(state_dir: &Path) -> Result<Option<Machines>, Error> {
    let path = state_dir.join(LAYOUT_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Error::Failed(format!("cannot read {}: {error}", path.display())));
        }
    };
    let given =
        |text: &str| SettingText { text: text.to_owned(), origin: path.display().to_string() };
    match text.trim().split_once(' ') {
        Some(("gpus", text)) => Ok(Some(Machines::Gpus(given(text)))),
        Some(("nodes", text)) => Ok(Some(Machines::Nodes(given(text)))),
        _ => Err(Error::Failed(format!(
            "{} does not say which nodes there were; give --nodes or --gpus",
            path.display()
        ))),
    }
}

/// Stores the nodes for the next server.
pub(crate) fn remember(found: &InitialNodes, state_dir: &Path) -> Result<(), Error> {
    let path = state_dir.join(LAYOUT_FILE);
    let done = match &found.layout {
        Some(layout) => write_whole(&path, layout),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    };
    done.map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Writes to a temporary file first, so that the text is never incomplete.
pub(super) fn write_whole(path: &Path, line: &str) -> std::io::Result<()> {
    let fresh = path.with_extension(std::process::id().to_string());
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    writeln!(file, "{line}")?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

/// This machine, with the GPUs that the driver reports, else with simulated ones.
pub(super) fn of_driver(driver: Option<Vec<Gpu>>, name: &str) -> Result<InitialNodes, Error> {
    let because = match driver {
        None => "no NVIDIA driver is installed here",
        Some(gpus) if gpus.is_empty() => "the NVIDIA driver counts no GPU here",
        Some(gpus) => {
            let of = |gpu: &Gpu| Some((gpu.uuid.clone(), gpu.instances.clone()?));
            let instances = gpus.iter().filter_map(of).collect();
            let (labels, host) = (BTreeMap::new(), HostPart::default());
            let found = NodeGpus { name: name.to_owned(), gpus, labels, host };
            let nodes = vec![node_on_host(found)];
            return Ok(InitialNodes { nodes, layout: None, because: None, instances });
        }
    };
    let simulated = gpu::simulate_gpus(SIMULATED_DEFAULT, name).map_err(failed)?;
    let (nodes, instances) = (vec![node_on_host(simulated)], BTreeMap::new());
    Ok(InitialNodes { nodes, layout: None, because: Some(because), instances })
}

/// The instances of a GPU as devices of its node, the smallest first.
fn instances(at: u32, gpu: &NodeGpu, own: &[MigInstance]) -> Vec<NodeGpu> {
    let mut own: Vec<_> = own.iter().collect();
    own.sort_by_key(|one| (one.memory_bytes, &one.uuid));
    let device = |one: &MigInstance| NodeGpu {
        instance: Some(Instance {
            gpu: at,
            gpu_uuid: gpu.uuid.clone(),
            gpu_memory_bytes: gpu.memory_bytes,
            profile: one.profile.clone(),
        }),
        ..NodeGpu::new(one.uuid.clone(), one.memory_bytes)
    };
    own.into_iter().map(device).collect()
}

/// Reason why a GPU in MIG mode with these instances, or in none, cannot be used. On a GPU in MIG
/// mode programs can use only its instances, and fractions of other GPUs would not be enforced: so
/// either all GPUs of a server have instances, or none.
fn mig_fault(at: usize, instances: Option<&Vec<MigInstance>>, gives: bool) -> Option<String> {
    let divide = format!("`nvidia-smi mig -i {at} -cgi PROFILES -C`");
    match (instances, gives) {
        (None, false) => None,
        (Some(instances), true) if !instances.is_empty() => None,
        (Some(_), true) => Some(format!(
            "it is in MIG mode and has no instance; make some with {divide}, and restart the server"
        )),
        (None, true) => Some(format!(
            "it is not in MIG mode, and this server gives out MIG instances only (`--fractions mig`); \
             divide it with `nvidia-smi -i {at} -mig 1` and {divide}, or start the server otherwise"
        )),
        (Some(_), false) => Some(format!(
            "it is in MIG mode, and only a server with `--fractions mig` gives out MIG instances; start \
             it so, or make the GPU whole with `nvidia-smi -i {at} -mig 0` and restart it"
        )),
    }
}

fn failed(error: gpu::Error) -> Error {
    Error::Failed(error.to_string())
}

/// Node name of this machine, set when the state directory is created: places refer to nodes by
/// name, and running pods must survive a change of the host name.
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
        write_whole(&path, host)
    };
    write().map_err(|error: std::io::Error| failed("write", &error))?;
    Ok(host.to_owned())
}

/// One line per node and per lost GPU, and a prominent one if GPUs are simulated.
pub(crate) fn announce(found: &InitialNodes) -> String {
    let mut text = String::new();
    if found.nodes.iter().any(|node| node.simulated) {
        let because = found.because.map(|why| format!(", because {why}")).unwrap_or_default();
        text.push_str(&format!(
            "  GPUs       *** SIMULATED{because}: there is no such hardware ***\n"
        ));
    }
    for node in &found.nodes {
        let sizes: Vec<u64> = node.gpus.iter().map(|gpu| gpu.memory_bytes).collect();
        let parts = node.gpus.iter().filter_map(|gpu| gpu.instance.as_ref());
        let divided: BTreeSet<u32> = parts.clone().map(|part| part.gpu).collect();
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let gpus = match sizes.as_slice() {
            [] => "no GPU".to_owned(),
            _ if !divided.is_empty() => {
                let (parts, of) = (parts.count(), divided.len());
                let others = match sizes.len() - parts {
                    0 => String::new(),
                    others => format!(" and {others} GPU{}", plural(others)),
                };
                let (some, gpus) = (plural(parts), plural(of));
                format!("{parts} MIG instance{some} of {of} GPU{gpus}{others} of {}", node.gpu_type)
            }
            [first, ..] => {
                format!("{}x {} {}", sizes.len(), node.gpu_type, units::format_bytes(*first))
            }
        };
        let labels = node.labels.iter().map(|(key, value)| format!(", {key}={value}"));
        let labels: String = labels.collect();
        text.push_str(&format!("  Node       {}: {gpus}{labels}\n", node.name));
        for (number, gpu) in node.gpus.iter().enumerate() {
            if let Some(why) = &gpu.fault {
                text.push_str(&format!("             GPU {number} cannot be used (E207): {why}\n"));
            }
        }
    }
    text
}
