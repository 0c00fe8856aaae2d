//! Logins by an OpenID Connect provider: discovery, the authorization code flow with PKCE, and the
//! verification of ID tokens.
//!
//! Owns: all requests to a provider. Does not know about users, roles and sessions. Signatures are
//! checked by `ring`, which TLS needs anyway: the rest of a JWT is too little for a library, and
//! existing ones bring a second set of algorithms.

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

/// Error of a login.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The provider does not answer. The user is not at fault.
    #[error(
        "the login provider {issuer} does not answer ({fault}); try again later, or log in with a \
         password"
    )]
    Unavailable {
        /// Address of the provider.
        issuer: String,
        /// Description of the failure.
        fault: String,
    },
    /// The provider's response cannot be used; an administrator has to act.
    #[error(
        "the login provider {issuer} cannot be used ({fault}); tell the administrator, or log in with \
         a password"
    )]
    Unusable {
        /// Address of the provider.
        issuer: String,
        /// Description of the fault.
        fault: String,
    },
    /// The provider does not accept the code.
    #[error("the login provider refuses this login ({0}); log in again")]
    Refused(String),
    /// The ID token is worth nothing.
    #[error("the ID token is refused: {0}")]
    Token(#[from] TokenFault),
    /// The ID token is valid and does not name a user.
    #[error("the login provider does not say who this is: {0}")]
    UnknownUser(String),
}
