//! How runs that share a GPU divide its compute time. Does not know about: who sees to it.

use serde::{Deserialize, Serialize};
use units::GPU_MILLIS;

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

    /// What a run with a share of a GPU always has of its compute time, and the most that it has, both
    /// in thousandths; none: that is not divided.
    #[must_use]
    pub const fn of_share(self, millis: u64) -> Option<(u64, u64)> {
        match self {
            Self::None => None,
            Self::Strict => Some((millis, millis)),
            Self::Fair => Some((millis, GPU_MILLIS)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_guaranteed_and_idle_time_comes_on_top_if_it_is_fair() {
        assert_eq!(TimeSlicing::None.of_share(300), None);
        assert_eq!(TimeSlicing::Strict.of_share(300), Some((300, 300)));
        assert_eq!(TimeSlicing::Fair.of_share(300), Some((300, 1000)));
    }
}
