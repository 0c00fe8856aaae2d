//! Pods above a minimum with a priority of their own: preemption of them, and by them.

use proptest::prelude::*;
use testkit::World;

use crate::histories::histories;

const PROJECTS: [&str; 2] = ["a", "b"];

#[test]
fn what_is_between_takes_the_pods_above_the_minimum_and_no_others() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/j --pods 4 --min 2 --priority 75 --spare-priority 25");
    assert_eq!(w.gpus(), "n1[j j j j]");
    w.run("submit a/x --pods 3 --min 1; wait 0");
    assert_eq!(w.gpus(), "n1[j j x x]", "the third pod of x takes nothing of high priority");
    // It does not take back places of work more important than its lower pods.
    w.run("wait 60000");
    assert_eq!(w.gpus(), "n1[j j x x]");
    w.run("delete x; wait 0");
    assert_eq!(w.gpus(), "n1[j j j j]");
}

#[test]
fn the_minimum_takes_as_the_high_one_does_and_the_rest_waits() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/x; submit a/y; submit a/z; submit a/v");
    w.run("submit a/j --pods 4 --min 2 --priority 75 --spare-priority 25; wait 0");
    assert_eq!(w.gpus(), "n1[x y j j]", "two for the minimum, none for the rest");
    // The rest of the job is behind more important work and waits, too.
    w.run("delete x; delete y; wait 0");
    assert!(w.has_place("z") && w.has_place("v"), "{}", w.gpus());
}

#[test]
fn the_high_part_is_not_taken_by_its_equals() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/j --pods 2 --min 1 --priority 75 --spare-priority 25");
    w.run("submit a/x --priority 75; submit a/y --priority 75; wait 0");
    assert_eq!(w.gpus(), "n1[j x]");
    assert_eq!(w.waiting(), "j y");
}

#[test]
fn a_spare_priority_above_the_own_one_is_the_own_one() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/j --pods 2 --min 1 --priority 25 --spare-priority 75; submit a/x; wait 0");
    assert_eq!(w.gpus(), "n1[j x]");
    w.run("submit a/y; wait 0");
    assert_eq!(w.waiting(), "j");
}

#[test]
fn another_project_takes_back_its_quota_from_the_low_part_first() {
    let mut w = World::new("n1:4", "a:0 b:2");
    w.run("submit a/m; submit a/j --pods 3 --min 1 --priority 75 --spare-priority 25; wait 0");
    assert_eq!(w.gpus(), "n1[m j j j]");
    w.run("submit b/x; submit b/y; wait 0");
    assert_eq!(w.gpus(), "n1[m j y x]");
}

#[test]
fn no_room_is_kept_where_the_high_part_stays() {
    let mut w = World::new("n1:4 n2:4", "a:8");
    w.run("label n1 n=1; label n2 n=2; submit a/s1 -g 2 --on n=2; submit a/s2 -g 2 --on n=2");
    w.run("submit a/j --pods 4 --min 3 --priority 75 --spare-priority 25");
    w.run("submit a/h -g 4; wait 300001; delete s1; submit a/s3 -g 2");
    assert_eq!(w.gpus(), "n1[j j j j] n2[. . s2 s2]");
}

fn event() -> impl Strategy<Value = String> {
    let size = prop::sample::select(
        &["", "", "-g 2", "--pods 3 --min 1", "--pods 4 --min 2", "--pods 2"][..],
    );
    let priority = prop::sample::select(&["", " --priority 25", " --priority 75"][..]);
    let spare = prop::sample::select(&["", " --spare-priority 25", " --spare-priority 50"][..]);
    let kind = prop::sample::select(&["", "", "", "", " --interactive"][..]);
    prop_oneof![
        6 => (0..2_usize, size, priority, spare, kind).prop_map(
            |(project, size, priority, spare, kind)| {
                format!("submit {}/NEW {size}{priority}{spare}{kind}", PROJECTS[project])
            }
        ),
        2 => (0..50_usize).prop_map(|at| format!("delete {at}")),
        1 => (0..2_usize, 0..6_u64)
            .prop_map(|(project, quota)| format!("quota {} {quota}", PROJECTS[project])),
        1 => prop::sample::select(&["wait 500", "wait 20000"][..]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(histories(40))]

    /// [`World`] checks the sums and the causes after each decision, and that decisions stop.
    #[test]
    fn histories_keep_the_rules(
        quotas in prop::collection::vec(0..6_u64, 2),
        events in prop::collection::vec(event(), 1..25),
    ) {
        let mut w = World::new("n1:4 n2:3", &format!("a:{} b:{}", quotas[0], quotas[1]));
        let (mut alive, mut next) = (Vec::<String>::new(), 0);
        for event in events {
            match event.strip_prefix("delete ") {
                Some(_) if alive.is_empty() => {}
                Some(at) => {
                    let at: usize = at.parse().expect("a number");
                    let name = alive.remove(at % alive.len());
                    w.run(&format!("delete {name}"));
                }
                None => {
                    w.run(&event.replace("NEW", &format!("w{next}")));
                    if event.starts_with("submit") {
                        alive.push(format!("w{next}"));
                        next += 1;
                    }
                }
            }
        }
    }
}
