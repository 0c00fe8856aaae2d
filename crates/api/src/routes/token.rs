//! Tokens for credentials.

use api_types::{OAuth2TokenResponse, TokenRequest, TokenResponse};
use axum::extract::{Query, Request, State as FromState};
use axum::http::{HeaderMap, Uri, header};
use axum::{Extension, Json};
use serde_json::{Map, Value};

use super::Shared;
use crate::edge::{Body, Fault, Origin, parse_json, read_body};
use crate::identity;

pub(super) async fn grant(
    FromState(server): FromState<Shared>,
    Extension(origin): Extension<Origin>,
    Body(request): Body<TokenRequest>,
) -> Result<Json<TokenResponse>, Fault> {
    Ok(Json(identity::grant(&server, request, origin).await?))
}

/// The same in the words of OAuth 2: a form, or JSON.
pub(super) async fn grant_v2(
    FromState(server): FromState<Shared>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<OAuth2TokenResponse>, Fault> {
    let body = read_body(request).await?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let request = match content_type {
        Some(kind) if kind.starts_with("application/x-www-form-urlencoded") => form(&body)?,
        _ => parse_json(&body)?,
    };
    let TokenResponse { access_token, expires_in, refresh_token } =
        identity::grant(&server, request, origin).await?;
    let token_type = "Bearer".to_owned();
    Ok(Json(OAuth2TokenResponse { access_token, token_type, expires_in, refresh_token }))
}

/// A form is written like the query of an address.
fn form(body: &[u8]) -> Result<TokenRequest, Fault> {
    let unreadable = || Fault::bad("the form cannot be read; send name=value&name=value");
    let text = std::str::from_utf8(body).map_err(|_| unreadable())?;
    let address: Uri = format!("/?{}", text.trim()).parse().map_err(|_| unreadable())?;
    let Query(pairs) =
        Query::<Vec<(String, String)>>::try_from_uri(&address).map_err(|_| unreadable())?;
    let fields: Map<String, Value> =
        pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    serde_json::from_value(Value::Object(fields)).map_err(|_| unreadable())
}
