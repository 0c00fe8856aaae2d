//! Ends of a wait.

use tokio::time::Instant;

use super::samples::workload;
use crate::wait::reached;
use cli_kit::exit::Error;
use dialects::intent::WaitCondition;

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
        assert_eq!(ends(phase, WaitCondition::Running), running, "{phase}");
        assert_eq!(ends(phase, WaitCondition::Ended), ended, "{phase}");
        assert_eq!(ends(phase, WaitCondition::Deleted), None, "{phase}");
    }
}

#[test]
fn a_login_that_ran_out_is_renewed_once() {
    let (url, message) = ("http://h".to_owned(), "expired".to_owned());
    let credential = client::Credential::Login;
    let ran_out = Error::Server(client::Error::NotLoggedIn { url, message, credential });
    assert!(ran_out.is_lost(None));
    assert!(!ran_out.is_lost(Some(Instant::now())), "there is no session");
}
