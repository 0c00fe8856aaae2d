//! Worth of free GPUs to the pods that could use them.

use model::fragmentation::{Free, Shapes};
use model::{Cluster, GpuRequest, NodeSpec, PodRequest, QueueSpec, Share, WorkloadSpec};
use units::Resources;

/// Worth of the node with the larger GPU to a pod that only fits there.
fn worth_of_large(memory_gib: [u64; 2]) -> Option<u64> {
    let mut cluster = Cluster::new();
    for gib in memory_gib {
        cluster.add_node(NodeSpec::new(format!("n{gib}"), vec![gib << 30], 8000, 64 << 30));
    }
    let unlimited = Share::new(Resources::UNLIMITED, Resources::UNLIMITED);
    let queue = QueueSpec { name: "q".into(), parent: None, share: unlimited, seq: 0 };
    let queue = cluster.add_queue(queue).ok()?;
    let gpu = GpuRequest::Memory { devices: 1, bytes: 40 << 30 };
    let request = PodRequest { gpu, cpu_millis: 1000, memory_bytes: 1 << 30 };
    let spec = WorkloadSpec::new("w".to_owned(), queue, 0, request);
    let id = cluster.add_workload(spec).ok()?;
    cluster.set_wants(cluster.workloads()[id].pods[0], true);
    let shapes = Shapes::of(&cluster);
    let large = cluster.nodes().iter().find(|(_, node)| node.gpus[0].memory_bytes > 40 << 30);
    let (id, node) = large?;
    Some(shapes.worth(node, &shapes.allowed(&cluster, id), &Free::of(node)))
}

#[test]
fn what_a_node_is_worth_does_not_depend_on_the_order_of_nodes() {
    let worth = worth_of_large([80, 16]);
    assert!(worth > Some(0));
    assert_eq!(worth_of_large([16, 80]), worth);
}
