//! One request, one answer. Owns headers, time limits and the sorting of failures.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Client, Error, listener};

/// A server on the same machine answers in milliseconds; a remote one gets this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time to get a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl Client {
    /// A client of the server at this address.
    ///
    /// # Errors
    /// The address is not one of HTTP.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, Error> {
        let base = url.trim_end_matches('/');
        let bad = |fault| Error::BadUrl { url: url.to_owned(), fault };
        let parsed = reqwest::Url::parse(base).map_err(|_| bad("write http://HOST:PORT"))?;
        match parsed.scheme() {
            "http" => {}
            "https" => return Err(bad("https is not supported yet; use http over a safe network")),
            _ => return Err(bad("write http://HOST:PORT")),
        }
        let mut builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT);
        if is_loopback(base) {
            // A proxy cannot reach this machine's loopback for us.
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| Error::Protocol { url: base.to_owned(), fault: error.to_string() })?;
        Ok(Self { http, base: base.to_owned(), token, source: "CLI", owner: None })
    }

    /// The same, but nothing is sent unless a program of this user listens there.
    pub(crate) fn only_of(self, owner: u32) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Where the server is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// What it proves itself with.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header(api_types::SOURCE_HEADER, self.source);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(self.request(Method::GET, path).timeout(ANSWER_TIMEOUT)).await
    }

    pub(crate) async fn send<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, Error> {
        self.read(self.request(method, path).json(body).timeout(ANSWER_TIMEOUT)).await
    }

    /// For answers whose body says nothing.
    pub(crate) async fn act(&self, method: Method, path: &str) -> Result<(), Error> {
        self.accept(self.request(method, path).timeout(ANSWER_TIMEOUT)).await.map(drop)
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let answer = self.accept(request).await?;
        let url = answer.url().to_string();
        let body = answer.bytes().await.map_err(|error| self.failed(&error))?;
        serde_json::from_slice(&body).map_err(|error| Error::Protocol {
            url,
            fault: format!("{error}; is it an elastane server of this version?"),
        })
    }

    /// Sends, and turns refusals into errors.
    pub(crate) async fn accept(&self, request: RequestBuilder) -> Result<Response, Error> {
        self.check_listener()?;
        let answer = request.send().await.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.bytes().await.map_err(|error| self.failed(&error))?;
        let said = serde_json::from_slice::<api_types::Error>(&body).ok();
        if status == StatusCode::UNAUTHORIZED {
            let message = said.map_or_else(|| "unauthorized".to_owned(), |said| said.message);
            return Err(Error::NotLoggedIn { url: self.base.clone(), message });
        }
        Err(match said {
            Some(said) => {
                Error::Api { code: status.as_u16(), message: said.message, details: said.details }
            }
            None => Error::Protocol { url: self.base.clone(), fault: format!("status {status}") },
        })
    }

    /// A server that was killed leaves its address behind, where anybody may listen by now.
    pub(crate) fn check_listener(&self) -> Result<(), Error> {
        match self.owner {
            Some(uid) if !listener::is_of_user(&self.base, uid) => {
                Err(Error::NotRunning { url: self.base.clone() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn failed(&self, error: &reqwest::Error) -> Error {
        if error.is_connect() {
            return Error::NotRunning { url: self.base.clone() };
        }
        let fault = if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            innermost(error).to_string()
        };
        Error::Protocol { url: self.base.clone(), fault }
    }
}

fn innermost(error: &dyn std::error::Error) -> &dyn std::error::Error {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner
}

/// Whether the address is this machine and no other.
pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
