//! Network topologies. Owns: the topology as published, and its creation.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// Body of `POST /api/v1/network-topologies`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkTopologyCreateRequest {
    /// Name, unique.
    pub name: String,
    /// Labels of nodes, from far to near.
    pub levels: Vec<String>,
    /// Id of the cluster; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
}

/// Network topology, which is how near nodes are to each other: nodes with the same labels down to
/// a level are in one domain of that level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTopology {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Labels of nodes, from far to near.
    pub levels: Vec<String>,
    /// Cluster, by id.
    pub cluster_id: String,
    /// Tenant.
    pub tenant_id: u64,
    /// Its creator.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// `Ready`, or `Creating` as long as no node has all of its labels.
    pub phase: String,
    /// Origin: `control-plane`.
    pub source: String,
    /// The node pools that have it, by name.
    pub node_pools: Vec<String>,
}

/// All network topologies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GetNetworkTopologies200Response)]
pub struct TopologiesPage {
    /// In order of creation.
    pub network_topologies: Vec<NetworkTopology>,
}

/// Topology constraints of the pods of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTopology {
    /// The network topology, by name.
    pub name: String,
    /// Label of the level of which they are in as few domains as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_placement: Option<String>,
    /// Label of the level of which all are in one domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_placement: Option<String>,
}
