//! Logins by an OpenID Connect provider: discovery, the authorization code flow with PKCE, and what
//! an ID token must be to be believed.
//!
//! Owns: everything that is asked of a provider. Does not know about users, roles and sessions.
//! Signatures are checked by `ring`, which TLS brings along: the rest of a JWT is too little to
//! take a library for it, and those there are bring a second set of algorithms.

mod claims;
mod error;
mod id_token;
mod keys;
mod provider;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;

pub use claims::Person;
pub use error::TokenFault;
pub use provider::{Provider, Redeemed, Start};
pub use settings::{BadSettings, Settings};

use thiserror::Error;

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The provider does not answer. The user is not at fault.
    #[error(
        "the login provider {issuer} does not answer ({fault}); try again later, or log in with a \
         password"
    )]
    Unavailable {
        /// Which provider.
        issuer: String,
        /// What happened.
        fault: String,
    },
    /// It answers in a way that cannot be used, which an administrator has to look at.
    #[error(
        "the login provider {issuer} cannot be used ({fault}); tell the administrator, or log in with \
         a password"
    )]
    Unusable {
        /// Which provider.
        issuer: String,
        /// What is wrong.
        fault: String,
    },
    /// It does not take the code.
    #[error("the login provider refuses this login ({0}); log in again")]
    Refused(String),
    /// The ID token is worth nothing.
    #[error("the ID token is refused: {0}")]
    Token(#[from] TokenFault),
    /// The ID token is good and does not say who it is.
    #[error("the login provider does not say who this is: {0}")]
    UnknownUser(String),
}
