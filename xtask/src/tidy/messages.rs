//! Decisions on text for people. Owns: no code reads a message to decide; it reads a code, a kind
//! or a field beside it. Does not know about: the contents of messages.

use super::Fault;
use crate::tree::{Tree, code_of, is_test_file, product_lines};

/// Files that read the output of another program, which has no code for it.
const PARSERS: [(&str, &str); 10] = [
    ("crates/client/src/request.rs", "rustls has this fault of a certificate as text only"),
    ("crates/engine-docker/src/channel.rs", "the daemon names the folder that it does not see"),
    ("crates/engine-docker/src/image.rs", "registries refuse with the status of other faults"),
    ("crates/engine-docker/src/lib.rs", "daemons say with one status what is not running"),
    ("crates/engine-docker/src/network.rs", "the daemon has one status for all of its faults"),
    ("crates/engine-docker/src/session.rs", "runtimes say in words that a program is missing"),
    ("crates/engine-docker/src/shared.rs", "a state of Podman that the client cannot read"),
    ("crates/engine-docker/src/start.rs", "the daemon has one status for all of its faults"),
    ("crates/engine-fractions/src/checked.rs", "ends a process whose driver is silent"),
    ("crates/engine-fractions/src/fraction.rs", "what `gpu-check` printed in a process of its own"),
];
/// Suffix of files that read the output of another program.
const PARSER: &str = "_parser.rs";

/// Parts of paths of files that tests are made of: they check texts for people.
const OF_TESTS: [&str; 4] = ["_tests.rs", "/testing.rs", "/engine-conformance/", "/testkit/"];

/// Names of values that are text for people.
const TEXTS: [&str; 10] = [
    "message", "reason", "why", "fault", "error", "stderr", "detail", "details", "said", "verdict",
];
/// Calls that give the text of such a value.
const GIVES: [&str; 4] = [".to_string()", ".as_str()", ".to_lowercase()", ".to_ascii_lowercase()"];
/// Calls that check a part of a text.
const READS: [&str; 7] = [
    ".starts_with(",
    ".ends_with(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".contains(",
    ".find(",
    ".replacen(",
];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut parsers = PARSERS.map(|(path, _)| path).to_vec();
    let is_product =
        |path: &str| path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    for (path, text) in tree.iter().filter(|(path, _)| is_product(path)) {
        if is_test_file(path)
            || path.ends_with(PARSER)
            || OF_TESTS.iter().any(|of| path.contains(of))
        {
            continue;
        }
        let found = decisions(text);
        if PARSERS.iter().any(|(known, _)| known == path) {
            parsers.retain(|known| known != path || found.is_empty());
            continue;
        }
        faults.extend(found.into_iter().map(|(number, name)| {
            let what = format!(
                "`{name}` is text for people: decide by a code or a field beside it, or name the file \
                 as a parser in xtask/src/tidy/messages.rs"
            );
            Fault::new(path, number, what)
        }));
    }
    let here = "xtask/src/tidy/messages.rs";
    let unused = parsers.into_iter().filter(|path| tree.contains_key(*path));
    faults.extend(
        unused.map(|path| Fault::new(here, 0, format!("{path} reads no message: take it out"))),
    );
    faults
}

/// The lines of a file that decide on a message, and what they read.
fn decisions(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    // A test beside the code asserts what people read.
    for (number, line) in chained(text).into_iter().filter(|(_, line)| !line.starts_with("assert"))
    {
        for read in READS {
            let befores = line.match_indices(read).map(|(at, _)| &line[..at]);
            found.extend(befores.filter_map(text_at_end).map(|name| (number, name)));
        }
    }
    found
}

/// The lines of the product, each with the calls that follow in lines of their own.
fn chained(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in product_lines(text) {
        let code = code_of(line).trim();
        match lines.last_mut() {
            Some((_, before)) if code.starts_with('.') => before.push_str(code),
            _ => lines.push((number, code.to_owned())),
        }
    }
    lines
}

/// The text for people that an expression ends with.
fn text_at_end(before: &str) -> Option<&'static str> {
    let stripped = GIVES.iter().find_map(|gives| before.strip_suffix(gives));
    let before = stripped.unwrap_or(before);
    let before = before.strip_suffix("()").unwrap_or(before);
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = before.rsplit(|letter: char| !is_name(letter)).next().unwrap_or_default();
    TEXTS.into_iter().find(|text| *text == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> usize {
        let tree = Tree::from([("crates/a/src/b.rs".to_owned(), code.to_owned())]);
        check(&tree).len()
    }

    #[test]
    fn a_decision_on_text_for_people_is_found_and_a_parser_is_not() {
        for code in [
            "if error.message.starts_with(\"no such\") {",
            "let gone = error.to_string().contains(\"gone\");",
            "let x = why\n    .strip_prefix(\"a\")",
            "if e.message().contains(\"b\") {",
            "message: error.message.replacen(\"a\", \"b\", 1),",
        ] {
            assert_eq!(found(code), 1, "{code}");
        }
        for code in [
            "if path.starts_with(\"a\") {",
            "if reason.code.starts_with('P') {",
            "// why.contains(",
            "if reasons.contains(&one) {",
            "#[cfg(test)]\nmod tests {\n    assert!(why.contains(\"x\"));\n}",
        ] {
            assert_eq!(found(code), 0, "{code}");
        }
        let parser = ("crates/a/src/said_parser.rs".to_owned(), "why.contains(\"x\")".to_owned());
        assert_eq!(check(&Tree::from([parser])), []);
        let unused = (PARSERS[0].0.to_owned(), "fn nothing() {}".to_owned());
        assert_eq!(check(&Tree::from([unused])).len(), 1);
    }
}
