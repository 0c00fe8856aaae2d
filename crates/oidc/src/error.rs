//! Why an ID token is refused.

use thiserror::Error;

/// Why an ID token was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenFault {
    /// Not three parts of base64url and JSON, or a claim of the wrong kind.
    #[error("it is malformed")]
    Malformed,
    /// It is another kind of token, or has a part that must be understood and is not.
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
    /// It is for another program.
    #[error("it was issued for another program ({0})")]
    Audience(String),
    /// Its time is over.
    #[error("it has expired; log in again")]
    Expired,
    /// Its time has not come.
    #[error("it is not valid yet; compare the clocks of the provider and this machine")]
    Early,
    /// It belongs to another login.
    #[error("it belongs to another login")]
    Nonce,
    /// It has no subject.
    #[error("it names no subject")]
    Subject,
}

impl TokenFault {
    /// True if the provider may have got new keys since.
    pub(crate) const fn may_be_rotation(&self) -> bool {
        matches!(self, Self::UnknownKey | Self::Signature)
    }
}
