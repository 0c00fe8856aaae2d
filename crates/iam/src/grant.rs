//! Tokens for credentials. Owns: the grants, and that guessing is slow.

use access::audit_detail;
use api_types::{TokenRequest, TokenResponse};
use auth::{Identity, PasswordHash, Principal, fingerprint, secret_matches};
use http_kit::{ApiError, Origin};

use crate::Iam;
use crate::limit::Attempt;
use crate::logins::{logged_in, response, wrong, wrong_secret};
use crate::provider;
use crate::session::{self, Beginner};
use crate::subjects::{AccessKey, ServiceAccount};

const WRONG_CLIENT: &str =
    "client id and secret do not match; ask the administrator for a new secret";
const WRONG_PASSWORD: &str =
    "user name and password do not match; try again, or ask an administrator for a new password";

/// Gives a token for what a request proves.
pub(crate) async fn grant(
    iam: &Iam,
    request: TokenRequest,
    origin: Origin,
) -> Result<TokenResponse, ApiError> {
    let name = match request.grant_type.as_str() {
        "client_credentials" | "app_token" => request.client_id.clone(),
        "password" => request.username.trim().to_lowercase(),
        "refresh_token" => request.refresh_token.split('.').next().unwrap_or_default().to_owned(),
        // The user is known only after the provider's answer was verified.
        "exchange_token" | "external_token_exchange" => provider::SOMEBODY.to_owned(),
        other => {
            return Err(ApiError::bad(auth::Error::UnknownGrant(other.to_owned()).to_string()));
        }
    };
    let outcome = match request.grant_type.as_str() {
        "password" => match by_password(iam, &name, request.password, &origin).await {
            Ok(who) => session::begin(iam, &who, &origin).await,
            Err(error) => Err(error),
        },
        "refresh_token" => session::refresh(iam, &request.refresh_token, &origin).await,
        "exchange_token" | "external_token_exchange" => {
            provider::grant(iam, &request, &origin).await
        }
        _ => client(iam, &name, &request.client_secret, &origin).await,
    };
    if let Err(error) = &outcome
        && iam.notes_refusal(&name, &origin)
    {
        let control = iam.control.asked_from(audit_detail(&origin, true, Some(error.status)));
        control.record(&units::shown(&name), "token.grant", "", &error.message());
    }
    outcome
}

/// A program, by client id and secret.
async fn client(
    iam: &Iam,
    id: &str,
    secret: &str,
    origin: &Origin,
) -> Result<TokenResponse, ApiError> {
    if let Some(granted) = iam.authority.grant_built_in(id, secret, iam.now()) {
        let granted = granted.map_err(|_| wrong_secret(iam, id, origin, WRONG_CLIENT))?;
        let detail = audit_detail(origin, true, None);
        let name = &granted.identity.name;
        iam.control.asked_from(detail).record(name, "token.grant", name, "ok");
        return Ok(response(granted, None));
    }
    let account = iam.living::<ServiceAccount>(id);
    let account = account.or_else(|| iam.account_named(id)).filter(|own| own.body.enabled);
    let (principal, name, hash, proof) = if let Some(account) = account {
        let (principal, proof) =
            (Principal::ServiceAccount(account.object.id.clone()), account.body.proof());
        (principal, account.object.name.clone(), account.body.secrets.sha256, proof)
    } else if let Some(key) = iam.living::<AccessKey>(id) {
        let principal = Principal::AccessKey(id.to_owned());
        let hash = key.body.secrets.sha256;
        (principal, key.object.created_by.clone(), hash.clone(), fingerprint(&hash))
    } else {
        // The digest is taken for an unknown client, too, so that both refusals take equally long.
        (Principal::Admin, String::new(), String::new(), String::new())
    };
    if !secret_matches(secret, &hash) || principal.is_built_in() {
        return Err(wrong_secret(iam, id, origin, WRONG_CLIENT));
    }
    let identity = Identity { name: name.clone(), principal: principal.to_string(), proof };
    logged_in(iam, &principal, &name, origin).await?;
    Ok(response(iam.authority.issue(identity, iam.now()), None))
}

/// A person, by name and password.
pub(crate) async fn by_password(
    iam: &Iam,
    name: &str,
    password: String,
    origin: &Origin,
) -> Result<Beginner, ApiError> {
    let user = iam.user_named(name)?;
    let hash = user.as_ref().and_then(|user| user.body.secrets.password.clone());
    let password_mark = hash.as_ref().map(PasswordHash::fingerprint).unwrap_or_default();
    let last = user.as_ref().and_then(|user| iam.login_of(&user.object.key()));
    let known = last.is_some_and(|last| last.body.is_known_at(&origin.address));
    let who = Attempt { name, address: &origin.address, known };
    let matches = iam.matches(who, hash, password).await?;
    let user = user.filter(|_| matches).ok_or_else(|| wrong(WRONG_PASSWORD))?;
    Ok(Beginner::of(&user, password_mark, false))
}
