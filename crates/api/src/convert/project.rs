//! Projects in both directions.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::{
    NODE_POOL_NAME, Parent, Project, ProjectCreationRequest, ProjectEffective, ProjectStatus,
    ProjectUpdateRequest,
};
use control::view::{DepartmentView, ProjectView};
use control::{DEPARTMENT_DEFAULT, OrgChange, ProjectSpec};

use super::Context;
use super::rules::{rules, rules_wire};
use super::share::{
    SHARE_DEFAULT, own_numbers, pool_quotas, quota_status, refuse_later, resources, shares, totals,
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
    refuse_later(&request.node_types, "nodeTypes")?;
    check_common(request.enforce_runai_scheduler, request.default_node_pools.as_deref())?;
    let own = namespace(&request.name);
    if request.requested_namespace.is_some_and(|asked| asked != own) {
        return Err(Fault::not_yet(format!("a requestedNamespace other than `{own}`")));
    }
    let share = shares(&request.resources, SHARE_DEFAULT)?;
    let description = request.description.unwrap_or_default();
    Ok(ProjectSpec {
        department_id,
        name: request.name,
        description,
        share,
        rules: rules.unwrap_or_default(),
    })
}

/// What an update makes of a project: resources as in a creation, a description that is left out
/// is kept.
pub(crate) fn update(request: ProjectUpdateRequest) -> Result<OrgChange, Fault> {
    let rules = request.scheduling_rules.as_ref().map(rules).transpose()?;
    refuse_later(&request.node_types, "nodeTypes")?;
    check_common(request.enforce_runai_scheduler, request.default_node_pools.as_deref())?;
    let share = shares(&request.resources, SHARE_DEFAULT)?.into();
    Ok(OrgChange { name: None, description: request.description, share, rules })
}

/// The department that a project is to belong to.
pub(crate) fn parent(asked: Option<&str>, departments: &Departments) -> Result<u64, Fault> {
    let Some(id) = asked else { return Ok(DEPARTMENT_DEFAULT) };
    let found = id.parse().ok().filter(|id| departments.contains_key(id));
    let why = || format!("there is no department `{}`", units::shown(id));
    found.ok_or_else(|| Fault::field("parentId", why()))
}

pub(super) fn check_common(enforce: Option<bool>, pools: Option<&[String]>) -> Result<(), Fault> {
    if enforce == Some(false) {
        return Err(Fault::not_yet("enforceRunaiScheduler false"));
    }
    let other = pools.unwrap_or_default().iter().find(|pool| *pool != NODE_POOL_NAME);
    match other {
        Some(pool) => Err(Fault::field("defaultNodePools", format!("no node pool `{pool}`"))),
        None => Ok(()),
    }
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
            node_pool_quota_statuses: pool_quotas(&view.standing),
            additional_status_data: own_numbers(&view.standing),
        },
        total_resources: totals(&view.share),
        resources: vec![resources(&view.share)],
        scheduling_rules: rules_wire(view.rules),
        effective: ProjectEffective {
            scheduling_rules: rules_wire(view.effective_rules),
            default_node_pools: vec![NODE_POOL_NAME.to_owned()],
        },
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
            "totalGpuQuota" => Scalar::Number(self.share.gpu_quota_millis),
            "gpuAllocated" => Scalar::Number(self.standing.allocated.gpu_millis),
            "createdAt" => Scalar::time(self.created_at),
            _ => Scalar::Absent,
        }
    }
}
