//! Reasons of waiting workloads after all actions. Owns: the derivation of reasons from the final
//! state. Changes nothing.

mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Cluster, Constraints, ConstraintsId, Gpu, Mismatch, NodeId, PodId, PodMismatch, PoolId,
    QueueId, Room, WorkloadId,
};
use units::{Kind, Resources};

use crate::entitlement::not_entitled;
use crate::protection::Protections;
use crate::session::Session;
use crate::session::pools;
use crate::session::topology;
use crate::{Plan, Waits};
use model::equivalence_class::EquivalenceClass;
use reasons::{CommonGpus, Pending};
use room::Rooms;
pub(crate) use room::larger_than_any;

/// Maximum number of node pools with reasons of their own; with more, one reason counts the pools.
const POOLS_NAMED_MAX: usize = 3;

/// A plan that has only new reasons, of workloads that need a place or wait for a reserved one.
pub(crate) fn all(s: &mut Session<'_>) -> Plan {
    let (mut known, mut plan) = (Known::default(), Plan::default());
    for id in s.known.odd.keys().copied().collect::<Vec<_>>() {
        let reasons = reasons(s, id, &mut known);
        if s.known.odd.get(&id).map(|known| &**known) != Some(&reasons) {
            let reasons: Arc<[Pending]> = reasons.into();
            plan.pending.insert(id, Waits { reasons: reasons.clone(), class: None });
            s.known.odd.insert(id, reasons);
        }
    }
    let rows = s.known.rows().filter_map(|(at, row)| Some((at, s.known.plain_member(row)?)));
    for (at, id) in rows.collect::<Vec<_>>() {
        let of_odd = s.known.row(at).and_then(|row| known.classes.get(&row.class)).cloned();
        // It has no reason of its own.
        let found = of_odd.unwrap_or_else(|| no_place(s, id, &mut known));
        debug_assert_eq!(found, reasons(s, id, &mut Known::default()), "what is known is right");
        s.known.explain_class(at, found, &mut plan.renewed);
    }
    s.known.tell_fresh(&mut plan);
    plan
}

/// Results that other workloads can reuse.
#[derive(Default)]
struct Known {
    classes: BTreeMap<EquivalenceClass, Vec<Pending>>,
    protections: Protections,
    /// Unusable nodes, by constraints and by the pool that the workload is bound to.
    ruled_out: BTreeMap<(ConstraintsId, Option<PoolId>), Option<Pending>>,
    rooms: Rooms,
    /// `true` if any GPU is out of service; `None` before the first check.
    gpus_out: Option<bool>,
}

impl Known {
    fn has_gpus_out(&mut self, cluster: &Cluster) -> bool {
        let find = || {
            let mut gpus = cluster.nodes().iter().flat_map(|(_, node)| &node.gpus);
            gpus.any(|gpu| !gpu.in_service)
        };
        *self.gpus_out.get_or_insert_with(find)
    }
}

/// The reasons of a workload that needs a place or waits for a reserved one; else empty.
fn reasons(s: &mut Session<'_>, id: WorkloadId, known: &mut Known) -> Vec<Pending> {
    let mut reasons = Vec::from_iter(waiting_for_release(s.cluster, id));
    if s.next_pods(id).is_empty() {
        reasons.extend(gated(s.cluster, id).or_else(|| too_few_left(s.cluster, id)));
        return reasons;
    }
    let until = s.cluster.workloads()[id].not_before;
    if until > s.now {
        return vec![Pending::BackingOff { until }];
    }
    let class = EquivalenceClass::of(s.cluster, id);
    if let Some(of_class) = known.classes.get(&class) {
        reasons.extend_from_slice(of_class);
        return reasons;
    }
    let of_class = no_place(s, id, known);
    reasons.extend_from_slice(&of_class);
    known.classes.insert(class, of_class);
    reasons
}

/// Reasons why a workload found no place, equal for all of its class.
fn no_place(s: &mut Session<'_>, id: WorkloadId, known: &mut Known) -> Vec<Pending> {
    let mut room = Vec::new();
    for set in next_sets(s, id) {
        let no_room = known.rooms.no_room(s.cluster, id, set);
        let out = no_room.as_ref().filter(|reason| lacks_gpus(reason));
        let out = out.filter(|_| known.has_gpus_out(s.cluster));
        let out = out.and_then(|_| out_of_service(s.cluster, id, set));
        let of_set = no_room.into_iter().chain(out);
        let of_set = of_set.chain(ruled_out(s.cluster, id, set, known));
        let of_set = of_set.chain(kept_away(s.cluster, id, set));
        let new: Vec<_> = of_set.filter(|reason| !room.contains(reason)).collect();
        room.extend(new);
    }
    room.extend(topology::no_domain(s, id));
    let rights = rights(s, id, lacking(&room), &mut known.protections, POOLS_NAMED_MAX);
    let mut reasons = rights.against;
    let mut is_open = !s.stats.exhausted;
    if reasons.is_empty() {
        reasons.extend(s.reservations.before(&EquivalenceClass::of(s.cluster, id)).cloned());
        is_open &= reasons.is_empty();
    }
    reasons.extend(room);
    // Some unusable nodes do not explain why the others are no place.
    if reasons.iter().all(leaves_nodes) && !s.stats.exhausted {
        reasons.push(too_few_fit(s, id));
    }
    let not_counted = not_counted(s, id);
    if not_counted.as_ref().is_none_or(|(_, starts)| *starts) {
        reasons.extend(rights.beyond);
        reasons.extend(rights.protected.into_iter().filter(|_| is_open));
    }
    reasons.extend(not_counted.map(|(reason, _)| reason));
    if s.stats.exhausted {
        reasons.push(Pending::SearchCutShort { trials: s.policy.trials_max });
    }
    reasons
}

/// The kind of resource that is short.
fn lacking(room: &[Pending]) -> Option<Kind> {
    room.iter().find_map(|reason| match reason {
        Pending::NotEnoughCpu { .. } => Some(Kind::Cpu),
        Pending::NotEnoughMemory { .. } => Some(Kind::Memory),
        _ => None,
    })
}

/// Obstacles to a workload other than room, over the node pools that it may use.
#[derive(Default)]
struct Rights {
    /// Limits and quotas.
    against: Vec<Pending>,
    /// Fair share, in pools where limit and quota allow it.
    beyond: Vec<Pending>,
    /// Protection of other work, in pools where the fair share allows it too.
    protected: Vec<Pending>,
}

/// With more than `named_max` pools, one reason stands for all that differ only in their pool.
fn rights(
    s: &mut Session<'_>,
    id: WorkloadId,
    lacking: Option<Kind>,
    protections: &mut Protections,
    named_max: usize,
) -> Rights {
    let [mut against, mut beyond, mut protected]: [ByPool; 3] = Default::default();
    let asked = s.ask(id, None);
    let kind = lacking.or_else(|| Kind::ALL.into_iter().find(|&kind| asked[kind] > 0));
    let choices: Vec<_> = s.cluster.choices(id).iter().map(|&pool| Some(pool)).collect();
    let there = |pool: &Option<PoolId>| {
        pool.is_none_or(|pool| s.cluster.capacity_of(pool) != Resources::ZERO)
    };
    let mut pools: Vec<_> = choices.into_iter().filter(there).collect();
    // If pools have no queues of their own, the result is equal in all of them.
    pools.truncate(if s.cluster.is_divided() { usize::MAX } else { 1 });
    // Skips pools in which no node could hold it, unless all are such.
    if pools.len() > 1 && pools.iter().any(|&pool| is_usable(s, id, pool)) {
        pools.retain(|&pool| is_usable(s, id, pool));
    }
    if pools.is_empty() {
        pools.push(None);
    }
    for pool in pools {
        pools::within(s, id, pool, |s| {
            if let Err(refusal) = s.check_queue(id, asked) {
                against.add(refusal.code(), named_max, || s.refused(refusal, asked));
            } else if let Some(kind) = not_entitled(s, id, asked) {
                beyond.add("P203", named_max, || {
                    let (queue, requested) = (s.numbers(s.queue_of(id), kind), asked[kind]);
                    let common = (kind == Kind::Gpu).then(|| common(s, s.queue_of(id))).flatten();
                    Pending::NotEntitledToMore { queue, requested, common }
                });
            } else if let Some(reason) = kind.and_then(|kind| protections.reason(s, id, kind)) {
                protected.add("P205", named_max, || reason);
            }
        });
    }
    let [against, beyond, mut protected] =
        [against, beyond, protected].map(|of| of.reasons(named_max));
    protected.dedup();
    Rights { against, beyond, protected }
}

/// `true` if each of the next pods may run on some node of the pool that is large enough for it.
fn is_usable(s: &Session<'_>, id: WorkloadId, pool: Option<PoolId>) -> bool {
    s.next_pods(id).iter().all(|&pod| {
        let constraints = s.cluster.constraints_in(pod, pool);
        let demand = s.cluster.set_of(pod).demand;
        let mut nodes = s.cluster.nodes().iter();
        nodes.any(|(at, node)| demand.fits_in(node.capacity) && s.cluster.allows(constraints, at))
    })
}

/// Maximum number of projects named that divide GPUs since their work can use no others.
const PROJECTS_NAMED_MAX: usize = 3;

/// The only GPUs that work of a queue can use, if they bound its share.
fn common(s: &Session<'_>, queue: QueueId) -> Option<Box<CommonGpus>> {
    let common = s.known.entitlements.common(s.cluster, queue)?;
    let names = common.queues.iter().take(PROJECTS_NAMED_MAX).map(|&id| s.cluster.queue_name(id));
    let others = common.queues.len().saturating_sub(PROJECTS_NAMED_MAX);
    let mut nodes: Vec<_> =
        common.nodes.iter().map(|&id| s.cluster.nodes()[id].name.as_str()).collect();
    nodes.sort_unstable();
    let node = (*nodes.first()?).to_owned();
    let (gpu_millis, nodes) = (common.gpu_millis, nodes.len());
    Some(Box::new(CommonGpus { queues: names.collect(), others, gpu_millis, node, nodes }))
}

/// Obstacles to a workload other than room, in each node pool.
pub(crate) fn queue_reasons(s: &mut Session<'_>, id: WorkloadId) -> Vec<Pending> {
    let rights = rights(s, id, None, &mut Protections::default(), usize::MAX);
    [rights.against, rights.beyond, rights.protected].concat()
}

/// The part of its request that is no demand, and `true` if it could start with the rest.
pub(crate) fn not_counted(s: &mut Session<'_>, id: WorkloadId) -> Option<(Pending, bool)> {
    let demand = &mut s.known.entitlements.demand;
    let (queue, room) = demand.short(s.cluster, id)?;
    let Room { pods, fitting, starts, left_out } = room;
    let kind = Kind::ALL.into_iter().find(|&kind| left_out[kind] > 0)?;
    let workload = &s.cluster.workloads()[id];
    let asks = workload.pods.iter().filter(|&&pod| s.cluster.pods()[pod].asks());
    let requested = asks.map(|&pod| s.cluster.set_of(pod).demand[kind]).sum();
    let (queue, left_out, sets) =
        (s.cluster.queue_name(queue), left_out[kind], workload.pod_sets.len());
    Some((Pending::NotCounted { queue, kind, left_out, requested, fitting, sets, pods }, starts))
}

/// Reasons over several node pools.
#[derive(Default)]
struct ByPool {
    /// The first reasons of each code.
    named: Vec<Pending>,
    counts: BTreeMap<&'static str, usize>,
}

impl ByPool {
    fn add(&mut self, code: &'static str, named_max: usize, make: impl FnOnce() -> Pending) {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        if *count <= named_max {
            self.named.push(make());
        }
    }

    fn reasons(mut self, named_max: usize) -> Vec<Pending> {
        let of_code = |reason: Pending| match self.counts.get_mut(reason.code().code) {
            Some(0) => None,
            Some(count) if *count > named_max => {
                let others = std::mem::take(count) - 1;
                Some(Pending::InPools { first: Box::new(reason), others })
            }
            _ => Some(reason),
        };
        self.named.into_iter().filter_map(of_code).collect()
    }
}

/// The reason that pods are gated, and nothing can start without them.
fn gated(cluster: &Cluster, id: WorkloadId) -> Option<Pending> {
    let pods = &cluster.workloads()[id].pods;
    let gated = pods.iter().filter(|pod| cluster.gated().contains(pod)).count();
    (gated > 0).then_some(Pending::Gated { gated, pods: pods.len() })
}

/// The reason that the pods left are too few for the minimum.
fn too_few_left(cluster: &Cluster, id: WorkloadId) -> Option<Pending> {
    let workload = &cluster.workloads()[id];
    let waits = |pod: &&PodId| cluster.pods()[**pod].waits();
    if !workload.pods.iter().any(|pod| waits(&pod)) {
        return None;
    }
    let left = |at: usize| {
        let waiting = workload.pods_of(at).iter().filter(waits).count();
        workload.pod_sets[at].counted().saturating_add(u32::try_from(waiting).unwrap_or(u32::MAX))
    };
    let sets = (0..).zip(&workload.spec.pod_sets).map(|(at, set)| (set.pods_min, left(at)));
    let mut short = sets.clone().filter(|(pods_min, pods)| pods < pods_min);
    let first = short.next()?;
    // Where all sets are needed, the gang is all of them.
    let (pods_min, pods) = match workload.spec.needs_all_sets() {
        true => sets.fold((0, 0), |(all, sum), (pods_min, pods)| {
            (all + pods_min, sum + pods.min(pods_min))
        }),
        false => first,
    };
    Some(Pending::GangIncomplete { pods_min, pods, fitting: 0, near: None })
}

/// The reason that fewer pods find a place than must be placed together.
fn too_few_fit(s: &mut Session<'_>, id: WorkloadId) -> Pending {
    let count = |pods: &[PodId]| u32::try_from(pods.len()).unwrap_or(u32::MAX);
    let next = s.next_pods(id);
    let (pods_min, pods) = (count(&next), s.cluster.workloads()[id].spec.pods());
    let near = s.cluster.workloads()[id].spec.colocation_key().map(str::to_owned);
    Pending::GangIncomplete { pods_min, pods, fitting: count(&s.fitting_one_by_one(&next)), near }
}

/// The pod sets of the next pods to place.
fn next_sets(s: &Session<'_>, id: WorkloadId) -> Vec<usize> {
    let next = s.next_pods(id);
    let mut sets: Vec<_> = next.iter().map(|&pod| s.cluster.pods()[pod].set as usize).collect();
    sets.dedup();
    sets
}

/// `true` if the reason rules out only some of the nodes.
const fn leaves_nodes(reason: &Pending) -> bool {
    match reason {
        Pending::NodesRuledOut { nodes, cordoned, selector, affinity, taint, pool } => {
            *cordoned + *selector + *affinity + *taint + *pool < *nodes
        }
        Pending::KeptAwayByPods { nodes, affinity, anti_affinity, repelled } => {
            *affinity + *anti_affinity + *repelled < *nodes
        }
        _ => false,
    }
}

fn waiting_for_release(cluster: &Cluster, id: WorkloadId) -> Option<Pending> {
    let pods = || cluster.workloads()[id].pods.iter();
    let next = |pod: &PodId| cluster.pods()[*pod].binding.next.as_ref();
    // The pods of a gang whose places are not free yet delay it.
    let held_up = pods().find(|&&pod| {
        next(&pod).is_some_and(|to| {
            let amounts = cluster.amounts(pod, to);
            !cluster.nodes()[to.node].has_room_now(&to.devices, amounts)
        })
    });
    let place = held_up.or_else(|| pods().find(|pod| next(pod).is_some())).and_then(next)?;
    let node = &cluster.nodes()[place.node];
    let releasing = node.pods.iter().filter(|&&pod| cluster.pods()[pod].binding.releasing);
    let others = releasing.filter(|&&pod| cluster.pods()[pod].workload != id);
    let holders: BTreeSet<_> =
        others.map(|&pod| cluster.workload_of(pod).spec.name.clone()).collect();
    Some(Pending::WaitingForRelease {
        node: node.name.clone(),
        holders: holders.into_iter().collect(),
    })
}

/// `true` if the reason is a shortage of GPUs.
const fn lacks_gpus(reason: &Pending) -> bool {
    matches!(
        reason,
        Pending::NotEnoughGpus { .. }
            | Pending::NoGpuShareFree { .. }
            | Pending::NoMigInstanceFree { .. }
            | Pending::NoInstanceForPart { .. }
    )
}

/// GPUs that it could use if they were in service.
fn out_of_service(cluster: &Cluster, id: WorkloadId, set: usize) -> Option<Pending> {
    let workload = &cluster.workloads()[id];
    let request = workload.spec.pod_sets[set].request.gpu;
    let constraints = workload.pod_sets[set].constraints;
    let bound = bound(cluster, id);
    let nodes = cluster.nodes().iter();
    let nodes = nodes.filter(|&(at, _)| cluster.allows(constraints, at) && bound(at));
    let devices = nodes.flat_map(|(_, node)| (0..).zip(&node.gpus).map(move |gpu| (node, gpu)));
    let fits = |gpu: &Gpu| request.parts().any(|part| part.needs_of_sound(gpu).is_some());
    let (mut gpus, mut out, mut first) = (0, 0, None);
    for (node, (at, gpu)) in devices.filter(|(_, (_, gpu))| fits(gpu)) {
        gpus += 1;
        if !gpu.in_service {
            out += 1;
            first.get_or_insert_with(|| (node.name.clone(), at));
        }
    }
    first.map(|first| Pending::GpusOutOfService { gpus, out, first })
}

/// The nodes to which the placed pods of a workload bind the others.
fn bound(cluster: &Cluster, id: WorkloadId) -> impl Fn(NodeId) -> bool + use<'_> {
    let pool = cluster.pool_of(id);
    move |node| pool.is_none_or(|pool| pool == cluster.nodes()[node].pool)
}

/// The reason that nodes are unusable for other causes than room.
fn ruled_out(cluster: &Cluster, id: WorkloadId, set: usize, known: &mut Known) -> Option<Pending> {
    let workload = &cluster.workloads()[id];
    let constraints = workload.pod_sets[set].constraints;
    let bound = bound(cluster, id);
    let find = || ruled_out_by(cluster, cluster.constraints(constraints), &bound);
    known.ruled_out.entry((constraints, cluster.pool_of(id))).or_insert_with(find).clone()
}

/// As [`ruled_out`], by constraints and by the nodes that it is bound to.
pub(crate) fn ruled_out_by(
    cluster: &Cluster,
    constraints: &Constraints,
    bound: &dyn Fn(NodeId) -> bool,
) -> Option<Pending> {
    let (mut cordoned, mut selector, mut affinity, mut taint, mut pool) = (0, 0, 0, 0, 0);
    for (at, node) in cluster.nodes().iter() {
        match constraints.check(&node.labels, &node.taints) {
            _ if !node.schedulable => cordoned += 1,
            Err(Mismatch::Cordoned) => cordoned += 1,
            Ok(()) if bound(at) => {}
            Ok(()) => pool += 1,
            Err(Mismatch::Selector) => selector += 1,
            Err(Mismatch::Affinity) => affinity += 1,
            Err(Mismatch::Taint) => taint += 1,
            Err(Mismatch::Pool) => pool += 1,
        }
    }
    let nodes = cluster.nodes().len();
    (cordoned + selector + affinity + taint + pool > 0).then_some(Pending::NodesRuledOut {
        nodes,
        cordoned,
        selector,
        affinity,
        taint,
        pool,
    })
}

/// The reason that pod affinity or anti-affinity rules out nodes.
fn kept_away(cluster: &Cluster, id: WorkloadId, set: usize) -> Option<Pending> {
    let workload = &cluster.workloads()[id];
    let constraints = workload.pod_sets[set].constraints;
    if !cluster.minds_pods(constraints) {
        return None;
    }
    let bound = bound(cluster, id);
    let (mut nodes, mut affinity, mut anti_affinity, mut repelled) = (0, 0, 0, 0);
    for at in cluster.nodes().ids().filter(|&at| cluster.allows(constraints, at) && bound(at)) {
        nodes += 1;
        match cluster.check_pods(constraints, at, false) {
            Ok(()) => {}
            Err(PodMismatch::Affinity) => affinity += 1,
            Err(PodMismatch::AntiAffinity) => anti_affinity += 1,
            Err(PodMismatch::Repelled) => repelled += 1,
        }
    }
    let reason = Pending::KeptAwayByPods { nodes, affinity, anti_affinity, repelled };
    (affinity + anti_affinity + repelled > 0).then_some(reason)
}
