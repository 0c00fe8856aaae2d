//! How the runs of this machine get their libraries. Owns: which way works here, and what it keeps. Does
//! not know about: single runs.

use std::io;
use std::path::Path;

use engine::{Enforcement, FractionLimit, Mechanism, TimeSlicing};
use fraction_agent::Way;

use crate::policy::{Place, Runs};

/// The best way for these runs that passes a test, and where the next tests of it start.
pub(crate) fn choose<'a>(
    runs: Runs<'a>,
    test: impl FnOnce(Option<Place<'a>>) -> Result<(), String>,
) -> (Way, Option<Place<'a>>) {
    let place = match runs {
        Runs::Containers => return (Way::Containers, None),
        Runs::Processes(None) => return (Way::Variables, None),
        Runs::Processes(place) => place,
    };
    let opened = open_point().map_err(|error| error.to_string());
    match opened.and_then(|()| test(place)) {
        Ok(()) => (Way::Mounts, place),
        Err(why) => {
            tracing::warn!("limits of GPUs depend on variables, as mounts fail: {why}");
            (Way::Variables, None)
        }
    }
}

/// Makes the folder that the pages of runs are mounted over.
pub(crate) fn open_point() -> io::Result<()> {
    fraction_agent::open_point(Path::new(fraction_agent::POINT))
}

/// What keeps fractions, once that was seen: of the installed driver's GPUs, or of simulated ones.
pub(crate) fn kept(way: Way, installed: bool, time_slicing: TimeSlicing) -> FractionLimit {
    let (mechanism, why) = match way {
        Way::Containers if installed => (
            Mechanism::PreloadedLibraries,
            "a program that the loader of glibc does not start is not limited: a static one, or one \
             of an image with musl",
        ),
        Way::Mounts | Way::Containers => (Mechanism::MountedLibraries, ""),
        Way::Variables => (
            Mechanism::Variables,
            "a program with a cleared environment is not limited; start the server as root to mount \
             the libraries instead",
        ),
    };
    FractionLimit { level: Enforcement::Cooperative, mechanism, time_slicing, why: why.to_owned() }
}

pub(crate) fn log_unkept(driver: &str, limit: &FractionLimit) {
    if limit.level == Enforcement::None {
        tracing::info!("fractions of GPUs of the {driver} driver are not kept: {}", limit.why);
    }
}
