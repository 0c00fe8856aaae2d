//! The published walk-throughs at the level of the scheduler. Expected states: Run:ai reference
//! D.12.

use expect_test::expect;
use testkit::World;

#[test]
fn w4_fractions_share_one_gpu() {
    let mut w = World::new("n1:4", "team-a:1");
    w.run("submit team-a/frac05 -g 0.5 --interactive; submit team-a/frac03 -g 0.3");
    assert_eq!(w.gpus(), "n1[frac05:0.5+frac03:0.3 . . .]");
}

#[test]
fn w5_elastic_grows_over_quota_into_idle_gpus() {
    let mut w = World::new("n1:4", "team-a:2");
    w.run("submit team-a/elastic1 -g 2 --elastic");
    assert_eq!(w.size("elastic1"), "4 (2)");
}

#[test]
fn w6_expansion_is_given_back_to_an_interactive_job() {
    let mut w = World::new("n1:2", "team-a:2");
    w.run("submit team-a/elastic1 -g 1 --elastic");
    assert_eq!(w.size("elastic1"), "2 (1)");
    w.run("submit team-a/filler1 -g 1 --interactive");
    assert_eq!(w.gpus(), "n1[elastic1 filler1]");
    expect![[r#"
        elastic1 E104 shrunk from 2 to 1 GPU for team-a/filler1
    "#]]
    .assert_eq(&w.stopped());
}

#[test]
fn w6_shrinks_to_fit_and_grows_back_when_there_is_room() {
    let mut w = World::new("n1:2", "team-a:2");
    w.run("submit team-a/filler2 --interactive; submit team-a/elastic2 -g 2 --elastic");
    assert_eq!(w.gpus(), "n1[filler2 elastic2]");
    w.run("delete filler2");
    assert_eq!(w.size("elastic2"), "2 (2)");
    expect![[r#"
        elastic2 E104 grown from 1 to 2 GPUs that were idle
    "#]]
    .assert_eq(&w.stopped());
}

#[test]
fn w7_over_quota_then_reclaim_then_consolidation() {
    let mut w = World::new("n1:2 n2:2", "team-a:2 team-b:2");
    w.run("submit team-a/a2 -g 2; submit team-a/a1; submit team-b/b1");
    assert_eq!(w.gpus(), "n1[a2 a2] n2[a1 b1]");
    w.run("submit team-b/b2");
    assert_eq!(w.gpus(), "n1[a2 a2] n2[b2 b1]");
    assert_eq!(w.waiting(), "a1");
    expect![[r#"
        a1 E101 stopped so that team-b/b2 gets its quota: team-a held 3 GPUs (quota 2, fair share 2); team-b held 1 GPU (quota 2, fair share 2) and asked for 1
    "#]]
    .assert_eq(&w.stopped());
    w.run("delete a2");
    assert_eq!(w.gpus(), "n1[a1 .] n2[b2 b1]");
    w.run("delete b2; submit team-a/a2 -g 2");
    assert_eq!(w.gpus(), "n1[a2 a2] n2[a1 b1]");
    expect!["a1 E103 moved to make room for team-a/a2\n"].assert_eq(&w.stopped());
}

#[test]
fn w8_queues_take_turns_however_late_they_came() {
    let mut w = World::new("n1:2 n2:2", "team-a:1 team-b:1");
    w.run("submit team-a/a1; submit team-a/a2; submit team-a/a3; submit team-a/a4");
    assert_eq!(w.gpus(), "n1[a1 a2] n2[a3 a4]");
    w.run("submit team-b/b1; submit team-b/b2; submit team-b/b3; submit team-b/b4");
    assert_eq!(w.waiting(), "a3 a4 b3 b4");
    w.run("delete b2");
    assert_eq!(w.waiting(), "a3 a4 b4");
    w.run("delete a1");
    assert_eq!(w.waiting(), "a4 b4");
}
