//! Virtual memory management. Owns: handles of physical memory, which stay charged until nothing
//! refers to them and they are mapped nowhere. The device is that of the request, never that of the
//! current context; memory of the host costs nothing. Imported memory is the exporter's, so
//! exported memory stays charged until its process ends; so does memory that was bound to a sparse
//! array, a multicast object or a logical endpoint, which hold it in ways that are not followed.
//! Does not know about: address ranges, which take no memory.

use crate::call::Call;
use crate::linear::Size;
use crate::location::Properties;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, mode};
use crate::table::{Class, Row, Table};

impl Limited {
    /// Changes the counts of a handle, and removes it at the last of them.
    fn counted(&self, handle: u64, change: impl FnOnce(&mut Row)) -> Option<Row> {
        self.table.with(|table: &mut Table| {
            let row = table.find(Class::Handle, handle)?;
            change(row);
            let ended = row.references == 0 && row.mapped == 0;
            if ended { table.remove(Class::Handle, handle) } else { None }
        })
    }

    /// Changes the counts of a handle, and releases its memory at the last of them.
    fn count(&self, handle: u64, change: fn(&mut Row)) {
        if let Some(row) = self.counted(handle, change) {
            self.release(row.device, row.bytes);
        }
    }

    fn mapped(&self, mapping: Row) {
        self.count(mapping.owner, |row| row.mapped = row.mapped.saturating_add(1));
    }

    /// Counts a reference that this process cannot give back: others may hold the memory.
    fn keep(&self, handle: u64) {
        self.count(handle, |row| row.references = row.references.saturating_add(1));
    }

    /// Keeps the handle that is mapped at an address.
    fn keep_at(&self, address: u64) {
        let at = |row: &Row| {
            let within = address.checked_sub(row.key).is_some_and(|by| by < row.bytes);
            row.class == Class::Mapping && within
        };
        if let Some(row) = self.table.with(|table| table.any(at)) {
            self.keep(row.owner);
        }
    }

    /// Does something with each mapping of a range, which lie one behind the other.
    #[inline(never)]
    fn each_mapping(&self, call: &Call<'_>, work: fn(&Self, Row)) {
        let (begin, bytes) = (call.word(0), call.word(1));
        let mut at = begin;
        while at.wrapping_sub(begin) < bytes {
            let found = |table: &mut Table| table.find(Class::Mapping, at).copied();
            let Some(row) = self.table.with(found) else { break };
            work(self, row);
            at = at.saturating_add(row.bytes.max(1));
        }
    }

    /// Counts one mapping of a handle less. A handle that ends by that is kept under the address
    /// until the driver has answered.
    fn unmap(&self, mapping: Row) {
        let ended = self.counted(mapping.owner, |row| row.mapped = row.mapped.saturating_sub(1));
        if let Some(row) = ended {
            let Row { key, owner, .. } = mapping;
            let row = Row { key, owner, class: Class::Unmapping, ..row };
            self.table.with(|table| table.insert(row));
        }
    }

    /// The mapping is gone.
    fn unmapped(&self, mapping: Row) {
        let ended = self.table.with(|table| {
            table.remove(Class::Mapping, mapping.key);
            table.remove(Class::Unmapping, mapping.key)
        });
        if let Some(row) = ended {
            self.release(row.device, row.bytes);
        }
    }

    /// The mapping is still there: what would have ended has not.
    fn revive(&self, mapping: Row) {
        if let Some(row) = self.table.with(|table| table.remove(Class::Unmapping, mapping.key)) {
            self.know(Row { key: row.owner, owner: 0, class: Class::Handle, ..row });
        }
    }
}

/// `CUarrayMapInfo`.
#[repr(C)]
struct ArrayMapping {
    place: [u64; 7],
    operation: u32,
    kind: u32,
    handle: u64,
    rest: [u64; 3],
}

const _: () = assert!(size_of::<ArrayMapping>() == 96);
/// `CU_MEM_OPERATION_TYPE_MAP`.
const MAP: u32 = 1;

/// Takes physical memory.
pub(crate) fn create(call: &Call<'_>) -> i32 {
    // SAFETY: as the program's own call; null is the driver's to refuse.
    let properties = unsafe { call.at::<Properties>(2) };
    match (mode(), properties.and_then(|properties| properties.location.device())) {
        (Mode::Limited(limited), Some(device)) => {
            let size = Size::Bytes(call.word(1));
            limited.take(call, Class::Handle, limited.place(device), size)
        }
        (Mode::Closed, Some(_)) => OUT_OF_MEMORY,
        _ => call.ask(),
    }
}

/// Ends a reference to a handle.
pub(crate) fn release(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    let (handle, mut before) = (call.word(0), 0);
    // Before the driver is asked, because it may give the same handle to another thread.
    let ended = limited.counted(handle, |row| {
        before = row.references;
        row.references = before.saturating_sub(1);
    });
    let result = call.ask();
    match ended {
        Some(row) if result == 0 => limited.release(row.device, row.bytes),
        Some(row) => limited.know(Row { references: before, ..row }),
        None if result != 0 && before > 0 => limited.keep(handle),
        None => {}
    }
    result
}

/// Unmaps a range.
pub(crate) fn unmap(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    // Before the driver is asked, because it may give the same handles to another thread.
    limited.each_mapping(call, Limited::unmap);
    let result = call.ask();
    if result == 0 {
        limited.each_mapping(call, Limited::unmapped);
    } else {
        limited.each_mapping(call, Limited::revive);
        limited.each_mapping(call, Limited::mapped);
    }
    result
}

/// Change of the references to memory.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// One more reference to the handle that the driver has written.
    Retain,
    /// Other processes may hold the handle in this argument.
    Keep(usize),
    /// Other processes may hold the memory that is mapped at the address in this argument.
    KeepAt(usize),
    /// Entries of a list were mapped into sparse arrays.
    MapArrays,
    /// A handle was mapped at an address.
    Map,
}

/// Asks the driver, and counts the changes.
pub(crate) fn change(call: &Call<'_>, change: Change) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        limited.changed(call, change);
    }
    result
}

impl Limited {
    #[inline(never)]
    fn changed(&self, call: &Call<'_>, change: Change) {
        match change {
            Change::Retain => self.keep(call.written(0)),
            Change::Keep(at) => self.keep(call.word(at)),
            Change::KeepAt(at) => self.keep_at(call.word(at)),
            Change::MapArrays => {
                let list = call.pointer::<ArrayMapping>(0);
                for at in 0..call.half(1) {
                    // SAFETY: the list has this many entries, and the driver has read them.
                    let one = unsafe { list.wrapping_add(at as usize).read_unaligned() };
                    if one.operation == MAP {
                        self.keep(one.handle);
                    }
                }
            }
            Change::Map => {
                let row = Row {
                    key: call.word(0),
                    owner: call.word(3),
                    bytes: call.word(1),
                    references: 0,
                    device: None,
                    class: Class::Mapping,
                    mapped: 0,
                };
                if self.table.with(|table| table.insert(row)) {
                    self.mapped(row);
                }
            }
        }
    }
}
