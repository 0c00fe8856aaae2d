//! Reservations for the first workload that cannot start; small work goes ahead only where it does
//! no harm.

use expect_test::expect;
use testkit::World;

/// A wait longer than that of the first workload for a reservation.
const LONG: &str = "wait 300001";

#[test]
fn room_is_kept_for_a_gang_that_has_waited_long_enough() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2; delete s1; submit a/s3");
    assert_eq!(w.gpus(), "n1[s3 s2]", "it has not waited long yet");
    w.run(&format!("{LONG}; delete s3; submit a/s4"));
    assert_eq!(w.gpus(), "n1[. s2]");
    w.run("delete s2");
    assert_eq!(w.gpus(), "n1[gang gang]");
}

#[test]
fn who_waits_behind_it_is_told_so() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/s3"));
    expect![[r#"
        P306 room is kept for a/gang, which goes first, needs 2 GPUs and has waited 5 min; when it starts is not known
    "#]]
    .assert_eq(&w.why("s3"));
}

#[test]
fn it_is_woken_when_room_is_to_be_kept() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1; submit a/gang -g 2");
    let due = w.plan.wake_at.expect("a workload waits");
    assert!(due.since_ms(w.now) <= 300_000);
}

#[test]
fn without_reservations_it_starves() {
    let mut w = World::new("n1:2", "a:2");
    w.policy.reservations_max = 0;
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/s3; delete s2; submit a/s4"));
    assert_eq!(w.gpus(), "n1[s3 s4]");
}

#[test]
fn what_ends_in_time_goes_ahead() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1; submit a/s2 --limit 1000000; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/long --limit 800000"));
    assert_eq!(w.gpus(), "n1[. s2]");
    expect![[r#"
        P306 room is kept for a/gang, which goes first, needs 2 GPUs and has waited 5 min; it starts within 12 min
    "#]]
    .assert_eq(&w.why("long"));
    w.run("submit a/short --limit 600000");
    assert_eq!(w.gpus(), "n1[short s2]");
}

#[test]
fn what_gives_way_goes_ahead() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/low --priority 10; submit a/same"));
    assert_eq!(w.gpus(), "n1[low s2]");
    w.run("delete s2");
    assert_eq!(w.gpus(), "n1[gang gang]");
    assert_eq!(w.waiting(), "low same");
}

#[test]
fn what_gives_way_but_not_yet_stays_out() {
    let mut w = World::new("n1:2", "a:2");
    w.run("min-runtime a 60000; submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/low --priority 10"));
    assert_eq!(w.gpus(), "n1[. s2]");
}

#[test]
fn the_more_important_goes_first_all_the_same() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1 --interactive; submit a/s2 --limit 1000; submit a/gang -g 2 --priority 40");
    w.run(&format!("{LONG}; delete s1; submit a/high --priority 60"));
    assert_eq!(w.gpus(), "n1[high s2]");
}

#[test]
fn an_over_quota_guest_of_another_project_goes_ahead() {
    let mut w = World::new("n1:2", "a:2 b:0");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit b/guest"));
    assert_eq!(w.gpus(), "n1[. s2]", "it holds nothing that is not its share, as far as is known");
    w.run("delete s2");
    assert_eq!(w.gpus(), "n1[gang gang]");
}

#[test]
fn lent_gpus_are_no_hindrance() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/s1; submit a/s2; submit a/e -g 1 --elastic; submit a/gang -g 3");
    w.run(&format!("{LONG}; delete s1; submit a/s3"));
    assert_eq!(w.waiting(), "gang s3");
    assert_eq!(w.size("e"), "2 (1)", "it grows into what is kept");
    w.run("delete s2");
    assert_eq!(w.gpus(), "n1[gang gang e gang]");
}

#[test]
fn no_more_is_kept_than_it_needs() {
    let mut w = World::new("n1:4 n2:4", "a:8");
    w.run("submit a/s1 -g 4; submit a/s2 -g 3; submit a/gang -g 3 --pods 2; submit a/x");
    assert_eq!(w.gpus(), "n1[s1 s1 s1 s1] n2[s2 s2 s2 x]");
    w.run(&format!("{LONG}; delete s1; submit a/s3; submit a/s4"));
    assert_eq!(w.gpus(), "n1[s3 . . .] n2[s2 s2 s2 x]", "three of four are kept");
    w.run("delete s2");
    assert_eq!(w.waiting(), "s4");
}

#[test]
fn places_that_are_free_in_time_are_kept_rather_than_free_ones() {
    let mut w = World::new("n1:4 n2:4", "a:8");
    w.run("submit a/x -g 4 --limit 900000; submit a/y -g 2; submit a/z; submit a/s");
    w.run(&format!("submit a/gang --pods 4; {LONG}; delete s; submit a/s1"));
    assert_eq!(w.gpus(), "n1[x x x x] n2[y y z s1]", "n1 is enough, in ten minutes");
    w.run("delete s1; delete z; submit a/s2; submit a/s3; submit a/s4; delete x");
    assert_eq!(w.gpus(), "n1[gang gang gang gang] n2[y y s2 s3]");
}

/// A gang of project `a` waits for four GPUs for a time; then one is free, and b, which holds more
/// than its share, asks for it.
fn one_end_is_enough(waited_ms: u64) -> World {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    w.run("submit b/x --pods 4; submit b/y1; submit a/y2; submit a/y3; submit a/y4");
    w.run("submit a/gang --pods 4");
    w.run(&format!("wait {waited_ms}; delete y4; submit b/s"));
    w
}

#[test]
fn room_that_is_not_needed_after_one_more_end_is_lent_to_another_project() {
    let mut w = one_end_is_enough(300_001);
    assert_eq!(w.gpus(), "n1[x x x x] n2[y1 y2 y3 s]");
    w.run("delete x");
    assert_eq!(w.gpus(), "n1[gang gang gang gang] n2[y1 y2 y3 s]");
}

#[test]
fn a_project_that_is_far_behind_lends_nothing() {
    let w = one_end_is_enough(9_000_000);
    assert_eq!(w.gpus(), "n1[x x x x] n2[y1 y2 y3 .]", "five GPU hours are more than four");
}

#[test]
fn the_places_with_the_least_to_wait_for_are_kept() {
    let mut w = World::new("n1:2 n2:2 n3:2", "a:6");
    w.run("submit a/x -g 2; submit a/y1; submit a/y2; submit a/z -g 2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete y1; submit a/s1"));
    assert_eq!(w.gpus(), "n1[x x] n2[. y2] n3[z z]");
    w.run("delete y2");
    assert_eq!(w.gpus(), "n1[x x] n2[gang gang] n3[z z]");
}

#[test]
fn known_ends_are_waited_for_rather_than_unknown_ones() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/x1; submit a/x2; submit a/y -g 2 --limit 900000; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete x1; submit a/s1"));
    assert_eq!(w.gpus(), "n1[s1 x2] n2[y y]", "n2 is free in ten minutes");
    w.run("submit a/s2; delete y");
    assert_eq!(w.gpus(), "n1[s1 x2] n2[gang gang]");
}

#[test]
fn what_cannot_be_stopped_and_never_says_when_it_ends_is_not_waited_for() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/note --interactive; submit a/s1; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/s2"));
    assert_eq!(w.gpus(), "n1[note s2]", "nothing is kept idle for ever");
}

#[test]
fn what_is_more_important_is_not_waited_for() {
    let mut w = World::new("n1:4", "a:2 b:2");
    w.run("submit a/served --priority 90; submit a/s1; submit b/b1 -g 2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/s2"));
    assert_eq!(w.waiting(), "gang", "with it the project would pass its share");
}

#[test]
fn a_gang_beyond_its_share_keeps_nothing() {
    let mut w = World::new("n1:4", "a:2 b:2");
    w.run("submit b/b1 -g 2; submit a/s1; submit a/s2; submit a/gang -g 4");
    w.run(&format!("{LONG}; delete s1; submit a/s3"));
    assert_eq!(w.waiting(), "gang");
}

#[test]
fn a_gang_beyond_its_limit_keeps_nothing() {
    let mut w = World::new("n1:4", "a:2:2");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 4");
    w.run(&format!("{LONG}; delete s1; submit a/s3"));
    assert_eq!(w.waiting(), "gang");
}

#[test]
fn room_under_the_limit_is_kept_too() {
    let mut w = World::new("n1:4", "a:2:2");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/s3"));
    assert_eq!(w.waiting(), "gang s3");
    w.run("delete s2");
    assert_eq!(w.gpus(), "n1[gang gang . .]");
}

#[test]
fn the_limit_of_a_department_is_kept_for_the_first_in_it() {
    let mut w = World::new("n1:4", "");
    let gpus = |gpu_millis| units::Resources { gpu_millis, ..units::Resources::UNLIMITED };
    let department = w.queue("d", None, model::Share::new(gpus(2000), gpus(2000)));
    for name in ["a", "b"] {
        let share = model::Share::new(gpus(0), units::Resources::UNLIMITED);
        w.queue(name, Some(department), share);
    }
    w.run("submit b/b1 --interactive; submit b/b1; submit b/b2; submit a/gang --pods 2");
    assert_eq!(w.gpus(), "n1[b1 b2 . .]");
}

#[test]
fn two_gangs_do_not_dead_lock() {
    let mut w = World::new("n1:2 n2:2", "a:2 b:2");
    w.run("submit a/a1; submit a/a2; submit b/b1; submit b/b2");
    w.run(&format!("submit a/ga -g 2; submit b/gb -g 2; {LONG}"));
    w.run("delete a1; submit a/a3");
    assert_eq!(w.gpus(), "n1[. a2] n2[b1 b2]", "each of them keeps a node");
    w.run("delete b1; submit b/b3; submit a/a4");
    assert_eq!(w.gpus(), "n1[. a2] n2[a3 b2]", "its project holds less than the other");
    w.run("delete a2");
    assert_eq!(w.gpus(), "n1[gb gb] n2[a3 b2]", "its project has had less than its share");
    w.run("delete b2");
    assert_eq!(w.gpus(), "n1[gb gb] n2[a3 b3]", "lent: the end of gb makes room for ga");
    w.run("delete a3");
    assert_eq!(w.gpus(), "n1[gb gb] n2[ga ga]");
}

#[test]
fn the_share_of_a_queue_is_for_its_first() {
    let mut w = World::new("n1:2 n2:2", "a:2 b:2");
    w.run("submit a/a1; submit a/a2; submit b/b1; submit b/b2; submit b/gang -g 2");
    w.run(&format!("delete b1; submit a/guest; {LONG}; submit b/b3"));
    assert_eq!(w.gpus(), "n1[a1 a2] n2[guest b2]", "it is the gang that will take it");
    w.run("delete b2");
    assert_eq!(w.gpus(), "n1[a1 a2] n2[gang gang]");
}

#[test]
fn two_gangs_of_everything_take_turns() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/s1; submit a/s2; submit a/s3; submit a/s4");
    w.run(&format!("submit a/g1 --pods 4; submit a/g2 --pods 4; {LONG}"));
    w.run("delete s1; delete s2; delete s3; delete s4");
    assert_eq!(w.waiting(), "g2");
    w.run("submit a/s5; delete g1");
    assert_eq!(w.waiting(), "s5");
}

#[test]
fn elastic_work_starts_smaller_instead() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/s1 -g 3; submit a/s2; submit a/e -g 4 --elastic");
    w.run(&format!("{LONG}; delete s2; submit a/s3"));
    assert_eq!(w.size("e"), "1 (4)");
}

#[test]
fn cpu_is_kept_as_well() {
    let mut w = World::new("n1:0:4", "a:0");
    w.run("submit a/s1 -g 0 --cpu 2; submit a/s2 -g 0 --cpu 2; submit a/big -g 0 --cpu 4");
    w.run(&format!("{LONG}; delete s1; submit a/s3 -g 0 --cpu 1"));
    assert_eq!(w.waiting(), "big s3");
    w.run("delete s2");
    assert_eq!(w.waiting(), "s3");
}

#[test]
fn a_pod_without_gpus_is_in_nobodys_way() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/s1; submit a/s2; submit a/gang -g 2");
    w.run(&format!("{LONG}; delete s1; submit a/s3 -g 0 --cpu 1"));
    assert_eq!(w.waiting(), "gang");
}

#[test]
fn shares_of_gpus_do_not_creep_in() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/f1 -g 0.5; submit a/f2 -g 0.7; submit a/gang -g 2");
    w.run(&format!("{LONG}; submit a/f3 -g 0.5"));
    assert_eq!(w.waiting(), "gang f3");
    w.run("delete f1; delete f2");
    assert_eq!(w.waiting(), "f3");
}

#[test]
fn moves_do_not_fill_what_is_kept() {
    let mut w = World::new("n1:3 n2:3", "a:6");
    w.run("submit a/s1; submit a/s2; submit a/s3; submit a/t1; submit a/t2; submit a/t3");
    w.run(&format!("submit a/gang -g 3; {LONG}; delete s1; delete s2; delete t1"));
    assert_eq!(w.waiting(), "", "it moved what was in the way: {}", w.gpus());
}

/// A stream of small jobs: two arrive each minute, and run for eight. Returns the round in which
/// the gang started, and the idle GPU minutes before.
fn stream(w: &mut World, from: usize, rounds: usize) -> (Option<usize>, usize) {
    let mut ends: Vec<(usize, String)> = Vec::new();
    let mut idle = 0;
    for round in from..from + rounds {
        w.run(&format!("wait 60000; submit a/r{round}a; submit a/r{round}b"));
        for name in running(w) {
            if name != "gang" && !ends.iter().any(|(_, known)| *known == name) {
                ends.push((round + 8, name));
            }
        }
        let over: Vec<_> = ends.iter().filter(|(end, _)| *end == round).cloned().collect();
        over.iter().for_each(|(_, name)| w.run(&format!("delete {name}")));
        if w.gpus().contains("gang") {
            return (Some(round), idle);
        }
        idle += w.gpus().matches('.').count();
    }
    (None, idle)
}

/// Names of running workloads.
fn running(w: &World) -> Vec<String> {
    let rows = w.cluster.workloads().iter().filter(|(_, row)| row.placed > 0);
    rows.map(|(_, row)| row.spec.name.clone()).collect()
}

#[test]
fn a_gang_of_everything_starts_against_an_endless_stream() {
    for (max, starts) in [(0, false), (4, true)] {
        let mut w = World::new("n1:8 n2:8", "a:16");
        w.policy.reservations_max = max;
        stream(&mut w, 0, 12);
        w.run("submit a/gang -g 8 --pods 2");
        let (started, idle) = stream(&mut w, 12, 60);
        assert_eq!(started.is_some(), starts, "with {max} reservations: {started:?}");
        if let Some(round) = started {
            // Five minutes until room is reserved, and eight until the youngest job ends.
            assert!(round <= 12 + 5 + 8 + 1, "it started in round {round}");
            assert!(idle <= 16 * 8, "{idle} GPU minutes idle");
        }
    }
}

#[test]
fn a_gang_of_which_a_pod_is_moved_before_it_starts_waits_as_a_whole() {
    let mut w = World::new("n1:4 n2:4 n3:2", "a:1 b:1 c:0");
    w.run("label n1 rack=1; label n2 rack=1; label n3 rack=2 !dedicated");
    w.run("submit a/half -g 0.5; submit b/gang -g 1 --pods 3 --min 2; submit c/x --label app=x");
    w.run("submit a/y --label app=x; delete x; submit a/other -g 1 --pods 3 --min 2");
    w.run("suspend half; delete y");
    w.run("submit a/apart -g 1 --pods 3 --min 2 --label app=x --apart app=x@rack");
    // The decisions after each of these check that no gang starts in part.
    w.run("lose-node n2; add-node n2:4");
    assert_eq!(w.gpus(), "n1[other gang gang other] n2[apart apart gang other] n3[. .]");
}
