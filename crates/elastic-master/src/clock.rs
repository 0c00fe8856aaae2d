//! Where the time comes from. Owns: the source. Does not know about: what is timed.

use std::time::SystemTime;

/// A source of time.
pub trait Clock: Send + 'static {
    /// Milliseconds since 1970, or since any other moment that is the same after a restart.
    fn now_ms(&self) -> u64;
}

/// The clock of the machine. The desk takes a step back of it for a stop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wall;

impl Clock for Wall {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
