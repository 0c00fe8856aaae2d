//! Placement of one task. Owns: the nodes and devices that fit, and the choice among them. Source:
//! scheduling reference §10 – §12.

use std::cmp::Reverse;

use model::{DeviceShare, Gpu, GpuRequest, Node, NodeId, Placement, PodId, PodRequest};
use units::{GPU_MILLIS, Resources};

use super::amounts::amounts;
use super::jobs;
use super::topology::Site;
use crate::session::Session;
use model::Fill;

/// Step in which GPU memory of a node counts.
const GPU_MEMORY_STEP: u64 = 100 << 20;

/// A place, and `true` if it is free at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) place: Placement,
    pub(super) at_once: bool,
}

/// Purpose of the search for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// A place to start in at once, if there is one.
    Start,
    /// A place to reserve, even if it is free.
    Reserve,
}

/// The best place for a task on a site; nodes of equal score go by name.
pub(super) fn find(s: &Session<'_>, pod: PodId, site: &Site, aim: Aim) -> Option<Spot> {
    let fits = site.nodes.iter().filter_map(|&id| {
        let spot = on_node(s, pod, id, aim)?;
        let node = &s.cluster.nodes()[id];
        let near = site.near.get(&id).copied().unwrap_or_default();
        let liking = s.cluster.pod_preference(s.cluster.set_of(pod).constraints, id);
        Some(((liking, near, score(s, pod, node), Reverse(node.name.as_str())), spot))
    });
    fits.max_by(|(left, _), (right, _)| left.cmp(right)).map(|(_, spot)| spot)
}

/// The place the task would get on this node.
pub(super) fn on_node(s: &Session<'_>, pod: PodId, id: NodeId, aim: Aim) -> Option<Spot> {
    let node = &s.cluster.nodes()[id];
    let request = jobs::request(s, pod);
    let constraints = s.cluster.set_of(pod).constraints;
    let host_fits = host(request).fits_in(whole(node.free(false)));
    let allowed =
        s.cluster.allows(constraints, id) && s.cluster.check_pods(constraints, id, false).is_ok();
    if !allowed || !host_fits || !queue_allows(s, pod, node) {
        return None;
    }
    let now = aim == Aim::Start
        && host_fits_now(node, request)
        && s.cluster.check_pods(constraints, id, true).is_ok();
    let devices = match request.gpu {
        GpuRequest::Whole(_) | GpuRequest::Mig(_) => {
            let parts = request.gpu.parts();
            let parts = parts.map(|part| whole_devices(s, node, part, now));
            parts.collect::<Option<Vec<_>>>().map(|parts| parts.concat())
        }
        GpuRequest::Share { .. } | GpuRequest::Memory { .. } => {
            shared_devices(s, node, request, now)
        }
    }?;
    // A GPU shared for the first time is held by a pod of its own.
    let opens = devices.iter().any(|share| opens(node, *share));
    if node.pods_max.saturating_sub(node.pods_committed) < 1 + u32::from(opens) {
        return None;
    }
    let at_once = now && devices.iter().all(|&share| is_free(s, node, share));
    Some(Spot { place: Placement { node: id, devices: devices.into_iter().collect() }, at_once })
}

fn host_fits_now(node: &Node, request: PodRequest) -> bool {
    host(request).fits_in(whole(node.free(true))) && node.takes_one_more(true)
}

/// `true` if this part of a device can be used at once: it is idle, or shared by a pod that stays.
fn is_free(s: &Session<'_>, node: &Node, share: DeviceShare) -> bool {
    let gpu = &node.gpus[share.gpu as usize];
    gpu.free_millis(true) >= share.millis
        && match (gpu.used_millis > 0, gpu.committed_millis > 0) {
            (false, shared) => !shared,
            (true, shared) => shared && is_in_use(s, node, share.gpu),
        }
}

/// `true` if a pod runs on a device and stays.
fn is_in_use(s: &Session<'_>, node: &Node, gpu: u32) -> bool {
    node.pods.iter().map(|&pod| &s.cluster.pods()[pod]).filter(|pod| pod.runs()).any(|pod| {
        let here = pod.binding.current.iter().filter(|place| is_here(s, place, node));
        here.flat_map(|place| &place.devices).any(|share| share.gpu == gpu)
    })
}

fn is_here(s: &Session<'_>, place: &Placement, node: &Node) -> bool {
    s.cluster.nodes()[place.node].name == node.name
}

/// Checks limit and quota again, with GPU memory valued on this node: rounded up to hundredths, of
/// one device even if it requests several (§9).
fn queue_allows(s: &Session<'_>, pod: PodId, node: &Node) -> bool {
    let request = jobs::request(s, pod);
    let GpuRequest::Memory { bytes, .. } = request.gpu else { return true };
    let mut whole = node.gpus.iter().filter(|gpu| gpu.mig.is_none());
    let Some(gpu) = whole.next() else { return false };
    let hundredths = (u128::from(bytes) * 100).div_ceil(u128::from(memory(gpu.memory_bytes)));
    let gpu_millis = u64::try_from(hundredths * 10).unwrap_or(u64::MAX);
    let asked = Resources { gpu_millis, ..amounts(request) };
    s.check_queue(s.cluster.pods()[pod].workload, asked).is_ok()
}

/// CPU and memory of a request.
fn host(request: PodRequest) -> Resources {
    Resources { gpu_millis: 0, ..amounts(request) }
}

const fn whole(free: Resources) -> Resources {
    Resources { gpu_millis: u64::MAX, ..free }
}

/// Memory of a GPU as it counts: rounded down to the step.
const fn memory(bytes: u64) -> u64 {
    let rounded = bytes / GPU_MEMORY_STEP * GPU_MEMORY_STEP;
    if rounded == 0 { GPU_MEMORY_STEP } else { rounded }
}

/// Thousandths that a request needs of a device whose memory counts like that.
fn needs_of(request: GpuRequest, gpu: &Gpu) -> Option<u64> {
    request.needs_of(&Gpu { memory_bytes: memory(gpu.memory_bytes), ..gpu.clone() })
}

/// Whole GPUs and MIG instances are counted, not named: as many as wanted are idle, or will be. A
/// task that has to wait is placed on those being released, so that the idle ones can be given to
/// others.
fn whole_devices(
    s: &Session<'_>,
    node: &Node,
    part: GpuRequest,
    now: bool,
) -> Option<Vec<DeviceShare>> {
    let wanted = part.devices() as usize;
    let free = (0_u32..).zip(&node.gpus).filter_map(|(gpu, device)| {
        let millis = part.needs_of(device).filter(|&need| device.free_millis(false) >= need)?;
        Some(DeviceShare { gpu, millis })
    });
    let (idle, waiting): (Vec<_>, Vec<_>) = free.partition(|&share| is_free(s, node, share));
    let at_once = now && idle.len() >= wanted;
    let (first, then) = if at_once { (idle, waiting) } else { (waiting, idle) };
    let chosen = first.into_iter().chain(then).take(wanted);
    let chosen: Vec<_> = chosen.collect();
    (chosen.len() == wanted).then_some(chosen)
}

/// Shared GPUs that have room, and whole ones that are idle or being released, by how much of
/// each is used. Whole ones are counted, not named, here too.
fn shared_devices(
    s: &Session<'_>,
    node: &Node,
    request: PodRequest,
    now: bool,
) -> Option<Vec<DeviceShare>> {
    let mut fitting = Vec::new();
    for (gpu, device) in (0_u32..).zip(&node.gpus) {
        let Some(millis) = needs_of(request.gpu, device) else { continue };
        if device.free_millis(false) >= millis {
            let shared = device.committed_millis > 0;
            let used_millis = if shared { used_millis(s, node, gpu) } else { 0 };
            let share = DeviceShare { gpu, millis };
            let later = !shared && is_free(s, node, share) != now;
            fitting.push((used_millis, later, share));
        }
    }
    match s.policy.placement_in(node.pool).devices {
        Fill::BinPack => fitting.sort_by_key(|(used, later, _)| (Reverse(*used), *later)),
        Fill::Spread => fitting.sort_by_key(|(used, later, _)| (*used, *later)),
    }
    let wanted = request.gpu.devices() as usize;
    fitting.truncate(wanted);
    fitting.sort_by_key(|(.., share)| share.gpu);
    (fitting.len() == wanted).then(|| fitting.into_iter().map(|(.., share)| share).collect())
}

/// Thousandths of a device used by running, stopping and reserved pods.
fn used_millis(s: &Session<'_>, node: &Node, gpu: u32) -> u64 {
    let of = |place: &Placement| {
        let here = is_here(s, place, node);
        let shares = place.devices.iter().filter(|share| here && share.gpu == gpu);
        shares.map(|share| share.millis).sum::<u64>()
    };
    let pods = node.pods.iter().map(|&pod| &s.cluster.pods()[pod].binding);
    pods.flat_map(|binding| binding.current.iter().chain(&binding.next)).map(of).sum()
}

/// `true` if the share would be the first of its GPU.
fn opens(node: &Node, share: DeviceShare) -> bool {
    let gpu = &node.gpus[share.gpu as usize];
    share.millis < GPU_MILLIS && !gpu.is_instance() && gpu.committed_millis == 0
}

/// Score of a node, more is better: an existing shared GPU has room, it fits at once, CPU-only
/// work keeps off GPUs, then the fullest (or emptiest).
fn score(s: &Session<'_>, pod: PodId, node: &Node) -> (bool, bool, bool, u64) {
    let request = jobs::request(s, pod);
    let millis = |gpu: &Gpu| needs_of(request.gpu, gpu);
    let wanted = request.gpu.devices() as usize;
    let has_room = |gpu: &&Gpu| {
        let fits = millis(gpu).is_some_and(|millis| gpu.free_millis(false) >= millis);
        gpu.committed_millis > 0 && fits
    };
    // Where fractions are spread, a GPU in use is no better.
    let placement = s.policy.placement_in(node.pool);
    let shared = placement.devices == Fill::BinPack
        && !matches!(request.gpu, GpuRequest::Whole(_) | GpuRequest::Mig(_))
        && node.gpus.iter().any(|g| has_room(&g));
    let free_now = |(at, gpu): &(u32, &Gpu)| {
        millis(gpu).is_some_and(|millis| is_free(s, node, DeviceShare { gpu: *at, millis }))
    };
    let fits_now = (0..).zip(&node.gpus).filter(free_now).count();
    let now = fits_now >= wanted && host_fits_now(node, request);
    let host_only = wanted == 0 && node.gpus.is_empty();
    let (free, total) = match wanted {
        0 => (node.free(false).cpu_millis, node.capacity.cpu_millis),
        _ if matches!(request.gpu, GpuRequest::Mig(_)) => {
            let own = || node.gpus.iter().filter(|gpu| millis(gpu).is_some());
            let free = own().filter(|gpu| gpu.free_millis(false) > 0).count();
            (free as u64, own().count() as u64)
        }
        _ => (u64::from(node.whole_free(false)), node.gpus.len() as u64),
    };
    let room = match placement.nodes(request.gpu) {
        Fill::BinPack => u64::MAX - free,
        // The free part, in millionths.
        Fill::Spread => free.saturating_mul(1_000_000) / total.max(1),
    };
    (shared, now, host_only, room)
}
