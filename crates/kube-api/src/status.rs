//! The API server's response when it refuses a request. Owns: the `Status` object and its reasons.
//! Does not know about: requests.

use std::fmt;

use serde::Deserialize;

use crate::types::or_default;

/// A `Status` of the API server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    pub(crate) code: u16,
    #[serde(deserialize_with = "or_default")]
    pub(crate) details: Details,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Details {
    #[serde(deserialize_with = "or_default")]
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after_seconds: Option<u64>,
}

/// One fault of several in an object, or a disruption budget that forbids the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// Its word, such as `FieldValueInvalid` or `DisruptionBudget`.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Its sentence.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// The field.
    #[serde(deserialize_with = "or_default")]
    pub field: String,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// A reason of the API server.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
            /// Another one, or none (empty).
            Other(String),
        }

        impl Reason {
            /// The reason by its word, or by the status of HTTP where an answer has none.
            pub(crate) fn of(word: &str, code: u16) -> Self {
                match word {
                    $(stringify!($name) => Self::$name,)*
                    "" => match code {
                        $($code => Self::$name,)*
                        _ => Self::Other(String::new()),
                    },
                    other => Self::Other(other.to_owned()),
                }
            }

            /// Its word.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::Other(word) => word,
                }
            }
        }
    };
}

// An answer without a word means the first reason with its status.
#[expect(unreachable_patterns, reason = "several reasons have one status")]
mod table {
    reasons! {
        /// The request is malformed.
        BadRequest = 400,
        /// The credentials are none, wrong or expired.
        Unauthorized = 401,
        /// A role does not allow it.
        Forbidden = 403,
        /// There is no such object, or no such kind.
        NotFound = 404,
        /// The kind has no such verb.
        MethodNotAllowed = 405,
        /// The object changed, or differs from a precondition.
        Conflict = 409,
        /// An object of that name exists.
        AlreadyExists = 409,
        /// The version is compacted.
        Expired = 410,
        /// The version is compacted, in words of older servers.
        Gone = 410,
        /// The body is too large.
        RequestEntityTooLarge = 413,
        /// Fields of the object are wrong.
        Invalid = 422,
        /// Too many requests, or a disruption budget allows no eviction.
        TooManyRequests = 429,
        /// The API server failed.
        InternalError = 500,
        /// The API server is starting or stopping.
        ServiceUnavailable = 503,
        /// The API server could not answer in time; nothing was done.
        ServerTimeout = 504,
        /// The time for the request ended; it may have been done.
        Timeout = 504,
    }
}
pub use table::Reason;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.name().is_empty() { "no reason given" } else { self.name() })
    }
}
