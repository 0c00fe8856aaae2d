//! One rule per test: quota, limit, priority, gangs, elasticity, and the reasons given.

use expect_test::expect;
use testkit::World;

#[test]
fn non_preemptible_work_stays_within_quota() {
    let mut w = World::new("n1:4", "a:1");
    w.run("submit a/i1 --interactive; submit a/i2 --interactive");
    assert_eq!(w.waiting(), "i2");
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a has a quota of 1 GPU, its non-preemptible workloads hold 1, this one asks for 1
    "#]]
    .assert_eq(&w.why("i2"));
}

#[test]
fn nobody_passes_the_limit() {
    let mut w = World::new("n1:4", "a:1:2");
    w.run("submit a/t1; submit a/t2; submit a/t3");
    assert_eq!(w.waiting(), "t3");
    expect!["P201 a may hold 2 GPUs and holds 2; 1 more would pass its limit\n"]
        .assert_eq(&w.why("t3"));
}

#[test]
fn a_limit_holds_for_growth_too() {
    let mut w = World::new("n1:4", "a:1:2");
    w.run("submit a/e -g 1 --elastic");
    assert_eq!(w.size("e"), "2 (1)");
}

#[test]
fn what_no_node_can_hold_says_so() {
    let mut w = World::new("n1:2 n2:4", "a:8");
    w.run("submit a/big -g 8");
    expect![[r#"
        P101 asks for 8 GPUs on one node; the largest node has 4
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("big"));
}

#[test]
fn a_full_cluster_says_what_is_free() {
    let mut w = World::new("n1:2 n2:2", "a:4 b:0");
    w.run("submit a/x -g 2; submit a/y -g 1; submit b/z -g 2");
    expect![[r#"
        P102 needs 2 GPUs on one node; 1 is free on 2 nodes, at most 1 on one
        P203 nothing is taken from others for b: 0 + 2 GPUs would exceed its fair share of 1 (quota 0)
    "#]]
    .assert_eq(&w.why("z"));
}

#[test]
fn a_share_that_fits_nowhere_says_the_largest() {
    let mut w = World::new("n1:1", "a:1");
    w.run("submit a/f1 -g 0.6; submit a/f2 -g 0.5");
    expect![[r#"
        P103 needs 0.5 of a GPU; the largest free share of a GPU is 0.4
        P203 nothing is taken from others for a: 0.6 + 0.5 GPU would exceed its fair share of 1 (quota 1)
    "#]]
    .assert_eq(&w.why("f2"));
}

#[test]
fn cpu_can_be_what_is_missing() {
    let mut w = World::new("n1:2:4", "a:2");
    w.run("submit a/t1 --cpu 3; submit a/t2 --cpu 2");
    expect![[r#"
        P104 needs 2 CPU cores beside its GPUs; at most 1 are free on a node that has them
        P203 nothing is taken from others for a: 3 + 2 cores would exceed its fair share of 4 (quota unlimited)
    "#]]
    .assert_eq(&w.why("t2"));
}

#[test]
fn interactive_preempts_training_of_its_own_project() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/t1 -g 2; submit a/i1 --interactive");
    assert_eq!(w.gpus(), "n1[i1 .]");
    assert_eq!(w.waiting(), "t1");
    expect!["t1 E102 stopped for a/i1 of higher priority (100 over 50)\n"].assert_eq(&w.stopped());
}

#[test]
fn priority_takes_nothing_from_another_project() {
    let mut w = World::new("n1:2", "a:2 b:0");
    w.run("submit a/t1 -g 2; submit b/urgent --priority 150");
    assert_eq!(w.waiting(), "urgent");
}

#[test]
fn the_smallest_victim_that_suffices_is_taken() {
    let mut w = World::new("n1:2 n2:2", "a:0 b:4");
    w.run("submit a/big -g 2; submit a/small; submit a/other; submit b/b1");
    assert_eq!(w.waiting(), "other");
    w.run("submit b/b2");
    assert_eq!(w.waiting(), "small other");
}

#[test]
fn an_elastic_victim_is_halved_before_it_is_stopped() {
    let mut w = World::new("n1:4", "a:0 b:4");
    w.run("submit a/e -g 4 --elastic; submit b/b1");
    assert_eq!(w.size("e"), "2 (4)");
    assert_eq!(w.gpus(), "n1[e e b1 .]");
}

#[test]
fn left_over_gpus_are_divided_by_weight_in_whole_ones() {
    let mut w = World::new("n1:8", "a:1 b:1 c:1");
    for (project, count) in [("a", 8), ("b", 8), ("c", 1)] {
        (0..count).for_each(|n| w.run(&format!("submit {project}/{project}{n}")));
    }
    let held: Vec<_> = ["a", "b", "c"]
        .map(|name| {
            let mut queues = w.cluster.queues().iter();
            queues.find(|(_, q)| q.name == name).map(|(_, q)| q.allocated.gpu_millis)
        })
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(held, [4000, 3000, 1000]);
}

#[test]
fn a_gang_starts_whole_or_not_at_all() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/t1; submit a/gang --pods 4");
    assert_eq!(w.waiting(), "gang");
    assert_eq!(w.gpus(), "n1[t1 .] n2[. .]");
    w.run("delete t1");
    assert_eq!(w.gpus(), "n1[gang gang] n2[gang gang]");
}

#[test]
fn a_place_being_freed_is_kept_for_whom_it_is_freed() {
    let mut w = World::new("n1:1", "a:0 b:1");
    w.run("submit a/t1; slow; submit b/b1; submit a/t2");
    assert_eq!(w.gpus(), "n1[t1!]");
    assert_eq!(w.waiting(), "t1 t2");
    expect!["P301 has a place on n1, which is being freed by t1\n"].assert_eq(&w.why("b1"));
    w.run("gone");
    assert_eq!(w.gpus(), "n1[b1]");
}

#[test]
fn growth_is_rate_limited_after_a_resize() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/e -g 1 --elastic; submit a/i --interactive; delete i");
    assert_eq!(w.size("e"), "1 (1)");
    assert!(w.plan.wake_at.is_some(), "it asks to be woken when it may grow");
    w.run("wait 10000");
    assert_eq!(w.size("e"), "1 (1)", "as long as a restart takes");
    w.run("wait 20000");
    assert_eq!(w.size("e"), "2 (1)");
}

#[test]
fn two_large_gangs_do_not_take_the_same_gpus_from_each_other_for_ever() {
    let mut w = World::new("n1:4 n2:4 n3:2", "a:3 b:3 c:4");
    w.run("submit c/w0 -g 2; submit c/w1 --pods 3; submit a/w2 --interactive");
    w.run("submit b/w3 -g 2; submit b/w4 -g 0.3 --interactive; submit b/w5 --devices 2 -g 0.5");
    w.run("quota b 2; slow; submit a/w6 --pods 3");
    assert_eq!(w.waiting(), "w6");
}

#[test]
fn suspended_work_gives_up_its_place_and_gets_one_again() {
    let mut w = World::new("n1:1", "a:1");
    w.run("submit a/t1; submit a/t2; suspend t1");
    assert_eq!(w.gpus(), "n1[t2]");
    w.run("suspend t2; resume t1");
    assert_eq!(w.gpus(), "n1[t1]");
}

#[test]
fn memory_requests_share_a_gpu_by_its_size() {
    let mut w = World::new("n1:1", "a:1");
    w.run("submit a/m1 --mem 8GiB; submit a/m2 --mem 8GiB; submit a/m3 --mem 1GiB; submit a/m4 --mem 17GiB");
    assert_eq!(w.gpus(), "n1[m1:0.5+m2:0.5]");
    expect![[r#"
        P101 asks for 17GiB of GPU memory; no GPU of any node has that much
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("m4"));
}

#[test]
fn work_per_cycle_is_bounded_and_goes_on_next_time() {
    let mut w = World::new("n1:4", "a:2 b:2");
    w.run("submit a/x1; submit a/x2; submit b/y1; submit b/y2");
    w.policy.trials_max = 3;
    let request =
        model::PodRequest { gpu: model::GpuRequest::Whole(1), cpu_millis: 0, memory_bytes: 0 };
    let queue = w.cluster.workloads().iter().map(|(_, row)| row.spec.queue).next();
    for seq in 100..110 {
        let queue = queue.expect("a project");
        let spec = model::WorkloadSpec {
            priority: u32::try_from(seq).expect("small"),
            ..model::WorkloadSpec::new(format!("w{seq}"), queue, seq, request)
        };
        let id = w.cluster.add_workload(spec).expect("a sound workload");
        w.cluster.set_wants(w.cluster.workloads()[id].pods[0], true);
    }
    w.cycle();
    assert!(w.plan.stats.exhausted && w.plan.stats.trials <= 8 * 3, "{:?}", w.plan.stats);
    assert!(w.plan.wake_at > Some(w.now), "it goes on, but not at once");
    let reasons =
        w.plan.pending.values().flat_map(|reasons| reasons.iter()).map(|reason| reason.code().code);
    assert!(reasons.into_iter().any(|code| code == "P303"), "the reasons say so");
}

#[test]
fn a_gang_reclaims_for_all_its_pods_at_once() {
    let mut w = World::new("n1:2 n2:2 n3:2", "a:0 b:4");
    w.run("submit a/t1; submit a/t2 -g 2; submit a/t3; submit a/t4; submit a/t5");
    assert_eq!(w.gpus(), "n1[t1 t3] n2[t2 t2] n3[t4 t5]");
    w.run("submit b/gang --pods 2 -g 2");
    assert_eq!(w.gpus(), "n1[t1 t3] n2[gang gang] n3[gang gang]");
    assert_eq!(w.waiting(), "t2 t4 t5");
}

#[test]
fn one_small_victim_is_taken_before_a_larger_younger_one() {
    let mut w = World::new("n1:4", "a:2 b:2");
    w.run("submit a/a1; submit a/a2 -g 2; submit b/b1; submit b/b2");
    assert_eq!(w.waiting(), "a1");
}

#[test]
fn a_selector_is_kept_and_what_it_rules_out_is_said() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("label n2 gpu=a100; submit a/t1 -g 2 --on gpu=a100; submit a/t2 --on gpu=a100");
    assert_eq!(w.gpus(), "n1[. .] n2[t1 t1]");
    expect![[r#"
        P102 needs 1 GPU; no GPU of 1 node is free
        P107 1 of 2 nodes lacks a label that it needs
        P203 nothing is taken from others for a: 2 + 1 GPU would exceed its fair share of 2 (quota 4); work like this can use only the 2 GPUs of n2
    "#]]
    .assert_eq(&w.why("t2"));
    w.run("submit a/t3 --on gpu=h100");
    expect![[r#"
        P107 2 of 2 nodes lack a label that it needs
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("t3"));
}

#[test]
fn a_preferred_node_wins_over_a_fuller_one_if_it_has_room() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("label n2 zone=b; submit a/t1; submit a/t2 --prefer zone=b");
    assert_eq!(w.gpus(), "n1[t1 .] n2[t2 .]");
    w.run("submit a/t3 --prefer zone=b; submit a/t4 --prefer zone=b");
    assert_eq!(w.gpus(), "n1[t1 t4] n2[t2 t3]");
}

#[test]
fn taints_keep_away_whoever_does_not_tolerate_them() {
    let mut w = World::new("n1:1 n2:1", "a:4");
    w.run("label n1 !dedicated; submit a/t1; submit a/t2; submit a/t3 --tolerate dedicated");
    assert_eq!(w.gpus(), "n1[t3] n2[t1]");
    w.run("label n1 ~busy; delete t1 t2 t3; submit a/t4");
    assert_eq!(w.gpus(), "n1[.] n2[t4]");
}

#[test]
fn a_cordoned_node_keeps_its_pods_and_gets_no_more() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/t1; cordon n1; submit a/t2");
    assert_eq!(w.gpus(), "n1[t1 .]");
    expect![[r#"
        P107 the only node is cordoned
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("t2"));
    w.run("uncordon n1");
    assert_eq!(w.gpus(), "n1[t1 t2]");
}

#[test]
fn nothing_is_evicted_on_a_node_the_taker_may_not_use() {
    let mut w = World::new("n1:1 n2:1", "a:0 b:2");
    w.run("label n2 gpu=a100; submit a/t1; submit a/t2; submit b/b1 --on gpu=a100");
    assert_eq!(w.gpus(), "n1[t1] n2[b1]");
}

#[test]
fn guaranteed_run_time_protects_and_then_ends() {
    let mut w = World::new("n1:1", "a:0 b:1");
    w.run("min-runtime a 5000; submit a/t1; submit b/b1");
    assert_eq!(w.waiting(), "b1");
    assert!(w.plan.wake_at.is_some(), "it looks again when the guarantee ends");
    w.run("wait 5000");
    assert_eq!(w.gpus(), "n1[b1]");
}

#[test]
fn guaranteed_run_time_does_not_keep_what_is_above_the_minimum() {
    let mut w = World::new("n1:2", "a:0 b:1");
    w.run("min-runtime a 5000; submit a/e --pods 2 --min 1; submit b/b1");
    assert_eq!(w.gpus(), "n1[e b1]");
}

#[test]
fn a_patient_workload_waits_before_anybody_is_stopped_for_it() {
    let mut w = World::new("n1:1", "a:0 b:1");
    w.run("submit a/t1; submit b/b1 --delay 3000");
    assert_eq!(w.waiting(), "b1");
    w.run("wait 3000");
    assert_eq!(w.gpus(), "n1[b1]");
}

#[test]
fn what_is_left_of_a_gang_is_stopped_after_a_grace() {
    let mut w = World::new("n1:3", "a:3");
    w.run("submit a/gang --pods 3; lose gang 1");
    w.run("wait 60000");
    assert_eq!(w.gpus(), "n1[gang . gang]");
    w.run("wait 100");
    assert_eq!(w.gpus(), "n1[. . .]");
    expect!["P106 3 pods must run together, and only 2 are there\n"].assert_eq(&w.why("gang"));
    let text = "gang E105 stopped: 2 of the 3 pods that must run together were left\n";
    assert_eq!(w.stopped(), text.repeat(2));
}

#[test]
fn what_is_left_of_a_gang_goes_on_if_one_of_it_has_ended_well() {
    let mut w = World::new("n1:3", "a:3");
    w.run("submit a/gang --pods 3; succeed gang 1; wait 60000");
    assert_eq!(w.gpus(), "n1[gang . gang]");
}

#[test]
fn an_elastic_gang_gives_up_pods_above_its_minimum_one_by_one() {
    let mut w = World::new("n1:4", "a:0 b:2");
    w.run("submit a/e --pods 4 --min 2");
    assert_eq!(w.gpus(), "n1[e e e e]");
    w.run("submit b/b1");
    assert_eq!(w.gpus(), "n1[e e e b1]");
    w.run("submit b/b2");
    assert_eq!(w.gpus(), "n1[e e b2 b1]");
}

#[test]
fn quotas_that_promise_too_much_are_honoured_in_proportion() {
    let mut w = World::new("n1:6", "a:6 b:3");
    for n in 1..=6 {
        w.run(&format!("submit a/a{n}"));
    }
    w.run("submit b/b1; submit b/b2; submit b/b3");
    assert_eq!(w.waiting(), "a5 a6 b3");
}

#[test]
fn what_is_lent_to_an_elastic_job_does_not_count_against_its_project() {
    let mut w = World::new("n1:4 n2:8", "a:0 b:10");
    w.run("submit a/x -g 8; submit b/e -g 1 --elastic; submit b/big -g 8");
    assert_eq!(w.waiting(), "x");
    assert_eq!(w.size("e"), "4 (1)");
}

#[test]
fn a_project_over_its_share_gives_before_one_that_is_not() {
    let mut w = World::new("n1:6", "a:0 c:0 b:2");
    for n in 1..=4 {
        w.run(&format!("submit a/a{n} --priority 80"));
    }
    w.run("submit c/c1; submit c/c2; submit b/b1");
    assert_eq!(w.waiting(), "a4", "priority counts inside a project only");
}

#[test]
fn victims_of_one_node_are_taken_from_the_more_saturated_project() {
    let mut w = World::new("n1:8", "a:0 c:0 b:2");
    w.run("submit a/a1; submit a/a2; submit a/a3; submit a/a4; submit a/a5");
    w.run("submit c/c1; submit c/c2; submit c/c3; submit b/b1 -g 2");
    assert_eq!(w.waiting(), "a4 a5");
}

#[test]
fn own_less_important_work_gives_way_so_that_the_quota_can_be_claimed() {
    let mut w = World::new("n1:2 n2:2", "a:4 b:0");
    w.run("submit a/t; submit b/x; submit b/y -g 2; submit a/g --pods 2 -g 2 --priority 80");
    assert_eq!(w.gpus(), "n1[g g] n2[g g]");
    let mut w = World::new("n1:2 n2:2", "a:2 b:2");
    w.run("submit b/y -g 2 --interactive; submit a/l1; submit b/x; submit a/i -g 2 --interactive");
    assert_eq!(w.waiting(), "l1 x");
}

#[test]
fn interactive_displaces_training_of_equal_priority_within_its_quota() {
    let mut w = World::new("n1:1", "a:1");
    w.run("submit a/t; submit a/i --interactive --priority 50");
    assert_eq!(w.gpus(), "n1[i]");
}

#[test]
fn interactive_work_is_never_a_victim() {
    let mut w = World::new("n1:2", "a:2 b:2");
    w.run("submit a/i1 --interactive; submit a/i2 --interactive; submit b/b1 --priority 150");
    assert_eq!(w.gpus(), "n1[i1 i2]");
    w.run("delete b1; submit a/urgent --priority 150");
    assert_eq!(w.gpus(), "n1[i1 i2]");
}

#[test]
fn a_gang_does_not_start_before_its_last_place_is_free() {
    let mut w = World::new("n1:1 n2:1", "a:0 b:2");
    w.run("submit a/t; slow; submit b/g --pods 2");
    assert_eq!(w.gpus(), "n1[t!] n2[.]");
    expect!["P301 has a place on n1, which is being freed by t\n"].assert_eq(&w.why("g"));
    w.run("gone");
    assert_eq!(w.gpus(), "n1[g] n2[g]");
}

#[test]
fn no_more_workloads_are_moved_than_the_policy_allows() {
    let script = "submit a/t1; submit a/t2; submit a/t3; submit a/t4; delete t1 t4";
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.policy.consolidation_moves_max = 0;
    w.run(script);
    w.run("submit a/big -g 2");
    assert_eq!(w.waiting(), "big");
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run(script);
    w.run("submit a/big -g 2");
    assert_eq!(w.waiting(), "");
}

#[test]
fn elastic_means_whole_gpus() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/none -g 0 --elastic; submit a/half -g 0.5 --elastic");
    assert_eq!(w.size("half"), "0.5 (0.5)");
}

#[test]
fn what_is_too_large_names_what_is_too_large() {
    let mut w = World::new("n1:1 n2:1", "a:4");
    w.run("submit a/x --devices 2 -g 0.5; submit a/z --mem 8GiB --cpu 1000");
    expect![[r#"
        P101 asks for 2 GPUs on one node; the largest node has 1
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("x"));
    expect![[r#"
        P101 asks for 1000 cores and 0B of memory; no node with the GPUs has that much (largest: 100 cores, 1TiB)
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]].assert_eq(&w.why("z"));
}

#[test]
fn cpu_and_memory_must_be_free_on_the_same_node() {
    let mut w = World::new("n1:2:4 n2:2:100", "a:4");
    w.run("submit a/m1 --memory 1000GiB --cpu 3; submit a/m2 --memory 1000GiB --cpu 90");
    w.run("submit a/x --cpu 5 --memory 100GiB");
    expect![[r#"
        P105 needs 100GiB of memory beside its GPUs; at most 24GiB are free on a node that has them
        P203 nothing is taken from others for a: 1.9TiB + 100GiB of memory would exceed its fair share of 2TiB (quota unlimited)
    "#]].assert_eq(&w.why("x"));
}

#[test]
fn a_cpu_quota_is_told_in_cores() {
    let mut w = World::new("n1:4", "");
    let cores = |cpu_millis| units::Resources { cpu_millis, ..units::Resources::UNLIMITED };
    w.queue("a", None, model::Share::new(cores(1000), units::Resources::UNLIMITED));
    w.run("submit a/i --interactive --cpu 2");
    expect![[r#"
        P202 non-preemptible workloads stay within the quota: a has a quota of 1 core, its non-preemptible workloads hold 0, this one asks for 2
        P204 cannot start even on an empty cluster, so it does not count for the fair share of a
    "#]].assert_eq(&w.why("i"));
}

/// Two departments of two projects each, with quotas of their own.
fn departments(shares: [(u64, u64); 6]) -> World {
    let mut w = World::new("n1:4 n2:4 n3:2", "");
    let share = |(gpus, weight): (u64, u64)| {
        let quota = units::Resources { gpu_millis: gpus * 1000, ..units::Resources::UNLIMITED };
        let over_quota_weight = model::Weights::all(weight);
        model::Share { over_quota_weight, ..model::Share::new(quota, units::Resources::UNLIMITED) }
    };
    let d1 = w.queue("d1", None, share(shares[0]));
    let d2 = w.queue("d2", None, share(shares[1]));
    for (name, parent, at) in [("a", d1, 2), ("b", d1, 3), ("c", d2, 4), ("d", d2, 5)] {
        w.queue(name, Some(parent), share(shares[at]));
    }
    w
}

#[test]
fn the_department_s_quota_binds_its_projects() {
    let mut w = departments([(2, 0), (8, 0), (2, 0), (2, 0), (4, 0), (4, 0)]);
    for n in 1..=10 {
        w.run(&format!("submit c/c{n}"));
    }
    w.run("submit a/a1; submit a/a2; submit b/b1");
    assert_eq!(w.waiting(), "c9 c10 a2", "d1 has its two, and divides them between a and b");
}

#[test]
fn departments_with_large_gangs_come_to_rest() {
    let mut w = departments([(5, 2), (4, 1), (3, 2), (3, 1), (1, 3), (2, 0)]);
    w.run("submit a/w0 --interactive; submit a/w1 -g 4; submit a/w2; submit d/w3 -g 2");
    w.run("submit d/w4 --devices 2 -g 0.5; submit c/w5; submit d/w6 --interactive");
    w.run("submit a/w7 --pods 3 --priority 90 --cpu 2; submit a/w8 -g 2");
    w.run("submit c/w9 --pods 4 --min 2; delete w5; delete w2");
}

#[test]
fn priorities_shares_and_lumps_come_to_rest() {
    let mut w = World::new("n1:4:8 n2:4:8", "a:3 b:3 c:1 d:0");
    w.run("submit c/w0 --devices 2 -g 0.5; submit d/w1 -g 2 --priority 80; submit a/w2 -g 2");
    w.run("submit b/w3 -g 2 --elastic; submit d/w4 -g 0.5; submit a/w5 --interactive; quota d 0");
    w.run("delete w5; submit d/w6 --devices 2 -g 0.5; submit b/w7; delete w2");
    w.run("submit a/w8 --interactive; submit b/w9 -g 0.5; submit a/w10 -g 4");
    w.run("submit b/w11 --interactive; submit a/w12 -g 4; submit b/w13 -g 2 --priority 80");
    w.run("submit b/w14; submit a/w15 -g 3; delete w8; quota d 2");
}
