//! MIG instances used for GPU fractions: their assignment, the reasons of waiting workloads, and
//! evictions. `/4,2*2` is a GPU of 16 GiB divided into a half and two quarters.

use expect_test::expect;
use testkit::World;

fn one(script: &str) -> World {
    let mut w = World::new("n1:/4,2*2", "a:9 b:9");
    w.run(script);
    w
}

#[test]
fn a_part_gets_the_smallest_free_instance_that_holds_it() {
    let mut w = one("submit a/x -g 0.1; submit a/y -g 0.25");
    assert_eq!(w.gpus(), "n1[. x:0.1 y:0.25]");
    w.run("submit a/z -g 0.1");
    assert_eq!(w.gpus(), "n1[z:0.1 x:0.1 y:0.25]");
    w.run("delete x; submit a/v -g 0.2");
    assert_eq!(w.gpus(), "n1[z:0.1 v:0.2 y:0.25]");
}

#[test]
fn an_instance_is_chosen_by_size_where_shares_are_spread_too() {
    let mut w = one("");
    w.policy.placement.devices = model::Fill::Spread;
    w.run("submit a/x -g 0.1; submit a/y -g 0.1");
    assert_eq!(w.gpus(), "n1[. x:0.1 y:0.1]");
}

#[test]
fn bytes_are_held_by_bytes_and_counted_as_a_part_of_the_gpu() {
    // An instance has 64 MiB less than its 4 GiB.
    let w = one("submit a/x --mem 4GiB; submit a/y --mem 3GiB");
    assert_eq!(w.gpus(), "n1[x:0.25 y:0.188 .]");
    assert_eq!((w.size("x").as_str(), w.size("y").as_str()), ("0.25 (0.25)", "0.188 (0.188)"));
}

#[test]
fn all_of_a_gpu_is_held_by_an_instance_of_all_of_its_memory() {
    let mut w = World::new("n1:/8 n2:/4*2", "a:9");
    w.run("submit a/x; submit a/y");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x] n2[. .]", "y"));
    expect![[r#"
        P112 asks for 1 GPU; 1 of 3 MIG instances on 2 nodes holds that, none of them is free
        P203 nothing is taken from others for a: 1 + 1 GPU would exceed its fair share of 1 (quota 9); work like this can use only the 1 GPU of n1
    "#]]
    .assert_eq(&w.why("y"));
}

#[test]
fn who_waits_hears_how_many_instances_there_are() {
    let mut w = one("submit a/x -g 0.5; submit a/y -g 0.3");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.5 . .]", "y"));
    expect![[r#"
        P112 asks for 0.3 of a GPU; 1 of 3 MIG instances on 1 node holds that, none of them is free
        P203 nothing is taken from others for a: 0.5 + 0.3 GPU would exceed its fair share of 0.5 (quota 9); work like this can use only the 0.5 GPU of n1
    "#]]
    .assert_eq(&w.why("y"));
    expect![[r#"
        Why it waits:
          P112 asks for 0.3 of a GPU; 1 of 3 MIG instances on 1 node holds that, none of them is free
          P203 nothing is taken from others for a: 0.5 + 0.3 GPU would exceed its fair share of 0.5 (quota 9); work like this can use only the 0.5 GPU of n1
        Where it does not fit:
          1 node, n1 (no whole GPU, 2 × MIG instance for 0.25 of a GPU, 3.9GiB, 1 × MIG instance for 0.5 of a GPU, 7.9GiB, 100 cores, 1TiB): has too few free MIG instances (needs 1, has 0)
        Who holds what it needs:
          a holds 0.5 GPU (quota 9, fair share 0.5)
          a/x holds 0.5 GPU: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: what is in the way has no other place, or may not be moved
          P402 nothing is taken from other projects: with 0.3 more it would hold more than its fair share; a holds 0.5 GPU (quota 9, fair share 0.5)
          P403 nothing is taken inside its project: no workload is eligible: 1 not less important
        What would let it start (each tried out):
          ask for at most 0.25 of a GPU
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update y -p a --priority medium-low
          that a/x ends
            runai delete x -p a
    "#]]
    .assert_eq(&w.diagnosed("y"));
    w.run("delete x");
    assert_eq!(w.gpus(), "n1[y:0.3 . .]");
}

#[test]
fn what_no_instance_holds_is_said_with_the_largest() {
    let w = one(
        "submit a/x -g 0.6; submit a/y --mem 9GiB; submit a/z -g 2; submit a/v -g 0.1 --devices 2",
    );
    expect![[r#"
        P101 asks for 0.6 of a GPU; a pod has one MIG instance here, and the largest holds 0.5 of a GPU (7.9GiB)
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        P101 asks for 9GiB of GPU memory; a pod has one MIG instance here, and the largest holds 0.5 of a GPU (7.9GiB)
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        P101 asks for 2 GPUs; a pod has one MIG instance here, and the largest holds 0.5 of a GPU (7.9GiB)
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        P101 asks for 0.1 of each of 2 GPUs; a pod has one MIG instance here, and the largest holds 0.5 of a GPU (7.9GiB)
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]].assert_eq(&["x", "y", "z", "v"].map(|name| w.why(name)).concat());
}

#[test]
fn quotas_count_the_part_that_was_asked_for() {
    let mut w = World::new("n1:/4,4", "a:0.2 b:9");
    w.run("submit a/x -g 0.1 --interactive; submit a/y -g 0.1 --interactive");
    assert_eq!((w.gpus().as_str(), w.size("x").as_str()), ("n1[x:0.1 y:0.1]", "0.1 (0.1)"));
    w.run("delete y; submit a/z -g 0.2 --interactive");
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a has a quota of 0.2 GPU, its non-preemptible workloads hold 0.1, this one asks for 0.2
    "#]]
    .assert_eq(&w.why("z"));
}

#[test]
fn reclaim_frees_an_instance_that_is_large_enough() {
    let mut w = World::new("n1:/4,2*2", "a:0 b:1");
    w.run("submit a/big -g 0.3; submit a/p -g 0.2; submit a/q -g 0.2; submit b/x -g 0.4");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.4 p:0.2 q:0.2]", "big"));
}

#[test]
fn a_run_with_a_small_part_frees_all_of_its_instance() {
    let mut w = World::new("n1:/4", "a:0 b:1");
    w.run("submit a/little -g 0.1; submit b/x -g 0.5");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.5]", "little"));
}

#[test]
fn preemption_stops_who_has_a_large_instance_and_not_two_with_small_ones() {
    let mut w = one("submit a/big -g 0.5; submit a/p -g 0.25; submit a/q -g 0.25");
    w.run("submit a/x -g 0.45 --priority 80");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.45 p:0.25 q:0.25]", "big"));
}

#[test]
fn consolidation_moves_who_has_a_larger_instance_than_it_needs() {
    let mut w = one("submit a/p -g 0.2; submit a/q -g 0.2; submit a/r -g 0.2; delete p");
    assert_eq!(w.gpus(), "n1[r:0.2 . q:0.2]");
    w.run("submit a/x -g 0.5");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.5 r:0.2 q:0.2]", ""));
}

#[test]
fn a_place_is_reserved_on_an_instance_that_is_being_freed() {
    let mut w = World::new("n1:/4", "a:0 b:1");
    w.run("submit a/i -g 0.1; slow; submit b/x -g 0.4");
    assert_eq!(w.gpus(), "n1[i!:0.1]");
    expect![[r#"
        P301 has a place on n1, which is being freed by i
    "#]]
    .assert_eq(&w.why("x"));
    w.run("gone");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.4]", "i"));
}

#[test]
fn a_reservation_keeps_an_instance_that_holds_what_it_is_about() {
    let mut w = World::new("n1:/4*2,1", "a:9");
    w.run("submit a/p -g 0.5; submit a/x -g 0.3 --pods 2; wait 300001");
    w.run("submit a/q -g 0.2; submit a/r -g 0.1");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[p:0.5 . r:0.1]", "x q"));
    w.run("delete p");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x:0.3 x:0.3 r:0.1]", "q"));
}

#[test]
fn a_gang_has_an_instance_for_each_pod() {
    let mut w = World::new("n1:/2*3 n2:/4*2", "a:9");
    w.run("submit a/x -g 0.2 --pods 6");
    assert_eq!(w.waiting(), "x");
    w.run("add-node n3:/1,2");
    assert_eq!(w.gpus(), "n1[x:0.2 x:0.2 x:0.2] n2[x:0.2 x:0.2] n3[. x:0.2]");
}

#[test]
fn an_elastic_workload_stays_with_the_one_gpu_that_an_instance_is() {
    let mut w = World::new("n1:/8+/8", "a:9");
    w.run("submit a/x --elastic; wait 600000");
    assert_eq!(w.gpus(), "n1[x .]");
}

#[test]
fn an_instance_out_of_service_is_waited_for() {
    let mut w = one("take-gpu n1 0; submit a/x -g 0.5; submit a/y -g 0.2");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[. y:0.2 .]", "x"));
    expect![[r#"
        P112 asks for 0.5 of a GPU; 1 of 3 MIG instances on 1 node holds that, none of them is free
        P111 1 GPU of 1 is out of service: GPU 0 of n1; `runai describe node n1` says why
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("x"));
    w.run("return-gpu n1 0");
    assert_eq!(w.gpus(), "n1[x:0.5 y:0.2 .]");
}

#[test]
fn profiles_and_parts_have_devices_of_their_own() {
    let mut w = World::new("n1:1g.5gb n2:/4 n3:1", "a:9");
    w.run("submit a/m --mig 1g.5gb; submit a/p -g 0.5; submit a/n --mig 1g.5gb; submit a/q -g 0.7");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[m] n2[p:0.5] n3[q:0.7]", "n"));
}
