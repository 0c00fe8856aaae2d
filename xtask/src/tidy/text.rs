//! Rules about words. Owns: the header of every source file, and that nothing names a developer's
//! machine. Does not know about: the code below the header.

use super::Fault;
use crate::tree::Tree;

/// Beginnings of paths that exist on one machine only. Put together here, so that this file does
/// not break its own rule.
const MACHINE_PATHS: [&str; 3] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "Users/")];

/// Words that documents do not use: they name no subject.
const VAGUE: [&str; 6] = ["nobody", "somebody", "anybody", "whoever", "anew", "at the door"];

/// Vague words in texts of programs, where `nobody` is an account.
const VAGUE_IN_TEXTS: [&str; 5] = ["somebody", "anybody", "whoever", "anew", "at the door"];

/// Faults of a document: vague words, and sentences whose subject is a question word.
fn prose(path: &str, text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        // Code is quoted as it is.
        let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let lower = words.to_lowercase();
        if let Some(word) = VAGUE.iter().find(|word| has_word(&lower, word, |_| true)) {
            faults.push(Fault::new(path, number, format!("`{word}`: name the subject")));
        }
        let asks = words.contains('?');
        let begins = ["Who ", "Who's "].iter().any(|word| {
            words.starts_with(word)
                || [". ", "| ", "- "].iter().any(|end| words.contains(&format!("{end}{word}")))
        });
        if begins && !asks {
            let what = "a sentence begins with `Who`: name the subject";
            faults.push(Fault::new(path, number, what));
        }
    }
    faults
}

/// Texts with `(s)` that are printed as another product prints them.
const PUBLISHED: [&str; 2] = ["access point(s)", "node(s)"];

/// True where a line has the word by itself at a place that counts.
fn has_word(line: &str, word: &str, counts: impl Fn(usize) -> bool) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(char::is_alphanumeric)
            && !after.starts_with(char::is_alphanumeric)
            && counts(at)
    })
}

/// Texts of programs with vague words, or whose nouns do not follow their counts: `2 workload(s)`.
fn texts(path: &str, text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut goes_on = false;
    // Tests are at the end.
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    for (number, line) in (1..).zip(lines) {
        let quotes = |of: &str| of.matches('"').count() + usize::from(goes_on);
        let is_text = |at: usize| quotes(&line[..at]) % 2 == 1;
        let is_comment = line.trim_start().starts_with("//");
        let is_noun =
            |at: usize| line[..at].ends_with(|one: char| one.is_alphabetic() || one == '}');
        let is_published =
            |at: usize| PUBLISHED.iter().any(|known| line[..at + 3].ends_with(known));
        let is_fault = |at: usize| is_noun(at) && is_text(at) && !is_published(at);
        if !is_comment && line.match_indices("(s)").any(|(at, _)| is_fault(at)) {
            let what = "`(s)` in a text: `units::counted` makes a noun follow its count";
            faults.push(Fault::new(path, number, what));
        }
        let vague = VAGUE_IN_TEXTS.iter().find(|word| has_word(line, word, is_text));
        if let Some(word) = vague.filter(|_| !is_comment) {
            faults.push(Fault::new(path, number, format!("`{word}` in a text: name the subject")));
        }
        goes_on = line.ends_with('\\') && quotes(line) % 2 == 1;
    }
    faults
}

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree {
        if path.ends_with(".md") {
            faults.extend(prose(path, text));
        }
        let of_tests = ["/tests", "/benches/", "conformance", "testing", "crates/testkit/"];
        let is_test = of_tests.iter().any(|part| path.contains(part));
        if path.starts_with("crates/") && path.ends_with(".rs") && !is_test {
            faults.extend(texts(path, text));
        }
        if path.ends_with(".rs") && !text.starts_with("//!") {
            let what = "begins without `//!`: say what the file owns and does not know about";
            faults.push(Fault::new(path, 1, what));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(machine) = MACHINE_PATHS.iter().find(|machine| line.contains(**machine)) {
                faults.push(Fault::new(
                    path,
                    number,
                    format!("`{machine}…` is one machine's path"),
                ));
            }
        }
    }
    faults
}
