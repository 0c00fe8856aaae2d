//! `elastane checkpoint`: reports of a workload's checkpoints, and requests whether a checkpoint is
//! wanted. Owns: its errors.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use cli_kit::exit::{Error, FAILED, NOT_RUNNING};
use cli_kit::message::print_always;
use engine_channel::{CHANNEL_VARIABLE, ClientError, Report, report};

use super::args::Checkpoint;

pub(super) fn run(what: &Checkpoint) -> Result<(), Error> {
    if what.wanted {
        return wanted();
    }
    if let Some(folder) = &what.finish {
        return engine_channel::finish(folder).map_err(|left| Error::Failed(left.join("; ")));
    }
    let channel = channel().map_err(Error::Failed)?;
    let Checkpoint { path, step, next_in, .. } = what;
    let all = Report { path: path.as_deref(), step: *step, next_in_s: *next_in };
    report(Path::new(&channel), all).map_err(|error| {
        let advice = match error {
            ClientError::File(..) => "",
            ClientError::Channel(_) => "; the workload goes on, and may report again",
            ClientError::Refused(_) => "; it counts for nothing",
        };
        Error::Failed(format!("{error}{advice}"))
    })
}

/// Reports a checkpoint of the built-in training, if there is a channel to its run.
pub(super) fn of_the_quickstart(file: &Path, step: u64) -> Result<(), String> {
    let Some(channel) = std::env::var_os(CHANNEL_VARIABLE) else { return Ok(()) };
    let saved = Report { path: Some(file), step: Some(step), next_in_s: None };
    report(Path::new(&channel), saved).map_err(|error| error.to_string())
}

/// A script distinguishes "not wanted" from "unknown" by the exit code.
fn wanted() -> Result<(), Error> {
    let asked = channel().and_then(|channel| {
        engine_channel::wanted(Path::new(&channel)).map_err(|error| error.to_string())
    });
    match asked {
        Ok(Some(within)) => {
            writeln!(std::io::stdout(), "{:.1}", within.as_secs_f64())?;
            Ok(())
        }
        Ok(None) => Err(Error::Said(FAILED)),
        Err(why) => {
            print_always(&format!("error: {why}"));
            Err(Error::Said(NOT_RUNNING))
        }
    }
}

fn channel() -> Result<OsString, String> {
    std::env::var_os(CHANNEL_VARIABLE).ok_or_else(|| {
        format!("{CHANNEL_VARIABLE} is not set: only a workload reports checkpoints, from within")
    })
}
