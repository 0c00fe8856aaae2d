//! One state and one input of each kind. A kind that is added without a sample does not compile.

use pod_life::{Ended, Fault, FaultCause, Input, Life};
use spec::PullFailure;
use units::Instant;

const NOW: Instant = Instant(1000);

pub(crate) fn not_started() -> Fault {
    Fault { cause: FaultCause::NotStarted("no memory".to_owned()), since: NOW }
}

pub(crate) fn pull_failure(tries: u32) -> PullFailure {
    PullFailure { why: "no such image".to_owned(), tries, again_in_ms: 500 }
}

/// The state after this one in the list of samples.
fn next_state(state: Option<&Life>) -> Option<Life> {
    Some(match state {
        None => Life::Waiting { fault: None },
        Some(Life::Waiting { .. }) => Life::Assembling,
        Some(Life::Assembling) => Life::Paused { until: NOW, fault: None },
        Some(Life::Paused { .. }) => Life::Starting { fault: None },
        Some(Life::Starting { .. }) => Life::Running { since: NOW, fault: None },
        Some(Life::Running { .. }) => {
            Life::Stopping { asked_at: Some(NOW), since: None, given_up: false }
        }
        Some(Life::Stopping { given_up: false, .. }) => {
            Life::Stopping { asked_at: Some(NOW), since: None, given_up: true }
        }
        Some(Life::Stopping { .. }) => Life::Exited { fault: Some(not_started()) },
        Some(Life::Exited { .. }) => Life::Ended(Ended::Succeeded),
        Some(Life::Ended(Ended::Succeeded)) => Life::Ended(Ended::Failed),
        Some(Life::Ended(Ended::Failed)) => return None,
    })
}

/// The input after this one in the list of samples.
fn next_input(input: Option<&Input>) -> Option<Input> {
    Some(match input {
        None => Input::Placed,
        Some(Input::Placed) => Input::Begins,
        Some(Input::Begins) => Input::Prepares,
        Some(Input::Prepares) => Input::PullFails(pull_failure(1), NOW),
        Some(Input::PullFails(..)) => Input::Runs(NOW),
        Some(Input::Runs(_)) => Input::Probed(None, NOW),
        Some(Input::Probed(..)) => Input::Unknown,
        Some(Input::Unknown) => Input::Stops(NOW),
        Some(Input::Stops(_)) => Input::Holds,
        Some(Input::Holds) => Input::Exits(None, NOW),
        Some(Input::Exits(..)) => Input::Pauses(NOW),
        Some(Input::Pauses(_)) => Input::LeavesPlace,
        Some(Input::LeavesPlace) => Input::LosesPlace,
        Some(Input::LosesPlace) => Input::Ends(Ended::Succeeded),
        Some(Input::Ends(Ended::Succeeded)) => Input::Ends(Ended::Failed),
        Some(Input::Ends(Ended::Failed)) => Input::GivenUp,
        Some(Input::GivenUp) => Input::StartsOver,
        Some(Input::StartsOver) => return None,
    })
}

pub(crate) fn states() -> Vec<Life> {
    std::iter::successors(next_state(None), |state| next_state(Some(state))).collect()
}

pub(crate) fn inputs() -> Vec<Input> {
    std::iter::successors(next_input(None), |input| next_input(Some(input))).collect()
}
