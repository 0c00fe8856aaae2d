//! Reasons why nothing was moved or evicted (P401 to P403), by the rules of this profile.

use expect_test::{Expect, expect};
use reasons::diagnosis::Search;
use testkit::Table;

/// The searches for the last job, after one cycle.
#[expect(clippy::needless_pass_by_value, reason = "reads like a table")]
fn told(nodes: &str, queues: &str, jobs: &str, expected: Expect) {
    let mut t = Table::new(nodes, queues, jobs);
    t.run("");
    let id = t.cluster.workloads().ids().last().expect("a job");
    let diagnosis = sched::diagnose(&t.cluster, id, t.now, &t.policy).expect("it waits");
    let line = |search: &Search| format!("{} {}\n", search.code().code, search.text(t.now));
    expected.assert_eq(&diagnosis.searches.iter().map(line).collect::<String>());
}

#[test]
fn beyond_its_fair_share() {
    told(
        "n1:2",
        "a:2 b:0",
        "a/r -g 2 @n1\nb/p",
        expect![[r#"
        P401 nothing is moved: it needs 1 GPU and none is free on any node
        P402 nothing is taken from other projects: with 1 more it would hold more than its fair share; b holds 0 GPUs (quota 0, fair share 0)
        P403 nothing is taken inside its project: nothing else of its project is running
    "#]],
    );
}

#[test]
fn beyond_its_quota_and_not_preemptible() {
    told(
        "n1:2",
        "a:1 b:0",
        "a/r -g 2 @n1\nb/p --interactive",
        expect![[r#"
            P401 nothing is moved: only preemptible workloads are helped by moving
            P402 nothing is taken from other projects: a limit or quota refuses it (P202)
            P403 nothing is taken inside its project: a limit or quota refuses it (P202)
        "#]],
    );
}

#[test]
fn nobody_may_be_asked() {
    let jobs = "a/r --interactive @n1\na/t ^5000 @n1\nb/u --priority 60 @n1\nb/p";
    told(
        "n1:3",
        "a:1,r9000 b:2",
        jobs,
        expect![[r#"
        P401 nothing is moved: it needs 1 GPU and none is free on any node
        P402 nothing is taken from other projects: no workload is eligible: 1 not preemptible, 1 in guaranteed run time, the first for 4s more
        P403 nothing is taken inside its project: no workload is eligible: 1 not less important
    "#]],
    );
}

#[test]
fn too_little_could_be_taken() {
    let jobs = "a/r --priority 40 @n1\na/t --interactive @n1\na/p -g 2";
    told(
        "n1:2",
        "a:9",
        jobs,
        expect![[r#"
        P401 nothing is moved: it needs 2 GPUs and none is free on any node
        P402 nothing is taken from other projects: no other project has anything running
        P403 nothing is taken inside its project: if all 1 that may be taken from gave 1 GPU, it still finds no place; of the others 1 not preemptible
    "#]],
    );
}

#[test]
fn enough_is_there_but_not_by_the_rules() {
    // b may reclaim one GPU from a, but the job of a has two GPUs and is within its quota.
    told(
        "n1:2",
        "a:2 b:1",
        "a/r -g 2 @n1\nb/p",
        expect![[r#"
        P401 nothing is moved: it needs 1 GPU and none is free on any node
        P402 nothing is taken from other projects: enough could be taken, but no way was found that keeps every rule
        P403 nothing is taken inside its project: nothing else of its project is running
    "#]],
    );
}

#[test]
fn whoever_is_in_the_way_has_no_other_place() {
    told(
        "n1:3 n2:3",
        "q:9",
        "q/r -g 2 @n1\nq/t -g 2 @n2\nq/p -g 2",
        expect![[r#"
        P401 nothing is moved: what is in the way has no other place, or may not be moved
        P402 nothing is taken from other projects: no other project has anything running
        P403 nothing is taken inside its project: no workload is eligible: 2 not less important
    "#]],
    );
}
