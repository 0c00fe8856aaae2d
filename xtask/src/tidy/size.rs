//! Ceilings. Owns: how long a crate, a file and a function may be. Does not know about: what is in
//! them.

use std::collections::BTreeMap;

use super::Fault;
use crate::tree::{Tree, is_test_file, product_lines};

/// Lines under `src` of a crate, folders of tests left out.
const CRATE_LINES_MAX: usize = 12_000;
/// Folders that a feature adds, which the product is built without.
const NOT_IN_PRODUCT: [&str; 1] = ["crates/sched/src/kai/"];
/// Lines of a file that are not tests.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function, signature and closing bracket included.
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = crates(tree);
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let lines = product_lines(text).len();
        if !is_test_file(path) && lines > FILE_LINES_MAX {
            let what = format!("{lines} lines; a file has at most {FILE_LINES_MAX} besides tests");
            faults.push(Fault::new(path, 0, what));
        }
        for (number, lines) in functions(text) {
            if lines > FUNCTION_LINES_MAX {
                let what = format!("{lines} lines; a function has at most {FUNCTION_LINES_MAX}");
                faults.push(Fault::new(path, number, what));
            }
        }
    }
    faults
}

/// Crates that are too large.
fn crates(tree: &Tree) -> Vec<Fault> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    let in_product = |path: &str| !NOT_IN_PRODUCT.iter().any(|folder| path.starts_with(folder));
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs") && in_product(path)) {
        let of_crate = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        if let Some((name, _)) = of_crate.filter(|(_, file)| !file.contains("tests/")) {
            *sizes.entry(name).or_default() += text.lines().count();
        }
    }
    let fault = |(name, lines): (&str, usize)| {
        let what = format!(
            "{lines} lines; this crate has at most {CRATE_LINES_MAX}: take a capability out of it"
        );
        (lines > CRATE_LINES_MAX).then(|| Fault::new(&format!("crates/{name}/src"), 0, what))
    };
    sizes.into_iter().filter_map(fault).collect()
}

/// First line and length of every function with a body. The code is formatted, so a function ends
/// at the first closing bracket that is indented as its first line is.
pub(super) fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate().filter(|(_, line)| opens_function(line)) {
        let indent = &line[..line.len() - line.trim_start().len()];
        let closes = |line: &&str| {
            line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}') || rest == "{}")
        };
        if let Some(length) = lines[start + 1..].iter().position(closes) {
            found.push((start + 1, length + 2));
        }
    }
    found
}

/// True if a function with a body of several lines begins here.
fn opens_function(line: &str) -> bool {
    const BEFORE_FN: [&str; 5] = ["const", "async", "unsafe", "extern", "default"];
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || word.starts_with('"') || BEFORE_FN.contains(word)
    });
    let ends_here = line.ends_with(';') || line.ends_with('}');
    words.next() == Some("fn") && !ends_here
}
