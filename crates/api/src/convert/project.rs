//! Projects in both directions.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::{
    NodeTypesPerWorkload, Parent, Project, ProjectCreationRequest, ProjectEffective, ProjectStatus,
    ProjectUpdateRequest,
};
use control::view::{DepartmentView, NodeTypes, ProjectView};
use control::{DEPARTMENT_DEFAULT, OrgChange, ProjectSpec};

use super::Context;
use super::rules::{rules, rules_wire};
use super::share::{
    Asked, SHARE_DEFAULT, gpu_quota_millis, own_numbers, pool_quotas, quota_status, resources,
    totals,
};
use crate::edge::{Fault, Row, Scalar, Type};

/// The departments by id.
type Departments = BTreeMap<u64, Arc<DepartmentView>>;

/// The namespace of a project.
pub(crate) fn namespace(project_name: &str) -> String {
    format!("runai-{project_name}")
}

/// What a creation asks for, in that department.
pub(crate) fn creation(
    request: ProjectCreationRequest,
    department_id: u64,
) -> Result<ProjectSpec, Fault> {
    units::check_name(&request.name).map_err(|why| Fault::bad(why.to_string()))?;
    let rules = request.scheduling_rules.as_ref().map(rules).transpose()?;
    check_common(request.enforce_runai_scheduler)?;
    let own = namespace(&request.name);
    if request.requested_namespace.is_some_and(|asked| asked != own) {
        return Err(Fault::not_yet(format!("a requestedNamespace other than `{own}`")));
    }
    let (share, pool_shares) = Asked::read(&request.resources)?.anew();
    Ok(ProjectSpec {
        department_id,
        name: request.name,
        description: request.description.unwrap_or_default(),
        share: share.unwrap_or(SHARE_DEFAULT),
        pool_shares,
        rules: rules.unwrap_or_default(),
        default_pools: request.default_node_pools.unwrap_or_default(),
        node_types: request.node_types.map(node_types).unwrap_or_default(),
    })
}

/// What an update makes of a project: resources as in a creation, a description that is left out
/// is kept.
pub(crate) fn update(request: ProjectUpdateRequest) -> Result<OrgChange, Fault> {
    let rules = request.scheduling_rules.as_ref().map(rules).transpose()?;
    check_common(request.enforce_runai_scheduler)?;
    Ok(OrgChange {
        description: request.description,
        rules,
        default_pools: request.default_node_pools,
        node_types: request.node_types.map(node_types),
        ..Asked::read(&request.resources)?.replacing()
    })
}

/// The department that a project is to belong to.
pub(crate) fn parent(asked: Option<&str>, departments: &Departments) -> Result<u64, Fault> {
    let Some(id) = asked else { return Ok(DEPARTMENT_DEFAULT) };
    let found = id.parse().ok().filter(|id| departments.contains_key(id));
    let why = || format!("there is no department `{}`", units::shown(id));
    found.ok_or_else(|| Fault::field("parentId", why()))
}

fn check_common(enforce: Option<bool>) -> Result<(), Fault> {
    if enforce == Some(false) {
        return Err(Fault::not_yet("enforceRunaiScheduler false"));
    }
    Ok(())
}

/// Types of nodes from the wire.
pub(super) fn node_types(wire: NodeTypesPerWorkload) -> NodeTypes {
    NodeTypes { training: wire.training, workspace: wire.workspace, names: wire.names }
}

/// Types of nodes to the wire.
pub(super) fn node_types_wire(types: &NodeTypes) -> NodeTypesPerWorkload {
    let NodeTypes { training, workspace, names } = types.clone();
    NodeTypesPerWorkload { training, workspace, names }
}

/// A project as the wire shows it.
pub(crate) fn project(view: &ProjectView, context: &Context) -> Project {
    Project {
        id: view.id.to_string(),
        name: view.name.clone(),
        cluster_id: context.cluster_id.clone(),
        description: view.description.clone(),
        parent_id: view.department_id.to_string(),
        parent: Parent { id: view.department_id.to_string(), name: view.department_name.clone() },
        requested_namespace: namespace(&view.name),
        enforce_runai_scheduler: true,
        created_at: view.created_at.into(),
        created_by: view.created_by.clone(),
        updated_at: view.updated_at.into(),
        updated_by: view.updated_by.clone(),
        status: ProjectStatus {
            namespace: namespace(&view.name),
            phase: "Ready".to_owned(),
            phase_message: String::new(),
            last_updated_time: context.now.into(),
            quota_status: quota_status(&view.standing),
            node_pool_quota_statuses: pool_quotas(&view.pools),
            additional_status_data: own_numbers(&view.standing),
        },
        total_resources: totals(&view.pools),
        resources: view.pools.iter().map(resources).collect(),
        scheduling_rules: rules_wire(view.rules),
        effective: ProjectEffective {
            scheduling_rules: rules_wire(view.effective_rules),
            default_node_pools: if view.effective_pools.is_empty() {
                view.pools.iter().map(|pool| pool.name.clone()).collect()
            } else {
                view.effective_pools.clone()
            },
            node_types: node_types_wire(&view.effective_types),
        },
        default_node_pools: view.default_pools.clone(),
        node_types: node_types_wire(&view.node_types),
    }
}

impl Row for ProjectView {
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

    fn field(&self, name: &str, _: units::Instant) -> Scalar<'_> {
        match name {
            "id" => Scalar::text(self.id.to_string()),
            "name" => Scalar::text(self.name.as_str()),
            "description" => Scalar::text(self.description.as_str()),
            "parentId" | "departmentId" => Scalar::text(self.department_id.to_string()),
            "parentName" | "departmentName" => Scalar::text(self.department_name.as_str()),
            "phase" => Scalar::text("Ready"),
            "totalGpuQuota" => Scalar::Number(gpu_quota_millis(&self.pools)),
            "gpuAllocated" => Scalar::Number(self.standing.allocated.gpu_millis),
            "createdAt" => Scalar::time(self.created_at),
            _ => Scalar::Absent,
        }
    }
}
