//! Whether this run has turns, and what this process has launched under them. Owns: the words about
//! it. Does not know about: waiting, and the driver.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use fraction_abi::DEVICES_MAX;
use fraction_abi::control::Control;

static OPEN: AtomicU32 = AtomicU32::new(0);
pub(crate) static GATE: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const OPEN).cast_mut());

/// Reads the gate of the run from now on.
pub(crate) fn watch(control: &'static Control) {
    GATE.store(core::ptr::from_ref(control.gate()).cast_mut(), Relaxed);
}

/// Whether the run has turns on any device.
#[inline(always)]
pub(crate) fn has_turns() -> bool {
    // SAFETY: a word of this library, or of the control page, which is mapped for good.
    unsafe { &*GATE.load(Relaxed) }.load(Relaxed) != 0
}

const CAPTURES: usize = 64;

/// What this process has launched. Zeroed memory is nothing.
#[repr(C)]
pub(crate) struct Turns {
    /// Streams at which captures began that are under way. Meanwhile no launch of this process waits
    /// for a turn: what is captured does not run, and to wait for what was launched would break a
    /// capture. More at the same time are not known.
    captures: [AtomicUsize; CAPTURES],
    /// Whether one has ever begun.
    has_captured: AtomicU32,
    /// By device of the pages.
    pub(crate) device: [Turn; DEVICES_MAX],
}

impl Turns {
    pub(crate) fn captures(&self) -> bool {
        self.captures.iter().any(|stream| stream.load(Relaxed) != 0)
    }

    pub(crate) fn has_captured(&self) -> bool {
        self.has_captured.load(Relaxed) != 0
    }

    pub(crate) fn capture_begins(&self, stream: usize) {
        self.has_captured.store(1, Relaxed);
        self.replace(0, stream);
    }

    /// Whether one began at the stream.
    pub(crate) fn capture_ends(&self, stream: usize) -> bool {
        self.replace(stream, 0)
    }

    #[inline(never)]
    fn replace(&self, from: usize, to: usize) -> bool {
        self.captures.iter().any(|one| one.compare_exchange(from, to, Relaxed, Relaxed).is_ok())
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
