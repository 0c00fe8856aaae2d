//! Linear and managed memory, and the free memory. Owns: reserving before a request to the driver,
//! and releasing refused reservations. Does not know about: how much a run may have.

use crate::call::Call;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row};

/// Size of an allocation.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// Bytes.
    Bytes(u64),
    /// Maximum in bytes, and number of rows, whose size the driver writes.
    Rows(u64, u64),
}

impl Limited {
    /// Reserves, asks the driver, and keeps the memory under a key, or undoes the reservation.
    #[inline(never)]
    pub(crate) fn take(&self, call: &Call<'_>, class: Class, place: Place, size: Size) -> i32 {
        let (Size::Bytes(bytes) | Size::Rows(bytes, _)) = size;
        if !self.reserve_or_trim(place, bytes) {
            return OUT_OF_MEMORY;
        }
        let device = place.device();
        let result = call.ask();
        if result != 0 {
            self.release(device, bytes);
            return result;
        }
        let taken = match size {
            Size::Bytes(bytes) => bytes,
            Size::Rows(_, rows) => call.written(1).saturating_mul(rows),
        };
        self.recount(device, bytes, taken);
        let (key, owner) = (call.written(0), self.context());
        self.know(Row { key, owner, bytes: taken, references: 1, device, class, mapped: 0 });
        0
    }

    /// Keeps a row; an earlier row of the same key has ended. Without memory for the row it stays
    /// charged, which only this process has to bear.
    #[inline(never)]
    pub(crate) fn know(&self, mut row: Row) {
        let ended = self.table.with(|table| {
            // Memory of a green context is memory of the primary one.
            if table.find(Class::Context, row.owner).is_none() {
                row.owner = 0;
            }
            let ended = table.remove(row.class, row.key);
            table.insert(row);
            ended
        });
        if let Some(row) = ended {
            self.release(row.device, row.bytes);
        }
    }

    /// Asks the driver to free the memory of a key.
    #[inline(never)]
    pub(crate) fn put_back(&self, call: &Call<'_>, class: Class, key: u64) -> i32 {
        // Before the driver is asked, because it may give the same address to another thread.
        let mut row = self.table.with(|table| table.remove(class, key));
        if class == Class::Linear && row.is_none() {
            row = self.table.with(|table| table.remove(Class::PoolMemory, key));
        }
        let result = call.ask();
        match row {
            Some(row) if result != 0 => _ = self.table.with(|table| table.insert(row)),
            Some(row) if row.class == Class::PoolMemory => self.left_pool(row.owner),
            Some(row) => self.release(row.device, row.bytes),
            None => {}
        }
        result
    }
}

/// Memory of the current device.
#[inline(never)]
pub(crate) fn allocate(call: &Call<'_>, class: Class, size: Size) -> i32 {
    match mode() {
        Mode::Off => call.ask(),
        Mode::Closed => OUT_OF_MEMORY,
        Mode::Limited(limited) => limited.take(call, class, limited.current(), size),
    }
}

/// Linear memory.
pub(crate) fn allocate_linear(call: &Call<'_>) -> i32 {
    allocate(call, Class::Linear, Size::Bytes(call.size(1)))
}

/// A row of a pitched allocation is at most this much longer than the requested width.
const PITCH: u64 = 512;

/// Rows that begin at a multiple of something.
pub(crate) fn allocate_pitched(call: &Call<'_>) -> i32 {
    let (width, rows) = (call.size(2), call.size(3));
    let most = width.checked_next_multiple_of(PITCH).unwrap_or(u64::MAX).saturating_mul(rows);
    allocate(call, Class::Linear, Size::Rows(most, rows))
}

/// Asks the driver to free the memory that the first argument names; at an address, linear memory
/// and that of a pool.
#[inline(never)]
pub(crate) fn free(call: &Call<'_>, class: Class) -> i32 {
    match mode() {
        Mode::Limited(limited) => limited.put_back(call, class, call.size(0)),
        Mode::Off | Mode::Closed => call.ask(),
    }
}

/// Changes an answer about a device's memory into one about the run's part of it.
fn narrow(place: Place, limited: &Limited, total: u64, free: u64) -> (u64, u64) {
    match place {
        Place::Device(device) => limited.view(device, total, free),
        Place::Free | Place::Driver => (total, free),
        Place::Refused => (0, 0),
    }
}

/// Free and total memory of the current device.
pub(crate) fn info(call: &Call<'_>) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        // The program may want one of them only.
        let written = |at| if call.word(at) == 0 { u64::MAX } else { call.written(at) };
        let (total, free) = narrow(limited.current(), limited, written(1), written(0));
        call.write(1, total);
        call.write(0, free);
    }
    result
}

/// All there is on a device.
pub(crate) fn total(call: &Call<'_>) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        let place = limited.place(call.ordinal(1));
        call.write(0, narrow(place, limited, call.written(0), u64::MAX).0);
    }
    result
}
