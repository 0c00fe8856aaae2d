//! Events about objects. Owns: the fields that are read.

use serde::Deserialize;

use super::{ObjectMeta, Resource, or_default};

/// Something that happened to an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
    /// The object.
    #[serde(deserialize_with = "or_default")]
    pub involved_object: EventObject,
    /// Kind of the event, as one word.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Sentence about the event.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
}

/// The object of an event, in the namespace of the event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EventObject {
    /// Kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

impl Resource for Event {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Event";
    const PLURAL: &'static str = "events";
    const NAMESPACED: bool = true;

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
