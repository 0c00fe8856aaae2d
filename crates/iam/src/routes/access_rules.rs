//! Access rules.

use std::str::FromStr as _;

use access::{Caller, Family, Item, Route, Where, scopes};
use api_types::{
    AccessRule as Wire, AccessRuleCreationFields, AccessRulesBatchAction,
    AccessRulesBatchCreateFields, AccessRulesBatchCreateResponse, AccessRulesBatchFields,
    AccessRulesPage, BatchFailure, BatchResponse, CountResponse, FailedAccessRule,
    MeAccessRulesResponse, ScopeType, SubjectType, TENANT_ID,
};
use auth::Action::{Create, Delete, Read};
use auth::{Principal, Resource, Role};
use axum::extract::{FromRef, FromRequestParts, Path, State as FromState};
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, delete, get, post};
use http_kit::{
    ApiError, Body, Created, ListQuery, NoContent, Row, Scalar, Type, date, flag, parameters,
};
use units::Instant;
use utoipa::openapi::schema::Type as SchemaType;
use uuid::Uuid;
use view::{Scope, View};

use super::{IamState, Listed};
use crate::Iam;
use crate::rules::{AccessRule, group_key};
use crate::subjects::{ServiceAccount, User};

/// Name of the one tenant.
const TENANT_NAME: &str = "default";

/// Most rules made or deleted in one request.
const BATCH_MAX: usize = 500;

/// Longest name of a group.
const GROUP_BYTES_MAX: usize = 200;

/// The routes of access rules.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let all = "/api/v1/authorization/access-rules";
    let one = "/api/v1/authorization/access-rules/{accessRuleId}";
    let count_all = "/api/v1/authorization/access-rules/count";
    let (mine, count_mine) =
        ("/api/v1/authorization/me/access-rules", "/api/v1/authorization/me/access-rules/count");
    let create_many = "/api/v1/authorization/access-rules/batch-create";
    let about_batch = "Takes many roles away";
    let about_many = "Gives many subjects a role in many scopes";
    let of = Resource::AccessRules;
    let rules = [
        get(all, "get_access_rules", "The access rules", list).needs(Read, of, Where::Anywhere),
        post(all, "create_access_rule", "Gives a subject a role in a scope", create).needs(
            Create,
            of,
            Where::Anywhere,
        ),
        get(count_all, "count_access_rules", "How many access rules", count).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(one, "get_access_rule", "An access rule", read).needs(Read, of, Where::Anywhere),
        delete(one, "delete_access_rule", "Takes a role away", remove).needs(
            Delete,
            of,
            Where::Anywhere,
        ),
        post("/api/v1/authorization/access-rules/batch", "access_rules_batch", about_batch, batch)
            .needs(Delete, of, Where::Anywhere),
        post(create_many, "access_rules_batch_create", about_many, batch_create).needs(
            Create,
            of,
            Where::Anywhere,
        ),
        get(mine, "get_me_access_rules", "The caller's own access rules", own).own(),
        get(count_mine, "count_me_access_rules", "How many the caller has", count_own).own(),
    ];
    rules.into_iter().map(|route| route.of("AccessRules").rows::<Wire, _>())
}

pub(super) fn scope_wire(iam: &Iam, view: &View, scope: Scope) -> (ScopeType, String, String) {
    let cluster = iam.control.cluster();
    match scope {
        Scope::System => (ScopeType::System, TENANT_ID.to_string(), "system".to_owned()),
        Scope::Tenant => (ScopeType::Tenant, TENANT_ID.to_string(), TENANT_NAME.to_owned()),
        Scope::Cluster => (ScopeType::Cluster, cluster.uuid.to_string(), cluster.name.clone()),
        Scope::Department(id) => {
            let name = view.departments.get(&id).map(|department| department.name.clone());
            (ScopeType::Department, id.to_string(), name.unwrap_or_default())
        }
        Scope::Project(id) => {
            let name = view.projects.get(&id).map(|project| project.unit.name.clone());
            (ScopeType::Project, id.to_string(), name.unwrap_or_default())
        }
    }
}

fn wire(iam: &IamState, view: &View, rule: &Item<AccessRule>) -> Wire {
    let object = &rule.object;
    let (scope_type, scope_id, scope_name) = scope_wire(iam, view, object.scope);
    let subject_type = match Principal::from_str(&object.owner) {
        _ if rule.body.group => SubjectType::Group,
        Ok(Principal::User(_)) => SubjectType::User,
        _ => SubjectType::ServiceAccount,
    };
    let role = Role::by_id(rule.body.role_id);
    let below_cluster = matches!(object.scope, Scope::Department(_) | Scope::Project(_));
    Wire {
        // Numbered objects have the number as their id.
        id: object.seq,
        subject_id: rule.body.subject_id.clone(),
        subject_type,
        role_id: rule.body.role_id,
        role_name: role.map(|role| role.name.to_owned()).unwrap_or_default(),
        scope_id,
        scope_type,
        scope_name,
        cluster_id: below_cluster.then(|| iam.control.cluster().uuid.to_string()),
        tenant_id: TENANT_ID,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_at: object.updated_at.into(),
    }
}

impl Row<Listed> for Wire {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("subjectId", Type::Text),
        ("subjectType", Type::Text),
        ("roleId", Type::Number),
        ("roleName", Type::Text),
        ("scopeId", Type::Text),
        ("scopeType", Type::Text),
        ("scopeName", Type::Text),
        ("createdAt", Type::Time),
        ("createdBy", Type::Text),
        ("phase", Type::Text),
    ];
    const SEARCHED: &'static [&'static str] = &["subjectId", "roleName", "scopeName"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "subjectId" => Scalar::text(self.subject_id.as_str()),
            "subjectType" => Scalar::text(subject_word(self.subject_type)),
            "roleId" => Scalar::count(self.role_id),
            "roleName" => Scalar::text(self.role_name.as_str()),
            "scopeId" => Scalar::text(self.scope_id.as_str()),
            "scopeType" => Scalar::text(scopes::word(self.scope_type)),
            "scopeName" => Scalar::text(self.scope_name.as_str()),
            "createdAt" => Scalar::time(self.created_at.0),
            "createdBy" => Scalar::text(self.created_by.as_str()),
            "phase" => Scalar::text("Ready"),
            _ => Scalar::Absent,
        }
    }
}

const fn subject_word(kind: SubjectType) -> &'static str {
    match kind {
        SubjectType::User => "user",
        SubjectType::App => "app",
        SubjectType::ServiceAccount => "service-account",
        SubjectType::Group => "group",
    }
}

/// A list query with the older parameters of this family beside it.
#[derive(Default)]
pub(super) struct RulesQuery {
    list: ListQuery,
    /// Any of these.
    subjects: Option<Vec<String>>,
    updated_from: Option<Instant>,
    cluster: Option<String>,
}

/// Older parameters, with the condition that each one is short for.
const OLDER: [(&str, &str); 5] = [
    ("subjectType", "subjectType=="),
    ("subjectIdFilter", "subjectId=@"),
    ("scopeType", "scopeType=="),
    ("scopeId", "scopeId=="),
    ("roleId", "roleId=="),
];

impl Input for RulesQuery {
    fn describe(to: &mut Description) {
        ListQuery::describe(to);
        for (name, condition) in OLDER {
            to.parameter(name, SchemaType::String, &format!("The same as filterBy={condition}…"));
        }
        to.parameter("subjectIds", SchemaType::String, "Of these subjects, separated by commas");
        to.parameter("lastUpdated", SchemaType::String, "Made or changed at this time or later");
        to.parameter("includeDeleted", SchemaType::Boolean, "Changes nothing here");
        to.parameter("clusterId", SchemaType::String, "Of this cluster; there is one");
    }
}

impl<S: Sync> FromRequestParts<S> for RulesQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (mut pairs, mut query) = (Vec::new(), Self::default());
        for (name, value) in parameters(&parts.uri)? {
            match (name.as_str(), OLDER.iter().find(|(older, _)| *older == name)) {
                ("includeDeleted", _) => drop(flag(&name, &value)?),
                ("clusterId", _) => query.cluster = Some(value),
                ("subjectIds", _) => {
                    let more = value.split(',').map(str::to_owned);
                    query.subjects.get_or_insert_default().extend(more);
                }
                ("lastUpdated", _) => {
                    let why = "is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z";
                    let from = date(&value).ok_or_else(|| ApiError::field(&name, why))?;
                    query.updated_from = Some(from);
                }
                (_, Some(_)) if value.contains(',') => {
                    return Err(ApiError::field(&name, "is more than one value; send one"));
                }
                (_, Some((_, condition))) => {
                    pairs.push(("filterBy".to_owned(), format!("{condition}{value}")));
                }
                (_, None) => pairs.push((name, value)),
            }
        }
        Ok(Self { list: ListQuery::parse(&pairs)?, ..query })
    }
}

impl RulesQuery {
    /// True if a rule is one of those that the older parameters leave.
    fn has(&self, rule: &Wire, iam: &IamState) -> bool {
        let is_own = |id: &String| *id == iam.control.cluster().uuid.to_string();
        self.subjects.as_ref().is_none_or(|any| any.contains(&rule.subject_id))
            && self.updated_from.is_none_or(|from| rule.updated_at.0 >= from)
            && self.cluster.as_ref().is_none_or(is_own)
    }
}

/// Rules that the caller may see and the query selects.
fn asked_for(iam: &IamState, caller: &Caller, query: &RulesQuery) -> Result<Vec<Wire>, ApiError> {
    let mut all = seen(iam, caller)?;
    all.retain(|rule| query.has(rule, iam));
    Ok(all)
}

/// The rules that the caller may see.
fn seen(iam: &IamState, caller: &Caller) -> Result<Vec<Wire>, ApiError> {
    let view = iam.control.view();
    let all = iam.all::<AccessRule>()?;
    let seen = all
        .iter()
        .filter(|rule| caller.may(Read, Resource::AccessRules, rule.object.scope))
        .map(|rule| wire(iam, &view, rule));
    Ok(seen.collect())
}

/// The rules of the caller itself and its groups.
fn of_caller(iam: &IamState, caller: &Caller) -> Result<Vec<Wire>, ApiError> {
    let view = iam.control.view();
    let mut subjects: Vec<String> = caller.groups.iter().map(|group| group_key(group)).collect();
    subjects.push(caller.principal.to_string());
    let all = iam.all::<AccessRule>()?;
    let own = all.iter().filter(|rule| subjects.contains(&rule.body.subject(&rule.object)));
    Ok(own.map(|rule| wire(iam, &view, rule)).collect())
}

fn page(iam: &IamState, all: &[Wire], query: &ListQuery) -> Result<AccessRulesPage, ApiError> {
    let rows = query.matching(all.iter(), iam.now())?;
    let display_records = rows.len() as u64;
    let (page, _) = query.page(rows);
    let access_rules = page.into_iter().cloned().collect();
    Ok(AccessRulesPage { total_records: all.len() as u64, display_records, access_rules })
}

async fn list(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    query: RulesQuery,
) -> Result<Json<AccessRulesPage>, ApiError> {
    Ok(Json(page(&iam, &asked_for(&iam, &caller, &query)?, &query.list)?))
}

async fn count(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    query: RulesQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.list.count(asked_for(&iam, &caller, &query)?.iter(), iam.now())
}

async fn own(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<MeAccessRulesResponse>, ApiError> {
    let access_rules = page(&iam, &of_caller(&iam, &caller)?, &query)?;
    Ok(Json(MeAccessRulesResponse { access_rules }))
}

async fn count_own(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.count(of_caller(&iam, &caller)?.iter(), iam.now())
}

/// The rule with this id, if the caller may do this to it.
fn find(
    iam: &IamState,
    caller: &Caller,
    action: auth::Action,
    id: &str,
) -> Result<Item<AccessRule>, ApiError> {
    let rule = iam.one::<AccessRule>(id)?;
    caller.must(action, Resource::AccessRules, rule.object.scope)?;
    Ok(rule)
}

async fn read(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Wire>, ApiError> {
    let rule = find(&iam, &caller, Read, &id)?;
    Ok(Json(wire(&iam, &iam.control.view(), &rule)))
}

async fn remove(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    removable(&iam, &caller, &id)?;
    iam.remove::<AccessRule>(&caller, &id).await?;
    Ok(NoContent)
}

/// Refuses to delete a rule that is not there or not the caller's to delete.
fn removable(iam: &IamState, caller: &Caller, id: &str) -> Result<(), ApiError> {
    let rule = find(iam, caller, Delete, id)?;
    let role = Role::by_id(rule.body.role_id);
    if role.is_some_and(|role| !caller.may_give(role, rule.object.scope)) {
        return Err(ApiError::forbidden("a role that is more than your own is not yours to take"));
    }
    Ok(())
}

async fn batch(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<AccessRulesBatchFields>,
) -> Result<Json<BatchResponse>, ApiError> {
    check_size("ids", request.ids.len())?;
    let id = Uuid::new_v4().to_string();
    let mut response = BatchResponse { id, succeeded: Vec::new(), failed: Vec::new() };
    for id in request.ids {
        let mut outcome = removable(&iam, &caller, &id);
        if outcome.is_ok() && request.action == AccessRulesBatchAction::Delete {
            outcome = iam.remove::<AccessRule>(&caller, &id).await.map(drop);
        }
        match outcome {
            Ok(()) => response.succeeded.push(id),
            Err(error) => {
                let (code, message) = (error.status.as_u16(), error.message());
                response.failed.push(BatchFailure { id, code, message });
            }
        }
    }
    Ok(Json(response))
}

fn check_size(field: &str, size: usize) -> Result<(), ApiError> {
    if size <= BATCH_MAX {
        return Ok(());
    }
    Err(ApiError::field(field, format!("asks for {size}; at most {BATCH_MAX} at once")))
}

async fn batch_create(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<AccessRulesBatchCreateFields>,
) -> Result<Json<AccessRulesBatchCreateResponse>, ApiError> {
    let asked = request.payload;
    check_size("payload", asked.subjects.len().saturating_mul(asked.scopes.len()))?;
    let mut response = AccessRulesBatchCreateResponse::default();
    for subject in &asked.subjects {
        for scope in &asked.scopes {
            let payload = AccessRuleCreationFields {
                subject_id: subject.subject_id.clone(),
                subject_type: subject.subject_type,
                role_id: asked.role_id,
                scope_id: scope.scope_id.clone(),
                scope_type: scope.scope_type,
                cluster_id: asked.cluster_id.clone(),
            };
            match make(&iam, &caller, payload.clone()).await {
                Ok(made) => response.succeeded.push(made),
                Err(error) => {
                    let (code, message) = (error.status.as_u16(), error.message());
                    let failed = FailedAccessRule { payload, code, message };
                    response.failed.push(failed);
                }
            }
        }
    }
    Ok(Json(response))
}

async fn create(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<AccessRuleCreationFields>,
) -> Result<Created<Wire>, ApiError> {
    Ok(Created(make(&iam, &caller, request).await?))
}

async fn make(
    iam: &IamState,
    caller: &Caller,
    request: AccessRuleCreationFields,
) -> Result<Wire, ApiError> {
    let scope = scope(iam, &request)?;
    caller.must(Create, Resource::AccessRules, scope)?;
    let role = Role::by_id(request.role_id).ok_or_else(|| {
        let id = request.role_id;
        let why = format!("there is no role {id}; see GET /api/v1/authorization/roles");
        ApiError::field("roleId", why)
    })?;
    if !caller.may_give(role, scope) {
        let why = format!("{} is more than your own role here; it is not yours to give", role.name);
        return Err(ApiError::forbidden(why));
    }
    let group = request.subject_type == SubjectType::Group;
    let owner = if group { check_group(iam, &request)? } else { subject(iam, &request)? };
    // The name makes the same rule twice a conflict.
    let name = match group {
        true => format!("{} for {}", role.name, group_key(&request.subject_id)),
        false => role.name.to_owned(),
    };
    let rule = AccessRule { role_id: role.id, subject_id: request.subject_id, group };
    let made = iam.make_owned(caller, scope, &owner, &name, &rule).await?;
    Ok(wire(iam, &iam.control.view(), &made))
}

/// The scope that a request names.
fn scope(iam: &IamState, request: &AccessRuleCreationFields) -> Result<Scope, ApiError> {
    let id = request.scope_id.as_str();
    let cluster = iam.control.cluster().uuid.to_string();
    if let Some(other) = request.cluster_id.as_ref().filter(|id| **id != cluster) {
        let why =
            format!("there is no cluster `{}`; the only one is {cluster}", units::shown(other));
        return Err(ApiError::field("clusterId", why));
    }
    let view = iam.control.view();
    let found = match request.scope_type {
        ScopeType::System => None,
        ScopeType::Tenant => (id == TENANT_ID.to_string()).then_some(Scope::Tenant),
        ScopeType::Cluster => (id == cluster).then_some(Scope::Cluster),
        ScopeType::Department => {
            let known = id.parse().ok().filter(|id| view.departments.contains_key(id));
            known.map(Scope::Department)
        }
        ScopeType::Project => {
            let known = id.parse().ok().filter(|id| view.projects.contains_key(id));
            known.map(Scope::Project)
        }
    };
    found.ok_or_else(|| {
        let kind = scopes::word(request.scope_type);
        ApiError::field("scopeId", format!("there is no {kind} with id `{}`", units::shown(id)))
    })
}

/// Refuses a group where no login provider is configured. A group has no owner.
fn check_group(iam: &IamState, request: &AccessRuleCreationFields) -> Result<String, ApiError> {
    if iam.login_provider.is_none() {
        let why = "groups come from a login provider, and there is none; name users, or start the \
                   server with --oidc-issuer";
        return Err(ApiError::field("subjectType", why));
    }
    let name = &request.subject_id;
    if name.is_empty() || name.len() > GROUP_BYTES_MAX || name.chars().any(char::is_control) {
        let why = format!("write the group as the provider does, in 1 to {GROUP_BYTES_MAX} bytes");
        return Err(ApiError::field("subjectId", why));
    }
    Ok(String::new())
}

/// The owner that a request names as its subject, by id or name.
fn subject(iam: &IamState, request: &AccessRuleCreationFields) -> Result<String, ApiError> {
    let asked = request.subject_id.as_str();
    let kind = match request.subject_type {
        SubjectType::User => User::KIND,
        _ => ServiceAccount::KIND,
    };
    let name = if kind == User::KIND { asked.to_lowercase() } else { asked.to_owned() };
    let view = iam.control.view();
    let found = view.objects.get(kind, asked).or_else(|| {
        let mut all = view.objects.shelf(kind).into_iter().flat_map(|all| all.values());
        all.find(|subject| subject.name == name)
    });
    let found = found.ok_or_else(|| {
        let all = view.objects.shelf(kind).into_iter().flat_map(|all| all.values());
        let names = all.map(|subject| subject.name.as_str());
        ApiError::unknown_name("subjectId", kind, asked, names)
    })?;
    Ok(found.key())
}
