//! Verification of reasons and diagnoses. Owns: recomputing the numbers from the state, by other
//! means than the scheduler's.

use model::{Cluster, Node, Queue};
use reasons::diagnosis::{Diagnosis, Failing, Standing};
use reasons::{Pending, Protection, QueueNumbers};
use testkit::World;
use units::Kind;

type Truth = Result<(), String>;

fn so(is: bool, what: &str) -> Truth {
    if is { Ok(()) } else { Err(what.to_owned()) }
}

fn queue<'a>(w: &'a World, name: &str) -> &'a Queue {
    let mut queues = w.cluster.queues().iter();
    let named = |id| w.cluster.queue_name(id) == name;
    queues.find(|&(id, _)| named(id)).map(|(_, queue)| queue).expect("a known queue")
}

fn open(cluster: &Cluster) -> impl Iterator<Item = &Node> {
    cluster.nodes().iter().map(|(_, node)| node).filter(|node| node.schedulable)
}

/// GPUs of a node that no pod holds or has reserved.
fn whole_free(node: &Node) -> u64 {
    node.gpus.iter().filter(|gpu| gpu.is_whole(false)).count() as u64
}

fn numbers(w: &World, said: &QueueNumbers) -> Truth {
    let row = queue(w, &said.name);
    so(row.allocated[said.kind] == said.allocated, "what the queue holds")?;
    so(row.held()[said.kind] == said.allocated - said.lent, "what it holds beyond its requests")?;
    so(row.share.quota[said.kind] == said.quota, "its quota")
}

fn none_is_large(w: &World, request: model::GpuRequest, demand: units::Resources) -> Truth {
    let large = |node: &&Node| {
        let fits = |part: model::GpuRequest| {
            let fitting = node.gpus.iter().filter(|gpu| part.needs_of_sound(gpu).is_some());
            fitting.count() >= part.devices() as usize
        };
        request.parts().all(fits)
            && node.capacity.cpu_millis >= demand.cpu_millis
            && node.capacity.memory_bytes >= demand.memory_bytes
    };
    // Taints and labels exclude some.
    so(open(&w.cluster).filter(large).count() < 3, "that no node is large enough")
}

fn kept_away(w: &World, nodes: usize, from: usize) -> Truth {
    so(nodes <= open(&w.cluster).count(), "the nodes that it may go to")?;
    so(from > 0 && from <= nodes, "the nodes that pods keep it from")
}

fn no_instance_free(w: &World, request: &model::MigRequest, nodes: usize, with: usize) -> Truth {
    so(with <= nodes && with > 0, "the nodes that have the instances")?;
    so(nodes <= open(&w.cluster).count(), "the number of nodes")?;
    let free = |node: &&Node| {
        request.iter().all(|(profile, count)| {
            let own = node.gpus.iter().filter(|gpu| gpu.profile() == Some(profile));
            own.filter(|gpu| gpu.in_service && gpu.committed_millis == 0).count() >= count.into()
        })
    };
    // Taints and labels exclude some.
    so(open(&w.cluster).filter(free).count() < 3, "that none is free")
}

fn no_share_free(w: &World, devices: u32, millis: u64, free_millis_max: u64) -> Truth {
    let gpus = open(&w.cluster).flat_map(|node| &node.gpus).filter(|gpu| gpu.mig.is_none());
    let most = gpus.map(|gpu| gpu.unused_millis(false)).max().unwrap_or(0);
    so(free_millis_max <= most, "the largest share")?;
    so(millis > free_millis_max || devices > 1, "that no share is large enough")
}

fn no_part_free(
    w: &World,
    request: model::GpuRequest,
    instances: usize,
    large: usize,
    nodes: usize,
) -> Truth {
    so(0 < large && large <= instances, "the instances that hold it")?;
    so(nodes <= open(&w.cluster).count(), "the number of nodes")?;
    let all = || open(&w.cluster).flat_map(|node| &node.gpus).filter(|gpu| gpu.part.is_some());
    so(instances <= all().count(), "the number of instances")?;
    let holding = || all().filter(|gpu| request.needs_of_sound(gpu).is_some());
    so(large <= holding().count(), "the number of those that hold it")?;
    // Taints and labels exclude some nodes.
    let free = holding().filter(|gpu| gpu.in_service && gpu.committed_millis == 0).count();
    so(free <= holding().count() - large, "that none is free")
}

fn out_of_service(w: &World, gpus: usize, out: usize, (node, gpu): &(String, u32)) -> Truth {
    let is_out = |row: &Node| !row.gpus[*gpu as usize].in_service;
    let mut nodes = open(&w.cluster).filter(|row| row.name == *node);
    so(nodes.next().is_some_and(is_out), "the first that is out of service")?;
    let all = open(&w.cluster).flat_map(|node| &node.gpus).filter(|gpu| !gpu.in_service);
    so(out <= gpus && out <= all.count(), "the number of those out of service")
}

fn over_limit(w: &World, name: &str, kind: Kind, [limit, allocated, asked]: [u64; 3]) -> Truth {
    let row = queue(w, name);
    so(row.allocated[kind] == allocated, "what the queue holds")?;
    so(row.share.limit[kind] == limit, "its limit")?;
    so(allocated + asked > limit, "that it would pass the limit")
}

/// Verifies the claim of a reason.
pub(crate) fn of_reason(w: &World, reason: &Pending) -> Truth {
    match reason {
        Pending::NotEnoughGpus { gpus, nodes, free_on_one_node_max, free_total } => {
            so(gpus > free_on_one_node_max, "that they do not fit on one node")?;
            so(*nodes <= open(&w.cluster).count(), "the number of nodes")?;
            let all: u64 = open(&w.cluster).map(whole_free).sum();
            so(*free_total <= all, "the GPUs that are free")?;
            so(u64::from(*free_on_one_node_max) <= *free_total, "the most on one node")
        }
        Pending::NoGpuShareFree { devices, millis, free_millis_max } => {
            no_share_free(w, *devices, *millis, *free_millis_max)
        }
        Pending::NotEnoughCpu { cpu_millis: need, free_millis_max: free }
        | Pending::NotEnoughMemory { memory_bytes: need, free_bytes_max: free } => {
            so(need > free, "that cores or memory are too little")
        }
        Pending::NoMigInstanceFree { request, nodes, with } => {
            no_instance_free(w, request, *nodes, *with)
        }
        Pending::NoInstanceForPart { request, instances, large, nodes } => {
            no_part_free(w, *request, *instances, *large, *nodes)
        }
        Pending::LargerThanAnyNode { request, demand, .. } => none_is_large(w, *request, *demand),
        Pending::NodesRuledOut { nodes, cordoned, selector, affinity, taint, pool } => {
            so(*nodes == w.cluster.nodes().len(), "the number of nodes")?;
            let closed = w.cluster.nodes().len() - open(&w.cluster).count();
            so(*cordoned == closed, "the closed nodes")?;
            so(cordoned + selector + affinity + taint + pool <= *nodes, "the nodes ruled out")
        }
        Pending::KeptAwayByPods { nodes, affinity, anti_affinity, repelled } => {
            kept_away(w, *nodes, affinity + anti_affinity + repelled)
        }
        Pending::GpusOutOfService { gpus, out, first } => out_of_service(w, *gpus, *out, first),
        Pending::NoTopologyDomain(best) => so(best.room < best.pods, "that no domain has room"),
        Pending::OverLimit { queue, kind, limit, allocated, requested } => {
            over_limit(w, queue, *kind, [*limit, *allocated, *requested])
        }
        Pending::NonPreemptibleOverQuota { queue: name, kind, quota, allocated, requested } => {
            let row = queue(w, name);
            so(row.allocated_non_preemptible[*kind] == *allocated, "what cannot be preempted")?;
            so(row.share.quota[*kind] == *quota, "its quota")?;
            so(allocated + requested > *quota, "that it would pass the quota")
        }
        Pending::NotEntitledToMore { queue: said, requested, .. } => {
            numbers(w, said)?;
            so(said.allocated - said.lent + requested > said.fair_share, "that it has its share")
        }
        Pending::NotCounted { left_out, requested, .. } => {
            so((1..=*requested).contains(left_out), "what does not count")
        }
        Pending::Protected { kind, by, .. } => protects(w, *kind, by),
        Pending::InPools { first, others } => so(*others > 0, "others").and(of_reason(w, first)),
        Pending::WaitingForRelease { holders, .. } => {
            let releasing = |name: &String| {
                w.cluster.pods().iter().any(|(id, pod)| {
                    pod.binding.releasing && w.cluster.workload_of(id).spec.name == *name
                })
            };
            so(holders.iter().all(releasing), "who is being stopped")
        }
        Pending::Gated { gated, pods } => so(*gated > 0 && gated <= pods, "that pods are held"),
        Pending::BackingOff { until } => so(*until > w.now, "that it has to wait"),
        Pending::BehindReservation { holder, since, gpu_millis, .. } => {
            behind(w, holder.id, w.now.since_ms(*since), *gpu_millis)
        }
        Pending::GangIncomplete { .. } | Pending::SearchCutShort { .. } => Ok(()),
    }
}

/// Verifies that a rule protects other work.
fn protects(w: &World, kind: Kind, by: &Protection) -> Truth {
    let all: u64 = w.cluster.nodes().iter().map(|(_, node)| node.committed[kind]).sum();
    match by {
        Protection::OwnWork { queue, .. } | Protection::Above { queue } => numbers(w, queue),
        Protection::WithinShare { holder } => {
            numbers(w, holder)?;
            let held = holder.allocated - holder.lent;
            so(held <= holder.fair_share.max(holder.quota), "what the holder keeps")
        }
        Protection::NotPreemptible { held }
        | Protection::RunTime { held }
        | Protection::NoWay { held } => so(*held <= all, "what others hold"),
        Protection::Delay { delay_ms } => so(*delay_ms > 0, "that it has to wait"),
    }
}

/// Verifies that room is reserved for another workload.
fn behind(w: &World, holder: model::WorkloadId, waited_ms: u64, gpu_millis: u64) -> Truth {
    let row = &w.cluster.workloads()[holder];
    so(w.cluster.waiting().any(|id| id == holder), "that its holder waits")?;
    so(waited_ms >= w.policy.reserve_after_ms, "that it has waited long enough")?;
    let asked = row.sets().map(|(set, state)| u64::from(set.pods) * state.demand.gpu_millis);
    so(gpu_millis <= asked.sum(), "what its holder needs")
}

/// Verifies the claims of a diagnosis about nodes and holders.
pub(crate) fn of_diagnosis(w: &World, diagnosis: &Diagnosis) -> Truth {
    for part in &diagnosis.parts {
        so(part.placeable <= part.pods, "the pods that find a place")?;
        let nodes: u32 = part.classes.iter().map(|class| class.nodes).sum();
        so(nodes as usize == w.cluster.nodes().len(), "the number of nodes")?;
        for class in &part.classes {
            let failing: u32 = class.failing.iter().map(|failing| failing.nodes).sum();
            so(failing + class.room == class.nodes, "the nodes that fail and those that do not")?;
            let short = |failing: &Failing| failing.needed == 0 || failing.needed > failing.most;
            so(class.failing.iter().all(short), "that the closest node has too little")?;
        }
    }
    diagnosis.in_pools.iter().try_for_each(|reason| of_reason(w, reason))?;
    for holding in &diagnosis.holders.queues {
        numbers(w, &holding.queue)?;
        so(holding.held <= holding.queue.allocated, "what a queue holds on these nodes")?;
    }
    for holder in &diagnosis.holders.workloads {
        let spec = &w.cluster.workloads()[holder.workload.id].spec;
        so(spec.preemptible || holder.standing == Standing::NotPreemptible, "what is preemptible")?;
        let pods = w.cluster.workloads()[holder.workload.id].pods.iter();
        let places = pods.filter_map(|&pod| {
            let place = w.cluster.pods()[pod].binding.effective()?;
            Some(w.cluster.amounts(pod, place)[holder.kind])
        });
        so(holder.held <= places.sum(), "what a workload holds")?;
    }
    so(diagnosis.complete, "that everything was tried on so small a cluster")
}

/// `true` if more room is all that a workload with this reason needs.
pub(crate) fn lacks_only_room(reason: &Pending) -> bool {
    match reason {
        Pending::NotEnoughGpus { .. }
        | Pending::NoGpuShareFree { .. }
        | Pending::NoInstanceForPart { .. }
        | Pending::NotEnoughCpu { .. }
        | Pending::NotEnoughMemory { .. }
        | Pending::NodesRuledOut { .. } => true,
        Pending::NotEntitledToMore { queue, .. } => queue.kind == Kind::Gpu,
        Pending::InPools { first, .. } => lacks_only_room(first),
        Pending::GangIncomplete { pods_min, pods, .. } => pods >= pods_min,
        _ => false,
    }
}

/// `true` if too few pods are left to start together.
pub(crate) const fn is_torn(reason: &Pending) -> bool {
    matches!(reason, Pending::GangIncomplete { pods_min, pods, .. } if *pods < *pods_min)
}
