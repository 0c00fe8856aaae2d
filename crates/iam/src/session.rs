//! Sessions of users: how they begin, are renewed and end. Does not know how a user
//! authenticated.

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

/// How long a session lasts after its last refresh.
const SESSION_MS: u64 = 30 * 24 * 3600 * 1000;
/// How long it lasts at most, refreshed or not.
const SESSION_MS_MAX: u64 = 90 * 24 * 3600 * 1000;
/// How long one lasts at most that a provider vouched for: a user who may not log in there any
/// more, or is in other groups, is found out then.
const PROVIDER_SESSION_MS_MAX: u64 = 24 * 3600 * 1000;
/// Most sessions of a user; the oldest ends for a new one.
const SESSIONS_MAX: usize = 20;

const WRONG_REFRESH: &str = "the refresh token is not valid any more; log in again";

/// A logged-in user, until the refresh token is unused for too long.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) expires_at_ms: u64,
    /// Stands for the password, or the account at the provider, that it was begun with; it ends
    /// with that.
    pub(crate) password_mark: String,
    /// Whether the login provider vouched for it.
    #[serde(default)]
    pub(crate) by_provider: bool,
    #[serde(default)]
    pub(crate) secrets: SessionSecrets,
}

/// Hashes of the two parts of a refresh token. The first proves a token of this session;
/// if the second is not the current one, that token was used already.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct SessionSecrets {
    #[serde(default)]
    pub(crate) own_sha256: String,
    pub(crate) current_sha256: String,
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

/// Begins a session of a user, who has proved who it is: by the password this mark stands for, or,
/// if a provider vouches, the account.
pub(super) async fn begin(
    iam: &Iam,
    user: &Item<User>,
    (by_provider, password_mark): (bool, String),
    origin: &Origin,
) -> Result<TokenResponse, ApiError> {
    let (principal, name) = (Principal::User(user.object.id.clone()), &user.object.name);
    let caller = Caller::new(principal.clone(), name, origin.clone());
    let own = auth::new_secret().map_err(ApiError::internal)?;
    let (secret, secrets) = next_secrets(&own)?;
    let now = iam.now();
    let end = session_end(now, now, by_provider);
    let session = Session { expires_at_ms: end.0, password_mark, by_provider, secrets };
    let label = uuid::Uuid::new_v4().to_string();
    let owner = principal.to_string();
    let made = iam.make_newest(&caller, (&owner, SESSIONS_MAX), &label, &session).await?;
    logged_in(iam, &principal, name, origin).await?;
    let proof = made.object.id.clone();
    let refresh = format!("{proof}.{secret}");
    let identity = Identity { name: name.clone(), principal: owner, proof };
    Ok(response(iam.authority.issue_until(identity, now, end), Some(refresh)))
}

/// What the next refresh token of a session says, and what is kept of it.
fn next_secrets(own: &str) -> Result<(String, SessionSecrets), ApiError> {
    let next = auth::new_secret().map_err(ApiError::internal)?;
    let (own_sha256, current_sha256) = (hash_secret(own), hash_secret(&next));
    Ok((format!("{own}.{next}"), SessionSecrets { own_sha256, current_sha256 }))
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
    let secrets = &session.body.secrets;
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
    let end = session_end(session.object.created_at, iam.now(), session.body.by_provider);
    let expires_at_ms = end.0;
    let renew = move |_: &mut String, session: &mut Session| {
        // Of two refreshes at once the second is refused here.
        if session.secrets.current_sha256 != used {
            return Err(orchestrator::Error::Conflict { message: WRONG_REFRESH.to_owned() });
        }
        session.secrets = secrets.clone();
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

/// When a session ends that is used now.
fn session_end(begun: Instant, now: Instant, by_provider: bool) -> Instant {
    let most = if by_provider { PROVIDER_SESSION_MS_MAX } else { SESSION_MS_MAX };
    now.plus_ms(SESSION_MS).min(begun.plus_ms(most))
}

impl Iam {
    /// Whether a session was begun with the password, or the account, that the user has now.
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
        let begun = Instant(1_000 * DAY);
        for (day, end) in [(0, 30), (59, 89), (60, 90), (75, 90), (200, 90)] {
            let end = begun.plus_ms(end * DAY);
            assert_eq!(
                session_end(begun, begun.plus_ms(day * DAY), false),
                end,
                "used on day {day}"
            );
        }
        let vouched = session_end(begun, begun.plus_ms(DAY / 2), true);
        assert_eq!(vouched, begun.plus_ms(DAY), "who left the provider is out within a day");
    }
}
