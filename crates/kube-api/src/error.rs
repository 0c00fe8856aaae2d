//! Failures of requests to the API server. Owns: what a request was, and how it failed, with the
//! API server's reason. Does not know about: what a caller does about it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::status::{Cause, Reason, Status};

/// A verb of the API server, as roles name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all objects of a kind.
    List,
    /// Follows changes of the objects of a kind.
    Watch,
    /// Makes an object.
    Create,
    /// Changes fields of an object.
    Patch,
    /// Deletes an object.
    Delete,
}

impl Verb {
    /// Its name in a role.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// `true` if a request may be sent twice without doing anything twice.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A right that a role gives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// The verb.
    pub verb: Verb,
    /// API group, empty for the core.
    pub group: String,
    /// Plural of the resource, with its subresource: `pods/status`.
    pub resource: String,
    /// Namespace; none: all of them, or an object outside of namespaces.
    pub namespace: Option<String>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, namespace } = self;
        write!(f, "apiGroups [\"{group}\"], resources [\"{resource}\"], verbs [\"{verb}\"]")?;
        match namespace {
            Some(namespace) => write!(f, ", in a Role of namespace {namespace} or a ClusterRole"),
            None => f.write_str(", in a ClusterRole"),
        }
    }
}

/// A request: its verb and the object that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The right that it needs.
    pub rule: Rule,
    /// Name of the object; none if it is about all of a kind.
    pub name: Option<String>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { verb, group, resource, namespace } = &self.rule;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        match (namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (None, Some(name)) => write!(f, " {name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, None) => Ok(()),
        }
    }
}

/// An answer of the API server that refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Status of HTTP.
    pub code: u16,
    /// The API server's reason.
    pub reason: Reason,
    /// The API server's sentence.
    pub message: String,
    /// Fields or budgets that it names.
    pub causes: Vec<Cause>,
    /// The time after which it may be asked again.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn of(code: u16, status: Status, retry_after: Option<Duration>) -> Self {
        let details = status.details;
        let told = details.retry_after_seconds.filter(|seconds| *seconds > 0);
        Self {
            code,
            reason: Reason::of(&status.reason, code),
            message: status.message,
            causes: details.causes,
            retry_after: retry_after.or_else(|| told.map(Duration::from_secs)),
        }
    }

    /// `true` if a PodDisruptionBudget does not allow an eviction now.
    #[must_use]
    pub fn is_disruption_budget(&self) -> bool {
        self.code == 429 && self.causes.iter().any(|cause| cause.reason == "DisruptionBudget")
    }
}

/// Error of a request that has no response with its result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings of the connection are wrong.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// No connection was made, so the request was not sent.
    #[error("failed to {call}: no connection to the API server at {server}: {fault}")]
    Unreachable {
        /// The request.
        call: Box<Call>,
        /// Address of the API server.
        server: String,
        /// The cause, as the system names it.
        fault: String,
    },
    /// The connection or the time for a response ended after the request was sent: the API server
    /// may have carried it out.
    #[error("failed to {call}: the answer of the API server was lost: {fault}")]
    Lost {
        /// The request.
        call: Box<Call>,
        /// The cause, as the system names it.
        fault: String,
    },
    /// A role does not allow it.
    #[error("failed to {call}: {message}; missing rule: {}", .call.rule)]
    Forbidden {
        /// The request, with the missing rule.
        call: Box<Call>,
        /// The API server's sentence.
        message: String,
    },
    /// The API server refuses it.
    #[error("failed to {call}: {} ({}, {})", .refusal.message, .refusal.reason, .refusal.code)]
    Refused {
        /// The request.
        call: Box<Call>,
        /// Response of the API server.
        refusal: Box<Refusal>,
    },
    /// The answer is none that the API server gives.
    #[error("failed to {call}: cannot read the answer of the API server: {fault}")]
    Unreadable {
        /// The request.
        call: Box<Call>,
        /// The part that cannot be read, and why.
        fault: String,
    },
}

impl Error {
    /// The reason of the API server, if it gave one.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Refused { refusal, .. } => Some(&refusal.reason),
            Self::Forbidden { .. } => Some(&Reason::Forbidden),
            _ => None,
        }
    }

    /// `true` if the version or the page in the request is compacted: list again.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        matches!(self.reason(), Some(Reason::Expired | Reason::Gone))
    }

    /// `true` if a PodDisruptionBudget does not allow an eviction now.
    #[must_use]
    pub fn is_disruption_budget(&self) -> bool {
        matches!(self, Self::Refused { refusal, .. } if refusal.is_disruption_budget())
    }

    /// `true` if a later request may succeed although nothing else changes.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => true,
            Self::Refused { refusal, .. } => {
                matches!(refusal.code, 408 | 429 | 500 | 502..=504)
                    && !refusal.is_disruption_budget()
            }
            Self::Config(_) | Self::Forbidden { .. } | Self::Unreadable { .. } => false,
        }
    }

    /// The right that is missing.
    #[must_use]
    pub fn missing_rule(&self) -> Option<&Rule> {
        match self {
            Self::Forbidden { call, .. } => Some(&call.rule),
            _ => None,
        }
    }
}

/// Error of the settings of a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There are none.
    #[error(
        "found no cluster: not in a pod, and no kubeconfig; name one with --kubeconfig FILE, \
         KUBECONFIG, or put it at ~/.kube/config"
    )]
    Absent,
    /// A file cannot be read.
    #[error("failed to read {}: {fault}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause, as the system names it.
        fault: String,
    },
    /// Neither a kubeconfig nor the caller names a context.
    #[error("{}", without_context(.known))]
    NoContext {
        /// Contexts that there are.
        known: Vec<String>,
    },
    /// A kubeconfig lacks an entry.
    #[error("the kubeconfig has no {kind} {name}; it has {}", joined(.known))]
    Missing {
        /// `context`, `cluster` or `user`.
        kind: &'static str,
        /// The name that is referred to.
        name: String,
        /// Names that there are.
        known: Vec<String>,
    },
    /// A field has a value that cannot be used.
    #[error("{field} of {place}: {fault}")]
    Field {
        /// The field.
        field: &'static str,
        /// The entry or file that it is in.
        place: String,
        /// The fault, and the values that are allowed.
        fault: String,
    },
    /// An `exec` plug-in gives no credentials.
    #[error("the credential plug-in `{command}` failed: {fault}")]
    Plugin {
        /// Its command.
        command: String,
        /// The cause, as the system names it.
        fault: String,
    },
    /// TLS cannot be set up.
    #[error("failed to set up TLS: {0}")]
    Tls(String),
}

fn without_context(known: &[String]) -> String {
    match known {
        [] => "the kubeconfig has no contexts; name another file with --kubeconfig".to_owned(),
        known => {
            let known = joined(known);
            format!("the kubeconfig has no current-context; name one with --context: {known}")
        }
    }
}

fn joined(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
