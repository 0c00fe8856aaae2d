//! Conversion of the GPU, CPU and memory requests of a pod from the wire. Owns: the errors for
//! amounts of the correct type with an invalid value.

use api_types::{Compute, GpuRequestType};
use http_kit::ApiError;
use serde_json::Number;
use spec::{Bounds, GpuRequest, SharedGpus};
use units::GPU_MILLIS;

use super::container::limits;
use super::node_constraints::mig;

/// Validates a specification that has only resources.
pub fn check_compute(compute: &Compute) -> Result<(), ApiError> {
    let checked = gpu(compute)
        .and_then(|_| cpu_millis(compute))
        .and_then(|_| memory_bytes(compute))
        .and_then(|_| limits(Some(compute)));
    checked.map(|_| ()).map_err(|error| error.moved("spec.compute", "spec"))
}

pub(super) fn cpu_millis(compute: &Compute) -> Result<u64, ApiError> {
    let Some(cores) = &compute.cpu_core_request else { return Ok(0) };
    units::parse_cpu_millis(&super::decimal(cores))
        .map_err(|why| ApiError::field("spec.compute.cpuCoreRequest", why))
}

pub(super) fn memory_bytes(compute: &Compute) -> Result<u64, ApiError> {
    let Some(size) = &compute.cpu_memory_request else { return Ok(0) };
    units::parse_bytes(size).map_err(|why| ApiError::field("spec.compute.cpuMemoryRequest", why))
}

/// The number of requested devices; `None` if not given.
fn devices(compute: &Compute) -> Result<Option<u32>, ApiError> {
    const FIELD: &str = "spec.compute.gpuDevicesRequest";
    let Some(number) = &compute.gpu_devices_request else { return Ok(None) };
    let text = super::decimal(number);
    let millis = units::parse_gpu_millis(&text).map_err(|why| ApiError::field(FIELD, why))?;
    if !millis.is_multiple_of(GPU_MILLIS) {
        let why = format!(
            "`{text}` is not a whole number; for a share of a GPU use 1 with gpuRequestType \
             portion and gpuPortionRequest {text}"
        );
        return Err(ApiError::field(FIELD, why));
    }
    let devices = u32::try_from(millis / GPU_MILLIS);
    devices.map(Some).map_err(|_| ApiError::field(FIELD, format!("`{text}` is too large")))
}

pub(super) fn gpu(compute: &Compute) -> Result<GpuRequest, ApiError> {
    let whole = devices(compute)?;
    let (portion, memory) = (&compute.gpu_portion_request, &compute.gpu_memory_request);
    if let Some(instances) = mig(compute.extended_resources.as_deref().unwrap_or_default())? {
        let others = whole.is_some_and(|devices| devices > 0) || compute.gpu_request_type.is_some();
        if others || portion.is_some() || memory.is_some() {
            let why = "MIG instances go without other GPUs; leave out gpuDevicesRequest and the \
                       like";
            return Err(ApiError::field("spec.compute.extendedResources", why));
        }
        return Ok(GpuRequest::Mig(instances));
    }
    let most = (&compute.gpu_portion_limit, &compute.gpu_memory_limit);
    let of_type = |kind: Option<GpuRequestType>| match kind {
        _ if portion.is_some() && kind != Some(GpuRequestType::Portion) => {
            Err(needs("gpuPortionRequest", "portion", kind))
        }
        _ if memory.is_some() && kind != Some(GpuRequestType::Memory) => {
            Err(needs("gpuMemoryRequest", "memory", kind))
        }
        _ if most.0.is_some() && kind != Some(GpuRequestType::Portion) => {
            Err(needs("gpuPortionLimit", "portion", kind))
        }
        _ if most.1.is_some() && kind != Some(GpuRequestType::Memory) => {
            Err(needs("gpuMemoryLimit", "memory", kind))
        }
        kind => Ok(kind),
    };
    let shares = SharedGpus::default();
    // The given amount implies the type.
    let meant = match (portion, memory) {
        (Some(_), None) => Some(GpuRequestType::Portion),
        (None, Some(_)) => Some(GpuRequestType::Memory),
        _ => None,
    };
    match of_type(compute.gpu_request_type.or(meant))? {
        None => Ok(GpuRequest::Whole(whole.unwrap_or(0))),
        Some(GpuRequestType::Portion) => {
            let asked = portion.as_ref().ok_or_else(|| missing("portion", "gpuPortionRequest"))?;
            let compute = Some(bounds(asked, most.0.as_ref(), &PORTION)?);
            Ok(GpuRequest::Shared(SharedGpus { devices: shared(whole)?, compute, ..shares }))
        }
        Some(GpuRequestType::Memory) => {
            let asked = memory.as_ref().ok_or_else(|| missing("memory", "gpuMemoryRequest"))?;
            let memory = Some(bounds(asked, most.1.as_ref(), &MEMORY)?);
            Ok(GpuRequest::Shared(SharedGpus { devices: shared(whole)?, memory, ..shares }))
        }
    }
}

/// Form of a request for part of a device.
struct Amount<T> {
    request: &'static str,
    limit: &'static str,
    read: fn(&str, &T) -> Result<u64, ApiError>,
}

const PORTION: Amount<Number> = Amount {
    request: "spec.compute.gpuPortionRequest",
    limit: "spec.compute.gpuPortionLimit",
    read: share,
};

const MEMORY: Amount<String> = Amount {
    request: "spec.compute.gpuMemoryRequest",
    limit: "spec.compute.gpuMemoryLimit",
    read: of_memory,
};

fn bounds<T: std::fmt::Display>(
    request: &T,
    limit: Option<&T>,
    amount: &Amount<T>,
) -> Result<Bounds, ApiError> {
    let asked = (amount.read)(amount.request, request)?;
    let most = limit.map(|limit| (amount.read)(amount.limit, limit)).transpose()?;
    match limit {
        Some(limit) if most < Some(asked) => {
            let why = format!("{limit} is less than the {request} that is asked for; raise it");
            Err(ApiError::field(amount.limit, why))
        }
        _ => Ok(Bounds { request: asked, limit: most }),
    }
}

fn needs(field: &str, kind: &str, given: Option<GpuRequestType>) -> ApiError {
    let why = match given {
        None => format!("goes with a part of a GPU only (gpuRequestType {kind})"),
        Some(_) => format!("goes with gpuRequestType {kind} only"),
    };
    ApiError::field(&format!("spec.compute.{field}"), why)
}

fn missing(kind: &str, field: &str) -> ApiError {
    ApiError::field("spec.compute.gpuRequestType", format!("{kind} needs {field}"))
}

/// The number of shared devices; one if not given.
fn shared(devices: Option<u32>) -> Result<u32, ApiError> {
    match devices.unwrap_or(1) {
        0 => Err(ApiError::field(
            "spec.compute.gpuDevicesRequest",
            "a share of 0 GPUs is nothing; use 1 or more, or leave gpuRequestType out",
        )),
        devices => Ok(devices),
    }
}

fn share(field: &str, portion: &Number) -> Result<u64, ApiError> {
    let portion = super::decimal(portion);
    match units::parse_gpu_millis(&portion) {
        Ok(millis @ 1..=GPU_MILLIS) => Ok(millis),
        Ok(_) | Err(units::Error::MixedGpu(_)) => {
            Err(ApiError::field(field, format!("`{portion}` is not a share; use 0.001 to 1")))
        }
        Err(why) => Err(ApiError::field(field, why)),
    }
}

/// Minimum GPU memory of a request, in bytes (reference A.3).
const GPU_MEMORY_BYTES_MIN: u64 = 100_000_000;

fn of_memory(field: &str, size: &String) -> Result<u64, ApiError> {
    match units::parse_bytes(size).map_err(|why| ApiError::field(field, why))? {
        0..GPU_MEMORY_BYTES_MIN => {
            let why = format!("`{size}` is too little; use 100M or more, such as 8G");
            Err(ApiError::field(field, why))
        }
        bytes => Ok(bytes),
    }
}
