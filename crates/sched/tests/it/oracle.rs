//! The scheduler against exhaustive search, on clusters small enough for it.

use model::WorkloadId;
use proptest::prelude::*;
use sched::Action;
use testkit::World;

use crate::histories::histories;

proptest! {
    #![proptest_config(histories(300))]

    #[test]
    fn reclaim_loses_no_more_gpus_than_exhaustive_search(
        jobs in prop::collection::vec(1..=4_u32, 3..9),
        gpus in 1..=6_u32,
    ) {
        let mut w = World::new("n1:6 n2:6 n3:6", "a:0 b:18");
        for (number, size) in jobs.iter().enumerate() {
            w.run(&format!("submit a/j{number} -g {size}"));
        }
        let (held, free) = (held(&w, "a", 3), free(&w));
        let least = cheapest(&held, &free, (1, gpus), gpus_of).expect("all may be stopped");
        w.run(&format!("submit b/taker -g {gpus}"));
        prop_assert_eq!(w.size("taker"), format!("{gpus} ({gpus})"), "it is entitled to all");
        let lost = gpus_of(&losers(&w, &held));
        prop_assert!(lost <= least, "lost {lost}, {least} would do; {held:?}");
    }
}

/// GPUs of a workload on each node, and the cost of stopping it.
#[derive(Debug)]
struct Held {
    id: WorkloadId,
    gpus: Vec<u32>,
    priority: u32,
    lost: u32,
}

impl Held {
    fn total(&self) -> u32 {
        self.gpus.iter().sum()
    }
}

fn gpus_of(chosen: &[&Held]) -> u32 {
    chosen.iter().map(|one| one.total()).sum()
}

/// Resources of the preemptible workloads of a project.
fn held(w: &World, project: &str, nodes: usize) -> Vec<Held> {
    let mine = w.cluster.workloads().iter().filter(|(_, workload)| {
        let queue = &w.cluster.queues()[workload.spec.queue].name;
        queue == project && workload.spec.preemptible && workload.placed > 0
    });
    let of = |(id, workload): (WorkloadId, &model::Workload)| {
        let mut gpus = vec![0; nodes];
        for &pod in &workload.pods {
            if let Some(place) = w.cluster.pods()[pod].binding.effective() {
                gpus[place.node.raw() as usize] += u32::try_from(place.devices.len()).expect("few");
            }
        }
        let lost = gpus.iter().sum::<u32>() * workload.restarts.max(1);
        Held { id, gpus, priority: workload.spec.priority, lost }
    };
    mine.map(of).collect()
}

fn free(w: &World) -> Vec<u32> {
    let free = |gpus: &[model::Gpu]| gpus.iter().filter(|gpu| gpu.committed_millis == 0).count();
    let nodes = w.cluster.nodes().iter();
    nodes.map(|(_, node)| u32::try_from(free(&node.gpus)).expect("few")).collect()
}

/// Minimum loss, by a cost rule, so that `pods` pods of a size fit, over all sets of workloads;
/// `None` if all of them are not enough.
fn cheapest<C: Ord>(
    held: &[Held],
    free: &[u32],
    (pods, gpus): (u32, u32),
    cost: impl Fn(&[&Held]) -> C,
) -> Option<C> {
    let enough = |chosen: &[&Held]| {
        let room = |node: usize| free[node] + chosen.iter().map(|one| one.gpus[node]).sum::<u32>();
        (0..free.len()).map(|node| room(node) / gpus).sum::<u32>() >= pods
    };
    let sets = (0..1_u32 << held.len()).map(|set| {
        let chosen = held.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        chosen.map(|(_, one)| one).collect::<Vec<_>>()
    });
    sets.filter(|chosen| enough(chosen)).map(|chosen| cost(&chosen)).min()
}

/// The workloads of these that have lost their places, or some of their GPUs.
fn losers<'a>(w: &World, held: &'a [Held]) -> Vec<&'a Held> {
    let now = |one: &Held| {
        let pods = w.cluster.workloads()[one.id].pods.iter();
        let places = pods.filter_map(|&pod| w.cluster.pods()[pod].binding.effective());
        places.map(|place| place.devices.len()).sum::<usize>()
    };
    held.iter().filter(|one| now(one) < one.total() as usize).collect()
}

/// Jobs of one or two pods, some of them not preemptible, and a gang within its quota.
#[derive(Debug, Clone)]
struct Reclaims {
    /// GPUs of a pod, pods, and `true` if preemptible.
    jobs: Vec<(u32, u32, bool)>,
    pods: u32,
    gpus: u32,
}

/// GPUs lost, and the minimum; `None` if there could be no room.
fn reclaim(case: &Reclaims) -> Result<Option<(u32, u32)>, String> {
    let mut w = World::new("n1:4 n2:4 n3:4", "a:0 b:12");
    for (number, (gpus, pods, stoppable)) in case.jobs.iter().enumerate() {
        let flags = format!("-g {gpus} --pods {pods}");
        w.run(&if *stoppable {
            format!("submit a/j{number} {flags}")
        } else {
            format!("submit b/j{number} {flags} --interactive")
        });
    }
    let (held, free) = (held(&w, "a", 3), free(&w));
    let least = cheapest(&held, &free, (case.pods, case.gpus), gpus_of);
    w.run(&format!("submit b/taker -g {} --pods {}", case.gpus, case.pods));
    let (has, why) = (w.has_place("taker"), w.why("taker"));
    let Some(least) = least else {
        return if has { Err("there was no room for it".into()) } else { Ok(None) };
    };
    let entitled = case.pods * case.gpus
        + case.jobs.iter().filter(|job| !job.2).map(|job| job.0 * job.1).sum::<u32>();
    if !has && entitled > 12 {
        return Ok(None);
    }
    let text = format!("{least} GPUs would do, {held:?}, free {free:?}: {why}");
    if has { Ok(Some((gpus_of(&losers(&w, &held)), least))) } else { Err(text) }
}

fn reclaims() -> impl Strategy<Value = Reclaims> {
    let job = (1..=3_u32, 1..=2_u32, prop::bool::weighted(0.8));
    (prop::collection::vec(job, 3..8), 1..=3_u32, 1..=4_u32)
        .prop_map(|(jobs, pods, gpus)| Reclaims { jobs, pods, gpus })
}

proptest! {
    #![proptest_config(histories(500))]

    #[test]
    fn a_gang_that_can_reclaim_does_and_costs_at_most_one_gpu_more_than_it_must(
        case in reclaims(),
    ) {
        let outcome = reclaim(&case);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
        if let Ok(Some((lost, least))) = outcome {
            prop_assert!(lost <= least + 1, "lost {lost}, {least} would do");
        }
    }
}

proptest! {
    #![proptest_config(histories(100))]

    #[test]
    fn preemption_stops_the_least_important_and_of_them_the_cheapest(
        jobs in prop::collection::vec((1..=4_u32, prop::sample::select(vec![30, 50, 80])), 3..9),
        gpus in 1..=6_u32,
    ) {
        let mut w = World::new("n1:6 n2:6 n3:6", "a:18");
        for (number, (size, priority)) in jobs.iter().enumerate() {
            w.run(&format!("submit a/j{number} -g {size} --priority {priority}"));
        }
        let (held, free) = (held(&w, "a", 3), free(&w));
        // As little as possible of the most important work.
        let cost = |chosen: &[&Held]| {
            let most = chosen.iter().map(|one| one.priority).max();
            let lost = |one: &&&Held| (Some(one.priority) == most).then_some(one.lost);
            let lost_of_these = chosen.iter().filter_map(|one| lost(&one)).sum::<u32>();
            (most, lost_of_these, chosen.iter().map(|one| one.lost).sum::<u32>(), chosen.len())
        };
        let least = cheapest(&held, &free, (1, gpus), cost).expect("all may be stopped");
        // A stopped workload may evict a less important one in turn, and a queue above its share
        // makes room for itself first.
        w.only_cycle = true;
        w.policy.actions = vec![Action::Preempt];
        w.run(&format!("submit a/taker -g {gpus} --priority 100"));
        prop_assert!(w.has_place("taker"), "{}", w.why("taker"));
        let losers = losers(&w, &held);
        prop_assert!(cost(&losers) <= least, "{losers:?}, {least:?} would do; {held:?}");
    }

    /// No workload waits while it fits into free resources.
    #[test]
    fn no_pod_waits_that_fits_as_things_are(
        sizes in prop::collection::vec(prop::sample::select(vec![200, 500, 700, 1000, 2000, 3000]), 1..12),
        nodes in prop::sample::select(vec!["n1:3 n2:4", "n1:2 n2:2 n3:4", "n1:1 n2:6"]),
    ) {
        let mut w = World::new(nodes, "a:99");
        w.only_cycle = true;
        w.run("cordon n1; cordon n2");
        sizes.iter().enumerate().for_each(|(number, millis)| {
            w.run(&format!("submit a/j{number} -g {}", units::format_millis(*millis)));
        });
        w.only_cycle = false;
        w.run("uncordon n1; uncordon n2");
        for name in w.waiting().split_whitespace() {
            let asked = w.cluster.workloads()[w.id(name)].demand().gpu_millis;
            let fits = w.cluster.nodes().iter().any(|(_, node)| {
                let free = |gpu: &&model::Gpu| 1000 - gpu.committed_millis >= asked.min(1000);
                node.gpus.iter().filter(free).count() as u64 >= asked.div_ceil(1000)
            });
            prop_assert!(!fits, "{name} waits: {}", w.gpus());
        }
    }
}
