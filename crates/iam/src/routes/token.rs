//! Tokens for credentials, and logins at the login provider.

use access::Route;
use api_types::{LoginRequest, LoginStart, OAuth2TokenResponse, TokenRequest, TokenResponse};
use axum::extract::{FromRef, FromRequestParts, Query, Request, State as FromState};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, get, post};
use http_kit::{
    ApiError, Body, Format, Html, Origin, is_loopback, parameters, parse_json, read_body,
};
use serde_json::{Map, Value};
use utoipa::openapi::schema::Type;

use super::IamState;
use crate::{Iam, grant, provider};

/// Largest body of those who have no token yet.
pub(super) const OPEN_BODY_BYTES_MAX: usize = 64 << 10;

/// The routes of tokens and logins.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let about_v2 = "A token for credentials, in the words of OAuth 2; a form or JSON";
    let tokens = [
        post("/api/v1/token", "grant_token", "A token for credentials", grant_token),
        post("/api/v2/token", "grant_token_v2", about_v2, grant_v2),
    ]
    .map(|route| route.open().of("Tokens"));
    let about = "Begins a login at the login provider";
    let page = "Shows the code of a login, to be copied";
    let logins = [
        post("/elastane/v1/login", "begin_login", about, begin_login),
        get("/elastane/v1/login/code", "show_login_code", page, show_code),
    ]
    .map(|route| route.open().of("Elastane"));
    tokens.into_iter().chain(logins)
}

async fn grant_token(
    FromState(iam): FromState<IamState>,
    Extension(origin): Extension<Origin>,
    Body(request): Body<TokenRequest, OPEN_BODY_BYTES_MAX>,
) -> Result<Json<TokenResponse>, ApiError> {
    Ok(Json(grant::grant(&iam, request, origin).await?))
}

/// `grant` with the field names of OAuth 2: a form, or JSON.
async fn grant_v2(
    FromState(iam): FromState<IamState>,
    Extension(origin): Extension<Origin>,
    request: Request,
) -> Result<Json<OAuth2TokenResponse>, ApiError> {
    let request = match read_body(request, &[Format::Json, Format::Form]).await? {
        (body, Format::Form) => form(&body)?,
        (body, Format::Json) => parse_json(&body)?,
    };
    let TokenResponse { access_token, expires_in, refresh_token } =
        grant::grant(&iam, request, origin).await?;
    let token_type = "Bearer".to_owned();
    Ok(Json(OAuth2TokenResponse { access_token, token_type, expires_in, refresh_token }))
}

async fn begin_login(
    FromState(iam): FromState<IamState>,
    Body(request): Body<LoginRequest, OPEN_BODY_BYTES_MAX>,
) -> Result<Json<LoginStart>, ApiError> {
    leads_back(&iam, &request.redirect_uri)?;
    Ok(Json(provider::start(&iam, &request.redirect_uri).await?))
}

/// Page that shows a person the code that the login provider gave.
const CODE_PAGE: &str = "/elastane/v1/login/code";

/// Refuses to begin a login whose code would go to another machine: the redirect must lead to a
/// program on the machine of the browser, or here.
fn leads_back(iam: &Iam, redirect_uri: &str) -> Result<(), ApiError> {
    let address: Option<Uri> = redirect_uri.parse().ok();
    let host = address.as_ref().and_then(Uri::host).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ends_here = address.as_ref().is_some_and(|address| address.path() == CODE_PAGE)
        && (iam.site.is_own_host)(host);
    if is_loopback(host) || ends_here {
        return Ok(());
    }
    let why = format!(
        "`{}` is neither on the machine of the browser nor {CODE_PAGE} of this server, whose address \
         is that of `--public-url`",
        units::shown(redirect_uri)
    );
    Err(ApiError::field("redirectUri", why))
}

/// Query parameters with which the login provider redirects the browser back.
struct RedirectParameters(Vec<(String, String)>);

const BROUGHT: [(&str, &str); 3] = [
    ("code", "What a token is given for"),
    ("error", "Why there is none"),
    ("error_description", "The same in words"),
];

impl Input for RedirectParameters {
    fn describe(to: &mut Description) {
        for (name, about) in BROUGHT {
            to.parameter(name, Type::String, about);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for RedirectParameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(parameters(&parts.uri)?))
    }
}

/// Page for a program on a machine without a browser: a person copies the code to it. The code is
/// useless without the verifier, which only that program has.
async fn show_code(RedirectParameters(pairs): RedirectParameters) -> Html {
    let get = |name: &str| pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    let shown = |text: &String| units::markup(&units::shown(text));
    let said = match (get("code"), get("error")) {
        (Some(code), None) => {
            let code = units::markup(code);
            format!("<p>Paste this code where you have begun to log in:<pre>{code}</pre>")
        }
        (_, error) => {
            let why = [error, get("error_description")].map(|text| text.map(shown));
            let why = why.into_iter().flatten().collect::<Vec<_>>().join(": ");
            format!("<p>The login provider gave no code. {why}<p>Begin again.")
        }
    };
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Login</title><style>\
         pre{{white-space:pre-wrap;overflow-wrap:anywhere;user-select:all}}</style>{said}"
    );
    Html(page.into())
}

/// A form is written like the query of an address.
fn form(body: &[u8]) -> Result<TokenRequest, ApiError> {
    let unreadable = || ApiError::bad("the form cannot be read; send name=value&name=value");
    let text = std::str::from_utf8(body).map_err(|_| unreadable())?;
    let address: Uri = format!("/?{}", text.trim()).parse().map_err(|_| unreadable())?;
    let Query(pairs) =
        Query::<Vec<(String, String)>>::try_from_uri(&address).map_err(|_| unreadable())?;
    let fields: Map<String, Value> =
        pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    serde_json::from_value(Value::Object(fields)).map_err(|_| unreadable())
}
