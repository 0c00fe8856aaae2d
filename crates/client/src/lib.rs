//! The typed HTTP client every Rust front-end uses: one method per endpoint.
//!
//! Owns: finding the server and the token, requests, and telling "not running" from "refused"
//! from "not understood". Does not know what is shown to a person, and how the server works.

mod assets;
mod changes;
mod config_maps;
mod departments;
mod exec_session;
mod find;
mod iam;
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
    Found, SERVER_FILE, ServerFile, find, read_server_file, state_dir, write_server_file,
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
    /// Where the token is read again for each request: the server replaces it all the time.
    renewed_in: Option<PathBuf>,
    /// Where the token comes from.
    credential: Credential,
    source: &'static str,
    /// The user whose program must listen there; none for any.
    owner: Option<u32>,
    /// Called after each request.
    told: Option<fn(&Sent<'_>)>,
    /// Warnings of the server, as of its last answer; shared with
    /// clones.
    notice: Arc<Mutex<Option<String>>>,
}

/// A request, and what came of it. It names no token and no body.
#[derive(Debug)]
pub struct Sent<'a> {
    /// Its method.
    pub method: &'a str,
    /// What it asked for.
    pub path: &'a str,
    /// How it was answered; none if it was not.
    pub status: Option<u16>,
    /// After how many milliseconds.
    pub ms: u128,
}

/// Why a request gave no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// Nothing listens there.
    #[error("the elastane server is not running at {url}; start it with `elastane up`")]
    NotRunning {
        /// Where it was looked for.
        url: String,
    },
    /// There is no way to it: its name is not known, or nothing answers.
    #[error("{url} cannot be reached: {fault}")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What is the matter.
        fault: String,
    },
    /// The server said no; its own words.
    #[error("{message}{}", details_suffix(message, details.as_deref()))]
    Api {
        /// HTTP status.
        code: u16,
        /// What is wrong and what is allowed.
        message: String,
        /// More.
        details: Option<String>,
    },
    /// The server needs another token.
    #[error("{}", credential.refused(url, message))]
    NotLoggedIn {
        /// Which server.
        url: String,
        /// The server's words.
        message: String,
        /// The token of the request.
        credential: Credential,
    },
    /// The answer is not what this client expects.
    #[error("{url} gave an answer that cannot be used: {fault}")]
    Protocol {
        /// Which address.
        url: String,
        /// What is wrong.
        fault: String,
    },
    /// A session or connection that was open has ended.
    #[error("connection lost: {url}: {fault}")]
    Dropped {
        /// Which server.
        url: String,
        /// What happened.
        fault: String,
    },
    /// The address cannot be used at all.
    #[error("`{url}` is not an address of a server: {fault}")]
    BadUrl {
        /// As given.
        url: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// The server's certificate is not believed.
    #[error("the certificate of {url} is not trusted ({fault}); {hint}")]
    Untrusted {
        /// Which server.
        url: String,
        /// What is wrong.
        fault: String,
        /// What to do.
        hint: &'static str,
    },
    /// The file of trusted authorities cannot be used.
    #[error("cannot use {path} as the authorities of ELASTANE_CA: {fault}")]
    Authorities {
        /// Which file.
        path: std::path::PathBuf,
        /// What is wrong.
        fault: String,
    },
    /// The library refuses.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// A file in the state directory cannot be read or written.
    #[error("failed to use {path}: {fault}")]
    StateFile {
        /// Which file.
        path: String,
        /// What is wrong.
        fault: String,
    },
}

/// Where the token of a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credential {
    /// There is none.
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
    /// Text for a request that was refused for its token.
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

/// The details in parentheses, unless the message begins with the field that they name.
fn details_suffix(message: &str, details: Option<&str>) -> String {
    let said = |details: &str| {
        let field = details.strip_prefix("field: ");
        field.and_then(|field| message.strip_prefix(field)).is_some_and(|why| why.starts_with(": "))
    };
    let details = details.filter(|details| !said(details));
    details.map(|details| format!(" ({details})")).unwrap_or_default()
}
