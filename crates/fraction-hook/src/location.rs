//! Where memory is requested. Owns: the structures that say so, and which device a location is of.
//! Does not know about: what is taken there.

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    kind: u32,
    id: i32,
}

impl Location {
    /// The device; none: the host, or no preferred place of managed memory.
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
