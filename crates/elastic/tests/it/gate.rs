//! Gate for updates of the model.

use elastic::{Gate, Mode, Push, Verdict, WorkerId};
use proptest::prelude::*;

const SYNC: Mode = Mode::Synchronous { gradients: 2, tolerance: 0 };
const FREE: Mode = Mode::Asynchronous { staleness_max: None };

fn bounded(max: u64) -> Mode {
    Mode::Asynchronous { staleness_max: Some(max) }
}

fn push(worker: u32, sequence: u64, version: u64) -> Push {
    Push { worker: WorkerId(worker), generation: 0, sequence, version }
}

#[test]
fn so_many_gradients_make_an_update_and_one_worker_may_give_them_all() {
    let mut gate = Gate::new(SYNC, 0);
    assert_eq!(gate.push(push(0, 1, 0)), Verdict::Held { held: 1 });
    assert_eq!(gate.push(push(0, 2, 0)), Verdict::Update { version: 1, of: 2, staleness: 0 });
}

#[test]
fn a_stale_gradient_is_computed_again_and_its_number_comes_again() {
    let mut gate = Gate::new(SYNC, 4);
    assert_eq!(gate.push(push(0, 1, 3)), Verdict::Stale { version: 4 });
    assert_eq!(gate.push(push(0, 2, 4)), Verdict::Held { held: 1 });
    assert_eq!(gate.push(push(0, 1, 4)), Verdict::Update { version: 5, of: 2, staleness: 0 });
    assert_eq!(gate.push(push(0, 1, 5)), Verdict::Duplicate { version: 5 });
}

#[test]
fn places_in_an_update_are_taken_before_a_gradient_is_computed() {
    let (a, b, c) = (WorkerId(0), WorkerId(1), WorkerId(2));
    let mut gate = Gate::new(SYNC, 0);
    assert_eq!([a, b, c, a].map(|worker| gate.admit(worker)), [true, true, false, true]);
    gate.release(b);
    assert!(gate.admit(c), "the place of a worker that is gone is free");
    gate.push(push(0, 1, 0));
    assert!(!gate.admit(a), "its gradient and the place of the other make the update");
    assert_eq!(gate.push(push(2, 1, 0)), Verdict::Update { version: 1, of: 2, staleness: 0 });
    assert!(gate.admit(a) && gate.admit(b));
    assert!(Gate::new(FREE, 0).admit(a), "each gradient is an update");
}

#[test]
fn a_tolerance_lets_it_be_so_far_behind() {
    let mut gate = Gate::new(Mode::Synchronous { gradients: 1, tolerance: 2 }, 5);
    assert_eq!(gate.push(push(0, 1, 3)), Verdict::Update { version: 6, of: 1, staleness: 2 });
    assert_eq!(gate.push(push(0, 2, 3)), Verdict::Stale { version: 6 });
}

#[test]
fn without_waiting_each_is_an_update_however_stale() {
    let mut gate = Gate::new(FREE, 9);
    assert_eq!(gate.push(push(0, 1, 2)), Verdict::Update { version: 10, of: 1, staleness: 7 });
}

#[test]
fn a_bound_refuses_what_is_older() {
    let mut gate = Gate::new(bounded(2), 9);
    assert_eq!(gate.push(push(0, 1, 7)), Verdict::Update { version: 10, of: 1, staleness: 2 });
    assert_eq!(gate.push(push(1, 1, 7)), Verdict::Stale { version: 10 });
    assert_eq!(gate.push(push(1, 1, 10)), Verdict::Update { version: 11, of: 1, staleness: 0 });
    assert_eq!(gate.push(push(1, 1, 10)), Verdict::Duplicate { version: 11 });
}

#[test]
fn who_is_ahead_waits_for_the_slow_one_and_not_for_one_that_is_gone() {
    let (slow, fast) = (WorkerId(0), WorkerId(1));
    let mut gate = Gate::new(bounded(2), 0);
    assert!(gate.admit(slow));
    for version in 0..2 {
        assert!(gate.admit(fast));
        let verdict = gate.push(push(1, version + 1, version));
        assert_eq!(verdict, Verdict::Update { version: version + 1, of: 1, staleness: 0 });
    }
    assert!(!gate.admit(fast), "a third update would make the slow one too old");
    let mut without = gate.clone();
    without.release(slow);
    assert!(without.admit(fast), "the slow one was preempted");
    assert_eq!(gate.push(push(0, 1, 0)), Verdict::Update { version: 3, of: 1, staleness: 2 });
    assert!(gate.admit(fast) && gate.admit(slow));
    assert!(gate.admit(fast), "a pull that is repeated");
}

#[test]
fn what_arrives_twice_counts_once() {
    let mut gate = Gate::new(SYNC, 0);
    gate.push(push(0, 1, 0));
    assert_eq!(gate.push(push(0, 1, 0)), Verdict::Duplicate { version: 0 });
}

#[test]
fn an_earlier_life_of_a_worker_does_not_count() {
    let mut gate = Gate::new(SYNC, 0);
    gate.push(push(0, 7, 0));
    let generation = gate.supersede(WorkerId(0));
    assert_eq!(gate.push(push(0, 8, 0)), Verdict::Superseded { generation });
    let next = Push { generation, ..push(0, 1, 0) };
    assert_eq!(gate.push(next), Verdict::Update { version: 1, of: 2, staleness: 0 });
}

#[test]
fn a_version_that_does_not_exist_is_refused() {
    let mut gate = Gate::new(SYNC, 3);
    assert_eq!(gate.push(push(0, 1, 4)), Verdict::FromTheFuture { version: 3 });
}

#[test]
fn too_few_gradients_are_flushed_at_the_end_or_opened_again_never_lost() {
    let mut gate = Gate::new(Mode::Synchronous { gradients: 3, tolerance: 0 }, 0);
    assert_eq!(gate.flush(), None);
    gate.push(push(0, 1, 0));
    assert_eq!(gate.flush(), Some((1, 1)));
    gate.push(push(0, 2, 1));
    gate.push(push(1, 1, 1));
    assert_eq!(gate.reopen(), [push(0, 2, 1), push(1, 1, 1)]);
    assert_eq!(gate.flush(), None);
}

proptest! {
    /// Pushes arrive twice, late and in any order; each that was added is in exactly one update, or
    /// among those that wait.
    #[test]
    fn every_gradient_that_was_taken_is_in_one_update(
        pushes in proptest::collection::vec((0..3_u32, 1..20_u64, 0..6_u64), 0..80),
        gradients in 1..5_u32,
    ) {
        let mut gate = Gate::new(Mode::Synchronous { gradients, tolerance: 1 }, 0);
        let (mut taken, mut used) = (0, 0);
        for (worker, sequence, version) in pushes {
            match gate.push(push(worker, sequence, version)) {
                Verdict::Held { held } => {
                    taken += 1;
                    prop_assert!(held < gradients);
                }
                Verdict::Update { of, .. } => {
                    taken += 1;
                    used += of;
                    prop_assert_eq!(of, gradients);
                }
                _ => {}
            }
        }
        let left = gate.flush().map_or(0, |(_, of)| of);
        prop_assert_eq!(taken, used + left);
    }

    /// Workers that ask before they compute, and come and go: none computes in vain, and one can
    /// always go on.
    #[test]
    fn where_workers_wait_no_gradient_is_too_old(
        steps in proptest::collection::vec((0..6_u32, 0..8_u8), 0..300),
        max in 0..6_u64,
    ) {
        let mut gate = Gate::new(bounded(max), 0);
        let mut computing = std::collections::BTreeMap::new();
        for (sequence, (worker, choice)) in (1..).zip(steps) {
            match (computing.remove(&worker), choice) {
                (Some(_), 0) => {
                    gate.release(WorkerId(worker));
                }
                (Some(version), _) => {
                    let staleness = gate.version() - version;
                    prop_assert!(staleness <= max);
                    let update = Verdict::Update { version: gate.version() + 1, of: 1, staleness };
                    prop_assert_eq!(gate.push(push(worker, sequence, version)), update);
                }
                (None, _) => {
                    if gate.admit(WorkerId(worker)) {
                        computing.insert(worker, gate.version());
                    }
                    prop_assert!(!computing.is_empty(), "one computes");
                }
            }
        }
    }
}
