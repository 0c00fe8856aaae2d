//! A check of `make gpu-check` that hangs is ended with all its programs, and what follows goes on. Alone
//! in its process: what ends are all programs that it started.
#![cfg(target_os = "linux")]

#[path = "../benches/gpu_check/watch.rs"]
mod watch;

use std::process::Command;
use std::time::Duration;

use watch::{Hung, within};

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_check_that_hangs_is_ended_with_its_programs_and_the_next_one_goes_on() {
    // A program that waits for another one, as a shell does.
    let hangs = || Command::new("sh").args(["-c", "sleep 1000; true"]).status().expect("started");
    let Err(Hung { ended, goes_on }) = within(Duration::from_millis(500), hangs) else {
        panic!("it ended by itself");
    };
    assert!(ended.contains("sh (") && ended.contains("sleep ("), "{ended}");
    assert!(!goes_on, "it ended with its programs");

    let works = || Command::new("true").status().expect("started").success();
    assert!(within(LONG, works).is_ok_and(|works| works));

    let hung = within(LONG, || -> bool { panic!("a check that panics, on purpose") });
    assert!(hung.is_err_and(|hung| hung.ended.contains("panicked")));
}
