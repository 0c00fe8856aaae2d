//! Tokens for credentials. Owns: the grants, the sessions of people, and that guessing is slow.

use api_types::{TokenRequest, TokenResponse};
use auth::{Granted, Identity, PasswordHash, Principal, fingerprint, hash_secret, secret_matches};
use axum::http::StatusCode;
use control::Scope;
use units::Instant;

use super::{AccessKey, Login, ServiceAccount, Session, SessionSecrets, User, Who};
use crate::Server;
use crate::edge::{Caller, Fault, Origin};
use crate::objects::{Family, Item};

/// How long a session lasts after its last refresh.
const SESSION_MS: u64 = 30 * 24 * 3600 * 1000;
/// How long it lasts at most, refreshed or not.
const SESSION_MS_MAX: u64 = 90 * 24 * 3600 * 1000;
/// Most sessions of a user; the oldest ends for a new one.
const SESSIONS_MAX: usize = 20;

const WRONG_CLIENT: &str =
    "client id and secret do not match; ask the administrator for a new secret";
const WRONG_PASSWORD: &str =
    "user name and password do not match; ask the administrator to reset the password";
const WRONG_REFRESH: &str = "the refresh token is not valid any more; log in again";

/// Gives a token for what a request proves.
pub(crate) async fn grant(
    server: &Server,
    request: TokenRequest,
    origin: Origin,
) -> Result<TokenResponse, Fault> {
    let name = match request.grant_type.as_str() {
        "client_credentials" | "app_token" => request.client_id.clone(),
        "password" => request.username.trim().to_lowercase(),
        "refresh_token" => request.refresh_token.split('.').next().unwrap_or_default().to_owned(),
        other => return Err(Fault::bad(auth::Error::UnknownGrant(other.to_owned()).to_string())),
    };
    let outcome = match request.grant_type.as_str() {
        "password" => password(server, &name, request.password, &origin).await,
        "refresh_token" => refresh(server, &request.refresh_token, &origin).await,
        _ => client(server, &name, &request.client_secret, &origin).await,
    };
    if let Err(fault) = &outcome
        && server.notes_refusal(&name, &origin)
    {
        let control = server.control.asked_from(origin.detail(true, Some(fault.status)));
        control.record(&units::shown(&name), "token.grant", "", &fault.message);
    }
    outcome
}

fn wrong(why: &str) -> Fault {
    Fault::new(StatusCode::UNAUTHORIZED, why)
}

/// The answer to a wrong secret of a program or session. A right one is never refused because of
/// wrong ones: nobody guesses 256 random bits. What tries without end is told to slow down.
fn wrong_secret(server: &Server, name: &str, origin: &Origin, why: &str) -> Fault {
    let who = Who { name, address: &origin.address, known: false };
    server.wrong_secrets.count(who, server.now()).map_or_else(Fault::too_many, |()| wrong(why))
}

fn response(granted: Granted, refresh_token: Option<String>) -> TokenResponse {
    let (access_token, expires_in) = (granted.token, granted.expires_in_s);
    TokenResponse { access_token, expires_in, refresh_token }
}

/// A program, by client id and secret.
async fn client(
    server: &Server,
    id: &str,
    secret: &str,
    origin: &Origin,
) -> Result<TokenResponse, Fault> {
    if let Some(granted) = server.authority.grant_built_in(id, secret, server.now()) {
        let granted = granted.map_err(|_| wrong_secret(server, id, origin, WRONG_CLIENT))?;
        let detail = origin.detail(true, None);
        let name = &granted.identity.name;
        server.control.asked_from(detail).record(name, "token.grant", name, "ok");
        return Ok(response(granted, None));
    }
    let account = server.living::<ServiceAccount>(id).filter(|account| account.body.enabled);
    let (principal, name, hash, proof) = if let Some(account) = account {
        let (principal, proof) = (Principal::ServiceAccount(id.to_owned()), account.body.proof());
        (principal, account.object.name.clone(), account.body.secrets.sha256, proof)
    } else if let Some(key) = server.living::<AccessKey>(id) {
        let principal = Principal::AccessKey(id.to_owned());
        let hash = key.body.secrets.sha256;
        (principal, key.object.created_by.clone(), hash.clone(), fingerprint(&hash))
    } else {
        // The digest is taken for an unknown client, too, so that both refusals take equally long.
        (Principal::Admin, String::new(), String::new(), String::new())
    };
    if !secret_matches(secret, &hash) || principal.is_built_in() {
        return Err(wrong_secret(server, id, origin, WRONG_CLIENT));
    }
    let identity = Identity { name: name.clone(), principal: principal.to_string(), proof };
    logged_in(server, &principal, &name, origin).await?;
    Ok(response(server.authority.issue(identity, server.now()), None))
}

/// A person, by name and password.
async fn password(
    server: &Server,
    name: &str,
    password: String,
    origin: &Origin,
) -> Result<TokenResponse, Fault> {
    let user = server.user_named(name)?;
    let hash = user.as_ref().and_then(|user| user.body.secrets.password.clone());
    let password_mark = hash.as_ref().map(PasswordHash::fingerprint).unwrap_or_default();
    let last = user.as_ref().and_then(|user| server.login_of(&user.object.key()));
    let known = last.is_some_and(|last| last.body.address == origin.address);
    let who = Who { name, address: &origin.address, known };
    let matches = server.matches(who, hash, password).await?;
    let user = user.filter(|_| matches).ok_or_else(|| wrong(WRONG_PASSWORD))?;
    let principal = Principal::User(user.object.id.clone());
    let caller = Caller::new(principal.clone(), name, origin.clone());
    end_oldest_sessions(server, &caller, &principal).await?;
    let own = auth::new_secret().map_err(Fault::internal)?;
    let (secret, secrets) = next_secrets(&own)?;
    let expires_at_ms = server.now().plus_ms(SESSION_MS).0;
    let session = Session { expires_at_ms, password_mark, secrets };
    let label = uuid::Uuid::new_v4().to_string();
    let owner = principal.to_string();
    let made = server.make_owned(&caller, Scope::Tenant, &owner, &label, &session).await?;
    logged_in(server, &principal, name, origin).await?;
    let proof = made.object.id.clone();
    let refresh = format!("{proof}.{secret}");
    let identity = Identity { name: name.to_owned(), principal: owner, proof };
    Ok(response(server.authority.issue(identity, server.now()), Some(refresh)))
}

/// Ends the sessions that are over, and the oldest when there are many.
async fn end_oldest_sessions(
    server: &Server,
    caller: &Caller,
    principal: &Principal,
) -> Result<(), Fault> {
    let owner = principal.to_string();
    let mut own = server.all::<Session>()?;
    own.retain(|session| session.object.owner == owner);
    let many = own.len().saturating_sub(SESSIONS_MAX - 1);
    for (number, session) in own.iter().enumerate() {
        if number < many || session.body.expires_at_ms <= server.now().0 {
            server.end::<Session>(caller, &session.object.id).await?;
        }
    }
    Ok(())
}

/// What the next refresh token of a session says, and what is kept of it.
fn next_secrets(own: &str) -> Result<(String, SessionSecrets), Fault> {
    let next = auth::new_secret().map_err(Fault::internal)?;
    let (own_sha256, current_sha256) = (hash_secret(own), hash_secret(&next));
    Ok((format!("{own}.{next}"), SessionSecrets { own_sha256, current_sha256 }))
}

/// A person who is logged in, by the refresh token `session.own.next`: it is good once. When one
/// comes back, however old, one of the two who have it stole it; the session ends for both.
async fn refresh(server: &Server, token: &str, origin: &Origin) -> Result<TokenResponse, Fault> {
    let (id, secret) = token.split_once('.').unwrap_or((token, ""));
    let refused = || wrong_secret(server, id, origin, WRONG_REFRESH);
    let session = server.living::<Session>(id).ok_or_else(refused)?;
    let owner = session.object.owner.clone();
    let user = owner.strip_prefix("user/").and_then(|id| server.living::<User>(id));
    let user = user.ok_or_else(refused)?;
    let name = user.object.name.clone();
    let caller = Caller::new(Principal::User(user.object.id.clone()), &name, origin.clone());
    let secrets = &session.body.secrets;
    let (own, next) = secret.split_once('.').unwrap_or_default();
    if !secret_matches(own, &secrets.own_sha256)
        || !session.body.belongs_to(&user.body)
        || session.body.expires_at_ms <= server.now().0
    {
        return Err(refused());
    }
    if !secret_matches(next, &secrets.current_sha256) {
        server.end::<Session>(&caller, id).await?;
        return Err(wrong(WRONG_REFRESH));
    }
    let used = secrets.current_sha256.clone();
    let (next, secrets) = next_secrets(own)?;
    let end = session_end(session.object.created_at, server.now());
    let expires_at_ms = end.0;
    let renew = move |_: &mut String, session: &mut Session| {
        // Of two refreshes at once the second is refused here.
        if session.secrets.current_sha256 != used {
            return Err(control::Error::Conflict { message: WRONG_REFRESH.to_owned() });
        }
        session.secrets = secrets.clone();
        session.expires_at_ms = expires_at_ms;
        Ok(())
    };
    server.change(&caller, id, renew).await.map_err(|fault| match fault.status {
        StatusCode::CONFLICT | StatusCode::NOT_FOUND => wrong(WRONG_REFRESH),
        _ => fault,
    })?;
    let identity = Identity { name, principal: owner, proof: id.to_owned() };
    let refresh = format!("{id}.{next}");
    let granted = server.authority.issue_until(identity, server.now(), end);
    Ok(response(granted, Some(refresh)))
}

/// When a session ends that is used now.
fn session_end(begun: Instant, now: Instant) -> Instant {
    now.plus_ms(SESSION_MS).min(begun.plus_ms(SESSION_MS_MAX))
}

/// Remembers when somebody got a token; the audit log has it with that.
async fn logged_in(
    server: &Server,
    principal: &Principal,
    name: &str,
    origin: &Origin,
) -> Result<(), Fault> {
    let by_program = !matches!(principal, Principal::User(_));
    let caller = Caller { by_program, ..Caller::new(principal.clone(), name, origin.clone()) };
    let (owner, at_ms) = (principal.to_string(), server.now().0);
    let address = origin.address.clone();
    let Some(before) = server.login_of(&owner) else {
        let login = Login { at_ms, address };
        let made = server.make_owned(&caller, Scope::Tenant, &owner, name, &login).await;
        // Somebody else may have logged in as the same at this moment.
        return match made {
            Err(fault) if fault.status != StatusCode::CONFLICT => Err(fault),
            _ => Ok(()),
        };
    };
    let note = move |_: &mut String, login: &mut Login| {
        login.at_ms = login.at_ms.max(at_ms);
        login.address.clone_from(&address);
        Ok(())
    };
    server.change(&caller, &before.object.id, note).await.map(drop)
}

impl Server {
    /// The user with this name.
    pub(crate) fn user_named(&self, name: &str) -> Result<Option<Item<User>>, Fault> {
        let view = self.control.view();
        let mut users = view.objects.shelf(User::KIND).into_iter().flat_map(|all| all.values());
        let found = users.find(|user| user.name == name);
        Ok(found.map(Item::of).transpose()?)
    }

    /// When and where a principal, `user/<id>`, got its last token.
    fn login_of(&self, owner: &str) -> Option<Item<Login>> {
        let view = self.control.view();
        let mut logins = view.objects.shelf(Login::KIND)?.values();
        Item::of(logins.find(|login| login.owner == owner)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_used_lasts_and_not_for_ever() {
        const DAY: u64 = 24 * 3600 * 1000;
        let begun = Instant(1_000 * DAY);
        for (day, end) in [(0, 30), (59, 89), (60, 90), (75, 90), (200, 90)] {
            let end = begun.plus_ms(end * DAY);
            assert_eq!(session_end(begun, begun.plus_ms(day * DAY)), end, "used on day {day}");
        }
    }
}
