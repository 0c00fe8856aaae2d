//! The programs of GPU fractions, as the server's program starts them. Owns: their form, and
//! starting a command after a look. Does not know about: what they do.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use engine::environment::{DEVICES_VARIABLE, GrantedDevice};
use engine::{Error, FractionLimit};
use fraction_agent::{CheckError, POINT, Pages, Unreached};

use crate::fraction::{PRELOADED, WITHIN};
use crate::refusal_parser::Refusal;

/// Exit code of a check that found an error.
const FAILED: u8 = 1;
/// Exit codes of shells for a program that cannot be started or is not found.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Output of `gpu-check`: the GPUs that a program here sees, and the driver's answers to its
/// allocations.
///
/// # Errors
/// An unknown argument, no driver, or more memory than `--most` allows. With `--within`, the form
/// that a server uses, a failure ends the process, after the line of the [`Refusal`]. `variable`
/// looks up an environment variable.
pub fn gpu_check(
    args: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    let simulated = has_only_simulated_gpus(variable(DEVICES_VARIABLE).as_deref());
    let checked = if simulated && matches!(gpu::simulated_driver(), Ok(None)) {
        let why = format!("none: {}", FractionLimit::NO_SIMULATED_DRIVER);
        Err(CheckError::Failed(why))
    } else {
        fraction_agent::gpu_check(args)
    };
    checked.map_err(|error| {
        if args.iter().any(|arg| arg.starts_with(WITHIN)) {
            print_line(&refused(&error).line());
            fraction_agent::leave(FAILED);
        }
        Error::Invalid(error.to_string())
    })
}

/// Refusal of a run whose check failed.
fn refused(error: &CheckError) -> Refusal {
    match error {
        CheckError::Silent { within_ms } => {
            Refusal::driver_silent(Duration::from_millis(*within_ms))
        }
        CheckError::Failed(why) => Refusal::not_kept(why),
    }
}

/// True if a run has GPUs, all of them simulated. `granted`: its variable.
fn has_only_simulated_gpus(granted: Option<&str>) -> bool {
    // A variable that cannot be read is one of another program.
    let granted = granted.and_then(|text| serde_json::from_str::<Vec<GrantedDevice>>(text).ok());
    granted.is_some_and(|gpus| !gpus.is_empty() && gpus.iter().all(|gpu| gpu.simulated))
}

/// The process of a simulated GPU. Call it first in a process of its own.
#[must_use]
pub fn simulated_driver(args: &[String]) -> ExitCode {
    fraction_agent::drive(args)
}

/// Writes down, in the pages of a run, that a library which a variable preloads is not in the
/// program of this name, if it is not: who follows the run reads that. `search`: the value of
/// `PATH`; `folder`: where it starts.
///
/// # Errors
/// The page cannot be written.
pub fn note_unlimited(
    program: &str,
    search: Option<&OsStr>,
    folder: &Path,
    pages: &Path,
) -> io::Result<()> {
    let why = fraction_agent::unreached(program.as_ref(), search, folder);
    // Other loaders know the variable as well.
    note(why.filter(|why| *why != Unreached::OtherLibrary), pages)
}

fn note(why: Option<Unreached>, pages: &Path) -> io::Result<()> {
    let noted = why.map_or(Ok(()), |why| Pages::at(pages).set_unreached(why));
    noted.map_err(io::Error::other)
}

/// Becomes the command after `--` once `gpu-check` with the words before it has passed, and holds
/// its simulated GPUs; returns only if not, after the line of a [`Refusal`].
#[must_use]
pub fn start_checked(args: &[String]) -> ExitCode {
    let mut parts = args.splitn(2, |word| word == "--");
    let (look, command) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Some((program, words)) = command.split_first() else {
        return refuse(&Refusal::cannot_run("no command follows --".to_owned()), NOT_STARTED);
    };
    let is_preloaded = look.iter().any(|word| word == PRELOADED);
    let look: Vec<String> = look.iter().filter(|word| *word != PRELOADED).cloned().collect();
    let noted = || {
        let folder = std::env::current_dir()?;
        let search = std::env::var_os("PATH");
        let why = fraction_agent::unreached(program.as_ref(), search.as_deref(), &folder);
        note(why, Path::new(POINT))
    };
    let noted = || match is_preloaded {
        true => noted().map_err(|error| CheckError::Failed(error.to_string())),
        false => Ok(()),
    };
    let held =
        || fraction_agent::hold_over_exec().map_err(|error| CheckError::Failed(error.to_string()));
    if let Err(error) =
        fraction_agent::gpu_check(&look).and_then(|_printed| noted()).and_then(|()| held())
    {
        print_line(&refused(&error).line());
        // A thread may still be inside the driver.
        fraction_agent::leave(NOT_STARTED);
    }
    let error = Command::new(program).args(words).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
    let why = format!("exec {program} failed: {error}");
    refuse(&Refusal::cannot_run(why), code)
}

/// Prints a line for readers of the run's log, which may be on a full disk.
#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
fn print_line(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

fn refuse(refusal: &Refusal, code: u8) -> ExitCode {
    print_line(&refusal.line());
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_simulated_gpus_is_told_by_its_variable() {
        let gpu = |simulated| {
            format!(r#"{{"index":0,"uuid":"GPU-0","simulated":{simulated},"memory_bytes":1}}"#)
        };
        let of = |gpus: &[String]| has_only_simulated_gpus(Some(&format!("[{}]", gpus.join(","))));
        assert!(of(&[gpu(true)]) && of(&[gpu(true), gpu(true)]));
        assert!(!of(&[gpu(false)]) && !of(&[gpu(true), gpu(false)]), "a real one");
        assert!(!of(&[]) && !has_only_simulated_gpus(None), "no GPU, or no run");
        assert!(!has_only_simulated_gpus(Some("0,1")), "of another program");
    }
}
