//! Credentials of every call: the token of the job and the version of the protocol. Owns: the file
//! of the token, adding both to a call, and refusing calls that lack them. Does not know about: the
//! origin of the token.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{self, Endpoint, Server};
use tonic::{Request, Status};

use crate::tls::Tls;

/// The version of the protocol that this build speaks.
pub const PROTOCOL: u32 = 1;

const TOKEN: &str = "authorization";
const VERSION: &str = "elastane-protocol";

/// Error of the token file.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("token file {path}: {source}; write the token of the job into it")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The first line is no token.
    #[error("token file {path}: a token is at least 16 visible ASCII characters in the first line")]
    Form {
        /// The file.
        path: PathBuf,
    },
}

/// The token of a job, and the certificate of its parts. As an interceptor of a server it refuses
/// calls without the token.
#[derive(Clone)]
pub struct Credentials {
    token: MetadataValue<Ascii>,
    tls: Option<Tls>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Credentials")
    }
}

/// Adds the token and the version to calls of a client.
#[derive(Debug, Clone)]
pub struct Sign(Credentials);

impl Credentials {
    /// Reads the file of a token.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`].
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let read = |source| CredentialsError::Read { path: path.to_owned(), source };
        let form = || CredentialsError::Form { path: path.to_owned() };
        Self::new(&fs::read_to_string(path).map_err(read)?).ok_or_else(form)
    }

    /// Credentials from the text of such a file: the token in the first line and, if the parts of
    /// the job encrypt their messages, a certificate and its key as PEM in the others. `None` if
    /// the first line is no token.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let (token, pem) = text.split_once('\n').unwrap_or((text, ""));
        let token = token.trim();
        let is_visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < 16 || !is_visible {
            return None;
        }
        let mut token: MetadataValue<Ascii> = format!("Bearer {token}").parse().ok()?;
        token.set_sensitive(true);
        Some(Self { token, tls: Tls::of(pem) })
    }

    /// The way to another part, by its `HOST:PORT`; none if it cannot be one.
    #[must_use]
    pub fn endpoint(&self, address: &str) -> Option<Endpoint> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).ok()?;
        match &self.tls {
            Some(tls) => endpoint.tls_config(tls.client()).ok(),
            None => Some(endpoint),
        }
    }

    /// A server with the certificate of the job, if it has one.
    ///
    /// # Errors
    ///
    /// If the certificate or the key in the file is invalid.
    pub fn server(&self) -> Result<Server, transport::Error> {
        match &self.tls {
            Some(tls) => Server::builder().tls_config(tls.server()),
            None => Ok(Server::builder()),
        }
    }

    /// The interceptor of clients.
    #[must_use]
    pub fn sign(&self) -> Sign {
        Sign(self.clone())
    }
}

impl Interceptor for Sign {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert(TOKEN, self.0.token.clone());
        metadata.insert(VERSION, MetadataValue::from(PROTOCOL));
        Ok(request)
    }
}

impl Interceptor for Credentials {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata();
        let token = metadata.get(TOKEN).map(MetadataValue::as_bytes).unwrap_or_default();
        if !same(token, self.token.as_bytes()) {
            let text = "the token of the job is missing or wrong: send \"authorization: Bearer \
                        TOKEN\" with the token in the token file of this job";
            return Err(Status::unauthenticated(text));
        }
        let version = metadata.get(VERSION).and_then(|value| value.to_str().ok());
        if version.is_none_or(|version| version != PROTOCOL.to_string()) {
            let text = format!(
                "the caller speaks version {} of the protocol and this side version {PROTOCOL}: \
                 use a wheel and a program of the same release",
                version.unwrap_or("(none)")
            );
            return Err(Status::failed_precondition(text));
        }
        Ok(request)
    }
}

/// Compares without a hint, in time, at how much is equal.
fn same(given: &[u8], token: &[u8]) -> bool {
    let differ = given.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differ == 0
}
