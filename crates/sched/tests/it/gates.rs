//! Pods with scheduling gates.

use expect_test::expect;
use testkit::World;

#[test]
fn a_gated_workload_is_not_considered_until_it_is_ungated() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/job --gated");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[. .]", ""));
    expect![[r#"
        P305 its pod is held back by a scheduling gate
    "#]]
    .assert_eq(&w.why("job"));
    w.run("ungate job");
    assert_eq!((w.gpus().as_str(), w.why("job").as_str()), ("n1[job .]", ""));
}

#[test]
fn a_gated_workload_stands_in_nobodys_way_and_asks_for_nothing() {
    let mut w = World::new("n1:2", "a:1 b:1");
    w.run("submit a/gated -g 2 --gated; submit b/guest -g 2");
    assert_eq!(w.gpus(), "n1[guest guest]");
    let asked = w.cluster.queues().iter().find(|(_, queue)| queue.name == "a").unwrap().1;
    assert_eq!(asked.requested.gpu_millis, 0);
}

#[test]
fn a_gang_starts_when_enough_of_its_pods_are_ungated() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/gang --pods 4 --min 2 --gated; ungate gang 0");
    assert_eq!(w.gpus(), "n1[. . . .]");
    assert!(w.why("gang").contains("P305 3 of its 4"), "{}", w.why("gang"));
    w.run("ungate gang 3");
    assert_eq!(w.gpus(), "n1[gang gang . .]");
    w.run("ungate gang");
    assert_eq!(w.gpus(), "n1[gang gang gang gang]");
}

#[test]
fn what_is_ungated_reclaims_its_share() {
    let mut w = World::new("n1:2", "a:1 b:1");
    w.run("submit a/mine --gated; submit b/x; submit b/y; ungate mine");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[x mine]", "y"));
}

#[test]
fn a_gate_and_a_suspension_do_not_mix_up() {
    let mut w = World::new("n1:1", "a:1");
    w.run("submit a/job --gated; suspend job");
    assert_eq!(w.why("job"), "", "it does not want to run");
    w.run("ungate job");
    assert_eq!(w.gpus(), "n1[.]");
    w.run("resume job");
    assert_eq!(w.gpus(), "n1[job]");
}
