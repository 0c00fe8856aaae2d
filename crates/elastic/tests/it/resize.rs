//! The conversation about workers whose places are taken.

use elastic::{Resize, ResizeStep, WorkerId};
use units::Instant;

const ONE: WorkerId = WorkerId(1);
const TWO: WorkerId = WorkerId(2);

/// Two workers leave until then.
fn both(deadline: u64) -> Resize {
    let mut resize = Resize::default();
    for worker in [ONE, TWO] {
        let step = resize.take(worker, Instant(deadline));
        assert_eq!(step, Some(ResizeStep::Prepare { worker, deadline: Instant(deadline) }));
    }
    resize
}

#[test]
fn those_who_leave_prepare_and_are_released_one_by_one() {
    let mut resize = both(30);
    assert_eq!(resize.prepared(TWO), Some(ResizeStep::Release(TWO)));
    assert_eq!(resize.prepared(TWO), None);
    assert_eq!(resize.turn(Instant(29)), None);
    assert_eq!(resize.prepared(ONE), Some(ResizeStep::Release(ONE)));
    assert_eq!((resize.is_open(), resize.turn(Instant(99))), (false, None));
}

#[test]
fn who_does_not_answer_in_time_is_stopped() {
    let mut resize = both(30);
    resize.prepared(ONE);
    assert_eq!(resize.turn(Instant(30)), Some(ResizeStep::Stop(vec![TWO])));
    assert_eq!(resize.turn(Instant(31)), None);
    assert_eq!(resize.prepared(TWO), None, "its place is free since it was stopped");
    assert!(!resize.is_leaving(TWO));
}

#[test]
fn to_take_a_place_twice_delays_nothing() {
    let mut resize = both(30);
    assert_eq!(resize.take(ONE, Instant(60)), None);
    assert_eq!(resize.turn(Instant(30)), Some(ResizeStep::Stop(vec![ONE, TWO])));
    assert_eq!(resize.take(ONE, Instant(60)), None, "it is stopped already");
    assert!(!resize.is_open() && resize.deadline().is_none());
}
