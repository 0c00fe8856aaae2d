//! Requests. Owns: sending them with the credentials of the moment, and trying again what may be
//! tried again. Does not know about: what they ask for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::answer;
use crate::back_off::Jitter;
use crate::config::Config;
use crate::connector::Connector;
use crate::credentials::Credentials;
use crate::error::{Call, ConfigError, Error, Refusal, Verb};
use crate::path::REVIEWS;
use crate::tls::{self, Material};

const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("elastane/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The time for an answer and its body. A watch has its own.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A connection is probed this often, and given up after a probe without an answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes that the API server may send ahead, on a stream and on a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const FORBIDDEN: u16 = 403;
/// Most tries of a request, the first among them.
const TRIES_MAX: u32 = 5;
/// Longest wait that the API server can ask for before another try.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

type Http = legacy::Client<Connector, Full<Bytes>>;

/// A client of one API server. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    /// Address, with the path of a proxy that serves several clusters, without a slash at its end.
    server: String,
    namespace: String,
    session: Mutex<Session>,
    jitter: Jitter,
}

struct Session {
    credentials: Credentials,
    /// Connections, and what their TLS was made of.
    http: Option<(Material, Http)>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("server", &self.inner.server).finish_non_exhaustive()
    }
}

/// A request that can be sent several times.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) call: Call,
    pub(crate) path: String,
    pub(crate) body: Option<(HeaderValue, Bytes)>,
}

impl ApiRequest {
    pub(crate) const fn reading(call: Call, path: String) -> Self {
        Self { call, path, body: None }
    }

    pub(crate) fn writing(call: Call, path: String, body: &serde_json::Value) -> Self {
        Self { call, path, body: Some((JSON, body.to_string().into())) }
    }

    const fn method(&self) -> Method {
        match self.call.rule.verb {
            Verb::Get | Verb::List | Verb::Watch => Method::GET,
            Verb::Create => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        }
    }
}

impl Client {
    /// A client; nothing is sent yet. `seed` is what its jitter follows from: another for each
    /// process.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        let inner = Inner {
            server: config.server.to_string().trim_end_matches('/').to_owned(),
            namespace: config.namespace.clone(),
            session: Mutex::new(Session { credentials: Credentials::new(config), http: None }),
            jitter: Jitter::new(seed),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Namespace of the context.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    pub(crate) fn jitter(&self) -> &Jitter {
        &self.inner.jitter
    }

    /// Sends a request until there is an answer that counts, and reads it.
    ///
    /// The API server refuses with 429 before it does anything, so every request is sent again
    /// then. After other failures only those are that read, or that were never sent.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, asked: &ApiRequest) -> Result<T, Error> {
        let body = self.ask_bytes(asked).await?;
        answer::read(&asked.call, &body)
    }

    /// Sends a request like [`Self::ask`], and returns the bytes.
    pub(crate) async fn ask_bytes(&self, asked: &ApiRequest) -> Result<Bytes, Error> {
        let mut tries = 1;
        loop {
            let error = match self.try_once(asked).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let wait = self.wait_before_retry(&asked.call, &error, tries);
            let Some(wait) = wait.filter(|_| tries < TRIES_MAX) else { return Err(error) };
            tokio::time::sleep(wait).await;
            tries += 1;
        }
    }

    /// The wait before another try; none if the error is the answer.
    fn wait_before_retry(&self, call: &Call, error: &Error, tries: u32) -> Option<Duration> {
        if !error.is_transient() {
            return None;
        }
        if let Error::Refused { refusal, .. } = error {
            let not_done = refusal.code == 429;
            return (not_done || call.rule.verb.only_reads())
                .then(|| self.wait_after(error, tries));
        }
        let unsent = matches!(error, Error::Unreachable { .. });
        (unsent || call.rule.verb.only_reads()).then(|| self.wait_after(error, tries))
    }

    /// The wait that the API server requests, else one that doubles.
    pub(crate) fn wait_after(&self, error: &Error, failures: u32) -> Duration {
        let asked = match error {
            Error::Refused { refusal, .. } => refusal.retry_after,
            _ => None,
        };
        match asked {
            // Later than asked, so that not all return at that moment.
            Some(asked) => {
                let asked = asked.min(RETRY_AFTER_MAX);
                asked + self.inner.jitter.of(asked / 4)
            }
            None => self.inner.jitter.wait(failures),
        }
    }

    async fn try_once(&self, asked: &ApiRequest) -> Result<Bytes, Error> {
        let work = async { answer::body(&asked.call, self.open(asked).await?).await };
        tokio::time::timeout(ANSWER_TIMEOUT, work).await.unwrap_or_else(|_| {
            let fault = format!("none within {} s", ANSWER_TIMEOUT.as_secs());
            Err(Error::Lost { call: Box::new(asked.call.clone()), fault })
        })
    }

    /// Sends a request once. The answer is a success whose body is not read yet. Credentials that
    /// are refused are made again once.
    pub(crate) async fn open(&self, asked: &ApiRequest) -> Result<Response<Incoming>, Error> {
        let session = self.inner.session.lock().await.ready(None).await?;
        let answer = self.send(asked, &session).await?;
        let answer = if answer.status() == StatusCode::UNAUTHORIZED {
            let refused = Some(session.generation);
            let session = self.inner.session.lock().await.ready(refused).await?;
            self.send(asked, &session).await?
        } else {
            answer
        };
        if answer.status().is_success() {
            return Ok(answer);
        }
        match answer::refusal(&asked.call, answer).await {
            Error::Refused { call, refusal } if refusal.code == FORBIDDEN => {
                Err(self.forbidden(call, refusal).await)
            }
            error => Err(error),
        }
    }

    /// A right that is missing, or an admission that refuses an object: the API server has one
    /// status for both, and no admission for what reads.
    async fn forbidden(&self, call: Box<Call>, refusal: Box<Refusal>) -> Error {
        let rule = &call.rule;
        let may_be_admission = !rule.verb.only_reads() && !REVIEWS.is_of(rule);
        // A right is what is most often missing, if this cannot be found out either.
        if may_be_admission && Box::pin(self.may(rule, call.name.as_deref())).await.unwrap_or(false)
        {
            return Error::Refused { call, refusal };
        }
        Error::Forbidden { call, message: refusal.message }
    }

    async fn send(&self, asked: &ApiRequest, session: &Ready) -> Result<Response<Incoming>, Error> {
        let inner = &self.inner;
        let mut request = Request::builder()
            .method(asked.method())
            .uri(format!("{}{}", inner.server, asked.path))
            .header(ACCEPT, JSON)
            .header(USER_AGENT, AGENT);
        if let Some(bearer) = &session.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        if let Some((kind, _)) = &asked.body {
            request = request.header(CONTENT_TYPE, kind);
        }
        let body = asked.body.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default();
        let request = request
            .body(Full::new(body))
            .map_err(|error| answer::unreadable(&asked.call, error.to_string()))?;
        session.http.request(request).await.map_err(|error| {
            let call = Box::new(asked.call.clone());
            let fault = answer::innermost(&error);
            if error.is_connect() {
                Error::Unreachable { call, server: inner.server.clone(), fault }
            } else {
                Error::Lost { call, fault }
            }
        })
    }
}

/// Connections and credentials for a request.
struct Ready {
    http: Http,
    bearer: Option<HeaderValue>,
    /// Number of the credentials.
    generation: u64,
}

impl Session {
    /// The session for a request; after credentials were refused, with others.
    async fn ready(&mut self, refused: Option<u64>) -> Result<Ready, ConfigError> {
        let current = self.credentials.current(Instant::now(), refused).await?.clone();
        let made = match self.http.take() {
            // A connection has the certificate that it was made with, for good.
            Some((material, http)) if material == current.material => (material, http),
            _ => {
                let places = self.credentials.places();
                let tls = tls::config(&current.material, [&places[0], &places[1]])?;
                let config = &self.credentials.config;
                let (name, proxy) = (config.server_name.as_deref(), config.proxy.as_ref());
                (current.material, http(Connector::new(&config.server, name, proxy, tls)?))
            }
        };
        let (_, http) = self.http.insert(made);
        let http = http.clone();
        Ok(Ready { http, bearer: current.bearer, generation: current.generation })
    }
}

fn http(connector: Connector) -> Http {
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PROBE_INTERVAL)
        .http2_keep_alive_timeout(PROBE_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector)
}
