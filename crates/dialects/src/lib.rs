//! What can be typed after `runai`: the words of both dialects (`args`), what they mean
//! ([`intent`]), and the bodies of requests that a submission becomes (`request`).
//!
//! Owns: words, flags, their help, and what completes them. Does not know the server, or how
//! answers look.

mod again;
mod args;
mod complete;
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
pub use complete::{Ask, Known, complete_with};
pub use lower::KIND_WORDS;
pub use request::{change, creation};
pub use submission::{Submission, submission};

/// A command line that means something.
#[derive(Debug)]
pub struct ParsedCommand {
    /// Flags that every command takes.
    pub global: Global,
    /// How it is spelt, if it is spelt otherwise today.
    pub deprecated: Option<Deprecated>,
    /// Names the flags that have no effect here.
    pub note: Option<String>,
    /// What is to be done.
    pub intent: intent::Intent,
}

/// What a command line means, the program's name included.
///
/// # Errors
/// What is wrong with it, or a help page.
pub fn understood(argv: Vec<OsString>) -> Result<ParsedCommand, clap::Error> {
    let line: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (cli, mut named, note) = args::parse(argv)?;
    let wrong = |text| named.error(ErrorKind::ValueValidation, text);
    let deprecated = args::deprecated::spelling(&cli.command);
    let intent = lower::intent(cli.command, &line).map_err(wrong)?;
    Ok(ParsedCommand { global: cli.global, deprecated, note, intent })
}
