//! Reasons to wait: which are given, alone and together; and the texts of all causes.

use expect_test::{Expect, expect};
use testkit::World;

fn check(nodes: &str, projects: &str, script: &str, name: &str, why: &Expect) {
    let mut w = World::new(nodes, projects);
    w.run(script);
    why.assert_eq(&w.why(name));
}

/// Checks the pods stopped by the last step of a script.
fn check_stopped(nodes: &str, projects: &str, script: &str, stopped: &Expect) {
    let mut w = World::new(nodes, projects);
    w.run(script);
    stopped.assert_eq(&w.stopped());
}

#[test]
fn no_nodes() {
    check(
        "",
        "a:1",
        "submit a/t",
        "t",
        &expect![[r#"
            P101 there are no nodes
            P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        "#]],
    );
}

#[test]
fn too_little_gpu_memory_on_any_gpu() {
    check(
        "n1:2",
        "a:2",
        "submit a/t --mem 40GiB",
        "t",
        &expect![[r#"
            P101 asks for 40GiB of GPU memory; no GPU of any node has that much
            P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        "#]],
    );
}

#[test]
fn more_cores_than_any_node() {
    check(
        "n1:2:8",
        "a:2",
        "submit a/t --cpu 9",
        "t",
        &expect![[r#"
            P101 asks for 9 cores and 0B of memory; no node with the GPUs has that much (largest: 8 cores, 1TiB)
            P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        "#]],
    );
}

#[test]
fn more_gpus_than_any_open_node() {
    let script = "label n2 !own; submit a/t -g 4";
    check(
        "n1:2 n2:4",
        "a:8",
        script,
        "t",
        &expect![[r#"
            P101 asks for 4 GPUs on one node; the largest node has 2
            P107 1 of 2 nodes has a taint that it does not tolerate
            P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        "#]],
    );
}

#[test]
fn several_devices_of_a_share() {
    let script = "submit a/x -g 0.7 --interactive; submit a/t --devices 2 -g 0.5";
    check(
        "n1:2",
        "a:2",
        script,
        "t",
        &expect![[r#"
            P103 needs 0.5 of 2 GPUs of one node each; at most 0.3 is free on so many
            P205 nothing is stopped for 1 GPU: only work of its own project could give way, and none of that has a priority below 50; a holds 0.7 GPU (quota 2, fair share 1.7)
        "#]],
    );
}

#[test]
fn gpu_memory_in_use() {
    let script = "submit a/x --mem 12GiB --interactive; submit a/t --mem 6GiB";
    check(
        "n1:1",
        "a:1",
        script,
        "t",
        &expect![[r#"
            P103 needs 0.375 of a GPU; the largest free share of a GPU is 0.25
            P203 nothing is taken from others for a: 0.75 + 0.375 GPU would exceed its fair share of 1 (quota 1)
        "#]],
    );
}

#[test]
fn memory_beside_gpus() {
    let script = "submit a/x --memory 1000GiB --interactive; submit a/t --memory 100GiB";
    check(
        "n1:2",
        "a:2",
        script,
        "t",
        &expect![[r#"
            P105 needs 100GiB of memory beside its GPUs; at most 24GiB are free on a node that has them
            P203 nothing is taken from others for a: 1000GiB + 100GiB of memory would exceed its fair share of 1TiB (quota unlimited)
        "#]],
    );
}

#[test]
fn cores_alone() {
    let script = "submit a/x -g 0 --cpu 6 --interactive; submit a/t -g 0 --cpu 4";
    check(
        "n1:0:8",
        "a:2",
        script,
        "t",
        &expect![[r#"
            P104 needs 4 CPU cores beside its GPUs; at most 2 are free on a node that has them
            P203 nothing is taken from others for a: 6 + 4 cores would exceed its fair share of 8 (quota unlimited)
        "#]],
    );
}

#[test]
fn every_node_ruled_out() {
    let script = "cordon n1; label n2 zone=b; label n3 zone=a !own; submit a/t --on zone=a";
    check(
        "n1:2 n2:2 n3:2",
        "a:2",
        script,
        "t",
        &expect![[r#"
            P107 1 of 3 nodes is cordoned, 1 lacks a label that it needs, 1 has a taint that it does not tolerate
            P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        "#]],
    );
}

#[test]
fn a_limit_and_no_room() {
    let script = "submit a/x -g 2 --interactive; submit a/t -g 2";
    check(
        "n1:2",
        "a:2:3",
        script,
        "t",
        &expect![[r#"
            P201 a may hold 3 GPUs and holds 2; 2 more would pass its limit
            P102 needs 2 GPUs; no GPU of 1 node is free
        "#]],
    );
}

#[test]
fn a_quota_that_cannot_be_kept_and_no_room() {
    let script = "submit b/x -g 2 --interactive; submit a/t -g 2 --interactive";
    check(
        "n1:2",
        "a:1 b:2",
        script,
        "t",
        &expect![[r#"
            P202 non-preemptible workloads stay within the quota: a has a quota of 1 GPU, its non-preemptible workloads hold 0, this one asks for 2
            P102 needs 2 GPUs; no GPU of 1 node is free
            P204 cannot start even on an empty cluster, so it does not count for the fair share of a
        "#]],
    );
}

#[test]
fn a_gang_and_a_share() {
    let script = "submit b/o -g 2; submit a/gang -g 2 --pods 2";
    check(
        "n1:2 n2:2",
        "a:2 b:2",
        script,
        "gang",
        &expect![[r#"
            P106 2 pods must start together; 1 fits at the moment
            P203 nothing is taken from others for a: 0 + 4 GPUs would exceed its fair share of 2 (quota 2)
        "#]],
    );
}

#[test]
fn a_place_that_is_being_freed() {
    let script = "submit a/x -g 2; slow; submit b/t -g 2";
    check(
        "n1:2",
        "a:0 b:2",
        script,
        "t",
        &expect![[r#"
        P301 has a place on n1, which is being freed by x
    "#]],
    );
}

#[test]
fn its_own_last_run() {
    let script = "submit a/t -g 2; slow; suspend t; resume t";
    check(
        "n1:2",
        "a:2",
        script,
        "t",
        &expect![[r#"
            P301 starts on n1 as soon as its last run has stopped
        "#]],
    );
}

#[test]
fn pods_that_will_not_come_back() {
    let script = "submit a/gang --pods 3; lose gang 1";
    check(
        "n1:1",
        "a:3",
        script,
        "gang",
        &expect![[r#"
        P106 3 pods must run together, and only 2 are there
    "#]],
    );
}

#[test]
fn reclaimed_within_quota() {
    let script = "submit a/x; submit a/y; submit b/t";
    check_stopped(
        "n1:2",
        "a:1 b:1",
        script,
        &expect![[r#"
            y E101 stopped so that b/t gets its quota: a held 2 GPUs (quota 1, fair share 1); b held 0 GPUs (quota 1, fair share 1) and asked for 1
        "#]],
    );
}

#[test]
fn reclaimed_within_fair_share() {
    let script = "submit a/x; submit a/y; submit b/t";
    check_stopped(
        "n1:2",
        "a:0 b:0",
        script,
        &expect![[r#"
            y E101 stopped so that b/t gets its fair share: a held 2 GPUs (quota 0, fair share 1); b held 0 GPUs (quota 0, fair share 1) and asked for 1
        "#]],
    );
}

#[test]
fn reclaimed_for_cores() {
    let mut w = World::new("n1:0:8", "");
    let cores = |cpu_millis| units::Resources { cpu_millis, ..units::Resources::UNLIMITED };
    for name in ["a", "b"] {
        let share = model::Share::new(cores(4000), units::Resources::UNLIMITED);
        w.queue(name, None, share);
    }
    w.run("submit a/x -g 0 --cpu 4; submit a/y -g 0 --cpu 4; submit b/t -g 0 --cpu 3");
    expect![[r#"
        y E101 stopped so that b/t gets its quota: a held 8 cores (quota 4, fair share 5); b held 0 cores (quota 4, fair share 3) and asked for 3
    "#]].assert_eq(&w.stopped());
}

#[test]
fn preempted() {
    let script = "submit a/x --priority 40; submit a/t --priority 60";
    check_stopped(
        "n1:1",
        "a:1",
        script,
        &expect![[r#"
        x E102 stopped for a/t of higher priority (60 over 40)
    "#]],
    );
}

/// A workload gets a part of its places, loses some in the same decision, and keeps the rest.
#[test]
fn for_a_workload_that_has_the_place_in_the_end() {
    let mut w = World::new("n1:4:16 n2:4:16 n3:2:8", "");
    w.run(
        "queue d:3; queue d/a:0; queue d/b:0; weight a 0; weight b 0; label n1 n=1; label n2 n=2",
    );
    w.run("submit a/w0 -g 3 --on n=1 --interactive; submit a/w1 -g 2 --pods 3 --min 1");
    w.run("submit b/w2 -g 2 --elastic --on n=2; submit b/w3 -g 3; quota b 2; quota a 3");
    expect![[r#"
        w3 E101 stopped so that a/w0 gets its fair share: b held 5 GPUs (quota 2, fair share 4); a held 4 GPUs (quota 3, fair share 6) and asked for 2
    "#]].assert_eq(&w.stopped());
}

#[test]
fn preempted_at_the_same_priority() {
    let script = "submit a/x --priority 100; submit a/t --interactive";
    check_stopped(
        "n1:1",
        "a:1",
        script,
        &expect![[r#"
        x E102 stopped for a/t of the same priority (100), which cannot be preempted and has a right to the quota
    "#]],
    );
}

#[test]
fn consolidated() {
    let script =
        "cordon n2; submit a/x; uncordon n2; cordon n1; submit a/y; uncordon n1; submit a/t -g 2";
    check_stopped(
        "n1:2 n2:2",
        "a:4",
        script,
        &expect![[r#"
        y E103 moved to make room for a/t
    "#]],
    );
}

#[test]
fn shrunk_and_grown() {
    let script = "submit a/e -g 2 --elastic; submit b/t -g 2";
    check_stopped(
        "n1:4",
        "a:2 b:2",
        script,
        &expect![[r#"
            e E104 shrunk from 4 to 2 GPUs for b/t
        "#]],
    );
    let script = "submit a/x -g 2 --interactive; submit a/e -g 2 --elastic; delete x";
    check_stopped(
        "n1:4",
        "a:4 b:2",
        script,
        &expect![[r#"
            e E104 grown from 2 to 4 GPUs that were idle
        "#]],
    );
}

#[test]
fn a_stale_gang() {
    let script = "submit a/gang --pods 2; lose gang 0; wait 60100";
    check_stopped(
        "n1:2",
        "a:2",
        script,
        &expect![[r#"
        gang E105 stopped: 1 of the 2 pods that must run together were left
    "#]],
    );
}

#[test]
fn the_patience_of_one_holds_up_no_other() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit a/x; submit a/z; submit b/patient --delay 90000; submit b/other");
    assert_eq!(w.waiting(), "z patient");
}

#[test]
fn a_search_cut_short_says_so() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.policy.trials_max = 1;
    w.run("submit a/x -g 2; submit a/y -g 2; submit a/z -g 1; submit a/v -g 2");
    expect![[r#"
        P102 needs 2 GPUs; no GPU of 2 nodes is free
        P203 nothing is taken from others for a: 4 + 2 GPUs would exceed its fair share of 4 (quota 4)
        P303 the search stopped after 1 trial placements and goes on next time
    "#]]
    .assert_eq(&w.why("v"));
}

#[test]
fn that_nodes_are_ruled_out_does_not_hide_what_the_others_lack() {
    let mut w = World::new("n1:4 n2:4", "a:8");
    w.run("topology net rack; label n1 rack=1; label n2 rack=1; cordon n1");
    let parts = "--required rack --set p -g 1 --pods 2 --min 1 --set q -g 0.5 --pods 2";
    w.run(&format!("submit a/x {parts}; submit a/y {parts}"));
    expect![[r#"
        P107 1 of 2 nodes is cordoned
        P106 3 pods must start together; 1 fits at the moment
        P203 nothing is taken from others for a: 3 + 2 GPUs would exceed its fair share of 4 (quota 8)
    "#]]
    .assert_eq(&w.why("y"));
}

#[test]
fn nodes_outside_the_pool_of_its_other_pods_are_ruled_out() {
    let mut w = World::new("n1:2 n2:1", "a:8");
    w.run("label n1 node-pool=p; submit a/g --pods 3 --min 2 --pools p,default");
    expect![[r#"
        P102 needs 1 GPU; no GPU of 1 node is free
        P107 1 of 2 nodes is in another pool
        P203 nothing is taken from others for a: 2 + 1 GPU would exceed its fair share of 2 (quota 8)
        P204 2 of 3 pods fit on an empty cluster, so 2 of its 3 GPUs count for the fair share of a
    "#]]
    .assert_eq(&w.why("g"));
}

#[test]
fn what_is_lent_to_elastic_work_is_no_share_of_its_project() {
    let mut w = World::new("n1:4 n2:3", "a:0 b:0");
    w.run("label n1 n=1; submit a/e -g 2 --elastic --on n=1; submit a/x; submit b/y -g 4 --on n=1");
    expect![[r#"
        P102 needs 4 GPUs; no GPU of 1 node is free
        P107 1 of 2 nodes lacks a label that it needs
        P203 nothing is taken from others for b: 0 + 4 GPUs would exceed its fair share of 2 (quota 0); a and b share the 4 GPUs of n1: work like this can use no others
    "#]]
    .assert_eq(&w.why("y"));
}

/// With a limit of 0 it could not start, but it has, and its used resources count.
#[test]
fn what_runs_is_demand_whatever_its_limit_is_now() {
    let mut w = World::new("n1:6", "a:0 b:0");
    w.run("submit b/x -g 4; submit a/e -g 2 --pods 3 --min 1; limit a 0");
    expect![[r#"
        P201 a may hold 0 GPUs and holds 2; 2 more would pass its limit
        P102 needs 2 GPUs; no GPU of 1 node is free
    "#]]
    .assert_eq(&w.why("e"));
}
