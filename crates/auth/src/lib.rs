//! Authentication: signed tokens, and the credentials they are given for.
//!
//! Owns: the signing key, the form of a token, the administrator's credential that a new
//! installation starts with, and the files of the state directory that hold them. Does not know
//! about HTTP, and where a role holds.

mod authority;
mod common_passwords;
mod files;
mod job_identity;
mod links;
mod password;
mod principal;
mod roles;
mod secret;
mod token;
mod vault;

use std::path::PathBuf;

use thiserror::Error;

pub use authority::{ADMIN_CLIENT_ID, Authority, CREDENTIALS_FILE, Granted, KEY_FILE, TOKEN_FILE};
pub use job_identity::job_identity;
pub use links::{LinkFault, LinkTarget, login_url};
pub use password::{PasswordHash, check_password, may_be_password, temporary_password};
pub use principal::Principal;
pub use roles::{Action, Actions, ROLES, Resource, Role, SYSTEM_ADMINISTRATOR};
pub use secret::{fingerprint, hash_secret, new_secret, secret_matches};
pub use token::{Claims, Identity, Keys, TokenFault};
pub use vault::{Sealed, VAULT_FILE, Vault, key_of};

/// Error of authentication, or of its files.
#[derive(Debug, Error)]
pub enum Error {
    /// Wrong client id or secret; the message does not name which of the two.
    #[error("client id and secret do not match; ask the administrator for a new secret")]
    WrongCredentials,
    /// A grant this server does not know.
    #[error(
        "grantType `{0}` is not supported; use client_credentials with clientId and clientSecret, \
         password with username and password, refresh_token with refreshToken, exchange_token with \
         code, or external_token_exchange with externalToken"
    )]
    UnknownGrant(String),
    /// A file of the state directory cannot be used.
    #[error("cannot {what} {path}; check that you own it and may write its directory")]
    Access {
        /// Failed operation.
        what: &'static str,
        /// Path that it failed on.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A job cannot have a certificate.
    #[error("the certificate of a job cannot be made: {what}")]
    JobIdentity {
        /// Description of the fault.
        what: String,
    },
    /// Other users of the machine may read a secret.
    #[error("{path} may be read by others; run `chmod 600 {path}`, or delete it to get a new one")]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The signing key is not one.
    #[error("{path} is not a signing key (32 bytes); delete it, and everyone has to log in again")]
    BadKey {
        /// The file.
        path: PathBuf,
    },
    /// The file of the keys for credentials holds something else.
    #[error(
        "{path} holds no keys for credentials (32 bytes in base64url a line); bring the right file \
         back, or delete it and enter all credentials again"
    )]
    BadVaultKey {
        /// The file.
        path: PathBuf,
    },
    /// The text is too long to be sealed.
    #[error("the credential cannot be sealed; it is too long")]
    Sealing,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random numbers ({0})")]
    NoRandomness(String),
    /// No memory to hash a password.
    #[error("the password cannot be hashed; there is too little memory")]
    Hashing,
    /// An unknown name.
    #[error("this names no kind of principal")]
    UnknownPrincipal,
    /// The credentials cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}
