//! Getting a token. Owns: the many published spellings of the request's keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Asks for a token. Keys are matched whatever their case, and `appId`/`appSecret` are the same
/// as `clientId`/`clientSecret`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequest {
    /// `client_credentials` or `app_token`, `password`, `refresh_token`, `exchange_token`,
    /// `external_token_exchange`.
    pub grant_type: String,
    /// Client id of the application.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// Name of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Its password.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
    /// Refresh token that came with the token before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refresh_token: String,
    /// Code that the login provider gave the browser.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Address to which the browser brought the code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub redirect_uri: String,
    /// Verifier of the login that was begun; see [`LoginStart`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code_verifier: String,
    /// Nonce of the login that was begun.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// An ID token that the login provider gave another program for this server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub external_token: String,
}

impl std::fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = if self.client_id.is_empty() { &self.username } else { &self.client_id };
        write!(f, "TokenRequest({} for {who})", self.grant_type)
    }
}

impl<'de> Deserialize<'de> for TokenRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, Option<serde_json::Value>>::deserialize(deserializer)?;
        let mut request = Self::default();
        for (key, value) in fields {
            let slot = match key.to_ascii_lowercase().as_str() {
                "granttype" | "grant_type" => &mut request.grant_type,
                "clientid" | "client_id" | "appid" => &mut request.client_id,
                "clientsecret" | "client_secret" | "appsecret" => &mut request.client_secret,
                "username" => &mut request.username,
                "password" => &mut request.password,
                "refreshtoken" | "refresh_token" => &mut request.refresh_token,
                "code" => &mut request.code,
                "redirecturi" | "redirect_uri" => &mut request.redirect_uri,
                "codeverifier" | "code_verifier" => &mut request.code_verifier,
                "nonce" => &mut request.nonce,
                "externaltoken" | "external_token" => &mut request.external_token,
                // Fields of grants other than these; the grant itself is refused by name.
                _ => continue,
            };
            match value {
                None => {}
                Some(serde_json::Value::String(text)) => *slot = text,
                Some(_) => {
                    return Err(serde::de::Error::custom(format!("`{key}` must be a string")));
                }
            }
        }
        Ok(request)
    }
}

/// A login to begin at the login provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginRequest {
    /// Address to which the browser brings the code. The provider has to know it.
    pub redirect_uri: String,
}

/// A login that was begun. Only who began it has the verifier and can end it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginStart {
    /// Address that a browser has to open.
    pub url: String,
    /// Comes back with the code; else it is the code of another login.
    pub state: String,
    /// Goes into the request for a token with the code.
    pub nonce: String,
    /// Verifier. Goes into the request for a token with the code.
    pub code_verifier: String,
}

impl std::fmt::Debug for LoginStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoginStart(..)")
    }
}

/// A token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenResponse {
    /// Goes into `Authorization: Bearer …`.
    pub access_token: String,
    /// Seconds until it stops working.
    pub expires_in: u64,
    /// Gets the next token without a password, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
}

/// A token, in the form of OAuth 2.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OAuth2TokenResponse {
    /// Goes into `Authorization: Bearer …`.
    pub access_token: String,
    /// `Bearer`.
    pub token_type: String,
    /// Seconds until it stops working.
    pub expires_in: u64,
    /// Gets the next token without a password, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
}

impl std::fmt::Debug for OAuth2TokenResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OAuth2TokenResponse(expires in {} s)", self.expires_in)
    }
}

impl std::fmt::Debug for TokenResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenResponse(expires in {} s)", self.expires_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_spelling_is_understood() {
        let want = TokenRequest {
            grant_type: "app_token".into(),
            client_id: "a".into(),
            client_secret: "b".into(),
            ..TokenRequest::default()
        };
        for (id, secret) in
            [("clientId", "clientSecret"), ("AppId", "AppSecret"), ("appID", "appSecret")]
        {
            let body = format!(r#"{{"grantType":"app_token","{id}":"a","{secret}":"b"}}"#);
            assert_eq!(serde_json::from_str::<TokenRequest>(&body).unwrap(), want, "{body}");
        }
        assert!(serde_json::from_str::<TokenRequest>(r#"{"clientId":7}"#).is_err());
    }

    #[test]
    fn secrets_are_not_printed() {
        let hush = || "hush".to_owned();
        let request = TokenRequest {
            client_secret: hush(),
            password: hush(),
            refresh_token: hush(),
            code: hush(),
            code_verifier: hush(),
            nonce: hush(),
            external_token: hush(),
            ..TokenRequest::default()
        };
        assert!(!format!("{request:?}").contains("hush"));
    }
}
