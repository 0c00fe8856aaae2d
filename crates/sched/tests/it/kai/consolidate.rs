//! Consolidation (§17): every victim finds another place.

use model::Fill;
use sched::Placement;
use testkit::Table;

use super::after;

#[test]
fn moves_a_job_so_that_a_larger_one_fits() {
    let jobs = "q/r @n1\nq/t @n2\nq/p -g 2";
    let told = after("n1:2 n2:2", "q:9", jobs, "consolidate");
    assert_eq!(told, "r n1 | t n2>n1 | p >n2");
}

#[test]
fn moves_jobs_of_other_queues_and_higher_priority_too() {
    let jobs = "a/r --priority 90 @n1\na/t --priority 90 @n2\nq/p -g 2";
    let told = after("n1:2 n2:2", "a:2 q:0", jobs, "consolidate");
    assert_eq!(told, "r n1 | t n2>n1 | p >n2");
}

#[test]
fn not_for_what_is_not_preemptible() {
    let jobs = "q/r @n1\nq/t @n2\nq/p -g 2 --interactive";
    assert_eq!(after("n1:2 n2:2", "q:9", jobs, "consolidate"), "r n1 | t n2 | p .");
}

#[test]
fn does_not_move_what_is_not_preemptible() {
    let jobs = "q/r --interactive @n1\nq/t --interactive @n2\nq/p -g 2";
    assert_eq!(after("n1:2 n2:2", "q:9", jobs, "consolidate"), "r n1 | t n2 | p .");
}

#[test]
fn only_if_there_is_enough_in_total() {
    let jobs = "q/r @n1\nq/t @n2\nq/p -g 3";
    assert_eq!(after("n1:2 n2:2", "q:9", jobs, "consolidate"), "r n1 | t n2 | p .");
}

#[test]
fn nobody_loses_its_place() {
    // Two GPUs are free, but the job with two cannot run anywhere else.
    let jobs = "q/r -g 2 @n1\nq/t -g 2 @n2\nq/p -g 2 --on zone=a";
    assert_eq!(after("n1:3 n2:3", "q:9", jobs, "consolidate"), "r n1 | t n2 | p .");
}

#[test]
fn a_gang_moves_as_a_whole_or_not_at_all() {
    // The gang is older and chooses first: the fuller node by name, then the same node.
    let jobs = "q/g --pods 2 @n1 @n2\nq/p -g 2";
    let told = after("n1:2 n2:2", "q:9", jobs, "consolidate");
    assert_eq!(told, "g n1 n2>n1 | p >n2");
}

#[test]
fn none_are_moved_if_none_may_be() {
    let mut t = Table::new("n1:2 n2:2", "q:9", "q/r @n1\nq/t @n2\nq/p -g 2");
    t.policy.consolidation_moves_max = 0;
    assert_eq!(t.run("consolidate"), "r n1 | t n2 | p .");
}

#[test]
fn one_more_than_the_most_is_let_through() {
    // Both on n2 have to move: with a maximum of one, two victims are allowed.
    let jobs = "q/r -g 2 @n1\nq/t @n2\nq/u @n2\nq/p -g 4";
    let state = ("n1:4 n2:4", "q:9");
    assert_eq!(after(state.0, state.1, jobs, "consolidate"), "r n1 | t n2>n1 | u n2>n1 | p >n2");
    let mut t = Table::new(state.0, state.1, jobs);
    t.policy.consolidation_moves_max = 1;
    assert_eq!(t.run("consolidate"), "r n1 | t n2>n1 | u n2>n1 | p >n2");
    // The three youngest of four are victims before the one that could have moved alone.
    let jobs = "q/r -g 1 @n1\nq/t @n2\nq/u @n2\nq/v @n2\nq/p -g 4";
    let mut t = Table::new(state.0, state.1, jobs);
    t.policy.consolidation_moves_max = 1;
    assert_eq!(t.run("consolidate"), "r n1 | t n2 | u n2 | v n2 | p .");
}

#[test]
fn not_where_the_strategy_is_spread() {
    let mut t = Table::new("n1:2 n2:2", "q:9", "q/r @n1\nq/t @n2\nq/p -g 2");
    t.policy.placement = Placement::all(Fill::Spread);
    assert_eq!(t.run("consolidate"), "r n1 | t n2 | p .");
}

#[test]
fn shares_are_brought_together() {
    let jobs = "q/r -g 0.5 @n1\nq/t -g 0.5 @n2\nq/p";
    let told = after("n1:1 n2:1", "q:9", jobs, "consolidate");
    assert_eq!(told, "r n1#0 | t n2#0>n1#0 | p >n2");
}

#[test]
fn the_limit_of_the_queue_holds() {
    let jobs = "q/r @n1\nq/t @n2\nq/p -g 2";
    assert_eq!(after("n1:2 n2:2", "q:2:3", jobs, "consolidate"), "r n1 | t n2 | p .");
}
