//! The libraries of GPU fractions as bytes, so that they travel inside the program and are written
//! out where a workload needs them. Owns: how they are built (`build.rs`). Does not know about: how
//! they get into a workload.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Preloaded into the programs of a workload, it keeps them within the limits of their run.
pub const PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// In the place of `libcuda.so.1`, it does the same for programs that cannot get around it by the
/// way in which they load libraries. To be used through [`with_real`].
pub const PROXY_CUDA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/proxy-cuda.so"));

/// The proxy in the place of `libnvidia-ml.so.1`.
pub const PROXY_NVML: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/proxy-nvml.so"));

/// A proxy that forwards calls it does not replace to the library at this path; `None` if the path
/// is relative, has a zero byte or is longer than 1000 bytes, or the library is no proxy.
pub fn with_real(proxy: &[u8], real: &Path) -> Option<Vec<u8>> {
    let path = real.as_os_str().as_bytes();
    let marks = proxy.windows(NAME.len());
    let at = marks.into_iter().position(|window| window == NAME)?;
    let mut library = proxy.to_vec();
    let room = library.get_mut(at..at + NAME.len())?;
    if !real.is_absolute() || path.contains(&0) || path.len() > room.len() {
        return None;
    }
    room.fill(0);
    room.get_mut(..path.len())?.copy_from_slice(path);
    Some(library)
}

/// The name that proxies are built with.
const NAME: &[u8] = &[b'@'; 1000];

/// `libcuda.so.1` of the simulated driver.
pub const SIMULATED_CUDA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated-cuda.so"));

/// `libnvidia-ml.so.1` of the simulated driver.
pub const SIMULATED_NVML: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated-nvml.so"));
