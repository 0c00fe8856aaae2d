//! Random histories: under every decision of `kai`, no resource is assigned twice, sums are
//! consistent, no gang starts in part, no pod is stopped without a cause or for a workload that
//! gets nothing, and a decision is bounded. Decisions may go on for ever.

use proptest::prelude::*;
use sched::{Action, Step};
use testkit::World;

use crate::histories::histories;

const SHAPES: [&str; 22] = [
    "-g 1 --label app=x --apart app=x",
    "-g 1 --pods 2 --label app=y --with app=y@zone --apart app=x",
    "-g 0.5 --label app=x --rather-with app=y",
    "--mig 1g.5gb",
    "--mig 1g.5gb*2,3g.20gb --pods 2 --min 1",
    "-g 1",
    "-g 2",
    "-g 4",
    "-g 0.5",
    "-g 0.3 --interactive",
    "-g 1 --interactive",
    "-g 1 --pods 3",
    "-g 2 --priority 80",
    "--devices 2 -g 0.5",
    "-g 1 --on zone=a",
    "-g 1 --pods 4 --min 2",
    "-g 2 --mem 4GiB",
    "-g 0 --cpu 30",
    "-g 0.5 --pods 3 --min 1 --priority 30",
    "--min 1 --set a --pods 2 --set b --pods 2 --min 1 -g 0.5",
    "--min 1 --set a --set b --task-priority 5 --set c --pods 2 --task-priority 9",
    "--group w --min 1 --set a --in w -g 2 --set b --in w --pods 2 --set c",
];

#[derive(Debug, Clone)]
enum Event {
    Submit(usize, &'static str),
    Delete(usize),
    Quota(usize, u32),
    Guarantee(usize, u64),
    Lose(usize),
    Cordon(usize, bool),
    Gone,
}

/// Node pools in submissions, where pools have queues of their own.
const POOLS: [&str; 5] =
    ["", "--pools p", "--pools default", "--pools p,default", "--pools default,p"];

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..3_usize, proptest::sample::select(&SHAPES[..])).prop_map(|(q, f)| Event::Submit(q, f)),
        2 => (0..100_usize).prop_map(Event::Delete),
        1 => (0..3_usize, 0..5_u32).prop_map(|(q, gpus)| Event::Quota(q, gpus)),
        1 => (0..3_usize, 0..9_u64).prop_map(|(q, ms)| Event::Guarantee(q, ms)),
        1 => (0..100_usize).prop_map(Event::Lose),
        2 => (0..3_usize, any::<bool>()).prop_map(|(n, closed)| Event::Cordon(n, closed)),
        3 => Just(Event::Gone),
    ]
}

/// The pods on each GPU, those on a shared GPU sorted by name.
fn sorted(gpus: &str) -> String {
    let inner = |text: &str| {
        let mut users: Vec<_> = text.split('+').collect();
        users.sort_unstable();
        users.join("+")
    };
    let devices = gpus.replace('[', "[ ").replace(']', " ]");
    devices.split(' ').map(inner).collect::<Vec<_>>().join(" ")
}

/// No pod is stopped for a workload that then has no place, unless a more important one of its
/// queue took the place in that cycle: `preempt` comes after `reclaim`, and evicts workloads placed
/// by it.
fn check_beneficiaries(w: &World) {
    for step in &w.plan.steps {
        let (Step::Evict { cause, .. } | Step::Move { cause, .. }) = step else { continue };
        if let Some(winner) = cause.beneficiary() {
            let row = w.cluster.workloads().get(winner.id).expect("it is there");
            let more_important = w.plan.steps.iter().any(|step| {
                let other = &w.cluster.workload_of(step.pod()).spec;
                matches!(step, Step::Bind { .. } | Step::Reserve { .. })
                    && other.queue == row.spec.queue
                    && other.priority > row.spec.priority
            });
            assert!(row.placed > 0 || more_important, "{} gets nothing of {cause}", winner.name);
        }
    }
}

proptest! {
    #![proptest_config(histories(200))]

    #[test]
    fn invariants_hold(
        events in prop::collection::vec(event(), 1..40),
        order in proptest::sample::subsequence(Action::KAI.to_vec(), 1..=5),
        divided: bool,
    ) {
        let mut w = World::new("n1:4 n2:4 n3:2+3g.20gb,1g.5gb*3", "a:3 b:3 c:1");
        w.policy = sched::Policy { actions: order, ..testkit::kai() };
        w.slow = true;
        w.only_cycle = true;
        w.run("label n2 zone=a; label n3 zone=a");
        if divided {
            w.run("label n1 node-pool=p; quota a@p 2; quota b@p 1; quota department@p 4");
        }
        let mut alive: Vec<String> = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let pick = |at: usize| alive.get(at % alive.len().max(1)).cloned();
            let projects = ["a", "b", "c"];
            match event {
                Event::Submit(at, flags) => {
                    let pools = if divided { POOLS[number % POOLS.len()] } else { "" };
                    w.run(&format!("submit {}/w{number} {flags} {pools}", projects[*at]));
                    alive.push(format!("w{number}"));
                }
                Event::Delete(at) => if let Some(name) = pick(*at) {
                    alive.retain(|other| *other != name);
                    w.run(&format!("delete {name}"));
                },
                Event::Quota(at, gpus) => w.run(&format!("quota {} {gpus}", projects[*at])),
                Event::Guarantee(at, ms) => w.run(&format!("min-runtime {} {ms}", projects[*at])),
                Event::Lose(at) => if let Some(name) = pick(*at) { w.run(&format!("lose {name} 0")) },
                Event::Cordon(node, closed) => {
                    let word = if *closed { "cordon" } else { "uncordon" };
                    w.run(&format!("{word} n{}", node + 1));
                }
                Event::Gone => w.run("gone"),
            }
            check_beneficiaries(&w);
            prop_assert!(w.plan.stats.trials <= w.policy.trials_max * 5);
        }
    }

    /// Each pool has a scheduler that does not know about the other.
    #[test]
    fn a_pool_is_decided_about_like_a_cluster_of_its_own(
        events in prop::collection::vec((event(), any::<bool>()), 1..40),
        order in proptest::sample::subsequence(Action::KAI.to_vec(), 1..=5),
    ) {
        let world = |nodes: &str, quotas: &str| {
            let mut w = World::new(nodes, quotas);
            w.policy = sched::Policy { actions: order.clone(), ..testkit::kai() };
            w.slow = true;
            w.only_cycle = true;
            w
        };
        let mut both = world("n1:4 n2:3 m1:4:40 m2:3:40", "a:2 b:2 c:1");
        both.run("label m1 node-pool=p; label m2 node-pool=p; quota department@p 5");
        both.run("quota a@p 1; quota b@p 3; quota c@p 0; limit c@p 4");
        both.run("quota department 5");
        let mut alone = world("n1:4 n2:3", "a:2 b:2 c:1");
        alone.run("quota department 5");
        let mut other = world("m1:4:40 m2:3:40", "a:1 b:3 c:0:4");
        other.run("quota department 5");
        let mut alive: Vec<(String, bool)> = Vec::new();
        for (number, (event, in_p)) in events.iter().enumerate() {
            let (project, pool) = (["a", "b", "c"], if *in_p { "@p" } else { "" });
            let named = |at: usize| alive.get(at % alive.len().max(1)).cloned();
            let (step, in_p) = match event {
                Event::Submit(at, flags) if !flags.contains("zone") => {
                    alive.push((format!("w{number}"), *in_p));
                    let pools = if *in_p { "--pools p" } else { "--pools default" };
                    let step = format!("submit {}/w{number} {flags}", project[*at]);
                    both.run(&format!("{step} {pools}"));
                    (step, *in_p)
                }
                Event::Delete(at) => {
                    let Some((name, in_p)) = named(*at) else { continue };
                    alive.retain(|(other, _)| *other != name);
                    both.run(&format!("delete {name}"));
                    (format!("delete {name}"), in_p)
                }
                Event::Quota(at, gpus) => {
                    both.run(&format!("quota {}{pool} {gpus}", project[*at]));
                    (format!("quota {} {gpus}", project[*at]), *in_p)
                }
                _ => {
                    both.run("gone");
                    alone.run("gone");
                    ("gone".into(), true)
                }
            };
            let (its, not) = if in_p { (&mut other, &mut alone) } else { (&mut alone, &mut other) };
            its.run(&step);
            if step != "gone" {
                not.run("slow");
            }
            let apart = format!("{} {}", alone.gpus(), other.gpus());
            prop_assert_eq!(sorted(&both.gpus()), sorted(&apart));
        }
    }

    #[test]
    fn a_decision_is_bounded(events in prop::collection::vec(event(), 5..30), most in 0..40_u64) {
        let mut w = World::new("n1:4 n2:4 n3:2+3g.20gb,1g.5gb*3", "a:3 b:3 c:1");
        w.policy = sched::Policy { trials_max: most, ..testkit::kai() };
        w.only_cycle = true;
        for (number, event) in events.iter().enumerate() {
            if let Event::Submit(at, flags) = event {
                w.run(&format!("submit {}/w{number} {flags}", ["a", "b", "c"][*at]));
                prop_assert!(w.plan.stats.trials <= most * 5);
            }
        }
    }
}
