//! Metadata that every object has. Owns: its fields. Does not know about: kinds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::or_default;

/// Metadata of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name, unique within its namespace and kind.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Namespace, empty outside of namespaces.
    #[serde(deserialize_with = "or_default")]
    pub namespace: String,
    /// Id that no other object ever has.
    #[serde(deserialize_with = "or_default")]
    pub uid: String,
    /// Version of the object. Equal or not is all that can be said of two.
    #[serde(deserialize_with = "or_default")]
    pub resource_version: String,
    /// Labels.
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// Objects that it belongs to.
    #[serde(deserialize_with = "or_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Controllers that keep it from being deleted until they have cleaned up.
    #[serde(deserialize_with = "or_default")]
    pub finalizers: Vec<String>,
    /// When it was made, as RFC 3339.
    pub creation_timestamp: Option<String>,
    /// Deadline of its deletion as RFC 3339, once that has begun.
    pub deletion_timestamp: Option<String>,
}

impl ObjectMeta {
    /// The owner that makes it again when it is gone.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// An object that another belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of its kind.
    #[serde(deserialize_with = "or_default")]
    pub api_version: String,
    /// Kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Uid.
    #[serde(deserialize_with = "or_default")]
    pub uid: String,
    /// `true` for the owner that is the controller.
    #[serde(deserialize_with = "or_default")]
    pub controller: bool,
}

/// An object of any kind, of which only the metadata is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
}
