//! The diagnosis of a pending workload: nodes, holders, searches.

use expect_test::expect;
use testkit::World;

#[test]
fn one_who_does_not_wait_has_no_diagnosis() {
    let mut w = World::new("n1:2", "a:1");
    w.run("submit a/t");
    assert_eq!(w.diagnosis("t"), None);
}

#[test]
fn a_full_cluster_is_told_by_class_and_holder() {
    let mut w = World::new("n1:4 n2:4 n3:2", "a:6 b:2");
    w.run("submit a/x -g 4; submit a/y -g 2; submit b/z -g 3 --interactive; submit b/v -g 2");
    expect![[r#"
        Why it waits:
          P202 non-preemptible workloads stay within the quota: b has a quota of 2 GPUs, its non-preemptible workloads hold 0, this one asks for 3
          P102 needs 3 GPUs on one node; 2 are free on 3 nodes, at most 2 on one
          P204 cannot start even on an empty cluster, so it does not count for the fair share of b
        Where it does not fit:
          2 nodes like n1 (4 GPUs of 16GiB, 100 cores, 1TiB): all have too few free GPUs (needs 3, at most 2 on n2)
          1 node, n3 (2 GPUs of 16GiB, 100 cores, 1TiB): has too few GPUs, even when empty (needs 3, has 2)
        Who holds what it needs:
          a holds 6 GPUs (quota 6, fair share 6)
          b holds 2 GPUs (quota 2, fair share 2)
          a/x holds 4 GPUs: nothing is taken from other projects for this one
          a/y holds 2 GPUs: nothing is taken from other projects for this one
          b/v holds 2 GPUs: may be taken from
          b asks for 5 GPUs, of which 3 do not count for its fair share: that cannot start even on an empty cluster
        Why nothing was moved or taken for it:
          P401 nothing is moved: a limit or quota refuses it (P202)
          P402 nothing is taken from other projects: a limit or quota refuses it (P202)
          P403 nothing is taken inside its project: a limit or quota refuses it (P202)
        What would let it start (each tried out):
          ask for at most 2 GPUs
          let it be elastic: it starts smaller and grows later
          let it be preemptible (stops or moves 1 other)
            runai workload update z -p b --preemptibility preemptible
          raise the quota of b from 2 to 3 GPUs (stops or moves 1 other)
            elastane project update b --gpu-quota 3
    "#]].assert_eq(&w.diagnosed("z"));
}

#[test]
fn over_fair_share() {
    let mut w = World::new("n1:2 n2:2", "a:4 b:0");
    w.run("submit a/x -g 2; submit a/y -g 1; submit b/z -g 2");
    expect![[r#"
        Why it waits:
          P102 needs 2 GPUs on one node; 1 is free on 2 nodes, at most 1 on one
          P203 nothing is taken from others for b: 0 + 2 GPUs would exceed its fair share of 1 (quota 0)
        Where it does not fit:
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB): all have too few free GPUs (needs 2, at most 1 on n2)
        Who holds what it needs:
          a holds 3 GPUs (quota 4, fair share 3)
          a/x holds 2 GPUs: nothing is taken from other projects for this one
          a/y holds 1 GPU: nothing is taken from other projects for this one
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 2 GPUs and only 1 is free on all nodes together
          P402 nothing is taken from other projects: with 2 more it would hold more than its fair share; b holds 0 GPUs (quota 0, fair share 1)
          P403 nothing is taken inside its project: nothing else of its project is running
        What would let it start (each tried out):
          ask for at most 1 GPU
          let it be elastic: it starts smaller and grows later
          raise the quota of b from 0 to 3 GPUs (stops or moves 1 other)
            elastane project update b --gpu-quota 3
          add a node like n1
          that a/x ends
            runai delete x -p a
    "#]].assert_eq(&w.diagnosed("z"));
}

#[test]
fn a_gang_says_how_many_pods_fit() {
    let mut w = World::new("n1:2 n2:2 n3:1", "a:4 b:4");
    w.run("submit b/o -g 2; submit a/gang -g 2 --pods 2");
    expect![[r#"
        Why it waits:
          P106 2 pods must start together; 1 fits at the moment
          P203 nothing is taken from others for a: 0 + 4 GPUs would exceed its claim of 2 (quota 4); work larger than a claim is served by turn; a and b share the 4 GPUs of n1 and 1 more node: work like this can use no others
        Where it does not fit:
          1 of 2 pods that are due find a place
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB): 1 has too few free GPUs (needs 2, at most 0 on n1); 1 has room for a pod
          1 node, n3 (1 GPU of 16GiB, 100 cores, 1TiB): has too few GPUs, even when empty (needs 2, has 1)
        Who holds what it needs:
          b holds 2 GPUs (quota 4, fair share 2)
          b/o holds 2 GPUs: nothing is taken from other projects for this one
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 4 GPUs and only 3 are free on all nodes together
          P402 nothing is taken from other projects: with 4 more it would hold more than its claim; a holds 0 GPUs (quota 4, claim 2)
          P403 nothing is taken inside its project: nothing else of its project is running
        What would let it start (each tried out):
          ask for at most 1 GPU
          ask for at most 1 pod at a time
          add a node like n1
          that b/o ends
            runai delete o -p b
    "#]].assert_eq(&w.diagnosed("gang"));
}

#[test]
fn everything_that_can_rule_a_node_out() {
    let mut w = World::new("n1:2 n2:2 n3:2 n4:2:1 n5:1 n6:2", "a:8");
    w.run("label n1 zone=a; label n2 zone=b; label n3 zone=a !own; label n4 zone=a; label n5 zone=a; label n6 zone=a; cordon n6");
    w.run("submit a/o -g 2 --on zone=a --interactive; submit a/t -g 2 --cpu 2 --on zone=a");
    expect![[r#"
        Why it waits:
          P104 needs 2 CPU cores beside its GPUs; at most 1 are free on a node that has them
          P107 1 of 6 nodes is cordoned, 1 lacks a label that it needs, 1 has a taint that it does not tolerate
        Where it does not fit:
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB, zone=a): 1 is cordoned; 1 has too few free GPUs (needs 2, at most 0 on n1)
          1 node, n2 (2 GPUs of 16GiB, 100 cores, 1TiB, zone=b): lacks a label that it needs
          1 node, n3 (2 GPUs of 16GiB, 100 cores, 1TiB, zone=a): has the taint own, which it does not tolerate
          1 node, n4 (2 GPUs of 16GiB, 1 core, 1TiB, zone=a): has too few cores, even when empty (needs 2, has 1)
          1 node, n5 (1 GPU of 16GiB, 100 cores, 1TiB, zone=a): has too few GPUs, even when empty (needs 2, has 1)
        Who holds what it needs:
          a holds 2 GPUs (quota 8, fair share 4)
          a/o holds 2 GPUs: is not preemptible
        Why nothing was moved or taken for it:
          P401 nothing is moved: what is in the way has no other place, or may not be moved
          P402 nothing is taken from other projects: no other project has anything running
          P403 nothing is taken inside its project: no workload is eligible: 1 not preemptible
        What would let it start (each tried out):
          ask for at most 1 GPU
          let it be elastic: it starts smaller and grows later
          ask for at most 1 core
          do not select the label zone
          tolerate the taint own
          remove the taint own from n3
            elastane node taint n3 own:NoSchedule-
          open the cordoned node n6
            elastane node uncordon n6
          add a node like n1
          that a/o ends
            runai delete o -p a
    "#]].assert_eq(&w.diagnosed("t"));
}

#[test]
fn guaranteed_run_time_is_named() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("min-runtime a 60000; submit a/x -g 2; submit b/y");
    expect![[r#"
        Why it waits:
          P102 needs 1 GPU; no GPU of 1 node is free
          P205 nothing is stopped for 1 GPU: other projects hold 2 GPUs beyond their share, in guaranteed run time
        Where it does not fit:
          1 node, n1 (2 GPUs of 16GiB, 100 cores, 1TiB): has too few free GPUs (needs 1, has 0)
        Who holds what it needs:
          a holds 2 GPUs (quota 0, fair share 1)
          a/x holds 2 GPUs: its guaranteed run time ends in 1m
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 1 GPU and none is free on any node
          P402 nothing is taken from other projects: no workload is eligible: 1 in guaranteed run time, the first for 1m more
          P403 nothing is taken inside its project: nothing else of its project is running
        What would let it start (each tried out):
          wait 1m, if nothing else changes (stops or moves 1 other)
          add a node like n1
          that a/x ends
            runai delete x -p a
    "#]].assert_eq(&w.diagnosed("y"));
}

#[test]
fn patience_is_named() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit a/x -g 2; submit b/y --delay 90000");
    expect![[r#"
        Why it waits:
          P102 needs 1 GPU; no GPU of 1 node is free
          P205 others are stopped for it only after its preemption delay of 90 s
        Where it does not fit:
          1 node, n1 (2 GPUs of 16GiB, 100 cores, 1TiB): has too few free GPUs (needs 1, has 0)
        Who holds what it needs:
          a holds 2 GPUs (quota 0, fair share 1)
          a/x holds 2 GPUs: may be taken from
        Why nothing was moved or taken for it:
          P401 nothing is moved: its preemption delay ends in 1m 30s
          P402 nothing is taken from other projects: its preemption delay ends in 1m 30s
          P403 nothing is taken inside its project: its preemption delay ends in 1m 30s
        What would let it start (each tried out):
          wait 1m 30s, if nothing else changes (stops or moves 1 other)
          add a node like n1
          that a/x ends
            runai delete x -p a
    "#]]
    .assert_eq(&w.diagnosed("y"));
}

#[test]
fn moves_have_a_bound() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.policy.consolidation_moves_max = 0;
    w.run("cordon n2; submit a/x; uncordon n2; cordon n1; submit a/y; uncordon n1");
    w.run("submit a/big -g 2");
    expect![[r#"
        Why it waits:
          P102 needs 2 GPUs on one node; 2 are free on 2 nodes, at most 1 on one
          P205 nothing is stopped for 2 GPUs: only work of its own project could give way, and none of that has a priority below 50; a holds 2 GPUs (quota 4, fair share 4)
        Where it does not fit:
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB): all have too few free GPUs (needs 2, at most 1 on n1)
        Who holds what it needs:
          a holds 2 GPUs (quota 4, fair share 4)
          a/x holds 1 GPU: same project, and not less important (priority 50)
          a/y holds 1 GPU: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: 1 workloads would have to move and at most 0 are moved for one
          P402 nothing is taken from other projects: no other project has anything running
          P403 nothing is taken inside its project: no workload is eligible: 2 not less important
        What would let it start (each tried out):
          ask for at most 1 GPU
          let it be elastic: it starts smaller and grows later
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update big -p a --priority medium-low
          add a node like n1
          that a/x ends
            runai delete x -p a
    "#]].assert_eq(&w.diagnosed("big"));
}

#[test]
fn scattered_gpus_nobody_may_move() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/x -g 2 --interactive; submit a/y --interactive; submit a/big -g 2");
    expect![[r#"
        Why it waits:
          P102 needs 2 GPUs on one node; 1 is free on 2 nodes, at most 1 on one
          P203 nothing is taken from others for a: 3 + 2 GPUs would exceed its fair share of 4 (quota 4)
        Where it does not fit:
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB): all have too few free GPUs (needs 2, at most 1 on n2)
        Who holds what it needs:
          a holds 3 GPUs (quota 4, fair share 4)
          a/x holds 2 GPUs: is not preemptible
          a/y holds 1 GPU: is not preemptible
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 2 GPUs and only 1 is free on all nodes together
          P402 nothing is taken from other projects: with 2 more it would hold more than its fair share; a holds 3 GPUs (quota 4, fair share 4)
          P403 nothing is taken inside its project: no workload is eligible: 2 not preemptible
        What would let it start (each tried out):
          ask for at most 1 GPU
          let it be elastic: it starts smaller and grows later
          add a node like n1
          that a/x ends
            runai delete x -p a
    "#]].assert_eq(&w.diagnosed("big"));
}

#[test]
fn non_preemptible_over_quota() {
    let mut w = World::new("n1:4", "a:1");
    w.run("submit a/i1 --interactive; submit a/i2 --interactive");
    expect![[r#"
        Why it waits:
          P202 non-preemptible workloads stay within the quota: a has a quota of 1 GPU, its non-preemptible workloads hold 1, this one asks for 1
        Where it would fit:
          1 node, n1 (4 GPUs of 16GiB, 100 cores, 1TiB): has room
        Who holds what it needs:
          a holds 1 GPU (quota 1, fair share 2)
          a/i1 holds 1 GPU: is not preemptible
        Why nothing was moved or taken for it:
          P401 nothing is moved: a limit or quota refuses it (P202)
          P402 nothing is taken from other projects: a limit or quota refuses it (P202)
          P403 nothing is taken inside its project: a limit or quota refuses it (P202)
        What would let it start (each tried out):
          let it be preemptible
            runai workload update i2 -p a --preemptibility preemptible
          raise the quota of a from 1 to 2 GPUs
            elastane project update a --gpu-quota 2
          that a/i1 ends
            runai delete i1 -p a
    "#]].assert_eq(&w.diagnosed("i2"));
}

#[test]
fn a_limit() {
    let mut w = World::new("n1:4", "a:1:2");
    w.run("submit a/t1; submit a/t2; submit a/t3");
    expect![[r#"
        Why it waits:
          P201 a may hold 2 GPUs and holds 2; 1 more would pass its limit
        Where it would fit:
          1 node, n1 (4 GPUs of 16GiB, 100 cores, 1TiB): has room
        Who holds what it needs:
          a holds 2 GPUs (quota 1, fair share 2)
          a/t1 holds 1 GPU: same project, and not less important (priority 50)
          a/t2 holds 1 GPU: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: a limit or quota refuses it (P201)
          P402 nothing is taken from other projects: a limit or quota refuses it (P201)
          P403 nothing is taken inside its project: a limit or quota refuses it (P201)
        What would let it start (each tried out):
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update t3 -p a --priority medium-low
          raise the limit of a from 2 to 3 GPUs
            elastane project update a --gpu-limit 3
          that a/t2 ends
            runai delete t2 -p a
    "#]]
    .assert_eq(&w.diagnosed("t3"));
}

#[test]
fn too_large() {
    let mut w = World::new("n1:2 n2:4", "a:8");
    w.run("submit a/big -g 8");
    expect![[r#"
        Why it waits:
          P101 asks for 8 GPUs on one node; the largest node has 4
          P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
        Where it does not fit:
          1 node, n1 (2 GPUs of 16GiB, 100 cores, 1TiB): has too few GPUs, even when empty (needs 8, has 2)
          1 node, n2 (4 GPUs of 16GiB, 100 cores, 1TiB): has too few GPUs, even when empty (needs 8, has 4)
        Who holds what it needs:
          a asks for 8 GPUs, none of which counts for its fair share: that cannot start even on an empty cluster
        Why nothing was moved or taken for it:
          P401 nothing is moved: it could not start if everything were free (P204)
          P402 nothing is taken from other projects: it could not start if everything were free (P204)
          P403 nothing is taken inside its project: it could not start if everything were free (P204)
        What would let it start (each tried out):
          ask for at most 4 GPUs
          let it be elastic: it starts smaller and grows later
    "#]].assert_eq(&w.diagnosed("big"));
}

#[test]
fn a_share() {
    let mut w = World::new("n1:1", "a:1");
    w.run("submit a/f1 -g 0.6; submit a/f2 -g 0.5");
    expect![[r#"
        Why it waits:
          P103 needs 0.5 of a GPU; the largest free share of a GPU is 0.4
          P203 nothing is taken from others for a: 0.6 + 0.5 GPU would exceed its fair share of 1 (quota 1)
        Where it does not fit:
          1 node, n1 (1 GPU of 16GiB, 100 cores, 1TiB): has too little of a GPU free (needs 0.5, has 0.4)
        Who holds what it needs:
          a holds 0.6 GPU (quota 1, fair share 1)
          a/f1 holds 0.6 GPU: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 0.5 GPU and only 0.4 are free on all nodes together
          P402 nothing is taken from other projects: with 0.5 more it would hold more than its fair share; a holds 0.6 GPU (quota 1, fair share 1)
          P403 nothing is taken inside its project: no workload is eligible: 1 not less important
        What would let it start (each tried out):
          ask for at most 0.4 of a GPU
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update f2 -p a --priority medium-low
          add a node like n1
          that a/f1 ends
            runai delete f1 -p a
    "#]].assert_eq(&w.diagnosed("f2"));
}

#[test]
fn cpu() {
    let mut w = World::new("n1:2:4", "a:2");
    w.run("submit a/t1 --cpu 3; submit a/t2 --cpu 2");
    expect![[r#"
        Why it waits:
          P104 needs 2 CPU cores beside its GPUs; at most 1 are free on a node that has them
          P203 nothing is taken from others for a: 3 + 2 cores would exceed its fair share of 4 (quota unlimited)
        Where it does not fit:
          1 node, n1 (2 GPUs of 16GiB, 4 cores, 1TiB): has too few free cores (needs 2, has 1)
        Who holds what it needs:
          a holds 3 cores (quota unlimited, fair share 4)
          a/t1 holds 3 cores: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 2 cores and only 1 are free on all nodes together
          P402 nothing is taken from other projects: with 2 more it would hold more than its fair share; a holds 3 cores (quota unlimited, fair share 4)
          P403 nothing is taken inside its project: no workload is eligible: 1 not less important
        What would let it start (each tried out):
          ask for at most 1 core
          raise its priority to medium-low (stops or moves 1 other)
            runai workload update t2 -p a --priority medium-low
          add a node like n1
          that a/t1 ends
            runai delete t1 -p a
    "#]].assert_eq(&w.diagnosed("t2"));
}

/// The lines of a diagnosis about the search for moves and evictions.
fn searches(w: &World, name: &str) -> String {
    let diagnosed = w.diagnosed(name);
    let lines = diagnosed.lines().filter(|line| line.contains("P401"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_in_the_way_and_has_no_other_place_is_named_so() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("label n1 n=1; label n2 n=2; submit a/x --on n=1; submit a/y --on n=2; submit a/t -g 2");
    expect!["  P401 nothing is moved: what is in the way has no other place, or may not be moved"]
        .assert_eq(&searches(&w, "t"));
}

#[test]
fn more_moves_than_are_made_for_one_are_named_with_their_number() {
    let mut w = World::new("n1:4", "a:6");
    w.policy.consolidation_moves_max = 1;
    w.run("submit a/x; submit a/y; add-node n2:2; submit a/t -g 4");
    expect![
        "  P401 nothing is moved: 2 workloads would have to move and at most 1 are moved for one"
    ]
    .assert_eq(&searches(&w, "t"));
}

#[test]
fn a_gang_above_the_share_of_its_project_gives_way_only_as_a_whole() {
    let mut w = World::new("n1:9", "a:3 b:0");
    w.run("submit a/gang --pods 7; submit b/x -g 2; submit b/y");
    expect![[r#"
        a holds 7 GPUs (quota 3, fair share 6)
        b holds 2 GPUs (quota 0, fair share 3)
        a/gang holds 7 GPUs: gives way only as a whole, which would leave its project less than its quota
        b/x holds 2 GPUs: same project, and not less important (priority 50)
    "#]]
    .assert_eq(&holders(&w, "y"));
    w.run("wait 7200000");
    expect![[r#"
        a holds 7 GPUs (quota 3, fair share 6)
        b holds 2 GPUs (quota 0, fair share 3)
        a/gang holds 7 GPUs: gives way only as a whole, which would leave its project less than its quota
        b/x holds 2 GPUs: same project, and not less important (priority 50)
    "#]]
    .assert_eq(&holders(&w, "y"));
}

/// The lines of a diagnosis about workloads that hold the requested resources.
fn holders(w: &World, name: &str) -> String {
    let all = w.diagnosed(name);
    let lines = all.lines().filter(|line| line.starts_with("  ") && line.contains(" holds "));
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn workloads_that_are_looked_at_before_it_are_told_in_the_order_of_a_decision() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/runs -g 2 --interactive; submit a/older -g 2; submit a/never -g 3");
    w.run("submit a/me -g 1; submit a/younger -g 1; submit a/urgent -g 2 --priority 90");
    let text = w.diagnosed("me");
    let (_, ahead) = text.split_once("Who is looked at before it in its project:\n").unwrap();
    let ahead: Vec<_> = ahead.lines().map(str::trim).take(3).collect();
    let [urgent, older, next] = ahead[..] else { panic!("{text}") };
    assert_eq!(urgent, "a/urgent asks for 2 GPUs: more important (priority 90)");
    assert_eq!(older, "a/older asks for 2 GPUs: older");
    assert!(
        next.starts_with("Why nothing"),
        "neither one that never starts nor younger ones: {text}"
    );
}

#[test]
fn at_most_five_that_are_looked_at_before_it_are_named() {
    let mut w = World::new("n1:1", "a:1");
    let all: Vec<_> = (0..8).map(|at| format!("submit a/w{at} -g 1")).collect();
    w.run(&all.join("; "));
    let text = w.diagnosed("w7");
    let (_, ahead) = text.split_once("Who is looked at before it in its project:\n").unwrap();
    let ahead: Vec<_> = ahead.lines().map(str::trim).take(6).collect();
    assert_eq!(ahead[0], "a/w1 asks for 1 GPU: older");
    assert_eq!(ahead[4..], ["a/w5 asks for 1 GPU: older", "and 1 more"]);
}

#[test]
fn a_workload_of_which_a_part_runs_is_told_what_helps_its_other_pods() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/part -g 1 --pods 3 --min 1");
    let text = w.diagnosed("part");
    assert!(text.contains("What would let its other pods start (each tried out):"), "{text}");
}
