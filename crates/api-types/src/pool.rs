//! Node pools. Owns: the pool as published, and its requests.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Unsupported;
use crate::scalar::Time;

/// A body with these fields, and those that all bodies about a node pool have.
macro_rules! about_a_pool {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Strategies that choose nodes for pods.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub placement_strategy: Option<PlacementStrategies>,
            /// Placement strategies as newer clients write them, and the time preemptible work is
            /// left alone.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub scheduling_configuration: Option<SchedulingConfiguration>,
            /// Accepted when 1: nothing is promised twice.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub over_provisioning_ratio: Option<u64>,
            /// Not acted on yet.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Value>)]
            pub gpu_network_acceleration_label_key: Unsupported,
            /// Accepted unless `Use`: nothing is accelerated.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpu_network_acceleration_detection: Option<String>,
            /// Accepted when it switches nothing on.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpu_resource_optimization: Option<GpuResourceOptimization>,
            /// The network topology of its nodes, by id; none if it is empty.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub network_topology_id: Option<String>,
            /// Mode in which workloads with a part of a GPU divide its compute time: `none`,
            /// `strict` or `fair`; if it is empty, the mode that the server was started with.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpu_time_slicing: Option<String>,
            /// Enforcement of parts of GPUs: `none` to count them only, or `hard` to give them out
            /// only where no user can work around the limit; if it is empty, the mode that the
            /// server was started with.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpu_fractions: Option<String>,
        }
    };
}

about_a_pool! {
    /// Body of `POST /api/v1/node-pools`.
    pub struct NodepoolCreateFields {
        /// Name, unique.
        pub name: String,
        /// Key of the label that its nodes carry.
        pub label_key: String,
        /// Value of the label that its nodes carry.
        pub label_value: String,
        /// Id of the cluster; there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cluster_id: Option<String>,
    }
}

about_a_pool! {
    /// Body of `PUT` and `PATCH /api/v1/node-pools/{nodepoolId}`.
    pub struct NodepoolUpdateFields {
        /// Key of the label that its nodes carry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub label_key: Option<String>,
        /// Value of the label that its nodes carry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub label_value: Option<String>,
    }
}

impl NodepoolCreateFields {
    /// Its settings for the use of the pool, as a change of one.
    #[must_use]
    pub fn usage(self) -> NodepoolUpdateFields {
        NodepoolUpdateFields {
            label_key: None,
            label_value: None,
            placement_strategy: self.placement_strategy,
            scheduling_configuration: self.scheduling_configuration,
            over_provisioning_ratio: self.over_provisioning_ratio,
            gpu_network_acceleration_label_key: self.gpu_network_acceleration_label_key,
            gpu_network_acceleration_detection: self.gpu_network_acceleration_detection,
            gpu_resource_optimization: self.gpu_resource_optimization,
            network_topology_id: self.network_topology_id,
            gpu_time_slicing: self.gpu_time_slicing,
            gpu_fractions: self.gpu_fractions,
        }
    }
}

/// Strategies that choose nodes for pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementStrategies {
    /// For CPU work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<PlacementStrategy>,
    /// For GPU work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<PlacementStrategy>,
}

/// Order in which nodes fill up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlacementStrategy {
    /// The emptiest first.
    Spread,
    /// The fullest first.
    Binpack,
}

/// Settings for the use of a node pool, as newer clients write them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SchedulingConfiguration {
    /// Strategies that choose nodes for pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_strategy: Option<PlacementStrategies>,
    /// Time for which preemptible work is left alone after its start, such as `1h30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_guaranteed_runtime: Option<String>,
}

/// Use of GPUs beyond what they have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuResourceOptimization {
    /// Accepted when false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_enabled: Option<bool>,
    /// Means nothing without swapping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_swap_memory_size: Option<String>,
    /// Means nothing without swapping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_gpu_memory_for_swap_operations: Option<String>,
    /// Accepted when false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_level_scheduler_enabled: Option<bool>,
}

/// A node pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodepool {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Key of the label its nodes carry.
    pub label_key: String,
    /// Value of the label its nodes carry.
    pub label_value: String,
    /// Cluster, by id.
    pub cluster_id: String,
    /// Cluster, by name.
    pub cluster_name: String,
    /// Tenant.
    pub tenant_id: u64,
    /// True if it is where nodes are that belong nowhere else.
    pub is_default: bool,
    /// `Ready`, or `Empty` without nodes.
    pub phase: String,
    /// More about the phase.
    pub phase_message: String,
    /// Contents of the pool.
    pub status: NodepoolStatus,
    /// Strategies that choose nodes for pods.
    pub placement_strategy: PlacementStrategies,
    /// Placement strategies as newer clients read them, and the time preemptible work is left
    /// alone.
    pub scheduling_configuration: SchedulingConfiguration,
    /// The network topology of its nodes, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_topology_id: Option<String>,
    /// The network topology of its nodes, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_topology_name: Option<String>,
    /// Mode in which workloads with a part of a GPU divide its compute time: `none`, `strict` or
    /// `fair`; missing if it is the mode that the server was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_time_slicing: Option<String>,
    /// Enforcement of parts of GPUs: `none` or `hard`; missing if it is the mode that the server
    /// was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_fractions: Option<String>,
    /// Always 1.
    pub over_provisioning_ratio: u64,
    /// Its creator.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// User of the last change.
    pub updated_by: String,
    /// Time of the last change.
    pub updated_at: Time,
}

/// Contents of a node pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodepoolStatus {
    /// Its nodes, by name.
    pub nodes: Vec<String>,
}

/// All node pools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nodepools {
    /// The pools.
    pub nodepools: Vec<Nodepool>,
}
