//! A provider for tests: it signs any claims.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// A key that signs.
#[derive(Debug)]
pub struct Signer {
    kid: String,
    pair: EcdsaKeyPair,
}

impl Signer {
    /// A new key with this id.
    ///
    /// # Panics
    /// There is no randomness.
    #[must_use]
    pub fn new(kid: &str) -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).expect("a key");
        Self { kid: kid.to_owned(), pair }
    }

    /// Published key set.
    #[must_use]
    pub fn jwks(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "x": x, "y": y}]})
    }

    /// A token with these claims.
    #[must_use]
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(json!({"typ": "JWT"}), claims)
    }

    /// Signs with more fields in the header.
    ///
    /// # Panics
    /// The header is no object, or there is no randomness.
    #[must_use]
    pub fn sign_with(&self, mut header: Value, claims: &Value) -> String {
        header["alg"] = json!("ES256");
        header["kid"] = json!(self.kid);
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature =
            self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A provider, listening until the runtime of the test ends.
#[derive(Debug, Clone)]
pub struct FakeProvider {
    address: SocketAddr,
    says: Arc<Mutex<Says>>,
}

/// Responses of a fake provider.
#[derive(Debug)]
pub struct Says {
    /// Its key.
    pub signer: Signer,
    /// Changes of its metadata.
    pub metadata: Value,
    /// Claims of the next ID token beside the usual ones, which are about Ann.
    pub claims: Value,
    /// Usual claims that the next ID token lacks.
    pub left_out: Vec<&'static str>,
    /// The user info.
    pub user_info: Value,
    /// Response to a code in place of tokens.
    pub refusal: Option<(u16, Value)>,
    /// Number of requests for its keys.
    pub keys_asked: usize,
    /// The last requests for tokens: authorization and form.
    pub asked: Vec<(String, String)>,
}

impl FakeProvider {
    /// A provider at a free port.
    ///
    /// # Panics
    /// There is no port.
    pub async fn start() -> Self {
        let says = Says {
            signer: Signer::new("one"),
            metadata: json!({}),
            claims: json!({}),
            left_out: Vec::new(),
            user_info: json!({}),
            refusal: None,
            keys_asked: 0,
            asked: Vec::new(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let own = Self { address, says: Arc::new(Mutex::new(says)) };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/me", get(user_info))
            .with_state(own.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        own
    }

    /// Name of the provider, the `iss` of its tokens.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its responses, to be changed.
    pub fn says(&self) -> MutexGuard<'_, Says> {
        self.says.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An ID token for the client `elastane`, issued now.
    ///
    /// # Panics
    /// The claims are no object.
    #[must_use]
    pub fn id_token(&self) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now_s = now.expect("after 1970").as_secs();
        let mut claims = json!({
            "iss": self.issuer(), "aud": "elastane", "sub": "7", "email": "ann@example.org",
            "email_verified": true, "iat": now_s, "exp": now_s + 300,
        });
        let says = self.says();
        let more = says.claims.as_object().expect("claims").clone();
        let own = claims.as_object_mut().expect("claims");
        own.retain(|name, _| !says.left_out.contains(&name.as_str()));
        own.extend(more);
        says.signer.sign(&claims)
    }
}

async fn metadata(State(own): State<FakeProvider>) -> Json<Value> {
    let at = |path: &str| format!("{}{path}", own.issuer());
    let mut metadata = json!({
        "issuer": own.issuer(), "authorization_endpoint": at("/login?kind=any"),
        "token_endpoint": at("/token"), "jwks_uri": at("/keys"), "userinfo_endpoint": at("/me"),
    });
    let changes = own.says().metadata.as_object().expect("changes").clone();
    metadata.as_object_mut().expect("metadata").extend(changes);
    Json(metadata)
}

async fn keys(State(own): State<FakeProvider>) -> Json<Value> {
    let mut says = own.says();
    says.keys_asked += 1;
    Json(says.signer.jwks())
}

async fn token(
    State(own): State<FakeProvider>,
    headers: HeaderMap,
    form: String,
) -> (StatusCode, Json<Value>) {
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    own.says().asked.push((authorization.unwrap_or_default().to_owned(), form));
    if let Some((status, body)) = own.says().refusal.clone() {
        return (StatusCode::from_u16(status).expect("a status"), Json(body));
    }
    let body =
        json!({"access_token": "opaque", "token_type": "Bearer", "id_token": own.id_token()});
    (StatusCode::OK, Json(body))
}

async fn user_info(State(own): State<FakeProvider>, headers: HeaderMap) -> Json<Value> {
    assert_eq!(headers.get("authorization").expect("a token"), "Bearer opaque");
    Json(own.says().user_info.clone())
}
