//! Stream-ordered memory. Owns: charging what each pool has reserved on its device, as the driver
//! says, not what was requested: a pool keeps memory after it was freed. A pool that was destroyed
//! keeps what is still allocated in it, about which the driver says nothing more: it stays charged
//! until the last of it is freed. Does not know about: what is launched, and graphs, to which
//! memory belongs that is allocated while a stream is captured.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::gate;
use crate::hooked::{calls, hooks};
use crate::linear::{Call, free_address, written};
use crate::location::{Location, MANAGED, Properties};
use crate::process::{Limited, Mode, ORDINALS, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row, Table};

calls! {
    pool_attribute = cuMemPoolGetAttribute(pool: u64, attribute: i32, value: *mut u64);
    pool_of_device = cuDeviceGetMemPool(pool: *mut u64, device: i32);
    default_pool_of_device = cuDeviceGetDefaultMemPool(pool: *mut u64, device: i32);
    free_in_order = cuMemFreeAsync(address: u64, stream: usize);
    trim = cuMemPoolTrimTo(pool: u64, keep: u64);
    current_ordinal = cuCtxGetDevice(device: *mut i32);
    ordinal_of_stream = cuStreamGetDevice(stream: usize, device: *mut i32);
    context_of_stream = cuStreamGetCtx(stream: usize, context: *mut u64);
    push_context = cuCtxPushCurrent_v2(context: u64);
    pop_context = cuCtxPopCurrent_v2(context: *mut u64);
    captured_into = cuStreamGetCaptureInfo_v2(
        stream: usize,
        status: *mut u32,
        id: *mut u64,
        graph: *mut u64,
        dependencies: usize,
        count: usize,
    );
}

const RESERVED: i32 = 5;
const IN_USE: i32 = 7;

fn attribute(pool: u64, attribute: i32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: room for a number.
    (unsafe { pool_attribute(pool, attribute, &raw mut value) } == Some(0)).then_some(value)
}

/// The device of the context that is current.
fn ordinal_of_context() -> Option<i32> {
    let mut ordinal = -1;
    // SAFETY: room for a number.
    (unsafe { current_ordinal(&raw mut ordinal) } == Some(0)).then_some(ordinal)
}

/// The device of a stream, whatever context is current. The streams 0 to 2 are those of the
/// current context.
fn ordinal_of(limited: &Limited, stream: usize) -> Option<i32> {
    let (mut ordinal, mut context, mut ignored) = (-1, 0, 0);
    if stream <= 2 {
        return ordinal_of_context();
    }
    // SAFETY, for the calls below: room for a number.
    if unsafe { ordinal_of_stream(stream, &raw mut ordinal) } == Some(0) {
        return Some(ordinal);
    }
    // SAFETY: see above.
    let known = unsafe { context_of_stream(stream, &raw mut context) } == Some(0);
    if !known || context == limited.context() {
        return ordinal_of_context();
    }
    // SAFETY: a context that the driver has just named; taken off again below.
    if unsafe { push_context(context) } != Some(0) {
        return None;
    }
    let ordinal = ordinal_of_context();
    // SAFETY: see above.
    unsafe { pop_context(&raw mut ignored) };
    ordinal
}

/// The graph that a stream is captured into.
fn graph_of(limited: &Limited, stream: usize) -> Option<u64> {
    const ACTIVE: u32 = 1;
    let (mut status, mut id, mut graph) = (0, 0, 0);
    if !limited.turns.captures() {
        return None;
    }
    // SAFETY: room for what is asked for; null for what is not.
    let asked =
        unsafe { captured_into(stream, &raw mut status, &raw mut id, &raw mut graph, 0, 0) };
    (asked == Some(0) && status == ACTIVE).then_some(graph)
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

    /// Where memory counts that may get to any device.
    fn nearest(&self) -> Place {
        match self.current() {
            Place::Driver => self.place(0),
            place => place,
        }
    }

    /// Charges what a pool has reserved now, of which `extra` bytes are charged beside it.
    #[inline(never)]
    fn count_pool(&self, pool: u64, extra: u64) {
        // Managed memory may be in use before any is reserved for it.
        let reserved = attribute(pool, RESERVED).max(attribute(pool, IN_USE));
        let known = self.table.with(|table: &mut Table| {
            let row = table.find(Class::Pool, pool)?;
            // The driver knows nothing of one that was destroyed.
            let now = reserved.filter(|_| row.references > 0).unwrap_or(row.bytes);
            Some((row.device, core::mem::replace(&mut row.bytes, now), now))
        });
        if let Some((device, before, now)) = known {
            self.recount(device, before.saturating_add(extra), now);
        }
    }

    /// Changes what is known of a pool. With the last allocation of one that was destroyed its
    /// memory is given back.
    fn change_pool(&self, pool: u64, change: impl Fn(&mut Row)) {
        let ended = self.table.with(|table: &mut Table| {
            let row = table.find(Class::Pool, pool)?;
            change(row);
            let ended = row.references == 0 && row.mapped == 0;
            if ended { table.remove(Class::Pool, pool) } else { None }
        });
        if let Some(row) = ended {
            self.release(row.device, row.bytes);
        }
    }

    /// After something in a pool was freed.
    pub(crate) fn left_pool(&self, pool: u64) {
        self.change_pool(pool, |row| row.mapped = row.mapped.saturating_sub(1));
    }

    fn destroy_pool(&self, pool: u64, ask: Call<'_>) -> i32 {
        let listed = self.pools.iter().any(|known| swap(known, pool, 0));
        // Before the driver is asked, because it may give the same handle to another thread.
        let set = |references: u32| {
            move |table: &mut Table| {
                table.find(Class::Pool, pool).map(|row| row.references = references)
            }
        };
        self.table.with(set(0));
        let result = ask();
        if result == 0 {
            self.change_pool(pool, |_| {});
        } else {
            self.table.with(set(1));
            if listed {
                self.pools.iter().any(|free| swap(free, 0, pool));
            }
        }
        result
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
        let has = |what| attribute(pool, what).unwrap_or(0);
        let needed = has(IN_USE).saturating_add(bytes).saturating_sub(has(RESERVED));
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
        if result == 0 {
            self.count_address(pool, address, bytes);
        }
        result
    }

    fn count_address(&self, pool: u64, address: u64, bytes: u64) {
        let (device, class) = (None, Class::PoolMemory);
        let row = Row { key: address, owner: pool, bytes, references: 1, device, class, mapped: 0 };
        if self.table.with(|table| table.insert(row)) {
            self.change_pool(pool, |row| row.mapped = row.mapped.saturating_add(1));
        }
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
    if let Some(graph) = graph_of(limited, stream) {
        let row = pool.and_then(|pool| limited.pool(pool));
        let ordinal = match row {
            Some(row) => limited.ordinal(row.device),
            None => ordinal_of(limited, stream),
        };
        let refused = row.is_some_and(|row| matches!(place_of(row), Place::Refused));
        let fits = || ordinal.is_none_or(|ordinal| limited.add_to_graph(graph, ordinal, bytes));
        return if !refused && fits() { ask().0 } else { OUT_OF_MEMORY };
    }
    let Some(pool) = pool.or_else(|| pool_of_stream(limited, stream)) else { return ask().0 };
    limited.allocate_in(pool, bytes, stream, ask)
}

fn pool_of_stream(limited: &Limited, stream: usize) -> Option<u64> {
    let (ordinal, mut pool) = (ordinal_of(limited, stream)?, 0);
    // SAFETY: room for a handle.
    if unsafe { pool_of_device(&raw mut pool, ordinal) } != Some(0) {
        return None;
    }
    limited.know(pool, limited.place(ordinal));
    Some(pool)
}

/// After the driver has given a pool of some kind of memory at a location.
#[inline(never)]
fn given(result: i32, pool: u64, kind: u32, location: Option<&Location>) -> i32 {
    if let (0, Mode::Limited(limited), Some(location)) = (result, mode(), location) {
        match (location.device(), kind) {
            (Some(device), _) => limited.know(pool, limited.place(device)),
            (None, MANAGED) => limited.know(pool, limited.nearest()),
            (None, _) => {}
        }
    }
    result
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
        free_address(address, &mut || unsafe { real(address, stream) })
    }
    fn cuMemFreeAsync_ptsz(address: u64, stream: usize) |real| {
        // SAFETY: see above.
        free_address(address, &mut || unsafe { real(address, stream) })
    }
    fn cuMemPoolCreate(into: *mut u64, properties: *const Properties) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(into, properties);
            let (kind, location) = match properties.as_ref() {
                Some(properties) => (properties.kind, Some(&properties.location)),
                None => (0, None),
            };
            given(result, written(into), kind, location)
        }
    }
    fn cuMemGetDefaultMemPool(into: *mut u64, location: *const Location, kind: u32) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(into, location, kind);
            given(result, written(into), kind, location.as_ref())
        }
    }
    fn cuMemGetMemPool(into: *mut u64, location: *const Location, kind: u32) |real| {
        // SAFETY: see above.
        unsafe {
            let result = real(into, location, kind);
            given(result, written(into), kind, location.as_ref())
        }
    }
    fn cuMemPoolDestroy(pool: u64) |real| {
        // SAFETY: see above.
        let mut ask = || unsafe { real(pool) };
        match mode() {
            Mode::Limited(limited) => limited.destroy_pool(pool, &mut ask),
            Mode::Off | Mode::Closed => ask(),
        }
    }
    fn cuMemPoolExportToShareableHandle(into: usize, pool: u64, kind: u32, flags: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, pool, kind, flags) };
        if let (0, Mode::Limited(limited)) = (result, mode()) {
            // An allocation that this process cannot free: others may use what is in the pool.
            limited.change_pool(pool, |row| row.mapped = row.mapped.saturating_add(1));
        }
        result
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
        let result = gate::wait_for(false, &mut || unsafe { real(stream) });
        recount_after_waiting();
        result
    }
    fn cuStreamSynchronize_ptsz(stream: usize) |real| {
        // SAFETY: see above.
        let result = gate::wait_for(false, &mut || unsafe { real(stream) });
        recount_after_waiting();
        result
    }
    fn cuCtxSynchronize_v2(context: u64) |real| {
        // SAFETY: see above.
        let result = gate::wait_for(false, &mut || unsafe { real(context) });
        recount_after_waiting();
        result
    }
    fn cuCtxSynchronize() |real| {
        // SAFETY: see above.
        let result = gate::wait_for(true, &mut || unsafe { real() });
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
