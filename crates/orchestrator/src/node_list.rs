//! The nodes that a server starts with.

use spec::NodeSpec;

/// Nodes, and where the list of them came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// What says which there are, such as the value of a flag. Simulated nodes that were added or
    /// removed by command are kept as long as it is the same.
    pub origin: String,
}
