//! Charges of this process, by address or handle. Owns: an open table that grows. Does not know
//! about: locks, and the device of a charge.

use core::ptr::NonNull;

use fraction_abi::sys::{map_memory, unmap};

/// Kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// No row.
    Empty = 0,
    /// An address of linear or managed memory.
    Linear,
    /// A pool; its bytes are those it has reserved.
    Pool,
    /// An address in a pool; the owner is the pool.
    PoolMemory,
    /// A handle of physical memory.
    Handle,
    /// An address where a handle is mapped; the owner is the handle.
    Mapping,
    /// A handle that ends when the memory mapped at this address is unmapped; the owner is the
    /// handle.
    Unmapping,
    /// An array.
    Array,
    /// A stream at which as many captures began as it is referred to; the owner is its context.
    Capture,
    /// A context that the program created.
    Context,
    /// The primary context of a device; the key is the device.
    Primary,
    /// A green context; the owner is the device whose primary context it retains.
    Green,
    /// The memory that graphs keep on a device; the key is the device.
    Graphs,
    /// Memory that the nodes of a graph take on a device, charged when it is launched.
    GraphNodes,
    /// Memory that the nodes of an executable graph take on a device.
    Executable,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Row {
    pub(crate) key: u64,
    /// The context, with 0 for the primary one of the device, or the handle of a mapping.
    pub(crate) owner: u64,
    /// Bytes that are charged, or that a mapping covers.
    pub(crate) bytes: u64,
    /// References to a handle or a primary context; 0 for a pool that was destroyed.
    pub(crate) references: u32,
    /// Index of the device in the pages; `None` if nothing is charged.
    pub(crate) device: Option<u8>,
    pub(crate) class: Class,
    /// How often a handle is mapped, or addresses in a pool.
    pub(crate) mapped: u32,
}

/// Zeroed memory is an empty table.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Table {
    rows: *mut Row,
    /// A power of two, or 0.
    capacity: usize,
    count: usize,
}

// SAFETY: the rows belong to the table alone.
unsafe impl Send for Table {}

const FIRST_CAPACITY: usize = 1024;

impl Table {
    fn rows(&mut self) -> &mut [Row] {
        if self.rows.is_null() {
            return &mut [];
        }
        // SAFETY: mapped for `capacity` rows; zeroed rows are empty.
        unsafe { core::slice::from_raw_parts_mut(self.rows, self.capacity) }
    }

    fn home(&self, class: Class, key: u64) -> usize {
        let mixed = (key ^ class as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 20) as usize & self.capacity.wrapping_sub(1)
    }

    #[inline(never)]
    fn position(&mut self, class: Class, key: u64) -> Option<usize> {
        let (mut at, mask) = (self.home(class, key), self.capacity.wrapping_sub(1));
        let rows = self.rows();
        loop {
            let row = rows.get(at)?;
            if row.class == Class::Empty {
                return None;
            }
            if row.class == class && row.key == key {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// The row of a key.
    pub(crate) fn find(&mut self, class: Class, key: u64) -> Option<&mut Row> {
        let at = self.position(class, key)?;
        self.rows().get_mut(at)
    }

    /// Adds a row, in place of one with the same key. Returns `false` if there was no memory for
    /// it.
    #[inline(never)]
    pub(crate) fn insert(&mut self, row: Row) -> bool {
        if let Some(known) = self.find(row.class, row.key) {
            *known = row;
            return true;
        }
        if (self.count + 1) * 4 > self.capacity * 3 && !self.grow() {
            return false;
        }
        self.place(row);
        self.count += 1;
        true
    }

    fn place(&mut self, row: Row) {
        let (mut at, mask) = (self.home(row.class, row.key), self.capacity.wrapping_sub(1));
        while let Some(free) = self.rows().get_mut(at) {
            if free.class == Class::Empty {
                *free = row;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) -> bool {
        let capacity = (self.capacity * 2).max(FIRST_CAPACITY);
        let Ok(at) = map_memory(capacity * size_of::<Row>(), true) else { return false };
        let mut larger = Self { rows: at.as_ptr().cast(), capacity, count: self.count };
        for row in self.iter() {
            larger.place(row);
        }
        *self = larger;
        true
    }

    /// Removes the row of a key. Later rows move up, so that the table needs no marks.
    #[inline(never)]
    pub(crate) fn remove(&mut self, class: Class, key: u64) -> Option<Row> {
        let at = self.position(class, key)?;
        self.remove_at(at)
    }

    fn remove_at(&mut self, mut hole: usize) -> Option<Row> {
        let mask = self.capacity.wrapping_sub(1);
        let removed = *self.rows().get(hole)?;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let row = *self.rows().get(at)?;
            if row.class == Class::Empty {
                break;
            }
            let home = self.home(row.class, row.key);
            // True if its home is not after the hole, in the order of probing.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                *self.rows().get_mut(hole)? = row;
                hole = at;
            }
        }
        self.rows().get_mut(hole)?.class = Class::Empty;
        self.count = self.count.saturating_sub(1);
        Some(removed)
    }

    /// Takes out the rows that are so, into a table of their own. One for which that finds no
    /// memory stays.
    pub(crate) fn split(&mut self, is: impl Fn(&Row) -> bool) -> Self {
        let mut taken = Self { rows: core::ptr::null_mut(), capacity: 0, count: 0 };
        let mut at = 0;
        while let Some(row) = self.rows().get(at).copied() {
            if row.class != Class::Empty && is(&row) && taken.insert(row) {
                // Another may move up to here.
                self.remove_at(at);
            } else {
                at += 1;
            }
        }
        taken
    }

    /// All rows.
    pub(crate) fn iter(&mut self) -> impl Iterator<Item = Row> {
        self.rows().iter().filter(|row| row.class != Class::Empty).copied()
    }

    /// One row that is so.
    pub(crate) fn any(&mut self, is: impl Fn(&Row) -> bool) -> Option<Row> {
        self.iter().find(is)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(rows) = NonNull::new(self.rows) {
            // SAFETY: mapped as a whole by an earlier call, and no longer used.
            unsafe { unmap(rows.cast(), self.capacity * size_of::<Row>()) };
        }
    }
}
