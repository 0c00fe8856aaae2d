//! The libraries of GPU fractions as bytes, so that they travel inside the program and are written
//! out where a workload needs them. Owns: how they are built (`build.rs`). Does not know about: how
//! they get into a workload.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

/// Preloaded into the programs of a workload, it keeps them within the limits of their run.
pub const PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// `libcuda.so.1` of the simulated driver.
pub const SIMULATED_CUDA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated-cuda.so"));

/// `libnvidia-ml.so.1` of the simulated driver.
pub const SIMULATED_NVML: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated-nvml.so"));
