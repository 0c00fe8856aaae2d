//! Allocate (§9, §10) and scores (§11).

use model::Fill;
use sched::Placement;
use testkit::Table;

use super::after;

#[test]
fn packs_the_fullest_node_and_then_by_name() {
    assert_eq!(after("n1:2 n2:2", "q:4", "q/r @n2\nq/p", "allocate"), "r n2 | p n2");
    assert_eq!(after("n2:2 n1:2", "q:4", "q/p", "allocate"), "p n1");
}

#[test]
fn spread_takes_the_node_with_the_largest_free_part() {
    let mut t = Table::new("n1:2 n2:2", "q:4", "q/r @n1\nq/p");
    t.policy.placement = Placement::all(Fill::Spread);
    assert_eq!(t.run("allocate"), "r n1 | p n2");
    // 3 of 4 are less than 2 of 2.
    let mut t = Table::new("n1:4 n2:2", "q:4", "q/r @n1\nq/p");
    t.policy.placement = Placement::all(Fill::Spread);
    assert_eq!(t.run("allocate"), "r n1 | p n2");
}

#[test]
fn cpu_only_work_goes_to_nodes_without_gpus() {
    assert_eq!(after("n1:2 n2:0", "q:4", "q/p -g 0 --cpu 1", "allocate"), "p n2");
    // Unless it does not fit there now: a start at once counts more.
    let jobs = "q/r -g 0 --cpu 99.5 @n2\nq/p -g 0 --cpu 1";
    assert_eq!(after("n1:2 n2:0", "q:4", jobs, "allocate"), "r n2 | p n1");
}

#[test]
fn cpu_only_work_packs_by_cpu() {
    let jobs = "q/r -g 0 --cpu 10 @n2\nq/p -g 0 --cpu 1";
    assert_eq!(after("n1:0 n2:0", "q:4", jobs, "allocate"), "r n2 | p n2");
}

#[test]
fn waits_on_what_is_being_released_only_where_nothing_is_free_now() {
    assert_eq!(after("n1:1", "q:4", "q/r !n1\nq/p", "allocate"), "r n1! | p >n1");
    // n1 is fuller, but on n2 it starts at once.
    assert_eq!(after("n1:1 n2:2", "q:4", "q/r !n1\nq/p", "allocate"), "r n1! | p n2");
}

#[test]
fn a_place_on_what_is_being_released_is_given_once() {
    assert_eq!(after("n1:1", "q:4", "q/r !n1\nq/p\nq/s", "allocate"), "r n1! | p >n1 | s .");
}

#[test]
fn cpu_that_is_being_released_makes_it_wait_too() {
    let jobs = "q/r -g 0 --cpu 100 !n1\nq/p --cpu 1";
    assert_eq!(after("n1:1", "q:4", jobs, "allocate"), "r n1! | p >n1");
}

#[test]
fn a_gang_with_one_task_that_waits_waits_as_a_whole() {
    let jobs = "q/r !n1\nq/p --pods 2";
    assert_eq!(after("n1:1 n2:1", "q:4", jobs, "allocate"), "r n1! | p >n2 >n1");
    // With a minimum of one, the first starts; the second waits on its own.
    let jobs = "q/r !n1\nq/p --pods 2 --min 1";
    assert_eq!(after("n1:1 n2:1", "q:4", jobs, "allocate"), "r n1! | p n2 >n1");
}

#[test]
fn what_is_idle_beside_a_waiting_gang_is_counted_not_named() {
    // The gang's task on n1 was placed on the idle GPU and then waits: it can wait for the other
    // one as well, so the small job starts.
    let jobs = "q/r !n1\nq/t -g 2 !n2\nq/g --pods 2 -g 2 --min 2\nq/s";
    let told = after("n1:3 n2:2", "q:9", jobs, "allocate");
    assert_eq!(told, "r n1! | t n2! | g >n1 >n2 | s n1");
}

#[test]
fn all_of_a_gang_or_nothing() {
    assert_eq!(after("n1:2", "q:4", "q/g --pods 3\nq/p", "allocate"), "g . . . | p n1");
}

#[test]
fn a_gang_that_lost_too_many_tasks_is_not_ready() {
    assert_eq!(after("n1:4", "q:4", "q/g --pods 3 x\nq/p", "allocate"), "g x . . | p n1");
    let jobs = "q/g --pods 3 --min 2 x\nq/p";
    assert_eq!(after("n1:4", "q:4", jobs, "allocate"), "g x n1 n1 | p n1");
}

#[test]
fn what_is_being_stopped_is_not_pending() {
    let jobs = "q/g --pods 2 --min 1 @n1 !n1\nq/p";
    assert_eq!(after("n1:2 n2:0", "q:4", jobs, "allocate"), "g n1 n1! | p >n1");
}

#[test]
fn beyond_the_minimum_one_task_per_turn_and_queues_take_turns() {
    let jobs = "a/e --pods 4 --min 1\nb/f --pods 4 --min 1";
    assert_eq!(after("n1:4", "a:2 b:2", jobs, "allocate"), "e n1 n1 . . | f n1 n1 . .");
}

#[test]
fn elastic_growth_goes_behind_jobs_below_their_minimum() {
    let jobs = "q/e --pods 3 --min 1\nq/p";
    assert_eq!(after("n1:2", "q:4", jobs, "allocate"), "e n1 . . | p n1");
}

#[test]
fn the_limit_of_the_queue_holds_for_all_tasks_together() {
    assert_eq!(after("n1:4", "q:1:2", "q/g --pods 3\nq/p -g 2", "allocate"), "g . . . | p n1");
}

#[test]
fn the_limit_of_a_department_holds() {
    let told = after("n1:4", "d:1:1 d/a:4 d/b:4", "a/p\nb/s", "allocate");
    assert_eq!(told, "p n1 | s .");
}

#[test]
fn the_limit_counts_what_waits_for_its_place() {
    let told = after("n1:1 n2:4", "q:1:1 o:4", "o/r -g 0 !n1\nq/p\nq/s", "allocate");
    assert_eq!(told, "r n1! | p n1 | s .");
}

#[test]
fn non_preemptible_work_stays_within_quota() {
    let jobs = "q/i --interactive\nq/j --interactive\nq/p";
    assert_eq!(after("n1:4", "q:1", jobs, "allocate"), "i n1 | j . | p n1");
}

#[test]
fn preemptible_work_does_not_count_against_the_quota_of_non_preemptible() {
    let jobs = "q/r -g 2 @n1\nq/i --interactive";
    assert_eq!(after("n1:4", "q:1", jobs, "allocate"), "r n1 | i n1");
}

#[test]
fn the_quota_of_the_department_binds_non_preemptible_work() {
    let jobs = "a/i --interactive\nb/j --interactive";
    assert_eq!(after("n1:4", "d:1 d/a:1 d/b:1", jobs, "allocate"), "i n1 | j .");
}

#[test]
fn cpu_quota_binds_non_preemptible_cpu_only_work() {
    let jobs = "q/i -g 0 --cpu 2 --interactive\nq/p -g 0 --cpu 2";
    assert_eq!(after("n1:0", "q:1,c1", jobs, "allocate"), "i . | p n1");
}

#[test]
fn selectors_and_cordons_hold() {
    let mut t = Table::new("n1:4 n2:4", "q:4", "q/p --on zone=a\nq/s");
    let ids: Vec<_> = t.cluster.nodes().ids().collect();
    t.cluster.set_schedulable(ids[0], false);
    assert_eq!(t.run("allocate"), "p . | s n2");
}

#[test]
fn pods_per_node_hold() {
    assert_eq!(after("n1:4:9:1", "q:4", "q/p\nq/s", "allocate"), "p n1 | s .");
}

#[test]
fn the_depth_of_a_queue_bounds_what_is_looked_at() {
    let mut t = Table::new("n1:2", "q:4", "q/big -g 4\nq/p\nq/s");
    t.policy.profile = sched::Profile::Kai(sched::Kai { queue_depth: 1, ..Default::default() });
    assert_eq!(t.run("allocate"), "big . | p . | s .");
    let mut t = Table::new("n1:2", "q:4", "q/big -g 4\nq/p\nq/s");
    t.policy.profile = sched::Profile::Kai(sched::Kai { queue_depth: 2, ..Default::default() });
    assert_eq!(t.run("allocate"), "big . | p n1 | s .");
}

#[test]
fn reserved_places_are_found_anew_in_each_cycle() {
    let mut t = Table::new("n1:1 n2:1", "q:4", "q/r !n1\nq/t @n2\nq/p");
    assert_eq!(t.run("allocate"), "r n1! | t n2 | p >n1");
    // Nothing is stored, and nothing changes.
    assert_eq!(t.run("allocate"), "r n1! | t n2 | p >n1");
    assert!(t.plan.steps.is_empty());
    // An older claim on the place wins when it arrives.
    assert_eq!(t.run("stale"), "r n1! | t n2 | p .");
    t.gone();
    assert_eq!(t.run("allocate"), "r x | t n2 | p n1");
}

#[test]
fn the_limit_counts_in_every_resource() {
    assert_eq!(after("n1:4", "q:9:9,C1", "q/p --cpu 2\nq/s --cpu 1", "allocate"), "p . | s n1");
    // A resource that is not requested does not matter, even over its limit.
    let jobs = "q/r --cpu 2 -g 0 @n1\nq/p";
    assert_eq!(after("n1:4", "q:9:9,C1", jobs, "allocate"), "r n1 | p n1");
}

#[test]
fn a_preferred_node_has_no_score() {
    let mut w = testkit::World::new("n1:2 n2:2", "q:9");
    w.policy = testkit::kai();
    w.only_cycle = true;
    w.run("label n2 zone=a; submit q/p --prefer zone=a");
    assert_eq!(w.gpus(), "n1[p .] n2[. .]");
}

#[test]
fn a_place_to_start_at_once_beats_one_on_a_shared_gpu_only_for_whole_gpus() {
    // A shared GPU with room counts more than a start at once (1,000 against 100).
    let jobs = "q/r -g 0.5 !n1#0\nq/t -g 0.3 @n1#0\nq/p -g 0.5";
    assert_eq!(after("n1:1 n2:1", "q:9", jobs, "allocate"), "r n1#0! | t n1#0 | p >n1#0");
    let jobs = "q/r !n1\nq/p";
    assert_eq!(after("n1:1 n2:2", "q:9", jobs, "allocate"), "r n1! | p n2");
}

#[test]
fn to_start_at_once_beats_a_node_without_gpus() {
    let jobs = "q/r -g 0 --cpu 100 !n2\nq/p -g 0 --cpu 1";
    assert_eq!(after("n1:1 n2:0", "q:9", jobs, "allocate"), "r n2! | p n1");
}

#[test]
fn the_strategies_for_gpus_and_cpus_may_differ() {
    let jobs = "q/r -g 0 --cpu 10 @n1\nq/p -g 0 --cpu 1\nq/s";
    let mut t = Table::new("n1:2 n2:2", "q:9", jobs);
    t.policy.placement = Placement { cpu: Fill::Spread, ..Placement::all(Fill::BinPack) };
    assert_eq!(t.run("allocate"), "r n1 | p n2 | s n1");
}
