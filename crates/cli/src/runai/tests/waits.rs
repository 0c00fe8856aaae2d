//! What ends a wait.

use super::samples::workload;
use crate::runai::intent::Until;
use crate::runai::wait::reached;

#[test]
fn a_wait_ends_when_it_is_reached_or_cannot_be() {
    let ends = |phase: &str, until| {
        let workload = workload(&format!("a Training {phase} team-a"));
        reached(&workload, until).map(|done| done.is_ok())
    };
    for (phase, running, ended) in [
        ("Pending", None, None),
        ("Running", Some(true), None),
        ("Completed", Some(true), Some(true)),
        ("Failed", Some(false), Some(false)),
        ("Stopped", Some(false), Some(false)),
    ] {
        assert_eq!(ends(phase, Until::Running), running, "{phase}");
        assert_eq!(ends(phase, Until::Ended), ended, "{phase}");
        assert_eq!(ends(phase, Until::Deleted), None, "{phase}");
    }
}
