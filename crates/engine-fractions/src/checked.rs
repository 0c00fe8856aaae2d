//! The programs of GPU fractions, as the server's program starts them. Owns: their form, and starting
//! a command after a look. Does not know about: what they do.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use engine::Error;

use crate::fraction::{REFUSED, SILENT, not_kept};

/// Of a look that found something wrong.
const FAILED: u8 = 1;
/// Exit codes of shells: not to be started, and not found.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What `gpu-check` prints: the GPUs that a program here sees, and what it is refused.
///
/// # Errors
/// An argument it does not know, no driver, or more memory than `--most` says. Ends the process where
/// the driver does not answer within `--within`.
pub fn gpu_check(args: &[String]) -> Result<String, Error> {
    fraction_agent::gpu_check(args).map_err(|why| {
        if why.starts_with(SILENT) {
            eprintln!("{why}");
            fraction_agent::leave(FAILED);
        }
        Error::Invalid(why)
    })
}

/// The process of a simulated GPU. Call it first in a process of its own.
#[must_use]
pub fn simulated_driver(args: &[String]) -> ExitCode {
    fraction_agent::drive(args)
}

/// Becomes the command after `--` once `gpu-check` with the words before it has passed, and holds its
/// simulated GPUs; returns only if not, after a line that begins with [`REFUSED`].
#[must_use]
pub fn start_checked(args: &[String]) -> ExitCode {
    let mut parts = args.splitn(2, |word| word == "--");
    let (look, command) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Some((program, words)) = command.split_first() else {
        return refuse("no command follows --", NOT_STARTED);
    };
    let held = || fraction_agent::hold_over_exec().map_err(|error| error.to_string());
    if let Err(why) = fraction_agent::gpu_check(look).and_then(|_printed| held()) {
        return refuse(&not_kept(&why), NOT_STARTED);
    }
    let error = Command::new(program).args(words).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
    refuse(&format!("exec {program} failed: {}", reason(&error)), code)
}

fn refuse(why: &str, code: u8) -> ExitCode {
    eprintln!("{REFUSED}{why}");
    if why.starts_with(SILENT) {
        fraction_agent::leave(code);
    }
    ExitCode::from(code)
}

/// The words of the system without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
