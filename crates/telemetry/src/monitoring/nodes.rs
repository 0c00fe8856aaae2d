//! Nodes and their GPUs. Owns: the gauges of each; what is not measured is left out.

use std::fmt;

use control::{Sample, Subject, of};
use engine::Fractions;
use prometheus_client::registry::Unit;
use units::{GPU_MILLIS, Resources};
use view::{GpuFault, NodeView, View};

use super::{Gauges, number, whole};

pub(super) fn nodes(view: &View, sample: &Sample, to: &mut Gauges<'_>) -> fmt::Result {
    of_nodes(view, sample, to)?;
    of_gpus(view, sample, to)
}

fn labels(node: &NodeView) -> [(&'static str, &str); 2] {
    [("node", &node.name), ("node_pool", &node.pool)]
}

fn of_nodes(view: &View, sample: &Sample, to: &mut Gauges<'_>) -> fmt::Result {
    let nodes = || view.nodes.iter().map(|node| &**node);
    let with_model = |node| {
        let [name, pool] = labels(node);
        [name, pool, ("model", &*node.gpu_type)]
    };
    let about = "GPUs of a node, those out of service included.";
    let gpus = |node: &NodeView| number(node.gpu_memory_bytes.len() as u64);
    to.family(("node_gpus", None), about, nodes().map(|node| (with_model(node), gpus(node))))?;
    let about = "GPUs of a node that workloads hold, parts included.";
    let held = |node: &NodeView| whole(node.gpu_used_millis.iter().sum());
    let held = nodes().map(|node| (with_model(node), held(node)));
    to.family(("node_gpus_allocated", None), about, held)?;
    let out = nodes().flat_map(|node| {
        let [name, pool] = labels(node);
        ["lost", "taken", "held"].map(|reason| {
            let count = node.gpu_faults.values().filter(|fault| word(fault) == reason).count();
            ([name, pool, ("reason", reason)], number(count as u64))
        })
    });
    let about = "GPUs of a node that do not work, or that something else uses.";
    to.family(("node_gpus_out_of_service", None), about, out)?;

    let own = |of: fn(&NodeView) -> Resources, value: fn(Resources) -> f64| {
        nodes().map(move |node| (labels(node), value(of(node)))).collect::<Vec<_>>()
    };
    let (all, held) = (|node: &NodeView| node.capacity, |node: &NodeView| node.used);
    let cpus = |of: Resources| whole(of.cpu_millis);
    let memory = |of: Resources| number(of.memory_bytes);
    let seen = |name, value: fn(u64) -> f64| {
        let seen = move |node: &NodeView| sample.value(&Subject::Node(node.name.clone()), name);
        nodes().filter_map(move |node| Some((labels(node), value(seen(node)?)))).collect::<Vec<_>>()
    };
    let bytes = || Some(Unit::Bytes);
    to.family(("node_cpus", None), "Cores of a node.", own(all, cpus))?;
    let about = "Cores of a node that workloads hold.";
    to.family(("node_cpus_allocated", None), about, own(held, cpus))?;
    let about = "Cores of a node that workloads keep busy.";
    to.family(("node_cpus_used", None), about, seen(of::CPU, whole))?;
    to.family(("node_memory", bytes()), "Main memory of a node.", own(all, memory))?;
    let about = "Main memory of a node that workloads hold.";
    to.family(("node_memory_allocated", bytes()), about, own(held, memory))?;
    let about = "Main memory of a node that workloads use.";
    to.family(("node_memory_used", bytes()), about, seen(of::MEMORY, number))
}

/// The word of a label for what is the matter with a GPU.
const fn word(fault: &GpuFault) -> &'static str {
    match fault {
        GpuFault::Lost(_) => "lost",
        GpuFault::Taken(_) | GpuFault::Elsewhere => "taken",
        GpuFault::Held(_) => "held",
    }
}

/// A GPU: its node, its number there, and its labels.
struct Gpu<'a> {
    node: &'a NodeView,
    index: u32,
    number: String,
}

impl<'a> Gpu<'a> {
    fn labels(&self) -> [(&'static str, &str); 3] {
        let [node, pool] = labels(self.node);
        [node, pool, ("gpu", &self.number)]
    }

    /// All GPUs of a node.
    fn all(node: &'a NodeView) -> impl Iterator<Item = Self> {
        let indices = (0..).zip(&node.gpu_memory_bytes);
        indices.map(move |(index, _): (u32, _)| Self { node, index, number: index.to_string() })
    }

    /// Last measured value of this GPU.
    fn seen(&self, sample: &Sample, name: &str) -> Option<u64> {
        sample.value(&Subject::Node(self.node.name.clone()), &of::gpu(name, self.index))
    }
}

/// Writes the enforcement of fractions on each GPU, as labels.
pub(super) fn fractions(view: &View, kept: &Fractions, to: &mut Gauges<'_>) -> fmt::Result {
    let about = "Always 1; its labels say what keeps workloads within their part of a GPU.";
    let gpus: Vec<Gpu<'_>> = view.nodes.iter().flat_map(|node| Gpu::all(node)).collect();
    let samples = gpus.iter().map(|gpu| {
        let kept = kept.of(gpu.node.simulated).in_pool(gpu.node.fractions);
        let [node, pool, number] = gpu.labels();
        let enforcement = ("enforcement", kept.level.name());
        let mechanism = ("mechanism", kept.mechanism.name());
        (
            [
                node,
                pool,
                number,
                enforcement,
                mechanism,
                ("time_slicing", kept.time_slicing(gpu.node.time_slicing).name()),
            ],
            1.0,
        )
    });
    to.family(("gpu_fractions_info", None), about, samples)
}

fn of_gpus(view: &View, sample: &Sample, to: &mut Gauges<'_>) -> fmt::Result {
    let gpus: Vec<Gpu<'_>> = view.nodes.iter().flat_map(|node| Gpu::all(node)).collect();
    let own = |of: fn(&NodeView) -> &Vec<u64>, value: fn(u64) -> f64| {
        let value = move |gpu: &Gpu<'_>| Some(value(*of(gpu.node).get(gpu.index as usize)?));
        let samples = gpus.iter().filter_map(move |gpu| Some((gpu.labels(), value(gpu)?)));
        samples.collect::<Vec<_>>()
    };
    let seen = |name: &'static str, value: fn(u64) -> f64| {
        let value = move |gpu: &Gpu<'_>| Some(value(gpu.seen(sample, name)?));
        let samples = gpus.iter().filter_map(move |gpu| Some((gpu.labels(), value(gpu)?)));
        samples.collect::<Vec<_>>()
    };
    let part = |millis| number(millis) / number(GPU_MILLIS);
    let bytes = || Some(Unit::Bytes);
    let about = "Part of a GPU that workloads hold, from 0 to 1.";
    to.family(("gpu_allocated_ratio", None), about, own(|node| &node.gpu_used_millis, part))?;
    let about = "Part of the time in which a GPU computed, from 0 to 1.";
    to.family(("gpu_utilization_ratio", None), about, seen(of::BUSY, part))?;
    let about = "Memory of a GPU.";
    to.family(("gpu_memory", bytes()), about, own(|node| &node.gpu_memory_bytes, number))?;
    let about = "Memory of a GPU that is in use.";
    to.family(("gpu_memory_used", bytes()), about, seen(of::GPU_MEMORY, number))?;
    let about = "For how long a GPU has not computed.";
    to.family(("gpu_idle", Some(Unit::Seconds)), about, seen(of::IDLE_MS, whole))
}
