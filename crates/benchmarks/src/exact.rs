//! Decisions beside the best there is, on clusters so small that it can be found by trying
//! everything. Owns: the instances, and the exhaustive searches. Refuses to know: how decisions are
//! made.

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

/// What many instances come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Instances.
    pub instances: u32,
    /// In how many of them the decision was no worse than the best.
    pub best: u32,
    /// GPUs given out, or lost by those that were stopped, or workloads moved, in all.
    pub gpus: u32,
    /// The same if each decision were the best.
    pub gpus_best: u32,
    /// GPUs, or workloads, by which those that were worse were worse, in all.
    pub gpus_worse: u32,
    /// The same of the one that was the worst.
    pub worst: u32,
    /// In how many of them nothing was found.
    pub not_found: u32,
}

impl Compared {
    const fn add(&mut self, gpus: u32, gpus_best: u32, gpus_worse: u32) {
        self.instances += 1;
        self.best += (gpus_worse == 0) as u32;
        self.gpus += gpus;
        self.gpus_best += gpus_best;
        self.gpus_worse += gpus_worse;
        if gpus_worse > self.worst {
            self.worst = gpus_worse;
        }
    }
}

/// GPUs given out to pods of 0 to 3 GPUs and up to 4 cores on 3 nodes of 4 GPUs and 8 cores, beside
/// the most that any choice of pods and places gives out. The pods come one by one, and nobody is
/// moved; or they are all there from the beginning.
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
            tiny.submit(tiny.a, (gpus, cores), 1);
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

/// GPUs lost by workloads without a right to them, of one pod or two and 1 to 3 GPUs each, so that a
/// gang that has a right to all finds room, beside the least that has to be lost. Instances in which
/// nobody has to be stopped, or stopping all is not enough, do not count. Who is moved to another place
/// loses nothing; the least is that without moving, so less is possible.
#[must_use]
pub fn victims(seed: u64, instances: u32) -> Compared {
    let mut rng = Rng::new(seed);
    let mut compared = Compared::default();
    while compared.instances < instances {
        let mut tiny = Tiny::new(u64::from(GPUS_ALL));
        for _ in 0..3 + rng.below(5) {
            let (gpus, pods) = (draw(&mut rng, 1..4), draw(&mut rng, 1..3));
            tiny.submit(tiny.a, (gpus, 0), pods);
            tiny.decide(&[Action::Allocate]);
        }
        let before = tiny.held(tiny.a);
        let (gpus, pods) = (draw(&mut rng, 1..5), draw(&mut rng, 1..4));
        let Some(least) = least(&before, (pods, gpus)).filter(|&least| least > 0) else { continue };
        tiny.submit(tiny.b, (gpus, 0), pods);
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

/// Workloads moved, of one pod or two and 1 to 3 GPUs each, so that one pod finds room, beside the
/// fewest that have to be. Instances in which none has to be moved, or moving all is not enough, do
/// not count.
#[must_use]
pub fn moves(seed: u64, instances: u32) -> Compared {
    let mut rng = Rng::new(seed);
    let mut compared = Compared::default();
    while compared.instances < instances {
        let mut tiny = Tiny::new(0);
        for _ in 0..3 + rng.below(7) {
            let (gpus, pods) = (draw(&mut rng, 1..4), draw(&mut rng, 1..3));
            tiny.submit(tiny.a, (gpus, 0), pods);
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
        let Some(fewest) = fewest(&before, gpus).filter(|&fewest| fewest > 0) else { continue };
        let count = tiny.held(tiny.a).len();
        tiny.submit(tiny.a, (gpus, 0), 1);
        tiny.decide(&[Action::Consolidate]);
        if tiny.held(tiny.a).len() <= count {
            compared.instances += 1;
            compared.not_found += 1;
            continue;
        }
        let after = tiny.places();
        let stays = |(id, pods): &&(WorkloadId, Vec<Placed>)| {
            after.iter().any(|(other, theirs)| other == id && theirs == pods)
        };
        let moved = before.iter().filter(|one| !stays(one)).count();
        let moved = u32::try_from(moved).unwrap_or(u32::MAX);
        compared.add(moved, fewest, moved.saturating_sub(fewest));
    }
    compared
}

/// The node and the GPUs of a pod.
type Placed = (usize, u32);

/// The fewest workloads that have to be moved so that a pod has room, over all sets of them.
fn fewest(held: &[(WorkloadId, Vec<Placed>)], gpus: u32) -> Option<u32> {
    let sets = (0..1_u32 << held.len()).filter(|set| {
        let mut free = [GPUS; NODES];
        let mut pods = vec![gpus];
        for (at, (_, places)) in held.iter().enumerate() {
            let moves = set >> at & 1 == 1;
            places.iter().filter(|_| !moves).for_each(|&(node, gpus)| free[node] -= gpus);
            pods.extend(places.iter().filter(|_| moves).map(|place| place.1));
        }
        pods.sort_unstable_by(|left, right| right.cmp(left));
        fit(&pods, &mut free)
    });
    sets.map(u32::count_ones).min()
}

/// Whether pods of so many GPUs fit on nodes with so many.
fn fit(pods: &[u32], free: &mut [u32; NODES]) -> bool {
    let Some((&first, rest)) = pods.split_first() else { return true };
    (0..NODES).any(|at| {
        let Some(left) = free[at].checked_sub(first) else { return false };
        let before = std::mem::replace(&mut free[at], left);
        let fits = fit(rest, free);
        free[at] = before;
        fits
    })
}

/// A number of a range.
fn draw(rng: &mut Rng, from: Range<u32>) -> u32 {
    from.start + u32::try_from(rng.below(from.len())).unwrap_or(0)
}

/// The most GPUs that pods (GPUs, cores) can be given: every set of nodes that can come about.
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

/// The least GPUs to be lost so that so many pods of a size have room, over all sets of workloads.
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

/// A cluster of two projects, of which only the second has a quota.
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

    fn submit(&mut self, queue: QueueId, (gpus, cores): (u32, u32), pods: u32) {
        self.seq += 1;
        let gpu = GpuRequest::Whole(gpus);
        let cpu_millis = u64::from(cores) * 1000;
        let request = PodRequest { gpu, cpu_millis, memory_bytes: 0 };
        let set = PodSetSpec { pods, pods_min: pods, ..request.into() };
        let name = format!("w{}", self.seq);
        let spec = WorkloadSpec::new(name, queue, self.seq, set);
        let id = self.cluster.add_workload(spec).expect("a queue without queues below it");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, true);
        }
    }

    /// One decision; what is stopped is gone at once.
    fn decide(&mut self, actions: &[Action]) {
        let policy = Policy { actions: actions.to_vec(), ..Policy::default() };
        let _ = sched::cycle(&mut self.cluster, Instant(self.seq), &policy);
        for pod in self.cluster.pods().ids().collect::<Vec<_>>() {
            if self.cluster.pods()[pod].binding.releasing {
                self.cluster.vacate(pod);
            }
        }
    }

    /// It is over, and its places are free.
    fn end(&mut self, id: WorkloadId) {
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, false);
            self.cluster.set_binding(pod, model::PodBinding::default());
        }
    }

    /// Where the pods of each workload are.
    fn places(&self) -> Vec<(WorkloadId, Vec<Placed>)> {
        let placed = self.cluster.workloads().iter().filter(|(_, row)| row.placed > 0);
        let of = |row: &model::Workload| {
            let pods = row.pods.iter();
            let places = pods.filter_map(|&pod| self.cluster.pods()[pod].binding.effective());
            let on = |place: &model::Placement| {
                let gpus = u32::try_from(place.devices.len()).unwrap_or(GPUS);
                (place.node.raw() as usize, gpus)
            };
            places.map(on).collect()
        };
        placed.map(|(id, row)| (id, of(row))).collect()
    }

    /// GPUs of each workload of a project that has a place, by node.
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
        (0..3).for_each(|_| tiny.submit(tiny.a, (1, 0), 1));
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
    fn at_most_one_gang_in_a_hundred_costs_more_than_the_least_and_none_by_two_gpus() {
        let all = victims(1, 200);
        assert!(all.best * 100 >= 99 * all.instances && all.worst <= 1, "{all:?}");
        assert_eq!(all.not_found, 0, "{all:?}");
    }

    #[test]
    fn no_more_workloads_are_moved_than_have_to_be() {
        let all = moves(1, 200);
        assert_eq!((all.best, all.not_found), (200, 0), "{all:?}");
    }
}
