//! The conversation about another number of workers.

use elastic::{Resize, ResizeStep, WorkerId};
use units::Instant;

fn workers(count: u32) -> Vec<WorkerId> {
    (0..count).map(WorkerId).collect()
}

#[test]
fn more_workers_just_start() {
    let mut resize = Resize::default();
    assert_eq!(resize.offer(&workers(2), 5, Instant(9)), ResizeStep::Start(3));
    assert!(!resize.is_open());
}

#[test]
fn those_who_leave_prepare_and_are_released_one_by_one() {
    let mut resize = Resize::default();
    let step = resize.offer(&workers(4), 2, Instant(30));
    let leaving = vec![WorkerId(2), WorkerId(3)];
    assert_eq!(step, ResizeStep::Prepare { leaving, deadline: Instant(30) });
    assert_eq!(resize.prepared(WorkerId(3)), Some(ResizeStep::Release(vec![WorkerId(3)])));
    assert_eq!(resize.prepared(WorkerId(3)), None);
    assert_eq!(resize.turn(Instant(29)), None);
    assert_eq!(resize.prepared(WorkerId(2)), Some(ResizeStep::Release(vec![WorkerId(2)])));
    assert_eq!((resize.is_open(), resize.turn(Instant(99))), (false, None));
}

#[test]
fn who_does_not_answer_in_time_is_stopped() {
    let mut resize = Resize::default();
    resize.offer(&workers(3), 1, Instant(30));
    resize.prepared(WorkerId(1));
    assert_eq!(resize.turn(Instant(30)), Some(ResizeStep::Stop(vec![WorkerId(2)])));
    assert_eq!(resize.turn(Instant(31)), None);
}

#[test]
fn a_second_offer_counts_those_who_stay_and_delays_nothing() {
    let mut resize = Resize::default();
    resize.offer(&workers(4), 3, Instant(30));
    let step = resize.offer(&workers(4), 2, Instant(60));
    assert_eq!(step, ResizeStep::Prepare { leaving: vec![WorkerId(2)], deadline: Instant(60) });
    assert_eq!(resize.offer(&workers(4), 4, Instant(60)), ResizeStep::Start(2));
    assert_eq!(resize.turn(Instant(30)), Some(ResizeStep::Stop(vec![WorkerId(3)])));
    assert!(resize.is_open() && resize.deadline() == Some(Instant(60)));
}

#[test]
fn who_is_stopped_does_not_count_as_staying() {
    let mut resize = Resize::default();
    resize.offer(&workers(2), 1, Instant(30));
    resize.turn(Instant(30));
    assert_eq!(resize.offer(&workers(2), 2, Instant(60)), ResizeStep::Start(1));
    assert_eq!(resize.prepared(WorkerId(1)), None, "its place is free since it was stopped");
    assert!(!resize.is_leaving(WorkerId(1)));
}
