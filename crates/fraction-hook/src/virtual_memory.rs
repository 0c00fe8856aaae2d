//! Virtual memory management. Owns: handles of physical memory, which stay charged until nothing
//! refers to them and they are mapped nowhere. The device is that of the request, never that of the
//! current context; memory of the host costs nothing. What is imported is the exporter's, so what
//! was exported stays charged until its process ends; so does what was bound to a sparse array or a
//! multicast object, which hold it in ways that are not followed. Does not know about: address ranges,
//! which take no memory.

use crate::hooked::hooks;
use crate::linear::written;
use crate::location::Properties;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, mode};
use crate::table::{Class, Row, Table};

impl Limited {
    /// Changes the counts of a handle, and gives its memory back with the last of them.
    fn count(&self, handle: u64, change: fn(&mut Row)) {
        let ended = self.table.with(|table: &mut Table| {
            let row = table.find(Class::Handle, handle)?;
            change(row);
            let ended = row.references == 0 && row.mapped == 0;
            if ended { table.remove(Class::Handle, handle) } else { None }
        });
        if let Some(row) = ended {
            self.release(row.device, row.bytes);
        }
    }

    /// Counts a reference that this process cannot give back: others may hold the memory.
    fn keep(&self, handle: u64) {
        self.count(handle, |row| row.references = row.references.saturating_add(1));
    }

    /// The same of what is mapped at an address.
    fn keep_at(&self, address: u64) {
        let at = |row: &Row| {
            let within = address.checked_sub(row.key).is_some_and(|by| by < row.bytes);
            row.class == Class::Mapping && within
        };
        if let Some(row) = self.table.with(|table| table.any(at)) {
            self.keep(row.owner);
        }
    }

    /// Takes out the mappings of a range, which lie one behind the other.
    fn unmapped(&self, address: u64, bytes: u64) {
        let mut at = address;
        while at.wrapping_sub(address) < bytes {
            let Some(row) = self.table.with(|table| table.remove(Class::Mapping, at)) else {
                break;
            };
            self.count(row.owner, |handle| handle.mapped = handle.mapped.saturating_sub(1));
            at = at.saturating_add(row.bytes.max(1));
        }
    }
}

/// `CUarrayMapInfo`.
#[repr(C)]
pub struct ArrayMapping {
    place: [u64; 7],
    operation: u32,
    kind: u32,
    handle: u64,
    rest: [u64; 3],
}

const _: () = assert!(size_of::<ArrayMapping>() == 96);
/// `CU_MEM_OPERATION_TYPE_MAP`.
const MAP: u32 = 1;

/// Counts what the driver has bound.
#[inline]
fn bound(result: i32, keep: impl FnOnce(&Limited)) -> i32 {
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        keep(limited);
    }
    result
}

/// Counts what the driver has mapped into sparse arrays.
///
/// # Safety
/// As a call of the driver: so many entries.
#[inline(never)]
unsafe fn mapped_arrays(result: i32, list: *const ArrayMapping, count: u32) -> i32 {
    bound(result, |limited| {
        for at in 0..count {
            // SAFETY: promised by the caller, and the driver has read it.
            let one = unsafe { list.wrapping_add(at as usize).read_unaligned() };
            if one.operation == MAP {
                limited.keep(one.handle);
            }
        }
    })
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuMemCreate(into: *mut u64, bytes: u64, properties: *const Properties, flags: u64) |real| {
        // SAFETY: see above; null is the driver's to refuse.
        let device = unsafe { properties.as_ref() }
            .and_then(|properties| properties.location.device());
        // SAFETY: see above.
        let mut ask = || unsafe { (real(into, bytes, properties, flags), written(into), bytes) };
        match (mode(), device) {
            (Mode::Limited(limited), Some(device)) => {
                limited.take(Class::Handle, limited.place(device), bytes, &mut ask)
            }
            (Mode::Closed, Some(_)) => OUT_OF_MEMORY,
            _ => ask().0,
        }
    }
    fn cuMemRelease(handle: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(handle) };
        if let (0, Mode::Limited(limited)) = (result, mode()) {
            limited.count(handle, |row| row.references = row.references.saturating_sub(1));
        }
        result
    }
    fn cuMemRetainAllocationHandle(into: *mut u64, address: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, address) };
        if let (0, Mode::Limited(limited)) = (result, mode()) {
            // SAFETY: the driver has just written there.
            let handle = unsafe { written(into) };
            limited.count(handle, |row| row.references = row.references.saturating_add(1));
        }
        result
    }
    fn cuMemExportToShareableHandle(into: usize, handle: u64, kind: u32, flags: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, handle, kind, flags) };
        if let (0, Mode::Limited(limited)) = (result, mode()) {
            limited.keep(handle);
        }
        result
    }
    fn cuMemMapArrayAsync(list: *const ArrayMapping, count: u32, stream: usize) |real| {
        // SAFETY: see above.
        unsafe { mapped_arrays(real(list, count, stream), list, count) }
    }
    fn cuMemMapArrayAsync_ptsz(list: *const ArrayMapping, count: u32, stream: usize) |real| {
        // SAFETY: see above.
        unsafe { mapped_arrays(real(list, count, stream), list, count) }
    }
    fn cuMulticastBindMem(to: u64, at: u64, handle: u64, offset: u64, bytes: u64, flags: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(to, at, handle, offset, bytes, flags) };
        bound(result, |limited| limited.keep(handle))
    }
    fn cuMulticastBindMem_v2(
        to: u64,
        device: i32,
        at: u64,
        handle: u64,
        offset: u64,
        bytes: u64,
        flags: u64,
    ) |real| {
        // SAFETY: see above.
        let result = unsafe { real(to, device, at, handle, offset, bytes, flags) };
        bound(result, |limited| limited.keep(handle))
    }
    fn cuMulticastBindAddr(to: u64, at: u64, address: u64, bytes: u64, flags: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(to, at, address, bytes, flags) };
        bound(result, |limited| limited.keep_at(address))
    }
    fn cuMulticastBindAddr_v2(
        to: u64,
        device: i32,
        at: u64,
        address: u64,
        bytes: u64,
        flags: u64,
    ) |real| {
        // SAFETY: see above.
        let result = unsafe { real(to, device, at, address, bytes, flags) };
        bound(result, |limited| limited.keep_at(address))
    }
    fn cuMemMap(address: u64, bytes: u64, offset: u64, handle: u64, flags: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(address, bytes, offset, handle, flags) };
        if let (0, Mode::Limited(limited)) = (result, mode()) {
            let row = Row {
                key: address,
                owner: handle,
                bytes,
                references: 0,
                device: None,
                class: Class::Mapping,
                mapped: 0,
            };
            if limited.table.with(|table| table.insert(row)) {
                limited.count(handle, |row| row.mapped = row.mapped.saturating_add(1));
            }
        }
        result
    }
    fn cuMemUnmap(address: u64, bytes: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(address, bytes) };
        if let (0, Mode::Limited(limited)) = (result, mode()) {
            limited.unmapped(address, bytes);
        }
        result
    }
}
