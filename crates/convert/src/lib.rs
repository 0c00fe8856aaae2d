//! Conversions between the wire and the core, explicitly, in both directions.

mod address;
mod advice;
mod advised;
mod advised_spec;
mod advised_steps;
mod cluster;
mod compute;
mod container;
mod container_to_wire;
mod defaults;
mod department;
mod diagnosis_ids;
mod diagnosis_values;
mod event;
mod explain;
mod grid_row;
mod kubernetes_pod;
mod made_of;
pub mod manifest;
mod node_constraints;
mod pod;
mod pod_groups;
mod pod_spec;
mod pods;
mod pool;
mod project;
mod revision;
mod row;
mod rules;
mod serving;
mod share;
mod submit;
mod topology;
mod update;
mod urls;
mod warnings;
mod workload;
mod workload_fields;
mod workload_kinds;

use access::{Backend, Family as _};
use http_kit::ApiError;
use spec::{PodSet, WORKER, WorkloadSpec};
use units::Instant;

pub use address::{
    HostOwner, Origins, addresses, check as check_addresses, is_of_a_workload, is_of_an_inference,
    whose,
};
pub use advice::{May, Requirement, simulated_node_flags};
pub use advised_steps::{Made, request_of, steps_of};
pub use cluster::{
    ClusterName, cluster, gpu, leftover, new_node, node, node_change, node_status, notice, outage,
};
pub use compute::check_compute;
pub use defaults::{CONFIG_MAP_MODE_DEFAULT, SECRET_MODE_DEFAULT, as_taken};
pub use department::{department, department_creation, department_update};
pub use event::{asset_history, history, kubernetes_event, live_event};
pub use explain::{FurtherAdvice, diagnosis, explanation, fractions_kept, lines_before_submission};
pub use grid_row::{grid_row, shared_reason};
pub use kubernetes_pod::kubernetes_pod;
pub use made_of::{COMPUTE_ASSET, DATA_SOURCES, ENVIRONMENT_ASSET, TEMPLATE};
pub use pod::{PodRow, pod};
pub use pod_spec::words;
pub use pods::{check_kind, fill_master, of_the_master, of_the_servers, with_servers_as_master};
pub use pool::{node_pool, pool_change, pool_creation};
pub use project::{creation, namespace, parent, project, update};
pub use revision::revision;
pub use row::{Surroundings, WorkloadRow, in_list};
pub use serving::probing_the_port_of;
pub use share::{ranks, shares, some_shares};
pub use submit::{Submitter, check_spec, command};
pub use topology::network_topology;
pub use update::{change, check_changeable};
pub use urls::page;
pub use warnings::warnings;
pub use workload::{category, kind_name, kind_plural, phase_name, workload};
pub use workload_kinds::{asked_for, typed};

/// Marker type for the implementations of `Row` in this crate.
pub struct Listed;

/// Context of a conversion to the wire.
#[derive(Debug, Clone)]
pub struct Context {
    /// Id of the cluster.
    pub cluster_id: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Addresses of the server and of workloads.
    pub origins: Origins,
    /// Time of the server's clock.
    pub now: Instant,
    /// Outage of the runtime of the pods, if there is one.
    pub outage: Option<engine::Outage>,
    /// Enforcement of GPU fractions.
    pub fractions: engine::Fractions,
}

/// Converts an error about a specification to one about a change.
pub fn refusal(error: ApiError) -> orchestrator::Error {
    orchestrator::Error::Invalid { field: "spec", message: error.message() }
}

impl Context {
    /// The current context, for a server with these addresses.
    #[must_use]
    pub fn new(backend: &Backend, origins: &Origins) -> Self {
        let (cluster, view) = (backend.control.cluster(), backend.control.view());
        let named = view.objects.shelf(ClusterName::KIND);
        let named = named.and_then(|named| named.values().next()).map(|named| &named.name);
        Self {
            cluster_id: cluster.uuid.to_string(),
            origins: origins.clone(),
            cluster_name: named.unwrap_or(&cluster.name).clone(),
            now: backend.now(),
            outage: backend.control.outage(),
            fractions: backend.control.capabilities().fractions,
        }
    }
}

/// The pods that represent a workload: the workers of a distributed one.
fn pods_shown(spec: &WorkloadSpec) -> &PodSet {
    spec.set_named(WORKER).unwrap_or(&spec.pods)
}

/// A count; an error if it is 0.
fn positive(field: &str, count: Option<u32>) -> Result<Option<u32>, ApiError> {
    match count {
        Some(0) => Err(ApiError::field(field, "0 is too few; use 1 or more, or leave it out")),
        count => Ok(count),
    }
}

/// A number without an exponent, so that an error about it has the same words as on a command line.
fn decimal(number: &serde_json::Number) -> String {
    let text = number.to_string();
    match number.as_f64() {
        Some(float) if text.contains(['e', 'E']) => float.to_string(),
        _ => text,
    }
}

/// A specification as JSON. Its type is read from JSON, or could be, so this cannot fail.
pub fn wire(spec: &api_types::WorkloadSpec) -> serde_json::Value {
    serde_json::to_value(spec).unwrap_or_default()
}

/// A size in the largest unit without a remainder: `500M`, `1Gi`.
pub fn quantity(bytes: u64) -> String {
    const UNITS: [(&str, u64); 8] = [
        ("Ti", 1 << 40),
        ("T", 1_000_000_000_000),
        ("Gi", 1 << 30),
        ("G", 1_000_000_000),
        ("Mi", 1 << 20),
        ("M", 1_000_000),
        ("Ki", 1 << 10),
        ("k", 1000),
    ];
    let whole = UNITS.iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    whole.map_or(bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        for (bytes, text) in [
            (0, "0"),
            (1, "1"),
            (500_000_000, "500M"),
            (1 << 30, "1Gi"),
            (16 << 30, "16Gi"),
            (1536, "1536"),
            (8_000_000_000, "8G"),
        ] {
            assert_eq!(quantity(bytes), text);
            assert_eq!(units::parse_bytes(text), Ok(bytes));
        }
    }
}
