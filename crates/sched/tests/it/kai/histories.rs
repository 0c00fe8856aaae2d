//! Random histories: whatever `kai` decides, nothing is given out twice, accounts are sound, no
//! gang starts in part, nobody is stopped without a cause or for somebody who gets nothing, and a
//! decision is bounded. It need not come to rest.

use proptest::prelude::*;
use sched::{Action, Step};
use testkit::World;

const SHAPES: [&str; 21] = [
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

/// Nobody is stopped for somebody who then has no place.
fn check_beneficiaries(w: &World) {
    for step in &w.plan.steps {
        let (Step::Evict { cause, .. } | Step::Move { cause, .. }) = step else { continue };
        if let Some(winner) = cause.beneficiary() {
            let row = w.cluster.workloads().get(winner.id).expect("it is there");
            assert!(row.placed > 0, "{} gets nothing of {cause}", winner.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold(
        events in prop::collection::vec(event(), 1..40),
        order in proptest::sample::subsequence(Action::KAI.to_vec(), 1..=5),
    ) {
        let mut w = World::new("n1:4 n2:4 n3:2+3g.20gb,1g.5gb*3", "a:3 b:3 c:1");
        w.policy = sched::Policy { actions: order, ..sched::Policy::kai() };
        w.slow = true;
        w.only_cycle = true;
        w.run("label n2 zone=a; label n3 zone=a");
        let mut alive: Vec<String> = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let pick = |at: usize| alive.get(at % alive.len().max(1)).cloned();
            let projects = ["a", "b", "c"];
            match event {
                Event::Submit(at, flags) => {
                    w.run(&format!("submit {}/w{number} {flags}", projects[*at]));
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

    #[test]
    fn a_decision_is_bounded(events in prop::collection::vec(event(), 5..30), most in 0..40_u64) {
        let mut w = World::new("n1:4 n2:4 n3:2+3g.20gb,1g.5gb*3", "a:3 b:3 c:1");
        w.policy = sched::Policy { trials_max: most, ..sched::Policy::kai() };
        w.only_cycle = true;
        for (number, event) in events.iter().enumerate() {
            if let Event::Submit(at, flags) = event {
                w.run(&format!("submit {}/w{number} {flags}", ["a", "b", "c"][*at]));
                prop_assert!(w.plan.stats.trials <= most * 5);
            }
        }
    }
}
