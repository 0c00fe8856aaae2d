//! Common routes of departments and projects: reading, changing and deleting one.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Caller;
use api_types::{CountResponse, Resources, ShareRequest};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use control::Handle;
use convert::{Context, some_shares};
use http_kit::{ApiError, Body, ListQuery, NoContent, QueryParameters, Row};
use orchestrator::OrgChange;
use spec::ShareChange;
use view::{OrgUnit, Scope, SharedMap, View};

use super::workload_kinds::pools_exist;
use crate::ApiState;
use crate::limit_permissions::check_bounds;
use crate::quota_effects::{Forced, QuotaEffects, agreed, of_shares};

/// Departments or projects.
pub(super) trait Unit: Sized + Send + Sync + 'static {
    /// Name of the kind, for messages.
    const NAME: &'static str;
    /// Resource of the kind in roles.
    const RESOURCE: Resource;
    /// Wire type of a unit.
    type Shown;
    /// The body of an update.
    type Update: Send;

    /// All units of this kind.
    fn all(view: &View) -> &SharedMap<u64, Arc<Self>>;
    /// Fields common to both kinds.
    fn unit(&self) -> &OrgUnit;
    /// The scope one level up.
    fn around(&self) -> Scope;
    /// Wire form of the unit.
    fn shown(&self, view: &View, context: &Context) -> Self::Shown;
    /// Shares per node pool in the wire form.
    fn shares(shown: Self::Shown) -> Vec<Resources>;
    /// Units that the caller may see.
    fn seen<'a>(view: &'a View, caller: &Caller) -> impl Iterator<Item = &'a Self>;
    /// Requested shares, which replace all existing ones.
    fn replacing_shares(asked: &[ShareRequest]) -> Result<BTreeMap<String, ShareChange>, ApiError>;
    /// Change that an update requests.
    fn requested_change(request: Self::Update) -> Result<OrgChange, ApiError>;
    /// Changes a unit.
    fn change(
        control: &Handle,
        by: &str,
        id: u64,
        change: OrgChange,
    ) -> impl Future<Output = Result<Arc<Self>, orchestrator::Error>> + Send;
    /// Deletes a unit.
    fn delete(
        control: &Handle,
        by: &str,
        id: u64,
    ) -> impl Future<Output = Result<(), orchestrator::Error>> + Send;
}

fn find<U: Unit>(state: &ApiState, id: &str) -> Result<Arc<U>, ApiError> {
    let view = state.control.view();
    let found = id.parse().ok().and_then(|id: u64| U::all(&view).get(&id).cloned());
    found.ok_or_else(|| ApiError::no_such(U::NAME, id))
}

pub(super) fn shown<U: Unit>(state: &ApiState, unit: &U) -> U::Shown {
    unit.shown(&state.control.view(), &state.context())
}

pub(super) async fn read<U: Unit>(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<U::Shown>, ApiError> {
    Ok(Json(shown(&state, &*find::<U>(&state, &id)?)))
}

pub(super) async fn count<U: Unit + Row<convert::Listed>>(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.count(U::seen(&state.control.view(), &caller), state.now())
}

/// `PUT`: an omitted field keeps its value.
pub(super) async fn update<U: Unit>(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    force: QueryParameters<Forced>,
    Body(request): Body<U::Update>,
) -> Result<Json<U::Shown>, ApiError> {
    let (now, forced) = (find::<U>(&state, &id)?, force.has("force"));
    save(&state, &caller, &*now, (U::requested_change(request)?, forced)).await.map(Json)
}

/// `PUT`: an omitted field gets its default.
pub(super) async fn replace_shares<U: Unit>(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    force: QueryParameters<Forced>,
    Body(request): Body<Vec<ShareRequest>>,
) -> Result<Json<Vec<Resources>>, ApiError> {
    let now = find::<U>(&state, &id)?;
    let change = OrgChange {
        shares: U::replacing_shares(&request)?,
        replaces_shares: true,
        ..OrgChange::default()
    };
    save(&state, &caller, &*now, (change, force.has("force"))).await.map(U::shares).map(Json)
}

/// `PATCH`: an omitted field keeps its value.
pub(super) async fn change_shares<U: Unit>(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    force: QueryParameters<Forced>,
    Body(request): Body<Vec<ShareRequest>>,
) -> Result<Json<Vec<Resources>>, ApiError> {
    let now = find::<U>(&state, &id)?;
    let change = OrgChange { shares: some_shares(&request)?, ..OrgChange::default() };
    save(&state, &caller, &*now, (change, force.has("force"))).await.map(U::shares).map(Json)
}

async fn save<U: Unit>(
    state: &ApiState,
    caller: &Caller,
    now: &U,
    (change, forced): (OrgChange, bool),
) -> Result<U::Shown, ApiError> {
    check_bounds(caller, (U::NAME, U::RESOURCE), (now.unit(), now.around()), &change)?;
    if let Some(names) = &change.default_pools {
        pools_exist(&state.control.view(), "defaultNodePools", names)?;
    }
    if U::RESOURCE == Resource::Project && change.shares.values().any(|one| !one.summed.is_none()) {
        let why = "has no projects below it: only the quota of a department can be their sum";
        return Err(ApiError::field("deservedFromProjects", why));
    }
    let (id, by, considered) = (now.unit().id, &caller.subject, change.clone());
    let effects = move |view: &View| {
        let unit = U::all(view).get(&id);
        unit.map_or_else(QuotaEffects::default, |unit| of_shares(unit.unit(), &considered))
    };
    let control = agreed(state.asked_by(caller), forced, effects);
    let saved = U::change(&control, by, id, change).await?;
    Ok(shown(state, &*saved))
}

pub(super) async fn delete<U: Unit>(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    let unit = find::<U>(&state, &id)?;
    U::delete(&state.asked_by(&caller), &caller.subject, unit.unit().id).await?;
    Ok(NoContent)
}
