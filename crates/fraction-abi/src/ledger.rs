//! Memory in use by the processes of a run, added up exactly. Owns: taking a slot, reserving
//! against a limit, releasing, and correcting the sum after a process was killed. Does not know
//! about: where the limit comes from, and what is reserved.
//!
//! There is no lock, so a process that is stopped or killed inside an operation keeps no other
//! from going on. A reservation is one compare-and-swap of the total of the device: what is granted
//! is never more than the limit, and what fits is never refused because of another reservation that
//! is refused. Each slot keeps bounds of what it has added to that total:
//!
//! ```text
//! reserve: ceiling += n, changes += 1, total += n (if it fits), changes += 1, floor += n
//! release: floor -= n,   changes += 1, total -= n,              changes += 1, ceiling -= n
//! ```
//!
//! Only its own process writes these words. The slot of a process that was killed is freed by one
//! compare-and-swap of its owner word; what it held then is too much in the total. The total is
//! corrected to the sum of the slots as soon as that sum is known for sure: `changes` is the same
//! before and after all slots were read, and in each slot the bounds are equal. Then no total
//! changed meanwhile, because an operation that changed it would either have changed `changes` or
//! have left its bounds apart. A total is never too small, so an error refuses and never grants.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use crate::SLOTS_MAX;
use crate::claim::{Claim, Device, OwnerWord, Slot, State};
use crate::control::Control;
use crate::lease::Activity;
use crate::owner::{Life, Owner};
use crate::sys;

const TOTAL_BITS: u32 = 48;
const TOTAL_MASK: u64 = (1 << TOTAL_BITS) - 1;

/// More than any device has, and small enough that sums cannot overflow.
pub const BYTES_MAX: u64 = 1 << 46;

/// Called between any two steps of an operation, for tests that end a process there.
pub trait Probe {
    /// Between two steps.
    fn step(&self);
}

/// No probe, as in the product.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Probe for Silent {
    #[inline(always)]
    fn step(&self) {}
}

/// The operations on a claim page.
#[derive(Debug, Clone, Copy)]
pub struct Ledger<'a, P: Probe = Silent> {
    claim: &'a Claim,
    control: Option<&'a Control>,
    probe: P,
}

/// The slot of this process, for its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    index: usize,
}

impl Seat {
    /// Index of the seat in the page.
    pub fn number(self) -> u32 {
        u32::try_from(self.index).unwrap_or(u32::MAX)
    }

    /// The seat of a number that this process got from [`Self::number`].
    pub fn of(number: u32) -> Self {
        Self { index: usize::try_from(number).unwrap_or(usize::MAX) }
    }
}

/// A request that does not fit within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// Bytes in use.
    pub used: u64,
}

impl<'a> Ledger<'a> {
    /// The ledger of a claim page.
    pub fn new(claim: &'a Claim) -> Self {
        Self { claim, control: None, probe: Silent }
    }

    /// The ledger of a claim page, with the agent's reports of ended processes that the run's
    /// processes cannot see.
    pub fn with_control(claim: &'a Claim, control: &'a Control) -> Self {
        Self { claim, control: Some(control), probe: Silent }
    }
}

impl<'a, P: Probe> Ledger<'a, P> {
    /// The ledger of a claim page with a probe.
    pub fn with_probe(claim: &'a Claim, probe: P) -> Self {
        Self { claim, control: None, probe }
    }

    /// The page.
    pub fn claim(&self) -> &'a Claim {
        self.claim
    }

    fn device(&self, device: usize) -> Option<&'a Device> {
        self.claim.device.get(device)
    }

    /// Takes a slot for a process, after freeing those of ended processes if none is free, and in
    /// any case what the process held before an `exec`.
    pub fn attach(&self, owner: Owner) -> Option<Seat> {
        let life = |other: &Owner| other.life(&owner);
        let same = |slot: &Slot| OwnerWord(slot.owner.load(SeqCst)).pid() == owner.pid;
        self.free_those(&same, &life);
        self.attach_with(owner, &life)
    }

    /// [`Self::attach`] with another way to find out who has ended.
    pub fn attach_with(&self, owner: Owner, life: &dyn Fn(&Owner) -> Life) -> Option<Seat> {
        self.take(owner).or_else(|| {
            self.reap_with(life);
            self.take(owner)
        })
    }

    fn take(&self, owner: Owner) -> Option<Seat> {
        for (index, slot) in self.claim.slot.iter().enumerate() {
            let word = OwnerWord(slot.owner.load(SeqCst));
            let taken = word.with(State::Taken, owner.pid);
            if word.state() != State::Free || !swap(&slot.owner, word.0, taken.0) {
                continue;
            }
            self.probe.step();
            for held in &slot.held {
                held.floor.store(0, SeqCst);
                held.ceiling.store(0, SeqCst);
            }
            self.probe.step();
            slot.start.store(owner.start, SeqCst);
            slot.namespace.store(owner.namespace, SeqCst);
            slot.image.store(owner.image, SeqCst);
            for activity in self.claim.activity.iter().filter_map(|slots| slots.get(index)) {
                activity.store(0, SeqCst);
            }
            self.probe.step();
            // Fails only if another process believes that this one has ended.
            if swap(&slot.owner, taken.0, taken.with(State::Live, owner.pid).0) {
                return Some(Seat { index });
            }
        }
        None
    }

    /// Bytes of the device that the run holds.
    pub fn used(&self, device: usize) -> u64 {
        self.device(device).map_or(0, |device| device.total.load(SeqCst) & TOTAL_MASK)
    }

    /// Reserves bytes of the device if the run then holds at most `limit`.
    ///
    /// # Errors
    /// They do not fit, also after the claims of ended processes were taken out.
    pub fn reserve(&self, seat: Seat, device: usize, bytes: u64, limit: u64) -> Result<(), Over> {
        let me = self.owner(seat);
        self.reserve_with(seat, device, bytes, limit, &|owner: &Owner| owner.life(&me))
    }

    /// [`Self::reserve`] with another way to find out who has ended.
    ///
    /// # Errors
    /// As there.
    pub fn reserve_with(
        &self,
        seat: Seat,
        device: usize,
        bytes: u64,
        limit: u64,
        life: &dyn Fn(&Owner) -> Life,
    ) -> Result<(), Over> {
        let first = self.try_reserve(seat, device, bytes, Some(limit));
        if first.is_ok() || bytes > limit {
            return first;
        }
        self.reap_with(life);
        self.correct(device);
        self.try_reserve(seat, device, bytes, Some(limit))
    }

    /// Counts bytes that the device has already given.
    pub fn charge(&self, seat: Seat, device: usize, bytes: u64) {
        let _counted = self.try_reserve(seat, device, bytes, None);
    }

    #[inline(never)]
    fn try_reserve(
        &self,
        seat: Seat,
        device: usize,
        bytes: u64,
        limit: Option<u64>,
    ) -> Result<(), Over> {
        let slot = self.claim.slot.get(seat.index);
        let held = slot.and_then(|slot| slot.held.get(device));
        let (Some(held), Some(sum)) = (held, self.device(device)) else {
            return Err(Over { used: 0 });
        };
        if bytes > BYTES_MAX {
            return Err(Over { used: self.used(device) });
        }
        held.ceiling.fetch_add(bytes, SeqCst);
        self.probe.step();
        sum.changes.fetch_add(1, SeqCst);
        self.probe.step();
        let add = |total: u64| {
            let after = (total & TOTAL_MASK).saturating_add(bytes);
            let fits = limit.is_none_or(|limit| after <= limit) && after <= TOTAL_MASK;
            fits.then_some(total & !TOTAL_MASK | after)
        };
        let added = sum.total.fetch_update(SeqCst, SeqCst, add);
        self.probe.step();
        sum.changes.fetch_add(1, SeqCst);
        self.probe.step();
        match added {
            Ok(_) => {
                held.floor.fetch_add(bytes, SeqCst);
                Ok(())
            }
            Err(total) => {
                held.ceiling.fetch_sub(bytes, SeqCst);
                Err(Over { used: total & TOTAL_MASK })
            }
        }
    }

    /// Gives back bytes that this process reserved, and never more than it holds.
    pub fn release(&self, seat: Seat, device: usize, bytes: u64) {
        let slot = self.claim.slot.get(seat.index);
        let held = slot.and_then(|slot| slot.held.get(device));
        let (Some(held), Some(sum)) = (held, self.device(device)) else { return };
        let subtract = |floor: u64| Some(floor.saturating_sub(bytes));
        let (Ok(before) | Err(before)) = held.floor.fetch_update(SeqCst, SeqCst, subtract);
        let bytes = bytes.min(before);
        self.probe.step();
        sum.changes.fetch_add(1, SeqCst);
        self.probe.step();
        let subtract =
            |total: u64| Some(total & !TOTAL_MASK | (total & TOTAL_MASK).saturating_sub(bytes));
        let _infallible = sum.total.fetch_update(SeqCst, SeqCst, subtract);
        self.probe.step();
        sum.changes.fetch_add(1, SeqCst);
        self.probe.step();
        held.ceiling.fetch_sub(bytes, SeqCst);
    }

    /// Frees the slots of ended processes and corrects the totals. How many slots that were.
    pub fn reap(&self, from: &Owner) -> usize {
        self.reap_with(&|owner: &Owner| owner.life(from))
    }

    /// [`Self::reap`] with another way to find out who has ended.
    pub fn reap_with(&self, life: &dyn Fn(&Owner) -> Life) -> usize {
        self.free_those(&|_| true, life)
    }

    #[inline(never)]
    fn free_those(&self, which: &dyn Fn(&Slot) -> bool, life: &dyn Fn(&Owner) -> Life) -> usize {
        let slots = self.claim.slot.iter().enumerate().filter(|(_, slot)| which(slot));
        let freed = slots.filter(|(at, slot)| self.free_if_ended(*at, slot, life)).count();
        if freed > 0 {
            self.correct_all();
        }
        freed
    }

    #[inline(never)]
    fn free_if_ended(&self, at: usize, slot: &Slot, life: &dyn Fn(&Owner) -> Life) -> bool {
        let word = OwnerWord(slot.owner.load(SeqCst));
        let owner = match word.state() {
            State::Free => return false,
            // It has not said when it started: only a missing process has ended for sure.
            State::Taken => Owner { pid: word.pid(), start: 0, namespace: 0, image: 0 },
            State::Live => slot.owner(word.pid()),
        };
        let ended = self.control.is_some_and(|control| control.has_ended(at, word.0));
        let freed = (ended || life(&owner) == Life::Dead) && {
            self.probe.step();
            swap(&slot.owner, word.0, word.with(State::Free, 0).0)
        };
        self.probe.step();
        freed
    }

    fn correct_all(&self) {
        for device in 0..self.claim.device.len() {
            self.correct(device);
        }
    }

    /// Corrects the total to the sum of the slots. Returns `false` if that sum was not certain:
    /// under constant change, or while a process is stopped inside an operation.
    pub fn correct(&self, device: usize) -> bool {
        const ATTEMPTS: u32 = 200;
        let Some(sum) = self.device(device) else { return true };
        for attempt in 0..ATTEMPTS {
            let changes = sum.changes.load(SeqCst);
            let total = sum.total.load(SeqCst);
            let held = self.sum_of_slots(device);
            self.probe.step();
            if let Some(held) = held
                && sum.changes.load(SeqCst) == changes
            {
                if held == total & TOTAL_MASK {
                    return true;
                }
                // The upper bits make this fail if another process was faster, also where the
                // total has come back to the same bytes.
                let corrections = (total >> TOTAL_BITS).wrapping_add(1) << TOTAL_BITS;
                if swap(&sum.total, total, corrections | (held & TOTAL_MASK)) {
                    return true;
                }
            }
            if attempt % 16 == 15 { sys::yield_now() } else { spin_loop() }
        }
        false
    }

    /// `None` while an operation is in progress.
    fn sum_of_slots(&self, device: usize) -> Option<u64> {
        let mut sum = 0_u64;
        for slot in &self.claim.slot {
            if OwnerWord(slot.owner.load(SeqCst)).state() != State::Live {
                continue;
            }
            let held = slot.held.get(device)?;
            let floor = held.floor.load(SeqCst);
            if held.ceiling.load(SeqCst) != floor {
                return None;
            }
            sum = sum.saturating_add(floor);
        }
        Some(sum)
    }

    /// Processes of the run that hold memory of a device: process id and bytes.
    pub fn holders(&self, device: usize) -> impl Iterator<Item = (u32, u64)> + 'a {
        let held = move |slot: &'a Slot| {
            let word = OwnerWord(slot.owner.load(SeqCst));
            let bytes = slot.held.get(device)?.floor.load(SeqCst);
            (word.state() == State::Live && bytes > 0).then_some((word.pid(), bytes))
        };
        self.claim.slot.iter().take(SLOTS_MAX).filter_map(held)
    }

    /// Says what this process does on a device.
    pub fn set_activity(&self, seat: Seat, device: usize, activity: Activity) {
        let slot = self.claim.activity.get(device).and_then(|slots| slots.get(seat.index));
        if let Some(slot) = slot {
            slot.store(activity.word(), Relaxed);
        }
    }

    fn owner(&self, seat: Seat) -> Owner {
        let slot = self.claim.slot.get(seat.index);
        let pid = |slot: &Slot| OwnerWord(slot.owner.load(SeqCst)).pid();
        let unknown = Owner { pid: 0, start: 0, namespace: 0, image: 0 };
        slot.map_or(unknown, |slot| slot.owner(pid(slot)))
    }
}

impl Slot {
    fn owner(&self, pid: u32) -> Owner {
        Owner {
            pid,
            start: self.start.load(SeqCst),
            namespace: self.namespace.load(SeqCst),
            image: self.image.load(SeqCst),
        }
    }
}

fn swap(word: &AtomicU64, from: u64, to: u64) -> bool {
    word.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
}
