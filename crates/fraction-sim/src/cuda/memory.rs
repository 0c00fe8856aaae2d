//! Linear memory. Owns: allocations, pinned host memory, copies. Device memory is an address range
//! that takes no memory of the machine until something is copied there, and at most
//! `CONTENTS_MAX` for each process. Does not know about: pools and virtual memory management.

use alloc::collections::BTreeMap;
use core::ptr::{NonNull, with_exposed_provenance_mut};

use fraction_abi::sys::{make_usable, map_memory, unmap};
use fraction_abi::wire::Operation;

use super::{Answer, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, State, driver, give, with};

/// Bytes of contents that a process may have in all its device memory.
const CONTENTS_MAX: u64 = 64 << 20;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    pub(super) kind: u32,
    id: i32,
}

impl Location {
    /// The ordinal of the device whose memory it is. Each has one locality domain.
    pub(super) fn device(self) -> Option<i32> {
        match self.kind {
            1 => Some(self.id),
            6 => Some(self.id & 0xff),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Memory {
    blocks: BTreeMap<u64, Block>,
    host: BTreeMap<u64, u64>,
    contents: u64,
}

/// An address range.
#[derive(Clone, Copy)]
struct Block {
    bytes: u64,
    /// How far something was written.
    written: u64,
    /// Whose memory it is.
    of: Source,
}

/// Source of the memory of an address range, which is freed with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Memory of a device, in a context.
    Device(usize, usize),
    /// A pool.
    Pool(usize),
    /// Nothing yet, or handles that are mapped into it.
    Reserved,
    /// Others, whose memory it is. It has no contents here.
    Imported,
}

impl State {
    /// An address range.
    pub(super) fn map_range(&mut self, bytes: u64, of: Source) -> Answer<u64> {
        let length = usize::try_from(bytes).map_err(|_| OUT_OF_MEMORY)?;
        let at = map_memory(length.max(1), false).map_err(|_| OUT_OF_MEMORY)?;
        let address = at.as_ptr().expose_provenance() as u64;
        self.memory.blocks.insert(address, Block { bytes, written: 0, of });
        Ok(address)
    }

    /// Removes an address range; its bytes and source.
    pub(super) fn unmap_range(
        &mut self,
        address: u64,
        of: fn(Source) -> bool,
    ) -> Answer<(u64, Source)> {
        let block = *self.memory.blocks.get(&address).ok_or(INVALID_VALUE)?;
        if !of(block.of) {
            return Err(INVALID_VALUE);
        }
        self.memory.blocks.remove(&address);
        self.memory.contents = self.memory.contents.saturating_sub(block.written);
        release_range(address, block.bytes);
        Ok((block.bytes, block.of))
    }

    /// The range around an address, and how it is filled.
    pub(super) fn range(&self, address: u64) -> Option<(u64, u64, Source)> {
        let (base, block) = self.memory.blocks.range(..=address).next_back()?;
        (address - base < block.bytes.max(1)).then_some((*base, block.bytes, block.of))
    }

    pub(super) fn allocate(&mut self, bytes: u64) -> Answer<u64> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let (device, context) = (self.current_device()?, self.context()?);
        self.take(device, bytes)?;
        let address = self.map_range(bytes, Source::Device(device, context));
        if address.is_err() {
            self.give_back(device, bytes)?;
        }
        address
    }

    pub(super) fn free(&mut self, address: u64) -> Answer<()> {
        if address == 0 {
            return Ok(());
        }
        match self.unmap_range(address, |of| of != Source::Reserved)? {
            (bytes, Source::Device(device, _)) => self.give_back(device, bytes),
            (bytes, Source::Pool(pool)) => self.free_in_pool(pool, bytes),
            (_, Source::Reserved | Source::Imported) => Ok(()),
        }
    }

    pub(super) fn free_memory_of(&mut self, context: usize) -> Answer<()> {
        let of = |block: &Block| matches!(block.of, Source::Device(_, owner) if owner == context);
        let blocks = self.memory.blocks.iter().filter(|(_, block)| of(block));
        let addresses: alloc::vec::Vec<u64> = blocks.map(|(address, _)| *address).collect();
        addresses.into_iter().try_for_each(|address| self.free(address))
    }

    /// Makes a part of a range usable by copies, which takes memory of the machine.
    fn open(&mut self, address: u64, bytes: u64) -> Answer<()> {
        let (base, length, of) = self.range(address).ok_or(INVALID_VALUE)?;
        if of == Source::Imported {
            return Err(NOT_SUPPORTED);
        }
        let end = (address - base).checked_add(bytes).filter(|end| *end <= length);
        let end = end.ok_or(INVALID_VALUE)?;
        let contents = self.memory.contents;
        let block = self.memory.blocks.get_mut(&base).ok_or(INVALID_VALUE)?;
        let more = end.saturating_sub(block.written);
        if contents + more > CONTENTS_MAX {
            return Err(NOT_SUPPORTED);
        }
        let whole = usize::try_from(end).map_err(|_| INVALID_VALUE)?;
        let base = usize::try_from(base).map_err(|_| INVALID_VALUE)?;
        make_usable(base, whole).map_err(|_| OUT_OF_MEMORY)?;
        block.written = block.written.max(end);
        self.memory.contents = contents + more;
        Ok(())
    }
}

fn release_range(address: u64, bytes: u64) {
    let at =
        usize::try_from(address).ok().and_then(|at| NonNull::new(with_exposed_provenance_mut(at)));
    if let (Some(at), Ok(bytes)) = (at, usize::try_from(bytes)) {
        // SAFETY: mapped as a whole, and no longer in the list of ranges.
        unsafe { unmap(at, bytes.max(1)) };
    }
}

unsafe fn allocate(into: *mut u64, bytes: u64) -> i32 {
    with(|state| {
        if into.is_null() {
            return Err(INVALID_VALUE);
        }
        let address = state.allocate(bytes)?;
        // SAFETY: as the interface demands.
        unsafe { give(into, address) }
    })
}

const PITCH: u64 = 512;

unsafe fn allocate_pitch(into: *mut u64, pitch: *mut u64, width: u64, height: u64) -> i32 {
    with(|state| {
        if into.is_null() || pitch.is_null() || width > 1 << 40 || height > 1 << 40 {
            return Err(INVALID_VALUE);
        }
        let row = width.next_multiple_of(PITCH);
        let address = state.allocate(row.checked_mul(height).ok_or(INVALID_VALUE)?)?;
        // SAFETY: as the interface demands.
        unsafe { give(into, address).and_then(|()| give(pitch, row)) }
    })
}

unsafe fn info(free: *mut u64, total: *mut u64) -> i32 {
    with(|state| {
        let device = state.current_device()?;
        let [left, ..] = state.ask(Operation::State, device, 0)?;
        let all = state.devices.get(device).map_or(0, |device| device.bytes);
        // SAFETY: as the interface demands; either may be null.
        unsafe {
            crate::put(free, left);
            crate::put(total, all);
        }
        Ok(())
    })
}

unsafe fn host(into: *mut u64, bytes: u64) -> i32 {
    with(|state| {
        let length = usize::try_from(bytes).map_err(|_| INVALID_VALUE)?;
        let at = map_memory(length.max(1), true).map_err(|_| OUT_OF_MEMORY)?;
        let address = at.as_ptr().expose_provenance() as u64;
        state.memory.host.insert(address, bytes);
        // SAFETY: as the interface demands.
        unsafe { give(into, address) }
    })
}

/// # Safety
/// Both ranges hold that many bytes.
unsafe fn copy(to: u64, from: u64, bytes: u64) -> Answer<()> {
    let wide = |n: u64| usize::try_from(n).map_err(|_| INVALID_VALUE);
    let (to, from, bytes) = (wide(to)?, wide(from)?, wide(bytes)?);
    // SAFETY: promised by the caller; ranges may overlap.
    unsafe {
        core::ptr::copy(
            core::ptr::with_exposed_provenance::<u8>(from),
            with_exposed_provenance_mut::<u8>(to),
            bytes,
        );
    }
    Ok(())
}

unsafe fn to_device(to: u64, from: u64, bytes: u64) -> i32 {
    with(|state| {
        state.open(to, bytes)?;
        // SAFETY: the destination was checked; the source is the caller's.
        unsafe { copy(to, from, bytes) }
    })
}

unsafe fn to_host(to: u64, from: u64, bytes: u64) -> i32 {
    with(|state| {
        state.open(from, bytes)?;
        // SAFETY: the source was checked; the destination is the caller's.
        unsafe { copy(to, from, bytes) }
    })
}

unsafe fn between(to: u64, from: u64, bytes: u64) -> i32 {
    with(|state| {
        state.open(to, bytes)?;
        state.open(from, bytes)?;
        // SAFETY: both were checked.
        unsafe { copy(to, from, bytes) }
    })
}

fn set(to: u64, value: u8, bytes: u64) -> i32 {
    with(|state| {
        state.open(to, bytes)?;
        let wide = |n: u64| usize::try_from(n).map_err(|_| INVALID_VALUE);
        let at = with_exposed_provenance_mut::<u8>(wide(to)?);
        // SAFETY: the range was checked.
        unsafe { core::ptr::write_bytes(at, value, wide(bytes)?) };
        Ok(())
    })
}

driver! {
    2000 fn cuMemAlloc(into: *mut u32, bytes: u32) {
        // Addresses of this driver do not fit into the 32 bits of this form.
        let _ = (into, bytes);
        NOT_SUPPORTED
    }
    3020 fn cuMemAlloc_v2(into: *mut u64, bytes: u64) {
        // SAFETY: as the interface demands.
        unsafe { allocate(into, bytes) }
    }
    3020 fn cuMemAllocPitch_v2(into: *mut u64, pitch: *mut u64, width: u64, height: u64, _e: u32) {
        // SAFETY: as the interface demands.
        unsafe { allocate_pitch(into, pitch, width, height) }
    }
    6000 fn cuMemAllocManaged(into: *mut u64, bytes: u64, _flags: u32) {
        // SAFETY: as the interface demands.
        unsafe { allocate(into, bytes) }
    }
    2000 fn cuMemFree(address: u32) {
        with(|state| state.free(u64::from(address)))
    }
    3020 fn cuMemFree_v2(address: u64) {
        with(|state| state.free(address))
    }
    3020 fn cuMemGetInfo_v2(free: *mut u64, total: *mut u64) {
        // SAFETY: as the interface demands.
        unsafe { info(free, total) }
    }
    3020 fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut u64, address: u64) {
        with(|state| {
            let (from, length, _) = state.range(address).ok_or(INVALID_VALUE)?;
            // SAFETY: as the interface demands.
            unsafe { give(base, from).and_then(|()| give(bytes, length)) }
        })
    }
    3020 fn cuMemAllocHost_v2(into: *mut u64, bytes: u64) {
        // SAFETY: as the interface demands.
        unsafe { host(into, bytes) }
    }
    2020 fn cuMemHostAlloc(into: *mut u64, bytes: u64, _flags: u32) {
        // SAFETY: as the interface demands.
        unsafe { host(into, bytes) }
    }
    2000 fn cuMemFreeHost(address: u64) {
        with(|state| {
            let bytes = state.memory.host.remove(&address).ok_or(INVALID_VALUE)?;
            release_range(address, bytes);
            Ok(())
        })
    }
    3020 fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: u64) {
        // SAFETY: as the interface demands.
        unsafe { to_device(to, from, bytes) }
    }
    3020 fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: u64) {
        // SAFETY: as the interface demands.
        unsafe { to_host(to, from, bytes) }
    }
    3020 fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: u64) {
        // SAFETY: as the interface demands.
        unsafe { between(to, from, bytes) }
    }
    3020 fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: u64, _stream: usize) {
        // SAFETY: as the interface demands.
        unsafe { to_device(to, from, bytes) }
    }
    3020 fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: u64, _stream: usize) {
        // SAFETY: as the interface demands.
        unsafe { to_host(to, from, bytes) }
    }
    3020 fn cuMemsetD8_v2(to: u64, value: u8, bytes: u64) { set(to, value, bytes) }
}
