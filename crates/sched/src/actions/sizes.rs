//! Sizes of elastic workloads. Owns: the numbers of requested and of held GPUs.

use model::{GpuRequest, WorkloadId};

use crate::session::Session;

/// Whole GPUs that a pod of an elastic workload requests.
pub(super) fn requested(s: &Session<'_>, id: WorkloadId) -> u32 {
    match s.cluster.workloads()[id].spec.pod_sets[0].request.gpu {
        GpuRequest::Whole(gpus) => gpus,
        GpuRequest::Share { .. } | GpuRequest::Memory { .. } | GpuRequest::Mig(_) => 0,
    }
}

/// GPUs that its pods hold or have reserved.
pub(super) fn gpus_of(s: &Session<'_>, id: WorkloadId) -> u32 {
    let pods = s.cluster.workloads()[id].pods.iter();
    let places = pods.filter_map(|&pod| s.cluster.pods()[pod].binding.effective());
    u32::try_from(places.map(|place| place.devices.len()).sum::<usize>()).unwrap_or(u32::MAX)
}
