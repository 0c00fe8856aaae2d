//! From command lines to intents, and from workloads to tables.

mod lists;
mod objects;
pub(super) mod samples;
mod tables;
pub(super) mod tops;
mod waits;
mod what_if;

/// Intent of a command line, or the text of its error.
fn meaning(line: &str) -> Result<dialects::intent::Intent, String> {
    let words = shell_words::split(line).unwrap();
    let understood = dialects::understood(words.iter().map(Into::into).collect());
    understood.map(|understood| understood.intent).map_err(|error| error.to_string())
}

/// Refusals in one place, for review.
#[test]
fn refusals_are_in_plain_english() {
    use super::context::{nameless, no_project_chosen};
    let others = [
        super::submit::NO_IMAGE,
        super::login::NO_PROVIDER,
        &nameless("job"),
        &no_project_chosen(),
    ];
    expect_test::expect_file!["tests/refusals.txt"]
        .assert_eq(&others.map(|why| format!("{why}\n")).concat());
}
