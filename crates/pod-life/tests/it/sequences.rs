//! Reports that come late, twice, or cross with a request, and the data that states carry on.

use pod_life::{Ended, FaultCause, Input, Life, Step};
use units::Instant;

use crate::samples::pull_failure;

/// The state after some inputs, of which those that are ignored change nothing.
fn life_after(inputs: &[Input]) -> Life {
    inputs.iter().fold(Life::waiting(), |life, input| match life.after(input) {
        Step::To(to, _) => to,
        Step::Ignored(_) => life,
        Step::Impossible => panic!("{} in {life:?}", input.name()),
    })
}

fn at(ms: u64) -> Instant {
    Instant(ms)
}

#[test]
fn a_repeated_or_late_report_changes_nothing() {
    let once = life_after(&[Input::Begins, Input::Runs(at(5))]);
    let late = [Input::Runs(at(9)), Input::Prepares, Input::PullFails(pull_failure(2), at(9))];
    for report in late {
        assert_eq!(life_after(&[Input::Begins, Input::Runs(at(5)), report]), once);
    }
}

#[test]
fn a_start_that_crosses_with_the_request_to_stop_is_known() {
    let life = life_after(&[Input::Begins, Input::Stops(at(7)), Input::Runs(at(5))]);
    assert_eq!((life.started_at(), life.asked_to_stop_at()), (Some(at(5)), Some(at(7))));
}

#[test]
fn a_pull_fails_since_its_first_failure_until_it_goes_on() {
    let pulls = [1, 2].map(|tries| Input::PullFails(pull_failure(tries), at(u64::from(tries))));
    let [first, second] = pulls;
    let life = life_after(&[Input::Begins, first.clone(), second]);
    let fault = life.fault().expect("a fault");
    assert_eq!(fault.since, at(1));
    assert_eq!(&*fault.reason().message, "no such image; the pull is retried (failed 2 times)");
    assert_eq!(life_after(&[Input::Begins, first, Input::Prepares]).fault(), None);
}

#[test]
fn a_run_that_could_not_start_is_the_fault_until_the_next_begins() {
    let failed = [Input::Begins, Input::Exits(Some("no memory".to_owned()), at(3))];
    let fault = |next: Input| {
        let life = life_after(&[&failed[..], &[next]].concat());
        life.fault().map(|fault| fault.cause.clone())
    };
    let cause = Some(FaultCause::NotStarted("no memory".to_owned()));
    assert_eq!(fault(Input::Pauses(at(9))), cause);
    assert_eq!(fault(Input::LeavesPlace), cause);
    assert_eq!(fault(Input::Begins), None);
}

#[test]
fn a_pod_that_was_given_up_has_failed_however_its_run_ends() {
    let stopping = [Input::Begins, Input::Runs(at(1)), Input::Stops(at(2)), Input::GivenUp];
    for end in [Input::Exits(None, at(3)), Input::LeavesPlace, Input::LosesPlace] {
        let life = life_after(&[&stopping[..], &[end]].concat());
        assert_eq!(life, Life::Ended(Ended::Failed));
    }
}

#[test]
fn an_exit_before_the_start_is_known_is_an_exit() {
    let life = life_after(&[Input::Begins, Input::Exits(None, at(3))]);
    assert_eq!(life, Life::Exited { fault: None });
    assert_eq!(
        life_after(&[Input::Begins, Input::Exits(None, at(3)), Input::Pauses(at(9))]).restarts_at(),
        Some(at(9))
    );
}
