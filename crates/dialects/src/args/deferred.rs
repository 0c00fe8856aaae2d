//! Flags of commands that are built only where a line names the command: all of them together are
//! thousands, and cost more time than the answer of the server.

use std::cell::RefCell;
use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, CommandFactory as _, Error, FromArgMatches, Id};

use super::Cli;

thread_local! {
    /// Words of the line whose grammar is being built; `None` = the whole grammar.
    static WORDS: RefCell<Option<Vec<OsString>>> = const { RefCell::new(None) };
}

/// Other names of commands whose flags are built late.
const ALIASES: [(&str, &str); 1] = [("mj", "submit-mpi")];

/// The grammar, in which late commands that are not on the line have no flags.
#[must_use]
pub(super) fn grammar_of(line: &[OsString]) -> Command {
    WORDS.set(Some(line.to_vec()));
    let grammar = Cli::command();
    WORDS.set(None);
    grammar
}

/// True if the flags of a command are to be built.
pub(super) fn is_typed(command: &Command) -> bool {
    let is_on = |words: &Vec<OsString>, name: &str| words.iter().any(|word| word == name);
    let name = command.get_name();
    let mut aliases = ALIASES.iter().filter(|(_, of)| *of == name);
    WORDS.with_borrow(|words| {
        words
            .as_ref()
            .is_none_or(|words| is_on(words, name) || aliases.any(|(alias, _)| is_on(words, alias)))
    })
}

/// The flags of a late command.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) Box<T>);

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|flags| Self(Box::new(flags)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        if is_typed(&command) { T::augment_args(command) } else { command }
    }

    fn augment_args_for_update(command: Command) -> Command {
        if is_typed(&command) { T::augment_args_for_update(command) } else { command }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of every command below one, under each name it has.
    fn lines(command: &Command, line: &[&str], out: &mut Vec<(Vec<OsString>, Vec<Id>)>) {
        for below in command.get_subcommands() {
            for name in std::iter::once(below.get_name()).chain(below.get_all_aliases()) {
                let line = [line, &[name]].concat();
                let flags = below.get_arguments().map(|arg| arg.get_id().clone()).collect();
                out.push((line.iter().map(OsString::from).collect(), flags));
                lines(below, &line, out);
            }
        }
    }

    #[test]
    fn a_command_that_is_typed_has_all_its_flags() {
        let mut all = Vec::new();
        lines(&Cli::command(), &["runai"], &mut all);
        assert!(all.len() > 200);
        for (line, flags) in all {
            let grammar = grammar_of(&line);
            let at = line[1..].iter().fold(&grammar, |at, word| at.find_subcommand(word).unwrap());
            let found: Vec<Id> = at.get_arguments().map(|arg| arg.get_id().clone()).collect();
            assert_eq!(found, flags, "{line:?}");
        }
    }

    #[test]
    fn a_command_that_is_not_typed_has_none() {
        let grammar = grammar_of(&["runai".into(), "list".into()]);
        let submit = grammar.find_subcommand("submit").unwrap();
        assert_eq!(submit.get_arguments().count(), 0);
    }
}
