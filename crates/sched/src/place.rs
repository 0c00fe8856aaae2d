//! Placement of one pod. Owns: the nodes and devices that fit, and the choice of the device.
//! Source: Run:ai reference D.6, scheduling reference §11 and §12.

use std::cmp::Reverse;

use model::{
    Cluster, ConstraintsId, DeviceShare, Gpu, GpuRequest, Node, NodeId, PodId, PodRequest, fitting,
};
use smallvec::SmallVec;
use units::{GPU_MILLIS, Resources};

use model::Fill;

/// Requirements of a pod on its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodRequirements {
    pub(crate) request: PodRequest,
    pub(crate) constraints: ConstraintsId,
}

impl PodRequirements {
    /// Requirements of a pod in any node pool that its workload may use; `gpus` replaces the size
    /// of an elastic one.
    pub(crate) fn anywhere(cluster: &Cluster, pod: PodId, gpus: Option<u32>) -> Self {
        let set = cluster.pods()[pod].set as usize;
        let mut request = cluster.workload_of(pod).spec.pod_sets[set].request;
        if let Some(gpus) = gpus {
            request.gpu = GpuRequest::Whole(gpus);
        }
        Self { request, constraints: cluster.constraints_in(pod, None) }
    }
}

/// Parts of the devices of a node.
type Devices = SmallVec<[DeviceShare; 2]>;

/// The place of the pod on this node; `None` if it does not fit or is not allowed there.
pub(crate) fn on_node(
    cluster: &Cluster,
    id: NodeId,
    ask: PodRequirements,
    now: bool,
    fill: Fill,
) -> Option<model::Placement> {
    if !lets_in(cluster, id, ask, now) {
        return None;
    }
    let devices = devices(&cluster.nodes()[id], ask.request.gpu, now, fill)?;
    Some(model::Placement { node: id, devices })
}

/// `true` if the pod would get a place on this node.
pub(crate) fn fits(cluster: &Cluster, id: NodeId, ask: PodRequirements, now: bool) -> bool {
    let gpus = cluster.nodes()[id].gpus.iter().map(|gpu| (gpu, gpu.free_millis(now)));
    lets_in(cluster, id, ask, now) && fits_on(ask.request.gpu, gpus)
}

/// `true` if the pod fits on this node, GPUs aside.
fn lets_in(cluster: &Cluster, id: NodeId, ask: PodRequirements, now: bool) -> bool {
    let node = &cluster.nodes()[id];
    let host = Resources { gpu_millis: 0, ..ask.request.resources(1) };
    cluster.may_fit(id, ask.request, now)
        && cluster.allows(ask.constraints, id)
        && node.takes_one_more(now)
        && cluster.check_pods(ask.constraints, id, now).is_ok()
        && host.fits_in(Resources { gpu_millis: u64::MAX, ..node.free(now) })
}

/// The devices of this node for the pod; `None` if it does not fit.
fn devices(node: &Node, request: GpuRequest, now: bool, fill: Fill) -> Option<Devices> {
    if request.devices() == 0 {
        return Some(Devices::new());
    }
    let mut chosen = Devices::new();
    for part in request.parts() {
        let mut fitting: SmallVec<[(u64, DeviceShare); 8]> = (0..)
            .zip(&node.gpus)
            .filter_map(|(gpu, device)| {
                let millis = part.needs_of(device)?;
                let free = device.free_millis(now);
                (free >= millis).then_some((free, DeviceShare { gpu, millis }))
            })
            .collect();
        // Whole requests need all of a device, so order matters to shared ones only. An instance
        // belongs to one pod: the smallest that holds it leaves most to others.
        let is_instance = |share: &DeviceShare| node.gpus[share.gpu as usize].part.is_some();
        match fill {
            Fill::BinPack => fitting.sort_unstable_by_key(|(free, share)| (*free, share.gpu)),
            Fill::Spread => fitting.sort_unstable_by_key(|(free, share)| {
                let rank = if is_instance(share) { u64::MAX - *free } else { *free };
                (Reverse(rank), share.gpu)
            }),
        }
        let wanted = part.devices() as usize;
        if fitting.len() < wanted {
            return None;
        }
        chosen.extend(fitting.into_iter().take(wanted).map(|(_, share)| share));
    }
    Some(chosen)
}

/// `true` if a request fits on devices with these free amounts.
pub(crate) fn fits_on<'a>(
    request: GpuRequest,
    gpus: impl Iterator<Item = (&'a Gpu, u64)> + Clone,
) -> bool {
    request.parts().all(|part| {
        let fitting =
            gpus.clone().filter(|(gpu, free)| part.needs_of(gpu).is_some_and(|need| need <= *free));
        fitting.count() >= part.devices() as usize
    })
}

/// `pods`, or 1 if the pods must not be on one node.
pub(crate) fn most_pods(cluster: &Cluster, ask: PodRequirements, pods: u32) -> u64 {
    pods.min(if cluster.keep_apart(ask.constraints) { 1 } else { u32::MAX }).into()
}

/// Number of pods of this kind that a node accepts besides the present ones.
pub(crate) fn room(cluster: &Cluster, id: NodeId, ask: PodRequirements, now: bool) -> u32 {
    let node = &cluster.nodes()[id];
    if !cluster.allows(ask.constraints, id) || cluster.check_pods(ask.constraints, id, now).is_err()
    {
        return 0;
    }
    let used = if now { node.pods_committed.max(node.pods_used) } else { node.pods_committed };
    let pods = most_pods(cluster, ask, node.pods_max.saturating_sub(used));
    let free = node.gpus.iter().map(|gpu| (gpu, gpu.free_millis(now)));
    fitting(ask.request, node.free(now), pods, free)
}

/// The devices of its place that a pod keeps when reduced to `gpus`: those in service first.
pub(crate) fn kept(node: &Node, place: &model::Placement, gpus: usize) -> Devices {
    let in_service = |share: &&DeviceShare| node.gpus[share.gpu as usize].in_service;
    let (sound, others): (Vec<_>, Vec<_>) = place.devices.iter().partition(in_service);
    sound.into_iter().chain(others).take(gpus).copied().collect()
}

/// The place of an elastic pod after it is resized to `gpus` whole devices on its node: it keeps
/// devices it has; further ones are taken from those free at once.
pub(crate) fn resized(
    cluster: &Cluster,
    place: &model::Placement,
    gpus: usize,
) -> Option<model::Placement> {
    let node = &cluster.nodes()[place.node];
    let mut devices = kept(node, place, gpus);
    for (gpu, device) in (0..).zip(&node.gpus) {
        if devices.len() == gpus {
            break;
        }
        let own = place.devices.iter().any(|share| share.gpu == gpu);
        let fits = || GpuRequest::Whole(u32::try_from(gpus).unwrap_or(u32::MAX)).needs_of(device);
        if !own && device.is_whole(true) && fits().is_some() {
            devices.push(DeviceShare { gpu, millis: GPU_MILLIS });
        }
    }
    (devices.len() == gpus).then_some(model::Placement { node: place.node, devices })
}
