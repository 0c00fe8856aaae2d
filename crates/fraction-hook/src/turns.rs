//! Turns of this run, and launches of this process under them. Owns: the words that store them.
//! Does not know about: waiting, and the driver.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use fraction_abi::DEVICES_MAX;
use fraction_abi::control::Control;
use fraction_abi::sys;

static OPEN: AtomicU32 = AtomicU32::new(0);
pub(crate) static GATE: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const OPEN).cast_mut());

/// Reads the gate of the run from now on.
pub(crate) fn watch(control: &'static Control) {
    GATE.store(core::ptr::from_ref(control.gate()).cast_mut(), Relaxed);
}

/// True if the run has turns on any device.
#[inline(always)]
pub(crate) fn has_turns() -> bool {
    // SAFETY: a word of this library, or of the control page, which is mapped for good.
    unsafe { &*GATE.load(Relaxed) }.load(Relaxed) != 0
}

/// Launches wait for turns again this long after the first capture that is under way began.
const CAPTURE_NS: u64 = 3_000_000_000;

/// Launches and captures of this process. Zeroed memory has none.
#[repr(C)]
pub(crate) struct Turns {
    /// Number of captures in progress. Meanwhile nothing waits for launched work, which would break
    /// a capture; and as captured work does not run, no launch of this process waits for a turn. A
    /// capture whose thread has ended would last for ever, so this holds for a time only.
    captures: AtomicU32,
    /// Not 0 once a capture has begun.
    has_captured: AtomicU32,
    /// Start of the first capture in progress.
    since_ns: AtomicU64,
    /// By device of the pages.
    pub(crate) device: [Turn; DEVICES_MAX],
}

impl Turns {
    pub(crate) fn captures(&self) -> bool {
        self.captures.load(Relaxed) != 0
    }

    /// True if launches may be those of a capture.
    pub(crate) fn records(&self) -> bool {
        self.captures()
            && sys::monotonic_ns().saturating_sub(self.since_ns.load(Relaxed)) < CAPTURE_NS
    }

    pub(crate) fn has_captured(&self) -> bool {
        self.has_captured.load(Relaxed) != 0
    }

    pub(crate) fn capture_begins(&self) {
        self.has_captured.store(1, Relaxed);
        if self.captures.load(Relaxed) == 0 {
            self.since_ns.store(sys::monotonic_ns(), Relaxed);
        }
        self.captures.fetch_add(1, Relaxed);
    }

    pub(crate) fn captures_end(&self, count: u32) {
        self.captures.fetch_sub(count, Relaxed);
    }
}

/// On one device.
#[repr(C)]
pub(crate) struct Turn {
    /// Launches since the last wait for all of them.
    pub(crate) launched: AtomicU32,
    /// Launches after which all of them are waited for, as a power of two.
    pub(crate) window: AtomicU32,
    /// The last sign of life of the agent, and when it was new.
    pub(crate) beat: AtomicU64,
    pub(crate) beat_ns: AtomicU64,
}
