//! Changes of nodes and node pools. A field without a value stays as it is.

use std::collections::BTreeMap;

use model::{Effect, Fill, Taint};
use serde::{Deserialize, Serialize};
use spec::words::given;
use spec::{PoolFractions, PoolSettings, Scheduling, TimeSlicing};

/// Changes of the settings of a node. A field without a value stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeChange {
    /// Labels to set; a label without a value is removed.
    pub labels: BTreeMap<String, Option<String>>,
    /// True if all earlier set labels are removed.
    pub replaces_labels: bool,
    /// Taints to set. One replaces another of the same key and effect.
    #[serde(with = "spec::taints")]
    pub taints: Vec<Taint>,
    /// Keys of taints to remove, with an effect or with all.
    #[serde(with = "spec::taint_keys")]
    pub removed_taints: Vec<(String, Option<Effect>)>,
    /// Scheduling mode: open, cordoned or draining.
    pub scheduling: Option<Scheduling>,
}

impl NodeChange {
    /// Name of the change in the audit log.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self.scheduling {
            Some(Scheduling::Enabled) => "node.uncordon",
            Some(Scheduling::Disabled) => "node.cordon",
            Some(Scheduling::Draining) => "node.drain",
            None if !self.taints.is_empty() || !self.removed_taints.is_empty() => "node.taint",
            None => "node.label",
        }
    }
}

/// Changes of a node pool. A field without a value stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolChange {
    /// Key of the label.
    pub label_key: Option<String>,
    /// Value of the label.
    pub label_value: Option<String>,
    /// Fill order of nodes for GPU work.
    #[serde(with = "fill_wire")]
    pub gpu: Option<Fill>,
    /// Fill order of nodes for CPU-only work.
    #[serde(with = "fill_wire")]
    pub cpu: Option<Fill>,
    /// Minimum runtime of preemptible work before it may be preempted, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub min_runtime_ms: Option<Option<u64>>,
    /// Id of the network topology.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub topology: Option<Option<String>>,
    /// Time slicing of shared GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub time_slicing: Option<Option<TimeSlicing>>,
    /// Enforcement of parts of its GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub fractions: Option<Option<PoolFractions>>,
}

impl PoolChange {
    /// The settings after this change, except for the label.
    #[must_use]
    pub fn made_to(&self, settings: PoolSettings) -> PoolSettings {
        PoolSettings {
            label: settings.label,
            gpu: self.gpu.unwrap_or(settings.gpu),
            cpu: self.cpu.unwrap_or(settings.cpu),
            devices: settings.devices,
            min_runtime_ms: self.min_runtime_ms.unwrap_or(settings.min_runtime_ms),
            topology: self.topology.clone().unwrap_or(settings.topology),
            time_slicing: self.time_slicing.unwrap_or(settings.time_slicing),
            fractions: self.fractions.unwrap_or(settings.fractions),
        }
    }
}

/// Form of a fill order in documents.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Fill")]
enum FillWire {
    BinPack,
    Spread,
}

/// Form of an optional fill order in documents.
mod fill_wire {
    use model::Fill;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Wire(#[serde(with = "super::FillWire")] Fill);

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(fill: &Option<Fill>, to: S) -> Result<S::Ok, S::Error> {
        fill.map(Wire).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Fill>, D::Error> {
        Ok(Option::deserialize(from)?.map(|Wire(fill)| fill))
    }
}
