//! A node pool. Owns: what it is made of and how it is used, and how that is stored.

use model::Fill;
use serde::{Deserialize, Serialize};

use crate::{PoolFractions, TimeSlicing};

/// What network topologies are called as stored objects.
pub const TOPOLOGY: &str = "network-topology";

/// A node pool to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Name, unique.
    pub name: String,
    /// What it is made of and how it is used.
    pub settings: PoolSettings,
}

/// What a node pool is made of and how it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct PoolSettings {
    /// Key and value of the label that its nodes carry; none for `default`.
    pub label: Option<(String, String)>,
    /// How nodes fill up with work that has GPUs.
    pub gpu: Fill,
    /// How nodes fill up with work that has none.
    pub cpu: Fill,
    /// How the GPUs of a node fill up with shares; none: as nodes with work that has GPUs.
    pub devices: Option<Fill>,
    /// How long preemptible work that started there is left alone, in milliseconds.
    pub min_runtime_ms: Option<u64>,
    /// Id of the network topology by which its nodes are near or far.
    pub topology: Option<String>,
    /// How workloads with a part of a GPU divide its compute time; none: as the server was started.
    pub time_slicing: Option<TimeSlicing>,
    /// How parts of GPUs are kept; none: as the server was started.
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

/// The stored form.
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
    /// The network topology, as an object that this one names: such an object is not deleted.
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
