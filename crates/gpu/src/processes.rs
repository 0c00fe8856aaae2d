//! The processes that compute on a GPU, as the driver lists them. Owns: merging several lists. Does
//! not know about: which runs the processes belong to.

use std::collections::BTreeMap;

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

/// Bytes of each process, including those of MPS; without processes whose memory the driver does
/// not report.
///
/// # Errors
/// The device does not answer. One that has no such list has no such processes.
pub(crate) fn computing(device: &Device<'_>) -> Result<BTreeMap<u32, u64>, NvmlError> {
    let lists = [device.running_compute_processes(), device.mps_running_compute_processes()];
    let [own, of_mps] = lists.map(|list| listed(list).map(held));
    Ok(merged(own?, of_mps?))
}

/// Entries of a list; empty if the device does not support it.
///
/// # Errors
/// As there.
pub(crate) fn listed(
    list: Result<Vec<ProcessInfo>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    match list {
        Err(
            NvmlError::NotSupported | NvmlError::NoPermission | NvmlError::FailedToLoadSymbol(_),
        ) => Ok(Vec::new()),
        told => told,
    }
}

/// A process may be in a list once for each instance of a divided GPU.
fn held(list: Vec<ProcessInfo>) -> BTreeMap<u32, u64> {
    let mut held = BTreeMap::<u32, u64>::new();
    for process in list {
        if let UsedGpuMemory::Used(bytes) = process.used_gpu_memory {
            let known = held.entry(process.pid).or_default();
            *known = known.saturating_add(bytes);
        }
    }
    held
}

/// One that is in both lists holds its memory once.
fn merged(mut first: BTreeMap<u32, u64>, second: BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    for (pid, bytes) in second {
        let known = first.entry(pid).or_default();
        *known = bytes.max(*known);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, used_gpu_memory: UsedGpuMemory) -> ProcessInfo {
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None }
    }

    #[test]
    fn a_process_in_the_lists_of_compute_and_of_mps_holds_its_memory_once() {
        let used = |pid, bytes| process(pid, UsedGpuMemory::Used(bytes));
        let own =
            held(vec![used(1, 5), used(2, 7), used(2, 1), process(9, UsedGpuMemory::Unavailable)]);
        let of_mps = held(vec![used(2, 9), used(3, u64::MAX), used(3, 1), used(1, 4)]);
        assert_eq!(merged(own, of_mps), [(1, 5), (2, 9), (3, u64::MAX)].into());
    }

    #[test]
    fn a_list_that_a_driver_does_not_have_is_empty_and_a_lost_device_is_an_error() {
        for fault in [
            NvmlError::NotSupported,
            NvmlError::NoPermission,
            NvmlError::FailedToLoadSymbol("none".to_owned()),
        ] {
            assert_eq!(listed(Err(fault)).unwrap(), []);
        }
        assert!(matches!(listed(Err(NvmlError::GpuLost)), Err(NvmlError::GpuLost)));
    }
}
