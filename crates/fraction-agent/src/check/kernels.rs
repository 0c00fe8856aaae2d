//! `gpu-check --kernels`: virtual kernels on a simulated GPU, one after the other. Owns: launching
//! and counting them. Does not know about: shares of compute time.
// Calls the driver, as every CUDA program does. Each block says why it is sound.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, c_char};
use std::io::Write as _;

use libloading::Symbol;

use super::{Cuda, refused};

/// Kernels between two lines.
const EACH: u64 = 10;

/// Launches kernels of the length in the argument until it is stopped, and prints their number
/// again and again.
pub(crate) fn launch(arg: &str) -> Result<String, String> {
    let text = arg.strip_prefix("--kernels=").unwrap_or_default();
    let wrong = || format!("--kernels={text}: give 1 to 10000 milliseconds, such as 5");
    let ms: u64 = text.parse().map_err(|_| wrong())?;
    if !(1..=10_000).contains(&ms) {
        return Err(wrong());
    }
    let cuda = Cuda::open()?;
    match cuda.enter(0)? {
        0 => {}
        answer => return Err(refused("a context", answer)),
    }
    let module = format!("elastane simulated kernels\nk {}\n\0", ms * 1_000_000);
    let module = CStr::from_bytes_with_nul(module.as_bytes()).map_err(|error| error.to_string())?;
    let kernel = load(&cuda, module)?;
    let mut out = std::io::stdout();
    for count in 1_u64.. {
        run(&cuda, kernel)?;
        if count % EACH == 0 {
            writeln!(out, "{count} kernels").map_err(|error| error.to_string())?;
        }
    }
    Ok(String::new())
}

fn load(cuda: &Cuda, module: &CStr) -> Result<u64, String> {
    type Load = unsafe extern "C" fn(*mut usize, *const c_char) -> i32;
    type Get = unsafe extern "C" fn(*mut u64, usize, *const c_char) -> i32;
    let (mut loaded, mut kernel) = (0, 0);
    let took = cuda.call("cuModuleLoadData", |load: Symbol<'_, Load>| {
        // SAFETY: room for a handle, and a text that is kept while the module is used.
        unsafe { load(&raw mut loaded, module.as_ptr()) }
    });
    took.map_err(|error| format!("virtual kernels run on simulated GPUs only ({error})"))?;
    cuda.call("cuModuleGetFunction", |get: Symbol<'_, Get>| {
        // SAFETY: room for a handle, the module that was just loaded, and a name.
        unsafe { get(&raw mut kernel, loaded, c"k".as_ptr()) }
    })?;
    Ok(kernel)
}

/// Launches a kernel and waits for its end.
fn run(cuda: &Cuda, kernel: u64) -> Result<(), String> {
    type Launch =
        unsafe extern "C" fn(u64, u32, u32, u32, u32, u32, u32, u32, usize, usize, usize) -> i32;
    cuda.call("cuLaunchKernel", |launch: Symbol<'_, Launch>| {
        // SAFETY: the published signature, and a kernel without parameters.
        unsafe { launch(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) }
    })?;
    cuda.call("cuCtxSynchronize", |wait: Symbol<'_, unsafe extern "C" fn() -> i32>| {
        // SAFETY: it takes nothing.
        unsafe { wait() }
    })
}
