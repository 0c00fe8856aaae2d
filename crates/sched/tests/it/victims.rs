//! Choice of the pods to stop: the order of the criteria, and that none is stopped needlessly.

use expect_test::expect;
use model::{Share, Weights};
use testkit::World;
use units::Resources;

/// Two one-GPU jobs of a project without quota fill a node; another may take one of the two.
fn two_equal(script: &str) -> World {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit a/x; submit a/y");
    w.run(script);
    w.run("submit b/taker");
    w
}

#[test]
fn of_equals_the_youngest_goes() {
    assert_eq!(two_equal("").waiting(), "y");
}

#[test]
fn who_just_saved_its_work_goes() {
    assert_eq!(two_equal("wait 600000; checkpoint x").waiting(), "x");
    assert_eq!(two_equal("wait 600000; checkpoint y").waiting(), "y");
}

#[test]
fn a_later_checkpoint_is_cheaper_than_an_earlier_one() {
    let script = "wait 600000; checkpoint x; wait 600000; checkpoint y; wait 600000";
    assert_eq!(two_equal(script).waiting(), "y");
}

#[test]
fn a_checkpoint_of_an_earlier_run_saves_nothing_of_this_one() {
    let script = "checkpoint x; suspend x; resume x; wait 600000; checkpoint y; wait 300000";
    assert_eq!(two_equal(script).waiting(), "y");
}

#[test]
fn less_than_a_minute_is_no_difference() {
    assert_eq!(two_equal("wait 50000; checkpoint x").waiting(), "y");
}

#[test]
fn who_was_stopped_three_times_is_spared() {
    assert_eq!(two_equal("restarts y 3").waiting(), "x");
    assert_eq!(two_equal("restarts x 3").waiting(), "y");
    assert_eq!(two_equal("restarts x 3; restarts y 4").waiting(), "x");
}

#[test]
fn much_unsaved_work_outweighs_a_restart() {
    assert_eq!(two_equal("restarts y 3; wait 600000; checkpoint y").waiting(), "y");
}

#[test]
fn priority_comes_before_cost() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit a/low --priority 30; submit a/high; wait 600000; checkpoint high");
    w.run("submit b/taker");
    assert_eq!(w.waiting(), "low");
}

#[test]
fn a_queue_within_its_share_is_spared_whatever_the_cost() {
    let mut w = World::new("n1:3", "a:0 b:1 c:2");
    w.run("submit a/a1; submit b/b1; submit a/a2; wait 600000; checkpoint b1; submit c/taker");
    assert_eq!(w.waiting(), "a2");
}

#[test]
fn a_small_job_goes_before_a_gang() {
    let mut w = World::new("n1:4", "a:0 b:4");
    w.run("submit a/one; submit a/gang --pods 3; submit b/taker");
    assert_eq!(w.waiting(), "one");
}

#[test]
fn a_gang_that_saved_its_work_goes_before_a_long_run() {
    let mut w = World::new("n1:4", "a:0 b:4");
    w.run("submit a/one; submit a/gang --pods 3; wait 3600000; checkpoint gang; submit b/taker");
    assert_eq!(w.waiting(), "gang");
}

#[test]
fn the_cheapest_node_is_taken() {
    let mut w = World::new("n1:2 n2:2", "a:0 b:4");
    w.run("submit a/x -g 2; submit a/y -g 2; wait 600000; checkpoint x; submit b/taker -g 2");
    assert_eq!(w.gpus(), "n1[taker taker] n2[y y]");
}

#[test]
fn the_cheapest_pair_is_found_among_jobs_of_different_size() {
    let mut w = World::new("n1:6", "a:0 b:6");
    w.run("submit a/one; submit a/two -g 2; submit a/three -g 3; wait 600000; checkpoint one two");
    w.run("submit b/taker -g 3");
    assert_eq!(w.waiting(), "one two");
}

#[test]
fn preemption_counts_cost_too() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/x; submit a/y; wait 600000; checkpoint x; submit a/urgent --priority 90");
    assert_eq!(w.waiting(), "x");
}

/// Two jobs without GPUs share the cores of a node; one of higher priority needs one of the two.
fn two_on_cores(script: &str) -> World {
    let mut w = World::new("n1:0:20", "a");
    w.run("submit a/x -g 0 --cpu 10; submit a/y -g 0 --cpu 10");
    w.run(script);
    w.run("submit a/taker -g 0 --cpu 10 --priority 90");
    w
}

#[test]
fn of_jobs_without_gpus_goes_who_loses_least() {
    assert_eq!(two_on_cores("wait 600000").waiting(), "y");
    assert_eq!(two_on_cores("wait 600000; checkpoint x").waiting(), "x");
    assert_eq!(two_on_cores("wait 600000; checkpoint y").waiting(), "y");
    assert_eq!(two_on_cores("restarts y 3").waiting(), "x");
}

#[test]
fn few_cores_lose_less_than_many() {
    let mut w = World::new("n1:0:30", "a");
    w.run("submit a/small -g 0 --cpu 10; submit a/large -g 0 --cpu 20; wait 600000");
    w.run("submit a/taker -g 0 --cpu 10 --priority 90");
    assert_eq!(w.waiting(), "small");
}

#[test]
fn a_job_without_gpus_goes_before_one_with() {
    let mut w = World::new("n1:1:20", "a");
    w.run("submit a/gpu --cpu 10; submit a/cores -g 0 --cpu 10; wait 600000; checkpoint gpu");
    w.run("submit a/taker -g 0 --cpu 10 --priority 90");
    assert_eq!(w.waiting(), "cores");
}

#[test]
fn the_node_is_taken_whose_job_without_gpus_loses_least() {
    let mut w = World::new("n1:0:10 n2:0:10", "a");
    w.run("submit a/x -g 0 --cpu 10; submit a/y -g 0 --cpu 10; wait 600000; checkpoint x");
    w.run("submit a/taker -g 0 --cpu 10 --priority 90");
    assert_eq!(w.waiting(), "x");
}

#[test]
fn a_move_takes_who_loses_least() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/x; submit a/pad; submit a/y; delete pad; wait 600000; checkpoint x");
    w.run("submit a/wide -g 2");
    assert_eq!(w.gpus(), "n1[wide wide] n2[y x]");
}

#[test]
fn who_loses_least_and_has_no_other_place_stays_where_it_is() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("label n1 n=1; cordon n1; submit a/old; uncordon n1; wait 600000");
    w.run("submit a/young --on n=1; submit a/taker -g 2");
    assert_eq!(w.gpus(), "n1[young old] n2[taker taker]");
}

#[test]
fn a_shared_gpu_is_freed_where_it_costs_least() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit a/p -g 0.5; submit a/q -g 0.5; submit a/r -g 0.5; submit a/s -g 0.5");
    w.run("wait 600000; checkpoint p q; submit b/taker");
    assert_eq!(w.waiting(), "p q");
}

#[test]
fn the_cause_says_what_was_lost() {
    let w = two_equal("wait 300000; checkpoint x; wait 720000");
    expect![[r#"
        x E101 stopped so that b/taker gets its quota: a held 2 GPUs (quota 0, fair share 1); b held 0 GPUs (quota 2, fair share 1) and asked for 1; 12 min had passed since its last checkpoint was reported
    "#]].assert_eq(&w.stopped());
    let w = two_equal("wait 720000");
    expect![[r#"
        y E101 stopped so that b/taker gets its quota: a held 2 GPUs (quota 0, fair share 1); b held 0 GPUs (quota 2, fair share 1) and asked for 1; 12 min had passed since its last start and no checkpoint was reported
    "#]].assert_eq(&w.stopped());
    let w = two_equal("wait 36000000");
    expect![[r#"
        y E101 stopped so that b/taker gets its quota: a held 2 GPUs (quota 0, fair share 1); b held 0 GPUs (quota 2, fair share 1) and asked for 1; 10 h had passed since its last start and no checkpoint was reported
    "#]].assert_eq(&w.stopped());
}

#[test]
fn a_stop_is_counted_once_for_all_pods() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit a/gang --pods 2; submit b/taker");
    let gang = w.cluster.workloads().iter().find(|(_, row)| row.spec.name == "gang").unwrap();
    assert_eq!(gang.1.restarts, 1);
}

/// `low` gets the place of `v2`, and loses it in the same cycle to `high`, which starts at half its
/// size: `v2` was stopped for `high`.
#[test]
fn the_beneficiary_is_who_has_the_place_in_the_end() {
    let mut w = World::new("n1:2", "a:0 b:2");
    w.run("submit b/v1; submit b/v2; submit a/low; submit a/high -g 4 --elastic --priority 120");
    w.run("slow; quota a 1");
    assert_eq!(w.waiting(), "v2 low");
    expect![[r#"
        v2 E101 stopped so that a/high gets its quota: b held 2 GPUs (quota 2, claim 1.333); a held 0 GPUs (quota 1, claim 0.667) and asked for 1
    "#]].assert_eq(&w.stopped());
}

/// `a1` loses its GPU to `b1`, gets that of `a2`, and loses this, too, to `b2`, which grows: `a2`
/// was stopped for `b2`.
#[test]
fn so_it_is_where_the_first_had_another_place_before() {
    let mut w = World::new("n1:1 n2:2", "a:0 b:4");
    w.run(
        "label n1 n=1; label n2 n=2; min-runtime a 60000; submit a/a1; submit a/a2 --priority 40",
    );
    w.run("submit b/b2 -g 4 --elastic --on n=2; submit b/b1 --on n=1");
    w.run("slow; wait 60000");
    expect![[r#"
        a1 E101 stopped so that b/b2 gets its quota: a held 1 GPU (quota 0, fair share 0); b held 2 GPUs (quota 4, fair share 3) and asked for 1; 1 min had passed since its last start and no checkpoint was reported
        a2 E101 stopped so that b/b2 gets its quota: a held 1 GPU (quota 0, fair share 0); b held 2 GPUs (quota 4, fair share 3) and asked for 1; 1 min had passed since its last start and no checkpoint was reported
        b2 E104 grown back from 1 to 2 GPUs, within the quota of its project
    "#]].assert_eq(&w.stopped());
}

/// `c` is above its share only with `low`, and `y` lacks cores, which `high` has; but `high` is not
/// the surplus. It used to be taken, came back, and so on for ever.
#[test]
fn the_surplus_of_a_queue_is_its_least_important_work() {
    let mut w = World::new("n1:3:2 n2:0:100", "");
    for (name, gpus, weight) in [("a", 0, 1), ("c", 1, 0)] {
        let quota = Resources { gpu_millis: gpus * 1000, ..Resources::UNLIMITED };
        let over_quota_weight = model::Weights::all(weight);
        let share = model::Share::new(quota, Resources::UNLIMITED);
        w.queue(name, None, model::Share { over_quota_weight, ..share });
    }
    w.run("submit a/x --cpu 1; submit c/high -g 0.3 --cpu 1 --priority 120; submit c/low");
    w.run("submit a/y --cpu 1");
    assert_eq!((w.waiting().as_str(), w.stopped().as_str()), ("y", ""));
}

/// A share with a quota of `gpus` GPUs, and this weight for the rest.
fn share(gpus: u64, weight: u64) -> Share {
    let quota = Resources { gpu_millis: gpus * 1000, ..Resources::UNLIMITED };
    Share { over_quota_weight: Weights::all(weight), ..Share::new(quota, Resources::UNLIMITED) }
}

#[test]
fn who_could_not_lose_at_first_may_when_the_takers_department_has_less() {
    let mut w = World::new("n1:2 n2:1", "unused");
    let above = w.queue("above", None, share(2, 1));
    w.queue("a", Some(above), share(2, 1));
    w.queue("sibling", Some(above), share(0, 1));
    let beside = w.queue("beside", None, share(0, 0));
    w.queue("b", Some(beside), share(0, 0));
    w.run("submit sibling/large -g 2; submit b/small -g 1");
    assert_eq!(w.gpus(), "n1[large large] n2[small]");
    // `small` is the cheapest, but only without `large` is the gang's department within its quota.
    w.run("submit a/gang --pods 2 -g 1 --label app=gang --apart app=gang");
    // It has another place then.
    assert_eq!(w.gpus(), "n1[gang small] n2[gang]", "{}", w.why("gang"));
}

#[test]
fn that_a_queue_keeps_its_important_work_says_nothing_of_the_rest() {
    let mut w = World::new("n1:3 n2:3 n3:1", "unused");
    w.queue("a", None, share(0, 1));
    w.queue("b", None, share(2, 0));
    w.queue("c", None, share(0, 0));
    w.run("label n1 n=1; label n2 n=2; label n3 n=3");
    w.run("submit c/least -g 1 --on n=3; submit c/dear -g 1 --priority 90 --on n=1");
    w.run("submit b/low -g 2 --on n=1; submit b/high -g 2 --priority 80 --on n=2");
    w.run("submit a/job -g 3");
    assert_eq!(w.gpus(), "n1[job job job] n2[high high .] n3[least]", "{}", w.why("job"));
}
