//! The page of a reason code.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The page of a reason code, as in `docs/reference/codes/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodePage {
    /// The code, such as `P102`.
    pub code: String,
    /// Its name, such as `NotEnoughGpus`.
    pub name: String,
    /// Meaning, numbers and remedy, in Markdown.
    pub text: String,
}
