//! Locality of nodes. Owns: named topologies, each an ordered list of node labels from coarse to
//! fine (zone, block, rack), and the tree of domains from the labels of the nodes. Does not know
//! about: the free resources of a domain.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::{Node, NodeId};

/// Id of a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologyId(pub(crate) u32);

/// Id of a domain of one topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainId(u32);

impl DomainId {
    /// Its number among the domains of its topology.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Topology constraint of pods. Levels are counted from the coarsest, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologyConstraint {
    /// Id of the topology.
    pub topology: TopologyId,
    /// Level at which all pods are in one domain.
    pub required: Option<usize>,
    /// Level at which all pods are in one domain if possible, or else in one as fine as possible.
    pub preferred: Option<usize>,
}

/// Nodes with the same labels down to one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// The values of the labels, coarse to fine, joined by dots.
    pub name: String,
    /// Its ancestors, coarse to fine, itself the last.
    pub path: SmallVec<[DomainId; 4]>,
    /// Its child domains of the next level, by the value of their label.
    pub children: BTreeMap<String, DomainId>,
    /// Its nodes, if it is of the finest level.
    nodes: BTreeSet<NodeId>,
}

/// A topology and its domains. A domain without nodes is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Name.
    pub name: String,
    /// Label of each level, coarse to fine.
    pub levels: Vec<String>,
    domains: Vec<Domain>,
    /// The domains of the coarsest level.
    roots: BTreeMap<String, DomainId>,
    /// Finest domain of each node; `None` if the node lacks a label.
    of_node: Vec<Option<DomainId>>,
}

impl Topology {
    pub(crate) const fn new(name: String, levels: Vec<String>) -> Self {
        Self { name, levels, domains: Vec::new(), roots: BTreeMap::new(), of_node: Vec::new() }
    }

    /// The level of this label.
    #[must_use]
    pub fn level(&self, label: &str) -> Option<usize> {
        self.levels.iter().position(|level| level == label)
    }

    /// Number of domains that ever existed; their ids are the numbers below it.
    #[must_use]
    pub const fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// A domain.
    #[must_use]
    pub fn domain(&self, id: DomainId) -> &Domain {
        &self.domains[id.index()]
    }

    /// The child domains of a domain, by name; the coarsest ones for `None`.
    #[must_use]
    pub fn children(&self, of: Option<DomainId>) -> &BTreeMap<String, DomainId> {
        of.map_or(&self.roots, |of| &self.domain(of).children)
    }

    /// The domains of a level that have nodes, by name.
    #[must_use]
    pub fn domains_at(&self, level: usize) -> Vec<DomainId> {
        let mut open: Vec<_> = self.roots.values().copied().collect();
        for _ in 0..level {
            open = open
                .iter()
                .flat_map(|&domain| self.domain(domain).children.values())
                .copied()
                .collect();
        }
        open.retain(|&domain| !self.nodes(domain).is_empty());
        open
    }

    /// All domains of a node, coarse to fine; empty if it lacks a label.
    #[must_use]
    pub fn domains_of(&self, node: NodeId) -> &[DomainId] {
        let finest = self.of_node.get(node.raw() as usize).copied().flatten();
        finest.map_or(&[], |finest| &self.domain(finest).path)
    }

    /// True if a node is in a domain.
    #[must_use]
    pub fn contains(&self, domain: DomainId, node: NodeId) -> bool {
        let level = self.domain(domain).path.len() - 1;
        self.domains_of(node).get(level) == Some(&domain)
    }

    /// The nodes of a domain.
    #[must_use]
    pub fn nodes(&self, domain: DomainId) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut open = vec![domain];
        while let Some(next) = open.pop() {
            let domain = self.domain(next);
            nodes.extend(&domain.nodes);
            open.extend(domain.children.values());
        }
        nodes
    }

    /// Updates the domain of a node that was added or whose labels changed.
    pub(crate) fn update(&mut self, id: NodeId, node: &Node) {
        let finest = self.find(node);
        self.put(id, finest);
    }

    /// Removes a node.
    pub(crate) fn forget(&mut self, id: NodeId) {
        self.put(id, None);
    }

    fn put(&mut self, id: NodeId, finest: Option<DomainId>) {
        let at = id.raw() as usize;
        if self.of_node.len() <= at {
            self.of_node.resize(at + 1, None);
        }
        if let Some(before) = std::mem::replace(&mut self.of_node[at], finest) {
            self.domains[before.index()].nodes.remove(&id);
        }
        if let Some(finest) = finest {
            self.domains[finest.index()].nodes.insert(id);
        }
    }

    /// The finest domain of a node with these labels, created if absent.
    fn find(&mut self, node: &Node) -> Option<DomainId> {
        let values: Option<Vec<_>> =
            self.levels.iter().map(|key| node.topology_domain(key)).collect();
        let mut found: Option<DomainId> = None;
        for value in values? {
            found = Some(match self.children(found).get(value) {
                Some(&domain) => domain,
                None => self.add(found, value),
            });
        }
        found
    }

    fn add(&mut self, parent: Option<DomainId>, value: &str) -> DomainId {
        let id = DomainId(u32::try_from(self.domains.len()).unwrap_or(u32::MAX));
        let above = parent.map(|parent| self.domain(parent));
        let name =
            above.map_or_else(|| value.to_owned(), |above| format!("{}.{value}", above.name));
        let mut path = above.map_or_else(SmallVec::new, |above| above.path.clone());
        path.push(id);
        let (children, nodes) = (BTreeMap::new(), BTreeSet::new());
        self.domains.push(Domain { name, path, children, nodes });
        let siblings = match parent {
            Some(parent) => &mut self.domains[parent.index()].children,
            None => &mut self.roots,
        };
        siblings.insert(value.to_owned(), id);
        id
    }

    /// True if every node is in the domain of its labels.
    pub(crate) fn is_sound<'a>(&self, mut nodes: impl Iterator<Item = (NodeId, &'a Node)>) -> bool {
        nodes.all(|(id, node)| {
            let values: Option<Vec<_>> =
                self.levels.iter().map(|key| node.topology_domain(key)).collect();
            let path = self.domains_of(id);
            match (values, path.last()) {
                (None, None) => true,
                (Some(values), Some(&finest)) => {
                    let domain = self.domain(finest);
                    domain.name == values.join(".") && domain.nodes.contains(&id)
                }
                _ => false,
            }
        })
    }
}
