//! Nodes that are drained, lost and added back.

use expect_test::expect;
use testkit::World;

#[test]
fn a_drained_node_moves_its_pods_where_there_is_room() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/one; submit a/two; drain n1");
    assert_eq!(w.gpus(), "n1[. .] n2[one two]");
    expect![[r#"
        one E106 its node n1 is being emptied
        two E106 its node n1 is being emptied
    "#]]
    .assert_eq(&w.stopped());
}

#[test]
fn what_has_no_other_place_waits_until_the_node_is_open_again() {
    let mut w = World::new("n1:2 n2:1", "a:4");
    w.run("submit a/one -g 2; drain n1");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[. .] n2[.]", "one"));
    w.run("uncordon n1");
    assert_eq!(w.gpus(), "n1[one one] n2[.]");
}

#[test]
fn a_gang_that_cannot_go_on_in_part_keeps_its_places_for_a_grace() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/gang --pods 4; submit a/next; drain n2; wait 60000");
    assert_eq!(w.gpus(), "n1[gang gang] n2[. .]");
    w.run("wait 100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[next .] n2[. .]", "gang"));
}

#[test]
fn a_gang_above_its_minimum_loses_only_the_pods_of_the_node() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/gang --pods 4 --min 2; drain n2");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[gang gang] n2[. .]", "gang"));
}

#[test]
fn a_drain_stops_what_cannot_be_preempted_and_takes_back_what_was_reserved() {
    let mut w = World::new("n1:1 n2:1", "a:2 b:0");
    w.run("submit a/fixed --interactive; submit b/guest; slow");
    w.run("submit a/next --interactive; drain n2");
    assert_eq!(w.gpus(), "n1[fixed] n2[guest!]");
    w.run("drain n1; gone");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[.] n2[.]", "fixed guest next"));
}

#[test]
fn draining_nobody_stops_nobody_and_keeps_newcomers_away() {
    let mut w = World::new("n1:1 n2:1", "a:2");
    w.run("drain n1; submit a/one; submit a/two");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[.] n2[one]", "two"));
    assert!(w.why("two").contains("P107 1 of 2 nodes is cordoned"), "{}", w.why("two"));
}

#[test]
fn a_lost_node_takes_its_pods_with_it_and_counts_no_longer() {
    let mut w = World::new("n1:2 n2:2", "a:1 b:1");
    w.run("submit a/one -g 2; submit b/two -g 2; lose-node n2");
    assert_eq!((w.gpus().as_str(), w.cluster.capacity().gpu_millis), ("n1[one one]", 2000));
    assert_eq!(w.waiting(), "two");
    w.run("add-node n2:2");
    assert_eq!(w.gpus(), "n1[one one] n2[two two]");
}

#[test]
fn shares_are_of_the_nodes_that_are_left() {
    let mut w = World::new("n1:2 n2:2", "a:0 b:0");
    w.run("submit a/x --pods 4 --min 1; lose-node n2; submit b/y --pods 4 --min 1");
    assert_eq!(w.gpus(), "n1[x y]", "half of two, not of four");
}

#[test]
fn a_pod_that_moves_survives_the_loss_of_the_node_it_leaves() {
    let mut w = World::new("n1:1 n2:1", "a:2");
    w.run("submit a/one; slow; drain n1");
    assert_eq!(w.gpus(), "n1[one!] n2[.]");
    w.run("lose-node n1");
    assert_eq!(w.gpus(), "n2[one]");
}

#[test]
fn a_gang_that_lost_a_part_of_its_reserved_place_does_not_start_in_part() {
    let mut w = World::new("n1:1 n2:1", "a:0 b:2");
    w.run("submit a/x; submit a/y; slow; submit b/gang --pods 2");
    assert_eq!(w.gpus(), "n1[x!] n2[y!]");
    w.run("lose-node n1; gone");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n2[x]", "y gang"));
}

#[test]
fn a_new_node_with_an_old_id_has_its_own_labels() {
    let mut w = World::new("n1:1 n2:1", "a:2");
    w.run("label n1 zone=a; submit a/one --on zone=a; lose-node n1; add-node n3:1");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n3[.] n2[.]", "one"));
}

#[test]
fn who_is_asked_to_give_way_is_not_put_back_on_a_node_that_is_drained() {
    let mut w = World::new("n1:4:8 n2:4:8 n3:2:4", "a:0 c:2");
    w.run("submit a/w0 -g 4; submit a/w1 -g 2 --elastic; submit c/w2 -g 2 --priority 80");
    w.run("submit a/w3 --pods 3; suspend w1; submit a/w4 -g 2 --elastic; drain n2");
    assert!(w.gpus().contains("n2[. . . .]"), "{}", w.gpus());
}
