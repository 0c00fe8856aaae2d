//! A node pool. Owns: its settings, and their form in documents.

use model::Fill;
use serde::{Deserialize, Serialize};

use crate::{PoolFractions, TimeSlicing};

/// Kind of the objects that hold network topologies.
pub const TOPOLOGY: &str = "network-topology";

/// A node pool to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Name, unique.
    pub name: String,
    /// Node label and placement settings.
    pub settings: PoolSettings,
}

/// Node label and placement settings of a node pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct PoolSettings {
    /// Key and value of the label that its nodes carry; `None` for `default`.
    pub label: Option<(String, String)>,
    /// Fill order of nodes for GPU work.
    pub gpu: Fill,
    /// Fill order of nodes for CPU-only work.
    pub cpu: Fill,
    /// Fill order of the GPUs of a node for shares; `None` for the order of nodes for GPU work.
    pub devices: Option<Fill>,
    /// Minimum runtime of preemptible work before it may be preempted, in milliseconds.
    pub min_runtime_ms: Option<u64>,
    /// Id of the network topology that gives the distance of its nodes.
    pub topology: Option<String>,
    /// Time slicing of shared GPUs; `None` for the default of the server.
    pub time_slicing: Option<TimeSlicing>,
    /// Enforcement of parts of GPUs; `None` for the default of the server.
    pub fractions: Option<PoolFractions>,
}

impl PoolSettings {
    /// A pool of nodes with this label, with the default placement.
    #[must_use]
    pub const fn new(label: Option<(String, String)>) -> Self {
        Self {
            label,
            gpu: Fill::BinPack,
            cpu: Fill::BinPack,
            devices: None,
            min_runtime_ms: None,
            topology: None,
            time_slicing: None,
            fractions: None,
        }
    }
}

/// Form in documents.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    label_key: Option<String>,
    label_value: Option<String>,
    gpu_spread: bool,
    cpu_spread: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices_spread: Option<bool>,
    min_runtime_ms: Option<u64>,
    /// The network topology as a reference to an object: a referenced object is not deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_slicing: Option<TimeSlicing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fractions: Option<PoolFractions>,
}

impl From<PoolSettings> for Stored {
    fn from(settings: PoolSettings) -> Self {
        let (label_key, label_value) = settings.label.unzip();
        Self {
            label_key,
            label_value,
            gpu_spread: settings.gpu == Fill::Spread,
            cpu_spread: settings.cpu == Fill::Spread,
            devices_spread: settings.devices.map(|fill| fill == Fill::Spread),
            min_runtime_ms: settings.min_runtime_ms,
            names: settings.topology.iter().map(|id| format!("{TOPOLOGY}/{id}")).collect(),
            time_slicing: settings.time_slicing,
            fractions: settings.fractions,
        }
    }
}

impl From<Stored> for PoolSettings {
    fn from(stored: Stored) -> Self {
        let fill = |spread| if spread { Fill::Spread } else { Fill::BinPack };
        let topology =
            |name: &String| name.strip_prefix(TOPOLOGY)?.strip_prefix('/').map(ToOwned::to_owned);
        Self {
            label: stored.label_key.zip(stored.label_value),
            gpu: fill(stored.gpu_spread),
            cpu: fill(stored.cpu_spread),
            devices: stored.devices_spread.map(fill),
            min_runtime_ms: stored.min_runtime_ms,
            topology: stored.names.iter().find_map(topology),
            time_slicing: stored.time_slicing,
            fractions: stored.fractions,
        }
    }
}
