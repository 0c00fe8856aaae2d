//! Nodes: which there are, and how each stands. Owns: the table of nodes. Does not know how pools
//! take nodes (`pools`), and what becomes of pods whose places are lost (`workloads`).
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

pub use change::NodeChange;
pub(crate) use simulated::at_start;

/// A node and its place in the model.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) spec: Arc<NodeSpec>,
    pub(crate) id: NodeId,
    pub(crate) created_at: Instant,
    /// What it was given beside what it came with.
    given: NodeGiven,
    /// Id of its pool.
    pub(crate) pool: String,
    /// What is the matter with its GPUs, by their numbers: those are out of service.
    pub(crate) gpu_faults: BTreeMap<u32, GpuFault>,
    /// The revision of it in the model that is shown.
    shown: Option<u64>,
}

impl Node {
    /// All its labels.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.spec.labels_with(&self.given.labels)
    }

    /// All its taints. One that it was given takes the place of its own of that key and effect.
    pub(crate) fn taints(&self) -> Vec<Taint> {
        let of = |taint: &Taint| (taint.key.clone(), taint.effect);
        let all = self.spec.taints.iter().chain(&self.given.taints);
        let all: BTreeMap<_, _> = all.map(|taint| (of(taint), taint.clone())).collect();
        all.into_values().collect()
    }

    /// Whether new pods may come, and whether those that are there have to leave.
    pub(crate) const fn scheduling(&self) -> Scheduling {
        self.given.scheduling
    }

    /// True if it is shown as it is in this revision of the model.
    pub(crate) fn is_shown(&self, revision: u64) -> bool {
        self.shown == Some(revision)
    }
}

/// The nodes there are.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    rows: BTreeMap<NodeId, Node>,
    by_name: BTreeMap<String, NodeId>,
    /// Where the list of nodes came from with which the server started.
    origin: String,
    /// The names of those that were on it.
    listed: BTreeSet<String>,
}

impl Nodes {
    /// None yet, of a server that starts with this list.
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

    /// In the order of their places in the model.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.rows.values()
    }

    /// They are shown as they are in these revisions of the model.
    pub(crate) fn note_shown(&mut self, revision: impl Fn(NodeId) -> u64) {
        self.rows.iter_mut().for_each(|(&id, node)| node.shown = Some(revision(id)));
    }
}
