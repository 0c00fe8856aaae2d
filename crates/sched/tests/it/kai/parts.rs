//! Jobs of several parts (§6.4, §10, §14, §20): pod sets, groups, and minima of groups.

use testkit::Table;

use super::after;

#[test]
fn every_pod_set_starts_with_its_minimum_or_none_does() {
    let jobs = "q/g --set a --pods 2 --min 1 --set b --pods 2";
    assert_eq!(after("n1:3", "q:9", jobs, "allocate"), "g n1 . n1 n1");
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "g . . . .");
    assert_eq!(after("n1:4", "q:9", jobs, "allocate"), "g n1 n1 n1 n1");
}

#[test]
fn growth_goes_to_the_pod_set_with_the_fewest_for_its_minimum_then_by_name() {
    let jobs = "q/g --set b --pods 4 --min 2 --set a --pods 4 --min 2";
    assert_eq!(after("n1:5", "q:9", jobs, "allocate"), "g n1 n1 . . n1 n1 n1 .");
    // 3 of 2 is more than 2 of 2, 2 of 1 more than 3 of 2.
    let jobs = "q/g --set a --pods 4 --min 2 --set b --pods 4 --min 1 @n1 @n1 . . @n1 @n1";
    assert_eq!(after("n1:6", "q:9", jobs, "allocate"), "g n1 n1 n1 n1 n1 n1 . .");
}

#[test]
fn pod_sets_go_by_name_and_by_priority_before_that() {
    // The first pod gets n1. The test output has b, then a.
    let jobs = "q/r @n1\nq/g --set b -g 1 --set a -g 1";
    assert_eq!(after("n1:2 n2:1", "q:9", jobs, "allocate"), "r n1 | g n2 n1");
    let jobs = "q/r @n1\nq/g --set b -g 1 --task-priority 5 --set a -g 1";
    assert_eq!(after("n1:2 n2:1", "q:9", jobs, "allocate"), "r n1 | g n1 n2");
}

#[test]
fn a_job_may_do_without_some_of_its_parts() {
    let jobs = "q/g --min 2 --set a --pods 2 --set b --pods 2 --set c --pods 2";
    assert_eq!(after("n1:5", "q:9", jobs, "allocate"), "g n1 n1 n1 n1 . .");
    assert_eq!(after("n1:6", "q:9", jobs, "allocate"), "g n1 n1 n1 n1 n1 n1");
    assert_eq!(after("n1:3", "q:9", jobs, "allocate"), "g . . . . . .");
}

#[test]
fn a_group_may_do_without_some_of_its_parts() {
    let jobs = "q/g --group w --min 1 --set a --in w --pods 2 --set b --in w --pods 2 --set c";
    assert_eq!(after("n1:3", "q:9", jobs, "allocate"), "g n1 n1 . . n1");
    assert_eq!(after("n1:5", "q:9", jobs, "allocate"), "g n1 n1 n1 n1 n1");
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "g . . . . .");
}

#[test]
fn a_part_that_is_not_needed_waits_behind_jobs_below_their_minimum() {
    let jobs = "q/g --min 1 --set a --pods 2 --set b --pods 2\nq/p -g 2";
    assert_eq!(after("n1:4", "q:9", jobs, "allocate"), "g n1 n1 . . | p n1");
}

#[test]
fn a_part_that_is_not_needed_goes_first_and_as_a_whole() {
    let jobs = "q/g --priority 40 --min 1 --set a --pods 2 --set b --pods 2 @n1 @n1 @n1 @n1\nq/p";
    assert_eq!(after("n1:4", "q:9", jobs, "preempt"), "g n1 n1 n1! n1! | p >n1");
    let jobs = "q/g --priority 40 --set a --pods 2 --set b --pods 2 @n1 @n1 @n1 @n1\nq/p";
    assert_eq!(after("n1:4", "q:9", jobs, "preempt"), "g n1! n1! n1! n1! | p >n1");
}

#[test]
fn tasks_above_the_minimum_of_a_set_go_before_parts() {
    let sets = "--min 1 --set a --pods 2 --min 1 --set b --pods 2";
    let jobs = format!("q/g --priority 40 {sets} @n1 @n1 @n1 @n1\nq/p");
    assert_eq!(after("n1:4", "q:9", &jobs, "preempt"), "g n1 n1! n1 n1 | p >n1");
}

#[test]
fn of_pod_sets_above_their_minimum_the_worst_loses_its_last_task() {
    let sets = "--set a --pods 3 --min 1 --set b --pods 3 --min 2";
    let jobs = format!("q/g --priority 40 {sets} @n1 @n1 @n1 @n1 @n1 @n1\nq/p");
    assert_eq!(after("n1:6", "q:9", &jobs, "preempt"), "g n1 n1 n1! n1 n1 n1 | p >n1");
}

#[test]
fn reclaim_takes_parts_that_are_not_needed_step_by_step() {
    // a has 6 GPUs with a quota of 2: three steps of two, of which the last would be its minimum.
    let sets = "--min 1 --set a --pods 2 --set b --pods 2 --set c --pods 2";
    let jobs = format!("a/g {sets} @n1 @n1 @n1 @n1 @n1 @n1\nb/p -g 4");
    assert_eq!(after("n1:6", "a:2 b:4", &jobs, "reclaim"), "g n1 n1 n1! n1! n1! n1! | p >n1");
    // Within its quota after the first step: the second is not allowed.
    assert_eq!(after("n1:6", "a:4 b:4", &jobs, "reclaim"), "g n1 n1 n1 n1 n1 n1 | p .");
}

#[test]
fn a_guaranteed_run_time_protects_the_minimum_of_the_parts() {
    let sets = "--min 1 --set a --pods 2 --set b --pods 2";
    let jobs = format!("q/g --priority 40 {sets} ^5000 @n1 @n1 @n1 @n1\nq/p -g 2");
    assert_eq!(after("n1:4", "q:9,t9000", &jobs, "preempt"), "g n1 n1 n1! n1! | p >n1");
    let jobs = format!("q/g --priority 40 {sets} ^5000 @n1 @n1 @n1 @n1\nq/p -g 3");
    assert_eq!(after("n1:4", "q:9,t9000", &jobs, "preempt"), "g n1 n1 n1 n1 | p .");
}

#[test]
fn a_job_with_as_many_parts_as_it_needs_is_not_stale() {
    let sets = "--min 1 --set a --pods 2 --set b --pods 2";
    let mut t = Table::new("n1:4", "q:9", &format!("q/g {sets} @n1 @n1 x x"));
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1 n1 x x");
    let mut t = Table::new("n1:4", "q:9", &format!("q/g {sets} @n1 x x x"));
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1! x x x");
}

#[test]
fn tasks_that_ask_differently_are_parts_of_one_task() {
    let sets = "--min 2 --set a -g 2 --set b -g 1 --set c -g 1";
    assert_eq!(after("n1:3", "q:9", &format!("q/g {sets}"), "allocate"), "g n1 n1 .");
    assert_eq!(after("n1:4", "q:9", &format!("q/g {sets}"), "allocate"), "g n1 n1 n1");
    assert_eq!(after("n1:2", "q:9", &format!("q/g {sets}"), "allocate"), "g . . .");
}

#[test]
fn a_victim_that_lost_a_task_for_good_is_not_placed_again() {
    let jobs = "q/g --pods 2 --priority 40 @n1 x\nq/p -g 2";
    assert_eq!(after("n1:2 n2:1", "q:9", jobs, "preempt"), "g n1! x | p >n1");
}

#[test]
fn parts_of_higher_task_priority_start_first_and_go_last() {
    let sets = "--priority 40 --min 1 --set a --set b --task-priority 5 --set c --task-priority 9";
    assert_eq!(after("n1:2", "q:9", &format!("q/g {sets}"), "allocate"), "g . n1 n1");
    let jobs = format!("q/g {sets} . @n1 @n1\nq/p");
    assert_eq!(after("n1:2", "q:9", &jobs, "preempt"), "g . n1! n1 | p >n1");
}
