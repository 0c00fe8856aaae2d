//! All tests of the workspace in one run. Owns: how they are compiled and run, and the order of
//! their results. Does not know about: any test.
//!
//! With cargo-nextest tests of all binaries run side by side, in the groups of
//! `.config/nextest.toml`; without it plain `cargo test` runs one binary after the other. Either
//! way each goes through [`runner`], which measures it.

pub(crate) mod machine;
mod records;
mod report;
pub(crate) mod runner;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};

use machine::Measured;

use crate::cargo;

/// Environment variables of the crate `fixture`, which is no dependency of a chore.
const RUN_FOLDER: &str = "TEST_RUN_FOLDER";
const RUN_PID: &str = "TEST_RUN_PID";

/// Compiles and runs every test, or those that cargo-nextest selects by `arguments`, and prints
/// where the time went.
///
/// # Errors
/// A program cannot be started, or nothing compiles.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let folder = root.join("target").join("test-run");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let nextest = has_nextest();
    if !nextest {
        report::say("cargo-nextest is not installed: binaries run one after the other")?;
    }
    let tests = if nextest { &["nextest", "run"][..] } else { &["test"][..] };
    let common = ["--locked", "--workspace"];

    let mut compile = cargo();
    compile.args(tests).args(common).arg("--no-run").current_dir(root);
    let (status, compiled) = machine::measured(|| compile.status())?;
    ensure!(status.context("failed to start cargo")?.success(), "the tests do not compile");

    let mut command = cargo();
    command.args(tests).args(common).arg("--no-fail-fast").current_dir(root);
    command.args(["--config", &runner(&folder)?]).args(arguments);
    command.env(RUN_FOLDER, &folder).env(RUN_PID, std::process::id().to_string());
    let (counted, ran) =
        machine::measured(|| if nextest { plain(command) } else { counted(command) })?;
    let counted = counted?;

    let mut records = records::read(&folder)?;
    if let Some(totals) = counted.totals {
        records.totals = totals;
    }
    report::print(&records, &compiled, &ran)?;
    Ok(if counted.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcome of cargo.
struct Outcome {
    success: bool,
    /// Passed and failed tests, if only the lines of the test harness give them.
    totals: Option<records::Totals>,
}

fn plain(mut command: Command) -> Result<Outcome> {
    let status = command.status().context("failed to start cargo nextest")?;
    Ok(Outcome { success: status.success(), totals: None })
}

/// Runs `cargo test`, shows its output, and adds up the last lines of the test programs.
fn counted(mut command: Command) -> Result<Outcome> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("failed to start cargo test")?;
    let mut totals = records::Totals::default();
    let mut out = std::io::stdout();
    for line in BufReader::new(child.stdout.take().context("no output of cargo")?).lines() {
        let line = line?;
        writeln!(out, "{line}")?;
        totals.add_line(&line);
    }
    Ok(Outcome { success: child.wait()?.success(), totals: Some(totals) })
}

/// The setting of cargo that has every test program started by this one, from a copy: the tests of
/// this program replace it.
fn runner(folder: &Path) -> Result<String> {
    let copy = folder.join("xtask");
    fs::copy(std::env::current_exe()?, &copy)?;
    let words = serde_json::to_string(&[copy, PathBuf::from(runner::CHORE)])?;
    Ok(format!("target.'cfg(all())'.runner={words}"))
}

fn has_nextest() -> bool {
    let version = cargo().args(["nextest", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// Duration of a run, as it is printed.
fn seconds(measured: &Measured) -> String {
    format!("wall {:>6.0} s   CPU {:>6.0} s", measured.wall_s, measured.cpu_s)
}
