//! The command line of `runai`: the words of both dialects (`args`), their meaning ([`intent`]),
//! and the bodies of the requests that submit a workload (`request`).
//!
//! Owns: words, flags, their help, and what completes them. Does not know the server, or how
//! answers look.

mod again;
mod args;
mod complete;
mod flag_of_field;
pub mod intent;
mod lower;
mod request;
mod submission;

#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::error::ErrorKind;

pub use again::again;
pub use args::deprecated::Deprecated;
pub use args::values::{key_value, seconds};
pub use args::{Global, tree};
pub use complete::{Ask, NameKind, complete_with};
pub use flag_of_field::flag_of_field;
pub use lower::KIND_WORDS;
pub use request::{change, creation};
pub use submission::{Submission, submission};

/// A valid command line.
#[derive(Debug)]
pub struct ParsedCommand {
    /// Flags that every command takes.
    pub global: Global,
    /// The deprecated spelling that was used, with its replacement; `None` if the spelling is
    /// current.
    pub deprecated: Option<Deprecated>,
    /// Note that names the flags without effect.
    pub note: Option<String>,
    /// The command.
    pub intent: intent::Intent,
}

/// Parses a command line, the program's name included.
///
/// # Errors
/// A parse error, or a help page.
pub fn understood(argv: Vec<OsString>) -> Result<ParsedCommand, clap::Error> {
    let line: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (cli, mut named, note) = args::parse(argv)?;
    let wrong = |text| named.error(ErrorKind::ValueValidation, text);
    let deprecated = args::deprecated::spelling(&cli.command);
    let intent = lower::intent(cli.command, &line).map_err(wrong)?;
    Ok(ParsedCommand { global: cli.global, deprecated, note, intent })
}
