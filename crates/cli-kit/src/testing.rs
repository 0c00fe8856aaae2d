//! Checks for the tests of every command line.

use std::collections::BTreeSet;

/// Parses every flag and argument below a command with values that are not numbers, or out of
/// range.
///
/// Returns the number of checked flags.
///
/// # Panics
/// An error has the words of a library and not what to write.
pub fn errors_say_what_to_write(mut tree: clap::Command) -> usize {
    tree.build();
    let mut seen = BTreeSet::new();
    check_below(&tree, &mut seen);
    seen.len()
}

fn check_below(command: &clap::Command, seen: &mut BTreeSet<String>) {
    for flag in command.get_arguments().filter(|flag| flag.get_action().takes_values()) {
        if seen.insert(format!("{:?} {:?}", flag.get_long(), flag.get_value_names())) {
            check(command, flag);
        }
    }
    command.get_subcommands().for_each(|below| check_below(below, seen));
}

fn check(command: &clap::Command, flag: &clap::Arg) {
    for wrong in ["x", "-7", "1.5", "99999999999999999999999"] {
        let word = match flag.get_long() {
            Some(long) => format!("--{long}={wrong}"),
            None => wrong.to_owned(),
        };
        let parsed = command.clone().try_get_matches_from([command.get_name(), &word]);
        let said = parsed.err().map(|error| error.to_string()).unwrap_or_default();
        for text in ["digit", "target type", "float", "cannot parse", " is not in "] {
            assert!(!said.contains(text), "{}: {said}", command.get_name());
        }
    }
}
