//! The source of time. Owns: the source. Does not know about: what is timed.

use std::time::{Instant, SystemTime};

/// A source of time.
pub trait Clock: Send + 'static {
    /// Milliseconds since an arbitrary moment. The clock never goes back, and runs as fast as time.
    fn now_ms(&self) -> u64;
}

/// The clock of the machine as it was once, and what has passed since: that it is set meanwhile,
/// which would make all workers silent at once or none for ever, changes nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steady {
    began_ms: u64,
    began: Instant,
}

impl Steady {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let began_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { began_ms, began: Instant::now() }
    }
}

impl Clock for Steady {
    fn now_ms(&self) -> u64 {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.began_ms.saturating_add(passed)
    }
}
