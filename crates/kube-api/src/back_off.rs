//! Waiting between tries. Owns: how long, with jitter that follows from a seed. Does not know
//! about: what is tried.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// Increment of the state of `SplitMix64`.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Jitter: numbers that follow from a seed. Clients with different seeds do not return together
/// after an outage.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        let mut bits = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Between half of a time and all of it.
    pub(crate) fn of(&self, longest: Duration) -> Duration {
        let half = longest / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(self.next() % nanos.saturating_add(1))
    }

    /// The wait before try number `failures` + 1: doubles, up to half a minute.
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        self.of((FIRST * 2_u32.pow(doublings)).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_a_minute_and_follow_from_the_seed() {
        let waits = |seed| {
            let jitter = Jitter::new(seed);
            (1..=12).map(|failures| jitter.wait(failures)).collect::<Vec<_>>()
        };
        for (doublings, wait) in (0_u32..).zip(waits(7)) {
            let longest = (FIRST * 2_u32.pow(doublings)).min(LONGEST);
            assert!((longest / 2..=longest).contains(&wait), "{wait:?} of {longest:?}");
        }
        assert_eq!(waits(7), waits(7));
        assert_ne!(waits(7), waits(8));
    }
}
