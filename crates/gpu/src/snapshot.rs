//! State of a simulated driver as NVML reports it to a program inside a workload. Owns: one query.
//! Does not know about: output, and real drivers, which have a tool.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

/// The driver and its GPUs at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the driver.
    pub driver: String,
    /// The newest version of CUDA that it knows, such as 13.0.
    pub cuda: String,
    /// GPUs by index.
    pub gpus: Vec<SnapshotGpu>,
}

/// A GPU at one moment. A value that the driver does not report is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotGpu {
    /// Product name.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// Place on the PCI bus.
    pub bus_id: Option<String>,
    /// Bytes of memory that a program here may use at all.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Per cent of the last second in which it was busy.
    pub busy_per_cent: Option<u32>,
    /// Degrees Celsius.
    pub celsius: Option<u32>,
    /// Milliwatts.
    pub milliwatts: Option<u32>,
    /// Processes and their bytes.
    pub processes: Vec<(u32, u64)>,
}

/// How the version of a simulated driver ends.
const SIMULATED: &str = "-simulated";

/// State of the simulated driver that this process finds; `None` if it finds none, or a real one.
///
/// # Errors
/// A simulated driver is there but does not answer.
pub fn simulated_driver() -> Result<Option<Snapshot>, String> {
    let broken = |error: NvmlError| match error {
        NvmlError::GpuLost => {
            "the simulated GPU is lost (chosen by ELASTANE_SIMULATED_FAULTS)".into()
        }
        NvmlError::InvalidArg => {
            "ELASTANE_SIMULATED_VERSION or ELASTANE_SIMULATED_FAULTS has a value that is not known"
                .into()
        }
        error => format!(
            "the simulated driver does not answer ({error}); check that the server of this \
             workload runs (`elastane status`)"
        ),
    };
    // By the name that the loader's own path is searched for, as programs of the workload do.
    let nvml = match Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound) => return Ok(None),
        Err(error) => return Err(broken(error)),
    };
    let driver = nvml.sys_driver_version().map_err(broken)?;
    if !driver.ends_with(SIMULATED) {
        return Ok(None);
    }
    let cuda = nvml.sys_cuda_driver_version().map_err(broken)?;
    let cuda = format!("{}.{}", cuda / 1000, cuda % 1000 / 10);
    let count = nvml.device_count().map_err(broken)?;
    let gpus: Result<_, NvmlError> = (0..count).map(|index| gpu(&nvml, index)).collect();
    Ok(Some(Snapshot { driver, cuda, gpus: gpus.map_err(broken)? }))
}

fn gpu(nvml: &Nvml, index: u32) -> Result<SnapshotGpu, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let memory = device.memory_info()?;
    let process = |process: nvml_wrapper::struct_wrappers::device::ProcessInfo| {
        let bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => bytes,
            UsedGpuMemory::Unavailable => 0,
        };
        (process.pid, bytes)
    };
    Ok(SnapshotGpu {
        name: device.name()?,
        uuid: device.uuid()?,
        bus_id: device.pci_info().ok().map(|place| place.bus_id),
        total_bytes: memory.total,
        used_bytes: memory.used,
        busy_per_cent: device.utilization_rates().ok().map(|rates| rates.gpu),
        celsius: device.temperature(TemperatureSensor::Gpu).ok(),
        milliwatts: device.power_usage().ok(),
        processes: device.running_compute_processes()?.into_iter().map(process).collect(),
    })
}
