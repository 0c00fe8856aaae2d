//! A live cluster as a scenario. Owns: the description of every object, from which the state can be
//! rebuilt. Does not know about: the source of the cluster.

mod parts;

use std::collections::{BTreeMap, BTreeSet};

use model::{Cluster, Fill, Placement, Pod, PodBinding, PoolId, Workload as Row};
use sched::{Action, Policy, Profile, RuntimeFrom};
use units::{GPU_MILLIS, Instant, Kind, Resources};

use crate::play::IN_POOL;
use crate::scenario::amount::{Count, CountLimit, Size, SizeLimit, Span};
use crate::scenario::{
    self as wire, Amounts, At, Mig, Node, OneOrMany, Place, Queue, QueueShare, Scenario, Task,
    TaskState, Weights, Workload,
};

/// Describes a cluster at an instant.
#[must_use]
pub fn snapshot(cluster: &Cluster, now: Instant, policy: &Policy) -> Scenario {
    let mut scenario = Scenario::empty();
    let in_pool = |(&pool, &chosen): (&PoolId, &sched::Placement)| {
        (cluster.pool_name(pool).to_owned(), placement(chosen))
    };
    let pool_placement = policy.pools.iter().map(in_pool).collect();
    scenario.policy = At::from(wire::Policy { pool_placement, ..knobs(policy, now) });
    let topology = |topology: &model::Topology| wire::Topology {
        name: topology.name.clone(),
        levels: topology.levels.clone(),
    };
    let topologies = cluster.topologies().iter().filter(|row| !row.name.is_empty());
    scenario.topologies = topologies.map(|row| At::from(topology(row))).collect();
    scenario.nodes =
        cluster.nodes().iter().map(|(id, row)| At::from(node(cluster, id, row))).collect();
    let projects = cluster.queues().ids().filter(|&id| cluster.project_of(id) == id);
    let mut projects: Vec<_> = projects.collect();
    projects.sort_by_key(|&id| cluster.queues()[id].seq);
    scenario.empty_pools = empty_pools(cluster, &scenario.policy);
    scenario.queues = projects.into_iter().map(|id| At::from(queue(cluster, id, now))).collect();
    let mut workloads: Vec<_> = cluster.workloads().iter().map(|(_, row)| row).collect();
    workloads.sort_by_key(|row| row.spec.seq);
    let all = workloads.into_iter().map(|row| At::from(workload(cluster, now, row)));
    scenario.workloads = all.collect();
    scenario
}

/// Node pools that workloads or the policy name and that have no node, since nodes can be lost.
fn empty_pools(cluster: &Cluster, policy: &wire::Policy) -> Vec<String> {
    let sets = cluster.workloads().iter().flat_map(|(_, row)| &row.spec.pod_sets);
    let named = sets.flat_map(|set| &set.constraints.pools).chain(policy.pool_placement.keys());
    let named: BTreeSet<_> = named.collect();
    let nodes = cluster.nodes().iter();
    let there: BTreeSet<_> = nodes.map(|(_, node)| model::pool_of(&node.labels)).collect();
    named.into_iter().filter(|pool| !there.contains(pool.as_str())).cloned().collect()
}

fn knobs(policy: &Policy, now: Instant) -> wire::Policy {
    let kai = match policy.profile {
        Profile::Kai(kai) => Some(kai),
        Profile::Default => None,
    };
    wire::Policy {
        profile: Some(kai.map_or(wire::Profile::Default, |_| wire::Profile::Kai)),
        actions: Some(OneOrMany::Many(policy.actions.iter().map(|&a| action(a)).collect())),
        saturation_multiplier: kai.map(|kai| Count::new(kai.saturation_millis)),
        consolidating_reclaim: kai.map(|kai| kai.consolidating_reclaim),
        queue_depth: kai.map(|kai| kai.queue_depth).filter(|&depth| depth < usize::MAX),
        reclaim_runtime: kai.map(|kai| match kai.runtime_from {
            RuntimeFrom::Branch => wire::RuntimeFrom::Lca,
            RuntimeFrom::Leaf => wire::RuntimeFrom::Queue,
        }),
        placement: Some(placement(policy.placement)),
        pool_placement: BTreeMap::new(),
        over_quota: Some(match policy.over_quota {
            sched::OverQuota::ByWeight => wire::OverQuota::ByWeight,
            sched::OverQuota::ByQuota => wire::OverQuota::ByQuota,
        }),
        usage_weight: Some(Count::new(policy.usage_weight_millis)),
        usage: policy.usage.map(|window| usage_window(window, now)),
        consolidation_moves_max: Some(policy.consolidation_moves_max),
        grow_interval: Some(Span::new(policy.grow_interval_ms_min)),
        restart: Some(Span::new(policy.restart_ms)),
        turn: Some(Span::new(policy.turn_ms)),
        reclaim_min_runtime: Some(Span::new(policy.reclaim_min_runtime_ms)),
        preempt_min_runtime: Some(Span::new(policy.preempt_min_runtime_ms)),
        stale_grace: Some(Span::new(policy.stale_grace_ms)),
        reserve_after: Some(Span::new(policy.reserve_after_ms)),
        reservations_max: Some(policy.reservations_max),
        trials_max: Some(policy.trials_max),
    }
}

fn placement(placement: sched::Placement) -> wire::Placement {
    let strategy = |fill| match fill {
        Fill::BinPack => wire::Strategy::BinPack,
        Fill::Spread => wire::Strategy::Spread,
    };
    wire::Placement {
        gpu: strategy(placement.gpu),
        cpu: strategy(placement.cpu),
        devices: strategy(placement.devices),
    }
}

const fn action(action: Action) -> wire::Action {
    match action {
        Action::Promote => wire::Action::Promote,
        Action::Allocate => wire::Action::Allocate,
        Action::GiveBack => wire::Action::GiveBack,
        Action::Consolidate => wire::Action::Consolidate,
        Action::Reclaim => wire::Action::Reclaim,
        Action::Preempt => wire::Action::Preempt,
        Action::Stale => wire::Action::Stale,
        Action::Fit => wire::Action::Fit,
        Action::Grow => wire::Action::Grow,
    }
}

fn usage_window(window: model::UsageWindow, now: Instant) -> wire::UsageWindow {
    let (kind, began) = match window.kind() {
        model::WindowKind::Sliding => (wire::WindowKind::Sliding, None),
        model::WindowKind::Tumbling { .. } => {
            (wire::WindowKind::Tumbling, Some(Span::new(now.since_ms(window.origin(now)))))
        }
    };
    let half_life = window.half_life_ms().map(Span::new);
    wire::UsageWindow { window: Span::new(window.length_ms()), kind, half_life, began }
}

fn node(cluster: &Cluster, id: model::NodeId, row: &model::Node) -> Node {
    let mut node = Node::named(&row.name);
    let model::NodeSpec { gpu_memory_bytes, mig, parts, .. } = row.as_built();
    let sizes = match parts.iter().all(Vec::is_empty) {
        true => gpu_memory_bytes,
        // Scenarios have no instances for parts of GPUs: each part is a GPU of its size.
        false => row.gpus.iter().map(|gpu| gpu.memory_bytes).collect(),
    };
    node.gpus = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let divided = mig.iter().any(|profiles| !profiles.is_empty());
    let parts = mig.into_iter().filter(|_| divided).map(Mig::count);
    node.mig = parts
        .map(Some)
        .collect::<Option<Vec<_>>>()
        .filter(|parts| !parts.is_empty())
        .map(OneOrMany::Many);
    let distinct: BTreeSet<_> = sizes.iter().copied().collect();
    node.gpu_memory = match (distinct.len(), sizes.first()) {
        (1, Some(&size)) => OneOrMany::One(Size::new(size)),
        (0, _) | (_, None) => node.gpu_memory,
        _ => OneOrMany::Many(sizes.into_iter().map(Size::new).collect()),
    };
    node.cpu = Count::new(row.capacity.cpu_millis);
    node.memory = Size::new(row.capacity.memory_bytes);
    node.pods_max = (row.pods_max != u32::MAX).then_some(row.pods_max);
    // Every node has its name as a label, and the pool is written once.
    let is_own = |(key, _): &(&String, &String)| *key != model::HOST_LABEL && *key != IN_POOL;
    let own = row.labels.iter().filter(is_own);
    node.labels = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    let taint = |taint: &model::Taint| wire::Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.into(),
    };
    node.taints = row.taints.iter().map(taint).collect();
    let out = (0..).zip(&row.gpus).filter(|(_, gpu)| !gpu.in_service);
    node.out_of_service = out.map(|(at, _)| at).collect();
    node.draining = cluster.draining().contains(&id);
    node.cordoned = !row.schedulable && !node.draining;
    node
}

fn amounts(resources: Resources) -> Amounts {
    Amounts {
        gpu: Some(CountLimit::new(resources.gpu_millis)),
        cpu: Some(CountLimit::new(resources.cpu_millis)),
        memory: Some(SizeLimit::new(resources.memory_bytes)),
    }
}

fn queue(cluster: &Cluster, id: model::QueueId, now: Instant) -> Queue {
    let row = &cluster.queues()[id];
    let pools = cluster.queues_of(id).map(|id| &cluster.queues()[id]).filter(|row| {
        // A pool without nodes has no name in a scenario.
        row.pool == PoolId::DEFAULT || cluster.capacity_of(row.pool) != Resources::ZERO
    });
    let mut queue = match pools.collect::<Vec<_>>().as_slice() {
        [only] => Queue::with(&row.name, share(only, now)),
        pools => {
            let named =
                |row: &&model::Queue| (cluster.pool_name(row.pool).to_owned(), share(row, now));
            Queue { pools: pools.iter().map(named).collect(), ..Queue::named(&row.name) }
        }
    };
    queue.parent = row.parent.map(|above| cluster.queues()[above].name.clone());
    queue
}

fn share(row: &model::Queue, now: Instant) -> QueueShare {
    let share = &row.share;
    let weight = |weight: u64| Some(u32::try_from(weight).unwrap_or(u32::MAX));
    let ppm = |kind| u32::try_from(row.usage.of(kind)).unwrap_or(u32::MAX);
    QueueShare {
        quota: amounts(share.quota),
        limit: amounts(share.limit),
        weight: Weights {
            gpu: weight(share.over_quota_weight.gpu),
            cpu: weight(share.over_quota_weight.cpu),
            memory: weight(share.over_quota_weight.memory),
        },
        priority: Some(share.priority),
        usage_ppm: wire::UsagePpm {
            gpu: ppm(Kind::Gpu),
            cpu: ppm(Kind::Cpu),
            memory: ppm(Kind::Memory),
        },
        lag: wire::Lag {
            gpu_ms: row.lag.at(now) / GPU_MILLIS.cast_signed(),
            turn: row.lag.turn_since.map(|since| Span::new(now.since_ms(since))),
        },
        preempt_min_runtime: share.preempt_min_runtime_ms.map(Span::new),
        reclaim_min_runtime: share.reclaim_min_runtime_ms.map(Span::new),
    }
}

fn workload(cluster: &Cluster, now: Instant, row: &Row) -> Workload {
    let spec = &row.spec;
    let mut workload = Workload::named(&spec.name, &cluster.queues()[spec.queue].name);
    let ago = |at: Instant| Span::new(now.since_ms(at));
    let pods = || row.pods.iter().map(|&pod| &cluster.pods()[pod]);
    workload.priority = Some(spec.priority);
    workload.spare_priority = spec.spare_priority;
    workload.preemptible = Some(spec.preemptible);
    workload.elastic = spec.elastic;
    workload.may_be_elastic = (!spec.may_be_elastic).then_some(false);
    // All pod sets of a workload have equal pools.
    workload.pools.clone_from(&spec.pod_sets[0].constraints.pools);
    parts::write(cluster, spec, &mut workload);
    workload.preemption_delay =
        (spec.preemption_delay_ms > 0).then(|| Span::new(spec.preemption_delay_ms));
    workload.suspended = !pods().any(|pod| pod.wants);
    workload.gated = pods().all(|pod| pod.gated);
    workload.age = Some(ago(spec.created_at));
    workload.started = row.last_start.map(ago);
    workload.resized = row.last_resize.map(ago);
    workload.checkpointed = row.checkpointed_at.map(ago);
    workload.restarts = row.restarts;
    workload.stale = row.stale_since.map(ago);
    workload.last_evicted = row.last_eviction.map(ago);
    workload.time_limit = spec.time_limit_ms.map(Span::new);
    let wait = row.not_before.since_ms(now);
    workload.not_before = (wait > 0).then(|| Span::new(wait));
    let untouched = Task::default();
    let mut tasks: Vec<_> = pods().map(|pod| task(cluster, pod, &workload)).collect();
    while tasks.last() == Some(&untouched) {
        tasks.pop();
    }
    workload.tasks = tasks.into_iter().map(At::from).collect();
    workload
}

fn task(cluster: &Cluster, pod: &Pod, of: &Workload) -> Task {
    let place = |place: &Placement| Place {
        node: cluster.nodes()[place.node].name.clone(),
        gpus: place.devices.iter().map(|share| share.gpu).collect(),
    };
    let PodBinding { current, releasing, next } = &pod.binding;
    let state = match current {
        Some(_) if *releasing => TaskState::Releasing,
        Some(_) => TaskState::Running,
        None if pod.succeeded => TaskState::Succeeded,
        None => TaskState::Pending,
    };
    let here = current.as_ref().map(place);
    Task {
        state,
        node: here.as_ref().map(|place| place.node.clone()),
        gpus: here.map(|place| place.gpus).unwrap_or_default(),
        next: next.as_ref().map(place),
        unwanted: !pod.wants && !of.suspended && state != TaskState::Succeeded,
        ..Task::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos;
    use crate::play::Simulation;
    use crate::states::State;

    /// The cluster as a scenario, without ids and times. Usage is left out: when read back it is
    /// exact to a thousandth of a GPU.
    fn told(cluster: &Cluster, now: Instant) -> String {
        let mut scenario = snapshot(cluster, now, &Policy::default());
        for queue in &mut scenario.queues {
            queue.value.usage_ppm = wire::UsagePpm::default();
            let pools = queue.value.pools.values_mut();
            pools.for_each(|share| share.usage_ppm = wire::UsagePpm::default());
        }
        scenario.to_json().unwrap()
    }

    /// Asserts that two texts are equal; reports the first line that differs.
    fn same(one: &str, other: &str, what: &dyn std::fmt::Display) {
        for (number, (left, right)) in one.lines().zip(other.lines()).enumerate() {
            let before: Vec<_> = one.lines().take(number).skip(number.saturating_sub(12)).collect();
            let next: Vec<_> = other.lines().skip(number + 1).take(30).collect();
            assert_eq!(
                left,
                right,
                "{what}, line {number}: {next:?}, after\n{}",
                before.join("\n")
            );
        }
        assert_eq!(one.len(), other.len(), "{what}");
    }

    #[test]
    fn a_state_read_from_its_snapshot_is_told_the_same_and_decides_the_same() {
        for state in State::ALL {
            let mut cluster = state.build(10);
            let now = Instant(1 << 42);
            let text = told(&cluster, now);
            let scenario = Scenario::read(&text).unwrap();
            let mut again = Simulation::new(&scenario).unwrap();
            // Its departments have the names of departments then.
            let text = told(again.cluster(), again.now());
            let third = Simulation::new(&Scenario::read(&text).unwrap()).unwrap();
            same(&told(third.cluster(), third.now()), &text, &state.name());
            let plan = sched::cycle(&mut cluster, now.plus_ms(1), &Policy::default());
            again.decide(None).unwrap();
            assert_eq!(again.plan().steps, plan.steps, "{}", state.name());
        }
    }

    #[test]
    fn states_in_the_middle_of_a_history_are_told_the_same() {
        let mut moving = 0;
        for seed in 1..200 {
            let machine = chaos::after(seed, 40, &Policy::default());
            let Some((cluster, _)) = machine.replica() else { continue };
            let text = told(cluster, machine.clock.now());
            moving += usize::from(text.contains("releasing"));
            let again = Simulation::new(&Scenario::read(&text).unwrap());
            let again = again.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            same(&told(again.cluster(), again.now()), &text, &format!("seed {seed}"));
        }
        assert!(moving > 3, "too few histories end while something is being stopped");
    }
}
