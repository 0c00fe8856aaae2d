//! Workloads of several pod sets, groups of them, and their minima.

use testkit::World;

#[test]
fn sets_of_different_pods_start_together() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/j --set master -g 1 --set worker -g 1 --pods 2");
    assert_eq!(w.gpus(), "n1[j j j .]");
}

#[test]
fn no_set_starts_without_the_minimum_of_the_others() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/x -g 2; submit a/j --set master -g 1 --set worker -g 1 --pods 2");
    assert_eq!((w.gpus(), w.waiting()), ("n1[x x . .]".into(), "j".into()));
    w.run("delete x");
    assert_eq!((w.gpus(), w.waiting()), ("n1[j j j .]".into(), String::new()));
}

#[test]
fn each_set_has_its_own_request_and_selector() {
    let mut w = World::new("n1:4 n2:4", "a:8");
    w.run("label n2 zone=b");
    w.run("submit a/j --set master -g 0 --cpu 2 --set worker -g 2 --pods 2 --on zone=b");
    assert_eq!((w.gpus(), w.waiting()), ("n1[. . . .] n2[j j j j]".into(), String::new()));
}

#[test]
fn the_set_with_the_fewest_pods_for_its_minimum_grows_first() {
    let mut w = World::new("n1:5", "a:5");
    w.run("submit a/j --set p --pods 6 --min 1 --set q --pods 6 --min 2");
    let count = |set: usize| {
        let workload = w.cluster.workloads().iter().next().unwrap().1;
        workload.pod_sets[set].placed
    };
    assert_eq!((count(0), count(1)), (2, 3), "1 and 2, then 1 and 2 more are equally many");
}

#[test]
fn a_set_without_minimum_grows_last_but_grows() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/j --set master --set worker --pods 6 --min 0");
    assert_eq!(w.gpus(), "n1[j j j j]");
}

#[test]
fn a_set_that_finds_no_room_does_not_hold_up_another() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/j --set big -g 2 --pods 3 --min 1 --set small --pods 3 --min 1");
    assert_eq!(w.gpus(), "n1[j j j j]", "no room for a second big one");
}

#[test]
fn higher_task_priority_is_placed_first() {
    let mut w = World::new("n1:2 n2:1", "a:3");
    w.run("submit a/j --set small --set big -g 2 --task-priority 5");
    assert_eq!((w.gpus(), w.waiting()), ("n1[j j] n2[j]".into(), String::new()));
}

#[test]
fn the_quota_is_asked_for_all_sets_together() {
    let mut w = World::new("n1:4", "a:2:2");
    w.run("submit a/j --set p --set q --pods 2");
    assert_eq!(w.waiting(), "j");
    expect_test::expect![[r#"
        P201 a may hold 2 GPUs and holds 0; 3 more would pass its limit
        P204 cannot start even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("j"));
}

#[test]
fn reasons_are_those_of_the_set_that_finds_no_room() {
    let mut w = World::new("n1:2", "a:4");
    w.run("submit a/j --set small --set big -g 4");
    assert!(w.why("j").starts_with("P101 asks for 4 GPUs on one node"), "{}", w.why("j"));
}

#[test]
fn reclaim_makes_room_for_every_set() {
    let mut w = World::new("n1:2 n2:2", "a:0 b:4");
    w.run("submit a/x1; submit a/x2; submit a/x3; submit a/x4");
    w.run("submit b/j --set small --set big -g 2");
    assert_eq!(w.waiting().split(' ').filter(|name| *name == "j").count(), 0, "{}", w.gpus());
    assert_eq!(w.stopped().lines().count(), 3);
}

#[test]
fn pods_above_the_minimum_of_the_worst_set_go_first() {
    let mut w = World::new("n1:6", "a:0 b:6");
    w.run("submit a/j --set p --pods 4 --min 1 --set q --pods 2 --min 1");
    w.run("submit b/x -g 2");
    let workload = w.cluster.workloads().iter().next().unwrap().1;
    let placed: Vec<_> = workload.pod_sets.iter().map(|set| set.placed).collect();
    assert_eq!(placed, [2, 2], "both of the set that has four times its minimum");
}

#[test]
fn a_stale_set_stops_the_workload() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/j --set p --set q --pods 2; lose j 0; wait 61000");
    assert_eq!(w.gpus(), "n1[. . . .]");
    expect_test::expect![[r#"
        E105 stopped: 2 of the 3 pods that must run together were left
    "#]]
    .assert_eq(
        w.stopped().lines().next().map(|line| format!("{}\n", &line[2..])).as_deref().unwrap_or(""),
    );
}

#[test]
fn a_group_that_waits_beside_others_says_how_many_pods_it_needs() {
    let mut w = World::new("n1:5", "a:5");
    let sets = "--set p1 --in r1 --pods 3 --set p2 --in r2 --pods 3";
    w.run(&format!("submit a/j --min 1 --group r1 --group r2 {sets}"));
    assert_eq!(w.gpus(), "n1[j j j . .]");
    assert!(w.why("j").contains("3 pods must start together; 2 fit"), "{}", w.why("j"));
}

#[test]
fn a_workload_may_start_with_some_of_its_groups() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/j --min 1 --group r1 --group r2 --set p1 --in r1 --pods 3 --set p2 --in r2 --pods 3");
    assert_eq!((w.gpus(), w.waiting()), ("n1[j j j .]".into(), "j".into()));
}

#[test]
fn the_others_follow_when_there_is_room_as_a_whole() {
    let mut w = World::new("n1:6", "a:6");
    w.run("submit a/x; submit a/j --min 1 --set p1 --pods 3 --set p2 --pods 3");
    assert_eq!(w.gpus(), "n1[x j j j . .]", "two of the second set would be of no use");
    w.run("delete x");
    assert_eq!(w.gpus(), "n1[j j j j j j]");
}

#[test]
fn what_finds_no_room_is_stood_in_for() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/j --min 1 --set big -g 3 --set small -g 2");
    assert_eq!(w.gpus(), "n1[j j] n2[. .]");
}

#[test]
fn minima_hold_at_every_level() {
    let mut w = World::new("n1:5", "a:5");
    let job = "submit a/j --group all --min 2 --group g1 --in all --group g2 --in all --min 1 \
               --set a --in g1 --pods 2 --set b --in g2 --pods 4 --set c --in g2 --pods 3 --set d --in all";
    w.run(job);
    assert_eq!(w.gpus(), "n1[j j j j j]", "two of g1, d, or g2 with c");
    let workload = w.cluster.workloads().iter().next().unwrap().1;
    let placed: Vec<_> = workload.pod_sets.iter().map(|set| set.placed).collect();
    assert_eq!(placed, [2, 0, 3, 0]);
}

#[test]
fn an_optional_part_that_lost_a_pod_is_stopped_alone() {
    let mut w = World::new("n1:6", "a:6");
    w.run("submit a/j --min 1 --set p --pods 2 --set q --pods 3");
    assert_eq!(w.gpus(), "n1[j j j j j .]");
    w.run("lose j 4; wait 61000");
    assert_eq!(w.gpus(), "n1[j j . . . .]");
}

#[test]
fn a_gang_of_sets_waits_as_a_whole_for_what_is_being_freed() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/x -g 2; slow; delete x; submit a/j --set p --set q --pods 2");
    let workload = w.cluster.workloads().iter().find(|(_, row)| row.spec.name == "j").unwrap().1;
    let runs = workload.pods.iter().filter(|&&pod| w.cluster.pods()[pod].runs()).count();
    assert!(runs == 0 || runs == 3, "{}", w.gpus());
}

#[test]
fn a_workload_that_is_moved_keeps_its_pods_and_not_only_as_many() {
    let mut w = World::new("n1:2 n2:4 n3:1", "a:7 b:0");
    w.run("submit a/j --gated --set p -g 1 --pods 2 --min 1 --set q -g 2 --pods 3 --min 2");
    w.run("ungate j 0; ungate j 2; ungate j 3; ungate j 4; ungate j 1");
    assert_eq!(w.gpus(), "n1[j j] n2[j j j j] n3[j]");
    // With a second pod of p instead of the third of q there would be room.
    w.run("submit b/new -g 1");
    assert_eq!((w.gpus(), w.size("new")), ("n1[j j] n2[j j j j] n3[j]".into(), "0 (1)".into()));
}
