//! A transaction rolled back leaves no trace; accounts always equal the rebuilt ones.

use model::{
    Cluster, DeviceShare, GpuRequest, NodeSpec, Occupancy, Placement, PodRequest, PodSetSpec,
    QueueSpec, Share, WorkloadSpec,
};
use proptest::prelude::*;
use units::{Idx, Resources};

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    for name in ["n1", "n2"] {
        cluster.add_node(NodeSpec::new(name, vec![1 << 34; 4], 64_000, 1 << 40));
    }
    let share = Share::new(Resources::UNLIMITED, Resources::UNLIMITED);
    let spec = QueueSpec { name: "d".into(), parent: None, share, seq: 1 };
    let parent = cluster.add_queue(spec).ok();
    let spec = QueueSpec { name: "a".into(), parent, share, seq: 2 };
    let queue = cluster.add_queue(spec).expect("a sound queue");
    for seq in 0..4_u64 {
        let request = PodRequest { gpu: GpuRequest::Whole(1), cpu_millis: 100, memory_bytes: 7 };
        let spec = WorkloadSpec {
            preemptible: seq % 2 == 0,
            // Two sets, so that what is counted for each set is checked too.
            pod_sets: vec![request.into(), PodSetSpec { pods_min: 0, ..request.into() }],
            ..WorkloadSpec::new(format!("w{seq}"), queue, seq, request)
        };
        let workload = cluster.add_workload(spec).expect("a sound workload");
        for pod in cluster.workloads()[workload].pods.clone() {
            cluster.set_wants(pod, true);
        }
    }
    cluster
}

/// Pod `at` on the one device that is its own, so that nothing is ever given out twice.
fn place(at: u32) -> Placement {
    let device = DeviceShare { gpu: at % 4, millis: 1000 };
    Placement { node: Idx::new(at / 4), devices: [device].into_iter().collect() }
}

fn occupancy(at: u32, kind: u32) -> Occupancy {
    let here = Some(place(at));
    match kind {
        0 => Occupancy::default(),
        1 => Occupancy::at(place(at)),
        2 => Occupancy { current: here, releasing: true, next: None },
        3 => Occupancy { current: None, releasing: false, next: here },
        _ => Occupancy { current: here.clone(), releasing: true, next: here },
    }
}

proptest! {
    #[test]
    fn rollback_restores_every_account(
        first in prop::collection::vec((0..8_u32, 0..5_u32), 0..20),
        second in prop::collection::vec((0..8_u32, 0..5_u32), 0..20),
    ) {
        let mut cluster = cluster();
        cluster.begin();
        for &(pod, kind) in &first {
            cluster.set_occupancy(Idx::new(pod), occupancy(pod, kind));
            prop_assert_eq!(cluster.verify(), Ok(()));
        }
        let before = cluster.clone();
        let checkpoint = cluster.checkpoint();
        for &(pod, kind) in &second {
            cluster.set_occupancy(Idx::new(pod), occupancy(pod, kind));
        }
        cluster.rollback(checkpoint);
        prop_assert_eq!(cluster.verify(), Ok(()));
        for (id, node) in before.nodes().iter() {
            prop_assert_eq!(node, &cluster.nodes()[id]);
        }
        for (id, queue) in before.queues().iter() {
            prop_assert_eq!(queue, &cluster.queues()[id]);
        }
        for (id, pod) in before.pods().iter() {
            prop_assert_eq!(pod, &cluster.pods()[id]);
        }
        let changes = cluster.commit();
        for change in &changes {
            let now = &cluster.pods()[change.pod].occupancy;
            prop_assert!(*now != change.before && change.before == Occupancy::default());
        }
    }
}
