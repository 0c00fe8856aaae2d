//! Arrays of textures and surfaces. Owns: the size of an array, by its description: the driver
//! reports it only for arrays without memory yet. The agent finds the driver's additions for
//! alignment. Sparse arrays and arrays with deferred mapping take the memory that is mapped into
//! them. Does not know about: contents.

use crate::call::Call;
use crate::linear::{Size, allocate};
use crate::table::Class;

/// `CUDA_ARRAY_DESCRIPTOR`, with numbers of 4 bytes in its first form and of 8 since.
#[repr(C)]
struct Flat<N> {
    width: N,
    height: N,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`, likewise.
#[repr(C)]
struct Solid<N> {
    width: N,
    height: N,
    depth: N,
    format: u32,
    channels: u32,
    flags: u32,
}

const SPARSE_OR_DEFERRED: u32 = 0x40 | 0x80;
const LAYERED_OR_CUBEMAP: u32 = 0x01 | 0x04;

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

/// An array of two dimensions. In its first form the descriptor has numbers of 4 bytes.
pub(crate) fn create_flat<N: Copy + Into<u64>>(call: &Call<'_>) -> i32 {
    // SAFETY: as the program's own call of the driver.
    let descriptor = unsafe { call.at::<Flat<N>>(1) };
    create(
        call,
        descriptor.map_or(0, |d| bytes(d.width.into(), d.height.into(), 0, d.format, d.channels)),
    )
}

/// Creates an array of three dimensions with `levels` levels.
pub(crate) fn create_solid<N: Copy + Into<u64>>(call: &Call<'_>, levels: u32) -> i32 {
    // SAFETY: as the program's own call of the driver.
    let descriptor = unsafe { call.at::<Solid<N>>(1) };
    let measures = descriptor.filter(|d| d.flags & SPARSE_OR_DEFERRED == 0).map(|d| {
        let sizes = [d.width.into(), d.height.into(), d.depth.into()];
        sum_of_levels(sizes, d.format, d.channels, levels, d.flags & LAYERED_OR_CUBEMAP != 0)
    });
    create(call, measures.unwrap_or(0))
}

#[inline(never)]
fn sum_of_levels(
    [mut width, mut height, mut depth]: [u64; 3],
    format: u32,
    channels: u32,
    levels: u32,
    has_layers: bool,
) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..levels.clamp(1, 32) {
        sum = sum.saturating_add(bytes(width, height, depth, format, channels));
        width = (width / 2).max(1);
        height /= 2;
        // Each level has all layers and faces.
        depth >>= u32::from(!has_layers);
    }
    sum
}

fn create(call: &Call<'_>, bytes: u64) -> i32 {
    allocate(call, Class::Array, Size::Bytes(bytes))
}
