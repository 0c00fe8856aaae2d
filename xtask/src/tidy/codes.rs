//! Reason codes and their pages. Owns: that each has the other. Does not know about: what a code
//! means.

use std::collections::BTreeMap;

use super::Fault;
use crate::tree::{Tree, code_of, is_test_file, product_lines};

const PAGES: &str = "docs/reference/codes/";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut codes: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let sources = tree.iter().filter(|(path, _)| path.starts_with("crates/"));
    for (path, text) in sources.filter(|(path, _)| path.ends_with(".rs") && !is_test_file(path)) {
        for (number, line) in product_lines(text) {
            for code in codes_in(code_of(line)) {
                codes.entry(code).or_insert((path, number));
            }
        }
    }
    let page = |code: &str| format!("{PAGES}{code}.md");
    let mut faults: Vec<Fault> = codes
        .iter()
        .filter(|(code, _)| !tree.contains_key(&page(code)))
        .map(|(code, (path, line))| {
            Fault::new(path, *line, format!("{code} has no page; write {}", page(code)))
        })
        .collect();
    for (path, text) in tree {
        let Some(name) = path.strip_prefix(PAGES).and_then(|name| name.strip_suffix(".md")) else {
            continue;
        };
        if name == "README" {
            continue;
        }
        if !codes.contains_key(name) {
            faults.push(Fault::new(path, 0, "no code of this name in the sources"));
        }
        if !text.starts_with(&format!("# {name}")) {
            faults.push(Fault::new(path, 1, format!("the page must begin with `# {name}`")));
        }
    }
    faults
}

/// String literals in the line that are a code: `P` or `E` and three digits.
fn codes_in(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|literal| {
        let mut letters = literal.chars();
        literal.len() == 4
            && matches!(letters.next(), Some('P' | 'E'))
            && letters.all(|letter| letter.is_ascii_digit())
    })
}
