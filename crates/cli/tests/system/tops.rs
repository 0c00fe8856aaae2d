//! `runai top` against a real server, as tables and live at a terminal: simulated GPUs are
//! allocated, and not measured.

use rustix::process::Signal;

use crate::sandbox::{Sandbox, wait_until};
use crate::sessions::{Terminal, end};

#[test]
fn top_shows_what_nodes_and_jobs_use() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x1GiB");
    let says = |line: &str, code: i32| {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
        output.text
    };
    says("elastane project create team-a --gpu-quota 2; runai config project team-a", 0);
    says("runai submit busy -i x -g 1 --command -- sh -c 'while :; do :; done'", 0);
    says("runai wait busy --for running", 0);
    // The server measures every 15 s. Requested resources are there at once; usage appears after a
    // part of that.
    let is_used = || says("runai top job", 0).contains("m (");
    assert!(wait_until(is_used), "{}", says("runai top job", 0));
    let nodes = says("runai top node -d", 0);
    assert!(nodes.contains("GPU MEMORY") && nodes.contains("IDLE TIME"), "{nodes}");
    assert!(nodes.lines().any(|line| line.starts_with("0    -")), "simulated:\n{nodes}");
    let none = says("runai top node nobody", 4);
    assert!(none.contains("No match found for node(s) '[nobody]'"), "{none}");
    assert!(says("runai top job -p nobody", 4).contains("nobody"));
}

/// A server with a project and two jobs, one of which waits.
fn crowded() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x16GiB");
    let made = "elastane project create team-a --gpu-quota 1 && runai config project team-a && \
                runai submit first -i x -g 1 --command -- sh -c 'echo hello; \
                until test -e go; do sleep 0.1; done; echo later; exec sleep 600' && \
                runai submit second -i x -g 1 --command -- sleep 600";
    let output = sandbox.shell(made);
    assert_eq!(output.code, Some(0), "{}", output.text);
    sandbox
}

#[test]
fn the_live_view_shows_what_happens_and_leaves_the_terminal_as_it_was() {
    let mut sandbox = crowded();
    let mut person = Terminal::with(&sandbox, "runai top; echo code $?", (24, 80));
    for word in ["simulated", "first", "Pending", "team-a"] {
        person.shows(word);
    }
    assert!(!person.is_as_before(), "keys are read one by one");
    person.types("/second\r\r");
    person.shows("waits:");
    person.types("q/\x7f\x7f\x7f\x7f\x7f\x7f\rg");
    person.types("l");
    person.shows("hello");
    sandbox.kill_server();
    person.shows("cut");
    sandbox.start_server("elastane up --gpus 1x16GiB");
    let told = sandbox.shell("runai exec first -- touch go");
    assert_eq!(told.code, Some(0), "{}", told.text);
    person.shows("later");
    person.types("qd");
    person.shows("first?");
    person.types("y");
    person.shows("deleted");
    sandbox.kill_server();
    person.shows("ANSWER");
    sandbox.start_server("elastane up --gpus 1x16GiB");
    person.shows("held");
    person.types("q");
    person.sees("code 0");
    assert!(person.is_as_before());
}

#[test]
fn the_live_view_gives_the_terminal_back_on_every_way_out() {
    let sandbox = crowded();
    for (signal, code) in [(Signal::TERM, "code 143"), (Signal::HUP, "code 129")] {
        let mut person = Terminal::with(&sandbox, "runai top; echo code $?", (24, 80));
        person.shows("first");
        end(&sandbox, "runai top", signal);
        person.sees(code);
        assert!(person.is_as_before());
    }
    // A shell with job control.
    let shell = "exec env PS1='ready> ' bash --norc -i";
    let mut person = Terminal::with(&sandbox, shell, (24, 80));
    for (typed, seen) in [
        ("runai top\n", "first"),
        ("\x1a", "Stopped"),
        ("echo back-$((1+1))\n", "back-2"),
        ("fg\n", "first"),
        ("\x03", "ready> "),
        ("echo code $?\n", "code 0"),
    ] {
        person.types(typed);
        person.sees(seen);
    }
    for line in ["runai top", "runai top < /dev/null", "TERM=dumb runai top"] {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(2), "{line}: {}", output.text);
        assert!(output.text.contains("`runai top job`"), "{}", output.text);
    }
}
