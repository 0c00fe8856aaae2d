//! The clock of the machine is set by a day, while a server runs and while there is none. Owns: that
//! runs go on, and new ones start and end. Does not know about: how durations are counted.

use std::fs;
use std::process::Command;

use crate::isolation::{AS_NOBODY, as_nobody};
use crate::sandbox::{Sandbox, wait_until};

/// A library that puts the clock of a program ahead, by the seconds in a file.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    char text[32] = {0};
    int rc = syscall(SYS_clock_gettime, id, now), file;
    if (rc || id != CLOCK_REALTIME || (file = open(getenv("AHEAD"), O_RDONLY | O_CLOEXEC)) < 0)
        return rc;
    if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
    close(file);
    return 0;
}
"#;

const DAY_S: i64 = 86_400;

/// A machine whose clock can be set.
struct Machine {
    sandbox: Sandbox,
    up: String,
}

impl Machine {
    /// A machine whose server is started by this command before `elastane`.
    fn new(sandbox: Sandbox, by: &str) -> Option<Self> {
        let (source, shim) = (sandbox.home().join("clock.c"), sandbox.home().join("clock.so"));
        fs::write(&source, SHIM).expect("written");
        let options = ["-shared", "-fPIC", "-o"];
        let compiled = Command::new("cc").args(options).args([&shim, &source]).status();
        if !compiled.is_ok_and(|status| status.success()) {
            return skip::missing("no C compiler");
        }
        let (shim, ahead) = (shim.display(), sandbox.home().join("ahead"));
        let clock = format!("env LD_PRELOAD={shim} AHEAD={}", ahead.display());
        let up = format!("{by} {clock} elastane up --gpus 2x1GiB --runtime process");
        let machine = Self { sandbox, up };
        machine.set(0);
        Some(machine)
    }

    fn set(&self, ahead_s: i64) {
        // A reader finds either value, and never an empty file.
        let (new, file) = (self.sandbox.home().join("new"), self.sandbox.home().join("ahead"));
        fs::write(&new, ahead_s.to_string()).expect("written");
        fs::rename(new, file).expect("renamed");
    }

    /// A command is carried out, once the server has noticed the time and replaced its token.
    fn does(&self, line: &str) {
        let done = || self.sandbox.shell(line).code == Some(0);
        assert!(wait_until(done), "{line}\n{}", self.sandbox.shell(line).text);
    }

    fn up(&mut self) {
        self.sandbox.start_server(&self.up);
    }

    /// Sets the clock a day ahead and back, and a day back and forward.
    fn holds(mut self, restarts: bool) {
        self.up();
        self.does("elastane project create team-a && runai config project team-a");
        self.does("runai submit first -i x -g 1 --command -- sh -c 'echo begins; sleep 1000'");
        self.sandbox.await_status("runai list jobs", "first", "Running");
        for (number, ahead_s) in [DAY_S, 0, -DAY_S, 0].into_iter().enumerate() {
            if restarts {
                self.sandbox.kill_server();
            }
            self.set(ahead_s);
            if restarts {
                self.up();
            }
            let name = format!("next-{number}");
            self.does(&format!("runai submit {name} -i x -g 1 --command -- sleep 0.1"));
            self.sandbox.await_status("runai list jobs", &name, "Succeeded");
            self.sandbox.await_status("runai list jobs", "first", "Running");
            self.does(&format!("runai delete job {name}"));
        }
        let output = self.sandbox.shell("runai logs first").text;
        assert_eq!(output.matches("begins").count(), 1, "{output}");
    }
}

#[test]
fn a_clock_that_is_set_by_a_day_while_a_server_runs_stops_nothing() {
    if let Some(machine) = Machine::new(Sandbox::new(), "") {
        machine.holds(false);
    }
}

#[test]
fn a_clock_that_is_set_by_a_day_while_there_is_no_server_stops_nothing() {
    if let Some(machine) = Machine::new(Sandbox::new(), "") {
        machine.holds(true);
    }
}

#[test]
fn nor_does_it_where_the_server_is_not_root() {
    for restarts in [false, true] {
        let Some(sandbox) = as_nobody() else { return };
        if let Some(machine) = Machine::new(sandbox, AS_NOBODY) {
            machine.holds(restarts);
        }
    }
}
