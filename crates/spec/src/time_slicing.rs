//! Division of compute time between runs that share a GPU. Does not know about: how it is enforced.

use serde::{Deserialize, Serialize};
use units::GPU_MILLIS;

/// Division of the compute time of a GPU between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeSlicing {
    /// No division: the driver gives each run what it takes.
    None,
    /// Each run has its share and never more.
    Strict,
    /// Each run has its share, and a part of the time that others leave idle.
    Fair,
}

impl TimeSlicing {
    /// Parses a name.
    ///
    /// # Errors
    /// The name is not known; the text lists the known ones.
    pub fn named(text: &str) -> Result<Self, String> {
        let found = [Self::None, Self::Strict, Self::Fair].into_iter().find(|m| m.name() == text);
        let wrong =
            || format!("`{}` is not a mode; write none, strict or fair", units::shown(text));
        found.ok_or_else(wrong)
    }

    /// Name in settings and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Strict => "strict",
            Self::Fair => "fair",
        }
    }

    /// Guaranteed and maximum compute time of a run with a share of a GPU, both in thousandths;
    /// `None` if compute time is not divided.
    #[must_use]
    pub const fn of_share(self, millis: u64) -> Option<(u64, u64)> {
        match self {
            Self::None => None,
            Self::Strict => Some((millis, millis)),
            Self::Fair => Some((millis, GPU_MILLIS)),
        }
    }

    /// Description of the mode in one sentence.
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
