//! The body of every refusal.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong, in the form of the published interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// The HTTP status.
    pub code: u16,
    /// One sentence: the field, what is wrong with it and what is allowed.
    pub message: String,
    /// More, for those who look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}
