//! The transition function of a pod's life.

use units::Instant;

use crate::{Ended, Fault, FaultCause, Input, Life};

/// Effect of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The engine starts the next run.
    StartNext,
    /// The engine starts the present run again.
    StartAgain,
    /// The engine stops the present run.
    Stop,
    /// The engine stops the present run, which has no place any more.
    StopOrphan,
    /// The place is free.
    Vacate,
}

/// Outcome of an input in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The pod is in another state, or in the same with other data.
    To(Life, Option<Effect>),
    /// Nothing changes; the text is the cause.
    Ignored(&'static str),
    /// The input cannot occur in this state: its caller is wrong.
    Impossible,
}

use Step::{Ignored, Impossible, To};

const NO_RUN: &str = "it has no run";
const NO_PLACE: &str = "it has no place";
const LATE: &str = "the report is late: its process has started";
const REPEATED: &str = "the report was repeated";
const STOPS: &str = "its run is being stopped";

impl Life {
    /// The state after an input, and the effect on its way.
    #[must_use]
    pub fn after(&self, input: &Input) -> Step {
        match input {
            Input::Placed => self.placed(),
            Input::Begins => self.begins(),
            Input::Holds => self.holds(),
            Input::Prepares | Input::PullFails(..) | Input::Runs(_) | Input::Probed(..) => {
                self.reported(input)
            }
            Input::Unknown => match self {
                Self::Starting { .. } | Self::Running { .. } => {
                    To(Self::Starting { fault: None }, Some(Effect::StartAgain))
                }
                Self::Stopping { .. } => Ignored(STOPS),
                _ => self.without_run(),
            },
            Input::Stops(at) => self.stops(*at),
            Input::Exits(why, now) => self.exits(why.as_deref(), *now),
            Input::Pauses(until) => match self {
                Self::Exited { fault } => {
                    To(Self::Paused { until: *until, fault: fault.clone() }, None)
                }
                _ => Impossible,
            },
            Input::LeavesPlace => self.leaves(Some(Effect::Vacate)),
            Input::LosesPlace => self.leaves(self.has_run().then_some(Effect::StopOrphan)),
            Input::Ends(how) => match self {
                Self::Exited { .. } => To(Self::Ended(*how), Some(Effect::Vacate)),
                _ => Impossible,
            },
            Input::GivenUp => self.given_up(),
            Input::StartsOver => match self {
                Self::Ended(_) => To(Self::waiting(), None),
                _ => Ignored("it has not ended"),
            },
        }
    }

    fn placed(&self) -> Step {
        match self {
            Self::Waiting { .. } | Self::Paused { .. } | Self::Exited { .. } => {
                To(Self::Assembling, None)
            }
            _ => Impossible,
        }
    }

    fn begins(&self) -> Step {
        match self {
            Self::Waiting { .. } | Self::Assembling | Self::Paused { .. } | Self::Exited { .. } => {
                To(Self::Starting { fault: None }, Some(Effect::StartNext))
            }
            _ => Impossible,
        }
    }

    fn holds(&self) -> Step {
        match self {
            Self::Paused { .. } => To(Self::Assembling, None),
            Self::Assembling => Ignored("it waits already"),
            _ => Impossible,
        }
    }

    /// A report of the engine, or of a probe, about a run that is not over.
    fn reported(&self, report: &Input) -> Step {
        match (self, report) {
            (Self::Starting { .. }, Input::Prepares) => To(Self::Starting { fault: None }, None),
            (Self::Starting { fault }, Input::PullFails(failure, now)) => {
                let cause = FaultCause::ImagePull(failure.clone());
                let fault = Some(Fault::after(fault.as_ref(), cause, *now));
                To(Self::Starting { fault }, None)
            }
            (Self::Starting { .. }, Input::Runs(since)) => {
                To(Self::Running { since: *since, fault: None }, None)
            }
            (Self::Starting { .. }, _) => Ignored("its process has not started"),
            (Self::Running { since, fault }, Input::Probed(answer, now)) => {
                let cause = answer.clone().map(FaultCause::NotReady);
                let fault = cause.map(|cause| Fault::after(fault.as_ref(), cause, *now));
                To(Self::Running { since: *since, fault }, None)
            }
            (Self::Running { .. }, Input::Runs(_)) => Ignored(REPEATED),
            (Self::Running { .. }, _) => Ignored(LATE),
            // The start crossed with the request to stop.
            (Self::Stopping { asked_at, since: None, given_up }, Input::Runs(since)) => {
                let (asked_at, given_up) = (*asked_at, *given_up);
                To(Self::Stopping { asked_at, since: Some(*since), given_up }, None)
            }
            (Self::Stopping { .. }, _) => Ignored(STOPS),
            _ => self.without_run(),
        }
    }

    fn stops(&self, at: Instant) -> Step {
        let stopping = |since| {
            let (asked_at, given_up) = (Some(at), false);
            To(Self::Stopping { asked_at, since, given_up }, Some(Effect::Stop))
        };
        match self {
            Self::Assembling | Self::Paused { .. } => To(Self::waiting(), Some(Effect::Vacate)),
            Self::Starting { .. } => stopping(None),
            Self::Running { since, .. } => stopping(Some(*since)),
            // The first request counts.
            Self::Stopping { .. } => To(self.clone(), Some(Effect::Stop)),
            Self::Waiting { .. } | Self::Ended(_) => Ignored(NO_PLACE),
            Self::Exited { .. } => Impossible,
        }
    }

    fn exits(&self, not_started: Option<&str>, now: Instant) -> Step {
        let cause = not_started.map(|why| FaultCause::NotStarted(why.to_owned()));
        match self {
            Self::Stopping { given_up: true, .. } => {
                To(Self::Ended(Ended::Failed), Some(Effect::Vacate))
            }
            Self::Starting { .. } | Self::Running { .. } | Self::Stopping { .. } => {
                let fault = cause.map(|cause| Fault::after(None, cause, now));
                To(Self::Exited { fault }, None)
            }
            _ => self.without_run(),
        }
    }

    fn leaves(&self, effect: Option<Effect>) -> Step {
        match self {
            Self::Waiting { .. } | Self::Ended(_) => Ignored(NO_PLACE),
            Self::Stopping { given_up: true, .. } => To(Self::Ended(Ended::Failed), effect),
            Self::Exited { fault } => To(Self::Waiting { fault: fault.clone() }, effect),
            _ => To(Self::waiting(), effect),
        }
    }

    fn given_up(&self) -> Step {
        match self {
            Self::Waiting { .. } => To(Self::Ended(Ended::Failed), None),
            Self::Stopping { asked_at, since, .. } => {
                let (asked_at, since) = (*asked_at, *since);
                To(Self::Stopping { asked_at, since, given_up: true }, None)
            }
            Self::Ended(_) => Ignored("it has ended"),
            _ => Impossible,
        }
    }

    /// An input about a run, where there is none.
    const fn without_run(&self) -> Step {
        match self {
            Self::Exited { .. } => Impossible,
            _ => Ignored(NO_RUN),
        }
    }
}
