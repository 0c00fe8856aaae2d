//! MIG instances (§12): counted, not named; a slice counts as a GPU.

use super::after;

#[test]
fn only_those_who_ask_get_instances() {
    let jobs = "q/a\nq/b -g 0.5\nq/c --mig 1g.5gb";
    assert_eq!(after("n1:1g.5gb*2", "q:9", jobs, "allocate"), "a . | b . | c n1");
}

#[test]
fn a_quota_counts_slices() {
    let jobs = "q/r --mig 2g.10gb --interactive @n1\nq/a --mig 1g.5gb --interactive";
    assert_eq!(after("n1:2g.10gb,1g.5gb", "q:2", jobs, "allocate"), "r n1 | a .");
    assert_eq!(after("n1:2g.10gb,1g.5gb", "q:3", jobs, "allocate"), "r n1 | a n1");
}

#[test]
fn what_is_released_is_waited_for() {
    let jobs = "q/r --mig 1g.5gb !n1\nq/a --mig 1g.5gb";
    assert_eq!(after("n1:1g.5gb", "q:9", jobs, "allocate"), "r n1! | a >n1");
}

#[test]
fn reclaim_takes_instances_of_the_profile() {
    let jobs = "a/r --mig 3g.20gb @n1\na/s --mig 1g.5gb @n1\nb/p --mig 3g.20gb";
    let told = after("n1:3g.20gb,1g.5gb", "a:0 b:4", jobs, "reclaim");
    assert_eq!(told, "r n1! | s n1 | p >n1");
}

#[test]
fn reclaim_for_instances_alone_does_not_look_at_the_balance_of_gpus() {
    // Both queues are far above their share, which would forbid whole GPUs.
    let queues = "a:0,w1 b:0,w1";
    let jobs = "a/r --mig 3g.20gb @n1\nb/s --mig 4g.20gb @n1\nb/p --mig 3g.20gb";
    let told = after("n1:3g.20gb,4g.20gb", queues, jobs, "reclaim");
    assert_eq!(told, "r n1 | s n1 | p .");
}

#[test]
fn preempt_frees_two_profiles() {
    let jobs = "q/r --mig 3g.20gb --priority 40 @n1\nq/s --mig 1g.5gb*2 --priority 40 @n1\n\
                q/p --mig 3g.20gb,1g.5gb";
    let told = after("n1:3g.20gb,1g.5gb*2", "q:9", jobs, "preempt");
    assert_eq!(told, "r n1! | s n1! | p >n1");
}

#[test]
fn a_node_in_mig_mode_has_room_in_a_topology() {
    let jobs = "q/p --mig 1g.5gb --pods 2";
    assert_eq!(after("n1:1g.5gb n2:1g.5gb*2", "q:9", jobs, "allocate"), "p n1 n2");
}
