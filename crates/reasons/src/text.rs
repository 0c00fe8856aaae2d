//! The one sentence of each reason. Owns: wording. Lower-case fragments with numbers, and
//! the remedy where there is one.

use std::fmt;

use model::{GpuRequest, MigRequest};
use units::{Kind, Resources, counted, format_bytes, format_millis, gpus};

use super::{CommonGpus, NoDomain, Pending, Protection, QueueNumbers, WorkloadRef};

fn amount(millis: u64) -> String {
    if millis == u64::MAX { "unlimited".to_owned() } else { format_millis(millis) }
}

impl fmt::Display for WorkloadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.name)
    }
}

impl fmt::Display for QueueNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "holds")
    }
}

impl QueueNumbers {
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, holds: &str) -> fmt::Result {
        let Self { name, kind, allocated, lent, quota, fair_share, .. } = self;
        write!(f, "{name} {holds} {}", of(*kind, *allocated))?;
        if *lent > 0 {
            write!(f, ", {} of them beyond its requests", number(*kind, *lent))?;
        }
        let (quota, fair_share) = (number(*kind, *quota), number(*kind, *fair_share));
        write!(f, " (quota {quota}, {} {fair_share})", self.share_name())
    }
}

const BACKING_OFF: &str = "it failed; the next try waits for the end of the back-off";

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LargerThanAnyNode { request, part_max: Some(largest), .. } => {
                larger_than_any_instance(f, *request, *largest)
            }
            Self::LargerThanAnyNode { request, demand, gpus_max, largest, nodes, .. } => {
                larger_than_any_node(f, *request, *demand, *gpus_max, *largest, *nodes)
            }
            Self::NotEnoughGpus { gpus, nodes, free_on_one_node_max, free_total } => {
                not_enough_gpus(f, *gpus, *nodes, *free_on_one_node_max, *free_total)
            }
            Self::NoGpuShareFree { devices, millis, free_millis_max } => {
                no_gpu_share_free(f, *devices, *millis, *free_millis_max)
            }
            Self::NoMigInstanceFree { request: of, nodes, with } => {
                mig_in_use(f, of, *nodes, *with)
            }
            Self::NoInstanceForPart { .. } => no_instance_for_part(f, self),
            Self::NotEnoughCpu { cpu_millis, free_millis_max } => {
                not_enough_cpu(f, *cpu_millis, *free_millis_max)
            }
            Self::NotEnoughMemory { memory_bytes, free_bytes_max } => {
                not_enough_memory(f, *memory_bytes, *free_bytes_max)
            }
            Self::GangIncomplete { pods_min, pods, fitting, near } => {
                gang_incomplete(f, [*pods_min, *pods, *fitting], near.as_deref())
            }
            Self::NodesRuledOut { nodes, cordoned, selector, affinity, taint, pool } => {
                nodes_ruled_out(f, *nodes, [*cordoned, *selector, *affinity, *taint, *pool])
            }
            Self::NoTopologyDomain(best) => write!(f, "{best}"),
            Self::KeptAwayByPods { nodes, affinity, anti_affinity, repelled } => {
                kept_away_by_pods(f, *nodes, [*affinity, *anti_affinity, *repelled])
            }
            Self::GpusOutOfService { gpus, out, first: (node, gpu) } => {
                out_of_service(f, *gpus, *out, node, *gpu)
            }
            Self::OverLimit { queue, kind, limit, allocated, requested } => write!(
                f,
                "{queue} may hold {} and holds {}; {} more would pass its limit",
                of(*kind, *limit),
                number(*kind, *allocated),
                number(*kind, *requested)
            ),
            Self::NonPreemptibleOverQuota { queue, kind, quota, allocated, requested } => {
                non_preemptible_over_quota(f, queue, *kind, [*quota, *allocated, *requested])
            }
            Self::NotEntitledToMore { queue, requested, common } => {
                not_entitled_to_more(f, queue, *requested, common.as_deref())
            }
            Self::NotCounted { .. } => not_counted(f, self),
            Self::Protected { kind, requested, by } => protected(f, *kind, *requested, by),
            Self::InPools { first, others } => in_pools(f, first, *others),
            Self::WaitingForRelease { node, holders } => waiting_for_release(f, node, holders),
            Self::Gated { gated, pods } => held_back(f, *gated, *pods),
            Self::BackingOff { .. } => f.write_str(BACKING_OFF),
            Self::BehindReservation { holder, gpu_millis, .. } => {
                behind_reservation(f, holder, *gpu_millis)
            }
            Self::SearchCutShort { trials } => {
                write!(
                    f,
                    "the search stopped after {trials} trial placements and goes on next time"
                )
            }
        }
    }
}

fn held_back(f: &mut fmt::Formatter<'_>, gated: usize, pods: usize) -> fmt::Result {
    match (gated, pods) {
        (_, 1) => f.write_str("its pod is held back by a scheduling gate"),
        _ if gated == pods => write!(f, "its {pods} pods are held back by a scheduling gate"),
        (1, _) => write!(f, "1 of its {pods} pods is held back by a scheduling gate"),
        _ => write!(f, "{gated} of its {pods} pods are held back by a scheduling gate"),
    }
}

fn in_pools(f: &mut fmt::Formatter<'_>, first: &Pending, others: usize) -> fmt::Result {
    write!(f, "{first}; likewise in {others} more node pools")
}

fn beside_gpus(f: &mut fmt::Formatter<'_>, need: &str, free: &str) -> fmt::Result {
    write!(f, "needs {need} beside its GPUs; at most {free} are free on a node that has them")
}

fn not_enough_gpus(
    f: &mut fmt::Formatter<'_>,
    need: u32,
    nodes: usize,
    free_on_one_node_max: u32,
    free_total: u64,
) -> fmt::Result {
    let need = gpus(u64::from(need) * units::GPU_MILLIS);
    let (nodes, are) = (counted(nodes, "node"), if free_total == 1 { "is" } else { "are" });
    match free_total {
        0 => write!(f, "needs {need}; no GPU of {nodes} is free"),
        _ => write!(
            f,
            "needs {need} on one node; {free_total} {are} free on {nodes}, at most \
             {free_on_one_node_max} on one"
        ),
    }
}

fn no_gpu_share_free(
    f: &mut fmt::Formatter<'_>,
    devices: u32,
    millis: u64,
    free_millis_max: u64,
) -> fmt::Result {
    let (millis, most) = (format_millis(millis), format_millis(free_millis_max));
    match devices {
        1 => write!(f, "needs {millis} of a GPU; the largest free share of a GPU is {most}"),
        _ => write!(
            f,
            "needs {millis} of {devices} GPUs of one node each; at most {most} is free on so many"
        ),
    }
}

fn not_counted(f: &mut fmt::Formatter<'_>, reason: &Pending) -> fmt::Result {
    let Pending::NotCounted { queue, kind, left_out, requested, fitting, sets, pods } = reason
    else {
        return Ok(());
    };
    let share = format!("for the fair share of {queue}");
    if *fitting == 0 && *pods > 0 {
        return write!(f, "cannot fit even on an empty cluster, so it does not count {share}");
    }
    let (verb, count) = match (fitting < pods, left_out == requested) {
        (false, true) => {
            return write!(
                f,
                "cannot start even on an empty cluster, so it does not count {share}"
            );
        }
        (true, true) => ("counts", "none".to_owned()),
        (_, false) => ("count", number(*kind, requested.saturating_sub(*left_out))),
    };
    if fitting < pods {
        let bound = if *sets > 1 { "at most " } else { "" };
        write!(f, "{bound}{fitting} of {} fit on an empty cluster, ", counted(*pods, "pod"))?;
    } else {
        write!(f, "cannot have more even on an empty cluster, ")?;
    }
    write!(f, "so {count} of its {} {verb} {share}", of(*kind, *requested))
}

fn protected(
    f: &mut fmt::Formatter<'_>,
    kind: Kind,
    requested: u64,
    by: &Protection,
) -> fmt::Result {
    let (what, of) = (of(kind, requested), |amount: &u64| of(kind, *amount));
    match by {
        Protection::Delay { delay_ms } => {
            let s = delay_ms / 1000;
            write!(f, "others are stopped for it only after its preemption delay of {s} s")
        }
        Protection::OwnWork { queue, priority } => write!(
            f,
            "nothing is stopped for {what}: only work of its own project could give way, and none \
             of that has a priority below {priority}; {queue}"
        ),
        Protection::NotPreemptible { held } => write!(
            f,
            "nothing is stopped for {what}: other projects hold {}, which cannot be preempted",
            of(held)
        ),
        Protection::WithinShare { holder } => write!(
            f,
            "nothing is stopped for {what}: no other project holds more than it is entitled to; \
             {holder}"
        ),
        Protection::Above { queue } => {
            write!(f, "nothing is stopped for {what}: more than the fair share above it; {queue}")
        }
        Protection::RunTime { held } => write!(
            f,
            "nothing is stopped for {what}: other projects hold {} beyond their share, in \
             guaranteed run time",
            of(held)
        ),
        Protection::NoWay { held } => write!(
            f,
            "nothing is stopped for {what}: other projects hold {} beyond their share, and no way \
             was found to make room with that",
            of(held)
        ),
    }
}

fn waiting_for_release(f: &mut fmt::Formatter<'_>, node: &str, holders: &[String]) -> fmt::Result {
    if holders.is_empty() {
        return write!(f, "starts on {node} as soon as its last run has stopped");
    }
    write!(f, "has a place on {node}, which is being freed by {}", holders.join(", "))
}

fn gang_incomplete(
    f: &mut fmt::Formatter<'_>,
    [pods_min, pods, fitting]: [u32; 3],
    near: Option<&str>,
) -> fmt::Result {
    let near = match near {
        None => String::new(),
        Some(key) if model::is_host(key) => " on one node".to_owned(),
        Some(key) => format!(" on nodes with the same {key}"),
    };
    match pods_min {
        _ if pods < pods_min => {
            let are = if pods == 1 { "is" } else { "are" };
            write!(f, "{pods_min} pods must run together, and only {pods} {are} there")
        }
        1 => write!(f, "no node takes another pod"),
        _ if fitting >= pods_min => {
            write!(f, "{pods_min} pods must start together{near}, and no places for all were found")
        }
        _ => {
            let fit = match fitting {
                0 => "none fits".to_owned(),
                1 => "1 fits".to_owned(),
                _ => format!("{fitting} fit"),
            };
            write!(f, "{pods_min} pods must start together{near}; {fit} at the moment")
        }
    }
}

fn not_enough_cpu(f: &mut fmt::Formatter<'_>, cpu_millis: u64, free: u64) -> fmt::Result {
    let (need, free) = (format_millis(cpu_millis), format_millis(free));
    let plural = if cpu_millis == 1000 { "" } else { "s" };
    beside_gpus(f, &format!("{need} CPU core{plural}"), &free)
}

fn not_enough_memory(f: &mut fmt::Formatter<'_>, memory_bytes: u64, free: u64) -> fmt::Result {
    let (need, free) = (format_bytes(memory_bytes), format_bytes(free));
    beside_gpus(f, &format!("{need} of memory"), &free)
}

fn not_entitled_to_more(
    f: &mut fmt::Formatter<'_>,
    queue: &QueueNumbers,
    requested: u64,
    common: Option<&CommonGpus>,
) -> fmt::Result {
    let QueueNumbers { name, kind, allocated, lent, quota, fair_share, .. } = queue;
    let held = allocated.saturating_sub(*lent);
    if held.saturating_add(requested) > *fair_share {
        write!(
            f,
            "nothing is taken from others for {name}: {} + {} would exceed its {} of {} (quota {})",
            number(*kind, held),
            of(*kind, requested),
            queue.share_name(),
            number(*kind, *fair_share),
            number(*kind, *quota)
        )?;
        if *lent > 0 {
            write!(f, "; it holds {} beyond its requests", of(*kind, *lent))?;
        }
        if queue.is_claim && held < *fair_share && held + requested <= *quota {
            f.write_str("; work larger than a claim is served by turn")?;
        }
    } else {
        write!(f, "nothing is taken from others for {}: {queue}", of(*kind, requested))?;
    }
    common.map_or(Ok(()), |common| write!(f, "; {common}"))
}

impl fmt::Display for CommonGpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queues, others, gpu_millis, node, nodes } = self;
        let more = match nodes - 1 {
            0 => String::new(),
            1 => " and 1 more node".to_owned(),
            more => format!(" and {more} more nodes"),
        };
        let gpus = format!("the {} of {node}{more}", of(Kind::Gpu, *gpu_millis));
        let who = match (queues.as_slice(), others) {
            ([] | [_], 0) => return write!(f, "work like this can use only {gpus}"),
            ([rest @ .., last], 0) => format!("{} and {last}", rest.join(", ")),
            (all, 1) => format!("{} and 1 other", all.join(", ")),
            (all, _) => format!("{} and {others} others", all.join(", ")),
        };
        write!(f, "{who} share {gpus}: work like this can use no others")
    }
}

impl fmt::Display for NoDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topology, level, part, domains, best, room, pods, bound } = self;
        let of = if part.is_empty() { String::new() } else { format!(" of {part}") };
        if best.is_empty() {
            write!(f, "no node has every label of topology {topology}, or none in one {level}")
        } else if *bound {
            write!(
                f,
                "the other pods{of} are in {level} {best} of topology {topology}, which has room \
                 for {room} of {pods} more"
            )
        } else {
            write!(
                f,
                "{pods} pods{of} must start in one {level} of topology {topology}; {best}, the \
                 best of {domains}, has room for {room}"
            )
        }
    }
}

fn kept_away_by_pods(f: &mut fmt::Formatter<'_>, nodes: usize, counts: [usize; 3]) -> fmt::Result {
    let words = [
        ("has no pods that it must be with", "have no pods that it must be with"),
        ("has pods that it must not be with", "have pods that it must not be with"),
        ("has pods that must not be with it", "have pods that must not be with it"),
    ];
    nodes_that(f, nodes, " that it may go to", counts.into_iter().zip(words))
}

/// `1 of 2 nodes is cordoned, 1 has a taint`.
fn nodes_that<'w>(
    f: &mut fmt::Formatter<'_>,
    nodes: usize,
    which: &str,
    counts: impl Iterator<Item = (usize, (&'w str, &'w str))>,
) -> fmt::Result {
    let mut of_all = match nodes {
        1 => format!("the only node{which}"),
        _ => format!("of {nodes} nodes{which}"),
    };
    for (at, (count, (one, many))) in counts.filter(|(count, _)| *count > 0).enumerate() {
        let verb = if count == 1 { one } else { many };
        match (at, nodes) {
            (0, 1) => write!(f, "{of_all} {verb}")?,
            (0, _) => write!(f, "{count} {of_all} {verb}")?,
            _ => write!(f, ", {count} {verb}")?,
        }
        of_all.clear();
    }
    Ok(())
}

fn out_of_service(
    f: &mut fmt::Formatter<'_>,
    gpus: usize,
    out: usize,
    node: &str,
    gpu: u32,
) -> fmt::Result {
    let (count, is) =
        if out == 1 { ("1 GPU".to_owned(), "is") } else { (format!("{out} GPUs"), "are") };
    let which = if out == 1 { "" } else { ", the first of them" };
    write!(
        f,
        "{count} of {gpus} {is} out of service{which}: GPU {gpu} of {node}; `runai describe node \
         {node}` says why"
    )
}

fn nodes_ruled_out(f: &mut fmt::Formatter<'_>, nodes: usize, counts: [usize; 5]) -> fmt::Result {
    let words = [
        ("is cordoned", "are cordoned"),
        ("lacks a label that it needs", "lack a label that it needs"),
        ("is outside its node affinity", "are outside its node affinity"),
        ("has a taint that it does not tolerate", "have a taint that it does not tolerate"),
        ("is in another pool", "are in another pool"),
    ];
    nodes_that(f, nodes, "", counts.into_iter().zip(words))
}

fn non_preemptible_over_quota(
    f: &mut fmt::Formatter<'_>,
    queue: &str,
    kind: Kind,
    [quota, allocated, requested]: [u64; 3],
) -> fmt::Result {
    write!(
        f,
        "non-preemptible workloads stay within the quota: {queue} has a quota of {}, its \
         non-preemptible workloads hold {}, this one asks for {}",
        of(kind, quota),
        number(kind, allocated),
        number(kind, requested)
    )
}

fn behind_reservation(
    f: &mut fmt::Formatter<'_>,
    holder: &WorkloadRef,
    gpu_millis: u64,
) -> fmt::Result {
    let need = if gpu_millis == 0 { "room".into() } else { gpus(gpu_millis) };
    write!(f, "room is kept for {holder}, which goes first, needs {need}")
}

fn larger_than_any_instance(
    f: &mut fmt::Formatter<'_>,
    request: GpuRequest,
    (millis, bytes): (u64, u64),
) -> fmt::Result {
    let (asked, millis, bytes) = (part(request), format_millis(millis), format_bytes(bytes));
    write!(
        f,
        "asks for {asked}; a pod has one MIG instance here, and the largest holds {millis} of a GPU ({bytes})"
    )
}

fn mig_in_use(
    f: &mut fmt::Formatter<'_>,
    request: &MigRequest,
    nodes: usize,
    with: usize,
) -> fmt::Result {
    let have = if with == 1 { "has" } else { "have" };
    let nodes = counted(nodes, "node");
    write!(f, "asks for {request} on one node; {with} of {nodes} {have} that, none has it free")
}

fn no_instance_for_part(f: &mut fmt::Formatter<'_>, of: &Pending) -> fmt::Result {
    let Pending::NoInstanceForPart { request, instances, large, nodes } = of else { return Ok(()) };
    let asked = part(*request);
    let all = counted(*instances, "MIG instance");
    let (all, nodes) = (all, counted(*nodes, "node"));
    let hold = if *large == 1 { "holds" } else { "hold" };
    write!(f, "asks for {asked}; {large} of {all} on {nodes} {hold} that, none of them is free")
}

/// GPU request of a pod: `0.5 of a GPU`.
fn part(request: GpuRequest) -> String {
    let devices = request.devices();
    match request {
        GpuRequest::Whole(1) => "1 GPU".to_owned(),
        GpuRequest::Whole(_) => format!("{devices} GPUs"),
        GpuRequest::Share { millis, devices: 1 } => format!("{} of a GPU", format_millis(millis)),
        GpuRequest::Share { millis, .. } => {
            format!("{} of each of {devices} GPUs", format_millis(millis))
        }
        GpuRequest::Memory { bytes, devices: 1 } => {
            format!("{} of GPU memory", format_bytes(bytes))
        }
        GpuRequest::Memory { bytes, .. } => {
            format!("{} of memory of each of {devices} GPUs", format_bytes(bytes))
        }
        GpuRequest::Mig(wanted) => wanted.to_string(),
    }
}

fn larger_than_any_node(
    f: &mut fmt::Formatter<'_>,
    request: GpuRequest,
    demand: Resources,
    gpus_max: usize,
    largest: Resources,
    nodes: usize,
) -> fmt::Result {
    let devices = request.devices() as usize;
    match request {
        _ if nodes == 0 => write!(f, "there are no nodes"),
        GpuRequest::Memory { bytes, .. } if gpus_max == 0 => {
            let memory = format_bytes(bytes);
            write!(f, "asks for {memory} of GPU memory; no GPU of any node has that much")
        }
        GpuRequest::Mig(wanted) if largest == Resources::ZERO => {
            write!(f, "asks for {wanted} on one node; no node has that")
        }
        _ if devices > gpus_max => {
            let plural = if devices == 1 { "" } else { "s" };
            write!(f, "asks for {devices} GPU{plural} on one node; the largest node has {gpus_max}")
        }
        _ => write!(
            f,
            "asks for {} and {} of memory; no node with the GPUs has that much (largest: {}, {})",
            of(Kind::Cpu, demand.cpu_millis),
            format_bytes(demand.memory_bytes),
            of(Kind::Cpu, largest.cpu_millis),
            format_bytes(largest.memory_bytes)
        ),
    }
}

/// `2 GPUs`, `4 cores`, `16GiB of memory`.
pub fn of(kind: Kind, amount: u64) -> String {
    match kind {
        Kind::Gpu => gpus(amount),
        Kind::Cpu if amount == 1000 => "1 core".to_owned(),
        Kind::Cpu => format!("{} cores", number(kind, amount)),
        Kind::Memory => format!("{} of memory", number(kind, amount)),
    }
}

/// The amount without the noun of its kind: `2`, `4`, `16GiB`.
pub fn number(kind: Kind, value: u64) -> String {
    match kind {
        Kind::Gpu | Kind::Cpu => amount(value),
        Kind::Memory if value == u64::MAX => "unlimited".to_owned(),
        Kind::Memory => format_bytes(value),
    }
}
