//! Adding to accounts, and subtracting. Owns: the one switch between the two.

use units::Resources;

/// Direction of a change of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

impl Sign {
    pub(crate) fn resources(self, sum: &mut Resources, part: Resources) {
        match self {
            Self::Plus => *sum += part,
            Self::Minus => *sum -= part,
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
        }
    }

    pub(crate) const fn amount(self, sum: &mut u64, part: u64) {
        match self {
            Self::Plus => *sum += part,
            Self::Minus => *sum -= part,
        }
    }

    pub(crate) const fn one(self, count: &mut u32) {
        match self {
            Self::Plus => *count += 1,
            Self::Minus => *count -= 1,
        }
    }
}
