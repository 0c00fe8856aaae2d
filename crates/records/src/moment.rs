//! Time: an input of the state.

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

use crate::ClockRow;

/// A step of the wall clock: a time up to `before` is written `ms` later since (earlier if
/// negative).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Last time that the step shifts, by the clock before the step.
    pub before: Instant,
    /// Milliseconds that the clock was set forward; negative if it was set back.
    pub ms: i64,
}

impl Step {
    /// Step by `ms` of a clock that shows `now` after it.
    #[must_use]
    pub const fn of(ms: i64, now: Instant) -> Self {
        Self { before: Instant(now.0.saturating_add_signed(ms.saturating_neg())), ms }
    }

    /// Time since the step for a time that is counted from. A time after `before` had not come
    /// before the step: it was written when the clock was wrong in another way, and stays.
    pub fn since(self, at: Instant) -> Instant {
        if at <= self.before { self.due(at) } else { at }
    }

    /// Time since the step for a time that is waited for: always shifted.
    pub const fn due(self, at: Instant) -> Instant {
        Instant(at.0.saturating_add_signed(self.ms))
    }
}

/// Smallest step of the wall clock that is followed, in milliseconds; the time line is off by at
/// most this much.
pub const STEP_MS_MIN: u64 = 1000;

/// The clock row to store and the step of the wall clock, in milliseconds, when the state is built
/// on a machine that was started as `boot` and whose wall clock is `ahead_ms` ahead of the time
/// since then. `kept` is the stored row. A step while the machine was off cannot be known: then the
/// clock is taken as right.
#[must_use]
pub fn settle(kept: Option<ClockRow>, boot: Uuid, ahead_ms: i64) -> (ClockRow, Option<i64>) {
    let of_now = kept.filter(|kept| kept.boot == boot);
    let step_ms = of_now.map_or(0, |kept| ahead_ms.saturating_sub(kept.ahead_ms));
    match of_now {
        Some(kept) if step_ms.unsigned_abs() < STEP_MS_MIN => (kept, None),
        _ => (ClockRow { boot, ahead_ms }, Some(step_ms).filter(|ms| *ms != 0)),
    }
}

/// Time and ids for a batch: the state reads no clock and draws no ids itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Moment {
    /// Current time on the time line.
    pub now: Instant,
    /// Current time of the wall clock.
    pub clock: Instant,
    /// First id for new objects; a UUID of version 7.
    pub seed: Uuid,
}

/// The time line as it is set when the state is built.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Settled {
    /// Clock row to store with the state.
    pub clock: ClockRow,
    /// The step by which stored dates have to be shifted.
    pub step: Option<Step>,
    /// Current time, and the seed of ids.
    pub at: Moment,
}

/// Ids that follow from a seed, so that the same inputs make the same things.
#[derive(Debug, Clone, Copy)]
pub struct Ids(u128);

impl Ids {
    /// The bits that are random in a UUID of version 7, and not only there to keep an order.
    const RANDOM: u128 = (1 << 62) - 1;

    /// Ids that follow a UUID of version 7, which is the first of them.
    #[must_use]
    pub const fn from_seed(seed: Uuid) -> Self {
        Self(seed.as_u128())
    }

    /// The next; the ids of a seed are in the order in which they were made.
    pub fn next_id(&mut self) -> Uuid {
        let next = Uuid::from_u128(self.0);
        self.0 = (self.0 & !Self::RANDOM) | (self.0.wrapping_add(1) & Self::RANDOM);
        next
    }
}
