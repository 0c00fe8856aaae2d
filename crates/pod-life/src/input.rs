//! The inputs that change the state of a pod.

use spec::PullFailure;
use units::Instant;

use crate::Ended;

/// An input of a pod's life: a decision, a command, or a report of the engine about its present
/// run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// It has a place, new or kept, and waits there for the pods that it works with.
    Placed,
    /// Its next run starts in its place.
    Begins,
    /// The engine fetches the image or the data of its run.
    Prepares,
    /// The image of its run could not be pulled.
    PullFails(PullFailure, Instant),
    /// Its process runs since this instant.
    Runs(Instant),
    /// Its process answers its probe, or does not: the text is the answer.
    Probed(Option<String>, Instant),
    /// The engine does not know its run, which was requested.
    Unknown,
    /// Its run is to stop; without one it gives up its place. The time is that of the request.
    Stops(Instant),
    /// Another pod of its gang restarts: it waits for that in its place.
    Holds,
    /// Its run is over; the text tells why the machine could not start it, if it could not.
    Exits(Option<String>, Instant),
    /// It restarts in its place at this instant.
    Pauses(Instant),
    /// It leaves its place, where no process of it is left.
    LeavesPlace,
    /// Its place no longer exists.
    LosesPlace,
    /// It ends for good.
    Ends(Ended),
    /// Its workload is given up, after its run was requested to stop.
    GivenUp,
    /// Its gang starts over: it is to run again if it has ended.
    StartsOver,
}

impl Input {
    /// Name of the input, for documents and errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Placed => "Placed",
            Self::Begins => "Begins",
            Self::Prepares => "Prepares",
            Self::PullFails(..) => "PullFails",
            Self::Runs(_) => "Runs",
            Self::Probed(..) => "Probed",
            Self::Unknown => "Unknown",
            Self::Stops(_) => "Stops",
            Self::Holds => "Holds",
            Self::Exits(..) => "Exits",
            Self::Pauses(_) => "Pauses",
            Self::LeavesPlace => "LeavesPlace",
            Self::LosesPlace => "LosesPlace",
            Self::Ends(_) => "Ends",
            Self::GivenUp => "GivenUp",
            Self::StartsOver => "StartsOver",
        }
    }
}
