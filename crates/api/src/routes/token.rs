//! Tokens for credentials.

use api_types::{TokenRequest, TokenResponse};
use axum::Json;
use axum::extract::State as FromState;
use axum::http::StatusCode;

use super::Shared;
use crate::edge::{Body, Fault};

pub(super) async fn grant(
    FromState(state): FromState<Shared>,
    Body(request): Body<TokenRequest>,
) -> Result<Json<TokenResponse>, Fault> {
    let TokenRequest { grant_type, client_id, client_secret } = request;
    let granted = state
        .authority
        .grant(&grant_type, &client_id, &client_secret, state.now())
        .map_err(|error| match error {
            auth::Error::WrongCredentials => {
                Fault::new(StatusCode::UNAUTHORIZED, error.to_string())
            }
            other => Fault::bad(other.to_string()),
        })?;
    let (access_token, expires_in) = (granted.token, granted.expires_in_s);
    Ok(Json(TokenResponse { access_token, expires_in }))
}
