//! Conversion of departments from and to the wire.

use api_types::{
    DepartmentCreationRequest, DepartmentForList, DepartmentProjectChild, DepartmentStatus,
    DepartmentUpdateRequest,
};
use http_kit::{ApiError, Row, Scalar, Type};
use orchestrator::OrgChange;
use units::Instant;
use view::{OrgUnit, View};

use super::Context;
use super::project::{node_types, node_types_wire};
use super::rules::{rules, rules_wire};
use super::share::{
    gpu_quota_millis, own_numbers, pool_quotas, quota_status, resources, shares, totals,
};

/// Converts a creation. A department without resources has the sum of its projects' resources.
pub fn department_creation(request: DepartmentCreationRequest) -> Result<OrgChange, ApiError> {
    units::check_name(&request.name).map_err(|why| ApiError::bad(why.to_string()))?;
    Ok(OrgChange {
        name: Some(request.name),
        description: request.description,
        shares: shares(&request.resources)?,
        replaces_shares: true,
        rules: request.scheduling_rules.as_ref().map(rules).transpose()?,
        default_pools: request.default_node_pools,
        node_types: request.node_types.map(node_types),
        namespaces: None,
    })
}

/// Converts an update; values that are not given are unchanged.
pub fn department_update(request: DepartmentUpdateRequest) -> Result<OrgChange, ApiError> {
    Ok(OrgChange {
        name: None,
        description: request.description,
        shares: shares(&request.resources)?,
        replaces_shares: !request.resources.is_empty(),
        rules: request.scheduling_rules.as_ref().map(rules).transpose()?,
        default_pools: request.default_node_pools,
        node_types: request.node_types.map(node_types),
        namespaces: None,
    })
}

/// Converts a department to the wire.
pub fn department(of: &OrgUnit, view: &View, context: &Context) -> DepartmentForList {
    let children = view.projects.values().filter(|project| project.department_id == of.id);
    DepartmentForList {
        id: of.id.to_string(),
        name: of.name.clone(),
        cluster_id: context.cluster_id.clone(),
        description: of.description.clone(),
        created_at: of.created_at.into(),
        created_by: of.created_by.clone(),
        updated_at: of.updated_at.into(),
        updated_by: of.updated_by.clone(),
        children: children
            .map(|project| DepartmentProjectChild {
                id: project.unit.id.to_string(),
                name: project.unit.name.clone(),
            })
            .collect(),
        status: DepartmentStatus {
            quota_status: quota_status(&of.status),
            node_pool_quota_statuses: pool_quotas(&of.pools),
            additional_status_data: own_numbers(&of.status),
        },
        scheduling_rules: rules_wire(of.rules),
        default_node_pools: of.default_pools.clone(),
        node_types: node_types_wire(&of.node_types),
        total_resources: totals(&of.pools),
        resources: of.pools.iter().map(resources).collect(),
    }
}

impl Row<crate::Listed> for OrgUnit {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("name", Type::Text),
        ("description", Type::Text),
        ("totalGpuQuota", Type::Number),
        ("gpuAllocated", Type::Number),
        ("createdAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "description"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "id" => Scalar::text(self.id.to_string()),
            "name" => Scalar::text(self.name.as_str()),
            "description" => Scalar::text(self.description.as_str()),
            "totalGpuQuota" => Scalar::Number(gpu_quota_millis(&self.pools)),
            "gpuAllocated" => Scalar::Number(self.status.allocated.gpu_millis),
            "createdAt" => Scalar::time(self.created_at),
            _ => Scalar::Absent,
        }
    }
}
