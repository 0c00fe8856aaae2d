//! The effects of a change on quotas and workloads, before it is made.

use access::Caller;
use api_types::{LabelsOf, PoolLabel, QuotaChange, QuotaEffects, SharesOf};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::State as FromState;
use axum::{Extension, Json};
use http_kit::{ApiError, Body};
use orchestrator::{NodeChange, OrgChange};
use view::{OrgUnit, Scope, View};

use super::nodes::of_change;
use crate::ApiState;
use crate::drain_effects::Drain;
use crate::quota_effects::{PoolEdit, of_pools, of_shares};

/// Answers a change that is considered with its effects. Changes nothing.
pub(super) async fn shown(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<QuotaChange>,
) -> Result<Json<QuotaEffects>, ApiError> {
    let view = state.control.view();
    let effects = match only(asked)? {
        Change::Create(PoolLabel { name, label_key, label_value }) => {
            caller.must(Update, Resource::NodePools, Scope::Tenant)?;
            let label = (label_key, label_value);
            of_pools(&view, PoolEdit::Create { name: &name, label: &label })
        }
        Change::Delete(id) => {
            caller.must(Update, Resource::NodePools, Scope::Tenant)?;
            of_pools(&view, PoolEdit::Delete { id: &id })
        }
        Change::Node(LabelsOf { name, labels }) => {
            caller.must(Update, Resource::Nodes, Scope::Tenant)?;
            view.nodes
                .iter()
                .find(|node| node.name == name)
                .ok_or_else(|| ApiError::no_such("node", &name))?;
            of_change(&view, &name, &NodeChange { labels, ..NodeChange::default() })
        }
        Change::Drain(name) => {
            caller.must(Update, Resource::Nodes, Scope::Tenant)?;
            view.nodes
                .iter()
                .find(|node| node.name == name)
                .ok_or_else(|| ApiError::no_such("node", &name))?;
            Drain::considered((&state, &caller), &name).await?.effects()
        }
        Change::Project(asked) => {
            let found = number(&asked).and_then(|id| view.projects.get(&id));
            let project = found.ok_or_else(|| ApiError::no_such("project", &asked.id))?;
            caller.must(Read, Resource::Project, Scope::Project(project.unit.id))?;
            of_shares(&project.unit, &change(&asked)?)
        }
        Change::Department(asked) => {
            let department = department(&view, &asked)?;
            caller.must(Read, Resource::Department, Scope::Department(department.id))?;
            of_shares(department, &change(&asked)?)
        }
    };
    Ok(Json(effects.shown()))
}

/// A change that is considered.
enum Change {
    Create(PoolLabel),
    Delete(String),
    Node(LabelsOf),
    Drain(String),
    Project(SharesOf),
    Department(SharesOf),
}

/// The one change of a body.
fn only(asked: QuotaChange) -> Result<Change, ApiError> {
    let QuotaChange {
        create_node_pool,
        delete_node_pool,
        label_node,
        drain_node,
        project,
        department,
    } = asked;
    let all = [
        create_node_pool.map(Change::Create),
        delete_node_pool.map(Change::Delete),
        label_node.map(Change::Node),
        drain_node.map(Change::Drain),
        project.map(Change::Project),
        department.map(Change::Department),
    ];
    let mut given = all.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(change), None) => Ok(change),
        _ => Err(ApiError::bad(
            "send one of createNodePool, deleteNodePool, labelNode, drainNode, project and \
             department"
                .to_owned(),
        )),
    }
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
