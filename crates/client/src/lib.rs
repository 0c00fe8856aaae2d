//! The typed HTTP client every Rust front-end uses: one method per endpoint.
//!
//! Owns: discovery of the server and the token, requests, and the distinction of "not running",
//! "refused" and "not understood". Does not know what users see, and how the server works.

mod assets;
mod changes;
mod config_maps;
mod departments;
mod exec_session;
mod find;
mod iam;
mod kubernetes;
mod listener;
mod logs;
mod policies;
mod priority_classes;
mod request;
mod routes;
mod trust;
mod workloads;

pub use changes::{ChangeStream, Watched};
pub use exec_session::{Exec, ExecSession, Gone, Input, Printed, Receiver, Sender};
pub use find::{
    LocatedClient, SERVER_FILE, ServerFile, find, read_server_file, state_dir, write_server_file,
};
pub use logs::{LogPosition, LogStream, Logs, Since};
pub use routes::{Download, WorkloadKind};
pub use workloads::Selection;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use thiserror::Error;

/// A connection to one server.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    /// State directory from which the token is read for each request, as the server replaces it
    /// regularly.
    renewed_in: Option<PathBuf>,
    /// Source of the token.
    credential: Credential,
    source: &'static str,
    /// User whose program must be the listener; `None` = any.
    owner: Option<u32>,
    /// Called after each request.
    told: Option<fn(&Sent<'_>)>,
    /// Warning in the last response of the server; shared with clones.
    notice: Arc<Mutex<Option<String>>>,
}

/// A request and its result, without its token and body.
#[derive(Debug)]
pub struct Sent<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Path of the request.
    pub path: &'a str,
    /// HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// Duration in milliseconds.
    pub ms: u128,
}

/// Error of a request.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no listener at the address.
    #[error("{}", not_running(url))]
    NotRunning {
        /// Address of the server.
        url: String,
    },
    /// The server cannot be reached: its name cannot be resolved, or it does not answer.
    #[error("{url} cannot be reached: {fault}")]
    Unreachable {
        /// Address of the server.
        url: String,
        /// Text of the network error.
        fault: String,
    },
    /// The server refused the request, with its own text.
    #[error("{message}{}", details_suffix(details.as_deref()))]
    Api {
        /// HTTP status; 404 also if a value of the request names an object that does not exist.
        code: u16,
        /// Text of the error, with the allowed values.
        message: String,
        /// Further details.
        details: Option<String>,
        /// The wrong value of the request, where the refusal is about one.
        field_fault: Option<api_types::FieldFault>,
    },
    /// The server requires another token.
    #[error("{}", credential.refused(url, message))]
    NotLoggedIn {
        /// Address of the server.
        url: String,
        /// Text of the server.
        message: String,
        /// Source of the request's token.
        credential: Credential,
    },
    /// The response has an unexpected form.
    #[error("{url} gave an answer that cannot be used: {fault}")]
    Protocol {
        /// Address of the server.
        url: String,
        /// Text of the parse error.
        fault: String,
    },
    /// An open session or connection has ended.
    #[error("connection lost: {url}: {fault}")]
    Dropped {
        /// Address of the server.
        url: String,
        /// Cause.
        fault: String,
    },
    /// The address is invalid.
    #[error("`{url}` is not an address of a server: {fault}")]
    BadUrl {
        /// Address as given.
        url: String,
        /// Reason.
        fault: &'static str,
    },
    /// The server's certificate is not trusted.
    #[error("the certificate of {url} is not trusted ({fault}); {hint}")]
    Untrusted {
        /// Address of the server.
        url: String,
        /// Text of the TLS error.
        fault: String,
        /// Advice for the user.
        hint: &'static str,
    },
    /// The file of trusted authorities cannot be used.
    #[error("cannot use {path} as the authorities of ELASTANE_CA: {fault}")]
    Authorities {
        /// Path of the file.
        path: std::path::PathBuf,
        /// Reason.
        fault: String,
    },
    /// The TLS library failed.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// A file in the state directory cannot be read or written.
    #[error("failed to use {path}: {fault}")]
    StateFile {
        /// Path of the file.
        path: String,
        /// Reason.
        fault: String,
    },
}

/// Source of a request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credential {
    /// No token.
    #[default]
    None,
    /// `RUNAI_TOKEN`.
    Variable,
    /// A login.
    Login,
    /// The state directory of a server.
    StateDir,
}

impl Credential {
    /// Text for a request that was refused because of its token.
    fn refused(self, url: &str, message: &str) -> String {
        let login = "`runai login user -u NAME`";
        match self {
            Self::None => format!("you are not logged in: {login} (at {url})"),
            Self::Login => format!("your login has ended: {login} (at {url}: {message})"),
            Self::Variable => format!(
                "RUNAI_TOKEN is not accepted: correct it, or `unset RUNAI_TOKEN` and {login} (at {url}: \
                 {message})"
            ),
            Self::StateDir => format!(
                "the token of the state directory is not accepted: {login} (at {url}: {message})"
            ),
        }
    }
}

impl Error {
    /// A refusal with this status and text, about no field of the request.
    #[must_use]
    pub const fn refusal(code: u16, message: String) -> Self {
        Self::Api { code, message, details: None, field_fault: None }
    }

    /// The wrong value of the request that a refusal is about.
    #[must_use]
    pub const fn field_fault(&self) -> Option<&api_types::FieldFault> {
        match self {
            Self::Api { field_fault, .. } => field_fault.as_ref(),
            _ => None,
        }
    }
}

/// Text about an address without a listener.
fn not_running(url: &str) -> String {
    match listener::is_loopback(url) {
        true => {
            format!("the elastane server is not running at {url}; start it with `elastane up`")
        }
        false => format!(
            "no server listens at {url}; check the address (RUNAI_CP_URL, `runai config set --cp-url \
             URL`), or ask whether the server runs"
        ),
    }
}

/// The details in parentheses.
fn details_suffix(details: Option<&str>) -> String {
    details.map(|details| format!(" ({details})")).unwrap_or_default()
}
