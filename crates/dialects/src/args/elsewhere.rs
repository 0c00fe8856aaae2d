//! Advice for a flag that a command does not know. Owns: the flags with equal meaning in the two
//! dialects. Does not know about: misspelt flags.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, Error};

use super::Cli;

/// Flags with equal meaning in the first and the second dialect. Suggested commands use the first
/// of each.
pub(crate) struct SameFlag {
    /// Name of the advice that changes it.
    pub(crate) kind: &'static str,
    pub(crate) v1: &'static [&'static str],
    pub(crate) v2: &'static [&'static str],
}

/// Flags whose names differ between the dialects.
pub(crate) const SAME: [SameFlag; 5] = [
    SameFlag { kind: "fewer_gpus", v1: &["-g", "--gpu"], v2: &["-g", "--gpu-devices-request"] },
    SameFlag { kind: "smaller_share", v1: &["-g", "--gpu"], v2: &["--gpu-portion-request"] },
    SameFlag { kind: "less_gpu_memory", v1: &["--gpu-memory"], v2: &["--gpu-memory-request"] },
    SameFlag { kind: "less_cpu", v1: &["--cpu"], v2: &["--cpu-core-request"] },
    SameFlag { kind: "less_memory", v1: &["--memory"], v2: &["--cpu-memory-request"] },
];

/// Words of other tools for a flag, and its names in the two dialects.
const OTHER_TOOLS: [(&str, [&str; 2]); 4] = [
    ("--env", ["--environment-variable", "--environment"]),
    ("--gpus", ["--gpu-devices-request", "--gpu"]),
    ("--cpus", ["--cpu-core-request", "--cpu"]),
    ("--mem", ["--cpu-memory-request", "--memory"]),
];

/// Commands that submit, in the order in which they are searched for a flag.
const SUBMIT: [&[&str]; 5] = [
    &["training", "submit"],
    &["workspace", "submit"],
    &["inference", "submit"],
    &["training", "pytorch", "submit"],
    &["submit"],
];

/// Flags of the first dialect that the second one expresses by a command.
const AS_COMMANDS: [(&str, &str); 2] =
    [("--interactive", "workspace submit"), ("--jupyter", "workspace submit")];

/// Advice on an unknown flag of a submission: the flag of this command with equal meaning, or the
/// command that has the flag; `None` if there is neither.
pub(super) fn flag_elsewhere(error: &Error, command: &Command) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument || !command.get_name().starts_with("submit") {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    word.strip_prefix("--")?;
    if word == "--name" {
        return Some("the name is the first word here, without a flag".to_owned());
    }
    let here = |flag: &&&str| has(command, flag);
    let same = SAME.iter().find_map(|SameFlag { v1, v2, .. }| {
        let others = if v1.contains(&word.as_str()) {
            v2
        } else if v2.contains(&word.as_str()) {
            v1
        } else {
            return None;
        };
        others.iter().rev().find(here)
    });
    let of_other_tool = || {
        let (_, flags) = OTHER_TOOLS.iter().find(|(other, _)| other == word)?;
        let is_own = |flag: &str| {
            let long = flag.strip_prefix("--");
            command.get_arguments().any(|arg| arg.get_long() == long)
        };
        flags.iter().find(|flag| is_own(flag))
    };
    if let Some(flag) = same.or_else(of_other_tool) {
        return Some(format!("here it is '{flag}'"));
    }
    if command.get_name() == "submit"
        && !has(command, "--interactive")
        && let Some((_, instead)) = AS_COMMANDS.iter().find(|(flag, _)| flag == word)
    {
        return Some(format!("'runai {instead}' submits such a workload"));
    }
    let grammar = Cli::command();
    let found = SUBMIT.into_iter().find(|path| {
        let at = path.iter().try_fold(&grammar, |at, word| at.find_subcommand(word));
        at.is_some_and(|at| has(at, word))
    });
    found.map(|path| format!("'{word}' is a flag of 'runai {}'", path.join(" ")))
}

/// Replaces the suggestion in an error of the parser by this advice.
pub(super) fn with(mut error: Error, advice: String) -> Error {
    error.remove(ContextKind::SuggestedArg);
    // It shows how to type the suggested argument.
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    error
}

fn has(command: &Command, flag: &str) -> bool {
    let Some(long) = flag.strip_prefix("--") else { return false };
    command.get_arguments().filter(|arg| !arg.is_hide_set()).any(|arg| {
        arg.get_long() == Some(long)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
    })
}

/// Innermost command that the words name; words that name none are skipped.
pub(super) fn command_on<'t, 'w>(
    tree: &'t Command,
    words: impl Iterator<Item = &'w OsString>,
) -> &'t Command {
    words.fold(tree, |at, word| at.find_subcommand(word).unwrap_or(at))
}
