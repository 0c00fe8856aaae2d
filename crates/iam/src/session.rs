//! Sessions: how they begin, are renewed and end. Does not know how a user authenticated, and how a
//! browser carries the two halves of one (`browser`).

use std::sync::Arc;

use access::{Caller, Family, Item};
use api_types::TokenResponse;
use auth::{Identity, PasswordHash, Principal, hash_secret, secret_matches};
use axum::http::StatusCode;
use http_kit::{ApiError, Origin};
use serde::{Deserialize, Serialize};
use units::Instant;

use crate::Iam;
use crate::logins::{logged_in, response, wrong, wrong_secret};
use crate::subjects::{Account, User};

/// Lifetime of a session after its last refresh, in milliseconds.
const SESSION_MS: u64 = 30 * 24 * 3600 * 1000;
/// Longest lifetime of a session, refreshed or not, in milliseconds.
const SESSION_MS_MAX: u64 = 90 * 24 * 3600 * 1000;
/// Longest session of a user whom the login provider authenticated, in milliseconds: a lost account
/// or changed groups there take effect at the next login.
const PROVIDER_SESSION_MS_MAX: u64 = 24 * 3600 * 1000;
/// Lifetime of a session of the local administrator, in milliseconds.
const LOCAL_SESSION_MS: u64 = 12 * 3600 * 1000;
/// A session is renewed once this much is gained by that: not with each page.
const RENEWED_BY_MS: u64 = 24 * 3600 * 1000;

const WRONG_REFRESH: &str = "the refresh token is not valid any more; log in again";

/// A logged-in user, until the refresh token is unused for too long.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) expires_at_ms: u64,
    /// Fingerprint of the password, or of the account at the provider, that the session was begun
    /// with; the session ends with it.
    pub(crate) password_mark: String,
    /// True if the login provider authenticated the user.
    #[serde(default)]
    pub(crate) by_provider: bool,
    /// True if it was begun with a one-time link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_link: bool,
    #[serde(default)]
    pub(crate) secrets: SessionSecrets,
}

/// Hashes of what proves a session.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SessionSecrets {
    /// Hashes of the two secrets of a browser's session.
    Browser(Halves<String>),
    /// Hashes of the secrets of a program's session.
    Refresh(RefreshSecrets),
}

impl Default for SessionSecrets {
    fn default() -> Self {
        Self::Refresh(RefreshSecrets::default())
    }
}

/// Secrets of a browser's session: a request needs both.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Halves<T> {
    /// Secret in the cookie, which no script reads.
    pub(crate) cookie: T,
    /// Secret in the storage of the page, which no other origin can read.
    pub(crate) page: T,
}

/// Hashes of the two parts of a refresh token. The first proves a token of this session;
/// if the second is not the current one, that token was used already.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct RefreshSecrets {
    #[serde(default)]
    pub(crate) own_sha256: String,
    pub(crate) current_sha256: String,
}

/// User for whom a session begins, and how the user authenticated.
pub(super) struct Beginner {
    pub(super) principal: Principal,
    pub(super) name: String,
    /// Fingerprint of the password or account used.
    pub(super) mark: String,
    pub(super) by_provider: bool,
    pub(super) by_link: bool,
}

impl Session {
    /// The groups that count in it: what a provider said long ago does not.
    pub(super) fn groups(&self, user: &User) -> Arc<[String]> {
        let account = user.account.as_ref().filter(|_| self.by_provider);
        account.map(|account| account.groups.clone()).unwrap_or_default()
    }
}

impl Family for Session {
    const KIND: &'static str = "session";
}

impl Beginner {
    /// A user who has authenticated: by the password with this fingerprint or, if `by_provider`, by
    /// the account at the provider.
    pub(super) fn of(user: &Item<User>, mark: String, by_provider: bool) -> Self {
        let (principal, name) = (Principal::User(user.object.id.clone()), user.object.name.clone());
        Self { principal, name, mark, by_provider, by_link: false }
    }
}

/// Begins a session of a program.
pub(super) async fn begin(
    iam: &Iam,
    who: &Beginner,
    origin: &Origin,
) -> Result<TokenResponse, ApiError> {
    let own = auth::new_secret().map_err(ApiError::internal)?;
    let (secret, secrets) = next_secrets(&own)?;
    let made = keep(iam, who, SessionSecrets::Refresh(secrets), origin).await?;
    let proof = made.object.id.clone();
    let refresh = format!("{proof}.{secret}");
    let end = Instant(made.body.expires_at_ms);
    let identity = Identity { name: who.name.clone(), principal: made.object.owner.clone(), proof };
    Ok(response(iam.authority.issue_until(identity, iam.now(), end), Some(refresh)))
}

/// Begins a session of a browser: the stored session, and its two halves.
pub(super) async fn begin_in_browser(
    iam: &Iam,
    who: &Beginner,
    origin: &Origin,
) -> Result<(Item<Session>, Halves<String>), ApiError> {
    let secret = || auth::new_secret().map_err(ApiError::internal);
    let halves = Halves { cookie: secret()?, page: secret()? };
    let hashes = Halves { cookie: hash_secret(&halves.cookie), page: hash_secret(&halves.page) };
    let made = keep(iam, who, SessionSecrets::Browser(hashes), origin).await?;
    Ok((made, halves))
}

async fn keep(
    iam: &Iam,
    who: &Beginner,
    secrets: SessionSecrets,
    origin: &Origin,
) -> Result<Item<Session>, ApiError> {
    let Beginner { principal, name, mark, by_provider, by_link } = who;
    let caller = Caller::new(principal.clone(), name, origin.clone());
    let now = iam.now();
    let session = Session {
        expires_at_ms: session_end(principal, now, now, *by_provider).0,
        password_mark: mark.clone(),
        by_provider: *by_provider,
        by_link: *by_link,
        secrets,
    };
    let label = uuid::Uuid::new_v4().to_string();
    let owner = principal.to_string();
    let newest = (owner.as_str(), iam.control.sessions_max());
    let made = iam.make_newest(&caller, newest, &label, &session).await?;
    logged_in(iam, principal, name, origin).await?;
    Ok(made)
}

/// Has the session of a caller last as if it were used for the first time now, and answers when it
/// ends.
pub(super) async fn renew(iam: &Iam, caller: &Caller, id: &str) -> Result<Instant, ApiError> {
    let session = iam.one::<Session>(id)?;
    let begun = session.object.created_at;
    let end = session_end(&caller.principal, begun, iam.now(), session.body.by_provider);
    let ends_now = Instant(session.body.expires_at_ms);
    if end.since_ms(ends_now) < RENEWED_BY_MS {
        return Ok(ends_now);
    }
    let longer = move |_: &mut String, session: &mut Session| {
        session.expires_at_ms = session.expires_at_ms.max(end.0);
        Ok(())
    };
    iam.change(caller, id, longer).await?;
    Ok(end)
}

/// Next refresh token of a session, and the hashes to store for it.
fn next_secrets(own: &str) -> Result<(String, RefreshSecrets), ApiError> {
    let next = auth::new_secret().map_err(ApiError::internal)?;
    let (own_sha256, current_sha256) = (hash_secret(own), hash_secret(&next));
    Ok((format!("{own}.{next}"), RefreshSecrets { own_sha256, current_sha256 }))
}

/// A person who is logged in, by the refresh token `session.own.next`: it is good once. When one
/// comes back, however old, one of the two who have it stole it; the session ends for both.
pub(super) async fn refresh(
    iam: &Iam,
    token: &str,
    origin: &Origin,
) -> Result<TokenResponse, ApiError> {
    let (id, secret) = token.split_once('.').unwrap_or((token, ""));
    let refused = || wrong_secret(iam, id, origin, WRONG_REFRESH);
    let session = iam.living::<Session>(id).ok_or_else(refused)?;
    let owner = session.object.owner.clone();
    let user = owner.strip_prefix("user/").and_then(|id| iam.living::<User>(id));
    let user = user.ok_or_else(refused)?;
    let name = user.object.name.clone();
    let caller = Caller::new(Principal::User(user.object.id.clone()), &name, origin.clone());
    // A browser has none to refresh.
    let SessionSecrets::Refresh(secrets) = &session.body.secrets else { return Err(refused()) };
    let (own, next) = secret.split_once('.').unwrap_or_default();
    if !secret_matches(own, &secrets.own_sha256)
        || !iam.is_of(&session.body, &user.body)
        || session.body.expires_at_ms <= iam.now().0
    {
        return Err(refused());
    }
    if !secret_matches(next, &secrets.current_sha256) {
        iam.end::<Session>(&caller, id).await?;
        return Err(wrong(WRONG_REFRESH));
    }
    let used = secrets.current_sha256.clone();
    let (next, secrets) = next_secrets(own)?;
    let begun = session.object.created_at;
    let end = session_end(&caller.principal, begun, iam.now(), session.body.by_provider);
    let expires_at_ms = end.0;
    let renew = move |_: &mut String, session: &mut Session| {
        // The second of two concurrent refreshes is refused here.
        let current = match &session.secrets {
            SessionSecrets::Refresh(secrets) => secrets.current_sha256.as_str(),
            SessionSecrets::Browser(_) => "",
        };
        if current != used {
            return Err(orchestrator::Error::Conflict { message: WRONG_REFRESH.to_owned() });
        }
        session.secrets = SessionSecrets::Refresh(secrets.clone());
        session.expires_at_ms = expires_at_ms;
        Ok(())
    };
    iam.change(&caller, id, renew).await.map_err(|error| match error.status {
        StatusCode::CONFLICT | StatusCode::NOT_FOUND => wrong(WRONG_REFRESH),
        _ => error,
    })?;
    let identity = Identity { name, principal: owner, proof: id.to_owned() };
    let refresh = format!("{id}.{next}");
    let granted = iam.authority.issue_until(identity, iam.now(), end);
    Ok(response(granted, Some(refresh)))
}

/// End of a session that is used now.
fn session_end(of: &Principal, begun: Instant, now: Instant, by_provider: bool) -> Instant {
    if *of == Principal::Local {
        return begun.plus_ms(LOCAL_SESSION_MS);
    }
    let most = if by_provider { PROVIDER_SESSION_MS_MAX } else { SESSION_MS_MAX };
    now.plus_ms(SESSION_MS).min(begun.plus_ms(most))
}

impl Iam {
    /// True if a session was begun with the current password, or the current account, of the user.
    pub(super) fn is_of(&self, session: &Session, user: &User) -> bool {
        let mark = if session.by_provider {
            let vouches = |account: &&Account| {
                self.login_provider.as_ref().is_some_and(|own| own.issuer() == account.issuer)
            };
            user.account.as_ref().filter(vouches).map(Account::mark)
        } else {
            user.secrets.password.as_ref().map(PasswordHash::fingerprint)
        };
        mark.is_some_and(|mark| mark == session.password_mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_used_lasts_and_not_for_ever() {
        const DAY: u64 = 24 * 3600 * 1000;
        let (begun, user) = (Instant(1_000 * DAY), Principal::User("1".to_owned()));
        for (day, end) in [(0, 30), (59, 89), (60, 90), (75, 90), (200, 90)] {
            let end = begun.plus_ms(end * DAY);
            assert_eq!(
                session_end(&user, begun, begun.plus_ms(day * DAY), false),
                end,
                "used on day {day}"
            );
        }
        let vouched = session_end(&user, begun, begun.plus_ms(DAY / 2), true);
        assert_eq!(vouched, begun.plus_ms(DAY), "who left the provider is out within a day");
        let local = session_end(&Principal::Local, begun, begun.plus_ms(DAY / 4), false);
        assert_eq!(local, begun.plus_ms(DAY / 2), "the local administrator's is not renewed");
    }
}
