//! MIG instances that are given out for parts of GPUs, from the node to the run.

use engine::GpuHealth;
use model::GpuRequest as Counted;
use spec::{Bounds, GpuRequest, Instance, NodeGpu, NodeSpec, SharedGpus, WorkloadSpec};
use view::Phase;

use crate::world::{World, nodes, training, with};

const GIB: u64 = 1 << 30;

/// A node with one GPU of 80 GiB in instances of these eighths, each with a little less.
fn divided(instances: &[(&str, u64)]) -> Vec<NodeSpec> {
    let instance = |&(uuid, eighths): &(&str, u64)| NodeGpu {
        instance: Some(Instance {
            gpu: 0,
            gpu_uuid: "GPU-a".to_owned(),
            gpu_memory_bytes: 80 * GIB,
            profile: format!("{eighths}g.{}gb", 10 * eighths),
        }),
        ..NodeGpu::new(uuid.to_owned(), eighths * 10 * GIB - GIB / 2)
    };
    let [node] = &*nodes(1, 0) else { panic!("one node") };
    let gpus = instances.iter().map(instance).collect();
    vec![NodeSpec { gpus, gpu_type: "H100".to_owned(), simulated: false, ..node.clone() }]
}

fn part(name: &str, millis: u64) -> WorkloadSpec {
    let shared = SharedGpus { devices: 1, compute: Some(Bounds::of(millis)), memory: None };
    let spec = with(training(name, 1), |pod| pod.gpu = GpuRequest::Shared(shared));
    let counted = spec.sets().next().expect("one set").pod.gpu.counted();
    assert_eq!(counted, Counted::Share { devices: 1, millis });
    spec
}

#[tokio::test]
async fn a_run_gets_the_smallest_instance_that_holds_it_and_the_next_one_waits_for_it() {
    let w = World::new(divided(&[("MIG-small", 2), ("MIG-half", 4)]), &[2]).await;
    w.submit(1, part("a", 500)).await;
    w.submit(1, part("b", 100)).await;
    w.submit(1, part("c", 300)).await;
    w.becomes("a Running 0.5/0.5\nb Running 0.1/0.1\nc Pending 0/0.3").await;
    let device = |name| w.engine.run_of(name).devices.remove(0);
    let (a, b) = (device("a"), device("b"));
    assert_eq!((&*a.uuid, a.millis, a.memory_bytes), ("MIG-half", 500, 40 * GIB - GIB / 2));
    assert_eq!((&*b.uuid, b.millis, b.memory), ("MIG-small", 100, Bounds::of(20 * GIB - GIB / 2)));
    w.waits_for("c", "P112").await;
    assert_eq!(
        &*w.why("c")[0].message,
        "asks for 0.3 of a GPU; 1 of 2 MIG instances on 1 node holds that, none of them is free"
    );
    w.delete("a").await;
    w.phase("c", Phase::Running).await;
    assert_eq!(w.engine.run_of("c").devices[0].uuid, "MIG-half");
}

#[tokio::test]
async fn what_runs_keeps_its_instance_where_others_were_made_while_the_server_was_away() {
    let mut w = World::new(divided(&[("MIG-small", 2), ("MIG-half", 4)]), &[2]).await;
    w.submit(1, part("a", 500)).await;
    w.phase("a", Phase::Running).await;
    w.set_nodes(divided(&[("MIG-new-1", 1), ("MIG-new-2", 1), ("MIG-half", 4)]));
    w.restart().await;
    w.becomes("a Running 0.5/0.5").await;
    w.submit(1, part("b", 100)).await;
    w.submit(1, part("c", 100)).await;
    w.submit(1, part("d", 100)).await;
    w.becomes("a Running 0.5/0.5\nb Running 0.1/0.1\nc Running 0.1/0.1\nd Pending 0/0.1").await;
    let uuid = |name| w.engine.run_of(name).devices.remove(0).uuid;
    assert_eq!(["a", "b", "c"].map(uuid), ["MIG-half", "MIG-new-1", "MIG-new-2"]);
}

#[tokio::test]
async fn who_had_an_instance_that_is_gone_waits_for_another() {
    let mut w = World::new(divided(&[("MIG-small", 2), ("MIG-half", 4)]), &[2]).await;
    w.submit(1, part("a", 500)).await;
    w.phase("a", Phase::Running).await;
    w.set_nodes(divided(&[("MIG-new-1", 2), ("MIG-new-2", 2)]));
    w.restart().await;
    w.waits_for("a", "P101").await;
}

#[tokio::test]
async fn what_is_the_matter_with_a_gpu_is_so_with_all_its_instances() {
    let w = World::new(divided(&[("MIG-small", 2), ("MIG-half", 4)]), &[2]).await;
    w.submit(1, part("a", 100)).await;
    w.submit(1, part("b", 100)).await;
    w.becomes("a Running 0.1/0.1\nb Running 0.1/0.1").await;
    let lost = GpuHealth { fault: Some("it fell off the bus".to_owned()), foreign: None };
    w.engine.gpu_is("GPU-a", lost);
    w.clock.advance_ms(30_000);
    w.becomes("a Pending 0/0.1\nb Pending 0/0.1").await;
    assert_eq!(w.handle.view().nodes[0].gpu_faults.len(), 2);
}
