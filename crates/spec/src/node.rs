//! A node: what it is made of, and what it is given while it is there.

use std::collections::BTreeMap;

use model::{HOST_LABEL, MigInstance, MigProfile, Taint};
use serde::{Deserialize, Serialize};

use crate::pods::wire::EffectWire;

/// A node as it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name, unique.
    pub name: String,
    /// Product name of its GPUs, or `simulated`.
    pub gpu_type: String,
    /// Whether its GPUs are simulated.
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

    /// The memory of each of its GPUs, and what each is divided into.
    #[must_use]
    pub fn gpus_as_built(&self) -> (Vec<u64>, Vec<Vec<MigProfile>>) {
        let of_one_gpu = |left: &NodeGpu, right: &NodeGpu| {
            left.mig.zip(right.mig).is_some_and(|(left, right)| left.gpu == right.gpu)
        };
        let gpus = self.gpus.chunk_by(of_one_gpu).map(|parts| {
            let memory_bytes: u64 = parts.iter().map(|part| part.memory_bytes).sum();
            let instances = parts.iter().filter_map(|part| part.mig);
            (memory_bytes, instances.map(|instance| instance.profile).collect())
        });
        gpus.unzip()
    }

    /// Whether it has GPUs that a driver found.
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
}

impl NodeGpu {
    /// A GPU with nothing the matter with it.
    #[must_use]
    pub const fn new(uuid: String, memory_bytes: u64) -> Self {
        Self { uuid, memory_bytes, fault: None, mig: None }
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
    /// Whether new pods may come.
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
