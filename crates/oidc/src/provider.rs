//! Requests to a provider: its metadata, its keys, codes for ID tokens.
//!
//! Owns: cached responses and their age; a provider which hangs or sends without end delays no
//! other login. The first request is sent at the first login.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use reqwest::{RequestBuilder, StatusCode, Url, header};
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::RootCertStore;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use units::Instant;

use crate::id_token::{self, Expected, Nonce};
use crate::keys::Keys;
use crate::settings::{is_loopback, is_safe};
use crate::{Error, Person, Settings};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long the metadata of a provider, and its keys, are cached.
const REMEMBERED_MS: u64 = 3600 * 1000;
/// Milliseconds between two requests for new keys; a forged token names a key that is not there.
const ROTATION_MS: u64 = 10 * 1000;
/// Milliseconds without requests to a provider that did not answer.
const REST_MS: u64 = 5 * 1000;

/// A provider, as far as it has been asked.
pub struct Provider {
    settings: Settings,
    http: reqwest::Client,
    known: Mutex<ProviderCache>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Provider({:?})", self.settings)
    }
}

#[derive(Default)]
struct ProviderCache {
    metadata: Option<(Instant, Arc<Metadata>)>,
    keys: Option<(Instant, Arc<Keys>)>,
    /// Time of the last request for keys because none fitted.
    rotated: Option<Instant>,
    failed: Option<(Instant, Error)>,
}

/// OpenID Connect Discovery 1.0, the part that is used.
#[derive(Debug, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// The start of a login. Only the client that starts it keeps the verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Address that the browser has to open.
    pub url: String,
    /// Comes back with the code.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// Proves, together with the code, that it is the same login (RFC 7636).
    pub verifier: String,
}

/// The end of a login.
#[derive(Debug, Clone, Copy)]
pub struct Redeemed<'a> {
    /// Code that the browser brought back.
    pub code: &'a str,
    /// Address that the browser brought it to.
    pub redirect_uri: &'a str,
    /// Verifier of [`Start`].
    pub verifier: &'a str,
    /// Nonce of [`Start`].
    pub nonce: &'a str,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

/// RFC 6749, 5.2.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Provider {
    /// A provider that has not been asked yet.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        // An unreadable certificate is not trusted.
        let _counts =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .tls_backend_preconfigured(tls);
        // A proxy cannot reach this machine's loopback for us.
        let local = Url::parse(&settings.issuer).is_ok_and(|issuer| is_loopback(&issuer));
        let builder = if local { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| innermost(&error))?;
        Ok(Self { settings, http, known: Mutex::default() })
    }

    /// Name of the provider, the `iss` of its tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Starts a login that redirects to this address.
    ///
    /// # Errors
    /// The provider does not answer.
    pub async fn start(&self, redirect_uri: &str, now: Instant) -> Result<Start, Error> {
        let metadata = self.metadata(now).await?;
        let (state, nonce, verifier) = (self.random()?, self.random()?, self.random()?);
        let hash = digest::digest(&digest::SHA256, verifier.as_bytes());
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(hash);
        let mut url = self.endpoint(&metadata.authorization_endpoint)?;
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &self.settings.scopes),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(Start { url: url.into(), state, nonce, verifier })
    }

    /// Ends a login and returns the user that the provider authenticated.
    ///
    /// # Errors
    /// The provider does not answer or refuses, or its token is not valid.
    pub async fn redeem(&self, login: Redeemed<'_>, now: Instant) -> Result<Person, Error> {
        let metadata = self.metadata(now).await?;
        let request = self.token_request(&metadata, login)?;
        let (status, body) = self.ask(request).await?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        let tokens: Tokens = self.read(&body, "its answer to a code")?;
        let mut claims = self.claims(&tokens.id_token, Nonce::Is(login.nonce), now).await?;
        if let (true, Some(endpoint), Some(token)) = (
            Person::is_partial(&claims, &self.settings),
            &metadata.userinfo_endpoint,
            &tokens.access_token,
        ) {
            let mut more = self.user_info(endpoint, token).await?;
            if more.get("sub") != claims.get("sub") {
                return Err(self.unusable("its user info is about another user"));
            }
            // The verified address is the one beside the flag, which may not be the signed one.
            if claims.get("email").is_some_and(|email| more.get("email") != Some(email)) {
                more.remove("email_verified");
            }
            // Signed claims take precedence.
            more.into_iter().for_each(|(name, value)| {
                claims.entry(name).or_insert(value);
            });
        }
        Person::of(&claims, &self.settings)
    }

    /// User in an ID token that another program got for this client.
    ///
    /// # Errors
    /// The token is not valid, or the provider does not publish its keys.
    pub async fn vouched(&self, id_token: &str, now: Instant) -> Result<Person, Error> {
        let claims = self.claims(id_token, Nonce::Any, now).await?;
        Person::of(&claims, &self.settings)
    }

    async fn claims(
        &self,
        token: &str,
        nonce: Nonce<'_>,
        now: Instant,
    ) -> Result<Map<String, Value>, Error> {
        let Settings { issuer, client_id, .. } = &self.settings;
        let expected = Expected { issuer, client_id, nonce, now };
        let verify = |keys: &Keys| id_token::verify(token, keys, expected);
        match verify(&*self.keys(now).await?) {
            Err(fault) if fault.may_be_rotation() && self.may_have_rotated(now) => {
                Ok(verify(&*self.new_keys(now).await?)?)
            }
            done => Ok(done?),
        }
    }

    fn token_request(
        &self,
        metadata: &Metadata,
        login: Redeemed<'_>,
    ) -> Result<RequestBuilder, Error> {
        let Settings { client_id, client_secret, .. } = &self.settings;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", login.code),
            ("redirect_uri", login.redirect_uri),
            ("code_verifier", login.verifier),
        ];
        let request = self.http.post(self.endpoint(&metadata.token_endpoint)?);
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        let takes = |method: &str| methods.is_none_or(|all| all.iter().any(|own| own == method));
        let request = match client_secret {
            // RFC 6749, 2.3.1: id and secret are form-encoded first.
            Some(secret) if takes("client_secret_basic") => {
                let (id, secret) =
                    (form([("", client_id.as_str())]), form([("", secret.as_str())]));
                let pair = format!("{}:{}", &id[1..], &secret[1..]);
                let basic = format!("Basic {}", BASE64_STANDARD.encode(pair));
                request.header(header::AUTHORIZATION, basic)
            }
            Some(secret) => {
                fields.extend([("client_id", client_id.as_str()), ("client_secret", secret)]);
                request
            }
            None => {
                fields.push(("client_id", client_id));
                request
            }
        };
        Ok(request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(form(fields)))
    }

    /// Error for a refused code: either this server or the user is at fault.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> Error {
        let said = serde_json::from_slice::<Refusal>(body).ok();
        let Some(Refusal { error, error_description }) = said.filter(|_| !status.is_server_error())
        else {
            return self.unavailable(format!("status {status}"));
        };
        let said = [error.as_str(), &error_description].map(units::shown).join(" ");
        match error.as_str() {
            "invalid_client" | "unauthorized_client" => {
                self.unusable(format!("it does not take the client id or secret: {said}"))
            }
            _ => Error::Refused(said.trim_end().to_owned()),
        }
    }

    async fn user_info(&self, endpoint: &str, token: &str) -> Result<Map<String, Value>, Error> {
        let request = self.http.get(self.endpoint(endpoint)?).bearer_auth(token);
        let (status, body) = self.ask(request).await?;
        match status {
            StatusCode::OK => self.read(&body, "its user info"),
            other => Err(self.unusable(format!("its user info has status {other}"))),
        }
    }

    /// Metadata of the provider.
    async fn metadata(&self, now: Instant) -> Result<Arc<Metadata>, Error> {
        if let Some((at, metadata)) = &self.known().metadata
            && is_fresh(*at, now)
        {
            return Ok(metadata.clone());
        }
        let address = format!(
            "{}/.well-known/openid-configuration",
            self.settings.issuer.trim_end_matches('/')
        );
        let metadata: Metadata = self.document(&address, now).await?;
        if metadata.issuer != self.settings.issuer {
            let own = units::shown(&metadata.issuer);
            let why = format!("it calls itself `{own}`; write --oidc-issuer exactly so");
            return Err(self.unusable(why));
        }
        let metadata = Arc::new(metadata);
        self.known().metadata = Some((now, metadata.clone()));
        Ok(metadata)
    }

    async fn keys(&self, now: Instant) -> Result<Arc<Keys>, Error> {
        if let Some((at, keys)) = &self.known().keys
            && is_fresh(*at, now)
        {
            return Ok(keys.clone());
        }
        self.new_keys(now).await
    }

    /// Gets its current keys.
    async fn new_keys(&self, now: Instant) -> Result<Arc<Keys>, Error> {
        let address = self.metadata(now).await?.jwks_uri.clone();
        let keys = Arc::new(Keys::of(self.document(&address, now).await?));
        self.known().keys = Some((now, keys.clone()));
        Ok(keys)
    }

    /// True if it is time to look for other keys; if so, it was.
    fn may_have_rotated(&self, now: Instant) -> bool {
        let mut known = self.known();
        let may = known.rotated.is_none_or(|at| now.since_ms(at) >= ROTATION_MS);
        if may {
            known.rotated = Some(now);
        }
        may
    }

    /// A public document. A failure is cached briefly, so that requests do not queue for it.
    async fn document<T: DeserializeOwned>(&self, address: &str, now: Instant) -> Result<T, Error> {
        if let Some((at, error)) = &self.known().failed
            && now.since_ms(*at) < REST_MS
        {
            return Err(error.clone());
        }
        let got = self.fetch(address).await;
        self.known().failed = got.as_ref().err().map(|error| (now, error.clone()));
        got
    }

    async fn fetch<T: DeserializeOwned>(&self, address: &str) -> Result<T, Error> {
        match self.ask(self.http.get(self.endpoint(address)?)).await? {
            (StatusCode::OK, body) => self.read(&body, address),
            (status, _) => Err(self.unavailable(format!("{address} has status {status}"))),
        }
    }

    async fn ask(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), Error> {
        let failed = |error: reqwest::Error| {
            let fault =
                if error.is_timeout() { "it takes too long".to_owned() } else { innermost(&error) };
            self.unavailable(fault)
        };
        let mut answer = request.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self.unusable("its answer is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((answer.status(), body))
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8], what: &str) -> Result<T, Error> {
        // The fault of the reader names what is missing, never what is there.
        serde_json::from_slice(body)
            .map_err(|error| self.unusable(format!("{what} cannot be read: {error}")))
    }

    /// An address that the provider names.
    fn endpoint(&self, address: &str) -> Result<Url, Error> {
        let url = Url::parse(address).ok().filter(is_safe);
        let shown = || format!("`{}` is not an https address", units::shown(address));
        url.ok_or_else(|| self.unusable(shown()))
    }

    fn random(&self) -> Result<String, Error> {
        let mut bytes = [0; 32];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| self.unavailable("no random numbers on this machine"))?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    fn known(&self) -> MutexGuard<'_, ProviderCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unavailable(&self, fault: impl Into<String>) -> Error {
        Error::Unavailable { issuer: self.settings.issuer.clone(), fault: fault.into() }
    }

    fn unusable(&self, fault: impl Into<String>) -> Error {
        Error::Unusable { issuer: self.settings.issuer.clone(), fault: fault.into() }
    }
}

fn is_fresh(at: Instant, now: Instant) -> bool {
    now.since_ms(at) < REMEMBERED_MS
}

/// Names and values as a form has them.
fn form<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut url = Url::parse("form:").expect("the shortest address there is");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
