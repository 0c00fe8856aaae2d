//! What tools read through NVML. Owns: memory as the run sees it, and processes of the run alone; what
//! would show those of others in another form is not supported, and limits are not changed from inside.
//! Does not know about: temperatures, clocks and the like, which stay those of the GPU.

use crate::hooked::{calls, hooks};
use crate::process::{Limited, Mode, mode};

calls! {
    uuid_of = nvmlDeviceGetUUID(device: usize, into: *mut u8, room: u32);
}

const INVALID_ARGUMENT: i32 = 2;
const NOT_SUPPORTED: i32 = 3;
const NO_PERMISSION: i32 = 4;
const INSUFFICIENT_SIZE: i32 = 7;

/// The device of the pages; none: not listed, so there is nothing to narrow by.
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
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
pub struct ProcessV1 {
    pid: u32,
    bytes: u64,
}

/// `nvmlProcessInfo_t` since its second version.
#[repr(C)]
pub struct ProcessV2 {
    pid: u32,
    bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// Writes the processes of the run that hold memory of a device, by the ids that they have for each
/// other.
///
/// # Safety
/// As a call of NVML: room for as many entries as the count says.
unsafe fn processes<T>(
    handle: usize,
    count: *mut u32,
    into: *mut T,
    entry: fn(u32, u64) -> T,
) -> Option<i32> {
    let Mode::Limited(limited) = mode() else { return None };
    let device = device(limited, handle)?;
    let process = limited.process()?;
    if count.is_null() {
        return Some(INVALID_ARGUMENT);
    }
    process.reap();
    let holders = || process.ledger.holders(usize::from(device));
    // SAFETY: not null, and promised by the caller.
    let room = unsafe { count.read_unaligned() };
    let found = u32::try_from(holders().count()).unwrap_or(0);
    // SAFETY: as above.
    unsafe { count.write_unaligned(found) };
    if room < found {
        return Some(INSUFFICIENT_SIZE);
    }
    if !into.is_null() {
        for (at, (pid, bytes)) in holders().take(found as usize).enumerate() {
            // SAFETY: at most as many as there is room for.
            unsafe { into.wrapping_add(at).write_unaligned(entry(pid, bytes)) };
        }
    }
    Some(0)
}

/// Writes that a list has no process: those of the run are in the list of computing ones, and others are
/// not shown.
///
/// # Safety
/// As a call of NVML.
unsafe fn no_processes(handle: usize, count: *mut u32) -> Option<i32> {
    let answer = refused(handle, 0)?;
    if count.is_null() {
        return Some(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and promised by the caller.
    unsafe { count.write_unaligned(0) };
    Some(answer)
}

/// The answer for a device of the run; none: the driver's own.
#[inline(never)]
fn refused(handle: usize, answer: i32) -> Option<i32> {
    let Mode::Limited(limited) = mode() else { return None };
    device(limited, handle).map(|_| answer)
}

fn second_version(pid: u32, bytes: u64) -> ProcessV2 {
    ProcessV2 { pid, bytes, gpu_instance: u32::MAX, compute_instance: u32::MAX }
}

// SAFETY, for all blocks below: as the program's own call of NVML.
hooks! {
    missing 13 in "nvml";
    fn nvmlDeviceGetMemoryInfo(handle: usize, into: *mut Memory) |real| {
        // SAFETY: see above.
        let (result, memory) = unsafe { (real(handle, into), into.as_mut()) };
        if let (0, Mode::Limited(limited), Some(memory)) = (result, mode(), memory)
            && let Some(device) = device(limited, handle)
        {
            (memory.total, memory.free) = limited.view(device, memory.total, memory.free);
            memory.used = memory.total.saturating_sub(memory.free);
        }
        result
    }
    fn nvmlDeviceGetMemoryInfo_v2(handle: usize, into: *mut MemoryV2) |real| {
        // SAFETY: see above.
        let (result, memory) = unsafe { (real(handle, into), into.as_mut()) };
        if let (0, Mode::Limited(limited), Some(memory)) = (result, mode(), memory)
            && let Some(device) = device(limited, handle)
        {
            (memory.total, memory.free) = limited.view(device, memory.total, memory.free);
            memory.used = memory.total.saturating_sub(memory.free);
            memory.reserved = 0;
        }
        result
    }
    fn nvmlDeviceGetGraphicsRunningProcesses(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV1,
    ) |real| {
        // SAFETY: see above.
        unsafe { no_processes(handle, count).unwrap_or_else(|| real(handle, count, into)) }
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV2,
    ) |real| {
        // SAFETY: see above.
        unsafe { no_processes(handle, count).unwrap_or_else(|| real(handle, count, into)) }
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV2,
    ) |real| {
        // SAFETY: see above.
        unsafe { no_processes(handle, count).unwrap_or_else(|| real(handle, count, into)) }
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV1,
    ) |real| {
        // SAFETY: see above.
        unsafe { no_processes(handle, count).unwrap_or_else(|| real(handle, count, into)) }
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV2,
    ) |real| {
        // SAFETY: see above.
        unsafe { no_processes(handle, count).unwrap_or_else(|| real(handle, count, into)) }
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV2,
    ) |real| {
        // SAFETY: see above.
        unsafe { no_processes(handle, count).unwrap_or_else(|| real(handle, count, into)) }
    }
    fn nvmlDeviceGetRunningProcessDetailList(handle: usize, list: usize) |real| {
        // SAFETY: see above.
        refused(handle, NOT_SUPPORTED).unwrap_or_else(|| unsafe { real(handle, list) })
    }
    fn nvmlDeviceGetProcessUtilization(handle: usize, into: usize, count: usize, since: u64) |real| {
        // SAFETY: see above.
        refused(handle, NOT_SUPPORTED).unwrap_or_else(|| unsafe { real(handle, into, count, since) })
    }
    fn nvmlDeviceGetProcessesUtilizationInfo(handle: usize, into: usize) |real| {
        // SAFETY: see above.
        refused(handle, NOT_SUPPORTED).unwrap_or_else(|| unsafe { real(handle, into) })
    }
    fn nvmlDeviceGetAccountingPids(handle: usize, count: usize, into: usize) |real| {
        // SAFETY: see above.
        refused(handle, NOT_SUPPORTED).unwrap_or_else(|| unsafe { real(handle, count, into) })
    }
    fn nvmlDeviceGetAccountingStats(handle: usize, pid: u32, into: usize) |real| {
        // SAFETY: see above.
        refused(handle, NOT_SUPPORTED).unwrap_or_else(|| unsafe { real(handle, pid, into) })
    }
    fn nvmlDeviceGetAccountingStats_v2(handle: usize, into: usize) |real| {
        // SAFETY: see above.
        refused(handle, NOT_SUPPORTED).unwrap_or_else(|| unsafe { real(handle, into) })
    }
    fn nvmlDeviceSetMemoryLimits_v1(handle: usize, limits: usize) |real| {
        // SAFETY: see above.
        refused(handle, NO_PERMISSION).unwrap_or_else(|| unsafe { real(handle, limits) })
    }
    fn nvmlDeviceGetComputeRunningProcesses(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV1,
    ) |real| {
        let entry = |pid, bytes| ProcessV1 { pid, bytes };
        // SAFETY: see above.
        unsafe {
            processes(handle, count, into, entry).unwrap_or_else(|| real(handle, count, into))
        }
    }
    fn nvmlDeviceGetComputeRunningProcesses_v2(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV2,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            processes(handle, count, into, second_version)
                .unwrap_or_else(|| real(handle, count, into))
        }
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        handle: usize,
        count: *mut u32,
        into: *mut ProcessV2,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            processes(handle, count, into, second_version)
                .unwrap_or_else(|| real(handle, count, into))
        }
    }
}
