//! Points in time as integers, passed in by the caller. Owns no clock.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch (or since the start of a simulation).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(pub u64);

impl Instant {
    /// This instant plus a span in milliseconds.
    #[must_use]
    pub const fn plus_ms(self, span_ms: u64) -> Self {
        Self(self.0.saturating_add(span_ms))
    }

    /// Milliseconds from `earlier` to this instant; zero when it is not earlier.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
