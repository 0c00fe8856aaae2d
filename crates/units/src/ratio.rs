//! Exact comparison of `part / whole`. Owns: saturation and dominant-share order without floats.

use std::cmp::Ordering;

/// `part / whole` with the conventions of share comparison: with a whole of zero, a part of zero is
/// zero and any other part is infinite.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    part: u64,
    whole: u64,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self { part: 0, whole: 1 };

    /// `part / whole`.
    #[must_use]
    pub const fn new(part: u64, whole: u64) -> Self {
        if part == 0 { Self::ZERO } else { Self { part, whole } }
    }
}

impl Ratio {
    /// The ratio to about one part in sixteen, as a number for comparisons: for orders that should
    /// not change with every small step. Infinite ratios give the largest number.
    #[must_use]
    pub fn coarse(self) -> u64 {
        const BITS: u32 = 5;
        if self.whole == 0 {
            return u64::MAX;
        }
        let scaled = (u128::from(self.part) << BITS) / u128::from(self.whole);
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX - 1);
        let dropped = (u64::BITS - scaled.leading_zeros()).saturating_sub(BITS);
        scaled >> dropped << dropped
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.whole == 0 && other.whole == 0 {
            // Both infinite: a larger part is not greater.
            return Ordering::Equal;
        }
        let left = u128::from(self.part) * u128::from(other.whole);
        let right = u128::from(other.part) * u128::from(self.whole);
        left.cmp(&right)
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn coarse_keeps_the_order_and_drops_small_steps() {
        let coarse = |part, whole| Ratio::new(part, whole).coarse();
        assert_eq!(coarse(1000, 1000), coarse(1010, 1000));
        assert!(coarse(1000, 1000) < coarse(1070, 1000));
        assert!(coarse(0, 7) < coarse(1, 20) && coarse(4000, 1) < coarse(1, 0));
    }

    #[test]
    fn nothing_of_nothing_is_zero_and_something_is_infinite() {
        assert_eq!(Ratio::new(0, 0), Ratio::ZERO);
        assert!(Ratio::new(1, 0) > Ratio::new(u64::MAX, 1));
        assert!(Ratio::new(1, 3) < Ratio::new(2, 5));
    }
}
