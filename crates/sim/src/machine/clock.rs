//! The clocks of a machine that is simulated: that on the wall, which may be set, and the time
//! since the start, which may not. Owns: the line of time as `control` keeps it, and the seeds of
//! ids.

use orchestrator::{Moment, STEP_MS_MIN, Settled, Step, settle};
use records::ClockRow;
use units::Instant;
use uuid::Uuid;

/// What the wall clock says first.
const START_MS: u64 = 1_700_000_000_000;

/// Clocks.
#[derive(Debug, Clone)]
pub struct Clock {
    wall: Instant,
    up_ms: u64,
    boots: u128,
    /// By how much the line of time is ahead of the time since the start of the machine.
    ahead_ms: i64,
    /// Random bits of the last seed of ids.
    last_seed: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::at(Instant(START_MS))
    }
}

impl Clock {
    /// Those of a machine that was started a second ago, at this time.
    #[must_use]
    pub const fn at(wall: Instant) -> Self {
        let up_ms = 1000_u64;
        let ahead_ms = wall.0.cast_signed() - up_ms.cast_signed();
        Self { wall, up_ms, boots: 1, ahead_ms, last_seed: 0 }
    }

    /// Time passes.
    pub const fn advance_ms(&mut self, ms: u64) {
        self.wall = Instant(self.wall.0 + ms);
        self.up_ms += ms;
    }

    /// The wall clock is set.
    pub const fn set_by_ms(&mut self, ms: i64) {
        self.wall = Instant(self.wall.0.saturating_add_signed(ms));
    }

    /// The machine starts again.
    pub const fn reboot(&mut self) {
        self.boots += 1;
        self.up_ms = 0;
    }

    /// What the wall clock says.
    #[must_use]
    pub const fn wall(&self) -> Instant {
        self.wall
    }

    /// Now, on the line of time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        Instant(self.up_ms.saturating_add_signed(self.ahead_ms))
    }

    const fn wall_ahead_ms(&self) -> i64 {
        self.wall.0.cast_signed().saturating_sub(self.up_ms.cast_signed())
    }

    /// True if the wall clock was put forward, so that the state has to be dated again.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        let behind_ms = self.wall_ahead_ms().saturating_sub(self.ahead_ms);
        behind_ms > 0 && behind_ms.unsigned_abs() >= STEP_MS_MIN
    }

    /// This moment, with a seed that no other had.
    pub fn moment(&mut self) -> Moment {
        self.last_seed += 1;
        // The lower bits are for the ids that follow from the seed.
        let mut bytes = [0; 10];
        bytes[2..8].copy_from_slice(&self.last_seed.to_be_bytes()[2..]);
        let seed = uuid::Builder::from_unix_timestamp_millis(self.wall.0, &bytes).into_uuid();
        Moment { now: self.now(), clock: self.wall, seed }
    }

    /// Sets the line by the wall clock.
    pub fn settle(&mut self, kept: Option<ClockRow>) -> Settled {
        let (clock, step_ms) = settle(kept, Uuid::from_u128(self.boots), self.wall_ahead_ms());
        self.ahead_ms = clock.ahead_ms;
        let at = self.moment();
        Settled { clock, step: step_ms.map(|ms| Step::of(ms, at.now)), at }
    }
}
