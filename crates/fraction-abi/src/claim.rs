//! The claim page: memory in use by the processes of a run. Owns: its layout, how it is made,
//! mapped by a process of the run, and read by the agent, which believes nothing in it. Does not
//! know about: limits. The operations are in `ledger`.

use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::control::Unusable;
use crate::lease::Activity;
use crate::owner::Owner;
use crate::sys::{self, Access};
use crate::{DEVICES_MAX, SLOTS_MAX, VERSION};

/// `elaclaim` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"elaclaim");

/// Bytes of the file.
pub const BYTES: usize = size_of::<Claim>();

/// The page.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Claim {
    magic: AtomicU64,
    version: AtomicU32,
    _reserved: AtomicU32,
    /// Reason why the library does not reach the program that the run starts with; 0 if it does.
    /// Written by the process that starts the program.
    unreached: AtomicU32,
    _more: [AtomicU32; 11],
    pub(crate) device: [Device; DEVICES_MAX],
    pub(crate) slot: [Slot; SLOTS_MAX],
    /// Activity of each slot on each device; by device, so that the agent reads one row at a time.
    pub(crate) activity: [[AtomicU64; SLOTS_MAX]; DEVICES_MAX],
}

/// The sum over all slots for one device, kept beside them so that nothing has to add them up.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Device {
    /// Bytes in the lower 48 bits, and above them how often it was corrected.
    pub(crate) total: AtomicU64,
    /// Grows at the beginning and at the end of each change of `total`.
    pub(crate) changes: AtomicU64,
}

/// Claims of one process.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// State, generation and process id; the only word that others may change.
    pub(crate) owner: AtomicU64,
    pub(crate) start: AtomicU64,
    pub(crate) namespace: AtomicU64,
    pub(crate) image: AtomicU64,
    pub(crate) held: [Held; DEVICES_MAX],
}

/// Bytes on one device. The slot has added at least `floor` and at most `ceiling` to the total;
/// both are equal while no operation is in progress.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) floor: AtomicU64,
    pub(crate) ceiling: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// A process has taken it and still has to write who it is.
    Taken,
    Live,
}

/// State in bits 62 and 63, generation in 32 to 61, process id below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerWord(pub(crate) u64);

impl OwnerWord {
    pub(crate) fn state(self) -> State {
        match self.0 >> 62 {
            1 => State::Taken,
            2 => State::Live,
            _ => State::Free,
        }
    }

    pub(crate) fn pid(self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let pid = self.0 as u32;
        pid
    }

    pub(crate) fn with(self, state: State, pid: u32) -> Self {
        let generation = (self.0 >> 32) & ((1 << 30) - 1);
        let (bits, generation) = match state {
            State::Free => (0, generation),
            State::Taken => (1, (generation + 1) & ((1 << 30) - 1)),
            State::Live => (2, generation),
        };
        Self(bits << 62 | generation << 32 | u64::from(pid))
    }
}

/// The first bytes of an empty page; the others are zero. The creator of the file writes the zeros,
/// too: on a disk that is full later, a file with holes would end the processes that write to it.
pub fn header() -> [u8; 16] {
    let number = u128::from(MAGIC) | u128::from(VERSION) << 64;
    number.to_le_bytes()
}

impl Claim {
    /// Maps the claim page of a run.
    ///
    /// # Errors
    /// Why there is none that can be used.
    pub fn map(path: &CStr) -> Result<&'static Self, Unusable> {
        let file = sys::open(path, Access::ReadWrite).map_err(Unusable::Open)?;
        if sys::size(&file).map_err(Unusable::Open)? < BYTES as u64 {
            return Err(Unusable::Short);
        }
        let at = sys::map_file(&file, BYTES, Access::ReadWrite).map_err(Unusable::Open)?;
        // SAFETY: the file is long enough, is mapped for good, and every field is an atomic number,
        // so any content and any change by other processes is a valid value. Only the run's own
        // account can truncate the file, which ends its own processes.
        let claim = unsafe { at.cast::<Self>().as_ref() };
        if claim.magic.load(Relaxed) != MAGIC || claim.version.load(Relaxed) != VERSION {
            return Err(Unusable::Version);
        }
        Ok(claim)
    }
}

/// Offset in the file of the reason why the library does not reach the program of the run.
pub fn unreached_at() -> u64 {
    u64::try_from(offset_of!(Claim, unreached)).unwrap_or(u64::MAX)
}

/// That reason in a copy of the page, which may have any content; `None` if it is no claim page.
pub fn unreached(page: &[u8]) -> Option<u32> {
    let at = offset_of!(Claim, unreached);
    let number = page.get(at..at + 4).filter(|_| page.starts_with(&header()))?;
    Some(u32::from_le_bytes(number.try_into().ok()?))
}

/// Claim of one slot, as the agent reads it out of a copy of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// The slot.
    pub slot: usize,
    /// Owner word of the slot, constant while one process holds it.
    pub word: u64,
    /// The claiming process; its id is that of its own namespace.
    pub owner: Owner,
    /// Bytes on each device.
    pub bytes: [u64; DEVICES_MAX],
}

/// The claims in a copy of the page, which may be of any length and say anything. A truncated page,
/// or one of another version, claims nothing.
pub fn claims(page: &[u8]) -> impl Iterator<Item = Claimed> + '_ {
    let known = page.get(..16) == Some(header().as_slice());
    let slots = if known { page.get(offset_of!(Claim, slot)..).unwrap_or(&[]) } else { &[] };
    let slots = slots.chunks_exact(size_of::<Slot>()).take(SLOTS_MAX).enumerate();
    slots.filter_map(|(at, slot)| claimed(at, slot))
}

fn claimed(at: usize, slot: &[u8]) -> Option<Claimed> {
    let word = |at: usize| {
        let bytes = slot.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let owner = OwnerWord(word(offset_of!(Slot, owner))?);
    if owner.state() != State::Live {
        return None;
    }
    let mut bytes = [0; DEVICES_MAX];
    for (device, bytes) in bytes.iter_mut().enumerate() {
        let held = offset_of!(Slot, held) + device * size_of::<Held>();
        *bytes = word(held + offset_of!(Held, floor))?;
    }
    let start = word(offset_of!(Slot, start))?;
    let namespace = word(offset_of!(Slot, namespace))?;
    let image = word(offset_of!(Slot, image))?;
    let word = owner.0;
    let owner = Owner { pid: owner.pid(), start, namespace, image };
    Some(Claimed { slot: at, word, owner, bytes })
}

/// Where in the file the row of activities of a device is.
pub fn activities_at(device: usize) -> u64 {
    let row = offset_of!(Claim, activity) + device * ACTIVITIES_BYTES;
    u64::try_from(row).unwrap_or(u64::MAX)
}

/// Bytes of such a row.
pub const ACTIVITIES_BYTES: usize = SLOTS_MAX * size_of::<u64>();

/// The activities in a copy of a row, which may say anything.
pub fn activities(row: &[u8]) -> impl Iterator<Item = Activity> + '_ {
    let words = row.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
    words.filter(|word| *word != 0).map(Activity::of)
}
