//! Placing the tasks of a job, all or none, and the action that does it with free resources. Owns:
//! the choice between taking and reserving a place. Source: scheduling reference §5, §10.

use std::collections::BTreeMap;

use model::{Child, DeviceShare, Gpu, NodeId, Placement, PodBinding, PodId, WorkloadId};
use units::GPU_MILLIS;

use super::jobs::{self, Evicted};
use super::order::{Change, Line};
use super::place::{self, Aim, Spot};
use super::topology::{self, Part, Site};
use crate::policy::Profile;
use crate::session::Session;

/// Places every job that fits. A job that got its minimum and wants more is queued again.
pub(super) fn run(s: &mut Session<'_>) {
    let none = Evicted::new();
    let mut line = Line::pending(s, queue_depth(s));
    while let Some(id) =
        line.pop(s, &|id| Change::Plus(jobs::expected(s, &jobs::next_tasks(s, id, &none))))
    {
        let tasks = jobs::next_tasks(s, id, &none);
        if !s.may_try() {
            return;
        }
        if !place_all(s, id, &tasks, &|_| true, Aim::Start, &place_now) {
            continue;
        }
        reserve_together(s, id, &tasks);
        if !jobs::next_tasks(s, id, &none).is_empty() {
            line.push(s, id);
        }
    }
}

pub(super) const fn queue_depth(s: &Session<'_>) -> usize {
    match s.policy.profile {
        Profile::Kai(kai) => kai.queue_depth,
        Profile::Default => usize::MAX,
    }
}

/// Assigns a place to a task.
type Settle<'f> = &'f dyn Fn(&mut Session<'_>, PodId, Spot);

/// Places these tasks on nodes that are `open`, all or none: part by part of the job, each in the
/// first set of nodes that has room for it.
pub(super) fn place_all(
    s: &mut Session<'_>,
    id: WorkloadId,
    tasks: &[PodId],
    open: &dyn Fn(NodeId) -> bool,
    aim: Aim,
    settle: Settle<'_>,
) -> bool {
    if tasks.is_empty() || s.check_queue(id, jobs::asked(s, tasks)).is_err() {
        return false;
    }
    let nodes = s.nodes().map(|(node, _)| node).filter(|&node| open(node)).collect();
    let offered = Site { nodes, near: BTreeMap::new() };
    Placer { id, aim, settle }.part(s, None, tasks, &offered)
}

/// Places the parts of one job.
struct Placer<'f> {
    id: WorkloadId,
    aim: Aim,
    settle: Settle<'f>,
}

impl Placer<'_> {
    /// Places a part in the first set of nodes that has room; nothing changes if none has.
    fn part(&self, s: &mut Session<'_>, part: Part, tasks: &[PodId], offered: &Site) -> bool {
        let start = s.cluster.checkpoint();
        for site in topology::sites(s, self.id, part, tasks, offered) {
            if self.inside(s, part, tasks, &site) {
                return true;
            }
            s.cluster.rollback(start);
        }
        false
    }

    /// Places the groups of a part, then its pod sets; the tasks of a pod set one by one.
    fn inside(&self, s: &mut Session<'_>, part: Part, tasks: &[PodId], site: &Site) -> bool {
        let group = match part {
            Some(Child::Set(_)) => return tasks.iter().all(|&pod| self.task(s, pod, site)),
            Some(Child::Group(group)) => Some(group),
            None => None,
        };
        let of = |s: &Session<'_>, child| {
            let own = tasks.iter().copied().filter(|&pod| topology::is_in(s, pod, Some(child)));
            own.collect::<Vec<_>>()
        };
        let spec = &s.cluster.workloads()[self.id].spec;
        let mut children: Vec<_> =
            spec.children(group).map(|child| (child, of(s, child))).collect();
        let first = |own: &[PodId]| tasks.iter().position(|pod| own.first() == Some(pod));
        children.sort_by_key(|(child, own)| (matches!(child, Child::Set(_)), first(own)));
        children
            .into_iter()
            .all(|(child, own)| own.is_empty() || self.part(s, Some(child), &own, site))
    }

    fn task(&self, s: &mut Session<'_>, pod: PodId, site: &Site) -> bool {
        let spot = place::find(s, pod, site, self.aim);
        spot.map(|spot| (self.settle)(s, pod, spot)).is_some()
    }
}

/// Takes a place that is free at once, or reserves one that is not.
fn place_now(s: &mut Session<'_>, pod: PodId, spot: Spot) {
    s.set_target(pod, Some(spot.place), spot.at_once);
}

/// Reserves a place, free or not. A task that was stopped in this scenario and stays in its place
/// is not stopped after all.
pub(super) fn pipeline(s: &mut Session<'_>, evicted: &Evicted, pod: PodId, spot: Spot) {
    match evicted.get(&pod).filter(|before| stays(before, &spot.place)) {
        Some(before) => {
            make_room(s, pod, before);
            s.cluster.set_binding(pod, before.clone());
        }
        None => s.set_target(pod, Some(spot.place), false),
    }
}

/// `true` if a place equals the earlier one: the node, and for a shared GPU the device.
fn stays(before: &PodBinding, to: &Placement) -> bool {
    let shared = |share: &&DeviceShare| share.millis < GPU_MILLIS;
    let same = |share: &DeviceShare| to.devices.iter().any(|other| other.gpu == share.gpu);
    before
        .effective()
        .is_some_and(|here| here.node == to.node && here.devices.iter().filter(shared).all(same))
}

/// `true` if a device is free, and of the kind of another.
fn is_spare(device: &Gpu, other: &Gpu) -> bool {
    device.profile() == other.profile() && device.free_millis(false) == device.capacity_millis()
}

/// Whole GPUs are counted, not named: a pod with a reserved GPU that `pod` keeps gets another one
/// of the node, which is free because room was found for `pod` there.
fn make_room(s: &mut Session<'_>, pod: PodId, before: &PodBinding) {
    let Some(here) = before.effective() else { return };
    let whole = |share: &&DeviceShare| share.millis >= GPU_MILLIS;
    let mine: Vec<_> = here.devices.iter().filter(whole).map(|share| share.gpu).collect();
    for &gpu in &mine {
        let node = &s.cluster.nodes()[here.node];
        if node.gpus[gpu as usize].committed_millis == 0 {
            continue;
        }
        let free = (0_u32..)
            .zip(&node.gpus)
            .find(|(at, device)| is_spare(device, &node.gpus[gpu as usize]) && !mine.contains(at));
        let Some((other, _)) = free else { continue };
        for holder in node.pods.clone() {
            let mut binding = s.cluster.pods()[holder].binding.clone();
            let Some(next) = binding.next.as_mut().filter(|next| next.node == here.node) else {
                continue;
            };
            if holder == pod || !next.devices.iter().any(|share| share.gpu == gpu) {
                continue;
            }
            next.devices.iter_mut().filter(|share| share.gpu == gpu).for_each(|s| s.gpu = other);
            s.cluster.set_binding(holder, binding);
        }
    }
}

/// A gang never starts in part: if a pod set with a reserved place has fewer tasks than its minimum
/// that run or start now, all tasks just placed wait together.
pub(super) fn reserve_together(s: &mut Session<'_>, id: WorkloadId, tasks: &[PodId]) {
    let workload = &s.cluster.workloads()[id];
    let row = |pod: &PodId| &s.cluster.pods()[*pod];
    let incomplete = (0..workload.pod_sets.len()).any(|set| {
        let pods = workload.pods_of(set);
        let waits = pods.iter().any(|pod| row(pod).binding.next.is_some());
        let runs = pods.iter().filter(|pod| row(pod).runs()).count();
        waits && runs < workload.spec.pod_sets[set].pods_min as usize
    });
    if !incomplete {
        return;
    }
    for &pod in tasks.iter().filter(|pod| s.cluster.pods()[**pod].runs()).collect::<Vec<_>>() {
        let Some(here) = s.cluster.pods()[pod].binding.current.clone() else { continue };
        s.set_target(pod, None, false);
        // On its node the place may have changed to one that is being released.
        let spot = place::on_node(s, pod, here.node, Aim::Reserve);
        let waiting = spot.filter(|_| here.devices.iter().all(|share| share.millis >= GPU_MILLIS));
        let place = waiting.map_or(here, |spot| spot.place);
        s.set_target(pod, Some(place), false);
    }
}
