//! Elastic work that was shrunk grows back to its request, within its project's quota, with
//! resources that others use above theirs.

use proptest::prelude::*;
use testkit::World;

use crate::histories::histories;

#[test]
fn it_gets_it_back_after_a_while() {
    let mut w = World::new("n1:4", "a:4 b:0");
    w.run("submit a/e -g 4 --elastic; submit a/h -g 2 --priority 80; submit b/w -g 2");
    assert_eq!(w.gpus(), "n1[e e h h]");
    // h ends; w gets its place before e may change its size again.
    w.run("delete h");
    assert_eq!(w.gpus(), "n1[e e w w]");
    w.run("wait 9000");
    assert_eq!(w.gpus(), "n1[e e w w]");
    w.run("wait 1000");
    assert_eq!(w.gpus(), "n1[e e e e]");
    let told = "e E104 grown back from 2 to 4 GPUs, within the quota of its project\n\
                w E101 stopped so that a/e gets its quota: b held 2 GPUs (quota 0, fair share 0); \
                a held 2 GPUs (quota 4, fair share 4) and asked for 2\n";
    assert_eq!(w.stopped(), told);
    w.run("wait 20000; wait 20000");
    assert_eq!(w.gpus(), "n1[e e e e]");
}

#[test]
fn it_says_when_to_look_again() {
    let mut w = World::new("n1:4", "a:4 b:0");
    w.run("submit a/e -g 4 --elastic; submit a/h -g 2 --priority 80; submit b/w -g 2");
    w.run("wait 5000; delete h");
    let e = &w.cluster.workloads()[w.id("e")];
    let since = e.last_start.max(e.last_resize).expect("it runs");
    assert_eq!(w.plan.wake_at, Some(since.plus_ms(10_000)));
}

#[test]
fn not_beyond_the_quota_of_its_project() {
    let mut w = World::new("n1:4", "a:3 b:0");
    w.run("submit a/e -g 4 --elastic; submit a/h -g 2 --priority 80; submit b/w -g 2");
    w.run("delete h; wait 20000");
    assert_eq!(w.gpus(), "n1[e e w w]");
}

#[test]
fn not_from_what_is_within_the_quota_of_others() {
    let mut w = World::new("n1:4 n2:4", "a:4 b:4");
    w.run("cordon n2; submit b/w -g 2; submit a/e -g 4 --elastic; uncordon n2; submit b/v -g 2");
    assert_eq!(w.gpus(), "n1[w w e e] n2[v v . .]");
    w.run("wait 20000; wait 20000");
    assert_eq!(w.gpus(), "n1[w w e e] n2[v v . .]");
    // Only work above the quota of b is stopped, and only on its own node.
    w.run("quota b 2; wait 1");
    assert_eq!(w.gpus(), "n1[e e e e] n2[v v w w]");
}

#[test]
fn not_from_what_cannot_be_preempted_or_is_guaranteed_its_time() {
    let mut w = World::new("n1:4", "a:4 b:2");
    w.run("submit b/w -g 2 --interactive; submit a/e -g 4 --elastic; quota b 0; wait 20000");
    assert_eq!(w.gpus(), "n1[w w e e]");
    let mut w = World::new("n1:4", "a:4 b:0");
    w.run("submit a/e -g 4 --elastic; submit a/h -g 2 --priority 80; submit b/w -g 2");
    w.run("min-runtime b 60000; delete h; wait 20000");
    assert_eq!(w.gpus(), "n1[e e w w]");
    w.run("wait 40000");
    assert_eq!(w.gpus(), "n1[e e e e]");
}

#[test]
fn only_as_much_as_can_be_had() {
    // It has two of eight GPUs; four are freed, and only these four are on its node.
    let mut w = World::new("n1:8", "a:8 b:4 c:0");
    w.run("submit b/x -g 4 --interactive; submit a/e -g 8 --elastic");
    assert_eq!(w.gpus(), "n1[x x x x e e e e]");
    w.run("submit a/h -g 2 --priority 80; submit c/w -g 2; delete h; wait 20000");
    assert_eq!(w.gpus(), "n1[x x x x e e e e]");
}

#[test]
fn a_project_keeps_its_quota_even_where_its_work_comes_in_lumps() {
    // w is above the quota of b by one GPU only.
    let mut w = World::new("n1:4", "a:4 b:1");
    w.run("submit a/e -g 4 --elastic; submit a/h -g 2 --priority 80; submit b/w -g 2");
    w.run("delete h; wait 20000");
    assert_eq!(w.gpus(), "n1[e e w w]");
}

#[test]
fn others_that_are_elastic_shrink_for_it() {
    let mut w = World::new("n1:4", "a:4 b:0");
    w.run("submit a/e -g 4 --elastic; submit a/h -g 3 --priority 80; submit b/w -g 2 --elastic");
    assert_eq!(w.gpus(), "n1[e h h h]");
    w.run("delete h");
    assert_eq!(w.gpus(), "n1[e w w .]");
    w.run("wait 10000");
    assert_eq!(w.gpus(), "n1[e e e e]");
}

const SHAPES: [&str; 8] = [
    "-g 4 --elastic",
    "-g 8 --elastic",
    "-g 2 --elastic",
    "-g 2 --priority 80",
    "-g 3 --elastic --priority 60",
    "-g 1 --interactive",
    "-g 2",
    "-g 1 --pods 4 --min 2",
];

/// Events: a submission, an end, passing time, a quota change.
fn event() -> impl Strategy<Value = String> {
    let project = || proptest::sample::select(&["a", "b", "c"][..]);
    prop_oneof![
        4 => (project(), proptest::sample::select(&SHAPES[..]))
            .prop_map(|(project, flags)| format!("submit {project}/# {flags}")),
        3 => (0..20_u32).prop_map(|at| format!("delete {at}")),
        3 => Just("wait 20000".to_owned()),
        1 => (project(), 0..9_u32).prop_map(|(project, gpus)| format!("quota {project} {gpus}")),
        1 => (project(), 0..30_u32)
            .prop_map(|(project, s)| format!("min-runtime {project} {}", s * 1000)),
    ]
}

proptest! {
    #![proptest_config(histories(100))]

    /// The world checks that each step comes to rest, and every invariant.
    #[test]
    fn histories_come_to_rest(
        events in prop::collection::vec(event(), 1..50),
        interval_ms in prop::sample::select(vec![0, 1, 10_000]),
        slow in any::<bool>(),
    ) {
        let mut w = World::new("n1:4 n2:4 n3:8", "a:6 b:6 c:2");
        w.policy.grow_interval_ms_min = interval_ms;
        w.slow = slow;
        let mut alive: Vec<String> = Vec::new();
        for (number, event) in events.iter().enumerate() {
            if event.starts_with("submit") {
                alive.push(format!("w{number}"));
                w.run(&event.replace('#', &format!("w{number}")));
            } else if let Some(at) = event.strip_prefix("delete ") {
                let at: usize = at.parse().expect("a number");
                if at < alive.len() {
                    w.run(&format!("delete {}; gone", alive.remove(at)));
                }
            } else {
                w.run(event);
            }
        }
    }
}

#[test]
fn not_where_room_is_kept_for_who_goes_first() {
    let mut w = World::new("n1:6", "a:2 b:4");
    w.run("submit b/w -g 2 --interactive --limit 900000; submit b/v -g 2");
    w.run("submit a/e -g 4 --elastic --interactive --priority 50");
    assert_eq!(w.gpus(), "n1[w w v v e e]");
    w.run("submit a/x -g 3 --priority 80; wait 300001; quota b 2; quota a 6; wait 1000");
    assert_eq!(w.gpus(), "n1[w w v v e e]");
    w.run("delete w");
    assert_eq!(w.gpus(), "n1[x x x . e e]");
}
