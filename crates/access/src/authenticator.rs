//! The seam to what checks tokens. Owns: how long a caller is followed that does something long.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use http_kit::Origin;

use crate::caller::Caller;

/// How soon what goes on by itself notices that it may not any more.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// Why a token is worth nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What to answer.
    pub why: String,
    /// Whom it spoke for, as far as it was signed.
    pub who: String,
}

/// Who says whose a token is.
pub trait Authenticator: Send + Sync {
    /// True if a token was signed here, whatever it is worth now.
    fn has_signed(&self, token: &str) -> bool;

    /// Who asks with this token.
    ///
    /// # Errors
    /// It is worth nothing.
    fn check(&self, token: &str, origin: Origin) -> Result<Caller, Refusal>;

    /// The same caller as it is now; none if its token is worth nothing any more. For what goes on
    /// long after it was asked.
    fn again(&self, caller: &Caller) -> Option<Caller>;

    /// Writes to the audit log that a request was refused.
    fn note_refusal(&self, origin: &Origin, who: (&str, bool), status: StatusCode, why: &str);
}

/// Returns when the caller as it is now may not any more.
pub async fn while_caller(by: &dyn Authenticator, caller: &Caller, may: impl Fn(&Caller) -> bool) {
    while by.again(caller).is_some_and(|now| may(&now)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Returns when the caller's token is worth nothing any more.
pub async fn until_revoked(by: Arc<dyn Authenticator>, caller: Caller) {
    while_caller(&*by, &caller, |_| true).await;
}
