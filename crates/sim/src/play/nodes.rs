//! Conversion of the nodes of a scenario to those of the product.

use std::collections::BTreeMap;

use model::{MigInstance, MigProfile};
use sched::Profile;
use spec::{NodeGpu, NodeSpec};

use super::convert;
use super::names::{GPUS_PER_NODE_MAX, NODES_MAX, check_count, check_name};
use crate::scenario::{Mig, Node, OneOrMany};

/// The specification of a node, or of each of several equal nodes, without name and labels.
pub(super) fn node(wire: &Node, profile: Profile) -> Result<NodeSpec, String> {
    check_name(&wire.name)?;
    check_count(wire.count, NODES_MAX as u64)?;
    if wire.gpus > GPUS_PER_NODE_MAX {
        let gpus = wire.gpus;
        return Err(format!("has {gpus} GPUs; at most {GPUS_PER_NODE_MAX} are allowed"));
    }
    let gpus = wire.gpus as usize;
    let sizes: Vec<u64> = match wire.gpu_memory.as_slice() {
        [one] => vec![one.0; gpus],
        many if many.len() == gpus => many.iter().map(|size| size.0).collect(),
        many => return Err(format!("has {gpus} GPUs and {} sizes of their memory", many.len())),
    };
    if sizes.contains(&0) {
        return Err("a GPU has more than 0 bytes of memory".into());
    }
    Ok(NodeSpec {
        name: wire.name.clone(),
        gpu_type: "simulated".to_owned(),
        simulated: true,
        gpus: devices(sizes, &mig(wire, profile)?),
        cpu_millis: wire.cpu.0,
        memory_bytes: wire.memory.0,
        pods_max: wire.pods_max,
        labels: BTreeMap::new(),
        taints: convert::taints(&wire.taints),
    })
}

/// The specification of a node with its own name and labels.
pub(super) fn named(node: &NodeSpec, name: &str, labels: BTreeMap<String, String>) -> NodeSpec {
    let mut node = NodeSpec { name: name.to_owned(), labels, ..node.clone() };
    for (at, gpu) in node.gpus.iter_mut().enumerate() {
        gpu.uuid = format!("{name}/{at}");
    }
    node
}

/// GPUs, and the instances of partitioned GPUs.
fn devices(sizes: Vec<u64>, mig: &[Vec<MigProfile>]) -> Vec<NodeGpu> {
    let mut devices = Vec::with_capacity(sizes.len());
    for (gpu, size) in (0..).zip(sizes) {
        let parts = mig.get(gpu as usize).map(Vec::as_slice).unwrap_or_default();
        if parts.is_empty() {
            devices.push(NodeGpu::new(String::new(), size));
        }
        devices.extend(parts.iter().map(|&profile| NodeGpu {
            mig: Some(MigInstance { gpu, profile }),
            instance: None,
            ..NodeGpu::new(String::new(), profile.memory_bytes())
        }));
    }
    devices
}

/// The MIG instances of each GPU.
fn mig(wire: &Node, profile: Profile) -> Result<Vec<Vec<MigProfile>>, String> {
    let Some(mig) = &wire.mig else { return Ok(Vec::new()) };
    let gpus = wire.gpus as usize;
    let mut each = mig.as_slice().iter().map(Mig::of_one_gpu).collect::<Result<Vec<_>, _>>()?;
    match (mig, each.len()) {
        _ if gpus == 0 => return Err("has `mig` and no GPU; say how many with `gpus`".into()),
        (OneOrMany::One(_), _) => each = vec![each.concat(); gpus],
        (OneOrMany::Many(_), given) if given == gpus => {}
        (OneOrMany::Many(_), given) => {
            return Err(format!("has {gpus} GPUs and a list of {given} for `mig`"));
        }
    }
    let value = convert::slice_value(profile);
    each.iter_mut().flatten().for_each(|profile| *profile = profile.valued(value));
    Ok(each)
}
