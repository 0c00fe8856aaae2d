//! Holders of the resources that a workload needs. Owns: the list of the largest, and the check of
//! each against the rules of the actions. Changes nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{NodeId, QueueId, Share, WorkloadId};
use units::{Kind, Resources};

use crate::actions::preempt::Preempt;
use crate::actions::reclaim::Reclaim;
use crate::entitlement::{branches, deserved, lineage_below, not_entitled, turn_ends};
use crate::place::PodRequirements;
use crate::precedence::gives_way_to;
use crate::session::Session;
use crate::victims::{EvictionUnit, Rule, freed};
#[cfg(feature = "kai")]
use crate::{Profile, kai};
use reasons::diagnosis::{Holder, Holders, HoldingQueue, Obstacle, OwnDemand, Part, Standing};

/// Maximum number of queues, and of workloads, that are listed.
const NAMED_MAX: usize = 5;

/// Holders of the resources that the next pods of a workload need.
pub(super) fn holders(s: &Session<'_>, id: WorkloadId, parts: &[Part]) -> Holders {
    let asked = s.ask(id, None);
    let kind = scarcest(parts, asked);
    let mut by_workload: BTreeMap<WorkloadId, u64> = BTreeMap::new();
    let mut by_queue: BTreeMap<QueueId, u64> = BTreeMap::new();
    for (workload, node, held) in held_where_it_may_go(s, id, kind) {
        *by_workload.entry(workload).or_default() += held;
        // Charged to the pool of the node: a node may have changed its pool under a workload.
        let project = s.cluster.workloads()[workload].spec.queue;
        let queue = s.cluster.queue_in(project, s.cluster.nodes()[node].pool);
        *by_queue.entry(queue).or_default() += held;
    }
    let mut workloads: Vec<_> = by_workload.into_iter().collect();
    workloads.sort_by_key(|&(who, held)| (Reverse(held), s.cluster.workloads()[who].spec.seq));
    let mut queues: Vec<_> = by_queue.into_iter().collect();
    queues.sort_by_key(|&(queue, held)| (Reverse(held), s.cluster.queues()[queue].seq));
    let more = |count: usize| u32::try_from(count.saturating_sub(NAMED_MAX)).unwrap_or(u32::MAX);
    let (queues_more, workloads_more) = (more(queues.len()), more(workloads.len()));
    let queues = queues.into_iter().take(NAMED_MAX);
    let workloads = workloads.into_iter().take(NAMED_MAX);
    Holders {
        queues: queues
            .map(|(queue, held)| HoldingQueue { queue: s.numbers(queue, kind), held })
            .collect(),
        queues_more,
        workloads: workloads
            .map(|(who, held)| Holder {
                workload: s.reference(who),
                kind,
                held,
                standing: match s.reference(who).is_other_revision_of(&s.reference(id)) {
                    true => Standing::OtherRevision,
                    false => standing(s, id, asked, who),
                },
            })
            .collect(),
        workloads_more,
        own_demand: own_demand(s, s.queue_of(id), kind),
    }
}

fn own_demand(s: &Session<'_>, queue: QueueId, kind: Kind) -> Option<OwnDemand> {
    let left_out = s.known.entitlements.demand.left_out_of(queue)[kind];
    let requested = s.cluster.queues()[queue].requested[kind];
    let queue = s.cluster.queue_name(queue);
    (left_out > 0).then_some(OwnDemand { queue, kind, requested, left_out })
}

/// The kind of resource that is short on most nodes.
fn scarcest(parts: &[Part], asked: Resources) -> Kind {
    let failing = || parts.iter().flat_map(|part| &part.classes).flat_map(|class| &class.failing);
    let nodes = |of: Obstacle| -> u32 {
        failing().filter(|failing| failing.obstacle == of).map(|failing| failing.nodes).sum()
    };
    let (cpu, memory) = (nodes(Obstacle::FreeCpu), nodes(Obstacle::FreeMemory));
    let gpu = nodes(Obstacle::FreeGpus) + nodes(Obstacle::FreeShare);
    match asked.gpu_millis {
        1.. if gpu >= cpu.max(memory) => Kind::Gpu,
        _ if memory > cpu => Kind::Memory,
        _ => Kind::Cpu,
    }
}

/// `true` if any other workload holds a part of a node that one of the next pods may use.
pub(super) fn holds_any_where_it_may_go(s: &Session<'_>, id: WorkloadId) -> bool {
    let holds = |kind| held_where_it_may_go(s, id, kind).next().is_some();
    Kind::ALL.into_iter().any(holds)
}

/// Pods of other workloads on nodes that allow one of the next pods, with their amounts.
fn held_where_it_may_go(
    s: &Session<'_>,
    id: WorkloadId,
    kind: Kind,
) -> impl Iterator<Item = (WorkloadId, NodeId, u64)> {
    let mut asks: Vec<PodRequirements> = Vec::new();
    for pod in s.next_pods(id) {
        let ask = PodRequirements::anywhere(s.cluster, pod, None);
        if !asks.contains(&ask) {
            asks.push(ask);
        }
    }
    let nodes =
        s.cluster.nodes().iter().filter(move |(node, _)| {
            asks.iter().any(|ask| s.cluster.allows(ask.constraints, *node))
        });
    let pods = nodes.flat_map(|(at, node)| node.pods.iter().map(move |&pod| (at, pod)));
    pods.filter_map(move |(at, pod)| {
        let row = &s.cluster.pods()[pod];
        let place = row.binding.effective().filter(|place| place.node == at)?;
        let held = s.cluster.amounts(pod, place)[kind];
        (held > 0 && row.workload != id).then_some((row.workload, at, held))
    })
}

/// All other placed workloads, each with the result of the rules: whether it may be evicted.
pub(super) fn standings(
    s: &Session<'_>,
    id: WorkloadId,
    asked: Resources,
) -> impl Iterator<Item = (WorkloadId, Standing)> {
    let placed =
        s.cluster.workloads().iter().filter(move |(who, row)| *who != id && row.placed > 0);
    placed.map(move |(who, _)| (who, standing(s, id, asked, who)))
}

fn standing(s: &Session<'_>, id: WorkloadId, asked: Resources, who: WorkloadId) -> Standing {
    #[cfg(feature = "kai")]
    if matches!(s.policy.profile, Profile::Kai(_)) {
        return kai::standing(s, id, who);
    }
    if !s.cluster.workloads()[who].gives_way() {
        return Standing::NotPreemptible;
    }
    let own = s.queue_of(who) == s.queue_of(id);
    if own && !gives_way_to(s, id, who) {
        return Standing::AsImportant { priority: s.cluster.workloads()[who].least_priority() };
    }
    let rule: &dyn Rule = if own { &Preempt } else { &Reclaim };
    if rule.eviction_units(s, id, who).is_empty() {
        let until = if own {
            s.safe_until(who, |share: &Share| share.preempt_min_runtime_ms)
        } else {
            s.safe_until(who, |share: &Share| share.reclaim_min_runtime_ms)
        };
        return Standing::GuaranteedUntil(until);
    }
    if own {
        return Standing::MayGive;
    }
    if not_entitled(s, id, asked).is_some() {
        return Standing::NotEntitled;
    }
    match rule.eviction_units(s, id, who).first() {
        Some(unit) if rule.just(s, id, asked, who, *unit) => Standing::MayGive,
        Some(unit) => spared(s, id, asked, who, *unit),
        None => Standing::WithinItsShare,
    }
}

/// The condition of [`Reclaim`] that spares a workload of another queue.
fn spared(
    s: &Session<'_>,
    id: WorkloadId,
    asked: Resources,
    who: WorkloadId,
    unit: EvictionUnit,
) -> Standing {
    let Some((_, giver)) = branches(s, id, who) else { return Standing::MayGive };
    let kinds = || Kind::ALL.into_iter().filter(|&kind| asked[kind] > 0);
    let held = |queue: QueueId| s.cluster.queues()[queue].held();
    let quota = |queue: QueueId| deserved(s, queue);
    let above =
        |queue: QueueId, kind| held(queue)[kind] > s.fair()[&queue][kind].max(quota(queue)[kind]);
    let mut levels = lineage_below(s, s.queue_of(who), giver);
    if levels.any(|queue| !kinds().any(|kind| above(queue, kind))) {
        return Standing::WithinItsShare;
    }
    if let (EvictionUnit::All(_), Some(ends)) = (unit, turn_ends(s, giver, who)) {
        return Standing::TurnUntil(ends);
    }
    let freed = freed(s, unit);
    let loses_quota = |queue: QueueId| {
        kinds().any(|kind| {
            above(queue, kind) && held(queue)[kind].saturating_sub(freed[kind]) < quota(queue)[kind]
        })
    };
    if lineage_below(s, s.queue_of(who), giver).any(loses_quota) {
        Standing::KeepsQuota
    } else {
        Standing::LessImportantFirst
    }
}
