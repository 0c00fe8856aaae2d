//! Settings of a server for its provider.

use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

/// Settings of a server for its provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address of the provider, exactly as in its tokens.
    pub issuer: String,
    /// Id of this server at the provider.
    pub client_id: String,
    /// Secret of this server at the provider; `None` for a public client.
    pub client_secret: Option<String>,
    /// Requested scopes, separated by spaces; `openid` is one of them.
    pub scopes: String,
    /// Claim with the e-mail address, which is the user's name here.
    pub user_claim: String,
    /// Claim with the groups.
    pub groups_claim: String,
    /// True if the provider verifies every address without saying so in `email_verified`.
    pub trust_email: bool,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Settings({} as {})", self.issuer, self.client_id)
    }
}

/// Error of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadSettings {
    /// The issuer is no address, or would be asked without encryption.
    #[error("write the issuer as the provider does, https://HOST[/PATH]")]
    Issuer,
    /// The scopes lack `openid`, without which there is no ID token.
    #[error("`openid` has to be one of the scopes")]
    Scopes,
}

impl Settings {
    /// Settings with what providers usually take.
    #[must_use]
    pub fn new(issuer: &str, client_id: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: None,
            scopes: "openid email profile".to_owned(),
            user_claim: "email".to_owned(),
            groups_claim: "groups".to_owned(),
            trust_email: false,
        }
    }

    /// Refuses settings that cannot work.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn check(&self) -> Result<(), BadSettings> {
        let issuer = Url::parse(&self.issuer).map_err(|_| BadSettings::Issuer)?;
        let plain = issuer.query().is_none() && issuer.fragment().is_none();
        let known = issuer.username().is_empty() && issuer.password().is_none();
        if !plain || !known || !is_safe(&issuer) {
            return Err(BadSettings::Issuer);
        }
        let mut scopes = self.scopes.split_ascii_whitespace();
        scopes.any(|scope| scope == "openid").then_some(()).ok_or(BadSettings::Scopes)
    }
}

/// True if what is sent there is encrypted or stays on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// True if the address is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_asked_encrypted_or_on_this_machine() {
        for (issuer, good) in [
            ("https://id.example.org/realms/x", true),
            ("http://127.0.0.1:5556/dex", true),
            ("http://[::1]:1", true),
            ("http://localhost:1", true),
            ("http://id.example.org", false),
            ("http://127.0.0.1.example.org", false),
            ("https://ann:hush@id.example.org", false),
            ("https://id.example.org?x=1", false),
            ("https://id.example.org#x", false),
            ("ftp://id.example.org", false),
            ("id.example.org", false),
            ("", false),
        ] {
            assert_eq!(Settings::new(issuer, "c").check().is_ok(), good, "{issuer}");
        }
        let scopes = Settings { scopes: "email".into(), ..Settings::new("https://x.org", "c") };
        assert_eq!(scopes.check(), Err(BadSettings::Scopes));
    }

    #[test]
    fn the_secret_is_not_printed() {
        let client_secret = Some("hush".to_owned());
        let settings = Settings { client_secret, ..Settings::new("https://x.org", "c") };
        assert!(!format!("{settings:?}").contains("hush"));
    }
}
