//! Whether this run has turns, and what this process has launched under them. Owns: the words about
//! it. Does not know about: waiting, and the driver.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

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

/// What this process has launched. Zeroed memory is nothing.
#[repr(C)]
pub(crate) struct Turns {
    /// How many captures of streams are under way; what is launched then does not run.
    captures: AtomicU32,
    /// By device of the pages.
    pub(crate) device: [Turn; DEVICES_MAX],
}

impl Turns {
    pub(crate) fn captures(&self) -> bool {
        self.captures.load(Relaxed) != 0
    }

    pub(crate) fn capture_begins(&self) {
        self.captures.fetch_add(1, Relaxed);
    }

    pub(crate) fn capture_ends(&self) {
        let _none = self.captures.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
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
