//! Node pools in order of preference.

use expect_test::expect;
use testkit::World;

/// Two nodes of two GPUs: `n1` in pool `a100`, `n2` in pool `h100`.
fn world(projects: &str) -> World {
    let mut w = World::new("n1:2 n2:2", projects);
    w.run("label n1 node-pool=a100; label n2 node-pool=h100");
    w
}

#[test]
fn the_first_pool_with_room_is_taken() {
    let mut w = world("q:4");
    w.run("submit q/one --pools h100,a100; submit q/two -g 2 --pools h100,a100");
    assert_eq!(w.gpus(), "n1[two two] n2[one .]");
    w.run("submit q/three --pools a100,h100");
    assert_eq!(w.gpus(), "n1[two two] n2[one three]");
}

#[test]
fn a_pool_that_is_not_listed_is_not_used() {
    let mut w = world("q:4");
    w.run("submit q/one -g 2 --pools h100; submit q/two --pools h100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[. .] n2[one one]", "two"));
    expect![[r#"
        P102 needs 1 GPU; no GPU of 1 node is free
        P107 1 of 2 nodes is in another pool
        P203 nothing is taken from others for q: 2 + 1 GPU would exceed its fair share of 2 (quota 4); work like this can use only the 2 GPUs of n2
    "#]]
    .assert_eq(&w.why("two"));
}

#[test]
fn a_gang_is_in_one_pool() {
    let mut w = world("q:4");
    w.run("submit q/one --pools h100; submit q/gang --pods 2 --pools h100,a100");
    assert_eq!(w.gpus(), "n1[gang gang] n2[one .]");
    w.run("submit q/both --pods 2 --pools h100,a100");
    assert_eq!(w.waiting(), "both", "one GPU is free");
    let mut w = world("q:4");
    w.run("submit q/large --pods 3 --pools h100,a100");
    assert_eq!(w.waiting(), "large", "three are free only in two pools");
}

#[test]
fn what_has_a_place_binds_the_rest_to_its_pool() {
    let mut w = world("q:4");
    w.run("submit q/job --pods 3 --min 1 --pools h100,a100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[. .] n2[job job]", "job"));
}

#[test]
fn room_is_made_in_the_first_pool_in_which_it_is_just() {
    let mut w = world("mine:2 guest:0");
    w.run("submit guest/x -g 2 --on node-pool=a100; submit guest/y -g 2 --on node-pool=h100");
    w.run("submit mine/job -g 2 --pools h100,a100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x x] n2[job job]", "y"));
    let mut w = world("mine:2 guest:0 fixed:2");
    w.run("submit guest/x -g 2 --on node-pool=a100; submit fixed/y -g 2 --on node-pool=h100");
    w.run("submit mine/job -g 2 --pools h100,a100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[job job] n2[y y]", "x"));
}

#[test]
fn free_room_in_a_later_pool_comes_before_stopping_somebody_in_the_first() {
    let mut w = world("mine:2 guest:0");
    w.run("submit guest/y -g 2 --on node-pool=h100; submit mine/job -g 2 --pools h100,a100");
    assert_eq!(w.gpus(), "n1[job job] n2[y y]");
}

#[test]
fn nodes_that_do_not_say_are_in_the_default_pool() {
    let mut w = world("q:4");
    w.run("add-node n3:1; submit q/one --pools default,a100; submit q/two --pools default,a100");
    assert_eq!(w.gpus(), "n1[two .] n2[. .] n3[one]");
}

#[test]
fn a_drained_workload_moves_to_the_next_pool_whole() {
    let mut w = world("q:4");
    w.run("submit q/gang --pods 2 --pools h100,a100; drain n2");
    assert_eq!(w.gpus(), "n1[gang gang] n2[. .]");
}
