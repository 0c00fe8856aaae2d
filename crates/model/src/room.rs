//! Number of equal pods that fit together. Owns: this count, for one machine and its GPUs.

use smallvec::SmallVec;
use units::Resources;

use crate::{Gpu, GpuRequest, PodRequest};

/// Number of pods that fit into these resources of a machine and these thousandths of each of its
/// GPUs.
#[must_use]
pub fn fitting<'a>(
    request: PodRequest,
    host: Resources,
    pods: u64,
    gpus: impl Iterator<Item = (&'a Gpu, u64)> + Clone,
) -> u32 {
    let per = |free: u64, each: u64| free.checked_div(each).unwrap_or(u64::MAX);
    let most = pods
        .min(per(host.cpu_millis, request.cpu_millis))
        .min(per(host.memory_bytes, request.memory_bytes));
    let parts = request.gpu.parts();
    let fitting = parts.fold(most, |most, part| fitting_devices(part, most, gpus.clone()));
    u32::try_from(fitting).unwrap_or(u32::MAX)
}

/// Number of pods that the devices for one part of a request allow, at most `most`.
fn fitting_devices<'a>(
    part: GpuRequest,
    most: u64,
    gpus: impl Iterator<Item = (&'a Gpu, u64)>,
) -> u64 {
    let devices = u64::from(part.devices());
    if devices == 0 || most == 0 {
        return most;
    }
    let slots = |(gpu, free): (&Gpu, u64)| {
        part.needs_of(gpu).map_or(0, |need| free / gpu.taken_by(need).max(1))
    };
    let slots: SmallVec<[u64; 8]> = gpus.map(slots).collect();
    // A pod takes different devices: at most as many slots of each device count as there are pods.
    let enough = |pods: u64| {
        slots.iter().map(|&slots| slots.min(pods)).sum::<u64>() >= pods.saturating_mul(devices)
    };
    let mut fitting = most.min(slots.iter().sum::<u64>() / devices);
    while !enough(fitting) {
        fitting -= 1;
    }
    fitting
}
