//! Policies: what holds for the workloads submitted in a scope. Owns: how policies of nested scopes
//! go together. The nearest default counts; the rules of all of them must be kept, so that none
//! loosens one further out.

mod rules;

use api_types::{PolicyBody, PolicyMeta, PolicyV2, WorkloadSpec, asks_for_something};
use axum::http::StatusCode;
use control::view::WorkloadKind;
use control::{Object, Scope};
use serde::{Deserialize, Serialize};

use crate::State;
use crate::convert;
use crate::edge::Fault;
use crate::objects::{Family, Item};
use crate::scopes;

use rules::Rules;

/// A policy as it is kept; its object's name is the type of workloads it is for. Its content is
/// kept as it was given, in the published form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) body: PolicyBody,
}

impl Family for Policy {
    const KIND: &'static str = "policy";
}

/// The type of workloads of a kind, as policies are named.
pub(crate) const fn type_word(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Training => "training",
        WorkloadKind::Workspace => "workspace",
        WorkloadKind::Distributed => "distributed",
    }
}

/// The policies for a kind of workloads that hold in a scope, the nearest first.
fn holding(state: &State, kind: WorkloadKind, scope: Scope) -> Result<Vec<Item<Policy>>, Fault> {
    let near = scopes::around(scope, &state.control.view());
    let place = |object: &Object| near.iter().position(|outer| *outer == object.scope);
    let mut all = state.control.view().objects.all(Policy::KIND);
    all.retain(|object| object.name == type_word(kind) && place(object).is_some());
    all.sort_by_key(|object| place(object));
    Ok(all.iter().map(Item::of).collect::<Result<_, _>>()?)
}

/// Fills what a submission leaves out, and refuses what the rules do not allow.
pub(crate) fn apply(
    state: &State,
    kind: WorkloadKind,
    project: u64,
    spec: &mut WorkloadSpec,
) -> Result<(), Fault> {
    let policies = holding(state, kind, Scope::Project(project))?;
    for policy in &policies {
        let defaults = policy.body.body.defaults.clone().unwrap_or_default();
        *spec = std::mem::take(spec).over(defaults);
    }
    let mut broken = Vec::new();
    for policy in &policies {
        let body = &policy.body.body;
        let defaults = body.defaults.clone().unwrap_or_default();
        let whose = scopes::word(scopes::kind_of(policy.object.scope));
        let by = format!("(policy `{}` of the {whose})", policy.body.name);
        let all = Rules::read(body.rules.as_ref())?.broken_by(spec, &defaults);
        broken.extend(all.into_iter().map(|why| format!("{why} {by}")));
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Fault::new(StatusCode::BAD_REQUEST, broken.join("; ")))
}

/// Refuses a policy that can never be right.
pub(crate) fn check(body: &PolicyBody) -> Result<(), Fault> {
    if asks_for_something(&body.imposed_assets) {
        return Err(Fault::not_yet("policy.imposedAssets"));
    }
    let defaults = body.defaults.clone().unwrap_or_default();
    if let Some(field) = defaults.all_not_yet().first() {
        return Err(Fault::not_yet(format!("policy.defaults.{field}")));
    }
    if defaults.assets.is_some() {
        return Err(Fault::not_yet("policy.defaults.assets"));
    }
    convert::check_spec(&defaults).map_err(|fault| {
        let message = fault.message.replacen("spec.", "policy.defaults.", 1);
        Fault { message, ..fault }
    })?;
    match Rules::read(body.rules.as_ref())?.broken_by_defaults(&defaults).first() {
        Some(why) => Err(Fault::bad(why.replacen("spec.", "policy.defaults.", 1))),
        None => Ok(()),
    }
}

/// A policy as it is shown.
pub(crate) fn shown(item: &Item<Policy>) -> PolicyV2 {
    let (object, body) = (&item.object, &item.body);
    let (mut project_id, mut department_id) = (None, None);
    match object.scope {
        Scope::Project(id) => project_id = Some(id),
        Scope::Department(id) => department_id = Some(id.to_string()),
        _ => {}
    }
    let meta = PolicyMeta {
        id: object.id.clone(),
        name: body.name.clone(),
        workload_type: object.name.clone(),
        scope: scopes::kind_of(object.scope),
        project_id,
        department_id,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_by: object.updated_by.clone(),
        updated_at: object.updated_at.into(),
    };
    PolicyV2 { meta: Some(meta), policy: body.body.clone() }
}
