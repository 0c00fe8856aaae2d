//! Free places in the present state. Owns: the check for a free place on another node, computed
//! once for all pods with equal requirements, and kept while other nodes change.

use std::collections::BTreeMap;

use model::{Cluster, NodeId};
use smallvec::SmallVec;

use crate::node_scoring::candidates;
use crate::place::{self, PodRequirements};

/// Nodes with a free place for a pod: two of them, so that one differs from any given node.
type Places = SmallVec<[NodeId; 2]>;

/// Maximum number of changed nodes examined for each request before all is recomputed.
const CHANGED_MAX: usize = 8;

/// Nodes with free places, as of a state of all nodes, and the changes since.
#[derive(Debug, Default)]
pub(crate) struct FreePlaces {
    /// Two nodes for each request, or all if there are fewer.
    places: BTreeMap<PodRequirements, Places>,
    /// The revision of each node in that state.
    seen: Vec<u64>,
    /// Nodes that have changed since, and the revision of the state up to which changes are known.
    changed: Vec<NodeId>,
    as_of: Option<u64>,
}

impl FreePlaces {
    /// Takes the changes into the base state.
    pub(crate) fn settle(&mut self, cluster: &Cluster) {
        self.follow(cluster);
        if self.changed.is_empty() {
            return;
        }
        let changed = std::mem::take(&mut self.changed);
        if changed.len() > CHANGED_MAX {
            self.places.clear();
        }
        self.places.retain(|&ask, places| {
            let had_more = places.len() == places.inline_size();
            places.retain(|node| !changed.contains(node));
            let fit = changed.iter().filter(|node| place::fits(cluster, **node, ask, false));
            let missing = places.inline_size() - places.len();
            places.extend(fit.copied().take(missing));
            // There may be others that are not known.
            !had_more || places.len() == places.inline_size()
        });
        self.see(cluster);
    }

    fn see(&mut self, cluster: &Cluster) {
        self.seen.clear();
        for node in cluster.nodes().ids() {
            let at = node.raw() as usize;
            self.seen.resize(at, 0);
            self.seen.push(cluster.revision(node));
        }
    }

    /// Finds the nodes that have changed.
    fn follow(&mut self, cluster: &Cluster) {
        if self.as_of.replace(cluster.state_revision()) == Some(cluster.state_revision()) {
            return;
        }
        if self.seen.is_empty() {
            self.see(cluster);
        }
        let is_new =
            |node: &NodeId| self.seen.get(node.raw() as usize) != Some(&cluster.revision(*node));
        self.changed = cluster.nodes().ids().filter(is_new).collect();
    }

    /// `true` if a place is free on another node.
    pub(crate) fn any_but(&mut self, cluster: &Cluster, ask: PodRequirements, but: NodeId) -> bool {
        self.follow(cluster);
        let fits = |node: &NodeId| place::fits(cluster, *node, ask, false);
        let is_other = |node: &NodeId| *node != but;
        if let Some(places) = self.places.get(&ask) {
            let mut same = places.iter().filter(|node| !self.changed.contains(node));
            if same.any(is_other) || self.changed.iter().any(|node| is_other(node) && fits(node)) {
                return true;
            }
            // One of two is another node, unless it has changed: then there may be more.
            if places.len() < places.inline_size() {
                return false;
            }
        }
        let places: Places = candidates(cluster, ask, false).filter(fits).take(2).collect();
        let has_other = places.iter().any(is_other);
        if self.changed.is_empty() {
            self.places.insert(ask, places);
        }
        has_other
    }
}
