//! Location of requested memory. Owns: the structures for it, and the device of a location. Does
//! not know about: what is taken there.

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    kind: u32,
    id: i32,
}

impl Location {
    /// The device; `None` for the host, or without a preferred place of managed memory.
    pub(crate) fn device(self) -> Option<i32> {
        match self.kind {
            1 => Some(self.id),
            // A locality domain, whose device is in the first byte and whose number in the second.
            6 => Some(self.id & 0xff),
            _ => None,
        }
    }
}

/// The begin of `CUmemAllocationProp` and of `CUmemPoolProps`.
#[repr(C)]
pub(crate) struct Properties {
    pub(crate) kind: u32,
    handles: u32,
    pub(crate) location: Location,
}

/// The kind of memory that moves between the host and devices.
pub(crate) const MANAGED: u32 = 2;
