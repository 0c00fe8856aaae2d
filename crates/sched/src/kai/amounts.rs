//! The amounts that a task counts with before it has a place. Owns: what GPU memory is worth then.

use model::{GpuRequest, PodRequest};
use units::Resources;

/// GPU memory that counts as one GPU in the demand of pending tasks: the least of any node, which
/// the described revision always takes to be this (§26.16).
const GPU_MEMORY_BYTES_MIN: u64 = 100 << 20;

/// The amounts a pending task counts with: GPU memory counts as no GPU before it is placed.
pub(super) fn amounts(request: PodRequest) -> Resources {
    let gpu_millis = match request.gpu {
        GpuRequest::Memory { .. } => 0,
        GpuRequest::Whole(_) | GpuRequest::Share { .. } | GpuRequest::Mig(_) => {
            request.resources(1).gpu_millis
        }
    };
    Resources { gpu_millis, cpu_millis: request.cpu_millis, memory_bytes: request.memory_bytes }
}

/// The amounts a pending task counts with in the demand of its queue.
pub(super) fn demand(request: PodRequest) -> Resources {
    let GpuRequest::Memory { devices, bytes } = request.gpu else { return amounts(request) };
    let millis = u128::from(devices) * u128::from(bytes) * u128::from(units::GPU_MILLIS)
        / u128::from(GPU_MEMORY_BYTES_MIN);
    Resources { gpu_millis: u64::try_from(millis).unwrap_or(u64::MAX), ..amounts(request) }
}
