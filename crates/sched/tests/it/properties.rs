//! Invariants under random histories. [`World`] itself checks after every cycle that all sums are
//! consistent, nothing is assigned twice, equal input gives an equal plan, no gang starts in part
//! and every waiting workload has a reason; and that the scheduler stops deciding.

use std::collections::BTreeMap;

use model::{UsageWindow, WindowKind};
use proptest::prelude::*;
use testkit::World;

use crate::histories::{
    Action, LABELS, NODES, SHAPES, action, action_with_pools, action_with_settings, apply,
    histories,
};

/// Checks that each suggestion for each waiting workload lets it start.
fn follow_all(w: &World) -> Result<(), TestCaseError> {
    for name in w.waiting().split_whitespace() {
        let placed = |w: &World| w.cluster.workloads()[w.id(name)].placed;
        for advice in w.diagnosis(name).into_iter().flat_map(|diagnosis| diagnosis.advice) {
            let mut then = w.clone();
            then.slow = false;
            then.follow(name, &advice.change);
            let text = advice.text(w.now);
            prop_assert!(placed(&then) > placed(w), "{name}: {text}\n{}", w.diagnosed(name));
            let commands = advice.commands();
            let mut typed = w.clone();
            typed.slow = false;
            commands.iter().for_each(|command| type_in(&mut typed, command));
            typed.run("wait 0");
            let happens = commands.is_empty() || placed(&typed) > placed(w);
            prop_assert!(happens, "{name}: {commands:?}\n{}", w.diagnosed(name));
        }
    }
    Ok(())
}

/// Carries out a command.
fn type_in(w: &mut World, command: &str) {
    match command.split(' ').collect::<Vec<_>>()[..] {
        ["elastane", "node", "uncordon", name] => {
            let node = w.cluster.nodes().iter().find(|(_, node)| node.name == name);
            let (node, _) = node.expect("a known node");
            w.cluster.set_schedulable(node, true);
        }
        ["elastane", "node", "taint", name, taint] => {
            let node = w.cluster.nodes().iter().find(|(_, node)| node.name == name);
            let (id, node) = node.expect("a known node");
            let gone = |other: &model::Taint| format!("{}:{}-", other.key, other.effect) == taint;
            let (labels, mut taints) = (node.labels.clone(), node.taints.clone());
            taints.retain(|other| !gone(other));
            w.cluster.set_labels(id, labels, taints);
        }
        ["elastane", "node", "label", name, label] => {
            let node = w.cluster.nodes().iter().find(|(_, node)| node.name == name);
            let (id, node) = node.expect("a known node");
            let (key, value) = label.split_once('=').expect("a label");
            let (mut labels, taints) = (node.labels.clone(), node.taints.clone());
            labels.insert(key.to_owned(), value.to_owned());
            w.cluster.set_labels(id, labels, taints);
        }
        ["runai", "workload", "update", name, "-p", _, "--scheduling-gate", "''"] => {
            for pod in w.cluster.workloads()[w.id(name)].pods.clone() {
                w.cluster.set_gated(pod, false);
            }
        }
        ["runai", "delete", name, "-p", _] => w.run(&format!("delete {name}")),
        ["runai", "workload", "update", name, "-p", _, flag, to] => {
            let id = w.id(name);
            let spec = &w.cluster.workloads()[id].spec;
            let (now, preemptible) = (spec.priority, spec.preemptible);
            let (priority, preemptible) = match flag {
                "--preemptibility" => (now, to == "preemptible"),
                _ => {
                    let mut steps = model::priority_steps();
                    (steps.find(|step| step.0 == to).expect("a priority").1, preemptible)
                }
            };
            w.cluster.set_precedence(id, priority, preemptible);
        }
        ["elastane", unit, "update", name, flag, to] => {
            update(w, (unit, name, model::POOL_DEFAULT), flag, to);
        }
        ["elastane", unit, "update", name, flag, to, "--node-pool", pool] => {
            update(w, (unit, name, pool), flag, to);
        }
        _ => panic!("an unknown command {command}"),
    }
}

fn update(w: &mut World, (unit, name, pool): (&str, &str, &str), flag: &str, to: &str) {
    let queue = w.cluster.queues().iter().find(|(_, queue)| {
        (queue.name.as_str(), queue.children.is_empty()) == (name, unit == "project")
            && w.cluster.pool_name(queue.pool) == pool
    });
    let (id, mut share) = queue.map(|(id, queue)| (id, queue.share)).expect("a known project");
    match flag {
        // In the format of the command: a share may be 7.25 GPUs, which is not allowed in a
        // request.
        "--gpu-quota" => share.quota.gpu_millis = units::parse_cpu_millis(to).expect("GPUs"),
        "--gpu-limit" => share.limit.gpu_millis = units::parse_cpu_millis(to).expect("GPUs"),
        "--cpu-quota" => share.quota.cpu_millis = units::parse_cpu_millis(to).expect("cores"),
        "--memory-quota" => share.quota.memory_bytes = units::parse_bytes(to).expect("a size"),
        other => panic!("an unknown flag {other}"),
    }
    w.cluster.set_share(id, share).expect("a living queue");
}

/// The queues, by name.
fn queues(w: &World) -> BTreeMap<String, model::Queue> {
    w.cluster.queues().iter().map(|(_, queue)| (queue.name.clone(), queue.clone())).collect()
}

/// GPU thousandths of elastic workloads of a project beyond their requests, within quota or not.
fn lent_millis(w: &World, project: &str) -> u64 {
    let mine = w.cluster.workloads().iter().filter(|(_, workload)| {
        w.cluster.queues()[workload.spec.queue].name == project && workload.spec.elastic
    });
    let lent = mine.flat_map(|(_, workload)| {
        workload.pods.iter().map(|&pod| {
            let place = w.cluster.pods()[pod].binding.effective();
            place
                .map_or(0, model::Placement::gpu_millis)
                .saturating_sub(workload.demand().gpu_millis)
        })
    });
    lent.sum()
}

proptest! {
    #![proptest_config(histories(200))]

    /// The test cluster compares each plan with that of a scheduler without memory.
    #[test]
    fn what_a_decision_remembers_never_changes_the_next(
        actions in prop::collection::vec(action_with_settings(), 1..40),
        reserve_after_ms in prop::sample::select(vec![0, 2_000, 15_000, 300_000]),
        over_time in any::<bool>(),
        divided in any::<bool>(),
    ) {
        let mut w = World::new("n1:4 n2:4 n3:2", "a:1 b:2 c:1");
        w.run(LABELS);
        if divided { w.run("quota a@p 3; quota b@p 1; limit c@p 2"); }
        w.policy.reserve_after_ms = reserve_after_ms;
        let window = UsageWindow::new(60_000, WindowKind::Sliding, None).expect("a sound window");
        w.policy.usage = over_time.then_some(window);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            if !divided && matches!(action, Action::PoolQuota { .. }) { continue; }
            apply(&mut w, &mut alive, &mut next, action);
        }
    }

    #[test]
    fn random_histories_keep_every_invariant(actions in prop::collection::vec(action(), 1..40)) {
        let mut w = World::new(NODES, "a:3 b:3 c:1");
        w.run(LABELS);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
    }

    /// With MIG instances for GPU fractions: [`World`] checks that each has one pod.
    #[test]
    fn histories_with_instances_for_parts_keep_every_invariant(
        actions in prop::collection::vec(action(), 1..40),
        reserve_after_ms in prop::sample::select(vec![0, 15_000, 300_000]),
    ) {
        let mut w = World::new("n1:/4,2*2+/8 n2:/1*3,4 n3:1+/4*2", "a:1 b:1 c:0.5");
        w.run(LABELS);
        w.policy.reserve_after_ms = reserve_after_ms;
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        for name in w.waiting().split_whitespace() {
            for reason in w.plan.pending[&w.id(name)].iter() {
                prop_assert_eq!(crate::truth::of_reason(&w, reason), Ok(()), "{}: {}", name, reason);
            }
        }
    }

    #[test]
    fn histories_with_a_quota_per_pool_come_to_rest(
        actions in prop::collection::vec(action_with_pools(), 1..40),
        reserve_after_ms in prop::sample::select(vec![0, 15_000, 300_000]),
        over_time in any::<bool>(),
    ) {
        let mut w = World::new("n1:4 n2:4 n3:2", "a:1 b:2 c:1");
        w.run(LABELS);
        w.run("quota a@p 3; quota b@p 1; limit c@p 2");
        w.policy.reserve_after_ms = reserve_after_ms;
        let window = UsageWindow::new(60_000, WindowKind::Sliding, None).expect("a sound window");
        w.policy.usage = over_time.then_some(window);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        for name in w.waiting().split_whitespace() {
            for reason in w.plan.pending[&w.id(name)].iter() {
                prop_assert_eq!(crate::truth::of_reason(&w, reason), Ok(()), "{}: {}", name, reason);
            }
            if let Some(diagnosis) = w.diagnosis(name) {
                let text = diagnosis.lines(w.now).join("\n");
                prop_assert_eq!(crate::truth::of_diagnosis(&w, &diagnosis), Ok(()), "{}: {}", name, text);
            }
        }
        follow_all(&w)?;
    }

    #[test]
    fn a_newcomer_takes_nothing_from_a_queue_within_its_quota(
        actions in prop::collection::vec(action(), 1..25),
        flags in proptest::sample::select(&SHAPES[..]),
    ) {
        let mut w = World::new(NODES, "a:3 b:3 c:1");
        w.run(LABELS);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        w.slow = false;
        w.run("gone");
        let before = queues(&w);
        let before_world = w.clone();
        w.run(&format!("submit c/newcomer {flags}"));
        let after = queues(&w);
        for project in ["a", "b"] {
            let (queue, now) = (&before[project], after[project].allocated.gpu_millis);
            let held = queue.allocated.gpu_millis;
            // Where the quotas exceed the capacity, the fair share replaces them.
            let mut fair = w.cluster.queues().iter().filter(|(_, row)| row.name == project);
            let fair = fair.next().map_or(0, |(id, _)| w.plan.shares[&id].gpu_millis);
            let within = held <= queue.share.quota.gpu_millis.min(fair);
            let lent = lent_millis(&before_world, project);
            // A queue may stop its own work for more important work.
            let of_project = |line: &str| {
                let name = line.split(' ').next().unwrap_or_default();
                let queue = w.cluster.workloads()[w.id(name)].spec.queue;
                w.cluster.queues()[queue].name == project
            };
            let own = w.stopped().lines().any(|line| line.contains(" E102 ") && of_project(line));
            prop_assert!(!within || own || now + lent >= held, "{project} fell from {held} to {now}");
        }
    }

    #[test]
    fn histories_with_fairness_over_time_come_to_rest(
        actions in prop::collection::vec(action(), 1..40),
        half_life in any::<bool>(),
    ) {
        let mut w = World::new(NODES, "a:1 b:1 c:0");
        w.run(LABELS);
        let half_life_ms = half_life.then_some(60_000);
        let window = UsageWindow::new(60_000, WindowKind::Sliding, half_life_ms);
        w.policy.usage = Some(window.expect("a sound window"));
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
    }

    #[test]
    fn histories_with_reservations_come_to_rest(
        actions in prop::collection::vec(action(), 1..40),
        max in 1..4_usize,
        after_s in 0..30_u64,
    ) {
        let mut w = World::new(NODES, "a:3 b:3 c:1");
        w.run("label n2 zone=a; label n3 zone=a !dedicated");
        (w.policy.reservations_max, w.policy.reserve_after_ms) = (max, after_s * 1000);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
    }

    #[test]
    fn reasons_and_diagnoses_agree_with_the_state(
        actions in prop::collection::vec(action(), 1..30),
    ) {
        let mut w = World::new(NODES, "a:3 b:3:6 c:1:4");
        w.run(LABELS);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        for name in w.waiting().split_whitespace() {
            let reasons = &w.plan.pending[&w.id(name)];
            for reason in reasons.iter() {
                prop_assert_eq!(crate::truth::of_reason(&w, reason), Ok(()), "{}: {}", name, reason);
            }
            if let Some(diagnosis) = w.diagnosis(name) {
                let text = diagnosis.lines(w.now).join("\n");
                prop_assert_eq!(crate::truth::of_diagnosis(&w, &diagnosis), Ok(()), "{}: {}", name, text);
            }
        }
    }

    #[test]
    fn what_lacks_nothing_but_room_starts_when_there_is_room(
        actions in prop::collection::vec(action(), 1..30),
    ) {
        let mut w = World::new(NODES, "a:3 b:3 c:1");
        w.run(LABELS);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        w.slow = false;
        w.run("gone");
        let waiting = w.waiting();
        for name in waiting.split_whitespace() {
            // A workload with pod affinity needs the other pods, too; new nodes are not those of
            // its pods.
            let row = &w.cluster.workloads()[w.id(name)];
            let sets = &row.spec.pod_sets;
            if row.placed > 0 && row.spec.has_topology() {
                continue;
            }
            let needs_others = sets.iter().any(|set| !set.constraints.pod_affinity.is_empty());
            let reasons = &w.plan.pending[&w.id(name)];
            if needs_others || !reasons.iter().all(crate::truth::lacks_only_room) {
                continue;
            }
            let mut then = w.clone();
            let others = waiting.split_whitespace().filter(|&other| other != name);
            others.for_each(|other| then.run(&format!("suspend {other}")));
            for number in 0..4 {
                then.run(&format!("add-node new{number}:4+3g.20gb,1g.5gb*3; label new{number} zone=a rack=3"));
                then.run(&format!("add-node p{number}:4; label p{number} zone=a rack=4 node-pool=p"));
            }
            then.run("wait 1");
            let waits = then.waiting();
            let waits = waits.split_whitespace().any(|other| other == name);
            // A part of it that lost pods for good stays incomplete, with any amount of room.
            let torn = || then.plan.pending[&then.id(name)].iter().all(crate::truth::is_torn);
            prop_assert!(!waits || torn(), "{}: {}", name, then.why(name));
        }
    }

    #[test]
    fn histories_of_every_strategy_come_to_rest(
        spread in prop::array::uniform3(any::<bool>()),
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let [gpu, cpu, devices] =
            spread.map(|spread| if spread { model::Fill::Spread } else { model::Fill::BinPack });
        let mut w = World::new("n1:4:8 n2:4:24 n3:2+3g.20gb,1g.5gb*3:4 n4:0:8", "a:3 b:3 c:1");
        w.policy.placement = sched::Placement { gpu, cpu, devices };
        w.run("label n2 zone=a; label n3 zone=a !dedicated");
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
    }

    #[test]
    fn every_suggestion_lets_the_workload_start(actions in prop::collection::vec(action(), 1..25)) {
        let mut w = World::new(NODES, "a:3 b:3 c:1");
        w.run(LABELS);
        let (mut alive, mut next) = (Vec::new(), 0);
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        follow_all(&w)?;
    }

    #[test]
    fn every_tree_comes_to_rest(
        shares in prop::collection::vec((0..6_u64, 0..4_u64), 6),
        reserve_after_ms in prop::sample::select(vec![0, 15_000, 300_000]),
        actions in prop::collection::vec(action(), 1..35),
    ) {
        follow_all(&tree(&shares, reserve_after_ms, &actions))?;
    }
}

/// A tree of two departments after a history.
fn tree(shares: &[(u64, u64)], reserve_after_ms: u64, actions: &[Action]) -> World {
    let mut w = World::new("n1:4:8 n2:4:8 n3:2+3g.20gb,1g.5gb*3:4", "");
    w.policy.reserve_after_ms = reserve_after_ms;
    w.run(LABELS);
    let share = |(gpus, weight): (u64, u64)| {
        let quota = units::Resources { gpu_millis: gpus * 1000, ..units::Resources::UNLIMITED };
        let limit = units::Resources::UNLIMITED;
        let over_quota_weight = model::Weights::all(weight);
        model::Share { over_quota_weight, ..model::Share::new(quota, limit) }
    };
    let d1 = w.queue("d1", None, share(shares[0]));
    let d2 = w.queue("d2", None, share(shares[1]));
    for (name, parent, at) in [("a", d1, 2), ("b", d1, 3), ("c", d2, 4)] {
        w.queue(name, Some(parent), share(shares[at]));
    }
    let (mut alive, mut next) = (Vec::new(), 0);
    for action in actions {
        apply(&mut w, &mut alive, &mut next, action);
    }
    w
}

/// The advice is tried beside the reservation for the gang of the first project.
#[test]
fn advice_beside_room_that_is_kept_lets_work_start() -> Result<(), TestCaseError> {
    let shares = [(4, 0), (0, 0), (0, 0), (1, 0), (0, 0), (0, 0)];
    let submit = |project, flags| Action::Submit { project, flags };
    let actions = [
        submit(2, "--mig 1g.5gb"),
        submit(0, "-g 1 --pods 4 --min 2"),
        Action::Drain(0),
        submit(0, "-g 2 --pods 2 --interactive"),
        submit(1, "-g 1 --pods 3 --required rack"),
    ];
    let w = tree(&shares, 0, &actions);
    assert!(!w.waiting().is_empty(), "each advice for what waits is tried");
    follow_all(&w)
}
