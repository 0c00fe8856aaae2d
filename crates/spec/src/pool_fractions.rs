//! Setting of a node pool: enforcement of parts of GPUs. Does not know about: how they are
//! enforced.

use serde::{Deserialize, Serialize};

/// Enforcement of parts of the GPUs of a node pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolFractions {
    /// Parts are counted, and not enforced.
    #[serde(rename = "none")]
    Counted,
    /// A part is granted only where its user cannot work around the limit.
    #[serde(rename = "hard")]
    HardOnly,
}

impl PoolFractions {
    /// Parses a name.
    ///
    /// # Errors
    /// The name is not known; the text lists the known ones.
    pub fn named(text: &str) -> Result<Self, String> {
        let found = [Self::Counted, Self::HardOnly].into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("`{}` is not known; write none or hard", units::shown(text)))
    }

    /// Name in settings and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "none",
            Self::HardOnly => "hard",
        }
    }
}
