//! `gpu-check`: what a program here sees of its GPUs, and what it is refused. Owns: asking the
//! driver that this process finds, as any program does. Does not know about: what should come of
//! it.
// Loads the driver and calls it, as every CUDA program does. Each block says why it is sound.
#![expect(unsafe_code, reason = "the driver is a C library")]

mod kernels;

use std::ffi::c_char;
use std::fmt::Write as _;
use std::io::Write as _;

use libloading::{Library, Symbol};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::parse_bytes;

const OUT_OF_MEMORY: i32 = 2;
const NO_DEVICE: i32 = 100;
const MIB: u64 = 1 << 20;
/// `CU_DEVICE_ATTRIBUTE_MPS_ENABLED`: whether contexts are shared by MPS.
const MPS_ENABLED: i32 = 133;
/// The option that says what may be free.
const MOST_FREE: &str = "--most-free=";

/// Report of one GPU, as a program sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the GPU.
    pub name: String,
    /// Memory in bytes.
    pub total: u64,
    /// Free memory in bytes after creating a context; `None` if no context was made.
    pub free: Option<u64>,
    /// Attempted allocations, in order.
    pub allocations: Vec<Allocation>,
}

/// An attempted allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// How much.
    pub bytes: u64,
    /// The driver's answer: 0 is granted, 2 out of memory.
    pub answer: i32,
}

/// A driver whose answer does not match the request.
fn refused(what: &str, answer: i32) -> String {
    match answer {
        NO_DEVICE => "the driver has no GPU for this process".to_owned(),
        OUT_OF_MEMORY => format!("{what}: out of memory (CUDA error 2)"),
        answer => format!("{what}: CUDA error {answer}"),
    }
}

/// The driver.
struct Cuda(Library);

impl Cuda {
    fn open() -> Result<Self, String> {
        // SAFETY: what every CUDA program does; the library's start-up code is trusted as there.
        let library = unsafe { Library::new("libcuda.so.1") };
        let cuda = Self(library.map_err(|error| format!("there is no CUDA driver here: {error}"))?);
        cuda.call("cuInit", |init: Symbol<'_, unsafe extern "C" fn(u32) -> i32>| {
            // SAFETY: the published signature.
            unsafe { init(0) }
        })?;
        Ok(cuda)
    }

    /// Calls a function; an answer other than 0 is an error.
    fn call<T>(&self, name: &str, call: impl FnOnce(Symbol<'_, T>) -> i32) -> Result<(), String> {
        match self.answer(name, call)? {
            0 => Ok(()),
            answer => Err(refused(name, answer)),
        }
    }

    fn answer<T>(
        &self,
        name: &str,
        call: impl FnOnce(Symbol<'_, T>) -> i32,
    ) -> Result<i32, String> {
        // SAFETY: the caller names the type of the function as CUDA's documentation does.
        let symbol = unsafe { self.0.get::<T>(name.as_bytes()) };
        Ok(call(symbol.map_err(|error| format!("the driver has no {name}: {error}"))?))
    }

    fn count(&self) -> Result<i32, String> {
        let mut count = 0;
        self.call("cuDeviceGetCount", |get: Symbol<'_, unsafe extern "C" fn(*mut i32) -> i32>| {
            // SAFETY: room for a number.
            unsafe { get(&raw mut count) }
        })?;
        Ok(count)
    }

    fn device(&self, device: i32) -> Result<Report, String> {
        type Name = unsafe extern "C" fn(*mut c_char, i32, i32) -> i32;
        type Total = unsafe extern "C" fn(*mut usize, i32) -> i32;
        let mut text = [0_u8; 128];
        self.call("cuDeviceGetName", |get: Symbol<'_, Name>| {
            // SAFETY: room for 127 letters and a zero byte.
            unsafe { get(text.as_mut_ptr().cast(), 127, device) }
        })?;
        let mut total = 0;
        self.call("cuDeviceTotalMem_v2", |get: Symbol<'_, Total>| {
            // SAFETY: room for a number.
            unsafe { get(&raw mut total, device) }
        })?;
        let name = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(Report { name, total: total as u64, free: None, allocations: Vec::new() })
    }

    /// Makes a context; the driver's answer.
    fn enter(&self, device: i32) -> Result<i32, String> {
        type Retain = unsafe extern "C" fn(*mut usize, i32) -> i32;
        type Set = unsafe extern "C" fn(usize) -> i32;
        let mut context = 0;
        let answer = self.answer("cuDevicePrimaryCtxRetain", |retain: Symbol<'_, Retain>| {
            // SAFETY: room for a handle.
            unsafe { retain(&raw mut context, device) }
        })?;
        if answer != 0 {
            return Ok(answer);
        }
        self.answer("cuCtxSetCurrent", |set: Symbol<'_, Set>| {
            // SAFETY: the handle that the driver just gave.
            unsafe { set(context) }
        })
    }

    /// An attribute of a device; `None` if this driver does not have it.
    fn attribute(&self, attribute: i32, device: i32) -> Option<i32> {
        type Get = unsafe extern "C" fn(*mut i32, i32, i32) -> i32;
        let mut value = 0;
        let answer = self.answer("cuDeviceGetAttribute", |get: Symbol<'_, Get>| {
            // SAFETY: room for a number.
            unsafe { get(&raw mut value, attribute, device) }
        });
        (answer == Ok(0)).then_some(value)
    }

    fn free(&self) -> Result<u64, String> {
        type Info = unsafe extern "C" fn(*mut usize, *mut usize) -> i32;
        let (mut free, mut total) = (0, 0);
        self.call("cuMemGetInfo_v2", |get: Symbol<'_, Info>| {
            // SAFETY: room for two numbers.
            unsafe { get(&raw mut free, &raw mut total) }
        })?;
        Ok(free as u64)
    }

    /// Takes memory of the current context: its address, or the driver's answer.
    fn take(&self, bytes: u64) -> Result<Result<u64, i32>, String> {
        type Take = unsafe extern "C" fn(*mut u64, usize) -> i32;
        let size = usize::try_from(bytes).map_err(|_| format!("{bytes} bytes are too many"))?;
        let mut at = 0;
        let answer = self.answer("cuMemAlloc_v2", |take: Symbol<'_, Take>| {
            // SAFETY: room for an address.
            unsafe { take(&raw mut at, size) }
        })?;
        Ok(if answer == 0 { Ok(at) } else { Err(answer) })
    }

    /// Takes memory of the current context and gives it back.
    fn allocate(&self, bytes: u64) -> Result<Allocation, String> {
        type Give = unsafe extern "C" fn(u64) -> i32;
        match self.take(bytes)? {
            Err(answer) => Ok(Allocation { bytes, answer }),
            Ok(at) => {
                self.call("cuMemFree_v2", |give: Symbol<'_, Give>| {
                    // SAFETY: the address that the driver just gave.
                    unsafe { give(at) }
                })?;
                Ok(Allocation { bytes, answer: 0 })
            }
        }
    }
}

/// The GPUs that a program here finds. Takes no memory of them.
///
/// # Errors
/// There is no driver, or it does not answer.
pub fn look() -> Result<Vec<Report>, String> {
    let cuda = Cuda::open()?;
    (0..cuda.count()?).map(|device| cuda.device(device)).collect()
}

/// The GPUs of [`look`], after allocating and freeing each of these sizes on the first GPU in turn.
/// A refused context refuses all of them.
///
/// # Errors
/// As for [`look`].
pub fn try_sizes(sizes: &[u64]) -> Result<Vec<Report>, String> {
    let mut reports = look()?;
    let Some(first) = reports.first_mut().filter(|_| !sizes.is_empty()) else { return Ok(reports) };
    let cuda = Cuda::open()?;
    let entered = cuda.enter(0)?;
    if entered == 0 {
        first.free = Some(cuda.free()?);
    }
    for &bytes in sizes {
        let refused = Allocation { bytes, answer: entered };
        first.allocations.push(if entered == 0 { cuda.allocate(bytes)? } else { refused });
    }
    Ok(reports)
}

/// Why a check failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckError {
    /// The driver did not answer in time.
    #[error("the driver does not answer within {within_ms} ms")]
    Silent {
        /// Time that it had, in milliseconds.
        within_ms: u64,
    },
    /// Unknown argument, no driver, or a limit that does not hold.
    #[error("{0}")]
    Failed(String),
}

/// Output of `gpu-check`.
///
/// # Errors
/// An unknown argument, no driver, more memory than `--most` allows, or a driver that does not
/// answer within `--within`.
pub fn gpu_check(args: &[String]) -> Result<String, CheckError> {
    let within = args.iter().find_map(|arg| arg.strip_prefix("--within="));
    let Some(within) = within else { return checked(args).map_err(CheckError::Failed) };
    let wrong = |_| {
        let why = format!("--within={within}: give a number of milliseconds, such as 60000");
        CheckError::Failed(why)
    };
    let within_ms: u64 = within.parse().map_err(wrong)?;
    let args: Vec<String> =
        args.iter().filter(|arg| !arg.starts_with("--within=")).cloned().collect();
    let (done, answer) = std::sync::mpsc::channel();
    // It has no way to be stopped inside a driver, and ends with this process.
    let look = std::thread::Builder::new().spawn(move || done.send(checked(&args)));
    look.map_err(|error| CheckError::Failed(format!("no thread to look with: {error}")))?;
    match answer.recv_timeout(std::time::Duration::from_millis(within_ms)) {
        Ok(checked) => checked.map_err(CheckError::Failed),
        Err(_) => Err(CheckError::Silent { within_ms }),
    }
}

/// Ends this process at once, as a thread that is inside a driver cannot be waited for: the usual
/// end waits for the loader, which that thread may hold.
pub fn leave(code: u8) -> ! {
    // SAFETY: it takes a number, runs nothing of this program, and does not return.
    unsafe { libc::_exit(code.into()) }
}

fn checked(args: &[String]) -> Result<String, String> {
    let (mut most, mut json, mut hold, mut sizes) = (None, false, None, Vec::new());
    let mut most_free = None;
    let size = |text: &str| parse_bytes(text).map_err(|error| error.to_string());
    for arg in args {
        match (arg.strip_prefix("--most="), arg.as_str()) {
            (Some(text), _) => most = Some(size(text)?),
            (None, word) if word.starts_with(MOST_FREE) => {
                most_free = Some(size(word.trim_start_matches(MOST_FREE))?);
            }
            (None, "--json") => json = true,
            (None, word) if word.starts_with("--kernels=") => return kernels::launch(word),
            (None, "--hold") => hold = Some(Hold::UntilStopped),
            // For the server: so it ends with who started it.
            (None, "--until-eof") => hold = Some(Hold::UntilEndOfInput),
            (None, word) if word.starts_with('-') => {
                return Err(format!(
                    "`{word}` is no option of gpu-check; give sizes to try such as 9GiB, \
                     --hold to keep what is granted until it is stopped, --until-eof to keep it \
                     until its input ends, --kernels=MS to launch virtual kernels of so many \
                     milliseconds, --most=SIZE to fail where a GPU shows more, --most-free=SIZE to \
                     fail where the first is not used by MPS or shows more of it free, \
                     --within=MS to fail where the driver does not answer, or --json"
                ));
            }
            (None, text) => sizes.push(size(text)?),
        }
    }
    if let Some(hold) = hold {
        return keep(&sizes, hold, json);
    }
    if let Some(most) = most_free {
        return free_at_most(most);
    }
    let reports = try_sizes(&sizes)?;
    let above = |most: u64| Some((most, reports.iter().find(|report| report.total > most)?));
    if let Some((most, over)) = most.and_then(above) {
        let (total, most) = (over.total.div_ceil(MIB), most / MIB);
        return Err(format!("{}: {total} MiB are visible, and {most} MiB granted", over.name));
    }
    if json {
        return serde_json::to_string(&reports).map_err(|error| error.to_string());
    }
    Ok(text(&reports))
}

/// Fails where programs of this environment are not those of MPS.
fn is_of_mps(attribute: Option<i32>) -> Result<(), String> {
    match attribute {
        Some(0) => Err("its programs are not connected to MPS".to_owned()),
        // Nothing is known of it: what is free decides.
        Some(_) | None => Ok(()),
    }
}

/// Fails where a program with a context does not use MPS, or sees more of the first GPU free. A
/// context that is refused for want of memory has kept the limit.
fn free_at_most(most: u64) -> Result<String, String> {
    let cuda = Cuda::open()?;
    is_of_mps(cuda.attribute(MPS_ENABLED, 0))?;
    match cuda.enter(0)? {
        0 => {}
        OUT_OF_MEMORY => return Ok(String::new()),
        answer => return Err(refused("a context", answer)),
    }
    let free = cuda.free()?;
    if free > most {
        let (free, most) = (free.div_ceil(MIB), most / MIB);
        return Err(format!("{free} MiB of the GPU are free for it, and {most} MiB granted"));
    }
    Ok(String::new())
}

/// How long memory is kept.
#[derive(Clone, Copy)]
enum Hold {
    UntilStopped,
    UntilEndOfInput,
}

/// Takes memory of the first GPU and keeps it. `json`: prints each [`Allocation`] as such.
fn keep(sizes: &[u64], hold: Hold, json: bool) -> Result<String, String> {
    let cuda = Cuda::open()?;
    match cuda.enter(0)? {
        0 => {}
        answer => return Err(refused("a context", answer)),
    }
    let mut out = std::io::stdout();
    for &bytes in sizes {
        let answer = cuda.take(bytes)?.err().unwrap_or(0);
        let line = match (json, answer) {
            (true, answer) => serde_json::to_string(&Allocation { bytes, answer })
                .map_err(|error| error.to_string())?,
            (false, 0) => format!("{} MiB: granted, and kept", bytes / MIB),
            (false, answer) => format!("{} MiB: {}", bytes / MIB, refused("refused", answer)),
        };
        writeln!(out, "{line}").map_err(|error| error.to_string())?;
    }
    match hold {
        Hold::UntilStopped => loop {
            std::thread::park();
        },
        Hold::UntilEndOfInput => {
            let read = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            read.map(|_bytes| String::new()).map_err(|error| error.to_string())
        }
    }
}

fn text(reports: &[Report]) -> String {
    let mut text = String::new();
    for (at, report) in reports.iter().enumerate() {
        let total = report.total / MIB;
        // Writing to a string cannot fail.
        let _infallible = match report.free {
            Some(free) => {
                let free = free / MIB;
                writeln!(text, "GPU {at}: {}, {total} MiB, {free} MiB of it free", report.name)
            }
            None => writeln!(text, "GPU {at}: {}, {total} MiB", report.name),
        };
        for Allocation { bytes, answer } in &report.allocations {
            let what = match *answer {
                0 => "granted, and given back".to_owned(),
                answer => refused("refused", answer),
            };
            let _infallible = writeln!(text, "{} MiB: {what}", bytes / MIB);
        }
    }
    if reports.is_empty() { "no GPU is visible here\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_said_in_words() {
        let allocations = vec![
            Allocation { bytes: 9216 * MIB, answer: 2 },
            Allocation { bytes: MIB, answer: 0 },
            Allocation { bytes: MIB, answer: 700 },
        ];
        let name = "G".to_owned();
        let report = Report { name, total: 8192 * MIB, free: Some(7892 * MIB), allocations };
        assert_eq!(
            text(&[report]),
            "GPU 0: G, 8192 MiB, 7892 MiB of it free\n\
             9216 MiB: refused: out of memory (CUDA error 2)\n\
             1 MiB: granted, and given back\n1 MiB: refused: CUDA error 700\n",
        );
        assert_eq!(text(&[]), "no GPU is visible here\n");
    }

    #[test]
    fn a_driver_that_says_that_mps_is_not_used_ends_the_look() {
        let why = is_of_mps(Some(0)).unwrap_err();
        assert!(why.contains("not connected to MPS"), "{why}");
        assert_eq!((is_of_mps(Some(1)), is_of_mps(None)), (Ok(()), Ok(())));
    }

    #[test]
    fn what_it_does_not_know_it_says() {
        let of = |arg: &str| gpu_check(&[arg.to_owned()]).unwrap_err().to_string();
        assert!(of("--least=1").contains("--most=SIZE"));
        assert!(of("lots").contains("lots"));
    }
}
