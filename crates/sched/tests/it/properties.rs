//! Invariants under random histories. [`World`] itself checks after every cycle that no account
//! is wrong, nothing is given out twice, equal input gives an equal plan, no gang starts in part
//! and every waiting workload has a reason; and that the scheduler comes to rest.

use std::collections::BTreeMap;

use model::{UsageWindow, WindowKind};
use proptest::prelude::*;
use testkit::World;

#[derive(Debug, Clone)]
enum Action {
    Submit {
        project: usize,
        flags: &'static str,
    },
    Delete(usize),
    Suspend(usize),
    Resume(usize),
    Quota {
        project: usize,
        gpus: u32,
    },
    Cordon {
        node: usize,
        closed: bool,
    },
    Drain(usize),
    Ungate {
        at: usize,
        pod: usize,
    },
    LoseNode(usize),
    Gpu {
        node: usize,
        gpu: usize,
        word: &'static str,
    },
    Guarantee {
        project: usize,
        ms: u64,
    },
    Lose(usize),
    Wait(u32),
    Checkpoint(usize),
    Slow(bool),
    Gone,
    PoolQuota {
        project: usize,
        gpus: u32,
    },
    MoveNode {
        node: usize,
        pool: bool,
    },
    /// Nothing of a workload is looked at for so many seconds.
    NotBefore(usize, u64),
    Share {
        project: usize,
        gpu: u64,
        cpu: u64,
        cpu_limit: u64,
        weight: u64,
        dept: bool,
    },
    Precedence(usize, u32, bool),
    /// Several that are alike.
    Many(usize, usize, &'static str),
}

const PROJECTS: [&str; 3] = ["a", "b", "c"];
const SHAPES: [&str; 41] = [
    "-g 1 --label app=x",
    "-g 1 --label app=x --apart app=x",
    "-g 1 --pods 3 --min 2 --label app=x --apart app=x@rack",
    "-g 1 --with app=x@zone --priority 80",
    "-g 1 --pods 2 --label app=y --with app=y@zone --apart app=x",
    "-g 0.5 --label app=y --rather-with app=x --rather-apart app=y@rack",
    "--mig 1g.5gb",
    "--mig 1g.5gb*2,3g.20gb --pods 2 --min 1",
    "--mig 3g.20gb --priority 80",
    "-g 1 --limit 20000",
    "-g 2 --limit 60000 --priority 80",
    "-g 4 --pods 2",
    "-g 2 --pods 2 --interactive",
    "-g 1",
    "-g 2",
    "-g 4",
    "-g 0.5",
    "-g 0.3 --interactive",
    "-g 1 --interactive",
    "-g 2 --elastic",
    "-g 1 --elastic",
    "-g 4 --elastic",
    "-g 1 --pods 3",
    "-g 2 --priority 80",
    "--devices 2 -g 0.5",
    "-g 1 --on zone=a",
    "-g 1 --prefer zone=a --delay 3000",
    "-g 1 --pods 4 --min 2",
    "-g 1 --pods 3 --min 2 --gated",
    "-g 1 --pools p,default",
    "-g 1 --pods 3 --min 2 --pools default,p",
    "-g 2 --elastic --pools p,default",
    "-g 2 --mem 4GiB",
    "-g 0 --cpu 30",
    "-g 1 --pods 3 --required rack",
    "-g 1 --pods 4 --min 2 --required rack",
    "-g 1 --pods 2 --preferred rack",
    "--set p -g 1 --pods 3 --min 1 --set q -g 1",
    "--min 1 --group r --set p --in r -g 1 --pods 2 --set q -g 1 --pods 2 --min 1",
    "--required rack --set p -g 1 --pods 2 --min 1 --set q -g 0.5 --pods 2",
    "--group r --required rack --set p --in r -g 1 --set q --in r -g 0.5 --set s -g 1",
];

const GPU_WORDS: [&str; 4] = ["take-gpu", "lose-gpu", "return-gpu", "return-gpu"];

const NODES: &str = "n1:4 n2:4 n3:2+3g.20gb,1g.5gb*3";
const LABELS: &str = "label n1 rack=1 node-pool=p; label n2 zone=a rack=1; \
                      label n3 zone=a rack=2 node-pool=p !dedicated";

/// What happens in a cluster whose node pools have queues of their own.
fn action_with_pools() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => action(),
        1 => (0..3_usize, 0..5_u32)
            .prop_map(|(project, gpus)| Action::PoolQuota { project, gpus }),
        1 => (0..3_usize, any::<bool>()).prop_map(|(node, pool)| Action::MoveNode { node, pool }),
    ]
}

/// With changes of quotas, limits, weights and priorities, delays, and many workloads that are alike.
fn action_with_settings() -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => action_with_pools(),
        3 => (0..100_usize, 0..30_u64).prop_map(|(a, s)| Action::NotBefore(a, s)),
        3 => (0..3_usize, 0..6_u64, 0..8_u64, 1..40_u64, 0..3_u64, any::<bool>()).prop_map(|(project, gpu, cpu, cpu_limit, weight, dept)| Action::Share { project, gpu, cpu, cpu_limit, weight, dept }),
        2 => (0..100_usize, 40..60_u32, any::<bool>()).prop_map(|(a, p, b)| Action::Precedence(a, p, b)),
        3 => (0..3_usize, 2..6_usize, proptest::sample::select(&["-g 1 --cpu 2", "-g 2 --cpu 3 --delay 3000", "-g 0 --cpu 7", "-g 0.5 --cpu 1 --priority 60", "-g 1 --pools p,default --cpu 2", "-g 1 --on zone=a --cpu 1"][..])).prop_map(|(a, n, s)| Action::Many(a, n, s)),
        2 => Just(Action::Wait(3_000)),
        2 => Just(Action::Wait(500)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..3_usize, proptest::sample::select(&SHAPES[..]))
            .prop_map(|(project, flags)| Action::Submit { project, flags }),
        3 => (0..100_usize).prop_map(Action::Delete),
        1 => (0..100_usize).prop_map(Action::Suspend),
        1 => (0..100_usize).prop_map(Action::Resume),
        1 => (0..3_usize, 0..5_u32).prop_map(|(project, gpus)| Action::Quota { project, gpus }),
        1 => (0..3_usize, any::<bool>()).prop_map(|(node, closed)| Action::Cordon { node, closed }),
        1 => (0..3_usize).prop_map(Action::Drain),
        1 => (0..100_usize, 0..4_usize).prop_map(|(at, pod)| Action::Ungate { at, pod }),
        1 => (0..3_usize).prop_map(Action::LoseNode),
        2 => (0..3_usize, 0..4_usize, proptest::sample::select(&GPU_WORDS[..]))
            .prop_map(|(node, gpu, word)| Action::Gpu { node, gpu, word }),
        1 => (0..3_usize, 0..9_u64)
            .prop_map(|(project, s)| Action::Guarantee { project, ms: s * 1000 }),
        1 => (0..100_usize).prop_map(Action::Lose),
        1 => proptest::sample::select(&[20_000, 200_000][..]).prop_map(Action::Wait),
        1 => (0..100_usize).prop_map(Action::Checkpoint),
        1 => any::<bool>().prop_map(Action::Slow),
        2 => Just(Action::Gone),
    ]
}

fn pick(alive: &[String], at: usize) -> Option<String> {
    alive.get(at % alive.len().max(1)).cloned()
}

/// Changes a setting of a workload or a queue.
fn change(w: &mut World, alive: &[String], action: &Action) {
    match action {
        Action::NotBefore(at, s) => {
            if let Some(name) = pick(alive, *at) {
                let id = w.id(&name);
                if w.cluster.workloads().get(id).is_some() {
                    let until = w.now.plus_ms(s * 1000);
                    w.cluster.set_not_before(id, until);
                    w.run("wait 1");
                }
            }
        }
        Action::Share { project, gpu, cpu, cpu_limit, weight, dept } => {
            let found = w
                .cluster
                .queues()
                .iter()
                .find(|(_, q)| q.name == PROJECTS[*project])
                .map(|(id, q)| (id, q.share, q.parent));
            if let Some((id, mut share, parent)) = found {
                share.quota.gpu_millis = gpu * 1000;
                share.quota.cpu_millis = cpu * 1000;
                share.limit.cpu_millis = (*cpu_limit).max(*cpu) * 1000;
                share.over_quota_weight = model::Weights::all(*weight);
                let at = if *dept { parent.unwrap_or(id) } else { id };
                w.cluster.set_share(at, share).expect("a share of a queue that is there");
                w.run("wait 1");
            }
        }
        Action::Precedence(at, p, b) => {
            if let Some(name) = pick(alive, *at) {
                let id = w.id(&name);
                if w.cluster.workloads().get(id).is_some() {
                    w.cluster.set_precedence(id, *p, *b);
                    w.run("wait 1");
                }
            }
        }
        _ => {}
    }
}

/// Applies an action; workloads are numbered as they come.
fn apply(w: &mut World, alive: &mut Vec<String>, next: &mut usize, action: &Action) {
    if w.cluster.topologies().is_empty() {
        w.run("topology net rack");
    }
    match action {
        Action::Submit { project, flags } => {
            let name = format!("w{next}");
            *next += 1;
            w.run(&format!("submit {}/{name} {flags}", PROJECTS[*project]));
            alive.push(name);
        }
        Action::Delete(at) => {
            if let Some(name) = pick(alive, *at) {
                alive.retain(|other| *other != name);
                w.run(&format!("delete {name}"));
            }
        }
        Action::Suspend(at) => pick(alive, *at).iter().for_each(|n| w.run(&format!("suspend {n}"))),
        Action::Resume(at) => pick(alive, *at).iter().for_each(|n| w.run(&format!("resume {n}"))),
        Action::Quota { project, gpus } => w.run(&format!("quota {} {gpus}", PROJECTS[*project])),
        Action::Cordon { node, closed } => {
            let word = if *closed { "cordon" } else { "uncordon" };
            w.run(&format!("{word} n{}", node + 1));
        }
        Action::Ungate { at, pod } => {
            pick(alive, *at).iter().for_each(|n| w.run(&format!("ungate {n} {pod}")));
        }
        Action::Gpu { node, gpu, word } => w.run(&format!("{word} n{} {gpu}", node + 1)),
        Action::Drain(node) => w.run(&format!("drain n{}", node + 1)),
        Action::LoseNode(node) => {
            w.run(&format!(
                "lose-node n{0}; add-node n{0}:{1}",
                node + 1,
                ["4", "4", "2+3g.20gb,1g.5gb*3"][*node]
            ));
        }
        Action::Guarantee { project, ms } => {
            w.run(&format!("min-runtime {} {ms}", PROJECTS[*project]));
        }
        Action::Lose(at) => pick(alive, *at).iter().for_each(|n| w.run(&format!("lose {n} 0"))),
        Action::Wait(ms) => w.run(&format!("wait {ms}")),
        Action::Checkpoint(at) => {
            pick(alive, *at).iter().for_each(|n| w.run(&format!("checkpoint {n}")));
        }
        Action::Slow(slow) => w.slow = *slow,
        Action::Gone => w.run("gone"),
        Action::PoolQuota { project, gpus } => {
            w.run(&format!("quota {}@p {gpus}", PROJECTS[*project]));
        }
        Action::NotBefore(..) | Action::Share { .. } | Action::Precedence(..) => {
            change(w, alive, action);
        }
        Action::Many(project, count, flags) => {
            for _ in 0..*count {
                let name = format!("w{next}");
                *next += 1;
                w.run(&format!("submit {}/{name} {flags}", PROJECTS[*project]));
                alive.push(name);
            }
        }
        Action::MoveNode { node, pool } => {
            let pool = if *pool { "p" } else { "default" };
            let taint = ["", "", " !dedicated"][*node];
            w.run(&format!("label n{} rack=1 zone=a node-pool={pool}{taint}", node + 1));
        }
    }
}

/// Each suggestion for each workload that waits lets it start.
fn follow_all(w: &World) -> Result<(), TestCaseError> {
    for name in w.waiting().split_whitespace() {
        let placed = |w: &World| w.cluster.workloads()[w.id(name)].placed;
        for advice in w.diagnosis(name).into_iter().flat_map(|diagnosis| diagnosis.advice) {
            let mut then = w.clone();
            then.slow = false;
            then.follow(name, &advice.change);
            let text = advice.text(w.now);
            prop_assert!(placed(&then) > placed(w), "{name}: {text}\n{}", w.diagnosed(name));
        }
    }
    Ok(())
}

/// The queues, by name.
fn queues(w: &World) -> BTreeMap<String, model::Queue> {
    w.cluster.queues().iter().map(|(_, queue)| (queue.name.clone(), queue.clone())).collect()
}

/// What elastic workloads of a project hold beyond their request: lent, quota or not.
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
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The cluster of the tests compares each plan with that of a scheduler that remembers nothing.
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
            // Where the quotas promise more than there is, the fair share takes their place.
            let mut fair = w.cluster.queues().iter().filter(|(_, row)| row.name == project);
            let fair = fair.next().map_or(0, |(id, _)| w.plan.shares[&id].gpu_millis);
            let within = held <= queue.share.quota.gpu_millis.min(fair);
            let lent = lent_millis(&before_world, project);
            // A queue may stop what it has itself for something more important.
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
            // Who must be with others needs these, too; new nodes are not where its pods are.
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
            // A part of it that lost pods for good stays behind, whatever room there is.
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
        for action in &actions {
            apply(&mut w, &mut alive, &mut next, action);
        }
        follow_all(&w)?;
    }
}
