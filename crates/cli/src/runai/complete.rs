//! Completion of command lines: the script that a shell reads once, and the names that only the
//! server knows. Owns what it may cost: a moment, and no message.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use super::args::{Global, tree};
use super::context::Context;
use super::intent::Shell;
use crate::exit::Error;

/// The variable by which a shell's script asks this program.
const ASKED_BY: &str = "COMPLETE";
/// Whoever presses Tab does not wait longer.
const ASK_MAX: Duration = Duration::from_millis(700);

/// Answers a shell that asks how a line goes on; false if none does.
///
/// # Errors
/// The shell is not known, or its question makes no sense.
pub(super) fn answered(argv: &[OsString]) -> Result<bool, clap::Error> {
    CompleteEnv::with_factory(tree).var(ASKED_BY).try_complete(argv, None)
}

/// Writes the script of a shell.
pub(super) fn script(shell: Shell, out: &mut dyn Write) -> Result<(), Error> {
    let shells = Shells::builtins();
    let completer = shells.completer(match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
    });
    let completer = completer.ok_or_else(|| Error::Failed("this shell is not known".to_owned()))?;
    completer.write_registration(ASKED_BY, "runai", "runai", "runai", out)?;
    Ok(())
}

/// Names of the workloads of the project that the line names, or of the default one.
pub(super) fn workloads() -> Vec<CompletionCandidate> {
    asked(async |context| {
        let all = context.workloads().await?;
        Ok(all.into_iter().map(|workload| (workload.name, workload.phase)).collect())
    })
}

/// Names of the projects.
pub(super) fn projects() -> Vec<CompletionCandidate> {
    asked(async |context| {
        let all = context.client.projects().await?;
        Ok(all.into_iter().map(|project| (project.name, String::new())).collect())
    })
}

/// What the server answers; nothing if it does not, as nobody reads a message here.
fn asked(
    ask: impl AsyncFnOnce(&Context) -> Result<Vec<(String, String)>, Error>,
) -> Vec<CompletionCandidate> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let global = Global { project: project_in(&line), ..Global::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (Ok(runtime), Ok(context)) =
        (runtime, Context::open(&global, &|name| std::env::var(name).ok()))
    else {
        return Vec::new();
    };
    let answer = runtime.block_on(async { tokio::time::timeout(ASK_MAX, ask(&context)).await });
    let names = answer.ok().and_then(Result::ok).unwrap_or_default();
    let candidate = |(name, about): (String, String)| {
        let about = Some(about).filter(|about| !about.is_empty());
        CompletionCandidate::new(name).help(about.map(Into::into))
    };
    names.into_iter().map(candidate).collect()
}

/// The project that a line names so far.
fn project_in(line: &[OsString]) -> Option<String> {
    let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
    let behind = words.windows(2).find_map(|pair| match &*pair[0] {
        "-p" | "--project" => Some(pair[1].to_string()),
        _ => None,
    });
    behind
        .or_else(|| words.iter().find_map(|word| Some(word.strip_prefix("--project=")?.to_owned())))
}
