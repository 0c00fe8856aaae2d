//! Kinds that only tests make and read.

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

/// A disruption budget.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Budget(Metadata);

impl Resource for Budget {
    const GROUP: &'static str = "policy";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "PodDisruptionBudget";
    const PLURAL: &'static str = "poddisruptionbudgets";
    const NAMESPACED: bool = true;

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }
}
