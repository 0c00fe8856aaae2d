//! `libcuda.so.1`. Owns: what the functions of the driver share, and finding them by name, version
//! and kind of stream. Does not know about: what single functions do; they are below.

#[cfg(elastane_library)]
mod absent;
pub mod array;
pub mod context;
pub mod graph;
pub mod memory;
pub mod pool;
pub mod shared;
pub mod stream;
pub mod virtual_memory;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fraction_abi::lock::Lock;
use fraction_abi::sys;
use fraction_abi::wire::Operation;

use crate::chosen::Chosen;
use crate::client::{Client, Device};
use crate::put;

pub(super) const INVALID_VALUE: i32 = 1;
pub(super) const OUT_OF_MEMORY: i32 = 2;
pub(super) const NOT_INITIALIZED: i32 = 3;
pub(super) const NO_DEVICE: i32 = 100;
pub(super) const INVALID_DEVICE: i32 = 101;
pub(super) const INVALID_CONTEXT: i32 = 201;
pub(super) const NO_BINARY: i32 = 209;
pub(super) const ECC: i32 = 214;
pub(super) const INVALID_HANDLE: i32 = 400;
pub(super) const NOT_FOUND: i32 = 500;
pub(super) const NOT_READY: i32 = 600;
pub(super) const ILLEGAL_ADDRESS: i32 = 700;
pub(super) const LAUNCH_FAILED: i32 = 719;
pub(super) const NOT_SUPPORTED: i32 = 801;

/// A function of the driver.
pub(super) struct Entry {
    name: &'static CStr,
    /// The CUDA version that brought this form of it.
    version: u32,
    address: *const (),
}

// SAFETY: addresses of functions, which never change.
unsafe impl Sync for Entry {}

/// Defines functions of the driver, and the table by which they are found.
macro_rules! driver {
    ($($version:literal fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[cfg_attr(elastane_library, unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                // Keeps functions apart that do the same: their addresses tell them apart.
                core::hint::black_box(concat!(stringify!($name), "\0").as_ptr());
                $body
            }
        )*
        pub(super) static ENTRIES: &[crate::cuda::Entry] = &[$(
            crate::cuda::Entry {
                name: match core::ffi::CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
                version: $version,
                address: $name as *const (),
            },
        )*];
    };
}
pub(super) use driver;

/// State of this process in the driver.
#[derive(Default)]
pub(super) struct State {
    client: Option<Client>,
    pid: u32,
    cuda_version: u32,
    chosen: Chosen,
    /// Allocations that succeeded.
    allocations: Cell<u64>,
    /// Kernels that were launched.
    launches: u64,
    /// The error of every function, since the GPU has a fault.
    fault: Option<i32>,
    pub(super) devices: Vec<Device>,
    pub(super) contexts: BTreeMap<usize, context::Context>,
    /// Green contexts and the devices whose primary context they retain.
    pub(super) greens: BTreeMap<usize, i32>,
    /// The stacks of contexts by thread.
    pub(super) current: BTreeMap<usize, Vec<usize>>,
    pub(super) memory: memory::Memory,
    pub(super) pools: BTreeMap<usize, pool::Pool>,
    pub(super) arrays: BTreeMap<usize, array::Array>,
    pub(super) handles: BTreeMap<u64, virtual_memory::Handle>,
    /// Bytes of memory of other interfaces.
    pub(super) external: BTreeMap<usize, u64>,
    pub(super) streams: BTreeMap<usize, stream::Stream>,
    pub(super) events: BTreeMap<usize, u64>,
    pub(super) graphs: graph::Graphs,
    last_id: usize,
}

static STATE: Lock<Option<State>> = Lock::new(None);

/// The names of functions that the driver does not have.
static ABSENT: Lock<Vec<&'static CStr>> = Lock::new(Vec::new());

/// True if launches are counted that take no time.
pub(super) static HAS_LAUNCH_FAULT: AtomicBool = AtomicBool::new(false);

/// True if what chooses the driver was not understood.
static IS_WRONG: AtomicBool = AtomicBool::new(false);

/// The result of a function: an error of the driver, or what it returns.
pub(super) type Answer<T> = Result<T, i32>;

/// Does something with the state of an initialised driver.
pub(super) fn with(work: impl FnOnce(&mut State) -> Answer<()>) -> i32 {
    let answer = STATE.with(|state| {
        // As the real driver, it cannot be used in a child of a process that initialised it.
        let state = state.as_mut().filter(|state| state.pid == sys::process_id());
        let state = state.ok_or(NOT_INITIALIZED)?;
        state.fault.map_or(Ok(()), Err)?;
        work(state)
    });
    answer.err().unwrap_or(0)
}

/// Writes an answer.
///
/// # Safety
/// The pointer is null or may be written.
pub(super) unsafe fn give<T>(at: *mut T, value: T) -> Answer<()> {
    // SAFETY: promised by the caller.
    if unsafe { put(at, value) } { Ok(()) } else { Err(INVALID_VALUE) }
}

impl State {
    fn start() -> Answer<Self> {
        let chosen = Chosen::read();
        IS_WRONG.store(chosen.is_none(), Relaxed);
        let chosen = chosen.ok_or(INVALID_VALUE)?;
        chosen.wait();
        HAS_LAUNCH_FAULT.store(chosen.launches.is_some(), Relaxed);
        if chosen.lost {
            return Err(NO_DEVICE);
        }
        let (mut client, mut devices, cuda_version) = Client::connect().map_err(|_| NO_DEVICE)?;
        client.choose(&mut devices);
        if devices.is_empty() {
            return Err(NO_DEVICE);
        }
        let pid = sys::process_id();
        let cuda_version = chosen.version.map_or(cuda_version, |version| version.cuda);
        Ok(Self { client: Some(client), pid, cuda_version, chosen, devices, ..Self::default() })
    }

    pub(super) fn id(&mut self) -> usize {
        self.last_id += 1;
        0x5100_0000 + self.last_id * 16
    }

    pub(super) fn ask(&self, operation: Operation, device: usize, a: u64) -> Answer<[u64; 4]> {
        let client = self.client.as_ref().ok_or(NOT_INITIALIZED)?;
        let answer = client.ask(operation, device as u64, a);
        answer.map_err(|status| i32::try_from(status).unwrap_or(NO_DEVICE))
    }

    /// Memory for a program.
    pub(super) fn take(&self, device: usize, bytes: u64) -> Answer<()> {
        let before = self.allocations.get();
        if bytes == 0 {
            return Ok(());
        }
        if self.chosen.allocations.is_some_and(|most| before >= most) {
            return Err(OUT_OF_MEMORY);
        }
        self.take_for_context(device, bytes)?;
        self.allocations.set(before + 1);
        Ok(())
    }

    pub(super) fn take_for_context(&self, device: usize, bytes: u64) -> Answer<()> {
        self.ask(Operation::Take, device, bytes).map(|_| ())
    }

    /// A kernel is launched. As with the real driver, what comes after it gets to know of a fault.
    pub(super) fn count_launch(&mut self) {
        self.launches += 1;
        let of = self.chosen.launches.filter(|(most, _)| self.launches > *most);
        self.fault = of.map(|(_, error)| error);
    }

    pub(super) fn give_back(&self, device: usize, bytes: u64) -> Answer<()> {
        self.ask(Operation::Give, device, bytes).map(|_| ())
    }

    pub(super) fn device(&self, ordinal: i32) -> Answer<(usize, Device)> {
        let index = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
        Ok((index, *self.devices.get(index).ok_or(INVALID_DEVICE)?))
    }
}

fn tables() -> [&'static [Entry]; 9] {
    [
        ENTRIES,
        context::ENTRIES,
        memory::ENTRIES,
        pool::ENTRIES,
        virtual_memory::ENTRIES,
        array::ENTRIES,
        stream::ENTRIES,
        graph::ENTRIES,
        shared::ENTRIES,
    ]
}

/// Removes every function that the chosen driver lacks from the table of the loader too.
#[cfg(elastane_library)]
fn hide(remove: fn(&CStr) -> Option<()>) {
    // An unknown value is an error at the start of the driver.
    let chosen = Chosen::read().unwrap_or_default();
    let newest = chosen.version.map_or(u32::MAX, |version| version.cuda);
    let is_missing = |entry: &Entry| {
        let name = entry.name.to_bytes();
        chosen.missing.iter().any(|missing| *missing == name || *missing == base(name).0)
    };
    for entry in tables().into_iter().flatten() {
        if (entry.version > newest || is_missing(entry)) && remove(entry.name).is_some() {
            ABSENT.with(|absent| absent.push(entry.name));
        }
    }
}

/// A function by the name without suffixes, the newest form up to a version.
fn find(name: &[u8], version: u32, per_thread: bool) -> Option<&'static Entry> {
    let is_there = |entry: &&Entry| ABSENT.with(|absent| !absent.contains(&entry.name));
    let all = || tables().into_iter().flatten().filter(is_there);
    let fits = |entry: &&Entry, threads: bool| {
        let (base, of_threads) = base(entry.name.to_bytes());
        base == name && of_threads == threads && entry.version <= version
    };
    let newest = |threads| all().filter(|e| fits(e, threads)).max_by_key(|e| e.version);
    if per_thread { newest(true).or_else(|| newest(false)) } else { newest(false) }
}

/// The name without suffixes, and whether it is of the default stream of each thread.
fn base(name: &[u8]) -> (&[u8], bool) {
    let threads = name.strip_suffix(b"_ptsz").or_else(|| name.strip_suffix(b"_ptds"));
    let rest = threads.unwrap_or(name);
    let versions: [&[u8]; 3] = [b"_v2", b"_v3", b"_v4"];
    let base = versions.into_iter().find_map(|version| rest.strip_suffix(version));
    (base.unwrap_or(rest), threads.is_some())
}

unsafe fn proc_address(
    name: *const c_char,
    into: *mut usize,
    version: i32,
    flags: u64,
) -> (i32, i32) {
    if name.is_null() || into.is_null() {
        return (INVALID_VALUE, 1);
    }
    // SAFETY: the interface demands a text that ends with zero.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let version = u32::try_from(version).unwrap_or(0);
    let found = find(name, version, flags & 2 != 0);
    let address = found.map_or(0, |entry| entry.address.expose_provenance());
    // SAFETY: not null; the interface demands that it may be written.
    unsafe { put(into, address) };
    match found {
        Some(_) => (0, 0),
        None if find(name, u32::MAX, false).is_some() => (NOT_FOUND, 2),
        None => (NOT_FOUND, 1),
    }
}

driver! {
    2000 fn cuInit(flags: u32) {
        if flags != 0 {
            return INVALID_VALUE;
        }
        let start = |state: &mut Option<State>| {
            if state.as_ref().is_none_or(|state| state.pid != sys::process_id()) {
                // A forked child cannot use the inherited state: its connection is the parent's.
                core::mem::forget(state.take());
                *state = Some(State::start()?);
            }
            Ok(())
        };
        STATE.with(start).err().unwrap_or(0)
    }

    2020 fn cuDriverGetVersion(version: *mut i32) {
        let known = STATE.with(|state| state.as_ref().map(|state| state.cuda_version));
        let known = known.or_else(|| Some(State::start().ok()?.cuda_version)).unwrap_or(0);
        // SAFETY: as the interface demands.
        unsafe { give(version, i32::try_from(known).unwrap_or(0)) }.err().unwrap_or(0)
    }

    11030 fn cuGetProcAddress(
        name: *const c_char,
        into: *mut usize,
        version: i32,
        flags: u64,
    ) {
        // SAFETY: as the interface demands.
        unsafe { proc_address(name, into, version, flags) }.0
    }

    12000 fn cuGetProcAddress_v2(
        name: *const c_char,
        into: *mut usize,
        version: i32,
        flags: u64,
        status: *mut i32,
    ) {
        // SAFETY: as the interface demands; the status may be null.
        unsafe {
            let (result, found) = proc_address(name, into, version, flags);
            put(status, found);
            result
        }
    }

    3000 fn cuGetExportTable(table: *mut usize, _id: *const [u8; 16]) {
        // SAFETY: as the interface demands.
        unsafe { put(table, 0) };
        NOT_SUPPORTED
    }

    6000 fn cuGetErrorName(error: i32, text: *mut *const c_char) {
        // SAFETY: as the interface demands.
        unsafe { give(text, error_texts(error).0.as_ptr()) }.err().unwrap_or(0)
    }

    6000 fn cuGetErrorString(error: i32, text: *mut *const c_char) {
        // SAFETY: as the interface demands.
        unsafe { give(text, error_texts(error).1.as_ptr()) }.err().unwrap_or(0)
    }
}

fn error_texts(error: i32) -> (&'static CStr, &'static CStr) {
    match error {
        0 => (c"CUDA_SUCCESS", c"no error"),
        INVALID_VALUE if IS_WRONG.load(Relaxed) => (
            c"CUDA_ERROR_INVALID_VALUE",
            c"ELASTANE_SIMULATED_VERSION or ELASTANE_SIMULATED_FAULTS has a value that is not known",
        ),
        INVALID_VALUE => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        OUT_OF_MEMORY => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        NOT_INITIALIZED => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        NO_DEVICE => (
            c"CUDA_ERROR_NO_DEVICE",
            c"no CUDA-capable device is detected (the broker of the simulated driver is not there, or \
              the fault `lost` was chosen)",
        ),
        INVALID_DEVICE => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
        INVALID_CONTEXT => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
        NO_BINARY => (
            c"CUDA_ERROR_NO_BINARY_FOR_GPU",
            c"this driver is simulated: it runs no real kernels, because it computes nothing",
        ),
        ECC => (c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
        ILLEGAL_ADDRESS => {
            (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered")
        }
        LAUNCH_FAILED => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
        INVALID_HANDLE => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
        NOT_FOUND => (c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
        NOT_READY => (c"CUDA_ERROR_NOT_READY", c"device not ready"),
        NOT_SUPPORTED => {
            (c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported by the simulated driver")
        }
        _ => (c"CUDA_ERROR_UNKNOWN", c"unknown error"),
    }
}
