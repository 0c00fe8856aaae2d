//! Each way in which a program can find a function of the driver.

use crate::support::{MIB, Machine, prints};

#[test]
fn the_limit_holds_however_functions_are_found() {
    let machine = Machine::new();
    for how in ["plt", "dlsym", "dlvsym", "address", "threads"] {
        let run = machine.run(how, 4096 * MIB);
        assert_eq!(
            run.prints(how, "init context:0 alloc:3796M alloc:1 free async:3797M kernel sync"),
            "init 0, context 0, alloc 0, alloc 2, free 0, async 2, kernel 0, sync 0",
            "{how}",
        );
    }
}

#[test]
fn failure_3_rtld_next_answers_the_same_each_time() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    assert_eq!(run.prints("dlsym", "next next"), "next 0, next 0");
}

#[test]
fn a_name_is_found_exactly_where_the_driver_has_it() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    assert_eq!(run.prints("dlsym", "default"), "default found none");
    assert_eq!(run.prints("dlsym", "empty"), "empty 500 1 1");
    // As in a program without a driver.
    let mut command = run.command("dlsym", "default");
    assert_eq!(prints(command.env("LD_LIBRARY_PATH", "/nowhere")), "no driver");
}

#[test]
fn other_programs_run_as_without_the_library() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    for (program, arguments) in
        [("/bin/sh", ["-c", "echo ready; exec 2>&1; /bin/echo ready"]), ("/bin/echo", ["a", "b"])]
    {
        let mut with = run.command("dlsym", "");
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        let without = prints(&mut command);
        command.env_clear().envs(with.get_envs().filter_map(|(k, v)| Some((k, v?))));
        assert_eq!(prints(&mut command), without);
        with.env_clear();
    }
}
