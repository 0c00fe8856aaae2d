//! Requests and responses. Owns headers, time limits and the classification of failures.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Client, Credential, Error, Sent, find, listener, trust};

/// Maximum time for a response: one from the same machine takes milliseconds.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Text of the error for a server that does not answer a TLS handshake.
const NO_TLS: &str = "what listens there speaks no TLS; write http:// in place of https://";
/// Text for a response or a session that was cut off.
pub(crate) const GONE: &str = "the server went away";

impl Client {
    /// A client of the server at this address.
    ///
    /// # Errors
    /// The address is not one of HTTP or has a login in it, or the file of authorities is invalid.
    pub fn new(url: &str, token: Option<String>, ca: Option<&Path>) -> Result<Self, Error> {
        let (base, scheme) = checked(url)?;
        let trusted =
            if scheme == "https" { trust::authorities(ca)? } else { trust::no_authorities()? };
        let http = connector(&base, trusted)?;
        Ok(Self::over(http, base, token, None))
    }

    /// A client that sends nothing unless a program of this user listens there. This authenticates
    /// the server, so any certificate is accepted.
    pub(crate) fn of_user(url: &str, token: Option<String>, owner: u32) -> Result<Self, Error> {
        let (base, _) = checked(url)?;
        let http = connector(&base, trust::anybody()?)?;
        Ok(Self::over(http, base, token, Some(owner)))
    }

    fn over(
        http: reqwest::Client,
        base: String,
        token: Option<String>,
        owner: Option<u32>,
    ) -> Self {
        let (source, notice) = ("CLI", Arc::default());
        let credential = token.as_ref().map_or(Credential::None, |_| Credential::Variable);
        Self { http, base, token, renewed_in: None, credential, source, owner, told: None, notice }
    }

    /// Makes the client read its token from this state directory for each request.
    pub(crate) fn renewed_in(self, state_dir: &Path) -> Self {
        let (renewed_in, credential) = (Some(state_dir.to_owned()), Credential::StateDir);
        Self { renewed_in, credential, ..self }
    }

    /// Notice of the server in its last response: the runtime of the pods does not answer.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// True if the address is a loopback address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        listener::is_loopback(&self.base)
    }

    /// The bearer token.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A client of this server with the token of a login, or without a token.
    #[must_use]
    pub fn with_token(self, token: Option<String>) -> Self {
        let credential = token.as_ref().map_or(Credential::None, |_| Credential::Login);
        Self { token, renewed_in: None, credential, ..self }
    }

    /// Sets a hook that is called after each request.
    #[must_use]
    pub fn telling(self, told: fn(&Sent<'_>)) -> Self {
        Self { told: Some(told), ..self }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header(api_types::SOURCE_HEADER, self.source);
        match self.bearer() {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The token for a request. If the file cannot be read, the last one is sent, and the server
    /// refuses it if it is invalid.
    fn bearer(&self) -> Option<String> {
        let renewed = self.renewed_in.as_deref().and_then(|dir| find::read_token(dir).ok()?);
        renewed.or_else(|| self.token.clone())
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

    /// Sends a request whose response has no body of interest.
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

    /// Sends a request, and converts refusals to errors.
    pub(crate) async fn accept(&self, request: RequestBuilder) -> Result<Response, Error> {
        self.check_listener()?;
        let answer = self.exchange(request).await.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        let body = answer.bytes().await.map_err(|error| self.failed(&error))?;
        let said = serde_json::from_slice::<api_types::Error>(&body).ok();
        if status == StatusCode::UNAUTHORIZED {
            let message = said.map_or_else(|| "unauthorized".to_owned(), |said| said.message);
            let url = self.base.clone();
            let credential = self.bearer().map_or(Credential::None, |_| self.credential);
            return Err(Error::NotLoggedIn { url, message, credential });
        }
        Err(match said {
            Some(said) => {
                let missing = said.unknown_name == Some(true);
                let code = if missing { StatusCode::NOT_FOUND } else { status }.as_u16();
                let api_types::Error { message, details, field_fault, .. } = said;
                Error::Api { code, message, details, field_fault }
            }
            None => Error::Protocol { url: self.base.clone(), fault: format!("status {status}") },
        })
    }

    async fn exchange(&self, request: RequestBuilder) -> reqwest::Result<Response> {
        let answer = self.sent(request).await?;
        let notice = answer.headers().get(api_types::NOTICE_HEADER);
        let notice = notice.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        *self.notice.lock().unwrap_or_else(PoisonError::into_inner) = notice;
        Ok(answer)
    }

    async fn sent(&self, request: RequestBuilder) -> reqwest::Result<Response> {
        let Some(told) = self.told else { return request.send().await };
        let request = request.build()?;
        let (method, url) = (request.method().clone(), request.url().clone());
        let since = Instant::now();
        let answer = self.http.execute(request).await;
        let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        let (method, path) = (method.as_str(), url.path());
        told(&Sent { method, path, status, ms: since.elapsed().as_millis() });
        answer
    }

    /// Checks the owner of the listener: another user may listen at the address of a killed server.
    pub(crate) fn check_listener(&self) -> Result<(), Error> {
        match self.owner {
            Some(uid) if !listener::is_of_user(&self.base, uid) => {
                Err(Error::NotRunning { url: self.base.clone() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn failed(&self, error: &reqwest::Error) -> Error {
        let url = self.base.clone();
        match causes(error).find_map(|cause| cause.downcast_ref()) {
            Some(fault @ rustls::Error::InvalidCertificate(_)) => {
                let fault = fault.to_string();
                let hint = what_to_do(&fault);
                return Error::Untrusted { url, fault, hint };
            }
            Some(rustls::Error::InvalidMessage(_)) => return Error::BadUrl { url, fault: NO_TLS },
            _ => {}
        }
        if error.is_connect() && causes(error).any(is_refused) {
            return Error::NotRunning { url };
        }
        let fault = if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            innermost(error).to_string()
        };
        if error.is_connect() {
            return Error::Unreachable { url, fault };
        }
        if error.is_request() {
            let doubt = "the server may have done what was asked: look before asking again";
            return Error::Dropped { url, fault: format!("{fault}; {doubt}") };
        }
        if error.is_body() || error.is_decode() {
            let fault = if error.is_timeout() { fault } else { GONE.to_owned() };
            return Error::Dropped { url, fault };
        }
        Error::Protocol { url, fault }
    }
}

/// The address in the form for requests and messages, and its scheme. An address with a login is
/// refused: the login would be sent with every request, and shown in every message that names the
/// server.
fn checked(url: &str) -> Result<(String, String), Error> {
    let bad = |fault| {
        let start = url.find("://").map_or(0, |at| at + 3);
        let place = url[start..].rfind('@').map_or(start, |at| start + at + 1);
        Error::BadUrl { url: format!("{}{}", &url[..start], &url[place..]), fault }
    };
    let base = url.trim_end_matches('/');
    let parsed = reqwest::Url::parse(base).map_err(|_| bad("write http://HOST:PORT"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(bad("write http://HOST:PORT or https://HOST:PORT"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(bad("there is a login in it; leave that out and use `runai login`"));
    }
    Ok((base.to_owned(), parsed.scheme().to_owned()))
}

fn connector(base: &str, trusted: rustls::ClientConfig) -> Result<reqwest::Client, Error> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .tls_backend_preconfigured(trusted);
    if listener::is_loopback(base) {
        // A proxy cannot reach the loopback interface of this machine.
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| Error::Protocol { url: base.to_owned(), fault: error.to_string() })
}

/// An error and its causes, from the outermost inward.
fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        // The source of an I/O error is that of the wrapped error, not the wrapped error itself.
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}

/// True if the connection was refused.
fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let kind = error.downcast_ref().map(io::Error::kind);
    kind == Some(io::ErrorKind::ConnectionRefused)
}

/// Advice for a fault of a certificate.
fn what_to_do(fault: &str) -> &'static str {
    // A certificate as `openssl req -x509` makes by default.
    if fault.contains("CaUsedAsEndEntity") {
        "it is that of an authority, not of a server; create it again with `-addext \
         basicConstraints=critical,CA:FALSE`"
    } else {
        "if its authority is your own, name the file with its certificate in ELASTANE_CA"
    }
}

fn innermost(error: &dyn std::error::Error) -> &dyn std::error::Error {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_in_an_address_is_neither_taken_nor_shown() {
        for (url, said) in [
            ("http://ann:hush@127.0.0.1:9", "`http://127.0.0.1:9` is not"),
            ("https://hush@gpu:7070/", "there is a login in it"),
            ("ftp://ann:hush@gpu", "write http://HOST:PORT or https://HOST:PORT"),
            ("http://ann:hu/sh@gpu:x", "`http://gpu:x` is not"),
            ("ann:hush@gpu", "`gpu` is not"),
        ] {
            for made in [Client::new(url, None, None), Client::of_user(url, None, 0)] {
                let refused = made.unwrap_err().to_string();
                assert!(refused.contains(said) && !refused.contains("hu"), "{url}: {refused}");
            }
        }
        assert!(Client::new("http://[::1]:7070/", None, None).unwrap().is_loopback());
        assert!(!Client::new("http://gpu:7070", None, None).unwrap().is_loopback());
    }
}
