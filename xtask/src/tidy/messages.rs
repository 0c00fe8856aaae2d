//! Decisions on text for people. Owns: no code reads a message to decide; it reads a code, a kind
//! or a field beside it. Does not know about: the contents of messages.

use super::Fault;
use crate::tree::{Tree, code_of, is_test_file, product_lines};

/// Files that read the output of another program or library, which has no code for it, or has its
/// code in a field of such a name.
const PARSERS: [(&str, &str); 13] = [
    ("crates/cli-kit/src/exit.rs", "leaves out a cause that an error quotes"),
    ("crates/client/src/request.rs", "rustls has this fault of a certificate as text only"),
    ("crates/engine-docker/src/channel.rs", "the daemon names the folder that it does not see"),
    ("crates/engine-docker/src/image.rs", "registries refuse with the status of other faults"),
    ("crates/engine-docker/src/lib.rs", "daemons say with one status what is not running"),
    ("crates/engine-docker/src/network.rs", "the daemon has one status for all of its faults"),
    ("crates/engine-docker/src/session.rs", "runtimes say in words that a program is missing"),
    ("crates/engine-docker/src/shared.rs", "a state of Podman that the client cannot read"),
    ("crates/engine-docker/src/start.rs", "the daemon has one status for all of its faults"),
    ("crates/http-kit/src/body.rs", "serde names the field of a fault in its text only"),
    ("crates/kube-api/src/error.rs", "the field `reason` of Kubernetes is a code"),
    ("crates/oidc/src/provider.rs", "the field `error` of OAuth is a code"),
    ("crates/store/src/sqlite/open.rs", "SQLite checks its pages with a text only"),
];
/// Suffix of files that read the output of another program.
const PARSER: &str = "_parser.rs";

/// Parts of paths of files that tests are made of: they check texts for people.
const OF_TESTS: [&str; 4] = ["_tests.rs", "/testing.rs", "/engine-conformance/", "/testkit/"];

/// Names of values that are text for people.
const TEXTS: [&str; 13] = [
    "message",
    "reason",
    "why",
    "fault",
    "error",
    "stderr",
    "detail",
    "details",
    "said",
    "verdict",
    "sentence",
    "complaint",
    "headline",
];
/// Calls that give the text of such a value.
const GIVES: [&str; 4] = [".to_string()", ".as_str()", ".to_lowercase()", ".to_ascii_lowercase()"];
/// Calls that check a part of a text.
const READS: [&str; 17] = [
    ".starts_with(",
    ".ends_with(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".contains(",
    ".find(",
    ".rfind(",
    ".replacen(",
    ".split(",
    ".split_once(",
    ".rsplit_once(",
    ".trim_start_matches(",
    ".matches(",
    ".eq_ignore_ascii_case(",
    " == \"",
    " != \"",
    ".as_str() {",
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

/// The lines of a file that decide on a message, and the name of the value that they read.
fn decisions(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Variables of the function that hold the text of such a value.
    let mut copies: Vec<String> = Vec::new();
    // A test beside the code asserts what people read.
    for (number, line) in chained(text).into_iter().filter(|(_, line)| !line.starts_with("assert"))
    {
        if line.contains("fn ") {
            copies.clear();
        }
        for read in READS {
            for (at, _) in line.match_indices(read) {
                let name = name_at_end(&line[..at]);
                if is_text(name) || copies.iter().any(|copy| copy == name) {
                    found.push((number, name.to_owned()));
                }
            }
        }
        if let Some((name, value)) = line.strip_prefix("let ").and_then(|rest| rest.split_once('='))
        {
            let name = name.trim_start_matches("mut ").split(':').next().unwrap_or_default().trim();
            copies.retain(|copy| copy != name);
            if copies_text(value, &copies) {
                copies.push(name.to_owned());
            }
        }
    }
    found
}

/// True if a value is the text of an error or a message, or begins with a copy of one.
fn copies_text(value: &str, copies: &[String]) -> bool {
    let gives = |gives: &str| {
        let mut at = value.match_indices(gives);
        at.any(|(at, _)| is_text(name_at_end(&value[..at])))
    };
    let first = value.trim_start().trim_start_matches('&').split(|c| !is_letter(c)).next();
    let is_copy = first.is_some_and(|first| copies.iter().any(|copy| copy == first));
    let is_ended =
        |what: &str| [";", "?;"].iter().any(|end| value.ends_with(&format!("{what}{end}")));
    // The text is the whole value, or what was read of a copy.
    is_copy || ([".to_string()", ".clone()"].iter().any(|call| gives(call) && is_ended(call)))
}

/// The lines of the product, each with the calls that follow in lines of their own.
fn chained(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in product_lines(text) {
        let code = code_of(line).trim();
        match lines.last_mut() {
            Some((_, before)) if code.starts_with('.') => before.push_str(code),
            Some((_, before)) if before.ends_with(" =") => before.push_str(&format!(" {code}")),
            _ => lines.push((number, code.to_owned())),
        }
    }
    lines
}

/// Name of the variable, field or method that an expression ends with, without the call that gives
/// its text.
fn name_at_end(before: &str) -> &str {
    let stripped = GIVES.iter().find_map(|gives| before.strip_suffix(gives));
    let before = stripped.unwrap_or(before);
    let before = before.strip_suffix("()").unwrap_or(before);
    before.rsplit(|letter: char| !is_letter(letter)).next().unwrap_or_default()
}

fn is_text(name: &str) -> bool {
    TEXTS.contains(&name)
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
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
            "let text = error.to_string();\nif text.starts_with(\"a\") {",
            "let text =\n    error.to_string();\nlet first = text.lines();\nfirst.find('a')",
            "match error.message.as_str() {",
            "if why == \"gone\" {",
        ] {
            assert_eq!(found(code), 1, "{code}");
        }
        for code in [
            "if path.starts_with(\"a\") {",
            "if reason.code.starts_with('P') {",
            "// why.contains(",
            "if reasons.contains(&one) {",
            "let text = error.to_string();\nfn other(text: &str) {\nif text.contains('a') {",
            "let text = error.to_string();\nlet text = path.text();\nif text.contains('a') {",
            "let code = error.code;\nif code == \"E1\" {",
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
