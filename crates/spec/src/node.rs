//! A node: what it is made of, and what it is given while it is there.

use std::collections::BTreeMap;

use model::{GpuPart, HOST_LABEL, MigInstance, MigProfile, Taint};
use serde::{Deserialize, Serialize};
use units::GPU_MILLIS;

use crate::pods::wire::EffectWire;

/// A node as it is seen.
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
    /// Most pods at a time; none: as many as fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_max: Option<u32>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(with = "taints", default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl NodeSpec {
    /// Its labels, those that were given to it, and the one that every node has in Kubernetes: its name.
    #[must_use]
    pub fn labels_with(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.extend(given.clone());
        labels.insert(HOST_LABEL.to_owned(), self.name.clone());
        labels
    }

    /// The same for the scheduler, without labels and taints.
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
    /// What the driver calls it.
    pub uuid: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Why it does not work, if that was so when the node was seen. It is not looked at again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Which MIG instance it is, and of which GPU of the node; none: it is a GPU.
    #[serde(with = "instance", default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigInstance>,
    /// The MIG instance that it is, where those are given out for parts of GPUs; none: it is something
    /// else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}

/// A MIG instance that is given out for a part of its GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Which GPU of the node it is a part of.
    pub gpu: u32,
    /// What the driver calls that.
    pub gpu_uuid: String,
    /// Memory of that in bytes.
    pub gpu_memory_bytes: u64,
    /// Its slices and memory, such as `3g.40gb`.
    pub profile: String,
}

impl NodeGpu {
    /// A GPU with nothing the matter with it.
    #[must_use]
    pub const fn new(uuid: String, memory_bytes: u64) -> Self {
        Self { uuid, memory_bytes, fault: None, mig: None, instance: None }
    }

    /// The GPU whose health and processes are its own, as the driver calls that: an instance is a part of one.
    #[must_use]
    pub fn looked_at(&self) -> &str {
        self.instance.as_ref().map_or(&self.uuid, |instance| &instance.gpu_uuid)
    }

    /// Thousandths of a GPU that pods may have of it together.
    #[must_use]
    pub fn capacity_millis(&self) -> u64 {
        match &self.instance {
            Some(Instance { gpu, gpu_memory_bytes, .. }) => {
                GpuPart::new(*gpu, self.memory_bytes, *gpu_memory_bytes).millis
            }
            None => self.mig.map_or(GPU_MILLIS, |mig| mig.profile.millis()),
        }
    }

    /// Bytes that a pod has of it which is charged for so many thousandths.
    #[must_use]
    pub fn memory_of(&self, millis: u64) -> u64 {
        if self.instance.is_some() && millis > 0 {
            return self.memory_bytes;
        }
        let part = u128::from(self.memory_bytes) * u128::from(millis) / u128::from(GPU_MILLIS);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// Whether new pods may come to a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// They may.
    #[default]
    Enabled,
    /// They may not: it is cordoned.
    Disabled,
    /// They may not, and those that are there are moved or stopped.
    Draining,
}

impl Scheduling {
    /// True if new pods may come.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        matches!(self, Self::Enabled)
    }
}

/// What people gave a node beside what it came with. Kept as long as anything is given, also while
/// the node is away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGiven {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(with = "taints", default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Whether new pods may come.
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
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(keys: &Keys, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(keys.iter().map(|(key, effect)| (key, effect.map(EffectWire))))
    }

    /// Reads them.
    ///
    /// # Errors
    /// They are of another form.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        let all = Vec::<(String, Option<EffectWire>)>::deserialize(from)?.into_iter();
        Ok(all.map(|(key, effect)| (key, effect.map(|effect| effect.0))).collect())
    }
}

/// MIG instances, which are a type of the scheduler, as documents.
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

/// Taints, which are a type of the scheduler, as a document.
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
    /// Those of the serializer.
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
    /// They are of another form.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Taint>, D::Error> {
        let all = Vec::<TaintWire>::deserialize(from)?.into_iter();
        let taint = |TaintWire { key, value, effect }| Taint { key, value, effect: effect.0 };
        Ok(all.map(taint).collect())
    }
}
