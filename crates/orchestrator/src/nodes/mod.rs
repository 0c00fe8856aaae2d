//! Nodes and their state. Owns: the table of nodes. Does not know about: the nodes of pools
//! (`pools`), and the handling of pods with lost places (`workloads`).
//!
//! ```text
//!  what is seen of nodes   Input::Node -------.
//!  what people give them   Command::ChangeNode +--> this table --> the model and its replica
//!  simulated ones          Command::AddNode --'     --> places that are lost, runs to stop
//! ```

mod change;
mod events;
mod given;
mod health;
mod simulated;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{NodeId, Taint};
use spec::{NodeGiven, NodeSpec, Scheduling};
use units::Instant;

use crate::node_list::NodeList;
use view::GpuFault;

pub(crate) use simulated::at_start;

/// A node and its id in the model.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) spec: Arc<NodeSpec>,
    pub(crate) id: NodeId,
    pub(crate) created_at: Instant,
    /// Settings of administrators in addition to its specification.
    given: NodeGiven,
    /// Id of its pool.
    pub(crate) pool: String,
    /// Faults of its GPUs, by index: these are out of service.
    pub(crate) gpu_faults: BTreeMap<u32, GpuFault>,
    /// Revision in the model that is published.
    shown: Option<u64>,
}

impl Node {
    /// All its labels.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.spec.labels_with(&self.given.labels)
    }

    /// All its taints. A set one replaces its own of the same key and effect.
    pub(crate) fn taints(&self) -> Vec<Taint> {
        let of = |taint: &Taint| (taint.key.clone(), taint.effect);
        let all = self.spec.taints.iter().chain(&self.given.taints);
        let all: BTreeMap<_, _> = all.map(|taint| (of(taint), taint.clone())).collect();
        all.into_values().collect()
    }

    /// Scheduling mode: open, cordoned or draining.
    pub(crate) const fn scheduling(&self) -> Scheduling {
        self.given.scheduling
    }

    /// True if this revision of the model is published.
    pub(crate) fn is_shown(&self, revision: u64) -> bool {
        self.shown == Some(revision)
    }
}

/// All nodes.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    rows: BTreeMap<NodeId, Node>,
    by_name: BTreeMap<String, NodeId>,
    /// Origin of the list of nodes at the start of the server.
    origin: String,
    /// Names of the nodes on this list.
    listed: BTreeSet<String>,
}

impl Nodes {
    /// An empty table of a server that starts with this list.
    pub(crate) fn new(list: &NodeList) -> Self {
        let listed = list.nodes.iter().map(|node| node.name.clone()).collect();
        Self { origin: list.origin.clone(), listed, ..Self::default() }
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        self.rows.get(&id)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Node> {
        self.rows.get(self.by_name.get(name)?)
    }

    /// All nodes, in the order of their ids in the model.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.rows.values()
    }

    /// Records that these revisions of the model are published.
    pub(crate) fn note_shown(&mut self, revision: impl Fn(NodeId) -> u64) {
        self.rows.iter_mut().for_each(|(&id, node)| node.shown = Some(revision(id)));
    }
}
