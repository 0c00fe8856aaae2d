//! Arrays of textures and surfaces. Owns: their sizes. Sparse arrays and those with deferred
//! mapping take nothing until memory is mapped into them. Does not know about: their contents.

use super::{Answer, INVALID_HANDLE, INVALID_VALUE, State, driver, give, with};

pub(crate) struct Array {
    device: usize,
    bytes: u64,
    mipmapped: bool,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Descriptor {
    width: u64,
    height: u64,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Descriptor3D {
    width: u64,
    height: u64,
    depth: u64,
    format: u32,
    channels: u32,
    flags: u32,
}

const SPARSE_OR_DEFERRED: u32 = 0x40 | 0x80;
const LAYERED_OR_CUBEMAP: u32 = 0x01 | 0x04;

impl Descriptor3D {
    fn bytes(&self) -> Answer<u64> {
        let element = match self.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            0x03 | 0x0a | 0x20 => 4,
            _ => return Err(INVALID_VALUE),
        };
        if self.width == 0 || !matches!(self.channels, 1 | 2 | 4) {
            return Err(INVALID_VALUE);
        }
        if self.flags & SPARSE_OR_DEFERRED != 0 {
            return Ok(0);
        }
        [self.height.max(1), self.depth.max(1), element, u64::from(self.channels)]
            .into_iter()
            .try_fold(self.width, u64::checked_mul)
            .ok_or(INVALID_VALUE)
    }
}

impl State {
    fn create_array(&mut self, bytes: u64, mipmapped: bool) -> Answer<usize> {
        let device = self.current_device()?;
        self.take(device, bytes)?;
        let id = self.id();
        self.arrays.insert(id, Array { device, bytes, mipmapped });
        Ok(id)
    }

    fn destroy_array(&mut self, id: usize, mipmapped: bool) -> Answer<()> {
        self.arrays.get(&id).filter(|array| array.mipmapped == mipmapped).ok_or(INVALID_HANDLE)?;
        let array = self.arrays.remove(&id).ok_or(INVALID_HANDLE)?;
        self.give_back(array.device, array.bytes)
    }
}

driver! {
    3020 fn cuArrayCreate_v2(into: *mut usize, descriptor: *const Descriptor) {
        with(|state| {
            // SAFETY: the interface demands null or the whole structure.
            let flat = unsafe { descriptor.as_ref() }.ok_or(INVALID_VALUE)?;
            let Descriptor { width, height, format, channels } = *flat;
            let solid = Descriptor3D { width, height, depth: 0, format, channels, flags: 0 };
            let bytes = solid.bytes()?;
            let id = state.create_array(bytes, false)?;
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    3020 fn cuArray3DCreate_v2(into: *mut usize, descriptor: *const Descriptor3D) {
        with(|state| {
            // SAFETY: the interface demands null or the whole structure.
            let bytes = unsafe { descriptor.as_ref() }.ok_or(INVALID_VALUE)?.bytes()?;
            let id = state.create_array(bytes, false)?;
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    2000 fn cuArrayDestroy(array: usize) { with(|state| state.destroy_array(array, false)) }
    5000 fn cuMipmappedArrayCreate(
        into: *mut usize,
        descriptor: *const Descriptor3D,
        levels: u32,
    ) {
        with(|state| {
            // SAFETY: the interface demands null or the whole structure.
            let mut level = *unsafe { descriptor.as_ref() }.ok_or(INVALID_VALUE)?;
            let mut bytes = 0_u64;
            for _ in 0..levels.clamp(1, 32) {
                bytes = bytes.checked_add(level.bytes()?).ok_or(INVALID_VALUE)?;
                level.width = (level.width / 2).max(1);
                level.height /= 2;
                // The depth of these is how many layers or faces each level has.
                if level.flags & LAYERED_OR_CUBEMAP == 0 {
                    level.depth /= 2;
                }
            }
            let id = state.create_array(bytes, true)?;
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    5000 fn cuMipmappedArrayDestroy(array: usize) {
        with(|state| state.destroy_array(array, true))
    }
}
