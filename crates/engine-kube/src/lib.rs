//! Kubernetes as an engine: its nodes and pods as a feed, and bindings, evictions and conditions of
//! pods that name this scheduler.
//!
//! Owns: the newest state of each object, the meaning of the fields of nodes and pods, and the
//! fields that hold a pod because they are not supported. Does not know about: projects, decisions,
//! and the API server's protocol (`kube_api`).

mod check;
mod engine_impl;
mod events;
mod feed;
mod manifests;
mod newest;
mod node;
mod owners;
mod place;
mod pod;
mod quantity;
mod rate;
mod reports;
mod requests;
mod rights;
mod status_change;
#[cfg(test)]
mod tests;

pub use check::{Check, NodeCounts, check};
pub use engine_impl::{KubeEngine, Options};
pub use manifests::{ManifestOptions, OWN_NAMESPACE, manifests};
pub use rate::{Rate, Writes};
