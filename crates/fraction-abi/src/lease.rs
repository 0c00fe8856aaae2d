//! Turns on a device, by which runs get shares of its time. Owns: the words in which the agent says
//! whose turn it is (in the control page) and each process its activity (in the claim page). Does
//! not know about: who decides a turn.
//!
//! A lease is a promise of the library inside the workload: a launch waits until its run has the
//! lease of the device, and launched work is waited for at the end of the lease. The activity that
//! a process reports can only cost its own run its turn: the agent believes it for a moment only.

/// A run's turn on a device, in the control page. 0 if there are no turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lease(pub u32);

const CONTROLLED: u32 = 1;
const GRANTED: u32 = 2;
const CHANGE: u32 = 4;

impl Lease {
    /// Without turns: everything may be launched at any time.
    pub const NONE: Self = Self(0);

    /// The word that follows this one. It differs from it, so that a waiting process notices.
    #[must_use]
    pub fn next(self, granted: bool) -> Self {
        let changes = (self.0 & !(CONTROLLED | GRANTED)).wrapping_add(CHANGE);
        Self(changes | CONTROLLED | if granted { GRANTED } else { 0 })
    }

    /// True if the run may launch now.
    pub fn may_launch(self) -> bool {
        self.0 & CONTROLLED == 0 || self.0 & GRANTED != 0
    }

    /// True if there are turns.
    pub fn is_controlled(self) -> bool {
        self.0 & CONTROLLED != 0
    }
}

/// Last activity of a process on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Time of the activity, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// True if the process waits for a turn.
    pub waits: bool,
    /// True if the process launched work that it has not waited for.
    pub busy: bool,
}

impl Activity {
    /// It waits for all that it has launched, however long that takes.
    pub const DRAINS: Self = Self { at_ns: u64::MAX >> 2, waits: false, busy: true };

    /// True if it waits for all that it has launched.
    pub fn drains(self) -> bool {
        self == Self::DRAINS
    }

    /// As a word of the claim page.
    pub fn word(self) -> u64 {
        self.at_ns << 2 | u64::from(self.waits) << 1 | u64::from(self.busy)
    }

    /// Reads a word of the claim page.
    pub fn of(word: u64) -> Self {
        Self { at_ns: word >> 2, waits: word & 2 != 0, busy: word & 1 != 0 }
    }
}

/// Interval at which a waiting process renews its activity.
pub const WAIT_NS: u64 = 20_000_000;

/// Age from which an activity no longer counts as waiting.
pub const WAITS_NS_MAX: u64 = 100_000_000;

/// Age from which launched work no longer counts as in flight: a process launches no more than ends
/// within about this time before it waits for it.
pub const BUSY_NS_MAX: u64 = 10_000_000;

/// Age of the agent's last sign of life from which leases no longer turn: every launch is allowed.
pub const AGENT_NS_MAX: u64 = 3_000_000_000;
