//! The check of a cluster. Owns: the facts that the server needs of it.

use kube_api::types::Node;
use kube_api::{Client, Config, Error, Query, Reason, Rule};

use crate::node::{PRODUCT, node_spec};
use crate::rights::rules;

/// Facts about a cluster.
#[derive(Debug, Clone)]
pub struct Check {
    /// Version of the API server.
    pub version: String,
    /// Number of permissions that the server needs.
    pub permissions: usize,
    /// Missing permissions.
    pub missing: Vec<Rule>,
    /// Numbers of nodes, of nodes with GPUs, and of these GPUs; `None` if the nodes may not be
    /// listed.
    pub nodes: Option<NodeCounts>,
}

/// Numbers of nodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeCounts {
    /// Nodes.
    pub nodes: usize,
    /// Nodes with GPUs.
    pub with_gpus: usize,
    /// GPUs.
    pub gpus: usize,
    /// Nodes with GPUs whose product is known by a label.
    pub labeled: usize,
}

/// Checks a cluster.
///
/// # Errors
/// The API server does not answer.
pub async fn check(config: Config, seed: u64) -> Result<Check, Error> {
    let client = Client::new(config, seed);
    let version = client.version().await?.git_version;
    let (mut permissions, mut missing) = (0, Vec::new());
    for rule in rules() {
        permissions += 1;
        if !client.may(&rule, None).await? {
            missing.push(rule);
        }
    }
    let nodes = match client.list::<Node>(&Query::default()).await {
        Ok(listed) => Some(count(&listed.items)),
        Err(error) if error.reason() == Some(&Reason::Forbidden) => None,
        Err(error) => return Err(error),
    };
    Ok(Check { version, permissions, missing, nodes })
}

fn count(nodes: &[Node]) -> NodeCounts {
    let mut counts = NodeCounts { nodes: nodes.len(), ..NodeCounts::default() };
    for node in nodes {
        let gpus = node_spec(node).gpus.len();
        counts.with_gpus += usize::from(gpus > 0);
        counts.gpus += gpus;
        counts.labeled += usize::from(gpus > 0 && node.metadata.labels.contains_key(PRODUCT));
    }
    counts
}
