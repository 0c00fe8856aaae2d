//! Stale gangs (§18).

use testkit::Table;

#[test]
fn what_is_left_of_a_gang_goes_after_the_grace() {
    let mut t = Table::new("n1:4", "q:4", "q/g --pods 3 @n1 @n1 x");
    assert_eq!(t.run("stale"), "g n1 n1 x");
    t.now = t.now.plus_ms(59_000);
    assert_eq!(t.run("stale"), "g n1 n1 x");
    t.now = t.now.plus_ms(2_000);
    assert_eq!(t.run("stale"), "g n1! n1! x");
}

#[test]
fn a_gang_at_its_minimum_stays() {
    let mut t = Table::new("n1:4", "q:4", "q/g --pods 3 --min 2 @n1 @n1 x");
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1 n1 x");
}

#[test]
fn tasks_that_are_being_stopped_still_count() {
    let mut t = Table::new("n1:4", "q:4", "q/g --pods 2 @n1 !n1");
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1 n1!");
    t.gone();
    assert_eq!(t.run("stale"), "g n1! x");
}

#[test]
fn the_time_starts_anew_when_it_was_whole_in_between() {
    let mut t = Table::new("n1:4", "q:4", "q/g --pods 2 @n1 .");
    t.run("stale");
    t.now = t.now.plus_ms(50_000);
    assert_eq!(t.run("allocate stale"), "g n1 n1");
    let pod = t.cluster.pods().ids().last().unwrap();
    t.cluster.set_binding(pod, model::PodBinding::default());
    t.now = t.now.plus_ms(50_000);
    assert_eq!(t.run("stale"), "g n1 .");
}

#[test]
fn a_gang_of_which_one_has_ended_well_is_not_stale() {
    let mut t = Table::new("n1:4", "q:4", "q/g --pods 3 @n1 @n1 +");
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1 n1 +");
    assert_eq!(t.cluster.stale().len(), 0);
    // Nor if another has failed.
    let mut t = Table::new("n1:4", "q:4", "q/g --pods 3 @n1 x +");
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1 x +");
}

#[test]
fn each_pod_set_needs_its_minimum() {
    let sets = "q/g --set one --pods 2 --min 1 --set two --pods 2";
    let mut t = Table::new("n1:4", "q:4", &format!("{sets} @n1 x @n1 @n1"));
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1 x n1 n1");
    let mut t = Table::new("n1:4", "q:4", &format!("{sets} @n1 @n1 @n1 x"));
    t.policy.stale_grace_ms = 0;
    assert_eq!(t.run("stale"), "g n1! n1! n1! x");
}
