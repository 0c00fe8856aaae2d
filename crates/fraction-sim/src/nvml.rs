//! `libnvidia-ml.so.1`. Owns: what tools read about the simulated devices: names, memory,
//! processes, and how busy they are. Each name says that it is simulated; what a simulated device
//! does not have (fans, temperatures) is not supported. Does not know about: CUDA.

use alloc::format;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char};

use fraction_abi::lock::Lock;
use fraction_abi::wire::Operation;

use crate::chosen::Chosen;
use crate::client::{Client, Device};
use crate::{put, put_text};

const UNINITIALIZED: i32 = 1;
const INVALID_ARGUMENT: i32 = 2;
const NOT_SUPPORTED: i32 = 3;
const NOT_FOUND: i32 = 6;
const INSUFFICIENT_SIZE: i32 = 7;
const DRIVER_NOT_LOADED: i32 = 9;
const GPU_IS_LOST: i32 = 15;
const VERSION_MISMATCH: i32 = 25;

const NAME: &str = "Elastane Simulated GPU";
const DRIVER_VERSION: &str = "580.65.06-simulated";

struct State {
    client: Client,
    devices: Vec<Device>,
    cuda_version: u32,
    driver_version: &'static str,
    /// No GPU answers.
    lost: bool,
    initialised: u32,
}

static STATE: Lock<Option<State>> = Lock::new(None);

type Answer<T> = Result<T, i32>;

fn with(work: impl FnOnce(&State) -> Answer<()>) -> i32 {
    STATE.with(|state| work(state.as_ref().ok_or(UNINITIALIZED)?)).err().unwrap_or(0)
}

/// Handles are numbers from 1.
fn with_device(handle: usize, work: impl FnOnce(&State, u64, &Device) -> Answer<()>) -> i32 {
    with(|state| {
        let index = handle.checked_sub(1).ok_or(INVALID_ARGUMENT)?;
        let device = state.devices.get(index).ok_or(INVALID_ARGUMENT)?;
        work(state, index as u64, device)
    })
}

unsafe fn give<T>(at: *mut T, value: T) -> Answer<()> {
    // SAFETY: promised by the caller.
    if unsafe { put(at, value) } { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

unsafe fn give_text(into: *mut u8, room: u32, text: &str) -> Answer<()> {
    if text.len() >= room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: promised by the caller.
    if unsafe { put_text(into, room as usize, text) } { Ok(()) } else { Err(INVALID_ARGUMENT) }
}
/// Total, free and used bytes.
fn memory(state: &State, index: u64, device: &Device) -> Answer<(u64, u64, u64)> {
    let [free, ..] = state.client.ask(Operation::State, index, 0).map_err(|_| UNINITIALIZED)?;
    Ok((device.bytes, free, device.bytes.saturating_sub(free)))
}

fn start() -> i32 {
    let start = |state: &mut Option<State>| -> Answer<()> {
        if let Some(state) = state {
            state.initialised += 1;
            return Ok(());
        }
        let chosen = Chosen::read().ok_or(INVALID_ARGUMENT)?;
        chosen.wait();
        let (client, devices, newest) = Client::connect().map_err(|_| DRIVER_NOT_LOADED)?;
        let cuda_version = chosen.version.map_or(newest, |version| version.cuda);
        let driver_version = chosen.version.map_or(DRIVER_VERSION, |version| version.driver);
        let lost = chosen.lost;
        *state =
            Some(State { client, devices, cuda_version, driver_version, lost, initialised: 1 });
        Ok(())
    };
    STATE.with(start).err().unwrap_or(0)
}

/// An entry in a list of processes.
trait ProcessEntry: Copy {
    fn new(pid: u32, bytes: u64) -> Self;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProcessV1 {
    pid: u32,
    bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProcessV2 {
    pid: u32,
    bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

impl ProcessEntry for ProcessV1 {
    fn new(pid: u32, bytes: u64) -> Self {
        Self { pid, bytes }
    }
}

impl ProcessEntry for ProcessV2 {
    fn new(pid: u32, bytes: u64) -> Self {
        Self { pid, bytes, gpu_instance: u32::MAX, compute_instance: u32::MAX }
    }
}

unsafe fn processes<T: ProcessEntry>(handle: usize, count: *mut u32, into: *mut T) -> i32 {
    with_device(handle, |state, index, _| {
        let holders = state.client.holders(index).map_err(|_| UNINITIALIZED)?;
        if count.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        let found = u32::try_from(holders.len()).unwrap_or(0);
        // SAFETY: not null; the interface demands that it can be read and written.
        let room = unsafe { count.read_unaligned() };
        // SAFETY: as above.
        unsafe { give(count, found) }?;
        if room < found {
            return Err(INSUFFICIENT_SIZE);
        }
        for (at, (pid, bytes)) in holders.into_iter().enumerate() {
            // SAFETY: the interface demands room for as many entries as the count said.
            unsafe { give(into.wrapping_add(at), T::new(pid, bytes)) }?;
        }
        Ok(())
    })
}

#[repr(C)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

#[repr(C)]
pub struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// The size of the structure, and its version.
const MEMORY_V2: u32 = 40 | 2 << 24;
const _: () = assert!(size_of::<MemoryV2>() == 40);

#[repr(C)]
pub struct PciInfo {
    legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    subsystem_id: u32,
    id: [u8; 32],
}

/// Defines functions of NVML.
macro_rules! nvml {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[cfg_attr(elastane_library, unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                // Keeps functions apart that do the same: their addresses tell them apart.
                core::hint::black_box(concat!(stringify!($name), "\0").as_ptr());
                $body
            }
        )*
    };
}

// SAFETY, for all blocks below: pointers are as the interface demands of the caller.
nvml! {
    fn nvmlInit() { start() }
    fn nvmlInit_v2() { start() }
    fn nvmlInitWithFlags(_flags: u32) { start() }
    fn nvmlShutdown() {
        let stop = |state: &mut Option<State>| {
            let left = state.as_mut().ok_or(UNINITIALIZED)?;
            left.initialised -= 1;
            if left.initialised == 0 {
                *state = None;
            }
            Ok(())
        };
        STATE.with(stop).err().unwrap_or(0)
    }
    fn nvmlSystemGetDriverVersion(into: *mut u8, room: u32) {
        // SAFETY: see above.
        with(|state| unsafe { give_text(into, room, state.driver_version) })
    }
    fn nvmlSystemGetNVMLVersion(into: *mut u8, room: u32) {
        // SAFETY: see above.
        with(|state| unsafe {
            let (major, driver) = (state.cuda_version / 1000, state.driver_version);
            give_text(into, room, &format!("{major}.{driver}"))
        })
    }
    fn nvmlSystemGetCudaDriverVersion(into: *mut i32) {
        // SAFETY: see above.
        with(|state| unsafe { give(into, i32::try_from(state.cuda_version).unwrap_or(0)) })
    }
    fn nvmlSystemGetCudaDriverVersion_v2(into: *mut i32) {
        // SAFETY: see above.
        with(|state| unsafe { give(into, i32::try_from(state.cuda_version).unwrap_or(0)) })
    }
    fn nvmlDeviceGetCount(into: *mut u32) {
        // SAFETY: see above.
        with(|state| unsafe { give(into, u32::try_from(state.devices.len()).unwrap_or(0)) })
    }
    fn nvmlDeviceGetCount_v2(into: *mut u32) {
        // SAFETY: see above.
        with(|state| unsafe { give(into, u32::try_from(state.devices.len()).unwrap_or(0)) })
    }
    fn nvmlDeviceGetHandleByIndex(index: u32, into: *mut usize) {
        // SAFETY: see above.
        with(|state| unsafe { give_handle(state, index, into) })
    }
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, into: *mut usize) {
        // SAFETY: see above.
        with(|state| unsafe { give_handle(state, index, into) })
    }
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, into: *mut usize) {
        with(|state| {
            if uuid.is_null() {
                return Err(INVALID_ARGUMENT);
            }
            // SAFETY: see above.
            let wanted = unsafe { CStr::from_ptr(uuid) }.to_bytes();
            let is = |device: &Device| device.uuid_text().as_bytes() == wanted;
            let index = state.devices.iter().position(is).ok_or(NOT_FOUND)?;
            // SAFETY: see above.
            unsafe { give_handle(state, u32::try_from(index).unwrap_or(u32::MAX), into) }
        })
    }
    fn nvmlDeviceGetIndex(handle: usize, into: *mut u32) {
        // SAFETY: see above.
        with_device(handle, |_, index, _| unsafe { give(into, u32::try_from(index).unwrap_or(0)) })
    }
    fn nvmlDeviceGetName(handle: usize, into: *mut u8, room: u32) {
        // SAFETY: see above.
        with_device(handle, |_, _, _| unsafe { give_text(into, room, NAME) })
    }
    fn nvmlDeviceGetUUID(handle: usize, into: *mut u8, room: u32) {
        // SAFETY: see above.
        with_device(handle, |_, _, device| unsafe {
            give_text(into, room, &device.uuid_text())
        })
    }
    fn nvmlDeviceGetPciInfo_v3(handle: usize, into: *mut PciInfo) {
        with_device(handle, |_, index, _| {
            let bus = u32::try_from(index).unwrap_or(0) + 1;
            let mut info = PciInfo {
                legacy: [0; 16],
                domain: 0,
                bus,
                device: 0,
                device_id: 0,
                subsystem_id: 0,
                id: [0; 32],
            };
            let place = format!("{bus:02X}:00.0");
            let (short, long) = (format!("0000:{place}"), format!("00000000:{place}"));
            for (to, from) in info.legacy.iter_mut().zip(short.bytes()) { *to = from; }
            for (to, from) in info.id.iter_mut().zip(long.bytes()) { *to = from; }
            // SAFETY: see above.
            unsafe { give(into, info) }
        })
    }
    fn nvmlDeviceGetMemoryInfo(handle: usize, into: *mut Memory) {
        with_device(handle, |state, index, device| {
            let (total, free, used) = memory(state, index, device)?;
            // SAFETY: see above.
            unsafe { give(into, Memory { total, free, used }) }
        })
    }
    fn nvmlDeviceGetMemoryInfo_v2(handle: usize, into: *mut MemoryV2) {
        with_device(handle, |state, index, device| {
            // SAFETY: see above; the caller writes the version.
            let version = unsafe { into.as_ref() }.ok_or(INVALID_ARGUMENT)?.version;
            if version != MEMORY_V2 {
                return Err(VERSION_MISMATCH);
            }
            let (total, free, used) = memory(state, index, device)?;
            // SAFETY: see above.
            unsafe { give(into, MemoryV2 { version, total, reserved: 0, free, used }) }
        })
    }
    fn nvmlDeviceGetComputeRunningProcesses(h: usize, count: *mut u32, into: *mut ProcessV1) {
        // SAFETY: see above.
        unsafe { processes(h, count, into) }
    }
    fn nvmlDeviceGetComputeRunningProcesses_v2(h: usize, count: *mut u32, into: *mut ProcessV2) {
        // SAFETY: see above.
        unsafe { processes(h, count, into) }
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(h: usize, count: *mut u32, into: *mut ProcessV2) {
        // SAFETY: see above.
        unsafe { processes(h, count, into) }
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(h: usize, count: *mut u32, _into: *mut ProcessV2) {
        // SAFETY: see above.
        with_device(h, |_, _, _| unsafe { give(count, 0) })
    }
    fn nvmlDeviceGetUtilizationRates(handle: usize, into: *mut [u32; 2]) {
        with_device(handle, |state, index, device| {
            let asked = state.client.ask(Operation::State, index, 0);
            let [_, busy, ..] = asked.map_err(|_| UNINITIALIZED)?;
            let (_, _, used) = memory(state, index, device)?;
            let memory = (used.saturating_mul(100)).checked_div(device.bytes).unwrap_or(0);
            let narrow = |value: u64| u32::try_from(value.min(100)).unwrap_or(0);
            // SAFETY: see above.
            unsafe { give(into, [narrow(busy), narrow(memory)]) }
        })
    }
    fn nvmlDeviceGetComputeMode(handle: usize, into: *mut u32) {
        // SAFETY: see above.
        with_device(handle, |_, _, _| unsafe { give(into, 0) })
    }
    fn nvmlDeviceGetTemperature(_handle: usize, _sensor: u32, _into: *mut u32) { NOT_SUPPORTED }
    fn nvmlDeviceGetPowerUsage(_handle: usize, _into: *mut u32) { NOT_SUPPORTED }
    fn nvmlDeviceGetEnforcedPowerLimit(_handle: usize, _into: *mut u32) { NOT_SUPPORTED }
    fn nvmlDeviceGetFanSpeed(_handle: usize, _into: *mut u32) { NOT_SUPPORTED }
    fn nvmlDeviceGetPerformanceState(_handle: usize, _into: *mut u32) { NOT_SUPPORTED }
}

unsafe fn give_handle(state: &State, index: u32, into: *mut usize) -> Answer<()> {
    let index = index as usize;
    state.devices.get(index).ok_or(INVALID_ARGUMENT)?;
    if state.lost {
        return Err(GPU_IS_LOST);
    }
    // SAFETY: promised by the caller.
    unsafe { give(into, index + 1) }
}

/// The text of an error of NVML.
#[cfg_attr(elastane_library, unsafe(no_mangle))]
pub unsafe extern "C" fn nvmlErrorString(error: i32) -> *const c_char {
    let text = match error {
        0 => c"Success",
        UNINITIALIZED => c"Uninitialized",
        INVALID_ARGUMENT => c"Invalid Argument",
        GPU_IS_LOST => c"GPU is lost",
        NOT_SUPPORTED => c"Not Supported",
        NOT_FOUND => c"Not Found",
        INSUFFICIENT_SIZE => c"Insufficient Size",
        DRIVER_NOT_LOADED => c"Driver Not Loaded (the broker of the simulated driver is not there)",
        VERSION_MISMATCH => c"API call with mismatched version of structure",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}
