//! The scheduler against exhaustive search, on clusters small enough for it.

use proptest::prelude::*;
use testkit::World;

/// Least GPUs lost if `gpus` of them have to come free on one node, by trying every set of jobs.
fn least_loss(nodes: &[Vec<u32>], capacity: u32, gpus: u32) -> Option<u32> {
    let on_node = |jobs: &Vec<u32>| {
        let free = capacity - jobs.iter().sum::<u32>();
        let sets = 0..1_u32 << jobs.len();
        let lost = sets.map(|set| {
            let chosen = jobs.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            chosen.map(|(_, gpus)| gpus).sum::<u32>()
        });
        lost.filter(|lost| lost + free >= gpus).min()
    };
    nodes.iter().filter_map(on_node).min()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn reclaim_loses_no_more_gpus_than_exhaustive_search(
        jobs in prop::collection::vec(1..=4_u32, 3..9),
        gpus in 1..=6_u32,
    ) {
        let mut w = World::new("n1:6 n2:6 n3:6", "a:0 b:18");
        for (number, size) in jobs.iter().enumerate() {
            w.run(&format!("submit a/j{number} -g {size}"));
        }
        let mut nodes = vec![Vec::new(); 3];
        for (_, workload) in w.cluster.workloads().iter() {
            let pod = workload.pods[0];
            if let Some(place) = w.cluster.pods()[pod].occupancy.effective() {
                nodes[place.node.raw() as usize].push(u32::try_from(place.devices.len()).unwrap());
            }
        }
        let held = |w: &World| {
            let mut queues = w.cluster.queues().iter();
            let queue = queues.find(|(_, queue)| queue.name == "a").unwrap().1;
            u32::try_from(queue.allocated.gpu_millis / 1000).unwrap()
        };
        let before = held(&w);
        w.run(&format!("submit b/taker -g {gpus}"));
        prop_assert_eq!(w.size("taker"), format!("{gpus} ({gpus})"), "it is entitled to all");
        let lost = before.saturating_sub(held(&w));
        let least = least_loss(&nodes, 6, gpus).unwrap();
        prop_assert!(lost <= least, "lost {lost}, {least} would do; {nodes:?}");
    }
}
