//! Recent shrinks of a workload. Owns: its wait before it grows beyond its request. Does not know
//! about: why it shrinks, and the free resources for growing.

use units::Instant;

/// Time without a shrink after which the count is halved, in milliseconds.
const HALVED_AFTER_MS: u64 = 3_600_000;

/// The longest wait, in milliseconds.
const WAIT_MS_MAX: u64 = 3_600_000;

/// Number of shrinks of a workload, halved for each hour without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shrinks {
    /// Number at the time of the last one.
    pub count: u32,
    /// Time of the last one.
    pub last: Option<Instant>,
}

impl Shrinks {
    /// The count after one more shrink, the past halved for each hour without one.
    #[must_use]
    pub fn with_one_more(self, now: Instant) -> Self {
        let hours = self.last.map_or(0, |last| now.since_ms(last) / HALVED_AFTER_MS);
        let hours = u32::try_from(hours).unwrap_or(u32::MAX);
        let left = self.count.checked_shr(hours).unwrap_or(0);
        Self { count: left.saturating_add(1), last: Some(now) }
    }

    /// When it may grow beyond its request, with restarts of `restart_ms`: it waits this long after
    /// the first shrink, twice as long after the second, and so on, at most an hour. `None`: at
    /// once, as it was never shrunk.
    #[must_use]
    pub fn grows_at(self, restart_ms: u64) -> Option<Instant> {
        let doublings = self.count.checked_sub(1)?;
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        Some(self.last?.plus_ms(restart_ms.saturating_mul(factor).min(WAIT_MS_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn at(minutes: u64) -> Instant {
        Instant(minutes * MINUTE)
    }

    #[test]
    fn each_shrink_doubles_the_wait_up_to_an_hour() {
        let mut shrinks = Shrinks::default();
        assert_eq!(shrinks.grows_at(MINUTE), None, "the first growth is at once");
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            shrinks = shrinks.with_one_more(at(5));
            assert_eq!(shrinks.grows_at(MINUTE), Some(at(5 + wait)));
        }
        let many = Shrinks { count: u32::MAX, last: Some(at(0)) };
        assert_eq!(many.grows_at(u64::MAX), Some(at(60)));
    }

    #[test]
    fn an_hour_without_one_halves_them() {
        let shrinks = Shrinks { count: 6, last: Some(at(0)) };
        assert_eq!(shrinks.with_one_more(at(59)).count, 7);
        assert_eq!(shrinks.with_one_more(at(60)).count, 4);
        assert_eq!(shrinks.with_one_more(at(150)).count, 2);
        assert_eq!(shrinks.with_one_more(at(100_000)).count, 1);
    }
}
