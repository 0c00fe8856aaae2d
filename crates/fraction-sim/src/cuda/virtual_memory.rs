//! Virtual memory management. Owns: reserved address ranges, handles of physical memory, and what
//! is mapped where. A handle's memory is given back when nothing refers to it and it is mapped
//! nowhere; once exported or bound, with the end of the process, because nothing can be imported
//! here. Does not know about: access rights, which are accepted as they are.

use super::memory::{Location, Source};
use super::{Answer, INVALID_HANDLE, INVALID_VALUE, OUT_OF_MEMORY, State, driver, give, with};
use fraction_abi::sys::{self, Access};

const GRANULARITY: u64 = 2 << 20;

pub(crate) struct Handle {
    /// Device of the memory; `None` for memory of the host.
    device: Option<usize>,
    bytes: u64,
    references: u32,
    /// True if it was exported or bound to another object.
    pub(super) held: bool,
    mapped: alloc::vec::Vec<u64>,
}

/// `CUmemAllocationProp` up to the location.
#[repr(C)]
pub struct AllocationProperties {
    kind: u32,
    handles: u32,
    location: Location,
}

impl State {
    /// The handle that is mapped at an address.
    pub(super) fn mapped_at(&self, address: u64) -> Option<u64> {
        let has = |handle: &Handle| {
            let within = |at: &u64| address.checked_sub(*at).is_some_and(|by| by < handle.bytes);
            handle.mapped.iter().any(within)
        };
        self.handles.iter().find(|(_, handle)| has(handle)).map(|(id, _)| *id)
    }

    fn collect(&mut self, id: u64) -> Answer<()> {
        let handle = self.handles.get(&id).ok_or(INVALID_HANDLE)?;
        if handle.references > 0 || !handle.mapped.is_empty() || handle.held {
            return Ok(());
        }
        let (device, bytes) = (handle.device, handle.bytes);
        self.handles.remove(&id);
        device.map_or(Ok(()), |device| self.give_back(device, bytes))
    }
}

driver! {
    10020 fn cuMemGetAllocationGranularity(
        into: *mut u64,
        _properties: *const AllocationProperties,
        _option: i32,
    ) {
        // SAFETY: as the interface demands.
        with(|_| unsafe { give(into, GRANULARITY) })
    }
    10020 fn cuMemAddressReserve(into: *mut u64, bytes: u64, _align: u64, _at: u64, _flags: u64) {
        with(|state| {
            if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
                return Err(INVALID_VALUE);
            }
            let address = state.map_range(bytes, Source::Reserved)?;
            // SAFETY: as the interface demands.
            unsafe { give(into, address) }
        })
    }
    10020 fn cuMemAddressFree(address: u64, _bytes: u64) {
        with(|state| state.unmap_range(address, |of| of == Source::Reserved).map(|_| ()))
    }
    10020 fn cuMemCreate(
        into: *mut u64,
        bytes: u64,
        properties: *const AllocationProperties,
        _flags: u64,
    ) {
        with(|state| {
            // SAFETY: the interface demands null or the whole structure.
            let properties = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
            if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) || into.is_null() {
                return Err(INVALID_VALUE);
            }
            let device = match (properties.location.device(), properties.location.kind) {
                (Some(ordinal), _) => Some(state.device(ordinal)?.0),
                (None, 2..=4) => None,
                _ => return Err(INVALID_VALUE),
            };
            if let Some(device) = device {
                state.take(device, bytes)?;
            }
            // A handle that was released is given again.
            let mut id = 0x7100_0000;
            while state.handles.contains_key(&id) {
                id += 16;
            }
            let mapped = alloc::vec::Vec::new();
            let handle = Handle { device, bytes, references: 1, held: false, mapped };
            state.handles.insert(id, handle);
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    10020 fn cuMemRelease(handle: u64) {
        with(|state| {
            let known = state.handles.get_mut(&handle).ok_or(INVALID_HANDLE)?;
            known.references = known.references.checked_sub(1).ok_or(INVALID_HANDLE)?;
            state.collect(handle)
        })
    }
    10020 fn cuMemExportToShareableHandle(into: *mut i32, handle: u64, kind: u32, _flags: u64) {
        with(|state| {
            const DESCRIPTOR: u32 = 1;
            let known = state.handles.get_mut(&handle).ok_or(INVALID_HANDLE)?;
            if kind != DESCRIPTOR || into.is_null() {
                return Err(INVALID_VALUE);
            }
            // The program owns and closes the file, which cannot be imported.
            let file = sys::open(c"/dev/null", Access::Read).map_err(|_| OUT_OF_MEMORY)?;
            known.held = true;
            // SAFETY: as the interface demands.
            unsafe { give(into, file.into_number()) }
        })
    }
    11000 fn cuMemRetainAllocationHandle(into: *mut u64, address: u64) {
        with(|state| {
            let mapped = |handle: &Handle| handle.mapped.contains(&address);
            let mut handles = state.handles.iter_mut();
            let (id, handle) =
                handles.find(|(_, handle)| mapped(handle)).ok_or(INVALID_VALUE)?;
            handle.references += 1;
            // SAFETY: as the interface demands.
            unsafe { give(into, *id) }
        })
    }
    10020 fn cuMemMap(address: u64, bytes: u64, offset: u64, handle: u64, _flags: u64) {
        with(|state| {
            let reserved = state.range(address).filter(|(_, _, of)| *of == Source::Reserved);
            let (base, length, _) = reserved.ok_or(INVALID_VALUE)?;
            let known = state.handles.get_mut(&handle).ok_or(INVALID_HANDLE)?;
            if offset != 0 || bytes != known.bytes || address - base + bytes > length {
                return Err(INVALID_VALUE);
            }
            known.mapped.push(address);
            Ok(())
        })
    }
    10020 fn cuMemUnmap(address: u64, bytes: u64) {
        with(|state| {
            let within = |at: u64| at >= address && at - address < bytes;
            let touches = |handle: &Handle| handle.mapped.iter().any(|at| within(*at));
            let touched = state.handles.iter().filter(|(_, handle)| touches(handle));
            let touched: alloc::vec::Vec<u64> = touched.map(|(id, _)| *id).collect();
            let end = address.saturating_add(bytes);
            // A mapping is unmapped as a whole.
            let cut = |handle: &Handle| {
                handle.mapped.iter().any(|at| within(*at) && at.saturating_add(handle.bytes) > end)
            };
            if touched.is_empty() || state.handles.values().any(cut) {
                return Err(INVALID_VALUE);
            }
            for id in touched {
                if let Some(handle) = state.handles.get_mut(&id) {
                    handle.mapped.retain(|at| !within(*at));
                }
                state.collect(id)?;
            }
            Ok(())
        })
    }
    10020 fn cuMemSetAccess(address: u64, _bytes: u64, _access: *const u8, _count: u64) {
        with(|state| state.range(address).map(|_| ()).ok_or(INVALID_VALUE))
    }
}
