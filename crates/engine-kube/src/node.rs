//! A node of Kubernetes as a node of the scheduler.

use adopted::slot_name;
use kube_api::types::Node;
use model::{CORDONED, Effect, Taint};
use spec::{NodeGpu, NodeSpec};

use crate::quantity::{thousandths, whole};
use crate::requests::GPU;

/// Labels of GPU feature discovery.
pub(crate) const PRODUCT: &str = "nvidia.com/gpu.product";
const MEMORY_MIB: &str = "nvidia.com/gpu.memory";
/// Maximum number of counted GPUs of a node.
const SLOTS_MAX: u64 = 1024;

/// A node: its allocatable amounts, and its GPUs as counted ones without a UUID of a driver.
pub(crate) fn node_spec(node: &Node) -> NodeSpec {
    let (meta, allocatable) = (&node.metadata, &node.status.allocatable);
    let get = |name: &str| allocatable.get(name).map(String::as_str);
    let count = get(GPU).and_then(whole).unwrap_or_default().min(SLOTS_MAX);
    let memory_mib = meta.labels.get(MEMORY_MIB).and_then(|text| text.parse::<u64>().ok());
    let memory = memory_mib.unwrap_or_default().saturating_mul(1 << 20);
    let slot = |at| NodeGpu::new(slot_name(&meta.name, at), memory);
    let product = meta.labels.get(PRODUCT).cloned();
    NodeSpec {
        name: meta.name.clone(),
        gpu_type: match count {
            0 => "none".to_owned(),
            _ => product.unwrap_or_else(|| "nvidia".to_owned()),
        },
        simulated: false,
        gpus: (0..usize::try_from(count).unwrap_or_default()).map(slot).collect(),
        cpu_millis: get("cpu").and_then(thousandths).unwrap_or_default(),
        memory_bytes: get("memory").and_then(whole).unwrap_or_default(),
        pods_max: get("pods").and_then(whole).and_then(|most| u32::try_from(most).ok()),
        labels: meta.labels.clone(),
        taints: taints_of(node),
    }
}

/// The taints of a node.
fn taints_of(node: &Node) -> Vec<Taint> {
    let effect = |text: &str| match text {
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => Effect::NoSchedule,
    };
    let taint = |of: &kube_api::types::Taint| Taint {
        key: of.key.clone(),
        value: of.value.clone(),
        effect: effect(&of.effect),
    };
    let mut taints: Vec<_> = node.spec.taints.iter().map(taint).collect();
    if node.spec.unschedulable && taints.iter().all(|taint| taint.key != CORDONED) {
        let (key, value) = (CORDONED.to_owned(), String::new());
        taints.push(Taint { key, value, effect: Effect::NoSchedule });
    }
    taints.sort();
    taints.dedup();
    taints
}
