//! What a node pool says about keeping parts of GPUs. Does not know about: how they are kept.

use serde::{Deserialize, Serialize};

/// How parts of the GPUs of a node pool are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolFractions {
    /// They are counted, and nothing keeps them.
    #[serde(rename = "none")]
    Counted,
    /// A part is given out only where its user cannot work around the limit.
    #[serde(rename = "hard")]
    HardOnly,
}

impl PoolFractions {
    /// The one of this name.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn named(text: &str) -> Result<Self, String> {
        let found = [Self::Counted, Self::HardOnly].into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("`{}` is not known; write none or hard", units::shown(text)))
    }

    /// The word for it in settings and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "none",
            Self::HardOnly => "hard",
        }
    }
}
