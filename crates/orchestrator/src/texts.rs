//! Every fixed text of this crate in one place, for review. A change of wording is a change of
//! `texts.txt`.

use expect_test::expect_file;
use pod_life::in_words;
use spec::{DiskRoom, Exit, Limits};
use testkit::{assert_plain, texts};
use uuid::Uuid;

use crate::Error;

use view::codes::ALL;

fn errors() -> [Error; 8] {
    [
        Error::invalid("name", "WHAT IS WRONG AND WHAT IS ALLOWED"),
        Error::no_node("node-1"),
        Error::no_department(7),
        Error::no_project(7),
        Error::no_workload(Uuid::nil()),
        Error::conflict("WHAT IS THERE AND WHAT TO DO"),
        Error::stopping(),
        Error::Internal { message: "WHAT FAILED".to_owned() },
    ]
}

fn exits() -> [Exit; 10] {
    [
        Exit::Code(0),
        Exit::Code(7),
        Exit::Signal(9),
        Exit::CannotRun("FAULT".to_owned()),
        Exit::NotStarted("FAULT".to_owned()),
        Exit::NotKept("FAULT".to_owned()),
        Exit::OutOfMemory,
        Exit::OutOfDisk(DiskRoom { bytes: 3 << 30, files: 2 }),
        Exit::OutOfDisk(DiskRoom { bytes: 0, files: 70_000 }),
        Exit::Lost,
    ]
}

#[test]
fn every_error_and_every_end_of_a_run() {
    let errors = texts!(
        Error { Invalid, NotFound, Conflict, Unavailable, Internal },
        errors(),
        ToString::to_string,
    );
    let limits = Limits { memory_bytes_max: Some(1 << 30), ..Limits::default() };
    let exits = texts!(
        Exit { Code, Signal, CannotRun, NotStarted, NotKept, OutOfMemory, OutOfDisk, Lost },
        exits(),
        |exit: &Exit| in_words(exit, limits),
    );
    let sources =
        [include_str!("../../view/src/codes.rs"), include_str!("../../view/src/gpu_fault.rs")];
    let written = sources.concat().matches("Code { code: \"").count();
    assert_eq!(ALL.len(), written, "a code is not in the list");
    let codes = ALL.map(|code| format!("    {} {}\n", code.code, code.name)).concat();
    let all = format!("{errors}\n{exits}\n# Codes\n{codes}");
    expect_file!["texts.txt"].assert_eq(&all);
    assert_plain(&all);
}
