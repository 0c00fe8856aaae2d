//! Faults that keep the run of a pod from starting, or from serving.

use std::mem::discriminant;

use spec::PullFailure;
use units::Instant;
use view::ReasonView;
use view::codes::{IMAGE_PULL, NOT_READY, NOT_STARTED};

/// A fault of a pod, since an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its cause.
    pub cause: FaultCause,
    /// Time at which a fault of this kind began.
    pub since: Instant,
}

/// Cause of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultCause {
    /// The image of its run cannot be pulled now, and the pull is retried.
    ImagePull(PullFailure),
    /// The machine could not start its last run; the text is the end of that run, for users.
    NotStarted(String),
    /// Its process does not answer its probe; the text is the answer, for users.
    NotReady(String),
}

impl Fault {
    /// A fault at an instant. One that follows another of its kind began with that one.
    pub(crate) fn after(before: Option<&Self>, cause: FaultCause, now: Instant) -> Self {
        let same = before.filter(|before| discriminant(&before.cause) == discriminant(&cause));
        Self { since: same.map_or(now, |before| before.since), cause }
    }

    /// Its coded reason.
    #[must_use]
    pub fn reason(&self) -> ReasonView {
        let (code, message) = match &self.cause {
            FaultCause::ImagePull(failure) => {
                let (why, failed) = (&failure.why, failure.times());
                (IMAGE_PULL, format!("{why}; the pull is retried (failed {failed})"))
            }
            FaultCause::NotStarted(why) => (NOT_STARTED, why.clone()),
            FaultCause::NotReady(why) => (NOT_READY, why.clone()),
        };
        ReasonView { code: code.code.into(), message: message.into(), at: self.since }
    }
}
