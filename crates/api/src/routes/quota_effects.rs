//! The effects of a change on quotas, before it is made.

use access::Caller;
use api_types::{PoolLabel, QuotaChange, QuotaEffects, SharesOf};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::State as FromState;
use axum::{Extension, Json};
use http_kit::{ApiError, Body};
use orchestrator::OrgChange;
use view::{OrgUnit, Scope, View};

use crate::Shared;
use crate::quota_effects::{PoolEdit, of_pools, of_shares};

/// Answers a change that is considered with its effects. Changes nothing.
pub(super) async fn shown(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<QuotaChange>,
) -> Result<Json<QuotaEffects>, ApiError> {
    let view = state.control.view();
    let effects = match asked {
        QuotaChange {
            create_node_pool: Some(PoolLabel { name, label_key, label_value }),
            delete_node_pool: None,
            project: None,
            department: None,
        } => {
            caller.must(Update, Resource::NodePools, Scope::Tenant)?;
            let label = (label_key, label_value);
            of_pools(&view, PoolEdit::Create { name: &name, label: &label })
        }
        QuotaChange {
            create_node_pool: None,
            delete_node_pool: Some(id),
            project: None,
            department: None,
        } => {
            caller.must(Update, Resource::NodePools, Scope::Tenant)?;
            of_pools(&view, PoolEdit::Delete { id: &id })
        }
        QuotaChange {
            create_node_pool: None,
            delete_node_pool: None,
            project: Some(asked),
            department: None,
        } => {
            let found = number(&asked).and_then(|id| view.projects.get(&id));
            let project = found.ok_or_else(|| ApiError::no_such("project", &asked.id))?;
            caller.must(Read, Resource::Project, Scope::Project(project.unit.id))?;
            of_shares(&project.unit, &change(&asked)?)
        }
        QuotaChange {
            create_node_pool: None,
            delete_node_pool: None,
            project: None,
            department: Some(asked),
        } => {
            let department = department(&view, &asked)?;
            caller.must(Read, Resource::Department, Scope::Department(department.id))?;
            of_shares(department, &change(&asked)?)
        }
        _ => {
            let why = "send one of createNodePool, deleteNodePool, project and department";
            return Err(ApiError::bad(why.to_owned()));
        }
    };
    Ok(Json(effects.shown()))
}

fn number(asked: &SharesOf) -> Option<u64> {
    asked.id.parse().ok()
}

fn department<'v>(view: &'v View, asked: &SharesOf) -> Result<&'v OrgUnit, ApiError> {
    let found = number(asked).and_then(|id| view.departments.get(&id));
    found.map(AsRef::as_ref).ok_or_else(|| ApiError::no_such("department", &asked.id))
}

fn change(asked: &SharesOf) -> Result<OrgChange, ApiError> {
    let shares = convert::some_shares(&asked.resources)?;
    Ok(OrgChange { shares, ..OrgChange::default() })
}
