//! The amounts that a task counts with before it has a place. Owns: what GPU memory is worth then.

use model::{Cluster, GpuRequest, PodRequest};
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

/// What a request for GPU memory comes to on the smallest GPU there is; nothing for any other.
pub(super) fn expected_millis(cluster: &Cluster, request: PodRequest) -> u64 {
    let GpuRequest::Memory { devices, bytes } = request.gpu else { return 0 };
    let gpus = cluster.nodes().iter().flat_map(|(_, node)| &node.gpus);
    let least = gpus.map(|gpu| gpu.memory_bytes).filter(|bytes| *bytes > 0).min();
    let millis = u128::from(devices) * u128::from(bytes) * u128::from(units::GPU_MILLIS);
    least.map_or(0, |least| u64::try_from(millis.div_ceil(u128::from(least))).unwrap_or(u64::MAX))
}

/// The amounts a pending task counts with in the demand of its queue.
pub(super) fn demand(request: PodRequest) -> Resources {
    let GpuRequest::Memory { devices, bytes } = request.gpu else { return amounts(request) };
    let millis = u128::from(devices) * u128::from(bytes) * u128::from(units::GPU_MILLIS)
        / u128::from(GPU_MEMORY_BYTES_MIN);
    Resources { gpu_millis: u64::try_from(millis).unwrap_or(u64::MAX), ..amounts(request) }
}
