//! Launches in runs that have turns: each way to launch waits for the lease.

use std::process::Stdio;

use fraction_abi::claim::{ACTIVITIES_BYTES, activities, activities_at};
use fraction_abi::control::Writer;
use fraction_abi::lease::Activity;
use fraction_lease::{Policy, Share, Turner};

use crate::support::{MIB, Machine, Run};

const LAUNCHES: [&str; 4] = ["", "ex", "cooperative", "graph"];

fn activity(run: &Run<'_>) -> Vec<Activity> {
    let page = std::fs::read(run.pages.join("claim")).unwrap();
    let at = usize::try_from(activities_at(0)).unwrap();
    activities(&page[at..at + ACTIVITIES_BYTES]).collect()
}

fn grant(writer: &Writer, granted: bool) {
    writer.set_lease(0, writer.lease(0).next(granted));
}

/// Runs a program that has to wait until the run has the lease. Returns its output.
fn waits_for_the_lease(run: &Run<'_>, how: &str, steps: &str) -> String {
    let writer = run.writer();
    grant(&writer, false);
    let waits = || activity(run).iter().any(|activity| activity.waits);
    let child = loop {
        let mut child = run.command(how, steps).stdout(Stdio::piped()).spawn().unwrap();
        let mut has_ended = || child.try_wait().unwrap().is_some();
        while !waits() && !has_ended() {
            std::thread::yield_now();
            writer.beat();
        }
        // Where this thread stood still for long, the agent was taken for gone.
        if !has_ended() {
            break child;
        }
    };
    grant(&writer, true);
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn failure_12_each_way_to_launch_waits_for_the_lease() {
    let machine = Machine::new();
    for how in ["dlsym", "threads"] {
        for launch in LAUNCHES {
            let run = machine.run(&format!("{how}-{launch}"), 4096 * MIB);
            let steps = format!("init context:0 launches:3:100:{launch}");
            let text = waits_for_the_lease(&run, how, &steps);
            assert_eq!(text, "init 0\ncontext 0\nlaunches 0\n", "{how} {launch}");
            // It has waited for all work, and reports that.
            assert!(activity(&run).iter().all(|activity| !activity.busy && !activity.waits));
        }
    }
}

#[test]
fn a_launch_waits_after_the_stream_or_the_context_of_a_capture_was_destroyed() {
    let machine = Machine::new();
    for what in ["stream", "context"] {
        let run = machine.run(what, 4096 * MIB);
        let steps = format!("init context:0 abandon:{what} launches:3:100");
        let text = waits_for_the_lease(&run, "dlsym", &steps);
        assert_eq!(text, "init 0\ncontext 0\nabandon 0\nlaunches 0\n", "{what}");
    }
}

#[test]
fn a_launch_waits_some_seconds_after_a_capture_began_whose_thread_has_ended() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let steps = "init context:0 abandon:thread sleep:3001 launches:3:100";
    let text = waits_for_the_lease(&run, "dlsym", steps);
    assert_eq!(text, "init 0\ncontext 0\nabandon 0\nsleep 0\nlaunches 0\n");
}

#[test]
fn of_many_captures_at_once_each_is_known() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    grant(&run.writer(), false);
    assert_eq!(run.prints("dlsym", "init context:0 captures:80"), "init 0, context 0, captures 0",);
    assert_eq!(activity(&run), []);
}

#[test]
fn what_is_captured_waits_for_no_turn_after_the_end_of_a_capture_that_was_none() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    grant(&run.writer(), false);
    let printed = run.prints("dlsym", "init context:0 strayend:0");
    assert_eq!(printed, "init 0, context 0, strayend 0");
    assert_eq!(activity(&run), []);
}

#[test]
fn without_turns_a_launch_says_nothing() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    assert_eq!(
        run.prints("dlsym", "init context:0 launches:3:100"),
        "init 0, context 0, launches 0",
    );
    assert_eq!(activity(&run), []);
}

#[test]
fn if_the_agent_is_gone_launches_go_on_and_limits_stay() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    grant(&run.writer(), false);
    assert_eq!(
        run.prints("dlsym", "init context:0 launches:3:100 alloc:3797M"),
        "init 0, context 0, launches 0, alloc 2",
    );
}

#[test]
fn two_runs_take_turns_until_both_are_done() {
    let machine = Machine::new();
    let turner = Turner::start().unwrap();
    let runs = ["first", "second"].map(|name| machine.run(name, 2048 * MIB));
    let share = Share { millionths: 500_000, policy: Policy::Fair };
    for run in &runs {
        let pages = run.pages.clone();
        turner.set(&fraction_lease::Run { pages, device: [1; 16], share }).unwrap();
    }
    let controlled = |run: &Run<'_>| run.writer().lease(0).is_controlled();
    while !runs.iter().all(controlled) {
        std::thread::yield_now();
    }
    let children = runs.each_ref().map(|run| {
        let mut command = run.command("dlsym", "init context:0 launches:300:500");
        command.stdout(Stdio::piped()).spawn().unwrap()
    });
    for child in children {
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(text, "init 0\ncontext 0\nlaunches 0\n");
    }
    // One that is left alone may lose its turns at once, so both are looked at before one goes.
    assert!(runs.iter().all(controlled));
    for run in &runs {
        turner.remove(&run.pages);
        assert!(!controlled(run));
    }
}
