//! `elastane checkpoint`: a report of a workload about itself. Owns: its errors.

use std::path::Path;

use cli_kit::exit::Error;
use engine_channel::{CHANNEL_VARIABLE, ClientError, Report, report};

use super::args::Checkpoint;

pub(super) fn run(what: &Checkpoint) -> Result<(), Error> {
    let Some(channel) = std::env::var_os(CHANNEL_VARIABLE) else {
        return Err(Error::Failed(format!(
            "{CHANNEL_VARIABLE} is not set: only a workload reports checkpoints, from within"
        )));
    };
    let Checkpoint { path, step, next_in } = what;
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
