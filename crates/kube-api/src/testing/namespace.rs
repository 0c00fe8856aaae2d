//! Namespaces, which only tests make and read.

use serde::Deserialize;

use crate::types::{Metadata, ObjectMeta, Resource};

/// A namespace.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Namespace(Metadata);

impl Resource for Namespace {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Namespace";
    const PLURAL: &'static str = "namespaces";
    const NAMESPACED: bool = false;

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }
}
