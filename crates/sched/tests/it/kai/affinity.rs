//! Pod affinity and anti-affinity: a filter and the highest score (§10, §11).

use super::after;

#[test]
fn it_is_a_filter() {
    let jobs = "q/r --label a=b @n2\nq/p --with a=b";
    assert_eq!(after("n1:2 n2:2", "q:9", jobs, "allocate"), "r n2 | p n2");
    let jobs = "q/r --label a=b @n1\nq/p --apart a=b";
    assert_eq!(after("n1:2 n2:2", "q:9", jobs, "allocate"), "r n1 | p n2");
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "r n1 | p .");
}

#[test]
fn it_holds_the_other_way_round() {
    let jobs = "q/r --apart a=b @n1\nq/p --label a=b";
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "r n1 | p .");
}

#[test]
fn preferred_pods_come_before_packing() {
    let jobs = "q/r @n1\nq/s --label a=b @n2\nq/t -g 0.5 @n1\nq/p --rather-with a=b";
    assert_eq!(after("n1:4 n2:4", "q:9", jobs, "allocate"), "r n1 | s n2 | t n1#1 | p n2");
}

#[test]
fn preempt_removes_who_is_in_the_way() {
    let jobs = "q/r --label a=b --priority 40 @n1\nq/p --apart a=b";
    assert_eq!(after("n1:2", "q:9", jobs, "preempt"), "r n1! | p >n1");
}

#[test]
fn what_is_being_stopped_is_waited_for() {
    let jobs = "q/r --label a=b !n1\nq/p --apart a=b";
    assert_eq!(after("n1:2", "q:9", jobs, "allocate"), "r n1! | p >n1");
}
