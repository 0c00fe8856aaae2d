//! Decisions compared with the optimum, on clusters small enough for exhaustive search. Owns: the
//! instances, and the exhaustive searches. Does not know about: how decisions are made.

use std::collections::BTreeSet;
use std::ops::Range;

use model::{
    Cluster, GpuRequest, NodeSpec, PodRequest, PodSetSpec, QueueId, QueueSpec, Share, WorkloadId,
    WorkloadSpec,
};
use sched::{Action, Policy};
use units::{GPU_MILLIS, Instant, Resources};

use sim::rng::Rng;

const NODES: usize = 3;
const GPUS: u32 = 4;
const GPUS_ALL: u32 = 12;
const CORES: u32 = 8;

/// Sums over many instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Number of instances.
    pub instances: u32,
    /// Number of instances in which the decision was optimal.
    pub best: u32,
    /// Sum of the results: GPUs given out, GPUs lost by stopped workloads, or workloads moved.
    pub gpus: u32,
    /// Sum of the optimal results.
    pub gpus_best: u32,
    /// Sum of the differences from the optimum.
    pub gpus_worse: u32,
    /// Largest difference from the optimum.
    pub worst: u32,
    /// Number of instances in which the scheduler found no solution.
    pub not_found: u32,
}

impl Compared {
    const fn add(&mut self, gpus: u32, gpus_best: u32, gpus_worse: u32) {
        self.best += (gpus_worse == 0) as u32;
        self.count(gpus, gpus_best, gpus_worse);
    }

    const fn count(&mut self, gpus: u32, gpus_best: u32, gpus_worse: u32) {
        self.instances += 1;
        self.gpus += gpus;
        self.gpus_best += gpus_best;
        self.gpus_worse += gpus_worse;
        if gpus_worse > self.worst {
            self.worst = gpus_worse;
        }
    }
}

/// GPUs given out to pods of 0 to 3 GPUs and up to 4 cores on 3 nodes of 4 GPUs and 8 cores,
/// compared with the maximum over all choices of pods and places. The pods arrive one by one, and
/// none is moved; or all are pending from the beginning.
#[must_use]
pub fn packing(seed: u64, instances: u32, one_by_one: bool) -> Compared {
    let mut rng = Rng::new(seed);
    let mut compared = Compared::default();
    for _ in 0..instances {
        let count = 6 + rng.below(7);
        let pods: Vec<_> =
            (0..count).map(|_| (draw(&mut rng, 0..4), draw(&mut rng, 0..5))).collect();
        let mut tiny = Tiny::new(0);
        for &(gpus, cores) in &pods {
            tiny.submit(tiny.a, (gpus, cores), 1..2);
            if one_by_one {
                tiny.decide(&[Action::Allocate]);
            }
        }
        tiny.decide(&[Action::Allocate]);
        let held = tiny.held(tiny.a);
        let gpus = held.iter().flat_map(|(_, gpus)| gpus).sum();
        let best = most(&pods);
        compared.add(gpus, best, best.saturating_sub(gpus));
    }
    compared
}

/// GPUs lost by workloads without quota, of one or two pods with 1 to 3 GPUs each, so that a gang
/// within its quota fits, compared with the minimum. Instances do not count if no workload has to
/// be stopped, or if stopping all is not enough. A workload moved to another place loses nothing;
/// the minimum is that without moves, so a decision can be better.
#[must_use]
pub fn victims(seed: u64, instances: u32) -> Compared {
    let mut rng = Rng::new(seed);
    let mut compared = Compared::default();
    while compared.instances < instances {
        let mut tiny = Tiny::new(u64::from(GPUS_ALL));
        for _ in 0..3 + rng.below(5) {
            let (gpus, pods) = (draw(&mut rng, 1..4), draw(&mut rng, 1..3));
            tiny.submit(tiny.a, (gpus, 0), pods..pods + 1);
            tiny.decide(&[Action::Allocate]);
        }
        // Workloads that wait for moves would start before the gang, and change the GPUs lost.
        tiny.decide(&Policy::default().actions);
        let before = tiny.held(tiny.a);
        let (gpus, pods) = (draw(&mut rng, 1..5), draw(&mut rng, 1..4));
        let Some(least) = least(&before, (pods, gpus)).filter(|&least| least > 0) else { continue };
        tiny.submit(tiny.b, (gpus, 0), pods..pods + 1);
        tiny.decide(&Policy::default().actions);
        let after = tiny.held(tiny.a);
        if tiny.held(tiny.b).is_empty() {
            compared.instances += 1;
            compared.not_found += 1;
            continue;
        }
        let stays = |id: WorkloadId| after.iter().any(|&(other, _)| other == id);
        let lost = before.iter().filter(|(id, _)| !stays(*id));
        let lost = lost.flat_map(|(_, gpus)| gpus).sum::<u32>();
        compared.add(lost, least, lost.saturating_sub(least));
    }
    compared
}

/// Workloads moved so that one pod fits, compared with the minimum. They have one to three pods of
/// 1 to 3 GPUs each, and some can run with fewer pods. The optimum moves the fewest workloads, then
/// the fewest GPUs, then the fewest pods. Instances do not count if no workload has to be moved, or
/// if moving all is not enough.
#[must_use]
pub fn moves(seed: u64, instances: u32) -> Compared {
    let mut rng = Rng::new(seed);
    let mut compared = Compared::default();
    while compared.instances < instances {
        let mut tiny = Tiny::new(0);
        for _ in 0..3 + rng.below(7) {
            let (gpus, pods) = (draw(&mut rng, 1..4), draw(&mut rng, 1..4));
            let pods_min = draw(&mut rng, 1..pods + 1);
            tiny.submit(tiny.a, (gpus, 0), pods_min..pods + 1);
            tiny.decide(&[Action::Allocate]);
        }
        for (id, _) in tiny.held(tiny.a) {
            if rng.below(5) < 2 {
                tiny.end(id);
            }
        }
        tiny.decide(&[Action::Allocate]);
        if tiny.cluster.waiting().len() > 0 {
            continue;
        }
        let before = tiny.places();
        let gpus = draw(&mut rng, 2..5);
        let Some(fewest) = fewest(&before, gpus).filter(|fewest| fewest.0 > 0) else { continue };
        let count = tiny.held(tiny.a).len();
        tiny.submit(tiny.a, (gpus, 0), 1..2);
        tiny.decide(&[Action::Consolidate]);
        if tiny.held(tiny.a).len() <= count {
            compared.instances += 1;
            compared.not_found += 1;
            continue;
        }
        let after = tiny.places();
        let moved = cost(before.iter().filter(|one| !after.contains(one)));
        compared.best += u32::from(moved <= fewest);
        compared.count(moved.0, fewest.0, moved.0.saturating_sub(fewest.0));
    }
    compared
}

/// A placed pod: its workload, its ID and its place.
type Placed = (WorkloadId, model::PodId, model::Placement);

/// Numbers of moved workloads, of their moved GPUs, and of their moved pods.
type Moved = (u32, u32, u32);

/// Cost of moving these pods; the pods of a workload must be adjacent.
fn cost<'a>(moved: impl Iterator<Item = &'a Placed>) -> Moved {
    let mut last = None;
    moved.fold((0, 0, 0), |(workloads, gpus, pods), (id, _, place)| {
        let is_next = last.replace(id) != Some(id);
        let count = u32::try_from(place.devices.len()).unwrap_or(GPUS);
        (workloads + u32::from(is_next), gpus + count, pods + 1)
    })
}

/// The cheapest moves after which a pod of `gpus` GPUs fits, over all sets of pods; `None` if no
/// set is enough.
fn fewest(held: &[Placed], gpus: u32) -> Option<Moved> {
    let all = (1_u32 << held.len()) - 1;
    let moved = |set: u32| (0..).zip(held).filter(move |(at, _)| set >> at & 1 == 1);
    let makes_room = |set: u32| {
        let mut free = [GPUS; NODES];
        let mut pods = vec![gpus];
        for (at, (.., place)) in (0..).zip(held) {
            let count = u32::try_from(place.devices.len()).unwrap_or(GPUS);
            match set >> at & 1 {
                1 => pods.push(count),
                _ => free[place.node.raw() as usize] -= count,
            }
        }
        pods.sort_unstable_by(|left, right| right.cmp(left));
        fit(&pods, &mut free)
    };
    let mut least = None;
    for set in std::iter::once(all).chain(0..all) {
        let cost = cost(moved(set).map(|(_, pod)| pod));
        let is_less = least.is_none_or(|least| cost < least);
        if is_less && makes_room(set) {
            least = Some(cost);
        }
        // If all of them are not enough, no part of them is.
        least?;
    }
    least
}

/// `true` if pods of these GPU counts, the largest first, fit on nodes with these free GPUs.
fn fit(pods: &[u32], free: &mut [u32; NODES]) -> bool {
    let Some((&first, rest)) = pods.split_first() else { return true };
    (0..NODES).any(|at| {
        // Nodes with equal free GPUs are equivalent.
        let is_new = !free[..at].contains(&free[at]);
        let Some(left) = free[at].checked_sub(first).filter(|_| is_new) else { return false };
        let before = std::mem::replace(&mut free[at], left);
        let fits = fit(rest, free);
        free[at] = before;
        fits
    })
}

/// A random number of a range.
fn draw(rng: &mut Rng, from: Range<u32>) -> u32 {
    from.start + u32::try_from(rng.below(from.len())).unwrap_or(0)
}

/// Maximum number of GPUs that pods (GPUs, cores) can get, over all reachable states of the nodes.
fn most(pods: &[(u32, u32)]) -> u32 {
    let mut reached = BTreeSet::from([[(GPUS, CORES); NODES]]);
    for &(gpus, cores) in pods {
        let with = |nodes: &[(u32, u32); NODES]| {
            let places = (0..NODES).filter(|&at| nodes[at].0 >= gpus && nodes[at].1 >= cores);
            let put = |at: usize| {
                let mut then = *nodes;
                then[at] = (then[at].0 - gpus, then[at].1 - cores);
                then.sort_unstable();
                then
            };
            places.map(put).collect::<Vec<_>>()
        };
        let more: Vec<_> = reached.iter().flat_map(with).collect();
        reached.extend(more);
    }
    let free = |nodes: &[(u32, u32); NODES]| nodes.iter().map(|node| node.0).sum::<u32>();
    GPUS_ALL - reached.iter().map(free).min().unwrap_or(0)
}

/// Minimum number of GPUs to be lost so that `pods` pods of `gpus` GPUs fit, over all sets of
/// workloads; `None` if no set is enough.
fn least(held: &[(WorkloadId, [u32; NODES])], (pods, gpus): (u32, u32)) -> Option<u32> {
    let total = |at: usize| held.iter().map(|(_, on)| on[at]).sum::<u32>();
    let sets = (0..1_u32 << held.len()).filter_map(|set| {
        let chosen =
            || (0..).zip(held).filter(move |(at, _)| set >> at & 1 == 1).map(|(_, one)| one);
        let free = |at: usize| GPUS - total(at) + chosen().map(|(_, on)| on[at]).sum::<u32>();
        let room = (0..NODES).map(|at| free(at) / gpus).sum::<u32>();
        (room >= pods).then(|| chosen().flat_map(|(_, on)| on).sum())
    });
    sets.min()
}

/// A cluster of two projects; only the second has a quota.
struct Tiny {
    cluster: Cluster,
    a: QueueId,
    b: QueueId,
    seq: u64,
}

impl Tiny {
    fn new(quota_gpus: u64) -> Self {
        let mut cluster = Cluster::new();
        for number in 0..NODES {
            let memory = vec![80 << 30; GPUS as usize];
            let cores = u64::from(CORES) * 1000;
            cluster.add_node(NodeSpec::new(format!("n{number}"), memory, cores, 1 << 40));
        }
        let mut add = |name: &str, gpus: u64| {
            let quota = Resources { gpu_millis: gpus * GPU_MILLIS, ..Resources::UNLIMITED };
            let share = Share::new(quota, Resources::UNLIMITED);
            let spec = QueueSpec { name: name.into(), parent: None, share, seq: 0 };
            cluster.add_queue(spec).expect("a queue without one above it")
        };
        let (a, b) = (add("a", 0), add("b", quota_gpus));
        Self { cluster, a, b, seq: 0 }
    }

    /// Submits a workload; `pods.start` is its minimum number of pods, and `pods.end - 1` its
    /// number of pods.
    fn submit(&mut self, queue: QueueId, (gpus, cores): (u32, u32), pods: Range<u32>) {
        self.seq += 1;
        let gpu = GpuRequest::Whole(gpus);
        let cpu_millis = u64::from(cores) * 1000;
        let request = PodRequest { gpu, cpu_millis, memory_bytes: 0 };
        let set = PodSetSpec { pods: pods.end - 1, pods_min: pods.start, ..request.into() };
        let name = format!("w{}", self.seq);
        let spec = WorkloadSpec::new(name, queue, self.seq, set);
        let id = self.cluster.add_workload(spec).expect("a queue without queues below it");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, true);
        }
    }

    /// Makes one decision; stopped pods free their places at once.
    fn decide(&mut self, actions: &[Action]) {
        let policy = Policy { actions: actions.to_vec(), ..Policy::default() };
        let _ = sched::cycle(&mut self.cluster, Instant(self.seq), &policy);
        for pod in self.cluster.pods().ids().collect::<Vec<_>>() {
            if self.cluster.pods()[pod].binding.releasing {
                self.cluster.vacate(pod);
            }
        }
    }

    /// Ends a workload, and frees its places.
    fn end(&mut self, id: WorkloadId) {
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, false);
            self.cluster.set_binding(pod, model::PodBinding::default());
        }
    }

    /// Place of each pod.
    fn places(&self) -> Vec<Placed> {
        let pods = self.cluster.pods().iter();
        let places =
            pods.filter_map(|(id, pod)| Some((pod.workload, id, pod.binding.effective()?.clone())));
        places.collect()
    }

    /// GPUs on each node of each placed workload of a project.
    fn held(&self, queue: QueueId) -> Vec<(WorkloadId, [u32; NODES])> {
        let own = self.cluster.workloads().iter();
        let own = own.filter(|(_, row)| row.spec.queue == queue && row.placed > 0);
        let on_nodes = |(id, row): (WorkloadId, &model::Workload)| {
            let mut gpus = [0; NODES];
            let places =
                row.pods.iter().filter_map(|&pod| self.cluster.pods()[pod].binding.effective());
            for place in places {
                let count = u32::try_from(place.devices.len()).unwrap_or(GPUS);
                gpus[place.node.raw() as usize] += count;
            }
            (id, gpus)
        };
        own.map(on_nodes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{NODES, Tiny, least, most, moves, packing, victims};

    #[test]
    fn the_searches_find_the_best() {
        assert_eq!(most(&[(3, 0), (3, 0), (3, 0), (2, 0), (1, 0)]), 10);
        assert_eq!(most(&[(4, 9), (1, 8), (1, 1)]), 2);
        let mut tiny = Tiny::new(0);
        (0..3).for_each(|_| tiny.submit(tiny.a, (1, 0), 1..2));
        let held: [[u32; NODES]; 3] = [[4, 0, 0], [0, 2, 0], [0, 1, 3]];
        let held: Vec<_> = tiny.cluster.workloads().ids().zip(held).collect();
        assert_eq!(least(&held, (1, 3)), Some(2), "with the one that is free beside it: {held:?}");
        assert_eq!(least(&held, (1, 4)), Some(4));
        assert_eq!(least(&held, (1, 1)), Some(0));
        assert_eq!(least(&held, (4, 4)), None);
    }

    #[test]
    fn no_packing_is_better_than_the_best() {
        for one_by_one in [false, true] {
            let all = packing(1, 50, one_by_one);
            assert!(all.gpus <= all.gpus_best && all.best > 0 && all.instances == 50, "{all:?}");
        }
    }

    #[test]
    fn no_gang_costs_more_than_the_least() {
        let all = victims(1, 200);
        assert_eq!((all.best, all.not_found), (200, 0), "{all:?}");
    }

    #[test]
    fn no_more_is_moved_than_has_to_be() {
        let all = moves(1, 100);
        assert_eq!((all.best, all.not_found), (100, 0), "{all:?}");
    }
}
