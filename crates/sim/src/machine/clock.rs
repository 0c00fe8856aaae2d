//! The clocks of a simulated machine: the wall clock, which can be set, and the monotonic time
//! since boot. Owns: the virtual time as `control` keeps it, and the seeds of ids.

use orchestrator::{Moment, STEP_MS_MIN, Settled, Step, settle};
use records::ClockRow;
use units::Instant;
use uuid::Uuid;

/// Initial time of the wall clock.
const START_MS: u64 = 1_700_000_000_000;

/// Clocks.
#[derive(Debug, Clone)]
pub struct Clock {
    wall: Instant,
    up_ms: u64,
    boots: u128,
    /// Offset of the virtual time from the monotonic time, in milliseconds.
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
    /// The clocks of a machine that booted one second before `wall`.
    #[must_use]
    pub const fn at(wall: Instant) -> Self {
        let up_ms = 1000_u64;
        let ahead_ms = wall.0.cast_signed() - up_ms.cast_signed();
        Self { wall, up_ms, boots: 1, ahead_ms, last_seed: 0 }
    }

    /// Lets time pass on both clocks.
    pub const fn advance_ms(&mut self, ms: u64) {
        self.wall = Instant(self.wall.0 + ms);
        self.up_ms += ms;
    }

    /// Sets the wall clock by an offset.
    pub const fn set_by_ms(&mut self, ms: i64) {
        self.wall = Instant(self.wall.0.saturating_add_signed(ms));
    }

    /// Restarts the machine.
    pub const fn reboot(&mut self) {
        self.boots += 1;
        self.up_ms = 0;
    }

    /// Time of the wall clock.
    #[must_use]
    pub const fn wall(&self) -> Instant {
        self.wall
    }

    /// Virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        Instant(self.up_ms.saturating_add_signed(self.ahead_ms))
    }

    const fn wall_ahead_ms(&self) -> i64 {
        self.wall.0.cast_signed().saturating_sub(self.up_ms.cast_signed())
    }

    /// `true` if the wall clock was set forward, so that the state has to be rebuilt with new
    /// dates.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        let behind_ms = self.wall_ahead_ms().saturating_sub(self.ahead_ms);
        behind_ms > 0 && behind_ms.unsigned_abs() >= STEP_MS_MIN
    }

    /// The present moment, with a unique seed.
    pub fn moment(&mut self) -> Moment {
        self.last_seed += 1;
        // The lower bits are for the ids that follow from the seed.
        let mut bytes = [0; 10];
        bytes[2..8].copy_from_slice(&self.last_seed.to_be_bytes()[2..]);
        let seed = uuid::Builder::from_unix_timestamp_millis(self.wall.0, &bytes).into_uuid();
        Moment { now: self.now(), clock: self.wall, seed }
    }

    /// Sets the virtual time by the wall clock.
    pub fn settle(&mut self, kept: Option<ClockRow>) -> Settled {
        let (clock, step_ms) = settle(kept, Uuid::from_u128(self.boots), self.wall_ahead_ms());
        self.ahead_ms = clock.ahead_ms;
        let at = self.moment();
        Settled { clock, step: step_ms.map(|ms| Step::of(ms, at.now)), at }
    }
}
