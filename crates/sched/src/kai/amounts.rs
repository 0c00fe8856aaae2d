//! Amounts counted for a task before it has a place. Owns: the value of GPU memory in them.

use model::{Cluster, GpuRequest, PodRequest};
use units::Resources;

/// GPU memory that counts as one GPU in the demand of pending tasks: the minimum over nodes, for
/// which the described revision always takes this value (§26.16).
const GPU_MEMORY_BYTES_MIN: u64 = 100 << 20;

/// Amounts counted for a pending task: GPU memory counts as no GPU before it is placed.
pub(super) fn amounts(request: PodRequest) -> Resources {
    let gpu_millis = match request.gpu {
        GpuRequest::Memory { .. } => 0,
        GpuRequest::Whole(_) | GpuRequest::Share { .. } | GpuRequest::Mig(_) => {
            request.resources(1).gpu_millis
        }
    };
    Resources { gpu_millis, cpu_millis: request.cpu_millis, memory_bytes: request.memory_bytes }
}

/// Thousandths that a request for GPU memory needs of the smallest GPU; 0 for other requests.
pub(super) fn expected_millis(cluster: &Cluster, request: PodRequest) -> u64 {
    let GpuRequest::Memory { devices, bytes } = request.gpu else { return 0 };
    let gpus = cluster.nodes().iter().flat_map(|(_, node)| &node.gpus);
    let least = gpus.map(|gpu| gpu.memory_bytes).filter(|bytes| *bytes > 0).min();
    let millis = u128::from(devices) * u128::from(bytes) * u128::from(units::GPU_MILLIS);
    least.map_or(0, |least| u64::try_from(millis.div_ceil(u128::from(least))).unwrap_or(u64::MAX))
}

/// Amounts counted for a pending task in the demand of its queue.
pub(super) fn demand(request: PodRequest) -> Resources {
    let GpuRequest::Memory { devices, bytes } = request.gpu else { return amounts(request) };
    let millis = u128::from(devices) * u128::from(bytes) * u128::from(units::GPU_MILLIS)
        / u128::from(GPU_MEMORY_BYTES_MIN);
    Resources { gpu_millis: u64::try_from(millis).unwrap_or(u64::MAX), ..amounts(request) }
}
