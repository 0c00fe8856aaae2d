//! Completion of command lines: the script that a shell reads once, and names that only the server
//! knows. Owns its limits: a short time, and no message. Does not know about any command.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use clap::{Command, ValueEnum};
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use crate::exit::Error;

/// Environment variable by which a shell's script requests completions.
const ASKED_BY: &str = "COMPLETE";
/// Maximum duration of a completion.
const ASK_MAX: Duration = Duration::from_millis(700);

/// Shells that complete command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum Shell {
    /// `source <(PROGRAM completion bash)`.
    Bash,
    /// `source <(PROGRAM completion zsh)`.
    Zsh,
    /// `PROGRAM completion fish | source`.
    Fish,
    /// `PROGRAM completion powershell | Out-String | Invoke-Expression`.
    Powershell,
}

/// Answers a completion request of a shell; false if there is none.
///
/// # Errors
/// The shell is unknown, or its request is invalid.
pub fn answered(tree: fn() -> Command, argv: &[OsString]) -> Result<bool, clap::Error> {
    CompleteEnv::with_factory(tree).var(ASKED_BY).try_complete(argv, None)
}

/// Writes the script of a shell for this program.
///
/// # Errors
/// The output cannot be written.
pub fn script(shell: Shell, program: &str, out: &mut dyn Write) -> Result<(), Error> {
    let shells = Shells::builtins();
    let completer = shells.completer(match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
    });
    let completer = completer.ok_or_else(|| Error::Failed("this shell is not known".to_owned()))?;
    completer.write_registration(ASKED_BY, program, program, program, out)?;
    Ok(())
}

/// Names from a server, each with a description; empty if it does not answer in time, because a
/// message would be printed into the line.
pub fn names(
    ask: impl Future<Output = Result<Vec<(String, String)>, Error>>,
) -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let answer = runtime.block_on(async { tokio::time::timeout(ASK_MAX, ask).await });
    let names = answer.ok().and_then(Result::ok).unwrap_or_default();
    let candidate = |(name, about): (String, String)| {
        let about = Some(about).filter(|about| !about.is_empty());
        CompletionCandidate::new(name).help(about.map(Into::into))
    };
    names.into_iter().map(candidate).collect()
}

/// The words of the line so far.
#[must_use]
pub fn line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The value of a flag in a line, by one of its spellings.
#[must_use]
pub fn value_of(words: &[String], flags: &[&str]) -> Option<String> {
    let behind = words.windows(2).find(|pair| flags.contains(&pair[0].as_str()));
    let behind = behind.map(|pair| pair[1].clone());
    let joined = |word: &String| {
        let (flag, value) = word.split_once('=')?;
        flags.contains(&flag).then(|| value.to_owned())
    };
    behind.or_else(|| words.iter().find_map(joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_flag_is_found_in_both_spellings() {
        for (line, value) in [
            ("runai logs -p team-a", Some("team-a")),
            ("runai --project=team-b logs", Some("team-b")),
            ("runai logs", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(value_of(&words, &["-p", "--project"]).as_deref(), value, "{line}");
        }
    }

    #[test]
    fn each_shell_gets_a_script_that_asks_the_program() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            script(*shell, "elastane", &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains(ASKED_BY) && text.contains("elastane"), "{shell:?}: {text}");
        }
    }

    #[test]
    fn a_server_that_fails_or_does_not_answer_offers_nothing() {
        let named = |name: &str| (name.to_owned(), String::new());
        assert_eq!(names(async { Ok(vec![named("a")]) }).len(), 1);
        assert!(names(async { Err(Error::Failed("no".to_owned())) }).is_empty());
        assert!(names(std::future::pending()).is_empty());
    }
}
