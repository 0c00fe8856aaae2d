//! This process in the run. Owns: the seat in the claim page, which device is which, and charging.
//! Does not know about: where the pages are, and single functions of the driver.
//!
//! All of it is in memory that the kernel zeroes in the child of a fork, which so begins as a
//! process of its own: it takes a seat when it first needs one, and what the parent holds stays the
//! parent's.

use core::arch::x86_64::_rdtsc;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Release;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};

use fraction_abi::control::{Control, OTHERS_ALLOWED};
use fraction_abi::ledger::{Ledger, Seat};
use fraction_abi::lock::Lock;
use fraction_abi::owner::Owner;
use fraction_abi::sys;

use crate::called::{current_context, current_ordinal, device_uuid, device_uuid_v2};
use crate::pages;
use crate::table::{Class, Table};
use crate::turns::{self, Turns};

/// Error of every refusal, so that frameworks free their caches and try again.
pub(crate) const OUT_OF_MEMORY: i32 = 2;

/// A process that is limited.
pub(crate) struct Process {
    pub(crate) control: &'static Control,
    pub(crate) ledger: Ledger<'static>,
    pub(crate) owner: Owner,
}

/// How this process is limited.
pub(crate) enum Mode {
    /// Not: it has other rights than who started it, or a proxy does it.
    Off,
    /// There are no pages that can be used: nothing may be taken.
    Closed,
    /// By its pages.
    Limited(&'static Limited),
}

/// State of a process besides its pages. Zeroed memory is a process that has not begun.
#[repr(C)]
pub(crate) struct Limited {
    /// 0 not begun, 1 off, 2 closed, 3 limited.
    state: AtomicU32,
    begin: Lock<()>,
    process: UnsafeCell<MaybeUninit<Process>>,
    pub(crate) table: Lock<Table>,
    /// Held while the driver's numbers for pools or graphs are read and counted: of two threads the
    /// one with the older answer must not be the last.
    pub(crate) counting: Lock<()>,
    /// By ordinal of the driver: the device of the pages + 2, 1 if it is not listed.
    devices: [AtomicU32; ORDINALS],
    /// The number of the seat + 1; 0: nothing has been taken yet.
    seat: AtomicU32,
    reaped: AtomicU64,
    /// Pools that the program has used.
    pub(crate) pools: [AtomicU64; POOLS],
    /// Launches and captures of the process.
    pub(crate) turns: Turns,
}

const POOLS: usize = 32;

/// Devices of the driver that can be told apart.
pub(crate) const ORDINALS: usize = 64;

// SAFETY: `process` is written once, under `begin`, before `state` says so.
unsafe impl Sync for Limited {}

static MEMORY: AtomicPtr<Limited> = AtomicPtr::new(core::ptr::null_mut());

fn memory() -> Option<&'static Limited> {
    let known = MEMORY.load(Acquire);
    // SAFETY: published below, for good.
    unsafe { known.as_ref() }.or_else(first_memory)
}

#[cold]
#[inline(never)]
fn first_memory() -> Option<&'static Limited> {
    let bytes = size_of::<Limited>();
    let at = sys::map_memory(bytes, true).ok()?;
    sys::wipe_on_fork(at, bytes);
    let at = at.cast::<Limited>();
    match MEMORY.compare_exchange(core::ptr::null_mut(), at.as_ptr(), Release, Acquire) {
        // SAFETY: zeroed memory of the right size, published for good.
        Ok(_) => Some(unsafe { at.as_ref() }),
        Err(other) => {
            // SAFETY: not published; another thread's is in use.
            unsafe {
                sys::unmap(at.cast(), bytes);
                other.as_ref()
            }
        }
    }
}

/// How this process is limited.
#[inline(never)]
pub(crate) fn mode() -> Mode {
    if crate::hooked::is_proxied() {
        return Mode::Off;
    }
    let Some(memory) = memory() else { return Mode::Closed };
    let state = match memory.state.load(Acquire) {
        0 => memory.begin(),
        state => state,
    };
    match state {
        1 => Mode::Off,
        3 => Mode::Limited(memory),
        _ => Mode::Closed,
    }
}

/// Device on which an allocation counts.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// The device has no limit.
    Free,
    /// Index of the device in the pages.
    Device(u8),
    /// The run does not have the device.
    Refused,
    /// The driver itself reports the error: there is no such device, or no context.
    Driver,
}

/// The UUID of a device of the driver, in the newer form that MIG devices have their own in. The
/// driver's result; `None` if the driver has no such function.
#[cold]
fn identify(uuid: &mut [u8; 16], ordinal: i32) -> Option<i32> {
    // SAFETY: room for a UUID.
    unsafe { device_uuid_v2(uuid, ordinal).or_else(|| device_uuid(uuid, ordinal)) }
}

impl Limited {
    // Never in `mode`, which is called at every allocation: paths take much of a stack.
    #[cold]
    #[inline(never)]
    fn begin(&self) -> u32 {
        self.begin.with(|()| {
            let state = self.state.load(Acquire);
            if state != 0 {
                return state;
            }
            let (state, process) = match pages::find() {
                pages::PagesLookup::NotMeant => (1, None),
                pages::PagesLookup::Unusable => (2, None),
                pages::PagesLookup::Pages(control, claim) => {
                    let (owner, ledger) = (Owner::current(), Ledger::with_control(claim, control));
                    (3, Some(Process { control, ledger, owner }))
                }
            };
            if let Some(process) = process {
                turns::watch(process.control);
                // SAFETY: only here, under the lock, while no reader has seen a state.
                unsafe { (*self.process.get()).write(process) };
            }
            self.state.store(state, Release);
            state
        })
    }

    #[inline(never)]
    pub(crate) fn process(&self) -> Option<&Process> {
        // SAFETY: written before the state was.
        let written = || unsafe { (*self.process.get()).assume_init_ref() };
        (self.state.load(Acquire) == 3).then(written)
    }

    /// Seat in the claim page, taken when it is first needed; `None` if all are taken.
    pub(crate) fn seat(&self, process: &Process) -> Option<Seat> {
        match self.seat.load(Acquire).checked_sub(1) {
            Some(number) => Some(Seat::of(number)),
            None => self.begin.with(|()| match self.seat.load(Acquire).checked_sub(1) {
                Some(number) => Some(Seat::of(number)),
                None => {
                    let seat = process.ledger.attach(process.owner)?;
                    self.seat.store(seat.number() + 1, Release);
                    Some(seat)
                }
            }),
        }
    }

    /// Place where the memory of a device of the driver is counted.
    #[inline(never)]
    pub(crate) fn place(&self, ordinal: i32) -> Place {
        let slot = usize::try_from(ordinal).ok().and_then(|at| self.devices.get(at));
        let (Some(slot), Some(process)) = (slot, self.process()) else { return Place::Driver };
        let mut known = slot.load(Relaxed);
        if known == 0 {
            let mut uuid = [0; 16];
            match identify(&mut uuid, ordinal) {
                None => return Place::Refused,
                Some(0) => {}
                Some(_) => return Place::Driver,
            }
            let listed = process.control.find(uuid);
            known = listed.map_or(1, |device| u32::try_from(device).unwrap_or(0) + 2);
            slot.store(known, Relaxed);
        }
        match known.checked_sub(2).map(u8::try_from) {
            Some(device) => device.map_or(Place::Refused, Place::Device),
            None if process.control.policy() & OTHERS_ALLOWED != 0 => Place::Free,
            None => Place::Refused,
        }
    }

    /// The ordinal of a device of the pages, if it has been used.
    pub(crate) fn ordinal(&self, device: Option<u8>) -> Option<i32> {
        let known = u32::from(device?) + 2;
        let at = self.devices.iter().position(|slot| slot.load(Relaxed) == known)?;
        i32::try_from(at).ok()
    }

    /// Where memory of the current context is counted.
    pub(crate) fn current(&self) -> Place {
        current_ordinal().map_or(Place::Driver, |ordinal| self.place(ordinal))
    }

    /// Reserves; `false`: it does not fit.
    #[inline(never)]
    pub(crate) fn reserve(&self, place: Place, bytes: u64) -> bool {
        let device = match place {
            Place::Free | Place::Driver => return true,
            Place::Refused => return false,
            Place::Device(device) => usize::from(device),
        };
        let Some(process) = self.process() else { return false };
        let Some(limit) = process.limit(device) else { return false };
        let Some(seat) = self.seat(process) else { return false };
        process.ledger.reserve(seat, device, bytes, limit).is_ok()
    }

    /// [`Self::reserve`]; if it does not fit, after pools have released their unused memory.
    pub(crate) fn reserve_or_trim(&self, place: Place, bytes: u64) -> bool {
        if self.reserve(place, bytes) {
            return true;
        }
        self.trim_all();
        self.reserve(place, bytes)
    }

    /// Counts memory that the driver has already given.
    #[inline(never)]
    pub(crate) fn charge(&self, device: Option<u8>, bytes: u64) {
        if let (Some(device), Some(process)) = (device, self.process())
            && let Some(seat) = self.seat(process)
        {
            process.ledger.charge(seat, usize::from(device), bytes);
        }
    }

    /// Gives back.
    #[inline(never)]
    pub(crate) fn release(&self, device: Option<u8>, bytes: u64) {
        if let (Some(device), Some(process)) = (device, self.process())
            && let Some(seat) = self.seat(process)
        {
            process.ledger.release(seat, usize::from(device), bytes);
        }
    }

    /// Changes a charge from one number of bytes to another.
    #[inline(never)]
    pub(crate) fn recount(&self, device: Option<u8>, from: u64, to: u64) {
        if to > from {
            self.charge(device, to - from);
        } else if from > to {
            self.release(device, from - to);
        }
    }

    /// Charges the memory that the driver reports for a pool or graphs, of which `extra` bytes are
    /// charged beside it.
    #[inline(never)]
    pub(crate) fn count_kept(
        &self,
        class: Class,
        key: u64,
        extra: u64,
        kept: &dyn Fn() -> Option<u64>,
    ) {
        self.counting.with(|()| {
            let kept = kept();
            let known = self.table.with(|table| {
                let row = table.find(class, key)?;
                // The driver knows nothing of a pool that was destroyed.
                let now = kept.filter(|_| row.references > 0).unwrap_or(row.bytes);
                Some((row.device, core::mem::replace(&mut row.bytes, now), now))
            });
            if let Some((device, before, now)) = known {
                self.recount(device, before.saturating_add(extra), now);
            }
        });
    }

    /// Total and free bytes of a device as this run sees it, of the device's own.
    #[inline(never)]
    pub(crate) fn view(&self, device: u8, total: u64, free: u64) -> (u64, u64) {
        let Some(process) = self.process() else { return (0, 0) };
        let device = usize::from(device);
        let Some(limit) = process.control.limit(device) else { return (total, free) };
        self.reap_at_times(process);
        let used = process.ledger.used(device).saturating_add(limit.uncounted);
        let narrowed = limit.bytes.min(total);
        (narrowed, narrowed.saturating_sub(used).min(free))
    }

    /// True if more is held of a device than may be.
    pub(crate) fn is_over(&self, place: Place) -> bool {
        let (Place::Device(device), Some(process)) = (place, self.process()) else { return false };
        let device = usize::from(device);
        process.ledger.used(device) > process.limit(device).unwrap_or(0)
    }

    /// True if this many bytes could fit on a device with nothing else on it.
    pub(crate) fn could_fit(&self, place: Place, bytes: u64) -> bool {
        match (place, self.process()) {
            (Place::Device(device), Some(process)) => {
                process.limit(usize::from(device)).is_some_and(|limit| bytes <= limit)
            }
            (place, _) => !matches!(place, Place::Refused),
        }
    }

    /// Takes out ended processes before an answer, at most every 50 to 250 milliseconds.
    fn reap_at_times(&self, process: &Process) {
        // SAFETY: every processor of this architecture has this counter.
        let now = unsafe { _rdtsc() } >> 28;
        if self.reaped.swap(now, Relaxed) != now {
            process.reap();
        }
    }

    /// The context that is current in this thread, or 0.
    #[inline(never)]
    pub(crate) fn context(&self) -> u64 {
        let mut context = 0;
        // SAFETY: room for a number.
        let _asked = unsafe { current_context(&raw mut context) };
        context
    }
}

impl Process {
    fn limit(&self, device: usize) -> Option<u64> {
        let limit = self.control.limit(device)?;
        Some(limit.bytes.saturating_sub(limit.uncounted))
    }

    /// Takes out ended processes.
    #[inline(never)]
    pub(crate) fn reap(&self) {
        self.ledger.reap(&self.owner);
    }
}

impl Place {
    /// The device that is charged.
    pub(crate) fn device(self) -> Option<u8> {
        match self {
            Place::Device(device) => Some(device),
            Place::Free | Place::Refused | Place::Driver => None,
        }
    }
}
