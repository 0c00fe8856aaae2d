//! Order of turns (§6): one place, two candidates.

use testkit::Table;

use super::after;

#[test]
fn jobs_higher_priority_first_then_the_older() {
    assert_eq!(after("n1:1", "q:4", "q/p\nq/s --priority 60", "allocate"), "p . | s n1");
    assert_eq!(after("n1:1", "q:4", "q/p\nq/s", "allocate"), "p n1 | s .");
}

#[test]
fn jobs_below_their_minimum_before_those_that_only_grow() {
    let jobs = "q/e --pods 2 --min 1 @n1\nq/p";
    assert_eq!(after("n1:2", "q:4", jobs, "allocate"), "e n1 . | p n1");
}

#[test]
fn jobs_at_their_minimum_before_those_above() {
    let jobs = "q/e --pods 4 --min 1 @n1 @n1\nq/f --pods 4 --min 1 @n1";
    assert_eq!(after("n1:4", "q:4", jobs, "allocate"), "e n1 n1 . . | f n1 n1 . .");
}

#[test]
fn priority_before_the_minimum() {
    let jobs = "q/e --pods 2 --min 1 --priority 60 @n1\nq/p";
    assert_eq!(after("n1:2", "q:4", jobs, "allocate"), "e n1 n1 | p .");
}

#[test]
fn the_queue_that_stays_within_its_quota_goes_first() {
    assert_eq!(after("n1:1", "a:0 b:1", "a/p\nb/s", "allocate"), "p . | s n1");
    // The quota is checked with the job: a pair does not fit into a quota of one.
    assert_eq!(after("n1:2", "a:1 b:2", "a/p -g 2\nb/s -g 2", "allocate"), "p . | s n1");
}

#[test]
fn the_quota_counts_in_every_resource() {
    let jobs = "a/p --cpu 2\nb/s --cpu 1";
    assert_eq!(after("n1:1", "a:1,c1 b:1", jobs, "allocate"), "p . | s n1");
}

#[test]
fn priority_of_the_queue_among_equally_starved() {
    assert_eq!(after("n1:1", "a:0 b:0,p200", "a/p\nb/s", "allocate"), "p . | s n1");
    // But quota comes before priority.
    assert_eq!(after("n1:1", "a:1 b:0,p200", "a/p\nb/s", "allocate"), "p n1 | s .");
}

#[test]
fn a_queue_without_any_share_goes_last() {
    // Weight 0 gets nothing of the rest; both are over quota.
    assert_eq!(after("n1:1", "a:0,w0 b:0,w1", "a/p\nb/s", "allocate"), "p . | s n1");
}

#[test]
fn the_smaller_part_of_its_share_goes_first() {
    let jobs = "a/r @n1\nb/t @n1\na/p\nb/s";
    let told = after("n1:3", "a:2 b:4", jobs, "allocate");
    assert_eq!(told, "r n1 | t n1 | p . | s n1");
}

#[test]
fn the_older_queue_last_of_all() {
    assert_eq!(after("n1:1", "a:1 b:1", "b/s\na/p", "allocate"), "s . | p n1");
}

#[test]
fn departments_are_compared_before_their_projects() {
    // Department d has no quota, although its project is within its own.
    let queues = "d:0 e:1 d/a:1 e/b:0";
    assert_eq!(after("n1:1", queues, "a/p\nb/s", "allocate"), "p . | s n1");
}

#[test]
fn over_its_fair_share_in_every_resource_goes_last() {
    // a holds more GPUs, CPU and memory than its share; b only more GPUs.
    let jobs = "a/r -g 2 --cpu 40 --memory 400GiB @n1\nb/t -g 2 @n1\na/p\nb/s";
    let mut t = Table::new("n1:5", "a:0,w0,c0 b:0,w0", jobs);
    let ids: Vec<_> = t.cluster.queues().ids().collect();
    let mut share = t.cluster.queues()[ids[0]].share;
    share.quota.memory_bytes = 0;
    t.cluster.set_share(ids[0], share).unwrap();
    assert_eq!(t.run("allocate"), "r n1 | t n1 | p . | s n1");
}

#[test]
fn gpu_memory_counts_by_the_smallest_gpu() {
    // Half a GPU stays within its quota, the whole of the other does not.
    let jobs = "a/p\nb/s --mem 8GiB";
    assert_eq!(after("n1:1", "a:0.5 b:0.5", jobs, "allocate"), "p . | s n1#0");
    let jobs = "a/p -g 0.5\nb/s --mem 12GiB";
    assert_eq!(after("n1:1", "a:0.5 b:0.5", jobs, "allocate"), "p n1#0 | s .");
}

#[test]
fn victims_count_in_the_dominant_share_only() {
    // Both are above their quota, b also without its victim: its lower priority decides.
    let jobs = "a/1 @n1\na/2 @n1\na/3 @n1\na/4 @n1\nb/1 @n1\nb/2 @n1\nc/p";
    let told = after("n1:6", "a:2 b:1,p50 c:1", jobs, "reclaim");
    assert_eq!(told, "1 n1 | 2 n1 | 3 n1 | 4 n1 | 1 n1 | 2 n1! | p >n1");
}
