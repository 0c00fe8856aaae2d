//! Measuring versions while training goes on.

use elastic::{Evaluated, Evaluations};

#[test]
fn every_so_many_versions_one_at_a_time() {
    let mut all = Evaluations::new(10);
    assert_eq!((all.reach(9), all.reach(10)), (None, Some(10)));
    all.begin(10, 2);
    // Both versions come due meanwhile; only the newer is of use.
    assert_eq!((all.reach(20), all.reach(31)), (None, None));
    assert_eq!(all.report(10, 1, "b"), None);
    let whole = Evaluated { version: 10, reports: vec!["a", "b"] };
    assert_eq!(all.report(10, 0, "a"), Some(whole));
    assert_eq!(all.due(), Some(31));
}

#[test]
fn a_piece_counts_once_and_another_version_not_at_all() {
    let mut all = Evaluations::new(1);
    all.reach(1);
    all.begin(1, 2);
    assert_eq!((all.report(1, 0, 5), all.report(1, 0, 6), all.report(2, 1, 7)), (None, None, None));
    assert_eq!(all.report(1, 1, 8), Some(Evaluated { version: 1, reports: vec![5, 8] }));
    assert_eq!(all.report(1, 1, 9), None);
}

#[test]
fn never_if_not_asked_for() {
    let mut all = Evaluations::<()>::new(0);
    assert_eq!((all.reach(1), all.reach(1000)), (None, None));
}

#[test]
fn a_version_that_is_gone_is_not_measured_and_comes_due_again() {
    let mut all = Evaluations::new(10);
    all.reach(20);
    all.begin(20, 1);
    all.rewind(15);
    assert_eq!(all.report(20, 0, ()), None);
    assert_eq!(all.reach(20), Some(20));
}
