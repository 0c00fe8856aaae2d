//! Pod affinity and anti-affinity.

use expect_test::expect;
use testkit::World;

const ZONES: &str = "label n1 zone=a; label n2 zone=a; label n3 zone=b";

fn zones(script: &str) -> World {
    let mut w = World::new("n1:2 n2:2 n3:2", "a:9 b:9");
    w.run(ZONES);
    w.run(script);
    w
}

#[test]
fn it_goes_where_those_are_that_it_belongs_with() {
    let w = zones("cordon n1; cordon n2; submit a/db --label role=db; uncordon n1; uncordon n2");
    let mut host = w.clone();
    host.run("submit a/x --with role=db");
    assert_eq!(host.gpus(), "n1[. .] n2[. .] n3[db x]");
    let mut zone = w.clone();
    zone.run("submit a/full -g 1 --on zone=b; submit a/x --with role=db@zone");
    assert_eq!(zone.waiting(), "x");
    let mut other = w;
    other.run("label n1 zone=b; submit a/x -g 2 --with role=db@zone");
    assert_eq!(other.gpus(), "n1[x x] n2[. .] n3[db .]");
}

#[test]
fn it_waits_for_those_that_it_belongs_with() {
    let mut w = zones("submit a/x --with role=db@zone");
    expect![[r#"
        P110 3 of 3 nodes that it may go to have no pods that it must be with
    "#]]
    .assert_eq(&w.why("x"));
    w.run("submit a/db --label role=db");
    assert_eq!(w.waiting(), "");
}

#[test]
fn nodes_without_the_label_are_in_no_domain() {
    let mut w = World::new("n1:1 n2:1", "a:9");
    w.run("label n1 zone=a; cordon n1; submit a/db --label role=db; uncordon n1");
    assert_eq!(w.gpus(), "n1[.] n2[db]");
    w.run("submit a/x --with role=db@zone");
    assert_eq!(w.waiting(), "x");
    w.run("submit a/y --apart role=db@zone");
    assert_eq!(w.gpus(), "n1[y] n2[db]", "no pod can be with it where there is no domain");
}

#[test]
fn the_first_of_those_that_belong_together_goes_anywhere() {
    let w = zones("submit a/x --pods 4 --label g=x --with g=x@zone");
    assert_eq!(w.gpus(), "n1[x x] n2[x x] n3[. .]");
    let w = zones("submit a/y --with g=x@zone --label g=y");
    assert_eq!(w.waiting(), "y", "it is not one of them itself");
}

#[test]
fn replicas_keep_apart() {
    let w = zones("submit a/x --pods 3 --label g=x --apart g=x");
    assert_eq!(w.gpus(), "n1[x .] n2[x .] n3[x .]");
    let w = zones("submit a/x --pods 3 --label g=x --apart g=x@zone");
    assert_eq!(w.waiting(), "x");
    expect![[r#"
        P106 3 pods must start together; 2 fit at the moment
    "#]]
    .assert_eq(&w.why("x"));
    let w = zones("submit a/x --pods 3 --min 2 --label g=x --apart g=x@zone");
    assert_eq!(w.gpus(), "n1[x .] n2[. .] n3[x .]");
    expect![[r#"
        P110 3 of 3 nodes that it may go to have pods that it must not be with
        P205 nothing is stopped for 1 GPU: only work of its own project could give way, and none of that has a priority below 50; a holds 2 GPUs (quota 9, fair share 3)
    "#]]
    .assert_eq(&w.why("x"));
}

#[test]
fn who_keeps_away_is_kept_away_from() {
    let mut w =
        zones("submit a/quiet --apart role=noisy@zone; submit a/n --label role=noisy --on zone=b");
    assert_eq!(w.gpus(), "n1[quiet .] n2[. .] n3[n .]");
    w.run("submit a/m --label role=noisy --on zone=a");
    assert_eq!(w.waiting(), "m");
    expect![[r#"
        P107 1 of 3 nodes lacks a label that it needs
        P110 2 of 2 nodes that it may go to have pods that must not be with it
        P205 nothing is stopped for 1 GPU: only work of its own project could give way, and none of that has a priority below 50; a holds 2 GPUs (quota 9, fair share 3)
    "#]]
    .assert_eq(&w.why("m"));
    expect![[r#"
        Why it waits:
          P107 1 of 3 nodes lacks a label that it needs
          P110 2 of 2 nodes that it may go to have pods that must not be with it
          P205 nothing is stopped for 1 GPU: only work of its own project could give way, and none of that has a priority below 50; a holds 2 GPUs (quota 9, fair share 3)
        Where it does not fit:
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB, zone=a): all have pods that must not be with it
          1 node, n3 (2 GPUs of 16GiB, 100 cores, 1TiB, zone=b): lacks a label that it needs
        Who holds what it needs:
          a holds 2 GPUs (quota 9, fair share 3), 1 of it where it could go
          a/quiet holds 1 GPU: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: what is in the way has no other place, or may not be moved
          P402 nothing is taken from other projects: no other project has anything running
          P403 nothing is taken inside its project: no workload is eligible: 2 not less important
        What would let it start (each tried out):
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update m -p a --priority medium-low
          do not select the label zone
          that a/n ends (stops or moves 1 other)
            runai delete n -p a
    "#]].assert_eq(&w.diagnosed("m"));
    w.run("delete quiet");
    assert_eq!(w.waiting(), "");
}

#[test]
fn a_term_may_come_after_the_pods_it_is_about() {
    let mut w = zones("submit a/n --label role=noisy; submit a/o --label role=noisy --on zone=b");
    w.run("submit a/x --apart role=noisy");
    assert_eq!(w.gpus(), "n1[n .] n2[x .] n3[o .]");
}

#[test]
fn every_label_of_a_term_must_be_there() {
    let mut w = zones("submit a/n --label role=db --label tier=gold");
    w.run("submit a/x --with tier=gold; submit a/y --label role=db --apart tier=silver");
    assert_eq!(w.waiting(), "");
}

#[test]
fn labels_of_nodes_that_change_are_heeded() {
    let mut w =
        zones("submit a/db --label role=db; label n1 zone=c; submit a/x -g 2 --with role=db@zone");
    assert_eq!(w.waiting(), "x");
    w.run("label n3 zone=c");
    assert_eq!(w.gpus(), "n1[db .] n2[. .] n3[x x]");
}

#[test]
fn preferences_are_kept_where_they_can_be() {
    let w = zones("submit a/db --label role=db; submit a/x --rather-apart role=db@zone");
    assert_eq!(w.gpus(), "n1[db .] n2[. .] n3[x .]");
    let w = zones(
        "submit a/db --label role=db --on zone=b; submit a/x --rather-with role=db@zone -g 2",
    );
    assert_eq!(w.waiting(), "");
    let w = zones(
        "submit a/f -g 1 --on zone=b; submit a/db --label role=db --on zone=b; submit a/x --rather-with role=db@zone",
    );
    assert_eq!(w.gpus(), "n1[x .] n2[. .] n3[f db]");
}

#[test]
fn preempt_removes_those_it_must_not_be_with() {
    let mut w = World::new("n1:4", "a:9");
    w.run("submit a/n --label role=noisy; submit a/m --label role=noisy; submit a/other");
    w.run("submit a/x --apart role=noisy --priority 80");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x . other .]", "n m"));
}

#[test]
fn preempt_removes_them_in_all_of_the_domain() {
    let mut w = World::new("n1:2 n2:2", "a:9");
    w.run("label n1 zone=a; label n2 zone=a; submit a/n --label role=noisy");
    w.run("submit a/o -g 2; submit a/x --apart role=noisy@zone --priority 80");
    assert_eq!(w.waiting(), "n");
}

#[test]
fn preempt_removes_those_that_keep_it_away() {
    let mut w = World::new("n1:4", "a:9");
    w.run("submit a/quiet --apart role=noisy; submit a/x --label role=noisy --priority 80");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x . . .]", "quiet"));
}

#[test]
fn who_may_not_be_stopped_keeps_it_away() {
    let mut w = World::new("n1:4", "a:9");
    w.run(
        "submit a/n --label role=noisy --interactive; submit a/x --apart role=noisy --priority 80",
    );
    assert_eq!(w.waiting(), "x");
}

#[test]
fn a_gang_that_keeps_apart_takes_one_place_on_each_node() {
    let mut w = World::new("n1:2 n2:2", "a:0 b:2");
    w.run("submit a/p -g 2; submit a/q -g 2");
    w.run("submit b/x --pods 2 --label g=x --apart g=x");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x .] n2[x .]", "p q"));
}

#[test]
fn reclaim_goes_where_it_belongs() {
    let mut w = World::new("n1:2 n2:2", "a:0 b:2");
    w.run("cordon n1; submit b/db --label role=db; uncordon n1; submit a/p -g 2; submit a/q");
    assert_eq!(w.gpus(), "n1[p p] n2[db q]");
    w.run("submit b/x --with role=db");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[p p] n2[db x]", "q"));
}

#[test]
fn what_is_being_stopped_still_keeps_it_away() {
    let mut w = World::new("n1:2", "a:9");
    w.run("submit a/n --label role=noisy; slow; delete n; submit a/x --apart role=noisy");
    assert_eq!(w.waiting(), "");
}

#[test]
fn it_starts_only_when_those_it_removed_are_gone() {
    let mut w = World::new("n1:2", "a:9");
    w.run("submit a/n --label role=noisy; slow; submit a/x --apart role=noisy --priority 80");
    assert_eq!(w.gpus(), "n1[n! .]", "there is a free GPU, but it is not alone yet");
    w.run("gone");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x .]", "n"));
}

#[test]
fn those_moved_for_others_heed_it_too() {
    let mut w = World::new("n1:4 n2:4 n3:4", "a:9");
    w.run("submit a/p -g 3 --label g=p --apart g=p; submit a/q -g 3 --label g=p --apart g=p");
    w.run("submit a/r -g 3; submit a/s; delete r; submit a/t -g 4");
    assert_eq!(w.waiting(), "");
}

#[test]
fn the_nodes_of_equals_are_not_remembered_wrongly() {
    let mut w = World::new("n1:4 n2:4", "a:9");
    w.run("submit a/x1 --label g=x --apart g=x; submit a/x2 --label g=x --apart g=x");
    w.run("submit a/x3 --label g=x --apart g=x");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x1 . . .] n2[x2 . . .]", "x3"));
    w.run("delete x1");
    assert_eq!(w.waiting(), "");
}

#[test]
fn sets_of_a_workload_keep_near_and_apart() {
    let w = zones(
        "submit a/x --set lead --label r=lead --set work --pods 2 --with r=lead@zone --apart r=lead",
    );
    assert_eq!(w.gpus(), "n1[x .] n2[x x] n3[. .]");
}

#[test]
fn a_domain_of_a_topology_has_room_for_one_of_those_that_keep_apart() {
    let mut w = World::new("n1:4 n2:4 n3:4", "a:9");
    w.run("topology net rack; label n1 rack=1; label n2 rack=2; label n3 rack=2");
    w.run("submit a/x --pods 2 --label g=x --apart g=x --required rack");
    assert_eq!(w.gpus(), "n1[. . . .] n2[x . . .] n3[x . . .]");
}

#[test]
fn a_gang_that_belongs_together_finds_the_domain_with_room_for_all() {
    let mut w = World::new("n1:3 n2:4", "a:9");
    w.run("submit a/x -g 2 --pods 2 --label g=x --with g=x");
    assert_eq!(w.gpus(), "n1[. . .] n2[x x x x]");
    w.run("submit a/y --pods 4 --label g=y --with g=y");
    assert_eq!(w.waiting(), "y");
}

/// A gang of two sets that must be in one rack, where the smaller rack looks better at first.
const TWO_SETS: &str =
    "--set lead --label g=x --with g=x@rack --set work --pods 2 --label g=x --with g=x@rack";
const RACKS: &str = "label n1 rack=1; label n2 rack=2";

#[test]
fn sets_that_belong_together_find_the_domain_with_room_for_all() {
    let mut w = World::new("n1:1 n2:3", "a:9");
    w.run(&format!("{RACKS}; submit a/x {TWO_SETS}"));
    assert_eq!(w.gpus(), "n1[.] n2[x x x]");
}

#[test]
fn room_is_made_in_the_domain_where_all_belong() {
    for gang in [TWO_SETS, "--pods 3 --label g=x --with g=x@rack"] {
        let mut w = World::new("n1:1 n2:3", "a:0 b:3");
        w.run(&format!("{RACKS}; submit a/p; submit a/q -g 3; submit b/x {gang}"));
        assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[p] n2[x x x]", "q"), "{gang}");
    }
}

#[test]
fn a_domain_counts_only_if_those_who_make_room_find_other_places() {
    let mut w = World::new("n1:2 n2:2", "a:9");
    w.run(&format!("{RACKS}; cordon n1; submit a/q; uncordon n1; submit a/p --on rack=1"));
    w.run("submit a/x --pods 2 --label g=x --with g=x@rack");
    assert_eq!(w.gpus(), "n1[p q] n2[x x]");
}

/// A job of project a that another has affinity to, and one that fills the zone.
fn near_a_victim(queues: &str, taker: &str) -> World {
    let mut w = World::new("n1:2 n2:2", queues);
    w.run("label n1 zone=z; label n2 zone=z; submit a/db --label role=db --priority 25");
    w.run("submit a/x -g 2 --priority 25");
    w.run(taker);
    w
}

#[test]
fn those_that_it_must_be_near_are_not_what_is_stopped_for_it() {
    let w = near_a_victim("a:0 b:4", "submit b/near -g 2 --with role=db@zone");
    assert_eq!(w.gpus(), "n1[db .] n2[near near]", "by reclaim");
    let w = near_a_victim("a:4", "submit a/near -g 2 --with role=db@zone --priority 75");
    assert_eq!(w.gpus(), "n1[db .] n2[near near]", "by priority");
    let w = near_a_victim("a:0 b:4", "submit b/near -g 1 --pods 3 --with role=db@zone");
    assert_eq!(w.waiting(), "x", "a gang, of which one has a free place");
    let w = near_a_victim("a:3", "submit a/near -g 2 --with role=db@zone --priority 75");
    assert_eq!(w.gpus(), "n1[db .] n2[near near]", "where the quota is the obstacle");
}

#[test]
fn those_that_it_must_be_near_on_its_own_node_stay() {
    let script = "submit a/db --label role=db; submit a/x; submit a/y";
    for (queues, taker) in [("a:0 b:3", "b/near"), ("a:3", "a/near --priority 75")] {
        let mut w = World::new("n1:3", queues);
        w.run(script);
        w.run(&format!("wait 600000; checkpoint db; submit {taker} -g 2 --with role=db"));
        assert_eq!(w.waiting(), "x y", "db would lose least");
    }
}

#[test]
fn those_that_it_must_be_near_move_only_where_it_can_follow() {
    let mut w = World::new("n1:3 n2:2", "a:9 b:9");
    w.run(
        "submit a/x; submit a/y; submit a/db --label role=db; wait 600000; checkpoint db; delete x",
    );
    w.run("submit b/near -g 2 --with role=db");
    assert_eq!(w.gpus(), "n1[db near near] n2[. y]", "db would lose least");
}
