//! Lag of queues behind their fair shares of the GPUs. Owns: the time integral of share minus
//! holdings, its bounds, and turns. Does not know about: the order of service, which compares the
//! lags of siblings.

use units::{GPU_MILLIS, Instant};

/// Maximum lag in either direction: the share of a queue over this time, in milliseconds.
const LAG_MS_MAX: u64 = 24 * 3_600_000;

/// Lag of a queue: the time integral of its fair share of the GPUs minus its holdings, while its
/// work requests GPUs. Positive: it has had less than its share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lag {
    /// GPU thousandths × milliseconds at `since`.
    pub value: i64,
    /// Time of the last change of share or holdings.
    pub since: Instant,
    /// Fair share since then, in GPU thousandths: no more than the request.
    pub fair_millis: u64,
    /// Holdings since then, in GPU thousandths.
    pub held_millis: u64,
    /// Time at which it exceeded its share because it was behind; `None` while it does not exceed
    /// it.
    pub turn_since: Option<Instant>,
}

impl Lag {
    /// The lag at an instant, in GPU thousandths × milliseconds.
    #[must_use]
    pub fn at(&self, now: Instant) -> i64 {
        let rate = i128::from(self.fair_millis) - i128::from(self.held_millis);
        let lag = i128::from(self.value) + rate * i128::from(now.since_ms(self.since));
        if self.fair_millis == 0 && self.held_millis == 0 {
            // Without request and holdings the lag stays as it was, bounded by the share at that
            // time.
            return self.value;
        }
        let bound = i128::from(self.fair_millis.max(GPU_MILLIS)) * i128::from(LAG_MS_MAX);
        i64::try_from(lag.clamp(-bound, bound)).unwrap_or(i64::MAX)
    }

    /// The lag as milliseconds of a fair share; negative if the queue is ahead. Orders siblings, so
    /// that all are behind for equally long if some GPUs cannot be used.
    #[must_use]
    pub fn behind_ms(&self, now: Instant, fair_millis: u64) -> i64 {
        let fair_millis = i64::try_from(fair_millis).unwrap_or(i64::MAX);
        self.at(now).checked_div_euclid(fair_millis).unwrap_or(0)
    }

    /// The lag from `now` on, with another share or other holdings; `None` if both are unchanged.
    #[must_use]
    pub fn followed(&self, now: Instant, fair_millis: u64, held_millis: u64) -> Option<Self> {
        if (self.fair_millis, self.held_millis) == (fair_millis, held_millis) {
            return None;
        }
        let value = self.at(now);
        let begins = value > 0 && held_millis > self.held_millis;
        let is_above = held_millis > fair_millis;
        let turn_since = self.turn_since.or_else(|| begins.then_some(now)).filter(|_| is_above);
        Some(Self { value, since: now, fair_millis, held_millis, turn_since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn lag(fair: u64, held: u64) -> Lag {
        Lag::default().followed(Instant(0), fair, held).unwrap_or_default()
    }

    #[test]
    fn it_grows_by_what_is_lacking_and_falls_by_what_is_held_beyond_the_share() {
        let behind = lag(2000, 500);
        assert_eq!(behind.at(Instant(10)), 15_000);
        let ahead = behind.followed(Instant(10), 2000, 4000).expect("another holding");
        assert_eq!(ahead.at(Instant(20)), -5_000);
        assert_eq!(ahead.followed(Instant(20), 2000, 4000), None, "nothing is different");
    }

    #[test]
    fn it_is_bounded_by_a_day_of_the_share_and_kept_while_nothing_is_asked_for() {
        let day = 24 * i64::try_from(HOUR).expect("small") * 2000;
        let behind = lag(2000, 0);
        assert_eq!(behind.at(Instant(100 * HOUR)), day);
        let idle = behind.followed(Instant(100 * HOUR), 0, 0).expect("another share");
        assert_eq!(idle.at(Instant(200 * HOUR)), day);
        assert_eq!(lag(2000, 4000).at(Instant(100 * HOUR)), -day);
    }

    #[test]
    fn a_turn_begins_when_a_queue_that_is_behind_takes_more_than_its_share() {
        let behind = lag(2000, 0);
        let turn = behind.followed(Instant(5), 2000, 4000).expect("another holding");
        assert_eq!(turn.turn_since, Some(Instant(5)));
        let over = turn.followed(Instant(9), 2000, 2000).expect("another holding");
        assert_eq!(over.turn_since, None);
        let lent = lag(4000, 4000).followed(Instant(5), 2000, 4000).expect("another share");
        assert_eq!(lent.turn_since, None, "the share became less, it took nothing");
    }
}
