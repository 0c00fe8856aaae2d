//! Walks of folders. Owns: that nothing recurses into folders that others can make as deep as they
//! like. Does not know about: who made which.

use super::Fault;
use super::size::functions;
use crate::tree::{Tree, code_of, is_test_file, product_lines};

/// Files that may use `remove_dir_all`, and why it can do no harm there.
const MAY_RECURSE: [(&str, &str); 2] = [
    ("crates/engine-conformance/src/git_server.rs", "a fixture of tests"),
    ("crates/fraction-agent/src/self_test.rs", "a folder of two levels that no run sees"),
];

/// Calls that read the entries of a folder.
const READS: [&str; 3] = ["read_dir(", "Dir::read_from(", "RawDir::new("];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_product =
        |path: &str| path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    for (path, text) in tree.iter().filter(|(path, _)| is_product(path) && !is_test_file(path)) {
        let lines = product_lines(text);
        if !MAY_RECURSE.iter().any(|(known, _)| known == path) {
            let recursing =
                lines.iter().filter(|(_, line)| code_of(line).contains("remove_dir_all"));
            faults.extend(recursing.map(|(number, _)| {
                let what =
                    "no `remove_dir_all`, which recurses: use `trees::remove` or `trees::Trash`";
                Fault::new(path, *number, what)
            }));
        }
        let product: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
        for (first, length) in functions(&product.join("\n")) {
            let body = &product[first - 1..first - 1 + length];
            if let Some(name) = name_of(body[0]).filter(|name| walks(name, &body[1..])) {
                let what = format!("`{name}` recurses into folders: use `trees::walk`");
                faults.push(Fault::new(path, lines[first - 1].0, what));
            }
        }
    }
    faults
}

/// The name of the function whose signature begins in a line.
fn name_of(line: &str) -> Option<&str> {
    line.split_once("fn ")?.1.split(['(', '<']).next()
}

/// True if a function reads a folder and calls itself.
fn walks(name: &str, body: &[&str]) -> bool {
    let call = format!("{name}(");
    let calls = |line: &&str| {
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let before = code_of(line).match_indices(&call).map(|(at, _)| &line[..at]);
        // A method of something else is another function.
        before.into_iter().any(|before| match before.strip_suffix('.') {
            Some(of) => of.ends_with("self"),
            None => !before.ends_with(is_name),
        })
    };
    let reads = |line: &&str| READS.iter().any(|word| code_of(line).contains(word));
    body.iter().any(reads) && body.iter().any(calls)
}
