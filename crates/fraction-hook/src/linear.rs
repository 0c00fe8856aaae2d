//! Linear and managed memory, and what is left of it. Owns: reserving before the driver is asked,
//! and giving back what it refused. Does not know about: how much a run may have.

use crate::hooked::hooks;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row};

/// Asks the driver: its result, the key of what it gave, and the bytes that it took. Not generic,
/// so that what is done around it is in the library once.
pub(crate) type Ask<'a> = &'a mut dyn FnMut() -> (i32, u64, u64);

/// Asks the driver for nothing but its result.
pub(crate) type Call<'a> = &'a mut dyn FnMut() -> i32;

impl Limited {
    /// Reserves, asks the driver, and keeps what it gave under a key, or undoes.
    #[inline(never)]
    pub(crate) fn take(&self, class: Class, place: Place, bytes: u64, ask: Ask<'_>) -> i32 {
        if !self.reserve_or_trim(place, bytes) {
            return OUT_OF_MEMORY;
        }
        let device = place.device();
        let (result, key, taken) = ask();
        if result != 0 {
            self.release(device, bytes);
            return result;
        }
        self.recount(device, bytes, taken);
        let owner = self.context();
        let row = Row { key, owner, bytes: taken, references: 1, device, class, mapped: 0 };
        // Without memory for the row it stays charged, which only this process has to bear.
        self.table.with(|table| table.insert(row));
        0
    }

    /// Asks the driver to give back what a key stands for.
    #[inline(never)]
    pub(crate) fn put_back(&self, class: Class, key: u64, ask: Call<'_>) -> i32 {
        // Before the driver is asked, because it may give the same address to another thread.
        let row = self.table.with(|table| table.remove(class, key));
        let result = ask();
        if let Some(row) = row {
            if result == 0 {
                self.release(row.device, row.bytes);
            } else {
                self.table.with(|table| table.insert(row));
            }
        }
        result
    }
}

/// Memory of the current device.
#[inline(never)]
pub(crate) fn allocate(bytes: u64, class: Class, ask: Ask<'_>) -> i32 {
    match mode() {
        Mode::Off => ask().0,
        Mode::Closed => OUT_OF_MEMORY,
        Mode::Limited(limited) => limited.take(class, limited.current(), bytes, ask),
    }
}

#[inline(never)]
pub(crate) fn free(class: Class, key: u64, ask: Call<'_>) -> i32 {
    match mode() {
        Mode::Limited(limited) => limited.put_back(class, key, ask),
        Mode::Off | Mode::Closed => ask(),
    }
}

/// Asks the driver to free memory at an address, whether linear or of a pool.
#[inline(never)]
pub(crate) fn free_address(address: u64, ask: Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return ask() };
    let row = limited.table.with(|table| {
        let linear = table.remove(Class::Linear, address);
        linear.or_else(|| table.remove(Class::PoolMemory, address))
    });
    let result = ask();
    match row {
        Some(row) if result != 0 => {
            limited.table.with(|table| table.insert(row));
        }
        Some(row) if row.class == Class::PoolMemory => limited.left_pool(row.owner),
        Some(row) => limited.release(row.device, row.bytes),
        None => {}
    }
    result
}

/// What the driver has written, or 0.
///
/// # Safety
/// Null or readable.
pub(crate) unsafe fn written<T: Copy + Into<u64>>(at: *const T) -> u64 {
    if at.is_null() {
        return 0;
    }
    // SAFETY: promised by the caller.
    unsafe { at.read_unaligned() }.into()
}

/// A row of a pitched allocation is at most this much longer than the requested width.
const PITCH: u64 = 512;

/// Changes an answer about a device's memory into one about the run's part of it.
fn narrow(place: Place, limited: &Limited, total: u64, free: u64) -> (u64, u64) {
    match place {
        Place::Device(device) => limited.view(device, total, free),
        Place::Free | Place::Driver => (total, free),
        Place::Refused => (0, 0),
    }
}

unsafe fn info<T: Copy + Into<u64> + TryFrom<u64>>(free: *mut T, total: *mut T) {
    let Mode::Limited(limited) = mode() else { return };
    let place = limited.current();
    // SAFETY: the driver has just written there.
    unsafe {
        let (narrow_total, narrow_free) = narrow(place, limited, written(total), written(free));
        if let (Ok(narrow_total), Ok(narrow_free)) =
            (narrow_total.try_into(), narrow_free.try_into())
        {
            total.write_unaligned(narrow_total);
            free.write_unaligned(narrow_free);
        }
    }
}

unsafe fn total<T: Copy + Into<u64> + TryFrom<u64>>(bytes: *mut T, device: i32) {
    let Mode::Limited(limited) = mode() else { return };
    // SAFETY: the driver has just written there.
    unsafe {
        let (narrowed, _) = narrow(limited.place(device), limited, written(bytes), u64::MAX);
        if let Ok(narrowed) = narrowed.try_into() {
            bytes.write_unaligned(narrowed);
        }
    }
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuMemAlloc(into: *mut u32, bytes: u32) |real| {
        let bytes64 = u64::from(bytes);
        // SAFETY: see above.
        allocate(bytes64, Class::Linear, &mut || unsafe {
            (real(into, bytes), written(into), bytes64)
        })
    }
    fn cuMemAlloc_v2(into: *mut u64, bytes: u64) |real| {
        // SAFETY: see above.
        allocate(bytes, Class::Linear, &mut || unsafe { (real(into, bytes), written(into), bytes) })
    }
    fn cuMemAllocManaged(into: *mut u64, bytes: u64, flags: u32) |real| {
        allocate(bytes, Class::Linear, &mut || {
            // SAFETY: see above.
            unsafe { (real(into, bytes, flags), written(into), bytes) }
        })
    }
    fn cuMemAllocPitch(
        into: *mut u32,
        pitch: *mut u32,
        width: u32,
        height: u32,
        element: u32,
    ) |real| {
        let rows = u64::from(height);
        let bytes = u64::from(width).next_multiple_of(PITCH).saturating_mul(rows);
        allocate(bytes, Class::Linear, &mut || {
            // SAFETY: see above.
            unsafe {
                let result = real(into, pitch, width, height, element);
                (result, written(into), written(pitch).saturating_mul(rows))
            }
        })
    }
    fn cuMemAllocPitch_v2(
        into: *mut u64,
        pitch: *mut u64,
        width: u64,
        height: u64,
        element: u32,
    ) |real| {
        let row = width.checked_next_multiple_of(PITCH).unwrap_or(u64::MAX);
        allocate(row.saturating_mul(height), Class::Linear, &mut || {
            // SAFETY: see above.
            unsafe {
                let result = real(into, pitch, width, height, element);
                (result, written(into), written(pitch).saturating_mul(height))
            }
        })
    }
    fn cuMemFree(address: u32) |real| {
        // SAFETY: see above.
        free_address(u64::from(address), &mut || unsafe { real(address) })
    }
    fn cuMemFree_v2(address: u64) |real| {
        // SAFETY: see above.
        free_address(address, &mut || unsafe { real(address) })
    }
    fn cuMemGetInfo(free: *mut u32, total: *mut u32) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(free, total);
            if result == 0 {
                info(free, total);
            }
            result
        }
    }
    fn cuMemGetInfo_v2(free: *mut u64, total: *mut u64) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(free, total);
            if result == 0 {
                info(free, total);
            }
            result
        }
    }
    fn cuDeviceTotalMem(bytes: *mut u32, device: i32) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(bytes, device);
            if result == 0 {
                total(bytes, device);
            }
            result
        }
    }
    fn cuDeviceTotalMem_v2(bytes: *mut u64, device: i32) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(bytes, device);
            if result == 0 {
                total(bytes, device);
            }
            result
        }
    }
}
