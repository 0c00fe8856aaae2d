//! Making room for a workload at the expense of others. Owns: the search over whom to ask, the
//! proof that it helps (the placement is made before anybody is asked), and keeping the set as
//! small as it can be. Refuses to know what is just: that is each action's [`Rule`].

use std::collections::BTreeSet;

use model::{NodeId, PodId, WorkloadId};
use units::Resources;

use crate::Cause;
use crate::session::Session;

/// What an action may take, and why.
pub(crate) trait Rule {
    /// Who may be asked, in the order to ask.
    fn victims(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> Vec<WorkloadId>;

    /// In what pieces this one gives, each on top of the one before.
    fn takings(&self, s: &Session<'_>, victim: WorkloadId) -> Vec<Taking> {
        whole_workload(s, victim)
    }

    /// Whether one more taking from the victim is just, after what was already taken.
    fn just(&self, _: &Session<'_>, _: WorkloadId, _: Resources, _: WorkloadId, _: Taking) -> bool {
        true
    }

    /// Most workloads that may be asked for one; none of them may lose its place for good.
    fn moves_max(&self, _: &Session<'_>) -> Option<usize> {
        None
    }

    /// What the victim is told.
    fn cause(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> Cause;
}

/// One piece taken from a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// Shrink an elastic pod to so many GPUs.
    Shrink(PodId, usize),
    /// Stop a pod above the workload's minimum.
    One(PodId),
    /// Stop all its pods.
    All(WorkloadId),
}

/// What a solution costs; the least is taken. In this order: the most important workload that
/// loses its place, how much is lost, how many pods restart, how many belong to others, how far
/// down the order of victims it reaches.
type Cost = (u32, u64, usize, usize, usize);

/// Makes room for `id` (at `gpus`, if elastic) within the rule, and places it. Nothing changes
/// when it returns false.
pub(crate) fn make_room(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    id: WorkloadId,
    gpus: Option<u32>,
) -> bool {
    let asked = s.ask(id, gpus);
    let mut victims = rule.victims(s, id, asked);
    if s.queue_reason(id).is_some() {
        // Its own queue is the obstacle, so only that queue can remove it.
        let leaf = s.cluster.workloads()[id].spec.queue;
        victims.retain(|&victim| s.cluster.workloads()[victim].spec.queue == leaf);
    }
    let mut best: Option<(Cost, Vec<WorkloadId>)> = None;
    for group in groups(s, id, &victims) {
        let Some(chosen) = solve(s, rule, id, gpus, asked, &group) else { continue };
        let start = s.cluster.checkpoint();
        if attempt(s, rule, id, gpus, asked, &chosen) {
            let cost = cost(s, id, &victims, &chosen);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, chosen));
            }
        }
        s.cluster.rollback(start);
    }
    let Some((_, chosen)) = best else { return false };
    let causes: Vec<_> = chosen.iter().map(|&v| (v, rule.cause(s, id, v))).collect();
    let before = s.cluster.checkpoint();
    if !attempt(s, rule, id, gpus, asked, &chosen) {
        // The same steps from the same state: it worked a moment ago.
        s.cluster.rollback(before);
        return false;
    }
    for (victim, cause) in causes {
        for pod in s.cluster.workloads()[victim].pods.clone() {
            let cause = resize_cause(s, pod, id, &cause);
            s.causes.entry(pod).or_insert(cause);
        }
    }
    true
}

/// A pod that only changes size is told so, whatever the rule.
fn resize_cause(s: &Session<'_>, pod: PodId, id: WorkloadId, cause: &Cause) -> Cause {
    let before = s.cluster.original(pod).current.as_ref();
    let after = s.cluster.pods()[pod].occupancy.effective();
    match (before, after) {
        (Some(before), Some(after))
            if before.node == after.node && before.devices.len() != after.devices.len() =>
        {
            Cause::Resized {
                gpus_before: before.devices.len(),
                gpus_after: after.devices.len(),
                beneficiary: Some(s.reference(id)),
            }
        }
        _ => cause.clone(),
    }
}

/// Sets of victims to try apart: a single pod needs one node, so each node's victims are a set
/// of their own; a gang may need several nodes at once.
fn groups(s: &Session<'_>, id: WorkloadId, victims: &[WorkloadId]) -> Vec<Vec<WorkloadId>> {
    if s.next_pods(id).len() > 1 {
        return vec![victims.to_vec()];
    }
    let on = |node: NodeId, victim: WorkloadId| {
        s.cluster.workloads()[victim].pods.iter().any(|&pod| {
            s.cluster.pods()[pod].occupancy.effective().is_some_and(|place| place.node == node)
        })
    };
    let nodes = s.cluster.nodes().ids();
    let per_node = nodes.map(|node| victims.iter().copied().filter(|&v| on(node, v)).collect());
    per_node.filter(|group: &Vec<_>| !group.is_empty()).collect()
}

/// The fewest victims of this group, in their order, that make room. Leaves the state as it was.
fn solve(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    id: WorkloadId,
    gpus: Option<u32>,
    asked: Resources,
    group: &[WorkloadId],
) -> Option<Vec<WorkloadId>> {
    let start = s.cluster.checkpoint();
    let most = rule.moves_max(s).unwrap_or(usize::MAX).min(group.len());
    let mut chosen = None;
    for count in 1..=most {
        let works = attempt(s, rule, id, gpus, asked, &group[..count]);
        s.cluster.rollback(start);
        if works {
            chosen = Some(group[..count].to_vec());
            break;
        }
    }
    let mut chosen = chosen?;
    // Minimise: the last one asked was needed; perhaps some before were not.
    for victim in chosen.clone() {
        let fewer: Vec<_> = chosen.iter().copied().filter(|&v| v != victim).collect();
        let works = !fewer.is_empty() && attempt(s, rule, id, gpus, asked, &fewer);
        s.cluster.rollback(start);
        if works {
            chosen = fewer;
        }
    }
    Some(chosen)
}

/// Takes from the victims piece by piece until the workload fits, then finds them other places.
/// On false the caller rolls back.
fn attempt(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    id: WorkloadId,
    gpus: Option<u32>,
    asked: Resources,
    victims: &[WorkloadId],
) -> bool {
    let mut placed = false;
    for (at, &victim) in victims.iter().enumerate() {
        for taking in rule.takings(s, victim) {
            if placed || !rule.just(s, id, asked, victim, taking) {
                break;
            }
            take(s, taking);
            // Only the last victim can be the one that makes it fit; for the ones before it is
            // known that they do not suffice, but their last piece may not be needed.
            if at + 1 == victims.len() {
                if !s.may_try() {
                    return false;
                }
                placed = s.place(id, gpus).is_ok();
            }
        }
    }
    if !placed {
        return false;
    }
    let all_go_on = go_on(s, victims);
    all_go_on || rule.moves_max(s).is_none()
}

/// The amounts a taking frees.
pub(crate) fn freed(s: &Session<'_>, taking: Taking) -> Resources {
    let held = |pod: PodId| {
        let place = s.cluster.pods()[pod].occupancy.effective();
        place.map_or(Resources::ZERO, |place| s.cluster.amounts(pod, place))
    };
    match taking {
        Taking::Shrink(pod, gpus) => {
            let gpu_millis = held(pod).gpu_millis.saturating_sub(gpus as u64 * units::GPU_MILLIS);
            Resources { gpu_millis, ..Resources::ZERO }
        }
        Taking::One(pod) => held(pod),
        Taking::All(id) => s.cluster.workloads()[id].pods.iter().map(|&pod| held(pod)).sum(),
    }
}

fn take(s: &mut Session<'_>, taking: Taking) {
    match taking {
        Taking::Shrink(pod, gpus) => {
            let occupancy = s.cluster.pods()[pod].occupancy.clone();
            if let Some(place) = occupancy.effective() {
                let mut smaller = place.clone();
                smaller.devices.truncate(gpus);
                s.settle(pod, Some(smaller), occupancy.current.is_some());
            }
        }
        Taking::One(pod) => s.settle(pod, None, false),
        Taking::All(workload) => {
            for pod in s.cluster.workloads()[workload].pods.clone() {
                s.settle(pod, None, false);
            }
        }
    }
}

/// Finds other places for what was stopped; true when all of it goes on.
fn go_on(s: &mut Session<'_>, victims: &[WorkloadId]) -> bool {
    let mut order = victims.to_vec();
    order.sort_by_key(|&victim| crate::order::by_rank(s.cluster, victim));
    let mut all = true;
    for victim in order {
        while all && !s.next_pods(victim).is_empty() {
            all &= s.put_back(victim) || s.place(victim, None).is_ok();
        }
    }
    all
}

fn cost(s: &Session<'_>, id: WorkloadId, order: &[WorkloadId], chosen: &[WorkloadId]) -> Cost {
    let own = s.cluster.workloads()[id].spec.queue;
    let (mut priority, mut lost_millis, mut restarts, mut foreign, mut rank) = (0, 0, 0, 0, 0);
    for &victim in chosen {
        let workload = &s.cluster.workloads()[victim];
        rank = rank.max(order.iter().position(|&v| v == victim).unwrap_or(0));
        foreign += usize::from(workload.spec.queue != own);
        for &pod in &workload.pods {
            let before = s.cluster.original(pod).current.as_ref();
            let after = s.cluster.pods()[pod].occupancy.effective();
            let millis =
                |place: Option<&model::Placement>| place.map_or(0, model::Placement::gpu_millis);
            if before.is_some() && after.is_none() {
                priority = priority.max(workload.spec.priority + 1);
            }
            restarts += usize::from(before.is_some() && before != after);
            lost_millis += millis(before).saturating_sub(millis(after));
        }
    }
    (priority, lost_millis, restarts, foreign, rank)
}

/// All of a workload, in the pieces in which it can go: elastic GPUs by halves, pods above the
/// minimum one by one, then everything.
pub(crate) fn whole_workload(s: &Session<'_>, victim: WorkloadId) -> Vec<Taking> {
    let workload = &s.cluster.workloads()[victim];
    let placed: Vec<_> = workload
        .pods
        .iter()
        .copied()
        .filter(|&pod| s.cluster.pods()[pod].occupancy.effective().is_some())
        .collect();
    let mut takings = halvings(s, victim, 1);
    let spare = placed.len().saturating_sub(workload.spec.pods_min as usize);
    takings.extend(placed.iter().rev().take(spare).map(|&pod| Taking::One(pod)));
    takings.push(Taking::All(victim));
    takings
}

/// The steps by which an elastic workload shrinks, down to `floor` GPUs.
pub(crate) fn halvings(s: &Session<'_>, victim: WorkloadId, floor: u32) -> Vec<Taking> {
    let workload = &s.cluster.workloads()[victim];
    let mut takings = Vec::new();
    if !workload.spec.elastic {
        return takings;
    }
    for &pod in &workload.pods {
        let place = s.cluster.pods()[pod].occupancy.effective();
        let mut gpus = place.map_or(0, |place| place.devices.len()) / 2;
        while gpus >= (floor as usize).max(1) {
            takings.push(Taking::Shrink(pod, gpus));
            gpus /= 2;
        }
    }
    takings
}

/// Workloads with a place, other than `id`, that may be stopped.
pub(crate) fn preemptible(s: &Session<'_>, id: WorkloadId) -> Vec<WorkloadId> {
    let placed = s.cluster.workloads().iter().filter(|&(other, workload)| {
        other != id && workload.spec.preemptible && workload.placed > 0
    });
    let ids: BTreeSet<_> = placed.map(|(other, _)| other).collect();
    let mut victims: Vec<_> = ids.into_iter().collect();
    s.shares().sort_victims(&mut victims);
    victims
}
