//! Objects of the API server. Owns: the fields that are read, of each kind. Does not know about:
//! requests.
//!
//! A field that the API server leaves out, or gives as null, has its default: one odd object must
//! not make a list unreadable.

mod affinity;
mod event;
mod meta;
mod node;
mod pod;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

pub use affinity::{Affinity, NodeAffinity, NodeCondition, NodeSelector, NodeTerm, PreferredTerm};
pub use event::{Event, EventObject};
pub use meta::{Metadata, ObjectMeta, OwnerReference};
pub use node::{Node, NodeSpec, NodeStatus, Taint};
pub use pod::{
    Condition, Container, ContainerPort, Pod, PodSpec, PodStatus, Resources, SchedulingGate,
    Toleration,
};

/// Takes null for the default.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A value of which only the presence is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Present;

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A kind of object: where the API server has it.
pub trait Resource: serde::de::DeserializeOwned + Send + Sync + 'static {
    /// API group, empty for the core.
    const GROUP: &'static str;
    /// Version of the group.
    const VERSION: &'static str;
    /// The kind in an object of its own.
    const KIND: &'static str;
    /// The kind in paths and roles.
    const PLURAL: &'static str;
    /// `true` if its objects are in namespaces.
    const NAMESPACED: bool;

    /// Name, uid, version and the like.
    fn meta(&self) -> &ObjectMeta;
}
