//! Logins through the login provider. Owns: the user of an account there, and a limit on the
//! requests to the provider that unknown clients cause. Does not know the provider's protocol
//! (`oidc`).

use std::sync::Arc;
use std::time::Duration;

use access::{Caller, Item};
use api_types::{LoginStart, TokenRequest, TokenResponse};
use auth::Principal;
use axum::http::StatusCode;
use http_kit::{ApiError, Origin};
use oidc::{Person, Provider, Redeemed};
use tokio::sync::Semaphore;
use view::Scope;

use crate::Iam;
use crate::email::email;
use crate::limit::Attempt;
use crate::session::{self, Beginner};
use crate::subjects::{Account, User, UserSecrets};

/// Name in the audit log while the user is not known.
pub(super) const SOMEBODY: &str = "(login provider)";
/// The maker of a user who logs in for the first time.
const SYSTEM: &str = "elastane";
const EXCHANGE_IS_OFF: &str = "grantType: external_token_exchange is switched off on this server; an \
    administrator switches it on with --oidc-token-exchange (oidc_token_exchange = true in the \
    configuration file); log in with `runai login` instead";
/// Codes that are redeemed at a time.
const ASKING_MAX: usize = 16;
/// Longest wait of a code for a slot.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// A login provider, and what its word is worth.
#[derive(Debug)]
pub struct LoginProvider {
    /// The provider.
    pub provider: Provider,
    /// True if a login creates the user; else only existing users log in.
    pub creates_users: bool,
    /// True if ID tokens that other programs got for this server are exchanged for a session.
    pub exchanges_tokens: bool,
}

impl LoginProvider {
    pub(super) fn issuer(&self) -> &str {
        self.provider.issuer()
    }
}

/// Slots for requests to the provider.
pub(crate) struct ProviderPermits(Semaphore);

impl Default for ProviderPermits {
    fn default() -> Self {
        Self(Semaphore::new(ASKING_MAX))
    }
}

impl Iam {
    fn vouching(&self) -> Result<&Arc<LoginProvider>, ApiError> {
        self.login_provider.as_ref().ok_or_else(|| {
            let why = "this server has no login provider; log in with a password, or start it with \
                       --oidc-issuer";
            ApiError::new(StatusCode::NOT_FOUND, why)
        })
    }
}

/// Begins a login that ends at this address.
pub(crate) async fn start(iam: &Iam, redirect_uri: &str) -> Result<LoginStart, ApiError> {
    if !redirect_uri.starts_with("http://") && !redirect_uri.starts_with("https://") {
        return Err(ApiError::field("redirectUri", "write http://… or https://…"));
    }
    let started = iam.vouching()?.provider.start(redirect_uri, iam.now()).await;
    let oidc::Start { url, state, nonce, verifier } = started.map_err(fault)?;
    Ok(LoginStart { url, state, nonce, code_verifier: verifier })
}

/// A person, by a code or an ID token of the provider.
pub(super) async fn grant(
    iam: &Iam,
    request: &TokenRequest,
    origin: &Origin,
) -> Result<TokenResponse, ApiError> {
    let login = iam.vouching()?;
    let exchange = request.grant_type == "external_token_exchange";
    if exchange && !login.exchanges_tokens {
        return Err(ApiError::forbidden(EXCHANGE_IS_OFF));
    }
    // The name is not known yet, so a refusal counts for the address.
    let who = Attempt { name: SOMEBODY, address: &origin.address, known: false };
    iam.wrong_logins.check(who, iam.now()).map_err(ApiError::too_many)?;
    let person = if exchange {
        let token = given("externalToken", &request.external_token)?;
        login.provider.vouched(token, iam.now()).await
    } else {
        redeem(iam, login, request).await?
    };
    let person = person.map_err(|error| {
        let fault = fault(error);
        if fault.status == StatusCode::UNAUTHORIZED {
            // Other wrong attempts at the same moment may have reached the limit already.
            let _ = iam.wrong_logins.count(who, iam.now());
        }
        fault
    })?;
    let account = Account {
        issuer: login.issuer().to_owned(),
        subject: person.subject.clone(),
        groups: person.groups.clone().into(),
    };
    let mark = account.mark();
    let user = user_of(iam, login, &person, account, origin).await?;
    session::begin(iam, &Beginner::of(&user, mark, true), origin).await
}

async fn redeem(
    iam: &Iam,
    login: &LoginProvider,
    request: &TokenRequest,
) -> Result<Result<Person, oidc::Error>, ApiError> {
    let redeemed = Redeemed {
        code: given("code", &request.code)?,
        redirect_uri: given("redirectUri", &request.redirect_uri)?,
        verifier: given("codeVerifier", &request.code_verifier)?,
        nonce: given("nonce", &request.nonce)?,
    };
    let turn = tokio::time::timeout(TURN_WAIT, iam.asking.0.acquire()).await;
    let _turn = turn.ok().and_then(Result::ok).ok_or_else(|| ApiError::too_many(1))?;
    Ok(login.provider.redeem(redeemed, iam.now()).await)
}

fn given<'a>(field: &str, text: &'a str) -> Result<&'a str, ApiError> {
    let hint = "must be set; POST /elastane/v1/login begins a login";
    if text.is_empty() { Err(ApiError::field(field, hint)) } else { Ok(text) }
}

fn fault(error: oidc::Error) -> ApiError {
    use oidc::Error as E;
    let status = match error {
        E::Unavailable { .. } | E::Unusable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        E::Refused(_) | E::Token(_) | E::UnknownUser(_) => StatusCode::UNAUTHORIZED,
    };
    ApiError::new(status, error.to_string())
}

fn unverified(name: &str) -> ApiError {
    let name = units::shown(name);
    ApiError::forbidden(format!(
        "the login provider does not say that it verified the e-mail address {name} \
         (`email_verified` is not true), so this account is not linked to a user; verify the \
         address there. If the provider verifies all addresses without saying so, an \
         administrator starts the server with --oidc-trust-email"
    ))
}

/// The user with this account; else the one of this name, whose account it is from now on; else a
/// new one. A name is an e-mail address, and counts only if it is verified: at many providers
/// people write into their account what they like.
async fn user_of(
    iam: &Iam,
    login: &LoginProvider,
    person: &Person,
    account: Account,
    origin: &Origin,
) -> Result<Item<User>, ApiError> {
    let same = |own: &Account| own.issuer == account.issuer && own.subject == account.subject;
    let known = || {
        let mut all = iam.all::<User>()?.into_iter();
        match all.find(|user| user.body.account.as_ref().is_some_and(same)) {
            // The account is known, even if its address has changed.
            Some(user) => Ok(Some(user)),
            None if !person.is_verified => Err(unverified(&person.name)),
            None => iam.user_named(&email(&person.name)?),
        }
    };
    let user = if let Some(user) = known()? {
        user
    } else {
        let name = email(&person.name)?;
        if !login.creates_users || iam.authority.is_built_in_name(&name) {
            let why = format!("there is no user {name} here; ask an administrator to create it");
            return Err(ApiError::forbidden(why));
        }
        let by = Caller::new(Principal::Admin, SYSTEM, origin.clone());
        let secrets = UserSecrets::default();
        let new = User { must_change: false, secrets, account: Some(account.clone()) };
        match iam.make(&by, Scope::Tenant, &name, &new).await {
            // Another first login of the same person was faster.
            Err(taken) if taken.status == StatusCode::CONFLICT => known()?.ok_or(taken)?,
            made => return made,
        }
    };
    if user.body.account.as_ref() == Some(&account) {
        return Ok(user);
    }
    let by =
        Caller::new(Principal::User(user.object.id.clone()), &user.object.name, origin.clone());
    let link = move |name: &mut String, user: &mut User| {
        let other = |own: &Account| own.issuer == account.issuer && own.subject != account.subject;
        if user.account.as_ref().is_some_and(other) {
            let message = format!(
                "{name} is another account at the login provider; an administrator who knows that \
                 it is the same person deletes the user first"
            );
            return Err(orchestrator::Error::Conflict { message });
        }
        user.account = Some(account.clone());
        Ok(())
    };
    iam.change(&by, &user.object.id, link).await
}
