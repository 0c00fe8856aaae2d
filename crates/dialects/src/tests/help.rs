//! Every help page, as it is printed.

use std::collections::BTreeMap;

use clap::Command;
use expect_test::expect_file;

use crate::args::{tree, unsupported_flags};
use crate::lower::program;

/// The pages of a command and of those below it. `seen` has pages by their text, as many nouns have
/// the same verbs.
fn pages(command: &mut Command, seen: &mut BTreeMap<String, String>, to: &mut String) {
    for long in [command.render_help(), command.render_long_help()] {
        let (name, text) = (command.get_bin_name().unwrap_or("runai"), long.to_string());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
    let name = command.get_bin_name().unwrap_or("runai").to_owned();
    let text = command.render_help().to_string();
    // Global options are shown on the first page only.
    let own = if seen.is_empty() { &text } else { text.split("Global options:").next().unwrap() };
    match seen.get(&own.replace(&name, "")) {
        Some(other) => to.push_str(&format!("==> {name}: as {other}\n\n")),
        None => {
            to.push_str(&format!("==> {name}\n{}\n\n", own.trim_end()));
            seen.insert(own.replace(&name, ""), name);
        }
    }
    let below = command.get_subcommands_mut();
    for below in below.filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        pages(below, seen, to);
    }
}

#[test]
fn help_fits_80_columns() {
    let mut tree = tree();
    tree.build();
    let mut text = String::new();
    pages(&mut tree, &mut BTreeMap::new(), &mut text);
    expect_file!["help.txt"].assert_eq(&text);
    assert_plain(&text);
}

/// Words that are not terms of the field.
fn assert_plain(text: &str) {
    let text = text.to_lowercase();
    for word in ["nobody", "somebody", "anybody", "whoever", "anew", "lest "] {
        let line = text.lines().find(|line| line.contains(word));
        assert_eq!(line, None, "{word}");
    }
}

/// All refusals of flags and words in one place, for review.
#[test]
fn refusals_are_in_plain_english() {
    let flags = unsupported_flags::texts().map(|(flag, why)| format!("--{flag}: {why}\n"));
    let words = program::TEXTS.map(|why| format!("{why}\n"));
    let text: String = flags.chain(words).collect();
    expect_file!["refusals.txt"].assert_eq(&text);
    assert_plain(&text);
}
