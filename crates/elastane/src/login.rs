//! The values that say at which provider people log in. Touches nothing but the file with the secret.

use std::fs;
use std::sync::Arc;

use oidc::{BadSettings, Provider, Settings};

use super::config::{Error, Given, KEYS, boolean};
use cli_kit::exit;

/// At which provider people log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) settings: Settings,
    pub(crate) creates_users: bool,
    pub(crate) exchanges_tokens: bool,
}

/// What the values say; none without an issuer.
pub(super) fn login(find: &dyn Fn(&str) -> Option<Given>) -> Result<Option<Login>, Error> {
    let Some(issuer) = find("oidc_issuer") else {
        let mut others = KEYS.into_iter().filter(|key| key.starts_with("oidc_"));
        return match others.find_map(find) {
            Some(other) => Err(other.fault("needs the provider; give --oidc-issuer URL as well")),
            None => Ok(None),
        };
    };
    let client_id = find("oidc_client_id")
        .ok_or_else(|| issuer.fault("needs to be known there; give --oidc-client-id ID as well"))?;
    let scopes = find("oidc_scopes");
    let switch = |key: &str| find(key).map(|given| boolean(&given)).transpose();
    let usual = Settings::new(&issuer.text, &client_id.text);
    let or = |key: &str, usual: String| find(key).map_or(usual, |given| given.text);
    let settings = Settings {
        client_secret: find("oidc_client_secret_file").map(|file| secret(&file)).transpose()?,
        scopes: or("oidc_scopes", usual.scopes.clone()),
        user_claim: or("oidc_user_claim", usual.user_claim.clone()),
        groups_claim: or("oidc_groups_claim", usual.groups_claim.clone()),
        trust_email: switch("oidc_trust_email")?.unwrap_or(false),
        ..usual
    };
    settings.check().map_err(|error| match (error, &scopes) {
        (BadSettings::Scopes, Some(given)) => given.fault(error),
        _ => issuer.fault(error),
    })?;
    let creates_users = switch("oidc_create_users")?.unwrap_or(false);
    let exchanges_tokens = switch("oidc_token_exchange")?.unwrap_or(false);
    Ok(Some(Login { settings, creates_users, exchanges_tokens }))
}

fn secret(file: &Given) -> Result<String, Error> {
    let text = fs::read_to_string(&file.text)
        .map_err(|error| file.fault(format!("cannot read {}: {error}", file.text)))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        Err(file.fault(format!("{} is empty", file.text)))
    } else {
        Ok(secret.to_owned())
    }
}

/// The provider. It is asked when somebody logs in, so that the server starts without it.
pub(super) fn open(login: &Login) -> Result<Arc<api::LoginProvider>, exit::Error> {
    let provider = Provider::new(login.settings.clone())
        .map_err(|error| exit::Error::Failed(format!("cannot set up TLS: {error}")))?;
    let Login { creates_users, exchanges_tokens, .. } = *login;
    Ok(Arc::new(api::LoginProvider { provider, creates_users, exchanges_tokens }))
}
