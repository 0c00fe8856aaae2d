//! Changes that would let a workload start: each kind, the smallest of its kind, and no change
//! without effect. `properties.rs` follows suggestions in random histories.

use expect_test::{Expect, expect};
use model::{Share, Weights};
use testkit::World;
use units::Resources;

/// Checks the advice for `name` after a script, and that each suggestion helps.
fn check(nodes: &str, projects: &str, script: &str, name: &str, advice: &Expect) {
    let mut w = World::new(nodes, projects);
    w.run(script);
    check_in(&w, name, advice);
}

fn check_in(w: &World, name: &str, advice: &Expect) {
    advice.assert_eq(&w.advice(name));
    for advice in w.diagnosis(name).expect("it waits").advice {
        let mut then = w.clone();
        then.follow(name, &advice.change);
        assert!(then.has_place(name), "{}", advice.text(w.now));
    }
}

#[test]
fn fewer_gpus() {
    let script = "submit a/x -g 1 --interactive; submit a/y -g 4";
    check(
        "n1:4",
        "a:4",
        script,
        "y",
        &expect![[r#"
        ask for at most 3 GPUs
        let it be elastic: it starts smaller and grows later
        add a node like n1
        that a/x ends
    "#]],
    );
}

#[test]
fn fewer_gpus_stay_within_the_limit() {
    check(
        "n1:8",
        "a:4:5",
        "submit a/x -g 2; submit a/y -g 6",
        "y",
        &expect![[r#"
        ask for at most 3 GPUs
        let it be elastic: it starts smaller and grows later
        raise the limit of a from 5 to 8 GPUs
    "#]],
    );
}

#[test]
fn fewer_gpus_of_which_each_gives_a_part() {
    let script = "submit a/x -g 0.5 --devices 9";
    check(
        "n1:8",
        "a:8",
        script,
        "x",
        &expect![[r#"
        ask for at most 8 GPUs
    "#]],
    );
}

#[test]
fn fewer_pods() {
    let script = "submit a/o -g 2 --interactive; submit a/gang -g 2 --pods 3";
    check(
        "n1:2 n2:2 n3:2",
        "a:6",
        script,
        "gang",
        &expect![[r#"
            ask for at most 1 GPU
            ask for at most 2 pods at a time
            add a node like n1
            that a/o ends
        "#]],
    );
}

#[test]
fn a_smaller_share() {
    let script = "submit a/x -g 0.65 --interactive; submit a/y -g 0.5";
    check(
        "n1:1",
        "a:1",
        script,
        "y",
        &expect![[r#"
        ask for at most 0.35 of a GPU
        add a node like n1
        that a/x ends
    "#]],
    );
}

#[test]
fn less_gpu_memory() {
    let script = "submit a/x --mem 10GiB --interactive; submit a/y --mem 8GiB";
    check(
        "n1:1",
        "a:1",
        script,
        "y",
        &expect![[r#"
        ask for at most 6GiB of GPU memory
        add a node like n1
        that a/x ends
    "#]],
    );
}

#[test]
fn fewer_cores() {
    let script = "submit a/x -g 1 --cpu 3 --interactive; submit a/y -g 1 --cpu 6";
    check(
        "n1:2:8",
        "a:2",
        script,
        "y",
        &expect![[r#"
        ask for at most 5 cores
        add a node like n1
        that a/x ends
    "#]],
    );
}

#[test]
fn less_memory() {
    let script = "submit a/x --memory 1000GiB --interactive; submit a/y --memory 32GiB";
    check(
        "n1:2",
        "a:2",
        script,
        "y",
        &expect![[r#"
        ask for at most 24GiB of memory
        add a node like n1
        that a/x ends
    "#]],
    );
}

#[test]
fn preemptible_in_place_of_more_quota() {
    let script = "submit a/i1 -g 2 --interactive; submit a/i2 -g 2 --interactive";
    check(
        "n1:8",
        "a:3",
        script,
        "i2",
        &expect![[r#"
        ask for at most 1 GPU
        let it be elastic: it starts smaller and grows later
        let it be preemptible
        raise the quota of a from 3 to 4 GPUs
        that a/i1 ends
    "#]],
    );
}

#[test]
fn the_lowest_priority_that_is_enough() {
    let script = "submit a/x --priority 70; submit a/y --priority 90; submit a/z --priority 60";
    check(
        "n1:2",
        "a:2",
        script,
        "z",
        &expect![[r#"
            raise its priority to medium (stops or moves 1 other)
            add a node like n1
            that a/y ends
        "#]],
    );
}

#[test]
fn priority_also_counts_in_the_line() {
    let script = "cordon n1; submit a/x -g 2; submit a/y -g 2; uncordon n1; submit b/o -g 1";
    check(
        "n1:2",
        "a:2 b:0",
        script,
        "y",
        &expect![[r#"
            raise its priority to medium-low (stops or moves 1 other)
            that a/x ends
        "#]],
    );
}

#[test]
fn one_label_of_two() {
    let script = "label n1 zone=a kind=slow; submit a/t --on zone=a --on kind=fast";
    check(
        "n1:2",
        "a:2",
        script,
        "t",
        &expect![[r#"
        do not select the label kind
    "#]],
    );
}

#[test]
fn a_taint() {
    check(
        "n1:2",
        "a:2",
        "label n1 !own; submit a/t",
        "t",
        &expect![[r#"
            tolerate the taint own
            remove the taint own from n1
        "#]],
    );
}

#[test]
fn the_first_of_two_guaranteed_run_times() {
    let script = "min-runtime a 60000; submit a/x; wait 20000; submit a/y; submit b/z";
    check(
        "n1:2",
        "a:0 b:2",
        script,
        "z",
        &expect![[r#"
            wait 40s, if nothing else changes (stops or moves 1 other)
            add a node like n1
            that a/y ends
        "#]],
    );
}

#[test]
fn both_guaranteed_run_times() {
    let script = "min-runtime a 60000; submit a/x; wait 20000; submit a/y; submit b/z -g 2";
    check(
        "n1:2",
        "a:0 b:2",
        script,
        "z",
        &expect![[r#"
            wait 1m, if nothing else changes (stops or moves 2 others)
            add a node like n1
        "#]],
    );
}

#[test]
fn its_own_delay() {
    let script = "submit a/x -g 2; submit b/y -g 2 --delay 90000";
    check(
        "n1:2",
        "a:0 b:2",
        script,
        "y",
        &expect![[r#"
            wait 1m 30s, if nothing else changes (stops or moves 1 other)
            add a node like n1
            that a/x ends
        "#]],
    );
}

#[test]
fn the_smallest_holder_that_is_enough() {
    let script = "submit a/x -g 4 --interactive; submit a/y -g 2 --interactive; submit a/z -g 1 --interactive; submit a/t -g 2 --interactive";
    check(
        "n1:7",
        "a:8",
        script,
        "t",
        &expect![[r#"
        that a/y ends
    "#]],
    );
}

#[test]
fn a_quota_that_is_just_enough() {
    let script = "submit a/x -g 4; submit a/y -g 4; submit b/z -g 4";
    check(
        "n1:4 n2:4",
        "a:4 b:0",
        script,
        "z",
        &expect![[r#"
            ask for at most 2 GPUs (stops or moves 1 other)
            let it be elastic: it starts smaller and grows later (stops or moves 1 other)
            raise the quota of b from 0 to 4 GPUs (stops or moves 1 other)
            add a node like n1
            that a/y ends
        "#]],
    );
}

#[test]
fn a_limit_of_a_department() {
    let mut w = World::new("n1:8", "");
    let gpus = |gpu_millis| Resources { gpu_millis, ..Resources::UNLIMITED };
    let share = |quota, limit| Share {
        over_quota_weight: Weights::all(1),
        ..Share::new(gpus(quota), gpus(limit))
    };
    let above = w.queue("lab", None, share(8000, 3000));
    w.queue("a", Some(above), share(4000, 2000));
    w.run("submit a/x -g 2; submit a/y -g 2");
    check_in(
        &w,
        "y",
        &expect![[r#"
            raise its priority to medium-low (stops or moves 1 other)
            raise the limit of a from 2 to 4 GPUs and of lab from 3 to 4 GPUs
            that a/x ends
        "#]],
    );
}

#[test]
fn a_quota_of_a_department() {
    let mut w = World::new("n1:8", "");
    let gpus = |gpu_millis| Resources { gpu_millis, ..Resources::UNLIMITED };
    let share = |quota| Share::new(gpus(quota), Resources::UNLIMITED);
    let (lab, shop) = (w.queue("lab", None, share(2000)), w.queue("shop", None, share(2000)));
    w.queue("a", Some(lab), share(1000));
    w.queue("b", Some(shop), share(2000));
    w.run("submit a/x -g 1 --interactive; submit a/y -g 2 --interactive");
    check_in(
        &w,
        "y",
        &expect![[r#"
        let it be preemptible
        raise the quota of a from 1 to 3 GPUs and of lab from 2 to 3 GPUs
    "#]],
    );
}

#[test]
fn a_quota_that_is_enough_is_not_raised_with_another() {
    let mut w = World::new("n1:8", "");
    let quota = Resources { gpu_millis: 8000, memory_bytes: 2 << 30, ..Resources::UNLIMITED };
    w.queue("a", None, Share::new(quota, Resources::UNLIMITED));
    w.run("submit a/w -g 1 --memory 3GiB --interactive");
    check_in(
        &w,
        "w",
        &expect![[r#"
        ask for at most 2GiB of memory
        let it be preemptible
    "#]],
    );
}

#[test]
fn a_closed_node() {
    check(
        "n1:2 n2:2",
        "a:4",
        "cordon n2; submit a/x -g 2; submit a/y -g 2",
        "y",
        &expect![[r#"
            raise its priority to medium-low (stops or moves 1 other)
            open the cordoned node n2
            add a node like n1
            that a/x ends
        "#]],
    );
}

#[test]
fn as_many_nodes_as_it_takes() {
    let script = "submit b/o -g 2 --interactive; submit a/gang -g 2 --pods 4";
    check(
        "n1:2 n2:2",
        "a:8 b:2",
        script,
        "gang",
        &expect![[r#"
            ask for at most 1 pod at a time
            add 3 nodes like n1
        "#]],
    );
}

#[test]
fn what_nothing_helps() {
    let mut w = World::new("n1:1", "a:2");
    w.run("submit a/gang -g 1 --pods 2; lose gang 0");
    expect![[r#"
        Why it waits:
          P106 2 pods must run together, and only 1 is there
    "#]]
    .assert_eq(&w.diagnosed("gang"));
}

#[test]
fn a_back_off_ends_by_itself() {
    let mut w = World::new("n1:2", "a:2");
    w.run("cordon n1; submit a/t");
    let (id, later) = (w.id("t"), w.now.plus_ms(30_000));
    w.cluster.set_not_before(id, later);
    w.run("uncordon n1");
    expect![[r#"
        Why it waits:
          P302 it failed; the next try waits for the end of the back-off
        What would let it start (each tried out):
          wait 30s, if nothing else changes
    "#]]
    .assert_eq(&w.diagnosed("t"));
}

#[test]
fn an_elastic_one_waits_for_a_single_gpu() {
    let script = "submit a/x -g 2 --interactive; submit a/e -g 4 --elastic";
    check(
        "n1:2",
        "a:4",
        script,
        "e",
        &expect![[r#"
        that a/x ends
    "#]],
    );
}
