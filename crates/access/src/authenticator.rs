//! The seam to what checks tokens. Owns: how long a caller is followed that does something long.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use http_kit::Origin;

use crate::caller::Caller;

/// Interval in which work that continues after its request checks its permission.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// Refusal of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Error for the response.
    pub why: String,
    /// Principal in the token, as far as it was signed.
    pub who: String,
}

/// Authentication of tokens.
pub trait Authenticator: Send + Sync {
    /// True if a token was signed here, whatever it is worth now.
    fn has_signed(&self, token: &str) -> bool;

    /// Caller of a request with this token.
    ///
    /// # Errors
    /// The token is not valid.
    fn check(&self, token: &str, origin: Origin) -> Result<Caller, Refusal>;

    /// The caller with its current rights; `None` if its token is no longer valid. For work that
    /// continues long after its request.
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
