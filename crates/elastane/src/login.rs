//! Settings of the login provider. Accesses no file except the one with the client secret.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use oidc::{BadSettings, Provider, Settings};

use super::settings::{self, ALL, Error, Find, LOGIN_PROVIDER, fault};
use cli_kit::exit;

/// Settings of the login provider, and of logins by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) settings: Settings,
    pub(crate) creates_users: bool,
    pub(crate) exchanges_tokens: bool,
}

/// The settings of the login provider; `None` without an issuer.
pub(super) fn login(values: &settings::Settings, find: Find<'_>) -> Result<Option<Login>, Error> {
    let Some(issuer) = &values.oidc_issuer else {
        let mut others = ALL.iter().filter(|setting| setting.heading == Some(LOGIN_PROVIDER));
        return match others.find_map(|setting| find(setting.key)) {
            Some(other) => Err(other.fault("needs the provider; give --oidc-issuer URL as well")),
            None => Ok(None),
        };
    };
    let Some(client_id) = &values.oidc_client_id else {
        let why = "needs to be known there; give --oidc-client-id ID as well";
        return Err(fault(find, "oidc_issuer", why));
    };
    let secret_file = values.oidc_client_secret_file.as_deref();
    let settings = Settings {
        client_secret: secret_file.map(|file| secret(file, find)).transpose()?,
        scopes: values.oidc_scopes.clone(),
        user_claim: values.oidc_user_claim.clone(),
        groups_claim: values.oidc_groups_claim.clone(),
        trust_email: values.oidc_trust_email,
        ..Settings::new(issuer, client_id)
    };
    settings.check().map_err(|error| match error {
        BadSettings::Scopes => fault(find, "oidc_scopes", error),
        _ => fault(find, "oidc_issuer", error),
    })?;
    let (creates_users, exchanges_tokens) = (values.oidc_create_users, values.oidc_token_exchange);
    Ok(Some(Login { settings, creates_users, exchanges_tokens }))
}

fn secret(file: &Path, find: Find<'_>) -> Result<String, Error> {
    let wrong = |why: String| fault(find, "oidc_client_secret_file", why);
    let text = fs::read_to_string(file)
        .map_err(|error| wrong(format!("cannot read {}: {error}", file.display())))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(wrong(format!("{} is empty", file.display()))),
        secret => Ok(secret.to_owned()),
    }
}

/// Opens the provider. It is contacted only by logins, so that the server starts without it.
pub(super) fn open(login: &Login) -> Result<Arc<iam::LoginProvider>, exit::Error> {
    let provider = Provider::new(login.settings.clone())
        .map_err(|error| exit::Error::Failed(format!("cannot set up TLS: {error}")))?;
    let Login { creates_users, exchanges_tokens, .. } = *login;
    Ok(Arc::new(iam::LoginProvider { provider, creates_users, exchanges_tokens }))
}
