//! The control page: what a run may have. Owns: its layout, and how the agent writes it. The agent
//! alone can write it; a workload maps it read-only and sees each change at once. Does not know
//! about: what the run uses.

use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::lease::Lease;
use crate::sys::{self, Access};
use crate::{DEVICES_MAX, SLOTS_MAX, VERSION};

/// `elafract` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"elafract");

/// Bytes of the file.
pub const BYTES: usize = 8192;

/// Devices that are not listed may be used without a limit. Without it they have a limit of 0.
pub const OTHERS_ALLOWED: u32 = 1;

/// The page.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Control {
    magic: AtomicU64,
    version: AtomicU32,
    devices: AtomicU32,
    policy: AtomicU32,
    /// Not 0 if the run has turns on any device; the one word that every launch reads.
    gate: AtomicU32,
    /// Grows as long as the agent turns leases.
    beat: AtomicU64,
    _reserved: [AtomicU32; 8],
    device: [Device; DEVICES_MAX],
    /// For each slot of the claim page, the owner word of a process that the agent saw end.
    ended: [AtomicU64; SLOTS_MAX],
}

/// Limit and turn of the run on one GPU.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Device {
    uuid: [AtomicU64; 2],
    limit: AtomicU64,
    uncounted: AtomicU64,
    context: AtomicU64,
    lease: AtomicU32,
    _reserved: [AtomicU32; 5],
}

const _: () = assert!(size_of::<Control>() <= BYTES);
const _: () = assert!(size_of::<Control>() == 64 + DEVICES_MAX * 64 + SLOTS_MAX * 8);
const _: () = assert!(core::mem::offset_of!(Device, _reserved) + 5 * 4 == size_of::<Device>());

/// Limit of one GPU, as the agent sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// The UUID of the GPU, or of the MIG device.
    pub uuid: [u8; 16],
    /// Bytes that the run may hold.
    pub bytes: u64,
    /// Bytes of the run that the agent sees and its claims do not contain. They count as held.
    pub uncounted: u64,
    /// Bytes that a context takes on this GPU with this driver.
    pub context: u64,
}

impl Control {
    /// A page that says this. Devices beyond `DEVICES_MAX` are left out.
    pub fn new(limits: &[Limit], policy: u32) -> Self {
        let control = Self {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            devices: AtomicU32::new(0),
            policy: AtomicU32::new(0),
            gate: AtomicU32::new(0),
            beat: AtomicU64::new(0),
            _reserved: Default::default(),
            device: Default::default(),
            ended: [const { AtomicU64::new(0) }; SLOTS_MAX],
        };
        control.magic.store(MAGIC, Relaxed);
        control.version.store(VERSION, Relaxed);
        control.policy.store(policy, Relaxed);
        let mut count = 0;
        for (device, limit) in control.device.iter().zip(limits) {
            let (low, high) = words(limit.uuid);
            device.uuid[0].store(low, Relaxed);
            device.uuid[1].store(high, Relaxed);
            device.limit.store(limit.bytes, Relaxed);
            device.uncounted.store(limit.uncounted, Relaxed);
            device.context.store(limit.context, Relaxed);
            count += 1;
        }
        control.devices.store(count, Relaxed);
        control
    }

    /// The page as bytes of the file, without the zeros that fill it up to [`BYTES`].
    pub fn as_bytes(&self) -> &[u8] {
        let at = core::ptr::from_ref(self).cast::<u8>();
        // SAFETY: the structure is `repr(C)`, its fields leave no room between or behind them, and
        // it lives as long as the slice. Changes through atomics in other threads at
        // the same time are excluded, because only the agent that made the value has it.
        unsafe { core::slice::from_raw_parts(at, size_of::<Self>()) }
    }

    /// Maps the control page of a run.
    ///
    /// # Errors
    /// Why there is none that can be trusted.
    pub fn map(path: &CStr) -> Result<&'static Self, Unusable> {
        let control = Self::map_with(path, Access::Read)?;
        // SAFETY: the file is at least `BYTES` long, is mapped for good, and every field is an
        // atomic number, so any content and any change by the agent is a valid value.
        Ok(unsafe { control.as_ref() })
    }

    fn map_with(path: &CStr, access: Access) -> Result<core::ptr::NonNull<Self>, Unusable> {
        let file = sys::open(path, access).map_err(Unusable::Open)?;
        let bytes = sys::size(&file).map_err(Unusable::Open)?;
        if bytes < BYTES as u64 {
            return Err(Unusable::Short);
        }
        let at = sys::map_file(&file, BYTES, access).map_err(Unusable::Open)?.cast::<Self>();
        // SAFETY: as in `map`.
        let control = unsafe { at.as_ref() };
        if control.magic.load(Relaxed) != MAGIC || control.version.load(Relaxed) != VERSION {
            return Err(Unusable::Version);
        }
        Ok(at)
    }

    /// How many devices the run has.
    pub fn devices(&self) -> usize {
        (self.devices.load(Relaxed) as usize).min(DEVICES_MAX)
    }

    /// Bits of the policy.
    pub fn policy(&self) -> u32 {
        self.policy.load(Relaxed)
    }

    /// The word that is not 0 if there are turns on any device.
    pub fn gate(&self) -> &AtomicU32 {
        &self.gate
    }

    /// Counter that grows as long as the agent turns leases.
    pub fn beat(&self) -> u64 {
        self.beat.load(Relaxed)
    }

    /// The word of the turns on a device.
    pub fn lease(&self, device: usize) -> Option<&AtomicU32> {
        self.device.get(device).map(|device| &device.lease)
    }

    /// True if the agent saw the process end that had this owner word in a slot.
    pub(crate) fn has_ended(&self, slot: usize, word: u64) -> bool {
        word != 0 && self.ended.get(slot).is_some_and(|ended| ended.load(Relaxed) == word)
    }

    /// The place of a device in the page.
    pub fn find(&self, uuid: [u8; 16]) -> Option<usize> {
        let (low, high) = words(uuid);
        let is = |device: &Device| {
            device.uuid[0].load(Relaxed) == low && device.uuid[1].load(Relaxed) == high
        };
        self.device.iter().take(self.devices()).position(is)
    }

    /// Current limit of a device; `None` if it is not listed.
    pub fn limit(&self, device: usize) -> Option<Limit> {
        let entry = self.device.get(device).filter(|_| device < self.devices())?;
        let [low, high] = [entry.uuid[0].load(Relaxed), entry.uuid[1].load(Relaxed)];
        Some(Limit {
            uuid: ((u128::from(high) << 64) | u128::from(low)).to_le_bytes(),
            bytes: entry.limit.load(Relaxed),
            uncounted: entry.uncounted.load(Relaxed),
            context: entry.context.load(Relaxed),
        })
    }
}

/// The limits in a copy of the page; `None` if it is truncated or of another version.
pub fn limits(page: &[u8]) -> Option<impl Iterator<Item = Limit> + '_> {
    let word = |at: usize| {
        let bytes = page.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let half = |at: usize| {
        let bytes = page.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let known = word(offset_of!(Control, magic))? == MAGIC
        && half(offset_of!(Control, version))? == VERSION
        && page.len() >= BYTES;
    let count = (half(offset_of!(Control, devices))? as usize).min(DEVICES_MAX);
    let limit = move |device: usize| {
        let at = offset_of!(Control, device) + device * size_of::<Device>();
        let uuid = page.get(at + offset_of!(Device, uuid)..)?.get(..16)?;
        Some(Limit {
            uuid: uuid.try_into().ok()?,
            bytes: word(at + offset_of!(Device, limit))?,
            uncounted: word(at + offset_of!(Device, uncounted))?,
            context: word(at + offset_of!(Device, context))?,
        })
    };
    known.then(|| (0..count).filter_map(limit))
}

/// The agent's own mapping of a control page, through which it changes what runs may have.
#[derive(Debug)]
pub struct Writer(&'static Control);

impl Writer {
    /// Maps the page for writing. Only a file that no workload can write or cut short is safe.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn map(path: &CStr) -> Result<Self, Unusable> {
        let control = Control::map_with(path, Access::ReadWrite)?;
        // SAFETY: as in `Control::map`; writes are atomic.
        Ok(Self(unsafe { control.as_ref() }))
    }

    /// Changes the limit of a device. A limit below what is held stops growth and takes nothing.
    pub fn set_limit(&self, device: usize, bytes: u64) {
        if let Some(device) = self.0.device.get(device) {
            device.limit.store(bytes, Relaxed);
        }
    }

    /// Says whose turn it is on a device, and wakes the processes that wait for theirs.
    pub fn set_lease(&self, device: usize, lease: Lease) {
        let Some(device) = self.0.device.get(device) else { return };
        device.lease.store(lease.0, Relaxed);
        let controlled = |device: &Device| Lease(device.lease.load(Relaxed)).is_controlled();
        let gate = self.0.device.iter().any(controlled);
        self.0.gate.store(u32::from(gate), Relaxed);
        sys::futex_wake_shared(&device.lease);
    }

    /// Whose turn it is on a device.
    pub fn lease(&self, device: usize) -> Lease {
        Lease(self.0.lease(device).map_or(0, |lease| lease.load(Relaxed)))
    }

    /// Says that the agent still turns leases.
    pub fn beat(&self) {
        self.0.beat.fetch_add(1, Relaxed);
    }

    /// Says that the process has ended that has this owner word in a slot of the claim page. Only
    /// for those that the others of the run cannot see.
    pub fn set_ended(&self, slot: usize, word: u64) {
        if let Some(ended) = self.0.ended.get(slot) {
            ended.store(word, Relaxed);
        }
    }

    /// Changes what counts as held beyond the claims.
    pub fn set_uncounted(&self, device: usize, bytes: u64) {
        if let Some(device) = self.0.device.get(device) {
            device.uncounted.store(bytes, Relaxed);
        }
    }
}

/// Why a page cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// It cannot be opened or mapped.
    Open(sys::Errno),
    /// The file is shorter than a page of this version.
    Short,
    /// It is no such page, or of another version.
    Version,
}

fn words(uuid: [u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(uuid);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let halves = (number as u64, (number >> 64) as u64);
    halves
}
