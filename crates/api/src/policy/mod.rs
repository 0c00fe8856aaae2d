//! Policies: what holds for the workloads submitted in a scope. Owns: how policies of nested scopes
//! go together. The nearest default counts; the rules of all of them must be kept, so that none
//! loosens one further out.

mod rules;

use api_types::{
    GpuRequestType, PolicyBody, PolicyMeta, PolicyV2, WorkloadSpec, asks_for_something,
};
use axum::http::StatusCode;
use control::view::WorkloadKind;
use control::{Object, Scope};
use serde::{Deserialize, Serialize};

use crate::State;
use crate::convert;
use crate::edge::Fault;
use crate::objects::{Family, Item};
use crate::scopes;

use rules::{Judged, Rules};

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
        WorkloadKind::Inference => "inference",
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
    let defaults = policies.iter().map(|policy| policy.body.body.defaults.clone());
    let defaults =
        defaults.fold(WorkloadSpec::default(), |near, far| near.over(far.unwrap_or_default()));
    *spec = std::mem::take(spec).over(defaults.clone());
    let judged =
        Judged { said: spec, means: &meant(kind, spec), left_alone: &meant(kind, &defaults) };
    let mut broken = Vec::new();
    for policy in &policies {
        let all = Rules::read(policy.body.body.rules.as_ref())?.broken_by(&judged);
        let by = by(policy);
        broken.extend(all.into_iter().map(|why| format!("{why} {by}")));
    }
    refuse(broken)
}

fn refuse(broken: Vec<String>) -> Result<(), Fault> {
    if broken.is_empty() {
        return Ok(());
    }
    Err(Fault::new(StatusCode::BAD_REQUEST, broken.join("; ")))
}

/// Whose policy, for people.
fn by(policy: &Item<Policy>) -> String {
    let whose = scopes::word(scopes::kind_of(policy.object.scope));
    format!("(policy `{}` of the {whose})", policy.body.name)
}

/// A specification as it will be taken: with every default, and a whole GPU as all of it.
fn meant(kind: WorkloadKind, spec: &WorkloadSpec) -> WorkloadSpec {
    let mut means = convert::with_defaults(kind, spec.clone());
    if let Some(compute) = &mut means.compute {
        let none = compute.gpu_devices_request.as_ref().is_some_and(|n| n.as_f64() == Some(0.0));
        if compute.gpu_request_type.is_none() && !none {
            compute.gpu_request_type = Some(GpuRequestType::Portion);
            compute.gpu_portion_request = Some(1.into());
        }
    }
    means
}

/// Refuses a policy whose defaults those further out do not allow: nobody could submit anything.
pub(crate) fn check_around(
    state: &State,
    kind: WorkloadKind,
    scope: Scope,
    body: &PolicyBody,
) -> Result<(), Fault> {
    let defaults = body.defaults.clone().unwrap_or_default();
    let mut broken = Vec::new();
    for policy in holding(state, kind, scope)?.iter().filter(|policy| policy.object.scope != scope)
    {
        let outer = policy.body.body.defaults.clone().unwrap_or_default();
        let all =
            Rules::read(policy.body.body.rules.as_ref())?.broken_by_defaults(&defaults, &outer);
        let by = by(policy);
        broken.extend(all.into_iter().map(|why| format!("{why} {by}")));
    }
    refuse(broken)
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
    refuse(Rules::read(body.rules.as_ref())?.broken_by_defaults(&defaults, &defaults))
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
