//! A node: its hardware, and the labels, taints and scheduling mode that administrators set.

use std::collections::BTreeMap;

use model::{GpuPart, HOST_LABEL, MigInstance, MigProfile, Taint};
use serde::{Deserialize, Serialize};
use units::GPU_MILLIS;

use crate::pods::wire::EffectWire;

/// A node as the server sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name, unique.
    pub name: String,
    /// Product name of its GPUs, or `simulated`.
    pub gpu_type: String,
    /// True if its GPUs are simulated.
    pub simulated: bool,
    /// Its GPUs, in their order.
    pub gpus: Vec<NodeGpu>,
    /// Allocatable thousandths of cores.
    pub cpu_millis: u64,
    /// Allocatable bytes of main memory.
    pub memory_bytes: u64,
    /// Maximum number of pods at a time; `None` for as many as fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_max: Option<u32>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(with = "taints", default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl NodeSpec {
    /// Its labels with those that administrators set, and the label that every Kubernetes node has:
    /// its name.
    #[must_use]
    pub fn labels_with(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.extend(given.clone());
        labels.insert(HOST_LABEL.to_owned(), self.name.clone());
        labels
    }

    /// The node as the scheduler's type, without labels and taints.
    #[must_use]
    pub fn in_model(&self) -> model::NodeSpec {
        let of_one_gpu = |left: &NodeGpu, right: &NodeGpu| {
            let gpu = |of: &NodeGpu| {
                of.mig.map(|mig| mig.gpu).or(of.instance.as_ref().map(|instance| instance.gpu))
            };
            gpu(left).is_some() && gpu(left) == gpu(right)
        };
        let (mut memories, mut mig, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for own in self.gpus.chunk_by(of_one_gpu) {
            let sum = own.iter().map(|one| one.memory_bytes).sum();
            memories.push(own[0].instance.as_ref().map_or(sum, |of| of.gpu_memory_bytes));
            mig.push(
                own.iter().filter_map(|one| Some(one.mig?.profile)).collect::<Vec<MigProfile>>(),
            );
            let bytes = |one: &NodeGpu| one.instance.as_ref().map(|_| one.memory_bytes);
            parts.push(own.iter().filter_map(bytes).collect());
        }
        model::NodeSpec {
            mig,
            parts,
            pods_max: self.pods_max.unwrap_or(u32::MAX),
            ..model::NodeSpec::new(&self.name, memories, self.cpu_millis, self.memory_bytes)
        }
    }

    /// True if it has GPUs that a driver found.
    #[must_use]
    pub const fn has_real_gpus(&self) -> bool {
        !self.simulated && !self.gpus.is_empty()
    }
}

/// A GPU of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGpu {
    /// UUID that the driver gives the GPU.
    pub uuid: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Fault that the GPU had when the node was read; `None` if it worked. It is not checked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The MIG instance that this device is, and its GPU on the node; `None` for a whole GPU.
    #[serde(with = "instance", default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigInstance>,
    /// The MIG instance that this device is, where instances are assigned to requests for parts of
    /// GPUs; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

/// A MIG instance that is assigned to a request for a part of its GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Index of its GPU on the node.
    pub gpu: u32,
    /// UUID that the driver gives this GPU.
    pub gpu_uuid: String,
    /// Memory of this GPU in bytes.
    pub gpu_memory_bytes: u64,
    /// Its profile, slices and memory, such as `3g.40gb`.
    pub profile: String,
}

impl NodeGpu {
    /// A GPU without a fault.
    #[must_use]
    pub const fn new(uuid: String, memory_bytes: u64) -> Self {
        Self { uuid, memory_bytes, fault: None, mig: None, instance: None }
    }

    /// UUID of the GPU that health checks and process lists refer to: for an instance the GPU that
    /// it is part of.
    #[must_use]
    pub fn looked_at(&self) -> &str {
        self.instance.as_ref().map_or(&self.uuid, |instance| &instance.gpu_uuid)
    }

    /// Total share that pods can have of it, in thousandths of a GPU.
    #[must_use]
    pub fn capacity_millis(&self) -> u64 {
        match &self.instance {
            Some(Instance { gpu, gpu_memory_bytes, .. }) => {
                GpuPart::new(*gpu, self.memory_bytes, *gpu_memory_bytes).millis
            }
            None => self.mig.map_or(GPU_MILLIS, |mig| mig.profile.millis()),
        }
    }

    /// Bytes of it that a pod with a share of `millis` thousandths has.
    #[must_use]
    pub fn memory_of(&self, millis: u64) -> u64 {
        if self.instance.is_some() && millis > 0 {
            return self.memory_bytes;
        }
        let part = u128::from(self.memory_bytes) * u128::from(millis) / u128::from(GPU_MILLIS);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// Scheduling mode of a node: if new pods may be placed on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// New pods may be placed.
    #[default]
    Enabled,
    /// No new pods: the node is cordoned.
    Disabled,
    /// No new pods, and pods on the node are moved or stopped.
    Draining,
}

impl Scheduling {
    /// True if new pods may be placed.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        matches!(self, Self::Enabled)
    }
}

/// Labels, taints and scheduling mode that administrators set on a node. They are kept while any is
/// set, also while the node is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGiven {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(with = "taints", default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Scheduling mode: open, cordoned or draining.
    #[serde(default, skip_serializing_if = "Scheduling::is_enabled")]
    pub scheduling: Scheduling,
}

/// Keys of taints with effects, as a document.
pub mod taint_keys {
    use model::Effect;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::EffectWire;

    type Keys = Vec<(String, Option<Effect>)>;

    /// Writes them.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(keys: &Keys, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(keys.iter().map(|(key, effect)| (key, effect.map(EffectWire))))
    }

    /// Reads them.
    ///
    /// # Errors
    /// The keys have another form.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        let all = Vec::<(String, Option<EffectWire>)>::deserialize(from)?.into_iter();
        Ok(all.map(|(key, effect)| (key, effect.map(|effect| effect.0))).collect())
    }
}

/// Documents of MIG instances, a type of the scheduler.
mod instance {
    use model::MigInstance;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Wire {
        gpu: u32,
        profile: String,
    }

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(
        of: &Option<MigInstance>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let wire = |of: &MigInstance| Wire { gpu: of.gpu, profile: of.profile.to_string() };
        of.as_ref().map(wire).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<MigInstance>, D::Error> {
        let Some(Wire { gpu, profile }) = Option::deserialize(from)? else { return Ok(None) };
        let profile = profile.parse().map_err(Error::custom)?;
        Ok(Some(MigInstance { gpu, profile }))
    }
}

/// Documents of taints, a type of the scheduler.
pub mod taints {
    use model::Taint;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::EffectWire;

    #[derive(Serialize, Deserialize)]
    struct TaintWire {
        key: String,
        value: String,
        effect: EffectWire,
    }

    /// Writes them.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(taints: &[Taint], to: S) -> Result<S::Ok, S::Error> {
        let wire = |Taint { key, value, effect }: &Taint| TaintWire {
            key: key.clone(),
            value: value.clone(),
            effect: EffectWire(*effect),
        };
        to.collect_seq(taints.iter().map(wire))
    }

    /// Reads them.
    ///
    /// # Errors
    /// The taints have another form.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Taint>, D::Error> {
        let all = Vec::<TaintWire>::deserialize(from)?.into_iter();
        let taint = |TaintWire { key, value, effect }| Taint { key, value, effect: effect.0 };
        Ok(all.map(taint).collect())
    }
}
