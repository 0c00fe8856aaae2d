//! The list of nodes at the start of a server.

use serde::{Deserialize, Serialize};
use spec::NodeSpec;

/// A list of nodes, and its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// Origin of the list, such as the value of a flag. Simulated nodes that were added or removed
    /// by command are kept as long as it is unchanged.
    pub origin: String,
}
