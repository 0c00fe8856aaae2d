//! A transaction rolled back leaves no trace, in any initial state; accounts always equal the
//! rebuilt ones.

use std::collections::BTreeMap;

use model::{
    Cluster, Constraints, DeviceShare, GpuRequest, GroupSpec, NodeId, NodeSpec, POOL_LABEL,
    Placement, PodBinding, PodId, PodRequest, PodSetSpec, PodTerm, QueueId, QueueSpec, Share,
    Taint, TopologyConstraint, TopologyId, Usage, WorkloadId, WorkloadSpec,
};
use proptest::prelude::*;
use smallvec::SmallVec;
use units::{GPU_MILLIS, Instant, Resources};

/// A random operation on a cluster. Numbers are taken modulo the number of objects.
#[derive(Debug, Clone)]
enum Op {
    AddWorkload { shape: usize, queue: usize },
    RemoveWorkload(usize),
    Wants(usize, bool),
    Gated(usize, bool),
    Join { workload: usize, index: usize },
    Leave(usize),
    AddNode(usize),
    RemoveNode(usize),
    Labels { node: usize, variant: usize },
    Hardware { node: usize, variant: usize },
    Schedulable(usize, bool),
    Drain(usize),
    Quota { queue: usize, gpus: u64 },
    Used { queue: usize, ppm: u64 },
    Marks { workload: usize, at: u64 },
    Precedence { workload: usize, priority: u32, preemptible: bool },
    Move(Move),
}

/// An action of the scheduler on a pod: the only kind of change that can be undone.
#[derive(Debug, Clone)]
struct Move {
    pod: usize,
    node: usize,
    gpus: usize,
    kind: usize,
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0..100_usize;
    prop_oneof![
        6 => (n.clone(), n.clone()).prop_map(|(shape, queue)| Op::AddWorkload { shape, queue }),
        1 => n.clone().prop_map(Op::RemoveWorkload),
        1 => (n.clone(), any::<bool>()).prop_map(|(pod, wants)| Op::Wants(pod, wants)),
        1 => (n.clone(), any::<bool>()).prop_map(|(pod, gated)| Op::Gated(pod, gated)),
        2 => (n.clone(), 0..6_usize).prop_map(|(workload, index)| Op::Join { workload, index }),
        2 => n.clone().prop_map(Op::Leave),
        1 => n.clone().prop_map(Op::AddNode),
        1 => n.clone().prop_map(Op::RemoveNode),
        1 => (n.clone(), n.clone()).prop_map(|(node, variant)| Op::Labels { node, variant }),
        1 => (n.clone(), n.clone()).prop_map(|(node, variant)| Op::Hardware { node, variant }),
        1 => (n.clone(), any::<bool>()).prop_map(|(node, open)| Op::Schedulable(node, open)),
        1 => n.clone().prop_map(Op::Drain),
        1 => (n.clone(), 0..9_u64).prop_map(|(queue, gpus)| Op::Quota { queue, gpus }),
        1 => (n.clone(), 0..9_u64).prop_map(|(queue, ppm)| Op::Used { queue, ppm }),
        1 => (n.clone(), 0..9_u64).prop_map(|(workload, at)| Op::Marks { workload, at }),
        1 => (n, 0..3_u32, any::<bool>()).prop_map(|(workload, priority, preemptible)| {
            Op::Precedence { workload, priority, preemptible }
        }),
        9 => step().prop_map(Op::Move),
    ]
}

fn step() -> impl Strategy<Value = Move> {
    (0..100_usize, 0..100_usize, 1..4_usize, 0..6_usize).prop_map(|(pod, node, gpus, kind)| Move {
        pod,
        node,
        gpus,
        kind,
    })
}

fn node_spec(name: &str, variant: usize) -> NodeSpec {
    let mut spec = NodeSpec::new(name, vec![1 << 34; [4, 2, 0][variant % 3]], 64_000, 1 << 40);
    spec.labels = labels(variant);
    spec
}

fn labels(variant: usize) -> std::collections::BTreeMap<String, String> {
    let pairs = [("zone", variant % 2), ("rack", variant % 4 / 2), (POOL_LABEL, variant % 3)];
    let known = pairs.iter().take(variant % 4);
    known.map(|(key, value)| ((*key).to_owned(), value.to_string())).collect()
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.add_topology("net", vec!["zone".into(), "rack".into()]).expect("a sound topology");
    for (number, name) in ["n1", "n2", "n3"].into_iter().enumerate() {
        cluster.add_node(node_spec(name, number));
    }
    let share = Share::new(Resources::UNLIMITED, Resources::UNLIMITED);
    let spec = |name: &str, parent, seq| QueueSpec { name: name.into(), parent, share, seq };
    let parent = cluster.add_queue(spec("d", None, 1)).ok();
    for (name, above, seq) in [("a", parent, 2), ("b", parent, 3), ("c", None, 4)] {
        cluster.add_queue(spec(name, above, seq)).expect("a sound queue");
    }
    cluster
}

fn workload(shape: usize, queue: QueueId, seq: u64, net: TopologyId) -> WorkloadSpec {
    let gpu = [
        GpuRequest::Whole(0),
        GpuRequest::Whole(1),
        GpuRequest::Whole(2),
        GpuRequest::Share { devices: 1, millis: 300 },
        GpuRequest::Memory { devices: 1, bytes: 1 << 32 },
    ][shape % 5];
    let request = PodRequest { gpu, cpu_millis: 100, memory_bytes: 7 };
    let near = |required| Some(TopologyConstraint { topology: net, required, preferred: Some(1) });
    let pools = vec!["1".to_owned(), "0".to_owned()];
    let constraints = Constraints { pools, ..Constraints::default() };
    let first = PodSetSpec { pods: 3, pods_min: 2, topology: near(Some(0)), ..request.into() };
    let mut spec = WorkloadSpec::new(format!("w{seq}"), queue, seq, first.clone());
    spec.preemptible = shape.is_multiple_of(2);
    spec.elastic = shape % 7 < 2 && gpu.devices() > 0;
    match shape % 4 {
        0 => spec.pod_sets = vec![PodSetSpec { constraints, ..request.into() }],
        1 if !spec.elastic => {
            let grouped = PodSetSpec { name: "s".into(), group: Some(0), ..request.into() };
            spec.pod_sets = vec![grouped, PodSetSpec { pods_min: 0, ..first }];
            let group = GroupSpec {
                name: "g".into(),
                parent: None,
                children_min: Some(1),
                topology: near(None),
            };
            (spec.groups, spec.children_min) = (vec![group], Some(1));
        }
        2 if !spec.elastic => {
            spec.pod_sets = vec![social(request), PodSetSpec { pods_min: 0, ..request.into() }];
        }
        _ => {}
    }
    spec
}

/// A pod with affinity terms that select it, and anti-affinity of its own.
fn social(request: PodRequest) -> PodSetSpec {
    let labels: BTreeMap<_, _> = [("app".to_owned(), "x".to_owned())].into();
    let term = PodTerm { labels: labels.clone(), topology_key: "hostname".into() };
    let pod_anti_affinity = vec![term];
    let constraints = Constraints { labels, pod_anti_affinity, ..Constraints::default() };
    PodSetSpec { constraints, ..request.into() }
}

fn nth<T: Copy>(all: &[T], at: usize) -> Option<T> {
    all.get(at % all.len().max(1)).copied()
}

fn ids<T>(table: &units::Table<T>) -> Vec<units::Idx<T>> {
    table.ids().collect()
}

fn apply(cluster: &mut Cluster, number: u64, op: &Op) {
    let pod = |cluster: &Cluster, at: usize| nth(&ids(cluster.pods()), at);
    let some_workload = |cluster: &Cluster, at: usize| nth(&ids(cluster.workloads()), at);
    match *op {
        Op::AddWorkload { shape, queue } => {
            let leaves = ids(cluster.queues());
            let net = cluster.topology_named("net").expect("it was added");
            // The first has child queues.
            let queue = leaves[1 + queue % (leaves.len() - 1)];
            let spec = workload(shape, queue, number, net);
            let id = cluster.add_workload(spec).expect("a sound workload");
            wants(cluster, id);
        }
        Op::RemoveWorkload(at) => {
            if let Some(id) = some_workload(cluster, at) {
                // A workload with a place stays.
                let _ = cluster.remove_workload(id);
            }
        }
        Op::Wants(at, wants) => {
            pod(cluster, at).into_iter().for_each(|p| cluster.set_wants(p, wants));
        }
        Op::Gated(at, gated) => {
            pod(cluster, at).into_iter().for_each(|p| cluster.set_gated(p, gated));
        }
        Op::Join { .. } | Op::Leave(_) => change_members(cluster, op),
        Op::AddNode(_)
        | Op::RemoveNode(_)
        | Op::Labels { .. }
        | Op::Hardware { .. }
        | Op::Schedulable(..)
        | Op::Drain(_) => apply_to_node(cluster, number, op),
        Op::Quota { queue, gpus } => {
            let id = nth(&ids(cluster.queues()), queue).expect("they stay");
            let quota = Resources { gpu_millis: gpus * GPU_MILLIS, ..Resources::UNLIMITED };
            let share = Share { quota, ..cluster.queues()[id].share };
            cluster.set_share(id, share).expect("a living queue");
        }
        Op::Used { queue, ppm } => {
            let id = nth(&ids(cluster.queues()), queue).expect("they stay");
            cluster.set_usage(id, Usage { gpu_ppm: ppm, ..Usage::default() });
        }
        Op::Marks { workload, at } => mark(cluster, workload, Instant(at)),
        Op::Precedence { workload, priority, preemptible } => {
            let id = some_workload(cluster, workload);
            id.into_iter().for_each(|id| cluster.set_precedence(id, priority, preemptible));
        }
        Op::Move(ref step) => go(cluster, step),
    }
}

fn change_members(cluster: &mut Cluster, op: &Op) {
    match *op {
        Op::Join { workload, index } => {
            let Some(id) = nth(&ids(cluster.workloads()), workload) else { return };
            let joined = cluster.join(id, u32::try_from(index).expect("a small number"));
            assert_eq!(joined.is_some(), index < cluster.workloads()[id].spec.pods() as usize);
            joined.into_iter().for_each(|pod| cluster.set_wants(pod, true));
        }
        Op::Leave(at) => {
            let Some(pod) = nth(&ids(cluster.pods()), at) else { return };
            let is_nowhere = cluster.pods()[pod].binding == PodBinding::default();
            assert_eq!(cluster.leave(pod).is_ok(), is_nowhere, "one that has a place stays");
        }
        _ => {}
    }
}

fn apply_to_node(cluster: &mut Cluster, number: u64, op: &Op) {
    let node = |cluster: &Cluster, at: usize| nth(&ids(cluster.nodes()), at);
    match *op {
        Op::AddNode(variant) => {
            cluster.add_node(node_spec(&format!("m{number}"), variant));
        }
        Op::RemoveNode(at) if cluster.nodes().len() > 1 => {
            node(cluster, at).into_iter().for_each(|id| cluster.remove_node(id));
        }
        Op::RemoveNode(_) => {}
        Op::Labels { node: at, variant } => {
            let effect = model::Effect::PreferNoSchedule;
            let taint = Taint { key: "slow".into(), value: String::new(), effect };
            let taints = if variant % 5 == 0 { vec![taint] } else { Vec::new() };
            let id = node(cluster, at).expect("one always stays");
            cluster.set_labels(id, labels(variant), taints);
        }
        Op::Hardware { node: at, variant } => {
            let id = node(cluster, at).expect("one always stays");
            // GPUs in use stay.
            let gpus = &cluster.nodes()[id].gpus;
            let used = gpus.iter().rposition(|gpu| gpu.used_millis + gpu.committed_millis > 0);
            let count = used.map_or(0, |last| last + 1).max(variant % 6);
            let cpu_millis = [64_000, 50][variant % 2];
            cluster.set_hardware(id, &vec![1 << (33 + variant % 2); count], cpu_millis, 1 << 40);
        }
        Op::Schedulable(at, open) => {
            cluster.set_schedulable(node(cluster, at).expect("one always stays"), open);
        }
        Op::Drain(at) => cluster.drain(node(cluster, at).expect("one always stays")),
        _ => {}
    }
}

fn mark(cluster: &mut Cluster, workload: usize, at: Instant) {
    let Some(id) = nth(&ids(cluster.workloads()), workload) else { return };
    cluster.set_not_before(id, at);
    cluster.set_starts(id, Some(at), None);
    cluster.set_evicted(id, at);
    cluster.set_checkpointed(id, Some(at));
    cluster.set_stale(id, (at.0.is_multiple_of(2)).then_some(at));
}

fn wants(cluster: &mut Cluster, id: WorkloadId) {
    for pod in cluster.workloads()[id].pods.clone() {
        cluster.set_wants(pod, true);
    }
}

/// A place for a pod that is free now and later, with `gpus` devices if it is elastic.
fn place(cluster: &Cluster, pod: PodId, node: NodeId, gpus: usize) -> Option<Placement> {
    let request = cluster.workload_of(pod).spec.pod_sets[cluster.pods()[pod].set as usize].request;
    let elastic = cluster.workload_of(pod).spec.elastic;
    let count = if elastic { gpus } else { request.gpu.devices() as usize };
    let devices = (0..).zip(&cluster.nodes()[node].gpus).filter_map(|(gpu, row)| {
        let millis = request.gpu.needs_of(row)?;
        (row.committed_millis + millis <= GPU_MILLIS && row.used_millis + millis <= GPU_MILLIS)
            .then_some(DeviceShare { gpu, millis })
    });
    let devices: SmallVec<[DeviceShare; 2]> = devices.take(count).collect();
    (devices.len() == count).then_some(Placement { node, devices })
}

fn go(cluster: &mut Cluster, step: &Move) {
    let pods = ids(cluster.pods());
    let Some(pod) = nth(&pods, step.pod) else { return };
    let node = nth(&ids(cluster.nodes()), step.node).expect("one always stays");
    let new = place(cluster, pod, node, step.gpus);
    let PodBinding { current, releasing, next } = cluster.pods()[pod].binding.clone();
    let binding = match (step.kind, current, next) {
        (0, None, None) => new.map(PodBinding::at),
        (1, None, None) => Some(PodBinding { current: None, releasing, next: new }),
        // The pod is stopped, or moved.
        (0..2, Some(here), None) => {
            let next = if step.kind == 0 { None } else { new };
            Some(PodBinding { current: Some(here), releasing: true, next })
        }
        // The pod shrinks in place: the places overlap.
        (2, Some(here), None) if !releasing && here.devices.len() > 1 => {
            let mut less = here.clone();
            less.devices.truncate(1);
            Some(PodBinding { current: Some(here), releasing: true, next: Some(less) })
        }
        // The pod is gone; then it starts in its reserved place, if that is free.
        (3, Some(_), next) => Some(PodBinding { current: None, releasing: false, next }),
        (3, None, Some(next)) => {
            let room = cluster.amounts(pod, &next);
            let free = cluster.nodes()[next.node].has_room_now(&next.devices, room);
            free.then(|| PodBinding::at(next))
        }
        (4, _, _) => Some(PodBinding::default()),
        _ => None,
    };
    if let Some(binding) = binding {
        cluster.set_binding(pod, binding);
    }
}

proptest! {
    #[test]
    fn rollback_restores_the_state_bit_for_bit(
        history in prop::collection::vec(op(), 0..60),
        first in prop::collection::vec(step(), 0..20),
        second in prop::collection::vec(step(), 0..40),
    ) {
        let mut cluster = cluster();
        for (number, op) in (0..).zip(&history) {
            apply(&mut cluster, number, op);
            prop_assert_eq!(cluster.verify(), Ok(()), "after {:?}", op);
        }
        let untouched = cluster.clone();
        cluster.begin();
        let start = cluster.checkpoint();
        first.iter().for_each(|step| go(&mut cluster, step));
        let before = cluster.clone();
        let checkpoint = cluster.checkpoint();
        second.iter().for_each(|step| go(&mut cluster, step));
        prop_assert_eq!(cluster.verify(), Ok(()));
        let other = cluster.state_revision();
        cluster.rollback(checkpoint);
        prop_assert_eq!(cluster.same_as(&before), Ok(()));
        prop_assert_eq!(cluster.state_revision(), before.state_revision());
        let again = cluster.checkpoint();
        second.iter().for_each(|step| go(&mut cluster, step));
        let changed = cluster.state_revision() != before.state_revision();
        prop_assert!(!changed || cluster.state_revision() != other, "one number for one way there");
        cluster.rollback(again);
        cluster.rollback(start);
        prop_assert_eq!(cluster.same_as(&untouched), Ok(()));
        prop_assert_eq!(cluster.state_revision(), untouched.state_revision());
        prop_assert_eq!(cluster.commit(), vec![]);
    }

    #[test]
    fn commit_tells_what_changed_and_what_it_was(
        history in prop::collection::vec(op(), 0..40),
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut cluster = cluster();
        (0..).zip(&history).for_each(|(number, op)| apply(&mut cluster, number, op));
        let before = cluster.clone();
        cluster.begin();
        steps.iter().for_each(|step| go(&mut cluster, step));
        let changed: Vec<_> = cluster.commit().into_iter().map(|c| (c.pod, c.before)).collect();
        let binding = |cluster: &Cluster, pod: PodId| cluster.pods()[pod].binding.clone();
        let differ = before.pods().ids().filter(|&pod| binding(&before, pod) != binding(&cluster, pod));
        let expected: Vec<_> = differ.map(|pod| (pod, binding(&before, pod))).collect();
        prop_assert_eq!(changed, expected);
    }
}
