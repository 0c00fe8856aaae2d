//! Node pools with queues of their own.

use expect_test::expect;
use testkit::World;

/// Two nodes of two GPUs: `n1` in pool `a100`, `n2` in pool `default`; quotas are per pool.
pub(crate) fn world(quotas: &str) -> World {
    let mut w = World::new("n1:2 n2:2", "a:0 b:0");
    w.run(&format!("label n1 node-pool=a100; {quotas}"));
    w
}

#[test]
fn a_quota_holds_in_its_pool_only() {
    let mut w = world("quota a@a100 2; quota a 0");
    w.run("submit a/one -g 2 --interactive --pools default");
    assert_eq!(w.waiting(), "one");
    w.run("submit a/two -g 2 --interactive --pools a100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[two two] n2[. .]", "one"));
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a in pool default has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 2
        P107 1 of 2 nodes is in another pool
        P204 cannot start even on an empty cluster, so it does not count for the fair share of a in pool default
    "#]].assert_eq(&w.why("one"));
}

#[test]
fn a_limit_holds_in_its_pool_only() {
    let mut w = world("limit a@a100 1");
    w.run("submit a/one --pods 4 --min 1 --pools a100; submit a/two --pods 2 --pools default");
    assert_eq!(w.gpus(), "n1[one .] n2[two two]");
    expect![[r#"
        P201 a in pool a100 may hold 1 GPU and holds 1; 1 more would pass its limit
        P107 1 of 2 nodes is in another pool
        P204 2 of 4 pods fit on an empty cluster, so 2 of its 4 GPUs count for the fair share of a in pool a100
    "#]]
    .assert_eq(&w.why("one"));
}

#[test]
fn who_may_not_have_more_in_the_first_pool_goes_to_the_next() {
    let mut w = world("limit a@a100 1");
    w.run("submit a/one --pools a100,default; submit a/two --pools a100,default");
    assert_eq!(w.gpus(), "n1[one .] n2[two .]");
}

#[test]
fn who_names_no_pool_may_be_in_any() {
    let mut w = world("quota a@a100 2; quota a 1");
    w.run("submit a/x --interactive; submit a/y --interactive; submit a/z -g 2 --interactive");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[y .] n2[x .]", "z"));
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a in pool default has a quota of 1 GPU, its non-preemptible workloads hold 1, this one asks for 2
        P202 non-preemptible workloads stay within the quota: a in pool a100 has a quota of 2 GPUs, its non-preemptible workloads hold 1, this one asks for 2
        P102 needs 2 GPUs on one node; 2 are free on 2 nodes, at most 1 on one
    "#]].assert_eq(&w.why("z"));
}

#[test]
fn reasons_name_the_pools_that_can_hold_a_workload_once_each() {
    let mut w = World::new("n1:2 n2:2 n3:0 n4:2", "a:0");
    w.run("label n1 node-pool=a100; label n3 node-pool=cpu; label n4 node-pool=kept !team=b");
    w.run("quota a@a100 1; quota a 1");
    w.run("submit a/x -g 2 --interactive");
    let refused = |why: &str, pool: &str| {
        let lines = why.lines().filter(|line| line.trim_start().starts_with("P202"));
        lines.filter(|line| line.contains(&format!("a in pool {pool} has a quota of"))).count()
    };
    let why = w.why("x");
    let counts = ["default", "a100", "cpu", "kept"].map(|pool| refused(&why, pool));
    assert_eq!(counts, [1, 1, 0, 0], "no GPU in `cpu`, and a taint on `kept`: {why}");
    // If no pool can hold it, the size is the reason, and quota and share are reported
    // nevertheless.
    w.run("submit a/large -g 4 --interactive");
    let why = w.why("large");
    assert!(why.contains("P101") && why.contains("P202"), "{why}");
}

#[test]
fn reclaim_is_within_the_pool() {
    reclaims_within_the_pool(world(""));
}

/// A project reclaims its share of each of the two pools in this pool only.
pub(crate) fn reclaims_within_the_pool(mut w: World) {
    w.run("quota a@a100 2; quota b@a100 0; quota a 0; quota b 2");
    w.run("submit b/x -g 2 --pools a100; submit b/y -g 2 --pools default");
    w.run("submit a/job -g 2 --pools default");
    assert_eq!(w.waiting(), "job", "what it deserves in one pool is no claim in the other");
    w.run("submit a/other -g 2 --pools default,a100");
    assert_eq!(w.gpus(), "n1[other other] n2[y y]");
    expect![[r#"
        x E101 stopped so that a/other gets its quota: b in pool a100 held 2 GPUs (quota 0, fair share 0); a in pool a100 held 0 GPUs (quota 2, fair share 2) and asked for 2
    "#]].assert_eq(&w.stopped());
}

#[test]
fn each_pool_is_divided_among_those_who_ask_there() {
    let mut w = world("quota a@a100 0; quota b@a100 0");
    w.run("submit a/x --pods 2 --min 1 --pools a100; submit b/y --pods 4 --min 1 --pools default");
    assert_eq!(w.gpus(), "n1[x x] n2[y y]", "alone in its pool, each may have all of it");
    w.run("submit b/z --pools a100");
    assert_eq!(w.gpus(), "n1[x z] n2[y y]", "holding all of one pool is no matter in another");
}

#[test]
fn a_department_has_a_quota_per_pool_too() {
    let mut w = world("quota department@a100 1; quota a@a100 2");
    w.run("submit a/one -g 2 --interactive --pools a100");
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: department in pool a100 has a quota of 1 GPU, its non-preemptible workloads hold 0, this one asks for 2
        P107 1 of 2 nodes is in another pool
        P204 cannot start even on an empty cluster, so it does not count for the fair share of a in pool a100
    "#]].assert_eq(&w.why("one"));
}

#[test]
fn priority_counts_within_the_pool() {
    let mut w = world("quota a@a100 2; quota a 2");
    w.run("submit a/low -g 2 --pools a100; submit a/high -g 2 --priority 80 --pools default");
    w.run("submit a/higher -g 2 --priority 90 --pools a100");
    assert_eq!(w.gpus(), "n1[higher higher] n2[high high]");
}

#[test]
fn a_pool_that_comes_later_has_queues_without_quota() {
    let mut w = world("quota a@a100 2");
    w.run("add-node n3:1; submit a/x --interactive --pools late");
    w.run("label n3 node-pool=late");
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a in pool late has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1
        P107 2 of 3 nodes are in another pool
        P204 cannot start even on an empty cluster, so it does not count for the fair share of a in pool late
    "#]].assert_eq(&w.why("x"));
    w.run("quota a@late 1");
    assert_eq!(w.gpus(), "n1[. .] n2[. .] n3[x]");
}

#[test]
fn what_runs_on_a_node_that_is_moved_is_charged_in_the_new_pool() {
    let mut w = world("quota a@a100 2; limit a 1");
    w.run("submit a/one -g 2 --pools a100; label n1 node-pool=default");
    assert_eq!(w.gpus(), "n1[one one] n2[. .]", "a running pod stays");
    w.run("submit a/two --pools default");
    expect![[r#"
        P201 a in pool default may hold 1 GPU and holds 2; 1 more would pass its limit
    "#]]
    .assert_eq(&w.why("two"));
}

#[test]
fn room_in_the_preferred_pool_moves_nobody() {
    let mut w = world("quota a@a100 2; quota a 2");
    w.run("submit a/x -g 2 --pools a100; submit a/job --pools a100,default; delete x");
    assert_eq!(w.gpus(), "n1[. .] n2[job .]");
}

#[test]
fn room_is_kept_in_the_first_pool_until_there_is_some_in_another() {
    let mut w = world("quota a@a100 2; min-runtime b@a100 60000; quota b 1");
    w.policy.reserve_after_ms = 0;
    w.run("submit b/x --limit 60000 --pools a100");
    w.run("submit b/y --interactive --pools default; submit a/job -g 2 --pools a100,default");
    w.run("submit b/small --pools a100");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x .] n2[y .]", "job small"));
    expect![[r#"
        P306 room is kept for a/job, which goes first, needs 2 GPUs and has waited 0 min; it starts within 1 min
        P107 1 of 2 nodes is in another pool
        P203 nothing is taken from others for b in pool a100: 1 + 1 GPU would exceed its fair share of 0 (quota 0)
    "#]].assert_eq(&w.why("small"));
    w.run("delete y");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x small] n2[job job]", ""));
}

#[test]
fn what_is_so_in_many_pools_is_one_reason_and_the_diagnosis_names_each() {
    let mut w = World::new("n1:1 n2:1 n3:1 n4:1 n5:2", "a:0 b:0");
    w.run("label n1 node-pool=p1; label n2 node-pool=p2; label n3 node-pool=p3");
    w.run("label n4 node-pool=p4; quota a@p1 1; quota a@p2 1; quota a@p3 1; quota a@p4 1");
    w.run("quota a 2; submit a/all --pods 6 --min 1 --pools p1,p2,p3,p4,default");
    w.run("submit a/x1 --pools p1; submit a/x2 --pools p2; submit a/x3 --pools p3");
    w.run("submit a/x4 --pools p4; submit b/late --pools p1,p2,p3,p4,default");
    w.run("submit b/hired --interactive --pools p4,p3,p2,p1,default");
    expect![[r#"
        P102 needs 1 GPU; no GPU of 5 nodes is free
        P203 nothing is taken from others for b in pool p1: 0 + 1 GPU would exceed its fair share of 0 (quota 0); likewise in 4 more node pools
    "#]].assert_eq(&w.why("late"));
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: b in pool p4 has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1; likewise in 4 more node pools
        P102 needs 1 GPU; no GPU of 5 nodes is free
        P204 cannot start even on an empty cluster, so it does not count for the fair share of b in pool p4
    "#]].assert_eq(&w.why("hired"));
    expect![[r#"
        Why it waits:
          P102 needs 1 GPU; no GPU of 5 nodes is free
          P203 nothing is taken from others for b in pool p1: 0 + 1 GPU would exceed its fair share of 0 (quota 0); likewise in 4 more node pools
        In each node pool:
          P203 nothing is taken from others for b in pool p1: 0 + 1 GPU would exceed its fair share of 0 (quota 0)
          P203 nothing is taken from others for b in pool p2: 0 + 1 GPU would exceed its fair share of 0 (quota 0)
          P203 nothing is taken from others for b in pool p3: 0 + 1 GPU would exceed its fair share of 0 (quota 0)
          P203 nothing is taken from others for b in pool p4: 0 + 1 GPU would exceed its fair share of 0 (quota 0)
          P203 nothing is taken from others for b in pool default: 0 + 1 GPU would exceed its fair share of 0 (quota 0)
        Where it does not fit:
          4 nodes like n1 (1 GPU of 16GiB, 100 cores, 1TiB): all have too few free GPUs (needs 1, at most 0 on n1)
          1 node, n5 (2 GPUs of 16GiB, 100 cores, 1TiB): has too few free GPUs (needs 1, has 0)
        Who holds what it needs:
          a in pool default holds 2 GPUs (quota 2, fair share 2)
          a in pool p1 holds 1 GPU (quota 1, fair share 1)
          a in pool p2 holds 1 GPU (quota 1, fair share 1)
          a in pool p3 holds 1 GPU (quota 1, fair share 1)
          a in pool p4 holds 1 GPU (quota 1, fair share 1)
          a/all holds 2 GPUs: nothing is taken from other projects for this one
          a/x1 holds 1 GPU: nothing is taken from other projects for this one
          a/x2 holds 1 GPU: nothing is taken from other projects for this one
          a/x3 holds 1 GPU: nothing is taken from other projects for this one
          a/x4 holds 1 GPU: nothing is taken from other projects for this one
          b in pool p1 asks for 2 GPUs, of which 1 does not count for its fair share: that cannot start even on an empty cluster
        Who is looked at before it in its project:
          b/hired asks for 1 GPU: more important (priority 100)
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 1 GPU and none is free on any node
          P402 nothing is taken from other projects: with 1 more it would hold more than its fair share; b in pool p1 holds 0 GPUs (quota 0, fair share 0)
          P403 nothing is taken inside its project: nothing else of its project is running
        What would let it start (each tried out):
          add a node like n1
          that a/x4 ends
            runai delete x4 -p a
    "#]].assert_eq(&w.diagnosed("late"));
}
