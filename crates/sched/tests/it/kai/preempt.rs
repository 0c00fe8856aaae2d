//! Preempt (§16): within a queue, strictly lower priority.

use testkit::Table;

use super::after;

#[test]
fn takes_from_a_lower_priority_of_the_same_queue() {
    let jobs = "q/r @n1\nq/p --priority 60";
    assert_eq!(after("n1:1", "q:1", jobs, "preempt"), "r n1! | p >n1");
}

#[test]
fn never_from_an_equal_or_higher_one() {
    assert_eq!(after("n1:1", "q:1", "q/r @n1\nq/p", "preempt"), "r n1 | p .");
    let jobs = "q/r --priority 70 @n1\nq/p --priority 60";
    assert_eq!(after("n1:1", "q:1", jobs, "preempt"), "r n1 | p .");
}

#[test]
fn never_from_another_queue() {
    let jobs = "q/r @n1\no/p --priority 60";
    assert_eq!(after("n1:1", "q:1 o:1", jobs, "preempt"), "r n1 | p .");
}

#[test]
fn never_from_what_is_not_preemptible() {
    let jobs = "q/r --interactive --priority 10 @n1\nq/p --priority 60";
    assert_eq!(after("n1:1", "q:1", jobs, "preempt"), "r n1 | p .");
}

#[test]
fn non_preemptible_work_preempts_within_the_quota_only() {
    let jobs = "q/r @n1\nq/i --interactive";
    assert_eq!(after("n1:1", "q:1", jobs, "preempt"), "r n1! | i >n1");
    assert_eq!(after("n1:1", "q:0", jobs, "preempt"), "r n1 | i .");
}

#[test]
fn preemptible_work_preempts_over_quota_too() {
    assert_eq!(after("n1:1", "q:0", "q/r @n1\nq/p --priority 60", "preempt"), "r n1! | p >n1");
}

#[test]
fn the_lowest_priority_goes_first_then_the_youngest() {
    let jobs = "q/r --priority 40 @n1\nq/t --priority 30 @n1\nq/u --priority 40 @n1\nq/p";
    assert_eq!(after("n1:3", "q:9", jobs, "preempt"), "r n1 | t n1! | u n1 | p >n1");
    let jobs = "q/r --priority 40 @n1\nq/t --priority 40 @n1\nq/p";
    assert_eq!(after("n1:2", "q:9", jobs, "preempt"), "r n1 | t n1! | p >n1");
}

#[test]
fn only_tasks_above_the_minimum_go_if_that_will_do() {
    let jobs = "q/e --pods 3 --min 1 --priority 40 @n1 @n1 @n1\nq/p";
    assert_eq!(after("n1:3", "q:9", jobs, "preempt"), "e n1 n1 n1! | p >n1");
    let jobs = "q/e --pods 3 --min 1 --priority 40 @n1 @n1 @n1\nq/p -g 2";
    assert_eq!(after("n1:3", "q:9", jobs, "preempt"), "e n1 n1! n1! | p >n1");
    let jobs = "q/e --pods 3 --min 1 --priority 40 @n1 @n1 @n1\nq/p -g 3";
    assert_eq!(after("n1:3", "q:9", jobs, "preempt"), "e n1! n1! n1! | p >n1");
}

#[test]
fn a_gang_at_its_minimum_goes_as_a_whole() {
    let jobs = "q/g --pods 2 --priority 40 @n1 @n2\nq/p";
    assert_eq!(after("n1:1 n2:1", "q:9", jobs, "preempt"), "g n1! n2! | p >n1");
}

#[test]
fn a_victim_that_fits_elsewhere_moves() {
    let jobs = "q/r -g 1 --priority 40 @n1\nq/p -g 2";
    let told = after("n1:2 n2:1", "q:9", jobs, "preempt");
    assert_eq!(told, "r n1>n2 | p >n1");
}

#[test]
fn a_victim_that_still_fits_where_it_is_stays() {
    // Both are tried as victims; one is enough.
    let jobs = "q/r -g 2 --priority 40 @n1\nq/t -g 1 --priority 30 @n1\nq/p -g 2";
    assert_eq!(after("n1:3", "q:9", jobs, "preempt"), "r n1! | t n1 | p >n1");
}

#[test]
fn victims_are_asked_until_one_node_has_room() {
    let jobs = "q/r --priority 40 @n1\nq/t --priority 40 @n2\nq/u --priority 40 @n1\nq/p -g 2";
    // u and t, the youngest, are on different nodes; with r node n1 has room.
    let told = after("n1:2 n2:1", "q:9", jobs, "preempt");
    assert_eq!(told, "r n1! | t n2 | u n1! | p >n1");
}

#[test]
fn a_gang_grows_task_by_task_over_several_nodes() {
    let jobs = "q/r --priority 40 @n1\nq/t --priority 40 @n2\nq/g --pods 2";
    assert_eq!(after("n1:1 n2:1", "q:9", jobs, "preempt"), "r n1! | t n2! | g >n1 >n2");
}

#[test]
fn nothing_is_stopped_if_the_gang_does_not_fit_as_a_whole() {
    let jobs = "q/r --priority 40 @n1\nq/t --priority 60 @n2\nq/g --pods 2";
    assert_eq!(after("n1:1 n2:1", "q:9", jobs, "preempt"), "r n1 | t n2 | g . .");
}

#[test]
fn preempting_makes_room_under_the_limit_of_the_queue() {
    let jobs = "q/r @n1\nq/p --priority 60";
    assert_eq!(after("n1:4", "q:1:1", jobs, "preempt"), "r n1! | p >n1");
}

#[test]
fn a_guaranteed_run_time_protects() {
    let jobs = "q/r ^5000 @n1\nq/p --priority 60";
    assert_eq!(after("n1:1", "q:1,t9000", jobs, "preempt"), "r n1 | p .");
    assert_eq!(after("n1:1", "q:1,t5000", jobs, "preempt"), "r n1! | p >n1");
    // The guarantee of the department counts where the queue sets none.
    assert_eq!(after("n1:1", "d:1,t9000 d/q:1", jobs, "preempt"), "r n1 | p .");
}

#[test]
fn a_queue_may_say_that_it_guarantees_nothing() {
    let jobs = "q/r ^5000 @n1\nq/p --priority 60";
    assert_eq!(after("n1:1", "d:1,t9000 d/q:1,t0", jobs, "preempt"), "r n1! | p >n1");
}

#[test]
fn where_no_queue_says_anything_the_usual_run_time_protects() {
    let mut t = Table::new("n1:1", "q:1", "q/r ^5000 @n1\nq/p --priority 60");
    t.policy.preempt_min_runtime_ms = 9000;
    assert_eq!(t.run("preempt"), "r n1 | p .");
    assert_eq!(t.plan.wake_at, Some(t.now.plus_ms(3999)));
    let mut t = Table::new("n1:1", "q:1,t5000", "q/r ^5000 @n1\nq/p --priority 60");
    t.policy.preempt_min_runtime_ms = 9000;
    assert_eq!(t.run("preempt"), "r n1! | p >n1");
}

#[test]
fn a_guaranteed_run_time_protects_the_minimum_only() {
    let jobs = "q/e --pods 2 --min 1 ^5000 @n1 @n1\nq/p --priority 60";
    assert_eq!(after("n1:2", "q:9,t9000", jobs, "preempt"), "e n1 n1! | p >n1");
    let jobs = "q/e --pods 2 --min 1 ^5000 @n1 @n1\nq/p -g 2 --priority 60";
    assert_eq!(after("n1:2", "q:9,t9000", jobs, "preempt"), "e n1 n1 | p .");
}

#[test]
fn of_equal_jobs_that_failed_one_speaks_for_the_others() {
    let jobs = "q/r --interactive @n1\nq/p -g 1 --priority 60\nq/s -g 1 --priority 60";
    let mut t = Table::new("n1:1", "q:9", jobs);
    t.run("preempt");
    let both = t.plan.stats.trials;
    let mut t = Table::new("n1:1", "q:9", jobs.rsplit_once('\n').unwrap().0);
    t.run("preempt");
    assert!(both <= t.plan.stats.trials + 1, "the second is looked at, not tried");
}

#[test]
fn shares_of_one_gpu_are_taken_until_the_request_fits() {
    let jobs = "q/r -g 0.5 --priority 40 @n1\nq/t -g 0.5 --priority 40 @n1\nq/p -g 0.5";
    assert_eq!(after("n1:1", "q:9", jobs, "preempt"), "r n1#0 | t n1#0! | p >n1#0");
    let jobs = "q/r -g 0.5 --priority 40 @n1\nq/t -g 0.5 --priority 40 @n1\nq/p";
    assert_eq!(after("n1:1", "q:9", jobs, "preempt"), "r n1#0! | t n1#0! | p >n1");
}

#[test]
fn cpu_only_work_preempts_cpu_only_work() {
    let jobs = "q/r -g 0 --cpu 90 --priority 40 @n1\nq/p -g 0 --cpu 20";
    assert_eq!(after("n1:0", "q:9", jobs, "preempt"), "r n1! | p >n1");
}

#[test]
fn what_would_start_in_this_cycle_gives_way_in_it() {
    let mut t = Table::new("n1:2", "q:9", "q/r @n1\nq/s\nq/h -g 2 --priority 60");
    assert_eq!(t.run("allocate preempt"), "r n1! | s . | h >n1");
    assert_eq!(t.run("allocate preempt"), "r n1! | s . | h >n1");
}

#[test]
fn jobs_like_one_that_failed_are_tried_if_something_is_easier() {
    // Two GPUs cannot be freed, one can.
    let jobs = "q/i --interactive @n1\nq/r --priority 40 @n1\nq/p -g 2\nq/s -g 1";
    assert_eq!(after("n1:2", "q:9", jobs, "preempt"), "i n1 | r n1! | p . | s >n1");
    // Jobs with other constraints do not count as failed.
    let mut w = testkit::World::new("n1:1 n2:1", "q:9");
    w.policy = testkit::kai();
    w.only_cycle = true;
    w.run("label n2 zone=a; submit q/i --interactive; submit q/r --priority 40");
    assert_eq!(w.gpus(), "n1[i] n2[r]");
    w.slow = true;
    w.run("cordon n2; submit q/p; uncordon n2; submit q/s --on zone=a");
    assert_eq!(w.gpus(), "n1[i] n2[r!]");
}

#[test]
fn a_preemption_delay_is_kept() {
    let mut t = Table::new("n1:1", "q:1", "q/r @n1\nq/p --priority 60 --delay 5000");
    assert_eq!(t.run("preempt"), "r n1 | p .");
    t.now = t.now.plus_ms(5000);
    assert_eq!(t.run("preempt"), "r n1! | p >n1");
}
