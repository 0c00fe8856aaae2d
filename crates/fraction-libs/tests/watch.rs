//! A check of `make gpu-check` that hangs is ended with all its programs, and the next check runs.
//! Alone in its process, since all programs that the process started are ended.
#![cfg(target_os = "linux")]

#[path = "../benches/gpu_check/watch.rs"]
mod watch;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use watch::{Hung, adopt_daemons, until, within};

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_check_that_hangs_is_ended_with_its_programs_and_the_next_one_goes_on() {
    adopt_daemons().expect("permitted");
    let (all_run, runs) = mpsc::channel();
    let folder = tempfile::tempdir().expect("a folder");
    let of_daemon = folder.path().join("input");
    // A program that waits for another one, as a shell does, which waits for input that does not
    // come; and one that leaves its parent, as a daemon does.
    let hangs = move || {
        let mut shell = Command::new("sh");
        shell.args(["-c", "mkfifo \"$0\"; (cat \"$0\" &); cat; true"]).arg(&of_daemon);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("started");
        let mut input = shell.stdin.take().expect("a pipe");
        let mut output = shell.stdout.take().expect("a pipe");
        input.write_all(b"x").expect("written");
        output.read_exact(&mut [0]).expect("it runs");
        let mut second = File::options().write(true).open(&of_daemon).expect("read by the daemon");
        second.write_all(b"x").expect("written");
        output.read_exact(&mut [0]).expect("all run");
        all_run.send(()).expect("waited for");
        let ended = shell.wait().expect("reaped");
        drop(input);
        ended
    };
    let once_it_hangs = |answered: &mpsc::Receiver<_>| {
        runs.recv().expect("all run");
        answered.recv_timeout(Duration::ZERO)
    };
    let Err(Hung { ended, goes_on }) = until(once_it_hangs, hangs) else {
        panic!("it ended by itself");
    };
    assert!(ended.contains("sh (") && ended.matches("cat (").count() == 2, "{ended}");
    assert!(!goes_on, "it ended with its programs");

    let works = || Command::new("true").status().expect("started").success();
    assert!(within(LONG, works).is_ok_and(|works| works));

    let hung = within(LONG, || -> bool { panic!("a check that panics, on purpose") });
    assert!(hung.is_err_and(|hung| hung.ended.contains("panicked")));
}
