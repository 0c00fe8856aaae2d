//! Users and what a user does with its own password.

use std::collections::BTreeMap;

use access::{Caller, Item, Route, Where};
use api_types::{
    CountResponse, PasswordChanged, TemporaryPassword, Time, User as Wire,
    UserChangePasswordRequest, UserCreationRequest, UserPostResponse,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::{Principal, Resource, check_password, temporary_password};
use axum::extract::{FromRef, FromRequestParts, Path, State as FromState};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, delete, get, post};
use http_kit::{
    Allowed, ApiError, Body, Created, Done, ListQuery, NoContent, Row, Scalar, Type, parameters,
};
use units::Instant;
use view::Scope;

use super::{IamState, Listed};
use crate::email::email;
use crate::limit::Attempt;
use crate::session::Session;
use crate::subjects::{AccessKey, User, UserSecrets};

/// The routes of users.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let (all, one) = ("/api/v1/users", "/api/v1/users/{userId}");
    let of = Resource::Users;
    let users = [
        get(all, "get_users", "The users", list).needs(Read, of, Where::Anywhere),
        post(all, "create_user", "Creates a user", create).needs(Create, of, Where::Tenant),
        get("/api/v1/users/count", "count_users", "How many users", count).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(one, "get_user_by_id", "A user", read).needs(Read, of, Where::Anywhere),
        delete(one, "delete_user_by_id", "Deletes a user", remove).needs(Delete, of, Where::Tenant),
        // Callers may end their own sessions without a role; the handler checks that.
        post("/api/v1/users/{userId}/logout", "logout_user", "Ends a user's sessions", logout)
            .own(),
        post(
            "/api/v1/users/{userId}/password",
            "reset_user_password",
            "Gives a user a new password to begin with",
            reset_password,
        )
        .needs(Update, of, Where::Tenant),
        post("/elastane/v1/logout", "end_session", "Ends the caller's session", end_session).own(),
        post(
            "/api/v1/me/password",
            "change_user_password",
            "Changes the caller's own password",
            change_own_password,
        )
        .own(),
    ];
    users.into_iter().map(|route| route.of("Users").rows::<Wire, _>())
}

/// A user as the wire shows it.
pub(crate) fn wire(logins: &BTreeMap<String, Time>, user: &Item<User>) -> Wire {
    let object = &user.object;
    Wire {
        id: object.id.clone(),
        username: object.name.clone(),
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_at: object.updated_at.into(),
        last_login: logins.get(&object.key()).copied(),
        is_local: user.body.is_local(),
        groups: user.body.account.as_ref().map(|own| own.groups.to_vec()).unwrap_or_default(),
    }
}

/// `true` for a caller that may read how users log in: in the whole installation, or because it
/// gives them access. Members of a project read names only.
pub(super) fn reads_logins(caller: &Caller, of: Resource) -> bool {
    caller.may(Read, of, Scope::Tenant) || caller.may_somewhere(Create, Resource::AccessRules)
}

/// The name without the domain of an e-mail address.
pub(super) fn bare_name(name: &str) -> String {
    name.split('@').next().unwrap_or_default().to_owned()
}

/// A user as a caller may see it.
fn seen(caller: &Caller, user: Wire) -> Wire {
    if reads_logins(caller, Resource::Users) || caller.principal == Principal::User(user.id.clone())
    {
        return user;
    }
    let (username, created_by) = (bare_name(&user.username), bare_name(&user.created_by));
    Wire { username, created_by, last_login: None, groups: Vec::new(), ..user }
}

impl Row<Listed> for Wire {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("username", Type::Text),
        ("createdBy", Type::Text),
        ("lastLogin", Type::Time),
        ("creationTime", Type::Time),
        ("lastUpdated", Type::Time),
        ("type", Type::Text),
    ];
    const SEARCHED: &'static [&'static str] = &["username", "createdBy"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "username" => Scalar::text(self.username.as_str()),
            "createdBy" => Scalar::text(self.created_by.as_str()),
            "lastLogin" => self.last_login.map_or(Scalar::Absent, |at| Scalar::time(at.0)),
            "creationTime" => Scalar::time(self.created_at.0),
            "lastUpdated" => Scalar::time(self.updated_at.0),
            "type" => Scalar::text(if self.is_local { "local" } else { "sso" }),
            _ => Scalar::Absent,
        }
    }
}

/// A list query, with the older parameter of this family beside it.
struct UsersQuery(ListQuery);

/// Values of the older parameter `filter`, and the condition that each is short for.
const OLDER: [(&str, &str); 2] =
    [("runai.is_local:true", "type==local"), ("runai.is_local:false", "type==sso")];

impl Input for UsersQuery {
    fn describe(to: &mut Description) {
        ListQuery::describe(to);
        let allowed = Allowed::Word(&[OLDER[0].0, OLDER[1].0]);
        to.parameter_of("filter", allowed.schema(), "The same as filterBy=type==local or sso");
    }
}

impl<S: Sync> FromRequestParts<S> for UsersQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let stands_for = |(name, value): (String, String)| {
            if name != "filter" {
                return Ok((name, value));
            }
            let found = OLDER.iter().find(|(word, _)| *word == value);
            let words = OLDER.map(|(word, _)| word).join(" or ");
            let why = || format!("`{}` is not allowed; {words}", units::shown(&value));
            let (_, condition) = found.ok_or_else(|| ApiError::field("filter", why()))?;
            Ok(("filterBy".to_owned(), (*condition).to_owned()))
        };
        let pairs = parameters(&parts.uri)?.into_iter().map(stands_for);
        Ok(Self(ListQuery::parse(&pairs.collect::<Result<Vec<_>, ApiError>>()?)?))
    }
}

fn users(iam: &IamState, caller: &Caller) -> Result<Vec<Wire>, ApiError> {
    let logins = iam.logins()?;
    Ok(iam.all::<User>()?.iter().map(|user| seen(caller, wire(&logins, user))).collect())
}

async fn list(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    UsersQuery(query): UsersQuery,
) -> Result<Json<Vec<Wire>>, ApiError> {
    let all = users(&iam, &caller)?;
    let (page, _) = query.page(query.matching(all.iter(), iam.now())?);
    Ok(Json(page.into_iter().cloned().collect()))
}

async fn count(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.count(users(&iam, &caller)?.iter(), iam.now())
}

async fn read(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Wire>, ApiError> {
    let user = iam.one(&id)?;
    Ok(Json(seen(&caller, wire(&iam.logins_of(&user)?, &user))))
}

async fn create(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<UserCreationRequest>,
) -> Result<Created<UserPostResponse>, ApiError> {
    let username = email(&request.email)?;
    if iam.authority.is_built_in_name(&username) {
        return Err(taken(&username));
    }
    let temp_password = temporary_password().map_err(ApiError::internal)?;
    let password = Some(iam.hash(&caller.subject, temp_password.clone()).await?);
    let must_change = request.reset_password.unwrap_or(true);
    let user = User { must_change, secrets: UserSecrets { password }, account: None };
    let made = iam.make(&caller, Scope::Tenant, &username, &user).await?;
    let id = made.object.id.clone();
    Ok(Created(UserPostResponse { id, username, temp_password }))
}

/// A name that belongs to who comes with the installation.
pub(super) fn taken(name: &str) -> ApiError {
    let why = format!("`{name}` is the name of an administrator; choose another");
    ApiError::new(StatusCode::CONFLICT, why)
}

async fn remove(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    iam.remove::<User>(&caller, &id).await?;
    Ok(NoContent)
}

/// Gives a user a new initial password. The old one stops working: the sessions end, and
/// the access keys, which may have been made with it.
async fn reset_password(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<TemporaryPassword>, ApiError> {
    iam.one::<User>(&id)?;
    let temp_password = temporary_password().map_err(ApiError::internal)?;
    let hash = iam.hash(&caller.subject, temp_password.clone()).await?;
    let reset = move |_: &mut String, user: &mut User| {
        user.must_change = true;
        user.secrets.password = Some(hash.clone());
        Ok(())
    };
    iam.change(&caller, &id, reset).await?;
    iam.end_all::<Session>(&caller, &id).await?;
    iam.end_all::<AccessKey>(&caller, &id).await?;
    Ok(Json(TemporaryPassword { temp_password }))
}

/// Ends every session of a user.
async fn logout(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Done, ApiError> {
    if caller.principal != Principal::User(id.clone()) {
        caller.must(Update, Resource::Users, Scope::Tenant)?;
    }
    iam.one::<User>(&id)?;
    iam.end_all::<Session>(&caller, &id).await?;
    iam.authority.end_links(&Principal::User(id), iam.now());
    Ok(Done)
}

/// Ends the session that the token belongs to, if it belongs to one; a program has none.
async fn end_session(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
) -> Result<NoContent, ApiError> {
    if let Some(session) = &caller.session {
        iam.end::<Session>(&caller, session).await?;
    }
    Ok(NoContent)
}

/// Changes the caller's own password. Sessions and tokens of the old one end, this token as well.
async fn change_own_password(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<UserChangePasswordRequest>,
) -> Result<Json<PasswordChanged>, ApiError> {
    let (Principal::User(id), Some(session)) = (&caller.principal, &caller.session) else {
        let why = "only a user who has logged in with a password can change it";
        return Err(ApiError::forbidden(why));
    };
    // A user who must change the password and logged in by link need not give the current one: the
    // link took its place.
    let by_link = iam.living::<Session>(session).is_some_and(|own| own.body.by_link)
        && caller.must_change_password;
    let UserChangePasswordRequest { current_password, new_password } = request;
    check_password(&new_password, &caller.subject)
        .map_err(|why| ApiError::field("newPassword", why))?;
    if new_password == current_password {
        return Err(ApiError::field("newPassword", "is the one so far; choose another"));
    }
    // By its id, not its name: wrong guesses of unknown clients do not count against users who are
    // logged in.
    let name = caller.principal.to_string();
    let who = Attempt { name: &name, address: &caller.origin.address, known: true };
    let before = iam.one::<User>(id)?.body.secrets.password;
    if !by_link && !iam.matches(who, before.clone(), current_password).await? {
        return Err(ApiError::forbidden("currentPassword: is not the password"));
    }
    let hash = iam.hash(&caller.subject, new_password).await?;
    let change = move |_: &mut String, user: &mut User| {
        if user.secrets.password != before {
            let message = "the password was changed by someone else; log in again".to_owned();
            return Err(orchestrator::Error::Conflict { message });
        }
        user.must_change = false;
        user.secrets.password = Some(hash.clone());
        Ok(())
    };
    iam.change(&caller, id, change).await?;
    iam.end_all::<Session>(&caller, id).await?;
    Ok(Json(PasswordChanged {}))
}
