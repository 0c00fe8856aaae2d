//! Errors of ID tokens.

use thiserror::Error;

/// Error of an ID token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenFault {
    /// The token is not three parts of base64url and JSON, or has a claim of the wrong kind.
    #[error("it is malformed")]
    Malformed,
    /// The token is of another kind, or has an unknown part that must be understood.
    #[error("it is not an ID token")]
    Kind,
    /// Signed in a way that is not accepted.
    #[error("it is signed with `{0}`; have the provider sign with RS256 or ES256")]
    Algorithm(String),
    /// The provider has no such key.
    #[error("the provider has no key it could be signed with")]
    UnknownKey,
    /// No key of the provider made the signature.
    #[error("its signature is wrong")]
    Signature,
    /// Another issuer issued it.
    #[error("it was issued by {0}")]
    Issuer(String),
    /// The token is for another program.
    #[error("it was issued for another program ({0})")]
    Audience(String),
    /// The token has expired.
    #[error("it has expired; log in again")]
    Expired,
    /// The token is not valid yet.
    #[error("it is not valid yet; compare the clocks of the provider and this machine")]
    Early,
    /// The token belongs to another login.
    #[error("it belongs to another login")]
    Nonce,
    /// The token has no subject.
    #[error("it names no subject")]
    Subject,
}

impl TokenFault {
    /// True if the provider may have got new keys since.
    pub(crate) const fn may_be_rotation(&self) -> bool {
        matches!(self, Self::UnknownKey | Self::Signature)
    }
}
