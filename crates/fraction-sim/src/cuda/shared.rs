//! Memory that others made, and handles that are held by something else than mappings. Owns: memory
//! of other processes and interfaces, which takes nothing and has no contents here, because nothing
//! is shared in fact; binding handles to sparse arrays and multicast objects, which holds their
//! memory until the end of the process. Does not know about: where bound memory can be read.

use fraction_abi::sys;

use super::memory::Source;
use super::{Answer, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, State, driver, give, with};

const MAGIC: u64 = u64::from_le_bytes(*b"elashare");

/// `CUipcMemHandle`, as this driver fills it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle {
    magic: u64,
    pid: u64,
    bytes: u64,
    rest: [u64; 5],
}

/// `CUDA_EXTERNAL_MEMORY_HANDLE_DESC` up to the size.
#[repr(C)]
pub struct External {
    kind: u32,
    handle: [u64; 2],
    bytes: u64,
}

/// `CUDA_EXTERNAL_MEMORY_BUFFER_DESC` up to the size.
#[repr(C)]
pub struct Buffer {
    offset: u64,
    bytes: u64,
}

/// `CUarrayMapInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Mapping {
    place: [u64; 7],
    operation: u32,
    kind: u32,
    handle: u64,
    rest: [u64; 3],
}

const _: () = assert!(size_of::<Mapping>() == 96);
const _: () = assert!(size_of::<Handle>() == 64);
const MAP: u32 = 1;

impl State {
    fn open_handle(&mut self, handle: Handle) -> Answer<u64> {
        if handle.magic != MAGIC || handle.bytes == 0 {
            return Err(INVALID_VALUE);
        }
        self.current_device()?;
        if handle.pid == u64::from(sys::process_id()) {
            return Err(INVALID_CONTEXT); // as the real one
        }
        self.map_range(handle.bytes, Source::Imported)
    }

    fn bind(&mut self, handle: u64) -> Answer<()> {
        self.handles.get_mut(&handle).ok_or(INVALID_HANDLE)?.held = true;
        Ok(())
    }

    fn bind_address(&mut self, address: u64) -> Answer<()> {
        self.bind(self.mapped_at(address).ok_or(INVALID_VALUE)?)
    }
}

unsafe fn map_array(list: *const Mapping, count: u32) -> i32 {
    with(|state| {
        if list.is_null() {
            return Err(INVALID_VALUE);
        }
        for at in 0..count {
            // SAFETY: the interface demands so many entries.
            let one = unsafe { list.wrapping_add(at as usize).read_unaligned() };
            if one.operation == MAP {
                state.bind(one.handle)?;
            }
        }
        Ok(())
    })
}

// SAFETY, for all blocks below: pointers are as the interface demands of the caller.
driver! {
    4010 fn cuIpcGetMemHandle(into: *mut Handle, address: u64) {
        with(|state| {
            let (_, bytes, of) = state.range(address).ok_or(INVALID_VALUE)?;
            if !matches!(of, Source::Device(..)) {
                return Err(INVALID_VALUE);
            }
            let pid = u64::from(sys::process_id());
            // SAFETY: see above.
            unsafe { give(into, Handle { magic: MAGIC, pid, bytes, rest: [0; 5] }) }
        })
    }
    4010 fn cuIpcOpenMemHandle(into: *mut u64, handle: Handle, _flags: u32) {
        // SAFETY: see above.
        with(|state| state.open_handle(handle).and_then(|at| unsafe { give(into, at) }))
    }
    11000 fn cuIpcOpenMemHandle_v2(into: *mut u64, handle: Handle, _flags: u32) {
        // SAFETY: see above.
        with(|state| state.open_handle(handle).and_then(|at| unsafe { give(into, at) }))
    }
    4010 fn cuIpcCloseMemHandle(address: u64) {
        with(|state| state.unmap_range(address, |of| of == Source::Imported).map(|_| ()))
    }
    10000 fn cuImportExternalMemory(into: *mut usize, what: *const External) {
        with(|state| {
            // SAFETY: see above.
            let bytes = unsafe { what.as_ref() }.ok_or(INVALID_VALUE)?.bytes;
            if bytes == 0 {
                return Err(INVALID_VALUE);
            }
            let id = state.id();
            state.external.insert(id, bytes);
            // SAFETY: see above.
            unsafe { give(into, id) }
        })
    }
    10000 fn cuExternalMemoryGetMappedBuffer(
        into: *mut u64,
        external: usize,
        which: *const Buffer,
    ) {
        with(|state| {
            let most = *state.external.get(&external).ok_or(INVALID_HANDLE)?;
            // SAFETY: see above.
            let Buffer { offset, bytes } = unsafe { which.as_ref() }.ok_or(INVALID_VALUE)?;
            let end = offset.checked_add(*bytes).filter(|end| *bytes > 0 && *end <= most);
            end.ok_or(INVALID_VALUE)?;
            let address = state.map_range(*bytes, Source::Imported)?;
            // SAFETY: see above.
            unsafe { give(into, address) }
        })
    }
    10000 fn cuDestroyExternalMemory(external: usize) {
        with(|state| state.external.remove(&external).map(|_| ()).ok_or(INVALID_HANDLE))
    }
    11010 fn cuMemMapArrayAsync(list: *const Mapping, count: u32, _stream: usize) {
        // SAFETY: see above.
        unsafe { map_array(list, count) }
    }
    11010 fn cuMemMapArrayAsync_ptsz(list: *const Mapping, count: u32, _stream: usize) {
        // SAFETY: see above.
        unsafe { map_array(list, count) }
    }
    12010 fn cuMulticastCreate(into: *mut u64, _properties: *const u8) {
        // SAFETY: see above.
        with(|state| unsafe { give(into, state.id() as u64) })
    }
    12010 fn cuMulticastBindMem(_m: u64, _at: u64, handle: u64, _o: u64, _bytes: u64, _f: u64) {
        with(|state| state.bind(handle))
    }
    12010 fn cuMulticastBindAddr(_m: u64, _at: u64, address: u64, _bytes: u64, _flags: u64) {
        with(|state| state.bind_address(address))
    }
    13010 fn cuMulticastBindMem_v2(
        _m: u64,
        _device: i32,
        _at: u64,
        handle: u64,
        _o: u64,
        _bytes: u64,
        _flags: u64,
    ) {
        with(|state| state.bind(handle))
    }
    13010 fn cuMulticastBindAddr_v2(
        _m: u64,
        _device: i32,
        _at: u64,
        address: u64,
        _bytes: u64,
        _flags: u64,
    ) {
        with(|state| state.bind_address(address))
    }
    13030 fn cuLogicalEndpointBindMem(
        _endpoint: u32,
        _device: i32,
        _at: u64,
        handle: u64,
        _o: u64,
        _bytes: u64,
        _flags: u64,
    ) {
        with(|state| state.bind(handle))
    }
    13030 fn cuLogicalEndpointBindAddr(
        _endpoint: u32,
        _device: i32,
        _at: u64,
        address: u64,
        _bytes: u64,
        _flags: u64,
    ) {
        with(|state| state.bind_address(address))
    }
}
