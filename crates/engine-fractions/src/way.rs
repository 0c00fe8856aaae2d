//! How the runs of this machine get their libraries. Owns: which way works here, and what it keeps.
//! Does not know about: single runs.

use std::io;
use std::path::Path;

use engine::{Enforcement, FractionLimit, Mechanism, TimeSlicing};
use fraction_agent::Way;

use crate::policy::{Place, Runs};

/// The way that works.
pub(crate) struct Chosen<'a> {
    pub(crate) way: Way,
    /// Where tests of it start.
    pub(crate) place: Option<Place<'a>>,
    /// Why it is not a better one.
    pub(crate) failed: Option<String>,
}

/// The best way for these runs that passes a test.
pub(crate) fn choose<'a>(
    runs: Runs<'a>,
    test: impl FnOnce(Option<Place<'a>>) -> Result<(), String>,
) -> Chosen<'a> {
    let place = match runs {
        Runs::Containers => return Chosen { way: Way::Containers, place: None, failed: None },
        Runs::Processes(None) => return Chosen { way: Way::Variables, place: None, failed: None },
        Runs::Processes(place) => place,
    };
    let opened = open_point().map_err(|error| error.to_string());
    match opened.and_then(|()| test(place)) {
        Ok(()) => Chosen { way: Way::Mounts, place, failed: None },
        Err(why) => {
            tracing::warn!("limits of GPUs depend on variables, as mounts fail: {why}");
            Chosen { way: Way::Variables, place: None, failed: Some(why) }
        }
    }
}

/// Makes the folder that the pages of runs are mounted over.
pub(crate) fn open_point() -> io::Result<()> {
    fraction_agent::open_point(Path::new(fraction_agent::POINT))
}

/// Enforcement of fractions after a successful check, on the installed driver's GPUs or on
/// simulated ones.
pub(crate) fn kept(
    way: Way,
    installed: bool,
    time_slicing: TimeSlicing,
    mounts_failed: Option<&str>,
) -> FractionLimit {
    let (mechanism, why) = match way {
        Way::Containers if installed => (
            Mechanism::PreloadedLibraries,
            "a program that the loader of glibc does not start is not limited: a static one, or one \
             of an image with musl"
                .to_owned(),
        ),
        Way::Mounts | Way::Containers => (Mechanism::MountedLibraries, String::new()),
        Way::Variables => {
            let instead = match mounts_failed {
                Some(why) => format!("mounts fail here: {why}"),
                None => "start the server as root to mount the libraries instead".to_owned(),
            };
            let what = "a program with a cleared environment is not limited";
            (Mechanism::Variables, format!("{what}; {instead}"))
        }
    };
    FractionLimit { level: Enforcement::Cooperative, mechanism, time_slicing, why }
}

pub(crate) fn log_unkept(driver: &str, limit: &FractionLimit) {
    if limit.level == Enforcement::None {
        tracing::info!("fractions of GPUs of the {driver} driver are not kept: {}", limit.why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_mounts_fail_limits_depend_on_variables_and_say_why() {
        let enter = |_: &mut std::process::Command, _| Ok(());
        let place = Some(((1, 1), &enter as _));
        let chosen = choose(Runs::Processes(place), |_| Err("no mount".to_owned()));
        assert_eq!(chosen.way, Way::Variables);
        assert!(chosen.place.is_none());
        let limit = kept(chosen.way, false, TimeSlicing::None, chosen.failed.as_deref());
        assert_eq!(limit.mechanism, Mechanism::Variables);
        assert!(limit.why.contains("; mounts fail here: "), "{}", limit.why);
        let chosen = choose(Runs::Processes(None), |_| Ok(()));
        let limit = kept(chosen.way, false, TimeSlicing::None, chosen.failed.as_deref());
        assert!(limit.why.contains("; start the server as root"), "{}", limit.why);
    }
}
