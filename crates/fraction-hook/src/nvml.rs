//! NVML functions that tools read. Owns: memory as the run sees it, and processes of the run alone.
//! Functions that would show other processes in another form are not supported, and limits cannot
//! be changed from inside. Does not know about: temperatures, clocks and the like, which stay those
//! of the GPU.

use crate::call::Call;
use crate::called::uuid_of;
use crate::process::{Limited, Mode, mode};

const INVALID_ARGUMENT: i32 = 2;
pub(crate) const NOT_SUPPORTED: i32 = 3;
const NO_PERMISSION: i32 = 4;
const INSUFFICIENT_SIZE: i32 = 7;
const VERSION_MISMATCH: i32 = 25;

/// Index of the device in the pages; `None` if it is not listed, so there is nothing to narrow by.
fn device(limited: &Limited, handle: usize) -> Option<u8> {
    let mut text = [0_u8; 96];
    // SAFETY: room for a UUID as text.
    if unsafe { uuid_of(handle, text.as_mut_ptr(), 96) } != Some(0) {
        return None;
    }
    let index = limited.process()?.control.find(parse(&text)?)?;
    u8::try_from(index).ok()
}

/// The UUID in `GPU-…` or `MIG-…`.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let mut digits = text.get(4..)?.iter().filter_map(|byte| char::from(*byte).to_digit(16));
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        let (high, low) = (digits.next()?, digits.next()?);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(uuid)
}

/// `nvmlMemory_t`.
#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// Value of `version`: the size of the structure and its number.
const MEMORY_V2: u32 = 40 | 2 << 24;
const _: () = assert!(size_of::<MemoryV2>() == 40);

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
struct ProcessV1 {
    pid: u32,
    bytes: u64,
}

/// `nvmlProcessInfo_t` since its second version.
#[repr(C)]
struct ProcessV2 {
    pid: u32,
    bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// Lists the processes of the run that hold memory of a device, by the ids that they have for each
/// other, in entries of the first or the second version.
pub(crate) fn list_processes(call: &Call<'_>, version: u32) -> i32 {
    list(call, version).unwrap_or_else(|| call.ask())
}

fn list(call: &Call<'_>, version: u32) -> Option<i32> {
    let Mode::Limited(limited) = mode() else { return None };
    let device = device(limited, call.stream(0))?;
    let process = limited.process()?;
    let count = call.pointer::<u32>(1);
    if count.is_null() {
        return Some(INVALID_ARGUMENT);
    }
    process.reap();
    let holders = || process.ledger.holders(usize::from(device));
    // SAFETY: not null, and the program's own call of NVML.
    let room = unsafe { count.read_unaligned() };
    let found = u32::try_from(holders().count()).unwrap_or(0);
    // SAFETY: as above.
    unsafe { count.write_unaligned(found) };
    if room < found {
        return Some(INSUFFICIENT_SIZE);
    }
    if call.word(2) == 0 && found > 0 {
        return Some(INVALID_ARGUMENT);
    }
    let mut listed = 0;
    for (at, (pid, bytes)) in holders().take(found as usize).enumerate() {
        // SAFETY: at most as many as there is room for.
        unsafe {
            if version == 1 {
                let into = call.pointer::<ProcessV1>(2).wrapping_add(at);
                into.write_unaligned(ProcessV1 { pid, bytes });
            } else {
                let none = u32::MAX;
                let into = call.pointer::<ProcessV2>(2).wrapping_add(at);
                let (gpu_instance, compute_instance) = (none, none);
                into.write_unaligned(ProcessV2 { pid, bytes, gpu_instance, compute_instance });
            }
        }
        listed += 1;
    }
    // SAFETY: as above. One may have ended since they were counted.
    unsafe { count.write_unaligned(listed) };
    Some(0)
}

/// Lists no process: those of the run are in the list of computing ones, and others are not shown.
pub(crate) fn list_none(call: &Call<'_>) -> i32 {
    if !is_of_run(call) {
        return call.ask();
    }
    // SAFETY: as the program's own call of NVML.
    match unsafe { call.pointer::<u32>(1).as_mut() } {
        Some(count) => {
            *count = 0;
            0
        }
        None => INVALID_ARGUMENT,
    }
}

/// True if the first argument is a device of the run.
#[inline(never)]
fn is_of_run(call: &Call<'_>) -> bool {
    let Mode::Limited(limited) = mode() else { return false };
    device(limited, call.stream(0)).is_some()
}

/// Answers so for a device of the run.
pub(crate) fn refuse(call: &Call<'_>, answer: i32) -> i32 {
    if is_of_run(call) { answer } else { call.ask() }
}

/// Changes a limit of any device, which nothing that has limits may.
pub(crate) fn set_limit(call: &Call<'_>) -> i32 {
    match mode() {
        Mode::Off => call.ask(),
        Mode::Closed | Mode::Limited(_) => NO_PERMISSION,
    }
}

/// The memory of a device in all, free and in use.
pub(crate) fn memory(call: &Call<'_>) -> i32 {
    let result = call.ask();
    // SAFETY: null, or the driver has just written there.
    if let (0, Some(memory)) = (result, unsafe { call.pointer::<Memory>(1).as_mut() }) {
        narrow(call, memory);
    }
    result
}

/// Memory of a device in the second version of the structure, without the driver's own reserve.
/// This driver does not support newer versions, whose layout is unknown.
pub(crate) fn memory_v2(call: &Call<'_>) -> i32 {
    // SAFETY: null or whole, as in the program's own call of NVML.
    let version = unsafe { call.at::<MemoryV2>(1) }.map(|memory| memory.version);
    if version.is_some_and(|version| version != MEMORY_V2) && is_of_run(call) {
        return VERSION_MISMATCH;
    }
    let result = call.ask();
    // SAFETY: null, or the driver has just written there.
    if let (0, Some(memory)) = (result, unsafe { call.pointer::<MemoryV2>(1).as_mut() }) {
        let mut narrowed = Memory { total: memory.total, free: memory.free, used: memory.used };
        if narrow(call, &mut narrowed) {
            memory.reserved = 0;
            (memory.total, memory.free, memory.used) =
                (narrowed.total, narrowed.free, narrowed.used);
        }
    }
    result
}

/// True if it is a device of the run, of which only the part of the run is left.
#[inline(never)]
fn narrow(call: &Call<'_>, memory: &mut Memory) -> bool {
    let Mode::Limited(limited) = mode() else { return false };
    let Some(device) = device(limited, call.stream(0)) else { return false };
    (memory.total, memory.free) = limited.view(device, memory.total, memory.free);
    memory.used = memory.total.saturating_sub(memory.free);
    true
}
