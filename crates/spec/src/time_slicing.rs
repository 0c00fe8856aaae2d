//! How runs that share a GPU divide its compute time. Does not know about: who sees to it.

use serde::{Deserialize, Serialize};

/// How runs divide the compute time of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeSlicing {
    /// They do not: the driver gives each what it takes.
    None,
    /// Each has its share and never more.
    Strict,
    /// Each has its share, and of what others leave.
    Fair,
}

impl TimeSlicing {
    /// The one of this name.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn named(text: &str) -> Result<Self, String> {
        let found = [Self::None, Self::Strict, Self::Fair].into_iter().find(|m| m.name() == text);
        let wrong =
            || format!("`{}` is not a mode; write none, strict or fair", units::shown(text));
        found.ok_or_else(wrong)
    }

    /// The word for it in settings and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Strict => "strict",
            Self::Fair => "fair",
        }
    }

    /// What it means, in one sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::None => {
                "compute time is not divided: the driver gives each program what it takes"
            }
            Self::Strict => {
                "kernels wait for the turn of their run, which has its share of the compute time and \
                 never more"
            }
            Self::Fair => {
                "kernels wait for the turn of their run, which has its share of the compute time and \
                 of what others leave"
            }
        }
    }
}
