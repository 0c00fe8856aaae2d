//! Launches, which wait for the turn of the run if it has turns. Owns: the functions that launch,
//! waiting for the lease of the device, and bounding the work in flight at the end of a lease. Does
//! not know about: the order of turns, and memory; launches of graphs are in `graphs`.
//!
//! Without turns a launch costs one look at a word of the control page. With them, a process waits
//! for its launched work after a number of launches that take a few milliseconds, so that a run
//! gives the device back soon after its lease ends.

use core::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

use fraction_abi::control::Control;
use fraction_abi::lease::{AGENT_NS_MAX, Activity, Lease, WAIT_NS};
use fraction_abi::sys;

use crate::call::Call;
use crate::called::{current_ordinal, wait_for_all};
use crate::process::{Limited, Mode, Place, Process, mode};
use crate::turns::{Turn, has_turns};

/// Waits for the turn of the run if it has turns.
#[inline(always)]
pub(crate) fn pass() {
    if has_turns() {
        wait();
    }
}

/// Waits, for the program itself, for all launched work or for a part.
#[inline]
pub(crate) fn wait_for(all: bool, call: &Call<'_>) -> i32 {
    match if has_turns() { mode() } else { Mode::Off } {
        Mode::Limited(limited) => limited.waits_for(all, call),
        Mode::Off | Mode::Closed => call.ask(),
    }
}

#[cold]
#[inline(never)]
fn wait() {
    if let Mode::Limited(limited) = mode()
        && !limited.turns.records()
    {
        limited.await_lease();
    }
}

const WINDOW_MAX: u32 = 12;

/// Waiting for all that is in flight takes between these two, or the window changes.
const DRAIN_NS: core::ops::Range<u64> = 1_500_000..6_000_000;

impl Limited {
    fn await_lease(&self) {
        let place = current_ordinal().map(|ordinal| self.place(ordinal));
        let (Some(Place::Device(device)), Some(process)) = (place, self.process()) else {
            return;
        };
        let device = usize::from(device);
        let (Some(word), Some(turn)) =
            (process.control.lease(device), self.turns.device.get(device))
        else {
            return;
        };
        loop {
            let lease = Lease(word.load(Acquire));
            if !lease.is_controlled() {
                return;
            }
            if lease.may_launch() {
                break;
            }
            self.drain(process, device, turn);
            self.set_activity(process, device, Activity { waits: true, ..now() });
            sys::futex_wait_shared(word, lease.0, WAIT_NS);
            if turn.agent_is_gone(process.control) {
                return;
            }
        }
        let window = turn.window.load(Relaxed).min(WINDOW_MAX);
        if turn.launched.fetch_add(1, Relaxed) >> window != 0 {
            self.drain(process, device, turn);
        }
        self.set_activity(process, device, Activity { busy: true, ..now() });
    }

    /// Waits for all that was launched, which no capture survives.
    fn drain(&self, process: &Process, device: usize, turn: &Turn) {
        if !self.turns.captures() && turn.launched.swap(0, Relaxed) != 0 {
            self.set_activity(process, device, Activity::DRAINS);
            turn.drain();
        }
    }

    /// Calls a function by which the program itself waits for its work, and notes when that has
    /// ended.
    fn waits_for(&self, all: bool, call: &Call<'_>) -> i32 {
        let place = current_ordinal().map(|ordinal| self.place(ordinal));
        let (Some(Place::Device(device)), Some(process)) = (place, self.process()) else {
            return call.ask();
        };
        let device = usize::from(device);
        let Some(turn) = self.turns.device.get(device).filter(|turn| turn.has_launched()) else {
            return call.ask();
        };
        self.set_activity(process, device, Activity::DRAINS);
        let result = call.ask();
        if all {
            turn.launched.store(0, Relaxed);
        }
        self.set_activity(process, device, Activity { busy: !all, ..now() });
        result
    }

    fn set_activity(&self, process: &Process, device: usize, activity: Activity) {
        if let Some(seat) = self.seat(process) {
            process.ledger.set_activity(seat, device, activity);
        }
    }
}

fn now() -> Activity {
    Activity { at_ns: sys::monotonic_ns(), ..Activity::default() }
}

impl Turn {
    fn has_launched(&self) -> bool {
        self.launched.load(Relaxed) != 0
    }

    /// Waits for all that is in flight, and changes how much that may be.
    fn drain(&self) {
        let begin = sys::monotonic_ns();
        // SAFETY: takes nothing. An error of earlier work is the next launch's to report.
        let _waited = unsafe { wait_for_all() };
        let took = sys::monotonic_ns().saturating_sub(begin);
        let window = self.window.load(Relaxed);
        let next = if took < DRAIN_NS.start {
            window.saturating_add(1).min(WINDOW_MAX)
        } else if took >= DRAIN_NS.end {
            window.saturating_sub(1)
        } else {
            window
        };
        self.window.store(next, Relaxed);
    }

    /// True if the agent has given no sign of life for too long. Its limits stay, its turns do not.
    fn agent_is_gone(&self, control: &Control) -> bool {
        let (now, beat) = (sys::monotonic_ns(), control.beat());
        if self.beat.swap(beat, Relaxed) != beat || self.beat_ns.load(Relaxed) == 0 {
            self.beat_ns.store(now, Relaxed);
        }
        now.saturating_sub(self.beat_ns.load(Relaxed)) > AGENT_NS_MAX
    }
}
