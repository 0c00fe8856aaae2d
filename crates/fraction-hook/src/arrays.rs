//! Arrays of textures and surfaces. Owns: how much an array takes, by its description: the driver
//! says so only of arrays that take nothing yet. What it adds for alignment the agent finds. Sparse
//! arrays and those with deferred mapping take what is mapped into them. Does not know about:
//! contents.

use crate::hooked::hooks;
use crate::linear::{allocate, free, written};
use crate::table::Class;

/// `CUDA_ARRAY_DESCRIPTOR`, with numbers of 4 bytes in its first form and of 8 since.
#[repr(C)]
pub struct Flat<N> {
    width: N,
    height: N,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`, likewise.
#[repr(C)]
pub struct Solid<N> {
    width: N,
    height: N,
    depth: N,
    format: u32,
    channels: u32,
    flags: u32,
}

const SPARSE_OR_DEFERRED: u32 = 0x40 | 0x80;

/// Bits of an element of a format; the larger ones of the compressed and planar formats are an
/// upper bound.
fn element_bits(format: u32) -> u64 {
    match format {
        0x01 | 0x08 => 8,
        0x02 | 0x09 | 0x10 => 16,
        _ => 32,
    }
}

fn bytes(width: u64, height: u64, depth: u64, format: u32, channels: u32) -> u64 {
    let elements = width.saturating_mul(height.max(1)).saturating_mul(depth.max(1));
    let bits = element_bits(format).saturating_mul(u64::from(channels));
    elements.saturating_mul(bits) / 8
}

unsafe fn flat<N: Copy + Into<u64>>(descriptor: *const Flat<N>) -> u64 {
    // SAFETY: null or whole, as the program's own call of the driver.
    let descriptor = unsafe { descriptor.as_ref() };
    descriptor.map_or(0, |d| bytes(d.width.into(), d.height.into(), 0, d.format, d.channels))
}

unsafe fn solid<N: Copy + Into<u64>>(descriptor: *const Solid<N>, levels: u32) -> u64 {
    // SAFETY: null or whole, as the program's own call of the driver.
    let Some(d) = (unsafe { descriptor.as_ref() }) else { return 0 };
    if d.flags & SPARSE_OR_DEFERRED != 0 {
        return 0;
    }
    let (mut width, mut height, mut depth) = (d.width.into(), d.height.into(), d.depth.into());
    let mut sum = 0_u64;
    for _ in 0..levels.clamp(1, 32) {
        sum = sum.saturating_add(bytes(width, height, depth, d.format, d.channels));
        width = (width / 2).max(1);
        height /= 2;
        depth /= 2;
    }
    sum
}

fn create(bytes: u64, ask: &mut dyn FnMut() -> (i32, u64)) -> i32 {
    allocate(bytes, Class::Array, &mut || {
        let (result, array) = ask();
        (result, array, bytes)
    })
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuArrayCreate(into: *mut u64, descriptor: *const Flat<u32>) |real| {
        // SAFETY: see above.
        let bytes = unsafe { flat(descriptor) };
        // SAFETY: see above.
        create(bytes, &mut || unsafe { (real(into, descriptor), written(into)) })
    }
    fn cuArrayCreate_v2(into: *mut u64, descriptor: *const Flat<u64>) |real| {
        // SAFETY: see above.
        let bytes = unsafe { flat(descriptor) };
        // SAFETY: see above.
        create(bytes, &mut || unsafe { (real(into, descriptor), written(into)) })
    }
    fn cuArray3DCreate(into: *mut u64, descriptor: *const Solid<u32>) |real| {
        // SAFETY: see above.
        let bytes = unsafe { solid(descriptor, 1) };
        // SAFETY: see above.
        create(bytes, &mut || unsafe { (real(into, descriptor), written(into)) })
    }
    fn cuArray3DCreate_v2(into: *mut u64, descriptor: *const Solid<u64>) |real| {
        // SAFETY: see above.
        let bytes = unsafe { solid(descriptor, 1) };
        // SAFETY: see above.
        create(bytes, &mut || unsafe { (real(into, descriptor), written(into)) })
    }
    fn cuMipmappedArrayCreate(
        into: *mut u64,
        descriptor: *const Solid<u64>,
        levels: u32,
    ) |real| {
        // SAFETY: see above.
        create(unsafe { solid(descriptor, levels) }, &mut || unsafe {
            (real(into, descriptor, levels), written(into))
        })
    }
    fn cuArrayDestroy(array: u64) |real| {
        // SAFETY: see above.
        free(Class::Array, array, &mut || unsafe { real(array) })
    }
    fn cuMipmappedArrayDestroy(array: u64) |real| {
        // SAFETY: see above.
        free(Class::Array, array, &mut || unsafe { real(array) })
    }
}
