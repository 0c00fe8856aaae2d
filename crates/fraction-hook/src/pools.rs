//! Stream-ordered memory. Owns: charging what each pool has reserved on its device, as the driver
//! says, not what was requested: a pool keeps memory after it was freed. A pool that was destroyed
//! keeps what is still allocated in it, about which the driver says nothing more: it stays charged
//! until the last of it is freed. Does not know about: what is launched, and graphs, to which
//! memory belongs that is allocated while a stream is captured.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::call::Call;
use crate::called::{default_pool_of_device, free_in_order, pool_attribute, pool_of_device, trim};
use crate::captures::graph_of;
use crate::gate;
use crate::location::{Location, MANAGED, Properties};
use crate::process::{Limited, Mode, ORDINALS, OUT_OF_MEMORY, Place, mode};
use crate::streams::ordinal_of;
use crate::table::{Class, Row, Table};

const RESERVED: i32 = 5;
const IN_USE: i32 = 7;

fn attribute(pool: u64, attribute: i32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: room for a number.
    (unsafe { pool_attribute(pool, attribute, &raw mut value) } == Some(0)).then_some(value)
}

impl Limited {
    /// Remembers where a pool's memory is.
    fn know_pool(&self, pool: u64, place: Place) {
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

    /// Charges the memory that a pool has reserved now, of which `extra` bytes are charged beside
    /// it.
    #[inline(never)]
    fn count_pool(&self, pool: u64, extra: u64) {
        // Managed memory may be in use before any is reserved for it.
        let kept = &|| attribute(pool, RESERVED).max(attribute(pool, IN_USE));
        self.count_kept(Class::Pool, pool, extra, kept);
    }

    /// Changes the row of a pool. With the last allocation of one that was destroyed its memory is
    /// given back.
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

    fn destroy_pool(&self, call: &Call<'_>) -> i32 {
        let pool = call.word(0);
        let listed = self.pools.iter().any(|known| swap(known, pool, 0));
        // Before the driver is asked, because it may give the same handle to another thread.
        let set = |references: u32| {
            move |table: &mut Table| {
                table.find(Class::Pool, pool).map(|row| row.references = references)
            }
        };
        self.table.with(set(0));
        let result = call.ask();
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

    /// Makes every pool release its unused memory.
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

    /// Row of a pool; a pool that the program did not create may be that of a device.
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
                    self.know_pool(pool, self.place(ordinal));
                }
            }
            known(pool)
        })
    }

    fn allocate_in(&self, call: &Call<'_>, pool: u64, stream: usize) -> i32 {
        let bytes = call.word(1);
        // One that is imported takes the memory of who exported it.
        let Some(row) = self.pool(pool) else { return call.ask() };
        let place = place_of(row);
        // Minimum of bytes that the pool needs beyond its reserve.
        let has = |what| attribute(pool, what).unwrap_or(0);
        let needed = has(IN_USE).saturating_add(bytes).saturating_sub(has(RESERVED));
        if !self.reserve_or_trim(place, needed) {
            return OUT_OF_MEMORY;
        }
        let (result, address) = (call.ask(), call.written(0));
        self.count_pool(pool, needed);
        if result == 0 && self.is_over(place) {
            // The pool took more than was needed. That may be in the rest that it can give back.
            self.trim_all();
            if self.is_over(place) {
                // SAFETY: an address that the driver has just given.
                let _freed = unsafe { free_in_order(address, stream) };
                call.write(0, 0);
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

/// Memory of a pool, or of that of the device of a stream.
pub(crate) fn allocate(call: &Call<'_>, pool: Option<u64>) -> i32 {
    let limited = match mode() {
        Mode::Off => return call.ask(),
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let (bytes, stream) = (call.word(1), call.stream(if pool.is_some() { 3 } else { 2 }));
    if let Some(graph) = graph_of(limited, stream) {
        let row = pool.and_then(|pool| limited.pool(pool));
        let ordinal = match row {
            Some(row) => limited.ordinal(row.device),
            None => ordinal_of(limited, stream),
        };
        let refused = row.is_some_and(|row| matches!(place_of(row), Place::Refused));
        let fits = || ordinal.is_none_or(|ordinal| limited.add_to_graph(graph, ordinal, bytes));
        return if !refused && fits() { call.ask() } else { OUT_OF_MEMORY };
    }
    match pool.or_else(|| pool_of_stream(limited, stream)) {
        Some(pool) => limited.allocate_in(call, pool, stream),
        None => call.ask(),
    }
}

fn pool_of_stream(limited: &Limited, stream: usize) -> Option<u64> {
    let (ordinal, mut pool) = (ordinal_of(limited, stream)?, 0);
    // SAFETY: room for a handle.
    if unsafe { pool_of_device(&raw mut pool, ordinal) } != Some(0) {
        return None;
    }
    limited.know_pool(pool, limited.place(ordinal));
    Some(pool)
}

/// A new pool.
pub(crate) fn create(call: &Call<'_>) -> i32 {
    // SAFETY: as the program's own call of the driver.
    match unsafe { call.at::<Properties>(1) } {
        Some(properties) => give(call, properties.kind, Some(properties.location)),
        None => give(call, 0, None),
    }
}

/// The pool of a location.
pub(crate) fn of_location(call: &Call<'_>) -> i32 {
    // SAFETY: as the program's own call of the driver.
    give(call, call.half(2), unsafe { call.at::<Location>(1) }.copied())
}

/// A pool of some kind of memory at a location.
#[inline(never)]
fn give(call: &Call<'_>, kind: u32, location: Option<Location>) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited), Some(location)) = (result, mode(), location) {
        let pool = call.written(0);
        match (location.device(), kind) {
            (Some(device), _) => limited.know_pool(pool, limited.place(device)),
            (None, MANAGED) => limited.know_pool(pool, limited.nearest()),
            (None, _) => {}
        }
    }
    result
}

/// Destroys a pool.
pub(crate) fn destroy(call: &Call<'_>) -> i32 {
    match mode() {
        Mode::Limited(limited) => limited.destroy_pool(call),
        Mode::Off | Mode::Closed => call.ask(),
    }
}

/// Lets other processes use the memory of a pool.
pub(crate) fn export(call: &Call<'_>) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        // An allocation that this process cannot free: other processes may use the memory of the
        // pool.
        limited.change_pool(call.word(1), |row| row.mapped = row.mapped.saturating_add(1));
    }
    result
}

/// A call that may change the memory of a pool.
pub(crate) fn change(call: &Call<'_>) -> i32 {
    let result = call.ask();
    if let Mode::Limited(limited) = mode() {
        limited.count_pool(call.word(0), 0);
    }
    result
}

/// A wait, after which pools may have released memory.
pub(crate) fn wait(call: &Call<'_>, all: bool) -> i32 {
    let result = gate::wait_for(all, call);
    if let Mode::Limited(limited) = mode() {
        for pool in limited.pools() {
            limited.count_pool(pool, 0);
        }
    }
    result
}

/// The row of a pool of a device that the run does not have says so in its owner.
fn place_of(pool: Row) -> Place {
    match pool.device {
        Some(device) => Place::Device(device),
        None if pool.owner != 0 => Place::Refused,
        None => Place::Free,
    }
}

fn swap(word: &AtomicU64, from: u64, to: u64) -> bool {
    word.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
}
