//! MIG instances: their assignment, their value in GPUs, and evictions for them.

use expect_test::expect;
use testkit::World;

/// One node with two whole GPUs and one divided into 3g.20gb and four of 1g.5gb.
fn mixed(script: &str) -> World {
    let mut w = World::new("n1:2+3g.20gb,1g.5gb*4", "a:9 b:9");
    w.run(script);
    w
}

#[test]
fn an_instance_is_for_those_who_ask_for_it() {
    let w =
        mixed("submit a/i --mig 1g.5gb; submit a/g; submit a/j --mig 3g.20gb; submit a/h -g 0.3");
    assert_eq!(w.gpus(), "n1[g h:0.3 j i . . .]");
}

#[test]
fn a_divided_gpu_is_no_gpu() {
    let w = mixed("submit a/x -g 3; submit a/y --mem 4GiB; submit a/z --mem 4GiB; submit a/v -g 2");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[y:0.25+z:0.25 . . . . . .]", "x v"));
    expect![[r#"
        P101 asks for 3 GPUs on one node; the largest node has 2
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("x"));
    expect![[r#"
        P102 needs 2 GPUs on one node; 1 is free on 1 node, at most 1 on one
        P203 nothing is taken from others for a: 0.5 + 2 GPUs would exceed its fair share of 2 (quota 9); work like this can use only the 2 GPUs of n1
    "#]]
    .assert_eq(&w.why("v"));
}

#[test]
fn several_profiles_come_from_one_node() {
    let mut w = World::new("n1:1g.5gb*7 n2:3g.20gb*2 n3:3g.20gb,1g.5gb*4", "a:9");
    w.run("submit a/x --mig 1g.5gb*2,3g.20gb");
    assert_eq!(w.gpus(), "n1[. . . . . . .] n2[. .] n3[x x x . .]");
    assert_eq!(w.size("x"), "0.712 (0.712)");
}

#[test]
fn all_slices_of_a_gpu_fit_a_quota_of_one() {
    let mut w = World::new("n1:1g.5gb*7+1g.5gb*7", "a:1 b:1");
    w.run("submit a/x --mig 1g.5gb --pods 7 --interactive");
    assert_eq!(w.waiting(), "");
    w.run("submit a/y --mig 1g.5gb --interactive");
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a has a quota of 1 GPU, its non-preemptible workloads hold 0.994, this one asks for 0.142
    "#]]
    .assert_eq(&w.why("y"));
}

#[test]
fn what_no_node_has_is_said() {
    let w = mixed(
        "submit a/x --mig 2g.10gb; submit a/y --mig 1g.5gb*5; submit a/z --mig 3g.20gb*2,1g.5gb",
    );
    expect![[r#"
        P101 asks for 1 × 2g.10gb on one node; no node has that
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("x"));
    expect![[r#"
        P101 asks for 5 × 1g.5gb on one node; no node has that
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("y"));
    expect![[r#"
        P101 asks for 1 × 1g.5gb and 2 × 3g.20gb on one node; no node has that
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("z"));
}

#[test]
fn what_is_taken_is_counted() {
    let mut w = World::new("n1:3g.20gb*2 n2:3g.20gb,1g.5gb n3:4", "a:9");
    w.run("submit a/x --mig 3g.20gb --pods 3; submit a/y --mig 3g.20gb");
    expect![[r#"
        P109 asks for 1 × 3g.20gb on one node; 2 of 3 nodes have that, none has it free
        P203 nothing is taken from others for a: 1.284 + 0.428 GPU would exceed its fair share of 1.284 (quota 9); work like this can use only the 1.284 GPUs of n1 and 1 more node
    "#]]
    .assert_eq(&w.why("y"));
    expect![[r#"
        Why it waits:
          P109 asks for 1 × 3g.20gb on one node; 2 of 3 nodes have that, none has it free
          P203 nothing is taken from others for a: 1.284 + 0.428 GPU would exceed its fair share of 1.284 (quota 9); work like this can use only the 1.284 GPUs of n1 and 1 more node
        Where it does not fit:
          1 node, n1 (no whole GPU, 2 × 3g.20gb, 100 cores, 1TiB): has too few free MIG instances (needs 1, has 0)
          1 node, n2 (no whole GPU, 1 × 1g.5gb, 1 × 3g.20gb, 100 cores, 1TiB): has too few free MIG instances (needs 1, has 0)
          1 node, n3 (4 GPUs of 16GiB, 100 cores, 1TiB): has too few MIG instances, even when empty (needs 1, has 0)
        Who holds what it needs:
          a holds 1.284 GPUs (quota 9, fair share 1.284)
          a/x holds 1.284 GPUs: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: what is in the way has no other place, or may not be moved
          P402 nothing is taken from other projects: with 0.428 more it would hold more than its fair share; a holds 1.284 GPUs (quota 9, fair share 1.284)
          P403 nothing is taken inside its project: no workload is eligible: 1 not less important
        What would let it start (each tried out):
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update y -p a --priority medium-low
          that a/x ends
            runai delete x -p a
    "#]]
    .assert_eq(&w.diagnosed("y"));
}

#[test]
fn reclaim_frees_an_instance_of_the_profile_asked_for() {
    let mut w = World::new("n1:2+3g.20gb,1g.5gb*4", "a:0 b:1");
    w.run("submit a/big --mig 3g.20gb; submit a/small --mig 1g.5gb*4; submit a/whole -g 2");
    w.run("submit b/x --mig 1g.5gb");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[whole whole big x . . .]", "small"));
    assert!(w.stopped().is_empty() || w.stopped().starts_with("small E101"));
}

#[test]
fn the_instance_with_the_least_loss_is_freed() {
    let mut w = World::new("n1:2g.10gb*2,1g.5gb*2", "a:0 b:1");
    w.run(
        "submit a/p --mig 2g.10gb*2; submit a/q --mig 1g.5gb; submit a/r --mig 1g.5gb; wait 600000",
    );
    w.run("checkpoint p; submit b/x --mig 1g.5gb");
    assert_eq!(w.gpus(), "n1[p p q x]");
}

#[test]
fn preempt_frees_instances_of_two_profiles() {
    let mut w = mixed("submit a/p --mig 3g.20gb; submit a/q --mig 1g.5gb*3; submit a/g -g 2");
    w.run("submit a/x --mig 3g.20gb,1g.5gb*2 --priority 80");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[g g x x x . .]", "p q"));
}

#[test]
fn a_whole_gpu_is_not_freed_for_an_instance_nor_the_other_way() {
    let mut w = World::new("n1:1+1g.5gb", "a:0 b:2");
    w.run("submit a/g; submit a/i --mig 1g.5gb; submit b/x --mig 7g.40gb; submit b/y -g 2");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[g i]", "x y"));
    w.run("submit b/z");
    assert_eq!(w.gpus(), "n1[z i]");
}

#[test]
fn seven_slices_are_not_a_whole_gpu_to_the_victim_search() {
    let mut w = World::new("n1:1+7g.40gb", "a:0 b:2");
    w.run("submit a/g; submit a/i --mig 7g.40gb; submit b/x");
    assert_eq!(w.gpus(), "n1[x i]");
    w.run("submit b/y --mig 7g.40gb");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x y]", "g i"));
}

#[test]
fn a_place_is_reserved_on_an_instance_that_is_being_freed() {
    let mut w = World::new("n1:1g.5gb", "a:0 b:1");
    w.run("submit a/i --mig 1g.5gb; slow; submit b/x --mig 1g.5gb");
    assert_eq!(w.gpus(), "n1[i!]");
    expect![[r#"
        P301 has a place on n1, which is being freed by i
    "#]]
    .assert_eq(&w.why("x"));
    w.run("gone");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x]", "i"));
}

#[test]
fn consolidation_brings_instances_together() {
    let mut w = World::new("n1:1g.5gb*2 n2:1g.5gb*2", "a:9");
    w.run(
        "submit a/p --mig 1g.5gb*2; submit a/q --mig 1g.5gb; delete p; submit a/r --mig 1g.5gb*2",
    );
    w.run("submit a/s --mig 1g.5gb; delete r");
    w.run("submit a/t --mig 1g.5gb*2");
    assert_eq!(w.waiting(), "");
}

#[test]
fn a_lost_node_takes_its_instances_along() {
    let mut w = mixed("submit a/i --mig 1g.5gb; lose-node n1");
    assert_eq!(w.waiting(), "i");
    w.run("add-node n1:1g.5gb*2");
    assert_eq!(w.gpus(), "n1[i .]");
}

#[test]
fn a_gang_of_instances_starts_whole() {
    let mut w = World::new("n1:1g.5gb*3 n2:1g.5gb*3", "a:9");
    w.run("submit a/x --mig 1g.5gb*2 --pods 3");
    assert_eq!(w.waiting(), "x");
    w.run("add-node n3:1g.5gb*2");
    assert_eq!(w.gpus(), "n1[x x .] n2[x x .] n3[x x]");
}

#[test]
fn a_reservation_keeps_the_instances_it_is_about() {
    let mut w = World::new("n1:3g.20gb*2,1g.5gb", "a:9");
    w.run("submit a/p --mig 3g.20gb; submit a/x --mig 3g.20gb*2; wait 300001");
    w.run("submit a/q --mig 3g.20gb; submit a/r --mig 1g.5gb");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[p . r]", "x q"));
}

#[test]
fn pods_with_instances_fit_as_often_as_there_are_some() {
    let mut w = World::new("n1:1g.5gb*4 n2:1g.5gb*2", "a:9");
    w.run("topology net rack; label n1 rack=1; label n2 rack=2");
    w.run("submit a/x --mig 1g.5gb*2 --pods 2 --required rack");
    assert_eq!(w.gpus(), "n1[x x x x] n2[. .]");
    w.run("submit a/y --mig 1g.5gb --pods 3 --required rack");
    assert_eq!(w.waiting(), "y");
}
