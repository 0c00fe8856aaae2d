//! Reclaim (§15): between queues, by the two strategies and within the boundaries.

use sched::{Kai, Profile, RuntimeFrom};
use testkit::Table;

use super::after;

#[test]
fn a_queue_under_its_quota_takes_from_one_over_its_own() {
    let jobs = "a/r @n1\na/t @n1\nb/p";
    assert_eq!(after("n1:2", "a:1 b:1", jobs, "reclaim"), "r n1 | t n1! | p >n1");
}

#[test]
fn not_from_one_within_its_quota() {
    assert_eq!(after("n1:2", "a:2 b:1", "a/r @n1\na/t @n1\nb/p", "reclaim"), "r n1 | t n1 | p .");
}

#[test]
fn not_from_what_is_not_preemptible() {
    let jobs = "a/r --interactive @n1\na/t --interactive @n1\nb/p";
    assert_eq!(after("n1:2", "a:1 b:1", jobs, "reclaim"), "r n1 | t n1 | p .");
}

#[test]
fn not_beyond_its_own_fair_share() {
    let jobs = "a/r @n1\na/t @n1\nb/p -g 2";
    assert_eq!(after("n1:2", "a:1 b:1", jobs, "reclaim"), "r n1 | t n1 | p .");
}

#[test]
fn over_quota_work_is_shared_by_weight() {
    // There is no quota: of four GPUs each is entitled to two.
    let jobs = "a/r @n1\na/t @n1\na/u @n1\na/v @n1\nb/p --pods 2";
    let told = after("n1:4", "a:0 b:0", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1! | v n1! | p >n1 >n1");
}

#[test]
fn a_gang_that_would_need_more_than_the_fair_share_gets_nothing() {
    let jobs = "a/r @n1\na/t @n1\na/u @n1\na/v @n1\nb/p --pods 3";
    let told = after("n1:4", "a:0 b:0", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1 | v n1 | p . . .");
}

#[test]
fn a_large_job_over_its_queues_quota_goes_even_if_the_queue_falls_below() {
    // Before the step a holds 4 > 1.
    let jobs = "a/r -g 4 @n1\nb/p";
    assert_eq!(after("n1:4", "a:1 b:1", jobs, "reclaim"), "r n1! | p >n1");
}

#[test]
fn the_queue_furthest_above_its_share_is_asked_first() {
    let jobs = "a/r @n1\na/t @n1\nb/u @n1\nb/v @n1\nb/w @n1\nc/p";
    let told = after("n1:5", "a:1 b:1 c:1", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1 | v n1 | w n1! | p >n1");
}

#[test]
fn in_a_queue_the_lowest_priority_then_the_youngest_is_asked_first() {
    let jobs = "a/r --priority 30 @n1\na/t @n1\nb/p";
    assert_eq!(after("n1:2", "a:1 b:1", jobs, "reclaim"), "r n1! | t n1 | p >n1");
}

#[test]
fn queues_of_lower_priority_are_asked_first() {
    let jobs = "a/r @n1\na/t @n1\nb/u @n1\nb/v @n1\nc/p";
    let told = after("n1:4", "a:1 b:1,p200 c:1", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1! | u n1 | v n1 | p >n1");
    let told = after("n1:4", "a:1,p200 b:1 c:1", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1 | v n1! | p >n1");
}

#[test]
fn elastic_tasks_go_one_by_one_before_the_core() {
    let jobs = "a/e --pods 4 --min 2 @n1 @n1 @n1 @n1\nb/p";
    assert_eq!(after("n1:4", "a:2 b:2", jobs, "reclaim"), "e n1 n1 n1 n1! | p >n1");
    let jobs = "a/e --pods 4 --min 2 @n1 @n1 @n1 @n1\nb/p -g 2";
    assert_eq!(after("n1:4", "a:2 b:2", jobs, "reclaim"), "e n1 n1 n1! n1! | p >n1");
}

#[test]
fn non_preemptible_work_reclaims_within_quota_only() {
    let jobs = "a/r @n1\na/t @n1\nb/i --interactive";
    assert_eq!(after("n1:2", "a:1 b:1", jobs, "reclaim"), "r n1 | t n1! | i >n1");
    let jobs = "a/r @n1\na/t @n1\na/u @n1\na/v @n1\nb/i --interactive";
    let told = after("n1:4", "a:0 b:0", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1 | v n1 | i .");
}

#[test]
fn the_quota_of_departments_decides_between_departments() {
    // b is far over its own quota, but its department is not.
    let queues = "d:1 e:3 d/a:1 e/b:0 e/c:0";
    let jobs = "b/r @n1\nb/t @n1\nb/u @n1\na/p";
    let told = after("n1:3", queues, jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1 | p .");
    let queues = "d:1 e:2 d/a:1 e/b:0 e/c:0";
    assert_eq!(after("n1:3", queues, jobs, "reclaim"), "r n1 | t n1 | u n1! | p >n1");
}

#[test]
fn inside_a_department_its_projects_decide() {
    let queues = "d:3 d/a:1 d/b:1";
    let jobs = "b/r @n1\nb/t @n1\nb/u @n1\na/p";
    assert_eq!(after("n1:3", queues, jobs, "reclaim"), "r n1 | t n1 | u n1! | p >n1");
}

#[test]
fn a_department_does_not_push_itself_above_the_sibling_it_takes_from() {
    // a is under its quota; its department is not, and neither of the two may lose anything.
    let jobs = "c/x @n1\nb/r @n1\na/p";
    let queues = "d:1 e:1 d/a:1 d/c:1 e/b:0";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "x n1 | r n1 | p .");
    // Its own department has a project over quota.
    let queues = "d:1 e:1 d/a:1 d/c:0 e/b:0";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "x n1! | r n1 | p >n1");
}

#[test]
fn a_victim_that_fits_elsewhere_moves_and_counts_as_nothing_taken() {
    // a is within its quota: its job may not be evicted, but it may be moved.
    let jobs = "a/r @n1\nb/p -g 2";
    assert_eq!(after("n1:2 n2:1", "a:1 b:2", jobs, "reclaim"), "r n1>n2 | p >n1");
    let mut t = Table::new("n1:2 n2:1", "a:1 b:2", jobs);
    t.policy.profile = Profile::Kai(Kai { consolidating_reclaim: false, ..Kai::default() });
    assert_eq!(t.run("reclaim"), "r n1 | p .");
}

#[test]
fn a_guaranteed_run_time_protects_from_reclaim() {
    let jobs = "a/r ^5000 @n1\na/t ^5000 @n1\nb/p";
    assert_eq!(after("n1:2", "a:1,r9000 b:1", jobs, "reclaim"), "r n1 | t n1 | p .");
    assert_eq!(after("n1:2", "a:1,r5000 b:1", jobs, "reclaim"), "r n1 | t n1! | p >n1");
    // The guarantee of the taker's queue does not matter.
    assert_eq!(after("n1:2", "a:1 b:1,r9000", jobs, "reclaim"), "r n1 | t n1! | p >n1");
}

#[test]
fn run_time_is_guaranteed_by_the_branch_of_the_victim_or_by_its_queue() {
    // Seen from another department, department d decides, not project a.
    let queues = "d:1 e:1 d/a:1,r9000 e/b:1";
    let jobs = "a/r ^5000 @n1\na/t ^5000 @n1\nb/p";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "r n1 | t n1! | p >n1");
    let mut t = Table::new("n1:2", queues, jobs);
    t.policy.profile = Profile::Kai(Kai { runtime_from: RuntimeFrom::Leaf, ..Kai::default() });
    assert_eq!(t.run("reclaim"), "r n1 | t n1 | p .");
    let queues = "d:1,r9000 e:1 d/a:1 e/b:1";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "r n1 | t n1 | p .");
    // Inside one department its project decides, then the department.
    let queues = "d:2,r9000 d/a:1,r1 d/b:1";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "r n1 | t n1! | p >n1");
    let queues = "d:2,r9000 d/a:1 d/b:1";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "r n1 | t n1 | p .");
}

#[test]
fn a_queue_may_say_that_it_guarantees_nothing() {
    let jobs = "a/r ^5000 @n1\na/t ^5000 @n1\nb/p";
    let queues = "d:2,r9000 d/a:1,r0 d/b:1";
    assert_eq!(after("n1:2", queues, jobs, "reclaim"), "r n1 | t n1! | p >n1");
}

#[test]
fn where_no_queue_says_anything_the_usual_run_time_protects() {
    let jobs = "a/r ^5000 @n1\na/t ^5000 @n1\nb/p";
    let mut t = Table::new("n1:2", "a:1 b:1", jobs);
    t.policy.reclaim_min_runtime_ms = 9000;
    assert_eq!(t.run("reclaim"), "r n1 | t n1 | p .");
    let mut t = Table::new("n1:2", "a:1,r5000 b:1", jobs);
    t.policy.reclaim_min_runtime_ms = 9000;
    assert_eq!(t.run("reclaim"), "r n1 | t n1! | p >n1");
}

#[test]
fn a_guaranteed_run_time_protects_the_minimum_of_an_elastic_victim_only() {
    let jobs = "a/e --pods 2 --min 1 ^5000 @n1 @n1\nb/p";
    assert_eq!(after("n1:2", "a:1,r9000 b:1", jobs, "reclaim"), "e n1 n1! | p >n1");
    let jobs = "a/e --pods 2 --min 1 ^5000 @n1 @n1\nb/p -g 2";
    assert_eq!(after("n1:2", "a:0,r9000 b:2", jobs, "reclaim"), "e n1 n1 | p .");
}

#[test]
fn an_unlimited_quota_is_never_over_it() {
    assert_eq!(after("n1:2", "a:- b:1", "a/r @n1\na/t @n1\nb/p", "reclaim"), "r n1 | t n1 | p .");
}

#[test]
fn cpu_is_reclaimed_like_gpus() {
    let jobs = "a/r -g 0 --cpu 50 @n1\na/t -g 0 --cpu 50 @n1\nb/p -g 0 --cpu 50";
    let told = after("n1:0", "a:0,c50 b:0,c50", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1! | p >n1");
}

#[test]
fn the_gate_looks_at_every_resource() {
    // b is entitled to the GPU, but holds more CPU than its share.
    let jobs = "a/r @n1\na/t @n1\nb/x -g 0 --cpu 60 @n2\nb/p";
    let told = after("n1:2:10 n2:0:60", "a:1 b:1,c50,w0", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | x n2 | p .");
}

#[test]
fn each_job_asks_once_per_action() {
    // One task more each time, not all at once.
    let jobs = "a/r @n1\na/t @n1\na/u @n1\na/v @n1\nb/e --pods 2 --min 1";
    let told = after("n1:4", "a:2 b:2", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1 | u n1 | v n1! | e >n1 .");
}

#[test]
fn what_was_evicted_is_not_tried_again_in_the_same_cycle() {
    let jobs = "a/r @n1\na/t @n1\nb/p\na/h --priority 60 --pods 9";
    let told = after("n1:2", "a:1 b:1", jobs, "reclaim preempt");
    assert_eq!(told, "r n1 | t n1! | p >n1 | h . . . . . . . . .");
}

#[test]
fn a_scenario_that_is_unjust_ends_there_and_the_next_victim_is_added() {
    // The youngest of a is within its quota; b is over.
    let jobs = "b/u @n2\nb/v @n2\na/r @n1\nc/p";
    let told = after("n1:1 n2:2", "a:1 b:1 c:1", jobs, "reclaim");
    assert_eq!(told, "u n2 | v n2! | r n1 | p >n2");
}

#[test]
fn a_gang_takes_from_several_queues() {
    let jobs = "a/r @n1\na/t @n1\nb/u @n2\nb/v @n2\nc/p --pods 2";
    let told = after("n1:2 n2:2", "a:1 b:1 c:2", jobs, "reclaim");
    assert_eq!(told, "r n1 | t n1! | u n2 | v n2! | p >n1 >n2");
}

#[test]
fn the_multiplier_keeps_a_distance() {
    // a would come to 3 of 3 and is not above: the multiplier does not matter.
    let jobs = "a/r -g 3 @n1\na/t -g 2 @n1\nb/p";
    let mut t = Table::new("n1:5", "a:0 b:0", jobs);
    t.policy.profile = Profile::Kai(Kai { saturation_millis: 9000, ..Kai::default() });
    assert_eq!(t.run("reclaim"), "r n1 | t n1! | p >n1");
}

/// Projects a and c of department d, b of e; d is at its fair share without a, e is above.
fn two_departments(of_b: usize, e: &str, saturation_millis: u64) -> String {
    let jobs = (0..of_b).map(|_| "b/w @n1\n").collect::<String>();
    let queues = format!("d:1,w0 e:{e},w0 d/a:1 d/c:0 e/b:0");
    let nodes = format!("n1:{}", of_b + 1);
    let mut t = Table::new(&nodes, &queues, &format!("{jobs}c/x --interactive @n1\na/p"));
    t.policy.profile = Profile::Kai(Kai { saturation_millis, ..Kai::default() });
    t.run("reclaim")
}

#[test]
fn a_department_above_its_share_takes_only_from_one_further_above_its_own() {
    // d would hold 2 of 1, e still 3 of 1.
    assert_eq!(two_departments(4, "1", 1000), "w n1 | w n1 | w n1 | w n1! | x n1 | p >n1");
    // Equally far above is too far.
    assert_eq!(two_departments(3, "1", 1000), "w n1 | w n1 | w n1 | x n1 | p .");
    // A sibling without a share does not count.
    assert_eq!(two_departments(2, "0", 1000), "w n1 | w n1! | x n1 | p >n1");
}

#[test]
fn the_multiplier_widens_that_distance() {
    // Twice 2 is more than 3, and no more than 5.
    assert_eq!(two_departments(4, "1", 2000), "w n1 | w n1 | w n1 | w n1 | x n1 | p .");
    let told = "w n1 | w n1 | w n1 | w n1 | w n1 | w n1! | x n1 | p >n1";
    assert_eq!(two_departments(6, "1", 2000), told);
}

#[test]
fn a_quota_is_taken_back_for_gpu_memory() {
    assert_eq!(after("n1:1", "a:0 b:1", "a/v @n1\nb/p --mem 8GiB", "reclaim"), "v n1! | p >n1#0");
}

#[test]
fn what_it_took_back_may_go_to_a_more_important_one_of_its_queue_in_the_same_cycle() {
    let jobs = "b/r -g 2 @n1\nc/v -g 2 @n1\nb/p -g 2\nb/q -g 0.5 --priority 30";
    assert_eq!(after("n1:4", "b:3 c:1", jobs, "reclaim"), "r n1 | v n1! | p . | q >n1#2");
    assert_eq!(after("n1:4", "b:3 c:1", jobs, "reclaim preempt"), "r n1 | v n1! | p >n1 | q .");
}
