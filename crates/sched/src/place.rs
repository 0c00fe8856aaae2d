//! Where one pod goes. Owns: which nodes and devices fit, and which of them is taken. Source:
//! Run:ai reference D.6, scheduling reference §11 and §12.

use model::{Cluster, DeviceShare, GpuRequest, Node, NodeId, PodRequest};
use units::{GPU_MILLIS, Resources};

use crate::policy;

/// Finds a place for a pod: free at once (`now`), or free when what is being released is gone.
/// `gpus` stands in for the number of whole GPUs of an elastic pod.
pub(crate) fn find(
    cluster: &Cluster,
    request: PodRequest,
    now: bool,
    strategy: policy::Placement,
) -> Option<model::Placement> {
    if let GpuRequest::Whole(gpus @ 1..) = request.gpu {
        return find_whole(cluster, request, gpus, now, strategy);
    }
    let fits = cluster.nodes().iter().filter_map(|(id, node)| {
        let devices = devices(node, request, now)?;
        let key = score(node, request, &devices, now, strategy);
        Some((key, id, devices))
    });
    let (_, node, devices) = fits.min_by_key(|&(key, id, _)| (key, id))?;
    Some(model::Placement { node, devices: devices.into_iter().collect() })
}

/// Whole GPUs: the index already has the nodes in the order wanted.
fn find_whole(
    cluster: &Cluster,
    request: PodRequest,
    gpus: u32,
    now: bool,
    strategy: policy::Placement,
) -> Option<model::Placement> {
    let mut nodes = cluster.nodes_with_free(gpus, now);
    let fitting = |id| on_node(cluster, id, request, now);
    match strategy {
        policy::Placement::BinPack => nodes.find_map(fitting),
        policy::Placement::Spread => nodes.rev().find_map(fitting),
    }
}

/// The place the pod would get on this node; none when it does not fit.
pub(crate) fn on_node(
    cluster: &Cluster,
    node: NodeId,
    request: PodRequest,
    now: bool,
) -> Option<model::Placement> {
    let devices = devices(&cluster.nodes()[node], request, now)?;
    Some(model::Placement { node, devices: devices.into_iter().collect() })
}

/// The devices of this node the pod would get; none when it does not fit.
fn devices(node: &Node, request: PodRequest, now: bool) -> Option<Vec<DeviceShare>> {
    let host = Resources { gpu_millis: 0, ..request.resources(1) };
    if !host.fits_in(Resources { gpu_millis: u64::MAX, ..node.free(now) }) {
        return None;
    }
    let wanted = request.gpu.devices() as usize;
    if wanted == 0 {
        return Some(Vec::new());
    }
    let mut fitting: Vec<(u64, DeviceShare)> = (0..)
        .zip(&node.gpus)
        .filter_map(|(gpu, device)| {
            let millis = request.gpu.millis_on(device.memory_bytes)?;
            let free = device.free_millis(now);
            (free >= millis).then_some((free, DeviceShare { gpu, millis }))
        })
        .collect();
    // Shared requests fill up the device with the least room left; whole ones need it all.
    fitting.sort_by_key(|(free, share)| (*free, share.gpu));
    (fitting.len() >= wanted)
        .then(|| fitting.into_iter().take(wanted).map(|(_, share)| share).collect())
}

/// Order of the nodes that fit, least first: do not break a whole GPU when a shared one has
/// room, keep CPU-only pods off GPU nodes, then the fullest (or emptiest) node.
fn score(
    node: &Node,
    request: PodRequest,
    devices: &[DeviceShare],
    now: bool,
    strategy: policy::Placement,
) -> (usize, u64) {
    let free = node.free(now);
    let (first, free) = match request.gpu {
        GpuRequest::Whole(_) => (node.gpus.len().min(1), free.cpu_millis),
        GpuRequest::Share { .. } | GpuRequest::Memory { .. } => {
            let opened =
                |share: &&DeviceShare| node.gpus[share.gpu as usize].free_millis(now) == GPU_MILLIS;
            (devices.iter().filter(opened).count(), free.gpu_millis)
        }
    };
    match strategy {
        policy::Placement::BinPack => (first, free),
        policy::Placement::Spread => (first, u64::MAX - free),
    }
}

/// The place an elastic pod has after it is resized to `gpus` whole devices on its node: it
/// keeps devices it has; more come from what is free at once.
pub(crate) fn resized(
    cluster: &Cluster,
    place: &model::Placement,
    gpus: usize,
) -> Option<model::Placement> {
    let node = &cluster.nodes()[place.node];
    let mut devices = place.devices.clone();
    devices.truncate(gpus);
    for (gpu, device) in (0..).zip(&node.gpus) {
        if devices.len() == gpus {
            break;
        }
        let own = place.devices.iter().any(|share| share.gpu == gpu);
        if !own && device.free_millis(true) == GPU_MILLIS {
            devices.push(DeviceShare { gpu, millis: GPU_MILLIS });
        }
    }
    (devices.len() == gpus).then_some(model::Placement { node: place.node, devices })
}
