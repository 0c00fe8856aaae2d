//! Nodes on which a pod does not fit. Owns: the first obstacle on each node, and the counts by
//! classes of equal nodes. Changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    Cluster, Constraints, Effect, Gpu, GpuRequest, MigProfile, Mismatch, Node, NodeId, PodId,
    PodMismatch, Taint, WorkloadId,
};

use crate::place::{self, PodRequirements};
use crate::session::Session;
use model::Fill;
use reasons::diagnosis::{Failing, NodeClass, Obstacle, Part};

/// Maximum number of node classes that are listed; the rest is summed.
const CLASSES_MAX: usize = 8;

/// Properties that the nodes of a class share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    gpus: Vec<(u64, Option<MigProfile>, Option<u64>)>,
    cpu_millis: u64,
    memory_bytes: u64,
    labels: Vec<(String, String)>,
    taints: Vec<Taint>,
}

/// The pods to place next, by pod set, with the node classes for each.
pub(super) fn parts(s: &mut Session<'_>, id: WorkloadId) -> Vec<Part> {
    let pods = s.next_pods(id);
    let mut counts: BTreeMap<u32, (u32, u32, PodRequirements)> = BTreeMap::new();
    for &pod in &pods {
        let ask = PodRequirements::anywhere(s.cluster, pod, None);
        let entry = counts.entry(s.cluster.pods()[pod].set).or_insert((0, 0, ask));
        entry.0 += 1;
    }
    let asks: Vec<_> = counts.iter().map(|(&set, &(.., ask))| (set, ask)).collect();
    let classes: BTreeMap<_, _> =
        asks.into_iter().map(|(set, ask)| (set, classes(s.cluster, ask))).collect();
    for pod in s.fitting_one_by_one(&pods) {
        counts.entry(s.cluster.pods()[pod].set).and_modify(|entry| entry.1 += 1);
    }
    let sets = &s.cluster.workloads()[id].spec.pod_sets;
    let parts =
        counts.into_iter().zip(classes).map(|((set, (pods, placeable, _)), (_, classes))| Part {
            set: sets[set as usize].name.clone(),
            pods,
            placeable,
            classes,
        });
    parts.collect()
}

impl Session<'_> {
    /// The pods that find a place one after the other, now or after stopping pods have terminated.
    pub(crate) fn fitting_one_by_one(&mut self, pods: &[PodId]) -> Vec<PodId> {
        let start = self.cluster.checkpoint();
        let mut fitting = Vec::new();
        for &pod in pods {
            let ask = PodRequirements::anywhere(self.cluster, pod, None);
            if let Some(to) = self.find(ask, false) {
                self.set_target(pod, Some(to), false);
                fitting.push(pod);
            }
        }
        self.cluster.rollback(start);
        fitting
    }
}

/// The classes of nodes for a pod: the largest first, the small ones summed in the last entry.
fn classes(cluster: &Cluster, ask: PodRequirements) -> Vec<NodeClass> {
    let constraints = cluster.constraints(ask.constraints);
    let asked_about = labels_asked_about(constraints);
    let mut alike: BTreeMap<Key, Vec<NodeId>> = BTreeMap::new();
    for (id, node) in cluster.nodes().iter() {
        alike.entry(key(node, &asked_about)).or_default().push(id);
    }
    let mut groups: Vec<_> = alike.into_iter().collect();
    groups.sort_by_key(|(_, nodes)| (Reverse(nodes.len()), nodes[0]));
    let rest = if groups.len() > CLASSES_MAX { groups.split_off(CLASSES_MAX - 1) } else { vec![] };
    let single = groups.into_iter().map(|(key, nodes)| class(cluster, ask, key, &nodes, 1));
    let mut classes: Vec<_> = single.collect();
    let summed = u32::try_from(rest.len()).unwrap_or(u32::MAX);
    let nodes: Vec<_> = rest.iter().flat_map(|(_, nodes)| nodes).copied().collect();
    if let Some((key, _)) = rest.into_iter().next() {
        classes.push(class(cluster, ask, key, &nodes, summed));
    }
    classes
}

fn labels_asked_about(constraints: &Constraints) -> BTreeSet<&str> {
    let terms = constraints.required.iter().flatten().map(|requirement| &requirement.key);
    let domains = constraints.pod_affinity.iter().map(|term| &term.topology_key);
    constraints.selector.keys().chain(terms).chain(domains).map(String::as_str).collect()
}

fn key(node: &Node, asked_about: &BTreeSet<&str>) -> Key {
    let kind = |gpu: &Gpu| (gpu.memory_bytes, gpu.profile(), gpu.part.map(|part| part.millis));
    let mut gpus: Vec<_> = node.gpus.iter().map(kind).collect();
    gpus.sort_unstable();
    let labels = node.labels.iter().filter(|(key, _)| asked_about.contains(key.as_str()));
    let hard = node.taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule);
    Key {
        gpus,
        cpu_millis: node.capacity.cpu_millis,
        memory_bytes: node.capacity.memory_bytes,
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        taints: hard.cloned().collect(),
    }
}

fn class(
    cluster: &Cluster,
    ask: PodRequirements,
    mut key: Key,
    nodes: &[NodeId],
    classes: u32,
) -> NodeClass {
    let mut room = 0;
    let mut failing: BTreeMap<Obstacle, Failing> = BTreeMap::new();
    for &id in nodes {
        let Some((obstacle, needed, most)) = obstacle(cluster, ask, id) else {
            room += 1;
            continue;
        };
        let name = || cluster.nodes()[id].name.clone();
        let entry = failing.entry(obstacle).or_insert_with(|| Failing {
            obstacle,
            nodes: 0,
            needed,
            most,
            closest: name(),
        });
        entry.nodes += 1;
        if most > entry.most {
            (entry.needed, entry.most, entry.closest) = (needed, most, name());
        }
    }
    key.taints.retain(|taint| !cluster.constraints(ask.constraints).tolerates(taint));
    let mut failing: Vec<_> = failing.into_values().collect();
    failing.sort_by_key(|failing| (Reverse(failing.nodes), failing.obstacle));
    let first = &cluster.nodes()[nodes[0]];
    let mut mig: BTreeMap<MigProfile, u32> = BTreeMap::new();
    for profile in key.gpus.iter().filter_map(|&(_, profile, _)| profile) {
        *mig.entry(profile).or_default() += 1;
    }
    let mut parts: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    for (bytes, _, part) in &key.gpus {
        part.iter().for_each(|&millis| *parts.entry((millis, *bytes)).or_default() += 1);
    }
    NodeClass {
        classes,
        nodes: u32::try_from(nodes.len()).unwrap_or(u32::MAX),
        like: first.name.clone(),
        gpus: u32::try_from(first.gpus.len()).unwrap_or(u32::MAX),
        mig: mig.into_iter().collect(),
        parts: parts.into_iter().map(|((millis, bytes), count)| (millis, bytes, count)).collect(),
        gpu_memory_bytes: key.gpus.last().map_or(0, |&(bytes, ..)| bytes),
        capacity: first.capacity,
        labels: key.labels,
        taints: if classes == 1 { key.taints } else { Vec::new() },
        room,
        failing,
    }
}

/// The first obstacle to a pod on a node, with the amount needed and the amount available; `None`
/// if the pod fits.
fn obstacle(cluster: &Cluster, ask: PodRequirements, id: NodeId) -> Option<(Obstacle, u64, u64)> {
    if place::on_node(cluster, id, ask, false, Fill::BinPack).is_some() {
        return None;
    }
    let node = &cluster.nodes()[id];
    if !node.schedulable {
        return Some((Obstacle::Cordoned, 0, 0));
    }
    match cluster.constraints(ask.constraints).check(&node.labels, &node.taints) {
        Err(Mismatch::Selector) => return Some((Obstacle::Selector, 0, 0)),
        Err(Mismatch::Affinity) => return Some((Obstacle::Affinity, 0, 0)),
        Err(Mismatch::Pool) => return Some((Obstacle::Pool, 0, 0)),
        Err(Mismatch::Taint) => return Some((Obstacle::Taint, 0, 0)),
        Err(Mismatch::Cordoned) => return Some((Obstacle::Cordoned, 0, 0)),
        Ok(()) => {}
    }
    let alone = |obstacle| Some((obstacle, 0, 0));
    match cluster.check_pods(ask.constraints, id, false) {
        Err(PodMismatch::Affinity) => return alone(Obstacle::PodAffinity),
        Err(PodMismatch::AntiAffinity) => return alone(Obstacle::PodAntiAffinity),
        Err(PodMismatch::Repelled) => return alone(Obstacle::Repelled),
        Ok(()) => {}
    }
    let short = |needed: u64, most: u64| (needed > most).then_some((needed, most));
    let tests = [
        (Obstacle::Gpus, too_few_gpus(node, ask.request.gpu)),
        (Obstacle::MigInstances, too_few_instances(node, ask.request.gpu, |_, _| true)),
        (Obstacle::GpuMemory, too_little_gpu_memory(node, ask.request.gpu)),
        (Obstacle::Cpu, short(ask.request.cpu_millis, node.capacity.cpu_millis)),
        (Obstacle::Memory, short(ask.request.memory_bytes, node.capacity.memory_bytes)),
        (Obstacle::InService, too_few_in_service(node, ask.request.gpu)),
        (Obstacle::FreeGpus, too_few_free(node, ask.request.gpu)),
        (
            Obstacle::FreeMigInstances,
            too_few_instances(node, ask.request.gpu, |gpu, need| need <= gpu.free_millis(false)),
        ),
        (Obstacle::FreeShare, too_small_share(node, ask.request.gpu)),
        (Obstacle::FreeCpu, short(ask.request.cpu_millis, node.free(false).cpu_millis)),
        (Obstacle::FreeMemory, short(ask.request.memory_bytes, node.free(false).memory_bytes)),
        (Obstacle::Pods, (!node.takes_one_more(false)).then_some((0, 0))),
    ];
    let first = tests.into_iter().find_map(|(obstacle, found)| Some((obstacle, found?)));
    let (obstacle, (needed, most)) = first.unwrap_or((Obstacle::Other, (0, 0)));
    Some((obstacle, needed, most))
}

fn too_few_gpus(node: &Node, request: GpuRequest) -> Option<(u64, u64)> {
    if matches!(request, GpuRequest::Mig(_)) || gives_parts(node) {
        return None;
    }
    let (needed, gpus) = (u64::from(request.devices()), node.gpus.iter());
    let has = gpus.filter(|gpu| gpu.mig.is_none()).count() as u64;
    (has < needed).then_some((needed, has))
}

/// `true` if parts of its GPUs are MIG instances.
fn gives_parts(node: &Node) -> bool {
    node.gpus.iter().any(|gpu| gpu.part.is_some())
}

/// Needed and present instances of the first profile that is short; `None` if none is.
fn too_few_instances(
    node: &Node,
    request: GpuRequest,
    will_do: impl Fn(&Gpu, u64) -> bool,
) -> Option<(u64, u64)> {
    if !matches!(request, GpuRequest::Mig(_)) && !gives_parts(node) {
        return None;
    }
    request.parts().find_map(|part| {
        let fits = |gpu: &&Gpu| part.needs_of_sound(gpu).is_some_and(|need| will_do(gpu, need));
        let (needed, has) = (u64::from(part.devices()), node.gpus.iter().filter(fits).count());
        (needed > has as u64).then_some((needed, has as u64))
    })
}

fn too_little_gpu_memory(node: &Node, request: GpuRequest) -> Option<(u64, u64)> {
    let GpuRequest::Memory { devices, bytes } = request else { return None };
    let whole = node.gpus.iter().filter(|gpu| !gpu.is_instance());
    let mut sizes: Vec<_> = whole.map(|gpu| gpu.memory_bytes).collect();
    sizes.sort_unstable_by_key(|&bytes| Reverse(bytes));
    let least = *sizes.get((devices as usize).checked_sub(1)?)?;
    (least < bytes).then_some((bytes, least))
}

/// Needed and present devices of the first profile that is short in service; `None` if none is.
fn too_few_in_service(node: &Node, request: GpuRequest) -> Option<(u64, u64)> {
    request.parts().find_map(|part| {
        let fitting = node.gpus.iter().filter(|gpu| part.needs_of(gpu).is_some());
        let (needed, has) = (u64::from(part.devices()), fitting.count() as u64);
        (has < needed).then_some((needed, has))
    })
}

fn too_few_free(node: &Node, request: GpuRequest) -> Option<(u64, u64)> {
    let GpuRequest::Whole(needed) = request else { return None };
    if gives_parts(node) {
        return None;
    }
    let free = node.whole_free(false);
    (free < needed).then_some((u64::from(needed), u64::from(free)))
}

/// Needed and free thousandths of the last device to be found.
fn too_small_share(node: &Node, request: GpuRequest) -> Option<(u64, u64)> {
    if matches!(request, GpuRequest::Whole(_) | GpuRequest::Mig(_)) {
        return None;
    }
    let shares = node.gpus.iter().filter_map(|gpu| {
        let needed = request.needs_of_sound(gpu)?;
        let free = gpu.free_millis(false);
        Some((needed.saturating_sub(free), needed, free))
    });
    let mut shares: Vec<_> = shares.collect();
    shares.sort_unstable();
    let &(lacks, needed, free) = shares.get((request.devices() as usize).checked_sub(1)?)?;
    (lacks > 0).then_some((needed, free))
}
