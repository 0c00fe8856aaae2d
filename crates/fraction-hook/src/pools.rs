//! Stream-ordered memory. Owns: charging what each pool has reserved on its device, as the driver
//! says, not what was requested: a pool keeps memory after it was freed. Does not know about:
//! streams.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::hooked::{calls, hooks};
use crate::linear::{free, written};
use crate::process::{Limited, Mode, ORDINALS, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row, Table};

calls! {
    pool_attribute = cuMemPoolGetAttribute(pool: u64, attribute: i32, value: *mut u64);
    pool_of_device = cuDeviceGetMemPool(pool: *mut u64, device: i32);
    default_pool_of_device = cuDeviceGetDefaultMemPool(pool: *mut u64, device: i32);
    free_in_order = cuMemFreeAsync(address: u64, stream: usize);
    trim = cuMemPoolTrimTo(pool: u64, keep: u64);
    current_ordinal = cuCtxGetDevice(device: *mut i32);
}

const RESERVED: i32 = 5;
const IN_USE: i32 = 7;

fn attribute(pool: u64, attribute: i32) -> u64 {
    let mut value = 0;
    // SAFETY: room for a number.
    match unsafe { pool_attribute(pool, attribute, &raw mut value) } {
        Some(0) => value,
        _ => 0,
    }
}

impl Limited {
    /// Remembers where a pool's memory is.
    fn know(&self, pool: u64, place: Place) {
        let (class, device) = (Class::Pool, place.device());
        let owner = u64::from(matches!(place, Place::Refused));
        let row = Row { key: pool, owner, bytes: 0, references: 1, device, class, mapped: 0 };
        let is_new =
            self.table.with(|table| table.find(class, pool).is_none() && table.insert(row));
        if is_new {
            // Pools beyond these are counted only when they are used.
            self.pools.iter().any(|free| swap(free, 0, pool));
        }
    }

    /// Charges what a pool has reserved now, of which `extra` bytes are charged beside it.
    #[inline(never)]
    fn count_pool(&self, pool: u64, extra: u64) {
        let reserved = attribute(pool, RESERVED);
        let changed = self.table.with(|table: &mut Table| {
            let row = table.find(Class::Pool, pool)?;
            Some((row.device, core::mem::replace(&mut row.bytes, reserved)))
        });
        if let Some((device, before)) = changed {
            self.recount(device, before.saturating_add(extra), reserved);
        }
    }

    /// Has every pool give back what it keeps.
    pub(crate) fn trim_all(&self) {
        for pool in self.pools() {
            // SAFETY: a pool of this program; one that is gone is refused.
            let _trimmed = unsafe { trim(pool, 0) };
            self.count_pool(pool, 0);
        }
    }

    fn pools(&self) -> impl Iterator<Item = u64> {
        self.pools.iter().map(|pool| pool.load(Relaxed)).filter(|pool| *pool != 0)
    }

    /// What is known of a pool; one that the program did not create may be that of a device.
    fn pool(&self, pool: u64) -> Option<Row> {
        let known = |pool| self.table.with(|table| table.find(Class::Pool, pool).map(|row| *row));
        known(pool).or_else(|| {
            for ordinal in 0..i32::try_from(ORDINALS).unwrap_or(0) {
                let (mut default, mut present) = (0, 0);
                // SAFETY: room for two handles.
                let asked = unsafe {
                    pool_of_device(&raw mut present, ordinal);
                    default_pool_of_device(&raw mut default, ordinal)
                };
                if asked != Some(0) {
                    break;
                }
                if pool == default || pool == present {
                    self.know(pool, self.place(ordinal));
                }
            }
            known(pool)
        })
    }

    fn allocate_in(
        &self,
        pool: u64,
        bytes: u64,
        stream: usize,
        ask: &mut dyn FnMut() -> (i32, u64),
    ) -> i32 {
        // One that is imported takes the memory of who exported it.
        let Some(row) = self.pool(pool) else { return ask().0 };
        let place = place_of(row);
        // What the pool needs at least beyond what it has.
        let needed =
            attribute(pool, IN_USE).saturating_add(bytes).saturating_sub(attribute(pool, RESERVED));
        if !self.reserve_or_trim(place, needed) {
            return OUT_OF_MEMORY;
        }
        let (result, address) = ask();
        self.count_pool(pool, needed);
        if result == 0 && self.is_over(place) {
            // The pool took more than was needed. That may be in the rest that it can give back.
            self.trim_all();
            if self.is_over(place) {
                // SAFETY: an address that the driver has just given.
                let _freed = unsafe { free_in_order(address, stream) };
                self.trim_all();
                return OUT_OF_MEMORY;
            }
        }
        result
    }
}

#[inline(never)]
fn allocate(
    bytes: u64,
    stream: usize,
    pool: Option<u64>,
    ask: &mut dyn FnMut() -> (i32, u64),
) -> i32 {
    let limited = match mode() {
        Mode::Off => return ask().0,
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let Some(pool) = pool.or_else(|| pool_of_current(limited)) else { return ask().0 };
    limited.allocate_in(pool, bytes, stream, ask)
}

fn pool_of_current(limited: &Limited) -> Option<u64> {
    let (mut ordinal, mut pool) = (-1, 0);
    // SAFETY: room for a number and a handle.
    let found = unsafe {
        current_ordinal(&raw mut ordinal) == Some(0)
            && pool_of_device(&raw mut pool, ordinal) == Some(0)
    };
    if !found {
        return None;
    }
    limited.know(pool, limited.place(ordinal));
    Some(pool)
}

/// The begin of `CUmemPoolProps`.
#[repr(C)]
pub struct Properties {
    kind: u32,
    handles: u32,
    location_type: u32,
    location: i32,
}

/// After something that may have changed what pools keep.
fn recount_pool(pool: u64) {
    if let Mode::Limited(limited) = mode() {
        limited.count_pool(pool, 0);
    }
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuMemAllocAsync(into: *mut u64, bytes: u64, stream: usize) |real| {
        // SAFETY: see above.
        allocate(bytes, stream, None, &mut || unsafe { (real(into, bytes, stream), written(into)) })
    }
    fn cuMemAllocAsync_ptsz(into: *mut u64, bytes: u64, stream: usize) |real| {
        // SAFETY: see above.
        allocate(bytes, stream, None, &mut || unsafe { (real(into, bytes, stream), written(into)) })
    }
    fn cuMemAllocFromPoolAsync(into: *mut u64, bytes: u64, pool: u64, stream: usize) |real| {
        // SAFETY: see above.
        let mut ask = || unsafe { (real(into, bytes, pool, stream), written(into)) };
        allocate(bytes, stream, Some(pool), &mut ask)
    }
    fn cuMemAllocFromPoolAsync_ptsz(into: *mut u64, bytes: u64, pool: u64, stream: usize) |real| {
        // SAFETY: see above.
        let mut ask = || unsafe { (real(into, bytes, pool, stream), written(into)) };
        allocate(bytes, stream, Some(pool), &mut ask)
    }
    fn cuMemFreeAsync(address: u64, stream: usize) |real| {
        // Linear memory may be freed in order, too.
        // SAFETY: see above.
        free(Class::Linear, address, &mut || unsafe { real(address, stream) })
    }
    fn cuMemFreeAsync_ptsz(address: u64, stream: usize) |real| {
        // SAFETY: see above.
        free(Class::Linear, address, &mut || unsafe { real(address, stream) })
    }
    fn cuMemPoolCreate(into: *mut u64, properties: *const Properties) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, properties) };
        if let (0, Mode::Limited(limited)) = (result, mode())
            // SAFETY: see above; the driver has read it.
            && let Some(properties) = unsafe { properties.as_ref() }
            && properties.location_type == 1
        {
            // SAFETY: the driver has just written there.
            limited.know(unsafe { written(into) }, limited.place(properties.location));
        }
        result
    }
    fn cuMemPoolDestroy(pool: u64) |real| {
        if let Mode::Limited(limited) = mode() {
            limited.pools.iter().any(|known| swap(known, pool, 0));
        }
        // SAFETY: see above.
        free(Class::Pool, pool, &mut || unsafe { real(pool) })
    }
    fn cuMemPoolTrimTo(pool: u64, keep: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(pool, keep) };
        recount_pool(pool);
        result
    }
    fn cuMemPoolSetAttribute(pool: u64, attribute: i32, value: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(pool, attribute, value) };
        recount_pool(pool);
        result
    }
    fn cuStreamSynchronize(stream: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(stream) };
        recount_after_waiting();
        result
    }
    fn cuStreamSynchronize_ptsz(stream: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(stream) };
        recount_after_waiting();
        result
    }
    fn cuCtxSynchronize() |real| {
        // SAFETY: see above.
        let result = unsafe { real() };
        recount_after_waiting();
        result
    }
}

/// The row of a pool of a device that the run does not have says so in its owner.
fn place_of(pool: Row) -> Place {
    match pool.device {
        Some(device) => Place::Device(device),
        None if pool.owner != 0 => Place::Refused,
        None => Place::Free,
    }
}

/// Pools give back what they keep when the program waits.
fn recount_after_waiting() {
    let Mode::Limited(limited) = mode() else { return };
    for pool in limited.pools() {
        limited.count_pool(pool, 0);
    }
}

fn swap(word: &AtomicU64, from: u64, to: u64) -> bool {
    word.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
}
