//! Node pools with queues of their own: a scheduler each. § 1, § 23.

use expect_test::expect;
use testkit::World;

use crate::pool_quota;

/// The world of [`pool_quota`] under this profile.
fn world(quotas: &str) -> World {
    let mut w = pool_quota::world("");
    w.policy = testkit::kai();
    w.run(&format!("quota department@a100 2; {quotas}"));
    w
}

fn shares(w: &World) -> String {
    let shares = sched::fair_shares(&w.cluster, &w.policy);
    let of = |(id, share): (&model::QueueId, &units::Resources)| {
        format!("{}: {}", w.cluster.queue_name(*id), units::format_millis(share.gpu_millis))
    };
    shares.iter().map(of).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_pool_is_divided_among_those_who_ask_there() {
    let mut w = world("quota a@a100 1; quota b@a100 1; quota a 2; quota b 0");
    w.run("submit a/x --pods 2 --min 1 --pools a100; submit b/y --pods 4 --min 1 --pools default");
    assert_eq!(w.gpus(), "n1[x x] n2[y y]");
    expect![[r#"
        department in pool default: 2
        a in pool default: 0
        b in pool default: 2
        department in pool a100: 2
        a in pool a100: 2
        b in pool a100: 0"#]]
    .assert_eq(&shares(&w));
}

#[test]
fn what_may_be_in_several_pools_asks_in_each_and_runs_in_one() {
    let mut w = world("quota a@a100 2; quota a 2");
    w.run("submit a/x --pods 4 --min 1 --pools a100,default");
    assert_eq!(w.gpus(), "n1[x x] n2[. .]", "what runs binds the rest to its pool");
    w.run("submit a/y -g 2 --pools a100,default; submit a/z -g 2");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x x] n2[y y]", "x z"));
}

#[test]
fn reclaim_is_within_the_pool() {
    pool_quota::reclaims_within_the_pool(world(""));
}

#[test]
fn what_was_stopped_finds_no_place_in_another_pool_in_the_same_scenario() {
    let mut w = world("quota a@a100 2; quota b@a100 0; quota a 0; quota b 2");
    w.run("submit b/x -g 2 --pools a100,default");
    w.only_cycle = true;
    w.run("submit a/job -g 2 --pools a100");
    assert_eq!(w.gpus(), "n1[x! x!] n2[. .]");
    w.run("gone; slow");
    assert_eq!(w.gpus(), "n1[job job] n2[x x]", "the next cycle finds it there");
}

#[test]
fn nobody_moves_for_a_job_of_another_pool() {
    let mut w = World::new("n1:2 n2:2 m1:2", "a");
    w.policy = testkit::kai();
    w.run("label m1 node-pool=p; quota a@p 2; cordon n1; submit a/x -g 1; uncordon n1; cordon n2");
    w.run("submit a/y -g 1 --pools default; uncordon n2; submit a/high -g 2 --pools p");
    w.run("submit a/job -g 2 --pools p");
    assert_eq!(w.gpus(), "n1[y .] n2[x .] m1[high high]");
    assert_eq!(w.waiting(), "job");
    w.run("submit a/two -g 2 --pools default");
    assert!(w.has_place("two"), "{}", w.gpus());
}

#[test]
fn what_runs_in_another_pool_is_nobody_to_ask() {
    let mut w = world("quota a@a100 2; quota b@a100 2; quota a 2; quota b 0");
    w.run("submit b/x -g 1 --pools default; submit a/fixed -g 2 --interactive --pools a100");
    w.run("submit b/job -g 2 --pools a100");
    let refusals = w.diagnosed("job");
    let of_others = refusals.lines().find(|line| line.contains("P402")).expect("a refusal");
    expect![
        "  P402 nothing is taken from other projects: no workload is eligible: 1 not preemptible"
    ]
    .assert_eq(of_others);
}

#[test]
fn a_queue_is_as_full_as_its_part_of_the_pool() {
    let mut w = World::new("n1:4:1000 m1:4:10", "a b");
    w.policy = testkit::kai();
    w.run("label m1 node-pool=p; quota a@p 4; quota b@p 4; submit b/gpu --pools p");
    w.run("submit a/host -g 0 --cpu 5 --pools p; cordon m1");
    w.run("submit a/x -g 0 --cpu 5 --pools p; submit b/y -g 0 --cpu 5 --pools p; uncordon m1");
    assert_eq!(w.waiting(), "x", "a has half the cores of the pool, b a quarter of the GPUs");
}

#[test]
fn the_long_answer_speaks_of_the_first_pool() {
    let mut w = world("quota a@a100 2; quota b@a100 0; quota a 0; quota b 2");
    w.run("submit b/y -g 2 --pools default; submit a/job -g 2 --pools default");
    expect![[r#"
        Why it waits:
          P102 needs 2 GPUs; no GPU of 1 node is free
          P107 1 of 2 nodes is in another pool
          P203 nothing is taken from others for a in pool default: 0 + 2 GPUs would exceed its fair share of 0 (quota 0)
        Where it does not fit:
          2 nodes like n1 (2 GPUs of 16GiB, 100 cores, 1TiB): 1 is in another node pool; 1 has too few free GPUs (needs 2, at most 0 on n2)
        Who holds what it needs:
          b in pool default holds 2 GPUs (quota 2, fair share 2)
          b/y holds 2 GPUs: nothing is taken from other projects for this one
        Why nothing was moved or taken for it:
          P401 nothing is moved: it needs 2 GPUs and none is free on any node
          P402 nothing is taken from other projects: with 2 more it would hold more than its fair share; a in pool default holds 0 GPUs (quota 0, fair share 0)
          P403 nothing is taken inside its project: nothing else of its project is running
        What would let it start (each tried out):
          ask for node pool a100 instead of default
          that b/y ends
            runai delete y -p b
    "#]].assert_eq(&w.diagnosed("job"));
}
