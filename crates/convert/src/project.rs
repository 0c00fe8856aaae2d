//! Conversion of projects from and to the wire.

use std::sync::Arc;

use api_types::{
    NodeTypesPerWorkload, Parent, Project, ProjectCreationRequest, ProjectEffective, ProjectStatus,
    ProjectUpdateRequest,
};
use http_kit::{ApiError, Row, Scalar, Type};
use orchestrator::{DEPARTMENT_DEFAULT, OrgChange};
use spec::NodeTypes;
use view::{OrgUnit, ProjectView, SharedMap, View};

use super::Context;
use super::rules::{rules, rules_wire};
use super::share::{
    own_numbers, pool_quotas, quota_status, resources, shares, some_shares, totals,
};

/// The departments by id.
type Departments = SharedMap<u64, Arc<OrgUnit>>;

/// The namespace of a project.
pub fn namespace(project_name: &str) -> String {
    format!("runai-{project_name}")
}

/// Converts a creation.
pub fn creation(request: ProjectCreationRequest) -> Result<OrgChange, ApiError> {
    units::check_name(&request.name).map_err(|why| ApiError::bad(why.to_string()))?;
    check_common(request.enforce_runai_scheduler)?;
    let own = namespace(&request.name);
    if request.requested_namespace.is_some_and(|asked| asked != own) {
        return Err(ApiError::value_not_yet(
            "requestedNamespace",
            format!("a namespace other than `{own}`"),
        ));
    }
    Ok(OrgChange {
        name: Some(request.name),
        description: request.description,
        shares: some_shares(&request.resources)?,
        replaces_shares: true,
        rules: request.scheduling_rules.as_ref().map(rules).transpose()?,
        default_pools: request.default_node_pools,
        node_types: request.node_types.map(node_types),
        namespaces: request.namespaces,
    })
}

/// Converts an update; values that are not given are unchanged.
pub fn update(request: ProjectUpdateRequest) -> Result<OrgChange, ApiError> {
    check_common(request.enforce_runai_scheduler)?;
    Ok(OrgChange {
        name: None,
        description: request.description,
        shares: shares(&request.resources)?,
        replaces_shares: !request.resources.is_empty(),
        rules: request.scheduling_rules.as_ref().map(rules).transpose()?,
        default_pools: request.default_node_pools,
        node_types: request.node_types.map(node_types),
        namespaces: request.namespaces,
    })
}

/// The department of a project from a request.
pub fn parent(asked: Option<&str>, departments: &Departments) -> Result<u64, ApiError> {
    let Some(id) = asked else { return Ok(DEPARTMENT_DEFAULT) };
    let found = id.parse().ok().filter(|id| departments.contains_key(id));
    found.ok_or_else(|| ApiError::unknown_name("parentId", "department", id, []))
}

fn check_common(enforce: Option<bool>) -> Result<(), ApiError> {
    if enforce == Some(false) {
        return Err(ApiError::value_not_yet("enforceRunaiScheduler", "false"));
    }
    Ok(())
}

/// Converts types of nodes from the wire.
pub(super) fn node_types(wire: NodeTypesPerWorkload) -> NodeTypes {
    NodeTypes { training: wire.training, workspace: wire.workspace, names: wire.names }
}

/// Converts types of nodes to the wire.
pub(super) fn node_types_wire(types: &NodeTypes) -> NodeTypesPerWorkload {
    let NodeTypes { training, workspace, names } = types.clone();
    NodeTypesPerWorkload { training, workspace, names }
}

/// Converts a project to the wire.
pub fn project(of: &ProjectView, view: &View, context: &Context) -> Project {
    let unit = &of.unit;
    let department = view.departments.get(&of.department_id);
    let above = department.and_then(|department| of.above(department));
    let odd = above.into_iter().chain(unmeasured(of, view));
    Project {
        id: unit.id.to_string(),
        name: unit.name.clone(),
        cluster_id: context.cluster_id.clone(),
        description: unit.description.clone(),
        parent_id: of.department_id.to_string(),
        parent: Parent { id: of.department_id.to_string(), name: of.department_name.clone() },
        requested_namespace: namespace(&unit.name),
        enforce_runai_scheduler: true,
        created_at: unit.created_at.into(),
        created_by: unit.created_by.clone(),
        updated_at: unit.updated_at.into(),
        updated_by: unit.updated_by.clone(),
        status: ProjectStatus {
            namespace: namespace(&unit.name),
            phase: "Ready".to_owned(),
            phase_message: odd.collect::<Vec<_>>().join("; "),
            last_updated_time: context.now.into(),
            quota_status: quota_status(&unit.status),
            node_pool_quota_statuses: pool_quotas(&unit.pools),
            additional_status_data: own_numbers(&unit.status),
        },
        total_resources: totals(&unit.pools),
        resources: unit.pools.iter().map(resources).collect(),
        scheduling_rules: rules_wire(unit.rules),
        effective: ProjectEffective {
            scheduling_rules: rules_wire(of.effective_rules),
            default_node_pools: if of.effective_pools.is_empty() {
                unit.pools.iter().map(|pool| pool.name.to_string()).collect()
            } else {
                of.effective_pools.clone()
            },
            node_types: node_types_wire(&of.effective_types),
        },
        default_node_pools: unit.default_pools.clone(),
        node_types: node_types_wire(&unit.node_types),
        namespaces: of.namespaces.clone(),
    }
}

/// Text about limits on idle GPUs that have no effect, because utilization is not measured.
fn unmeasured(of: &ProjectView, view: &View) -> Option<String> {
    let rules = of.effective_rules;
    let limits = [
        rules.training_idle_ms_max,
        rules.workspace_idle_ms_max,
        rules.preemptible_workspace_idle_ms_max,
    ];
    let simulated = view.nodes.iter().any(|node| node.simulated);
    let text =
        "whether simulated GPUs are idle is unknown; its limits on idle GPUs have no effect there";
    (simulated && limits.iter().any(Option::is_some)).then(|| text.to_owned())
}

impl Row<crate::Listed> for ProjectView {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("name", Type::Text),
        ("description", Type::Text),
        ("parentId", Type::Text),
        ("departmentId", Type::Text),
        ("parentName", Type::Text),
        ("departmentName", Type::Text),
        ("phase", Type::Text),
        ("totalGpuQuota", Type::Number),
        ("gpuAllocated", Type::Number),
        ("createdAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "description"];

    fn field(&self, name: &str, now: units::Instant) -> Scalar<'_> {
        match name {
            "parentId" | "departmentId" => Scalar::text(self.department_id.to_string()),
            "parentName" | "departmentName" => Scalar::text(self.department_name.as_str()),
            "phase" => Scalar::text("Ready"),
            common => self.unit.field(common, now),
        }
    }
}
