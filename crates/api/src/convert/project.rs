//! Projects in both directions. Owns: the defaults of a share, and what of the published
//! resources one node pool and one weight can express.

use std::collections::BTreeMap;

use api_types::{
    DEPARTMENT_ID, DEPARTMENT_NAME, Millis, NODE_POOL_ID, NODE_POOL_NAME, NodePoolQuota, Parent,
    Project, ProjectCreationRequest, ProjectEffective, ProjectStatus, ProjectUpdateRequest,
    QuotaResource, QuotaStatus, ResourceShare, Resources, ResourcesMemory, ResourcesNodePool,
    ShareRequest, TotalResources, Units, number_from_millis,
};
use control::view::{ProjectView, Share};
use control::{ProjectChange, ProjectSpec, ShareChange};
use serde_json::{Number, json};

use super::Context;
use crate::edge::{Fault, Row, Scalar, Type};

/// Weight of a project that names none: the published "medium".
const WEIGHT_DEFAULT: u64 = 2;

/// The share of a project that says nothing.
pub(crate) const SHARE_DEFAULT: Share = Share {
    gpu_quota_millis: 0,
    gpu_limit_millis: None,
    over_quota_weight: WEIGHT_DEFAULT,
    cpu_quota_millis: None,
    memory_quota_bytes: None,
};

/// The namespace of a project.
pub(crate) fn namespace(project_name: &str) -> String {
    format!("runai-{project_name}")
}

/// What a creation asks for.
pub(crate) fn creation(request: ProjectCreationRequest) -> Result<ProjectSpec, Fault> {
    units::check_name(&request.name).map_err(|why| Fault::bad(why.to_string()))?;
    refuse_later(&request.scheduling_rules, "schedulingRules")?;
    refuse_later(&request.node_types, "nodeTypes")?;
    check_common(request.enforce_runai_scheduler, request.default_node_pools.as_deref())?;
    if let Some(parent) = request.parent_id.filter(|id| id != DEPARTMENT_ID) {
        return Err(Fault::field("parentId", format!("there is no department `{parent}`")));
    }
    let own = namespace(&request.name);
    if request.requested_namespace.is_some_and(|asked| asked != own) {
        return Err(Fault::not_yet(format!("a requestedNamespace other than `{own}`")));
    }
    let share = shares(&request.resources, SHARE_DEFAULT)?;
    let description = request.description.unwrap_or_default();
    Ok(ProjectSpec { name: request.name, description, share })
}

/// What an update makes of a project: resources as in a creation, a description that is left out
/// is kept.
pub(crate) fn update(request: ProjectUpdateRequest) -> Result<ProjectChange, Fault> {
    refuse_later(&request.scheduling_rules, "schedulingRules")?;
    refuse_later(&request.node_types, "nodeTypes")?;
    check_common(request.enforce_runai_scheduler, request.default_node_pools.as_deref())?;
    let share = shares(&request.resources, SHARE_DEFAULT)?.into();
    Ok(ProjectChange { name: None, description: request.description, share })
}

fn refuse_later(value: &api_types::Later, name: &str) -> Result<(), Fault> {
    if api_types::asks_for_something(value) { Err(Fault::not_yet(name)) } else { Ok(()) }
}

fn check_common(enforce: Option<bool>, pools: Option<&[String]>) -> Result<(), Fault> {
    if enforce == Some(false) {
        return Err(Fault::not_yet("enforceRunaiScheduler false"));
    }
    let other = pools.unwrap_or_default().iter().find(|pool| *pool != NODE_POOL_NAME);
    match other {
        Some(pool) => Err(Fault::field("defaultNodePools", format!("no node pool `{pool}`"))),
        None => Ok(()),
    }
}

/// The share that resources describe; what they leave out is taken from `base`.
pub(crate) fn shares(resources: &[ShareRequest], base: Share) -> Result<Share, Fault> {
    Ok(share_change(resources, base.over_quota_weight)?.made_to(base))
}

/// What resources say; what they leave out is left out. `weight` is the one that counts where they
/// name none.
pub(crate) fn share_change(resources: &[ShareRequest], weight: u64) -> Result<ShareChange, Fault> {
    let [resource] = resources else {
        let why = format!("has {} entries; there is one node pool, so use one", resources.len());
        return Err(Fault::field("resources", why));
    };
    if let Some(pool) = resource.node_pool.as_ref().filter(|pool| pool.id != NODE_POOL_ID) {
        let why = format!("there is no node pool with id `{}`; use {NODE_POOL_ID}", pool.id);
        return Err(Fault::field("resources[0].nodePool", why));
    }
    refuse_later(&resource.priority, "resources[0].priority")?;
    refuse_later(&resource.rank, "resources[0].rank")?;
    let mut change = ShareChange::default();
    if let Some(gpu) = &resource.gpu {
        change.gpu_quota_millis = match quota("gpu.deserved", gpu.deserved.as_ref())? {
            Bound::Kept => None,
            Bound::At(millis) => Some(millis),
            Bound::Unlimited => {
                let why = "`-1` is negative; the smallest amount is 0";
                return Err(Fault::field("resources[0].gpu.deserved", why));
            }
        };
        change.gpu_limit_millis = match quota("gpu.limit", gpu.limit.as_ref())? {
            Bound::Kept => None,
            Bound::At(millis) => Some(Some(millis)),
            Bound::Unlimited => Some(None),
        };
        let weight = gpu.over_quota_weight.as_ref();
        change.over_quota_weight = weight.map(|n| whole("gpu.overQuotaWeight", n)).transpose()?;
    }
    let weight = change.over_quota_weight.unwrap_or(weight);
    if let Some(cpu) = &resource.cpu {
        refuse_rest("cpu", cpu.limit.as_ref(), cpu.over_quota_weight.as_ref(), weight)?;
        change.cpu_quota_millis = scaled("cpu.deserved", cpu.deserved.as_ref(), 1)?;
    }
    if let Some(memory) = &resource.memory {
        refuse_rest("memory", memory.limit.as_ref(), memory.over_quota_weight.as_ref(), weight)?;
        let unit = memory.units.bytes();
        change.memory_quota_bytes = scaled("memory.deserved", memory.deserved.as_ref(), unit)?;
    }
    Ok(change)
}

/// What a number says about a bound.
enum Bound {
    Kept,
    At(u64),
    Unlimited,
}

/// A bound in thousandths.
fn quota(field: &str, number: Option<&Number>) -> Result<Bound, Fault> {
    let Some(number) = number else { return Ok(Bound::Kept) };
    let text = super::decimal(number);
    if text == "-1" || text == "-1.0" {
        return Ok(Bound::Unlimited);
    }
    let millis = units::parse_cpu_millis(&text);
    millis.map(Bound::At).map_err(|why| Fault::field(&format!("resources[0].{field}"), why))
}

fn whole(field: &str, number: &Number) -> Result<u64, Fault> {
    let field = format!("resources[0].{field}");
    let text = super::decimal(number);
    let millis = units::parse_cpu_millis(&text).map_err(|why| Fault::field(&field, why))?;
    if !millis.is_multiple_of(1000) {
        return Err(Fault::field(&field, format!("`{text}` is not whole; use 0, 1, 2, …")));
    }
    Ok(millis / 1000)
}

fn scaled(field: &str, number: Option<&Number>, unit: u64) -> Result<Option<Option<u64>>, Fault> {
    match quota(field, number)? {
        Bound::Kept => Ok(None),
        Bound::Unlimited => Ok(Some(None)),
        Bound::At(millis) => {
            let amount = u128::from(millis) * u128::from(unit) / 1000;
            let too_large = |_| Fault::field(&format!("resources[0].{field}"), "is too large");
            u64::try_from(amount).map(|amount| Some(Some(amount))).map_err(too_large)
        }
    }
}

/// CPU and memory have a quota, no limit, and the weight of the GPUs.
fn refuse_rest(
    name: &str,
    limit: Option<&Number>,
    weight: Option<&Number>,
    of_gpus: u64,
) -> Result<(), Fault> {
    if limit.is_some_and(|limit| limit.as_i64() != Some(-1)) {
        return Err(Fault::not_yet(format!("resources[0].{name}.limit")));
    }
    match weight {
        Some(weight) => {
            let field = format!("{name}.overQuotaWeight");
            if whole(&field, weight)? == of_gpus {
                return Ok(());
            }
            Err(Fault::not_yet(format!("resources[0].{field} other than that of gpu")))
        }
        None => Ok(()),
    }
}

/// A project as the wire shows it.
pub(crate) fn project(view: &ProjectView, context: &Context) -> Project {
    let quota = QuotaStatus {
        allocated: amounts(view.allocated),
        allocated_non_preemptible: amounts(view.allocated_non_preemptible),
        requested: amounts(view.requested),
    };
    let pool = NodePoolQuota {
        node_pool_name: NODE_POOL_NAME.to_owned(),
        node_pool_id: NODE_POOL_ID.to_owned(),
        quota,
    };
    let mut own = BTreeMap::from([("fairShare".to_owned(), json!(amounts(view.fair_share)))]);
    own.extend(view.usage.map(|usage| {
        let ppm = json!({"gpu": usage.gpu_ppm, "cpu": usage.cpu_ppm, "memory": usage.memory_ppm});
        ("usagePpm".to_owned(), ppm)
    }));
    Project {
        id: view.id.to_string(),
        name: view.name.clone(),
        cluster_id: context.cluster_id.clone(),
        description: view.description.clone(),
        parent_id: DEPARTMENT_ID.to_owned(),
        parent: Parent { id: DEPARTMENT_ID.to_owned(), name: DEPARTMENT_NAME.to_owned() },
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
            quota_status: quota,
            node_pool_quota_statuses: vec![pool],
            additional_status_data: own,
        },
        total_resources: totals(&view.share),
        resources: vec![resources(&view.share)],
        effective: ProjectEffective {
            default_node_pools: vec![NODE_POOL_NAME.to_owned()],
            ..ProjectEffective::default()
        },
    }
}

fn amounts(of: units::Resources) -> QuotaResource {
    QuotaResource { gpu: Millis(of.gpu_millis), cpu: of.cpu_millis, memory: of.memory_bytes }
}

/// Quotas over all pools.
pub(super) fn totals(share: &Share) -> TotalResources {
    TotalResources {
        gpu_quota: Millis(share.gpu_quota_millis),
        cpu_quota: share.cpu_quota_millis,
        memory_quota: share.memory_quota_bytes.map(|bytes| bytes / Units::Mib.bytes()),
    }
}

/// Shares in the one pool there is. What is unlimited is -1, so that a reader sees it said.
pub(super) fn resources(share: &Share) -> Resources {
    let weight = Some(Number::from(share.over_quota_weight));
    let unlimited = || Number::from(-1);
    let (memory, units) = memory_quota(share.memory_quota_bytes);
    Resources {
        node_pool: ResourcesNodePool {
            id: NODE_POOL_ID.to_owned(),
            name: Some(NODE_POOL_NAME.to_owned()),
        },
        gpu: ResourceShare {
            deserved: Some(number_from_millis(share.gpu_quota_millis)),
            limit: Some(share.gpu_limit_millis.map_or_else(unlimited, number_from_millis)),
            over_quota_weight: weight.clone(),
        },
        cpu: ResourceShare {
            deserved: Some(share.cpu_quota_millis.map_or_else(unlimited, Number::from)),
            limit: Some(unlimited()),
            over_quota_weight: weight.clone(),
        },
        memory: ResourcesMemory {
            deserved: Some(memory),
            limit: Some(unlimited()),
            over_quota_weight: weight,
            units,
        },
    }
}

/// A memory quota in the unit in which it is whole.
fn memory_quota(bytes: Option<u64>) -> (Number, Units) {
    let Some(bytes) = bytes else { return (Number::from(-1), Units::Mib) };
    let unit = if bytes.is_multiple_of(Units::Mib.bytes()) { Units::Mib } else { Units::MB };
    (number_from_millis(millis_of(bytes, unit.bytes())), unit)
}

/// `bytes / unit` in thousandths, rounded down.
fn millis_of(bytes: u64, unit: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1000 / u128::from(unit)).unwrap_or(u64::MAX)
}

impl Row for ProjectView {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("name", Type::Text),
        ("description", Type::Text),
        ("parentId", Type::Text),
        ("departmentId", Type::Text),
        ("parentName", Type::Text),
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
            "parentId" | "departmentId" => Scalar::text(DEPARTMENT_ID),
            "parentName" => Scalar::text(DEPARTMENT_NAME),
            "phase" => Scalar::text("Ready"),
            "totalGpuQuota" => Scalar::Number(self.share.gpu_quota_millis),
            "gpuAllocated" => Scalar::Number(self.allocated.gpu_millis),
            "createdAt" => Scalar::time(self.created_at),
            _ => Scalar::Absent,
        }
    }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
