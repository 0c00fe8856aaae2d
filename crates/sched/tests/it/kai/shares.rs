//! Fair shares (§7, §8).

use testkit::Table;

fn shares(nodes: &str, queues: &str, jobs: &str) -> String {
    Table::new(nodes, queues, jobs).shares()
}

#[test]
fn quota_first_and_no_more_than_asked() {
    assert_eq!(shares("n1:8", "a:6 b:2", "a/p -g 2\nb/s -g 2"), "a 2 b 2");
}

#[test]
fn what_is_left_goes_by_weight() {
    let jobs = "a/p -g 8\nb/s -g 8";
    assert_eq!(shares("n1:8", "a:1,w1 b:1,w2", jobs), "a 3 b 5");
    assert_eq!(shares("n1:8", "a:0,w0 b:0,w1", jobs), "a 0 b 8");
    assert_eq!(shares("n1:8", "a:1,w0 b:1,w0", jobs), "a 1 b 1");
}

#[test]
fn what_one_does_not_want_goes_to_the_others_in_another_round() {
    let jobs = "a/p -g 1\nb/s -g 8\nc/t -g 8";
    assert_eq!(shares("n1:9", "a:0 b:0 c:0", jobs), "a 1 b 4 c 4");
}

#[test]
fn higher_priority_takes_what_is_left_before_the_others() {
    let jobs = "a/p -g 8\nb/s -g 8";
    assert_eq!(shares("n1:8", "a:1 b:1,p200", jobs), "a 1 b 7");
}

#[test]
fn floors_are_left_for_lower_priorities_before_the_remainders() {
    // Two queues of priority 200 get 3/2 each, rounded down; the third GPU goes to the lower
    // priority.
    let jobs = "a/p -g 8\nb/s -g 8\nc/t -g 8";
    assert_eq!(shares("n1:3", "a:0,p200 b:0,p200 c:0", jobs), "a 1 b 1 c 1");
    // Without a lower priority, it goes to the older queue.
    assert_eq!(shares("n1:3", "a:0 b:0", "a/p -g 8\nb/s -g 8"), "a 2 b 1");
}

#[test]
fn the_largest_remainder_gets_the_left_over_first() {
    // 4 GPUs at 1:3 are 1 and 3; 5 are 1.25 and 3.75.
    let jobs = "a/p -g 8\nb/s -g 8";
    assert_eq!(shares("n1:5", "a:0,w1 b:0,w3", jobs), "a 1 b 4");
}

#[test]
fn a_limit_bounds_the_share() {
    let jobs = "a/p -g 8\nb/s -g 8";
    assert_eq!(shares("n1:8", "a:4:3 b:1", jobs), "a 3 b 5");
}

#[test]
fn an_unlimited_quota_is_the_whole_cluster() {
    assert_eq!(shares("n1:4", "a:- b:0", "a/p -g 9\nb/s -g 9"), "a 4 b 0");
}

#[test]
fn promises_beyond_the_cluster_are_kept_on_paper() {
    assert_eq!(shares("n1:4", "a:4 b:4", "a/p -g 9\nb/s -g 9"), "a 4 b 4");
}

#[test]
fn children_share_what_their_parent_has() {
    let jobs = "a/p -g 8\nb/s -g 8\nc/t -g 8";
    let queues = "d:2 e:6 d/a:0 d/b:0 e/c:1";
    assert_eq!(shares("n1:8", queues, jobs), "d 2 e 6 a 1 b 1 c 6");
    // The quotas of children exceed that of the parent: nothing is scaled down.
    let queues = "d:2 e:6 d/a:2 d/b:2 e/c:1";
    assert_eq!(shares("n1:8", queues, jobs), "d 2 e 6 a 2 b 2 c 6");
}

#[test]
fn a_parent_asks_for_what_its_children_ask_for() {
    assert_eq!(shares("n1:8", "d:8 e:0 d/a:4 e/b:0", "a/p\nb/s -g 8"), "d 1 e 7 a 1 b 7");
}

#[test]
fn what_is_being_stopped_asks_for_nothing() {
    let jobs = "a/r -g 4 !n1\na/p\nb/s -g 8";
    assert_eq!(shares("n1:8", "a:0 b:0", jobs), "a 1 b 7");
}

#[test]
fn shares_of_gpus_are_asked_for_as_parts() {
    assert_eq!(shares("n1:8", "a:4 b:0", "a/p -g 0.5\nb/s -g 8"), "a 0.5 b 7.5");
}

#[test]
fn past_use_lowers_the_weight() {
    let jobs = "a/p -g 8\nb/s -g 8";
    // n = 1/2 each; s = 1/2 + (1/2 - 1/2) and 1/2 + (1/2 - 0): 1 to 2.
    assert_eq!(shares("n1:6", "a:0,u500000 b:0", jobs), "a 2 b 4");
    // A queue that used the whole cluster gets nothing of the rest.
    assert_eq!(shares("n1:6", "a:0,u1000000 b:0", jobs), "a 0 b 6");
    // Its quota part does not change.
    assert_eq!(shares("n1:6", "a:2,u1000000 b:0", jobs), "a 2 b 4");
}

#[test]
fn k_says_how_much_past_use_matters() {
    let mut t = Table::new("n1:6", "a:0,u500000 b:0", "a/p -g 8\nb/s -g 8");
    t.policy.usage_weight_millis = 0;
    assert_eq!(t.shares(), "a 3 b 3");
}

#[test]
fn pending_gpu_memory_is_valued_on_the_least_gpu_memory() {
    // 200 MiB count as two GPUs of 100 MiB before they are placed (§26.16).
    assert_eq!(shares("n1:8", "a:8 b:0", "a/p --mem 200MiB\nb/s -g 8"), "a 2 b 6");
}

#[test]
fn gated_pods_ask_for_nothing_and_are_not_placed() {
    let mut t = Table::new("n1:8", "a:0 b:0", "a/p -g 8\nb/s -g 8");
    let pod = t.cluster.pods().ids().next().unwrap();
    t.cluster.set_gated(pod, true);
    assert_eq!(t.shares(), "a 0 b 8");
    assert_eq!(t.run("allocate"), "p . | s n1");
}
