//! One test program. Owns: running it for cargo, and a record of its time. Does not know about:
//! which tests there are.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use super::RUN_FOLDER;
use super::machine::measured;
use super::records::{FILE, Record};

/// The chore that cargo calls before the program and its arguments.
pub(crate) const CHORE: &str = "run-test";

/// Runs the program and appends a record to the run's file.
///
/// # Errors
/// The program cannot be started, or the file cannot be written.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let (program, arguments) = words.split_first().context("no test program")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let folder = std::env::var_os(RUN_FOLDER).filter(|_| !arguments.contains(&"--list"));
    let Some(folder) = folder else {
        return Err(command.exec()).with_context(|| format!("failed to start {program}"));
    };
    let (status, took) = measured(|| command.status())?;
    let status = status.with_context(|| format!("failed to start {program}"))?;
    let record = Record {
        binary: name_of(Path::new(program)),
        test: test_of(arguments),
        wall_s: took.wall_s,
        cpu_s: took.cpu_s,
        passed: status.success(),
    };
    let file = Path::new(&folder).join(FILE);
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    // One write: tests that end at the same time do not mix their lines.
    file.write_all(format!("{}\n", serde_json::to_string(&record)?).as_bytes())?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// The package and the program, without the hash that cargo appends.
fn name_of(program: &Path) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let target = stem.rsplit_once('-').map_or(&*stem, |(target, _)| target);
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let package = package.strip_prefix("elastane-").unwrap_or(&package);
    if target.strip_prefix("elastane_").unwrap_or(target) == package.replace('-', "_") {
        package.to_owned()
    } else {
        format!("{package} {target}")
    }
}

/// Name of the one test that cargo-nextest runs; `None` without `--exact`.
fn test_of(arguments: &[&str]) -> Option<String> {
    let exact = arguments.contains(&"--exact");
    let name = arguments.iter().find(|argument| !argument.starts_with("--"));
    name.filter(|_| exact).map(|name| (*name).to_owned())
}
