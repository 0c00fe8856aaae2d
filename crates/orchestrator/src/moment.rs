//! Time: an input of the state.

use records::ClockRow;
use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

/// The wall clock was set: what was `before` until then is later, or earlier, by `ms` from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Until when.
    pub before: Instant,
    /// By so much.
    pub ms: i64,
}

impl Step {
    /// What a moment that is counted from is called since. One that had not come before the step was
    /// written when the clock was wrong in another way, and stays.
    pub fn since(self, at: Instant) -> Instant {
        if at <= self.before { self.due(at) } else { at }
    }

    /// What a moment that is waited for is called since.
    pub const fn due(self, at: Instant) -> Instant {
        Instant(at.0.saturating_add_signed(self.ms))
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
pub(crate) struct Ids(u128);

impl Ids {
    /// The bits that are random in a UUID of version 7, and not only there to keep an order.
    const RANDOM: u128 = (1 << 62) - 1;

    /// Those that follow a UUID of version 7, which is the first.
    pub(crate) const fn from_seed(seed: Uuid) -> Self {
        Self(seed.as_u128())
    }

    /// The next; the ids of a seed are in the order in which they were made.
    pub(crate) fn next(&mut self) -> Uuid {
        let next = Uuid::from_u128(self.0);
        self.0 = (self.0 & !Self::RANDOM) | (self.0.wrapping_add(1) & Self::RANDOM);
        next
    }
}
