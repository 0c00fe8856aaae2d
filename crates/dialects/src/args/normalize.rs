//! Normalizes the words of a line before they are parsed, so that one grammar reads lines written
//! for several clients, and adapts the flags of the grammar to that end. Owns no word of its own.

use std::any::TypeId;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};

use super::elsewhere;

/// Flags of every command that take the next word.
const TAKE_A_WORD: [&str; 5] = ["-p", "--project", "--config-path", "--config-file", "--loglevel"];
/// Nouns whose verbs are about workloads.
const NOUNS: [&str; 10] = [
    "training",
    "workspace",
    "inference",
    "workload",
    "distributed",
    "pytorch",
    "mpi",
    "tensorflow",
    "xgboost",
    "jax",
];
/// Value names of flags whose values may begin with a dash: `-1s`, `-2G`.
const WITH_UNIT: [&str; 2] = ["DURATION", "SIZE"];

/// Lets flags take negative numbers, so that the error is about the number, and flags of type
/// `bool` be given as `--NAME`, `--NAME=true` or `--NAME=false`.
#[must_use]
pub(crate) fn patient(command: Command) -> Command {
    command.mut_args(patient_flag)
}

/// The names of the commands that a line leads to, from the outermost inward.
#[must_use]
pub(crate) fn named(tree: &Command, argv: &[OsString]) -> Vec<String> {
    let (mut at, mut names) = (tree, Vec::new());
    for (_, word) in commands(argv) {
        if let Some(below) = at.find_subcommand(word) {
            names.push(below.get_name().to_owned());
            at = below;
        }
    }
    names
}

fn patient_flag(arg: Arg) -> Arg {
    if arg.is_positional() || !arg.get_action().takes_values() {
        return arg;
    }
    if arg.get_value_parser().type_id() == TypeId::of::<bool>() {
        let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
        return arg.value_name("true|false").hide_possible_values(true);
    }
    let named = |name: &str| WITH_UNIT.contains(&name);
    if arg.get_value_names().is_some_and(|names| names.iter().any(|name| named(name))) {
        return arg.allow_hyphen_values(true);
    }
    arg.allow_negative_numbers(true)
}

/// The words as the grammar reads them.
#[must_use]
pub(crate) fn read(tree: &Command, argv: Vec<OsString>) -> Vec<OsString> {
    plain_switches(tree, join_old_strings(with_ids_as_names(tree, without_standard(argv))))
}

/// Removes `standard` from `inference standard VERB`: all inferences have one pod per replica.
fn without_standard(mut argv: Vec<OsString>) -> Vec<OsString> {
    let mut words = commands(&argv);
    let first = words.next().is_some_and(|(_, word)| word == "inference" || word == "inferences");
    let second = words.next().filter(|(_, word)| *word == "standard").map(|(at, _)| at);
    drop(words);
    if let Some(at) = second.filter(|_| first) {
        argv.remove(at);
    }
    argv
}

/// Replaces `--uuid ID` by ID, as a workload can be named by its id.
fn with_ids_as_names(tree: &Command, argv: Vec<OsString>) -> Vec<OsString> {
    let path = named(tree, &argv);
    let of_workloads = path.first().is_some_and(|noun| NOUNS.contains(&noun.as_str()));
    let Some(verb) = path.get(1..).and_then(|path| path.last()).filter(|_| of_workloads) else {
        return argv;
    };
    if verb == "submit" || verb == "list" {
        return argv;
    }
    let mut is_over = false;
    let id = |word: OsString| {
        is_over |= word == "--";
        match word.to_str() {
            _ if is_over => Some(word),
            Some("--uuid") => None,
            Some(text) => {
                Some(text.strip_prefix("--uuid=").map_or_else(|| text.into(), Into::into))
            }
            None => Some(word),
        }
    };
    argv.into_iter().filter_map(id).collect()
}

/// The first words that are commands, after the flags that may stand before them.
fn commands(argv: &[OsString]) -> impl Iterator<Item = (usize, &OsString)> {
    let takes = |word: &OsString| word.to_str().is_some_and(|word| TAKE_A_WORD.contains(&word));
    let is_word = |word: &OsString| !word.as_encoded_bytes().starts_with(b"-");
    let words = argv.iter().enumerate().skip(1);
    words.filter(move |(at, word)| is_word(word) && !takes(&argv[at - 1]))
}

/// Resolves switches with a value, `--NAME=true` or `--NAME=false`. A switch that is off is
/// removed.
fn plain_switches(tree: &Command, mut argv: Vec<OsString>) -> Vec<OsString> {
    let end = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
    let behind = argv.split_off(end);
    let command = elsewhere::command_on(tree, commands(&argv).map(|(_, word)| word));
    // Without a `--` it is not clear where the words of another program begin.
    if !behind.is_empty() || !command.get_positionals().any(Arg::is_trailing_var_arg_set) {
        let flags: Vec<&Arg> = tree.get_arguments().chain(command.get_arguments()).collect();
        let mut is_value = false;
        argv.retain_mut(|word| {
            let before = std::mem::replace(&mut is_value, takes_any_word(&flags, word));
            before || plain_switch(&flags, word)
        });
    }
    argv.extend(behind);
    argv
}

/// True if the next word is the value of this one, even if it looks like a flag.
fn takes_any_word(flags: &[&Arg], word: &OsString) -> bool {
    let Some(name) = word.to_str().and_then(|word| word.strip_prefix("--")) else { return false };
    let is_it = |arg: &&&Arg| arg.get_long() == Some(name) && arg.get_action().takes_values();
    flags.iter().find(is_it).is_some_and(|arg| arg.is_allow_hyphen_values_set())
}

/// Replaces a switch with a true value by the plain switch. False if the word is to be removed.
fn plain_switch(flags: &[&Arg], word: &mut OsString) -> bool {
    let text = word.to_str().unwrap_or_default();
    let Some((name, value)) = text.strip_prefix("--").and_then(|text| text.split_once('=')) else {
        return true;
    };
    let is_it = |arg: &&Arg| {
        let mut others = arg.get_all_aliases().unwrap_or_default().into_iter();
        matches!(arg.get_action(), ArgAction::SetTrue)
            && (arg.get_long() == Some(name) || others.any(|other| other == name))
    };
    match value {
        "true" | "True" | "TRUE" | "1" if flags.iter().any(is_it) => {
            *word = format!("--{name}").into();
            true
        }
        "false" | "False" | "FALSE" | "0" => !flags.iter().any(is_it),
        _ => true,
    }
}

/// Adds the correct position of command words that were parsed as names.
#[must_use]
pub(crate) fn with_advice(mut error: Error, tree: &Command, argv: &[OsString]) -> Error {
    let command = elsewhere::command_on(tree, commands(argv).map(|(_, word)| word));
    let advice = other_case(&error, command).or_else(|| all_twice(&error, command, argv));
    if let Some(advice) = advice.or_else(|| elsewhere::flag_elsewhere(&error, command)) {
        return elsewhere::with(error, advice);
    }
    if error.kind() == ErrorKind::InvalidSubcommand && command.get_name() == "submit-dist" {
        error.remove(ContextKind::SuggestedSubcommand);
        let names = command.get_subcommands().map(|one| one.get_name());
        let frameworks: Vec<_> = names.filter(|name| *name != "help").collect();
        let advice = format!("the framework comes first: {}", frameworks.join(", "));
        return elsewhere::with(error, advice);
    }
    let is_command =
        |word: &OsString| word == "-c" || word.as_encoded_bytes().starts_with(b"--command");
    let is_flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word.starts_with('-'),
        _ => true,
    };
    let behind = argv.iter().any(|word| word == "--");
    let unknown = error.kind() == ErrorKind::UnknownArgument && !is_flag && !behind;
    if unknown && (command.get_name().starts_with("submit") || argv.iter().any(is_command)) {
        let advice = "the words of a command stand behind `--`, as in `--command -- sleep 5`";
        let advice = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, advice);
    }
    error
}

/// Hint at the meaning of `-A` in commands where it is short for `--all`.
fn all_twice(error: &Error, command: &Command, argv: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    // In lists it means all projects.
    let takes_names = command.get_positionals().next().is_some();
    let both = takes_names && flag == "--all" && argv.iter().any(|word| word == "-A");
    let is_twice = error.kind() == ErrorKind::ArgumentConflict && both;
    is_twice.then(|| {
        "'-A' is short for '--all' here: all of one project, which '-p PROJECT' names".to_owned()
    })
}

/// Hint at the short flag that differs from an unknown one in case only.
fn other_case(error: &Error, command: &Command) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let typed = word.strip_prefix('-')?.parse::<char>().ok()?;
    let is_it = |short: char| short != typed && short.eq_ignore_ascii_case(&typed);
    let mut flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
    let (short, long) =
        flags.find_map(|flag| Some((flag.get_short().filter(|short| is_it(*short))?, flag)))?;
    let long = long.get_long().map(|long| format!(", --{long}")).unwrap_or_default();
    (error.kind() == ErrorKind::UnknownArgument).then(|| format!("there is '-{short}{long}'"))
}

/// Older command lines have no `--` and give `--command` and `--args` a string each. Only then is
/// the word after `--command` its value; it is joined to it, so that one grammar reads both.
///
/// Lines of the second dialect may give the program as well, and its arguments behind `--`:
/// `submit NAME --command PROGRAM -- ARGUMENT`. The program is put behind `--`, too.
fn join_old_strings(mut argv: Vec<OsString>) -> Vec<OsString> {
    let Some((at, _)) = commands(&argv).next() else { return argv };
    let is_word = |word: &OsString| !word.to_string_lossy().starts_with('-');
    let command = argv[at].to_string_lossy();
    let submits = command == "submit" || command == "mj" || command.starts_with("submit-");
    if let Some(end) = argv.iter().position(|word| word == "--") {
        let verb = argv[at..end].iter().position(|word| word == "submit").map(|verb| at + verb);
        let Some(verb) = verb.filter(|verb| !submits && is_word(&argv[verb + 1])) else {
            return argv;
        };
        let takes = |at: &usize| argv[*at] == "--command" || argv[*at] == "-c";
        if let Some(flag) = (verb..end).find(takes).filter(|flag| is_word(&argv[flag + 1])) {
            let program = argv.remove(flag + 1);
            argv.insert(end, program);
        }
        return argv;
    }
    if !submits {
        return argv;
    }
    let mut joined: Vec<OsString> = Vec::with_capacity(argv.len());
    let mut words = argv.into_iter().peekable();
    while let Some(mut word) = words.next() {
        let takes_next = word == "--command"
            && words.peek().is_some_and(|next| !next.to_string_lossy().starts_with('-'));
        if takes_next && let Some(value) = words.next() {
            word.push("=");
            word.push(value);
        }
        joined.push(word);
    }
    joined
}
