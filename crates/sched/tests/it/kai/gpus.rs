//! Sharing of GPUs (§12).

use model::Fill;
use sched::Placement;
use testkit::Table;

use super::after;

#[test]
fn a_shared_gpu_with_room_comes_before_a_whole_one_anywhere() {
    let jobs = "q/r -g 0.5 @n2\nq/w @n1\nq/p -g 0.5";
    assert_eq!(after("n1:2 n2:4", "q:9", jobs, "allocate"), "r n2#0 | w n1 | p n2#0");
}

#[test]
fn a_shared_gpu_without_room_opens_another() {
    let jobs = "q/r -g 0.6 @n1\nq/p -g 0.5";
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "r n1#0 | p n1#1");
    assert_eq!(after("n1:1", "q:9", jobs, "allocate"), "r n1#0 | p .");
}

#[test]
fn the_fullest_shared_gpu_goes_first() {
    let jobs = "q/r -g 0.3 @n1#0\nq/t -g 0.6 @n1#1\nq/p -g 0.4";
    assert_eq!(after("n1:3", "q:9", jobs, "allocate"), "r n1#0 | t n1#1 | p n1#1");
    let mut t = Table::new("n1:3", "q:9", jobs);
    t.policy.placement = Placement::all(Fill::Spread);
    assert_eq!(t.run("allocate"), "r n1#0 | t n1#1 | p n1#2");
}

#[test]
fn whole_tasks_leave_shared_gpus_alone() {
    assert_eq!(after("n1:2", "q:9", "q/r -g 0.1 @n1\nq/p -g 2", "allocate"), "r n1#0 | p .");
}

#[test]
fn the_fullest_gpu_is_taken_though_it_has_to_wait() {
    // In use are 0.8 of GPU 0, 0.5 of it being released, and 0.2 of GPU 1.
    let jobs = "q/r -g 0.5 !n1#0\nq/t -g 0.3 @n1#0\nq/u -g 0.2 @n1#1\nq/p -g 0.5";
    let told = after("n1:2", "q:9", jobs, "allocate");
    assert_eq!(told, "r n1#0! | t n1#0 | u n1#1 | p >n1#0");
}

#[test]
fn a_shared_gpu_of_which_all_is_released_is_a_whole_one() {
    let jobs = "q/r -g 0.5 !n1\nq/p";
    assert_eq!(after("n1:1", "q:9", jobs, "allocate"), "r n1#0! | p >n1");
    let jobs = "q/r -g 0.5 !n1\nq/p -g 0.5\nq/s -g 0.5\nq/t -g 0.5";
    let told = after("n1:1", "q:9", jobs, "allocate");
    assert_eq!(told, "r n1#0! | p >n1#0 | s >n1#0 | t .");
}

#[test]
fn a_shared_gpu_of_which_something_stays_is_not() {
    let jobs = "q/r -g 0.5 !n1#0\nq/t -g 0.1 @n1#0\nq/p";
    assert_eq!(after("n1:1", "q:9", jobs, "allocate"), "r n1#0! | t n1#0 | p .");
}

#[test]
fn several_devices_of_one_share_are_different_ones() {
    let jobs = "q/p --devices 2 -g 0.5\nq/s --devices 2 -g 0.5\nq/t -g 0.5";
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "p n1#0#1 | s n1#0#1 | t .");
    assert_eq!(after("n1:1", "q:9", "q/p --devices 2 -g 0.5", "allocate"), "p .");
}

#[test]
fn one_of_several_devices_that_waits_makes_the_task_wait() {
    let jobs = "q/r !n1#0\nq/p --devices 2 -g 0.5";
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "r n1! | p >n1#0#1");
}

#[test]
fn gpu_memory_is_a_share_of_the_device() {
    // A GPU has 10,000 MiB.
    let jobs = "q/p --mem 5000MiB\nq/s --mem 5000MiB\nq/t --mem 1MiB";
    assert_eq!(after("n1:1", "q:9", jobs, "allocate"), "p n1#0 | s n1#0 | t .");
    assert_eq!(after("n1:1", "q:9", "q/p --mem 10001MiB", "allocate"), "p .");
}

#[test]
fn pending_gpu_memory_counts_as_no_gpu_against_a_limit_until_it_has_a_node() {
    // 51 % of a GPU exceeds the limit of half a GPU, 50 % does not.
    assert_eq!(after("n1:1", "q:0:0.5", "q/p --mem 5000MiB", "allocate"), "p n1#0");
    assert_eq!(after("n1:1", "q:0:0.5", "q/p --mem 5001MiB", "allocate"), "p .");
    // The number of devices does not count, as described (§9).
    let jobs = "q/p --mem 5000MiB --devices 2";
    assert_eq!(after("n1:2", "q:0:0.5", jobs, "allocate"), "p n1#0#1");
}

#[test]
fn a_gpu_shared_for_the_first_time_needs_a_second_pod_slot() {
    assert_eq!(after("n1:1:9:1", "q:9", "q/p -g 0.5", "allocate"), "p .");
    assert_eq!(after("n1:1:9:2", "q:9", "q/p -g 0.5", "allocate"), "p n1#0");
    assert_eq!(after("n1:1:9:1", "q:9", "q/p", "allocate"), "p n1");
}

#[test]
fn shares_count_against_quota_and_limit_as_parts() {
    let jobs = "q/p -g 0.5\nq/s -g 0.5\nq/t -g 0.5";
    assert_eq!(after("n1:4", "q:1:1", jobs, "allocate"), "p n1#0 | s n1#0 | t .");
}

#[test]
fn a_gang_of_shares_waits_as_a_whole() {
    let jobs = "q/r -g 0.7 !n1\nq/g -g 0.6 --pods 2";
    assert_eq!(after("n1:1 n2:1", "q:9", jobs, "allocate"), "r n1#0! | g >n2#0 >n1#0");
}

#[test]
fn of_whole_gpus_an_idle_one_is_shared_before_one_that_is_being_released() {
    assert_eq!(after("n1:2", "q:9", "q/r !n1#0\nq/p -g 0.5", "allocate"), "r n1! | p n1#1");
    let jobs = "q/r !n1#0\nq/p -g 0.5 --devices 2\nq/s";
    assert_eq!(after("n1:3", "q:9", jobs, "allocate"), "r n1! | p n1#1#2 | s >n1");
}

#[test]
fn a_shared_gpu_that_waits_leaves_the_idle_one_to_others() {
    // p waits for CPU, so it also waits for the GPU that is being released.
    let jobs = "q/r --cpu 100 !n1#0\nq/p -g 0.5 --cpu 1\nq/s";
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "r n1! | p >n1#0 | s n1");
}

#[test]
fn a_victim_keeps_its_share_while_a_whole_gpu_is_taken_beside_it() {
    let jobs = "q/r -g 0.5 --priority 40 @n1#0\nq/t --priority 40 @n1#1\nq/p";
    assert_eq!(after("n1:2", "q:9", jobs, "preempt"), "r n1#0 | t n1! | p >n1");
}
