//! Time: an input of the state.

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

use crate::ClockRow;

/// The wall clock was set: what was `before` until then is later, or earlier, by `ms` from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Until when.
    pub before: Instant,
    /// By so much.
    pub ms: i64,
}

impl Step {
    /// The clock was set by so much, and now it says this.
    #[must_use]
    pub const fn of(ms: i64, now: Instant) -> Self {
        Self { before: Instant(now.0.saturating_add_signed(ms.saturating_neg())), ms }
    }

    /// What a moment that is counted from is called since. One that had not come before the step
    /// was written when the clock was wrong in another way, and stays.
    pub fn since(self, at: Instant) -> Instant {
        if at <= self.before { self.due(at) } else { at }
    }

    /// What a moment that is waited for is called since.
    pub const fn due(self, at: Instant) -> Instant {
        Instant(at.0.saturating_add_signed(self.ms))
    }
}

/// Steps of the wall clock that are shorter are not followed: the line of time is as far off.
pub const STEP_MS_MIN: u64 = 1000;

/// The line of time where the state is built, on a machine that was started as `boot` and whose
/// wall clock is `ahead_ms` ahead of the time since then, where so much was `kept` with the state:
/// what to keep from now on, and by how much the wall clock was set. What happened to it while the
/// machine was off cannot be known: then it is right.
#[must_use]
pub fn settle(kept: Option<ClockRow>, boot: Uuid, ahead_ms: i64) -> (ClockRow, Option<i64>) {
    let of_now = kept.filter(|kept| kept.boot == boot);
    let step_ms = of_now.map_or(0, |kept| ahead_ms.saturating_sub(kept.ahead_ms));
    match of_now {
        Some(kept) if step_ms.unsigned_abs() < STEP_MS_MIN => (kept, None),
        _ => (ClockRow { boot, ahead_ms }, Some(step_ms).filter(|ms| *ms != 0)),
    }
}

/// What the state gets of the world with each batch: it reads no clock and draws no ids itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Moment {
    /// Now, on the line of time.
    pub now: Instant,
    /// What the wall clock says.
    pub clock: Instant,
    /// The first of the ids for what is made; a UUID of version 7.
    pub seed: Uuid,
}

/// The line of time as it is set when the state is built.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Settled {
    /// What is to be kept of it with the state.
    pub clock: ClockRow,
    /// The step by which stored dates have to be shifted.
    pub step: Option<Step>,
    /// Now.
    pub at: Moment,
}

/// Ids that follow from a seed, so that the same inputs make the same things.
#[derive(Debug, Clone, Copy)]
pub struct Ids(u128);

impl Ids {
    /// The bits that are random in a UUID of version 7, and not only there to keep an order.
    const RANDOM: u128 = (1 << 62) - 1;

    /// Those that follow a UUID of version 7, which is the first.
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
