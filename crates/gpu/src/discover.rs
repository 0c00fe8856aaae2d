//! The GPUs the driver reports. Owns: the difference between no driver, which is an answer, and
//! a broken one, which is an error.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use crate::{Error, Gpu};

/// The GPUs of this machine in PCI bus order. `None`: no NVIDIA driver is installed.
///
/// Blocks for as long as the driver needs to wake up (up to seconds).
///
/// # Errors
/// A driver is installed but does not answer.
pub fn discover() -> Result<Option<Vec<Gpu>>, Error> {
    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound) => return Ok(None),
        Err(error) => return Err(Error::Driver(error.to_string())),
    };
    read(&nvml).map(Some).map_err(|error| Error::Driver(error.to_string()))
}

fn read(nvml: &Nvml) -> Result<Vec<Gpu>, NvmlError> {
    (0..nvml.device_count()?)
        .map(|index| {
            let device = nvml.device_by_index(index)?;
            Ok(Gpu {
                index,
                uuid: device.uuid()?,
                product: device.name()?,
                memory_bytes: device.memory_info()?.total,
                simulated: false,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::discover;

    #[test]
    fn a_machine_with_or_without_a_driver_gets_an_answer() {
        // The answer depends on the machine; that each real GPU is complete does not.
        let Some(gpus) = discover().expect("no driver, or one that works") else { return };
        for (at, gpu) in (0_u32..).zip(&gpus) {
            assert_eq!(gpu.index, at);
            assert!(gpu.memory_bytes > 0 && !gpu.uuid.is_empty() && !gpu.simulated, "{gpu:?}");
        }
    }
}
