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
