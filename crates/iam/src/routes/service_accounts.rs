//! Service accounts, and the access keys by which programs speak for a person.

use std::collections::BTreeMap;

use access::{Caller, Item, Route, Where};
use api_types::{
    AccessKey as WireKey, AccessKeyPostResponse, AccessKeys, RegeneratedSecret,
    ServiceAccount as Wire, ServiceAccountCreationRequest, ServiceAccountPatchRequest,
    ServiceAccountPostResponse, TENANT_ID, Time,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::{Principal, Resource};
use axum::extract::{FromRef, FromRequestParts, Path, State as FromState};
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, delete, get, patch, post};
use http_kit::{ApiError, Body, Created, Done, NoContent, NoParameters, parameters, unknown_word};
use utoipa::openapi::schema::Type;
use view::Scope;

use super::IamState;
use super::users::{bare_name, reads_logins, taken};
use crate::subjects::{AccessKey, ClientSecret, ServiceAccount};

/// Longest name of a service account or key.
const NAME_BYTES_MAX: usize = 100;

/// The routes of service accounts and access keys.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    accounts_routes().chain(keys_routes())
}

fn accounts_routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let (all, one) = ("/api/v1/service-accounts", "/api/v1/service-accounts/{serviceAccountId}");
    let secret = "/api/v1/service-accounts/{serviceAccountId}/secret";
    let of = Resource::ServiceAccounts;
    let switch = "Switches a service account on or off";
    let renew = "Gives a service account a new secret";
    let routes = [
        get(all, "get_service_accounts", "The service accounts", accounts).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        post(all, "create_service_account", "Creates a service account", create_account).needs(
            Create,
            of,
            Where::Tenant,
        ),
        get(one, "get_service_account_by_id", "A service account", account).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        patch(one, "update_service_account_by_id", switch, patch_account).needs(
            Update,
            of,
            Where::Tenant,
        ),
        delete(one, "delete_service_account_by_id", "Deletes a service account", delete_account)
            .needs(Delete, of, Where::Tenant),
        post(secret, "regenerate_service_account_secret", renew, regenerate_account).needs(
            Update,
            of,
            Where::Tenant,
        ),
    ];
    routes.into_iter().map(|route| route.of("ServiceAccounts"))
}

fn keys_routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let (all, one) = ("/api/v1/access-keys", "/api/v1/access-keys/{accessKeyId}");
    let secret = "/api/v1/access-keys/{accessKeyId}/secret";
    let (every, any) =
        ("/api/v1/administration/access-keys", "/api/v1/administration/access-keys/{accessKeyId}");
    let of = Resource::AccessKeys;
    let renew = "Gives one of the caller's keys a new secret";
    let delete_any = "delete_access_key_by_id_administration";
    let routes =
        [
            get(all, "get_access_keys", "The caller's access keys", own_keys).own(),
            post(all, "create_access_key1", "Creates an access key", create_key).own(),
            get(one, "get_access_key_by_id1", "One of the caller's keys", key).own(),
            delete(one, "delete_access_key_by_id", "Deletes one of the caller's keys", delete_key)
                .own(),
            post(secret, "regenerate_access_key_secret", renew, regenerate_key).own(),
            get(every, "get_access_keys_administration", "Everybody's access keys", all_keys)
                .needs(Read, of, Where::Tenant),
            delete(any, delete_any, "Deletes an access key of any user", delete_any_key).needs(
                Delete,
                of,
                Where::Tenant,
            ),
        ];
    routes.into_iter().map(|route| route.of("AccessKeys"))
}

/// A name as the published pattern allows it: `^[a-z][-_a-z0-9]*[a-z0-9]$`.
fn check_name(name: &str) -> Result<(), ApiError> {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let right = (2..=NAME_BYTES_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(inside)
        && !name.ends_with(['-', '_']);
    if right {
        return Ok(());
    }
    let why = format!(
        "`{}` is not allowed; write 2 to {NAME_BYTES_MAX} of a-z, 0-9, - and _, beginning with a letter \
         and ending with a letter or digit",
        units::shown(name)
    );
    Err(ApiError::field("name", why))
}

fn wire(logins: &BTreeMap<String, Time>, account: &Item<ServiceAccount>) -> Wire {
    let object = &account.object;
    Wire {
        id: object.id.clone(),
        name: object.name.clone(),
        client_id: object.id.clone(),
        enabled: account.body.enabled,
        tenant_id: TENANT_ID.to_string(),
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_at: object.updated_at.into(),
        last_login: logins.get(&object.key()).copied(),
    }
}

/// A service account as a caller may see it.
fn seen(caller: &Caller, account: Wire) -> Wire {
    if reads_logins(caller, Resource::ServiceAccounts) {
        return account;
    }
    Wire { created_by: bare_name(&account.created_by), last_login: None, ..account }
}

async fn accounts(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    _: NoParameters,
) -> Result<Json<Vec<Wire>>, ApiError> {
    let logins = iam.logins()?;
    let all = iam.all()?;
    Ok(Json(all.iter().map(|account| seen(&caller, wire(&logins, account))).collect()))
}

async fn account(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Wire>, ApiError> {
    let account = iam.one(&id)?;
    Ok(Json(seen(&caller, wire(&iam.logins_of(&account)?, &account))))
}

async fn create_account(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<ServiceAccountCreationRequest>,
) -> Result<Created<ServiceAccountPostResponse>, ApiError> {
    check_name(&request.name)?;
    if iam.authority.is_built_in_name(&request.name) {
        return Err(taken(&request.name));
    }
    let (client_secret, secrets) = ClientSecret::generate()?;
    let account = ServiceAccount { enabled: true, switched_off: 0, secrets };
    let made = iam.make(&caller, Scope::Tenant, &request.name, &account).await?;
    let (id, client_id) = (made.object.id.clone(), made.object.id.clone());
    let name = request.name;
    let answer = ServiceAccountPostResponse { id, name, client_id, client_secret };
    Ok(Created(answer))
}

/// Switches a service account on or off; its tokens end at once.
async fn patch_account(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<ServiceAccountPatchRequest>,
) -> Result<Done, ApiError> {
    let switch = move |_: &mut String, account: &mut ServiceAccount| {
        if account.enabled && !request.enabled {
            account.switched_off += 1;
        }
        account.enabled = request.enabled;
        Ok(())
    };
    iam.change(&caller, &id, switch).await?;
    Ok(Done)
}

async fn delete_account(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    iam.remove::<ServiceAccount>(&caller, &id).await?;
    Ok(NoContent)
}

/// A new secret; the old one and its tokens end at once.
async fn regenerate_account(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<RegeneratedSecret>, ApiError> {
    let (client_secret, secrets) = ClientSecret::generate()?;
    let renew = move |_: &mut String, account: &mut ServiceAccount| {
        account.secrets = secrets.clone();
        Ok(())
    };
    iam.change(&caller, &id, renew).await?;
    Ok(Json(RegeneratedSecret { client_secret }))
}

fn key_wire(logins: &BTreeMap<String, Time>, key: &Item<AccessKey>) -> WireKey {
    let object = &key.object;
    WireKey {
        id: object.id.clone(),
        name: object.name.clone(),
        client_id: object.id.clone(),
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        last_login: logins.get(&object.key()).copied(),
    }
}

/// The caller as the owner of keys.
fn owner(caller: &Caller) -> Result<String, ApiError> {
    match &caller.principal {
        user @ Principal::User(_) => Ok(user.to_string()),
        _ => Err(ApiError::forbidden(
            "only users have access keys; create a service account instead",
        )),
    }
}

/// One of the caller's own keys. A key of another owner gives the error of a missing key.
fn own_key(iam: &IamState, caller: &Caller, id: &str) -> Result<Item<AccessKey>, ApiError> {
    let owner = owner(caller)?;
    let found = iam.one::<AccessKey>(id)?;
    if found.object.owner == owner { Ok(found) } else { Err(ApiError::no_such("access-key", id)) }
}

async fn own_keys(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    _: NoParameters,
) -> Result<Json<AccessKeys>, ApiError> {
    let owner = caller.principal.to_string();
    let (all, logins) = (iam.all::<AccessKey>()?, iam.logins()?);
    let own = all.iter().filter(|key| key.object.owner == owner);
    let access_keys = own.map(|key| key_wire(&logins, key)).collect();
    Ok(Json(AccessKeys { access_keys }))
}

async fn key(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<WireKey>, ApiError> {
    let key = own_key(&iam, &caller, &id)?;
    Ok(Json(key_wire(&iam.logins_of(&key)?, &key)))
}

async fn create_key(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<ServiceAccountCreationRequest>,
) -> Result<Created<AccessKeyPostResponse>, ApiError> {
    check_name(&request.name)?;
    let owner = owner(&caller)?;
    let (client_secret, secrets) = ClientSecret::generate()?;
    let key = AccessKey { secrets };
    let made = iam.make_owned(&caller, Scope::Tenant, &owner, &request.name, &key).await?;
    let answer = AccessKeyPostResponse {
        id: made.object.id.clone(),
        client_id: made.object.id.clone(),
        name: request.name,
        client_secret,
        created_at: made.object.created_at.into(),
    };
    Ok(Created(answer))
}

async fn delete_key(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    own_key(&iam, &caller, &id)?;
    iam.remove::<AccessKey>(&caller, &id).await?;
    Ok(NoContent)
}

/// A new secret; the old one and its tokens end at once.
async fn regenerate_key(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<RegeneratedSecret>, ApiError> {
    own_key(&iam, &caller, &id)?;
    let (client_secret, secrets) = ClientSecret::generate()?;
    let renew = move |_: &mut String, key: &mut AccessKey| {
        key.secrets = secrets.clone();
        Ok(())
    };
    iam.change(&caller, &id, renew).await?;
    Ok(Json(RegeneratedSecret { client_secret }))
}

/// Everybody's keys, for administrators.
async fn all_keys(
    FromState(iam): FromState<IamState>,
    wanted: KeyQuery,
) -> Result<Json<AccessKeys>, ApiError> {
    let logins = iam.logins()?;
    let mut all = iam.all()?;
    all.retain(|key| wanted.fits(key));
    let access_keys = all.iter().map(|key| key_wire(&logins, key)).collect();
    Ok(Json(AccessKeys { access_keys }))
}

/// Conditions for keys: pairs of a parameter and its value.
struct KeyQuery(Vec<(String, String)>);

const KEY_PARAMETERS: [(&str, &str); 2] =
    [("clientId", "Of this client id"), ("createdBy", "Of this user")];

impl KeyQuery {
    fn fits(&self, key: &Item<AccessKey>) -> bool {
        self.0.iter().all(|(name, value)| match name.as_str() {
            "clientId" => key.object.id == *value,
            _ => key.object.created_by == *value,
        })
    }
}

impl Input for KeyQuery {
    fn describe(to: &mut Description) {
        for (name, about) in KEY_PARAMETERS {
            to.parameter(name, Type::String, about);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for KeyQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (pairs, known) = (parameters(&parts.uri)?, KEY_PARAMETERS.map(|(name, _)| name));
        match pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(unknown_word("parameter", name, &known)),
            None => Ok(Self(pairs)),
        }
    }
}

async fn delete_any_key(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    iam.remove::<AccessKey>(&caller, &id).await?;
    Ok(NoContent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_published_pattern_allows() {
        for name in ["ab", "a-b_c9", "ci"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "a", "A", "9a", "a-", "a_", "-a", "ä1", "a b", &"a".repeat(101)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
