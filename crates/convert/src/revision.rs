//! Conversion of revisions of inferences to the wire.

use api_types::Revision;
use view::{View, WorkloadView};

use super::{Context, workload};

/// Converts a revision, which has the form of a workload.
pub fn revision(view: &WorkloadView, all: &View, context: &Context) -> Revision {
    let one = workload(view, all, context);
    let of = view.spec.revision.map_or(view.id, |revision| revision.of);
    Revision {
        kind: "runai-revision".to_owned(),
        name: one.name,
        id: one.id,
        workload_id: of.to_string(),
        tenant_id: one.tenant_id,
        cluster_id: one.cluster_id,
        project_id: one.project_id,
        department_id: one.department_id,
        created_at: one.created_at,
        revision_requested_resources: one.workload_requested_resources,
        pods_requested_resources: one.pods_requested_resources,
        requested_pods: one.requested_pods,
        requested_node_pools: one.requested_node_pools,
        allocated_resources: one.allocated_resources,
        current_node_pools: one.current_node_pools,
        running_pods: one.running_pods,
        images: one.images,
        environment_variables: one.environment_variables.unwrap_or_default(),
        command: one.command.unwrap_or_default(),
        arguments: one.arguments.unwrap_or_default(),
        children_ids: Vec::new(),
        conditions: one.conditions,
        phase: one.phase,
        phase_message: one.phase_message.unwrap_or_default(),
        phase_updated_at: one.phase_updated_at,
        additional_fields: one.additional_fields,
    }
}
