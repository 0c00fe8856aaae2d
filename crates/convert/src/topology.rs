//! Conversion of network topologies to the wire.

use api_types::{NetworkTopology, TENANT_ID};
use http_kit::{Row, Scalar, Type};
use orchestrator::levels_of;
use units::Instant;
use view::{NodeView, Object, View};

use super::Context;

/// Converts a network topology to the wire.
pub fn network_topology(of: &Object, all: &View, context: &Context) -> NetworkTopology {
    let levels = levels_of(of);
    let named =
        |pool: &&std::sync::Arc<view::PoolView>| pool.settings.topology.as_ref() == Some(&of.id);
    let lies_in = |node: &NodeView| {
        levels.iter().all(|level| model::is_host(level) || node.labels.contains_key(level))
    };
    let ready = all.nodes.iter().any(|node| lies_in(node));
    NetworkTopology {
        id: of.id.clone(),
        name: of.name.clone(),
        cluster_id: context.cluster_id.clone(),
        tenant_id: TENANT_ID,
        created_by: of.created_by.clone(),
        created_at: of.created_at.into(),
        phase: if ready { "Ready" } else { "Creating" }.to_owned(),
        source: "control-plane".to_owned(),
        node_pools: all.pools.iter().filter(named).map(|pool| pool.name.clone()).collect(),
        levels,
    }
}

impl Row<crate::Listed> for NetworkTopology {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("name", Type::Text),
        ("clusterId", Type::Text),
        ("phase", Type::Text),
        ("createdBy", Type::Text),
        ("createdAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "id" => Scalar::text(self.id.as_str()),
            "name" => Scalar::text(self.name.as_str()),
            "clusterId" => Scalar::text(self.cluster_id.as_str()),
            "phase" => Scalar::text(self.phase.as_str()),
            "createdBy" => Scalar::text(self.created_by.as_str()),
            "createdAt" => Scalar::time(self.created_at.0),
            _ => Scalar::Absent,
        }
    }
}
