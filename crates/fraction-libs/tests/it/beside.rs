//! The library beside drivers that are made for one test each: one that does next to nothing, where
//! a program that runs for long must make no system calls but read, write and exit, and one that
//! answers late.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{MIB, Machine, prints};

const SIGKILL: i32 = 9;

fn compile(source: &str, to: &Path, options: &[&str]) {
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-w", "-o"]).arg(to).args(options);
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source)).arg("-ldl");
    assert!(compiler.status().unwrap().success());
}

#[test]
fn failure_14_launches_and_allocations_make_no_system_call() {
    let machine = Machine::new();
    let (program, driver) = (machine.folder.path().join("quiet"), machine.folder.path());
    let driver = driver.join("libcuda.so.1");
    std::fs::remove_file(&driver).unwrap();
    compile("tests/it/quiet.c", &program, &[]);
    let soname = "-Wl,-soname,libcuda.so.1";
    compile("benches/driver.c", &driver, &["-shared", "-fPIC", soname]);
    let run = machine.run("run", 4096 * MIB);
    // It may make no other system call than read, write and exit.
    let output = |word: &str, command: &Command| -> Output {
        let mut quiet = Command::new(&program);
        quiet.arg(word).env_clear();
        let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        quiet.envs(variables).output().unwrap()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let limited = output("quietly", &run.command("dlsym", ""));
    assert_eq!((said(&limited).as_str(), limited.status.code()), ("limited\n", Some(0)));
    let without = output("quietly", &machine.command("dlsym", ""));
    assert_eq!((said(&without).as_str(), without.status.code()), ("not limited\n", Some(0)));
    // Another system call is noticed.
    let called = output("calls", &run.command("dlsym", ""));
    assert_eq!((said(&called).as_str(), called.status.signal()), ("", Some(SIGKILL)));
}

#[test]
fn of_two_threads_that_count_the_same_the_later_answer_of_the_driver_stays() {
    let machine = Machine::new();
    let (program, driver) = (machine.folder.path().join("slow"), machine.folder.path());
    let driver = driver.join("libcuda.so.1");
    std::fs::remove_file(&driver).unwrap();
    compile("tests/it/slow.c", &program, &["-pthread"]);
    let soname = "-Wl,-soname,libcuda.so.1";
    compile("tests/it/slow.c", &driver, &["-DDRIVER", "-shared", "-fPIC", soname]);
    let run = machine.run("run", 4096 * MIB);
    let mut slow = Command::new(&program);
    let limited = run.command("dlsym", "");
    slow.env_clear().envs(limited.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // 1 of the pool and 1 of graphs; then 4 more of the pool, then 8 of graphs.
    assert_eq!(prints(&mut slow), "6 of 4096 MiB, 14 of 4096 MiB");
}
