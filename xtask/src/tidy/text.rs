//! Rules about words. Owns: the header of every source file, and that nothing names a developer's
//! machine. Does not know about: the code below the header.

use super::Fault;
use crate::tree::Tree;

/// Beginnings of paths that exist on one machine only. Put together here, so that this file does
/// not break its own rule.
const MACHINE_PATHS: [&str; 3] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "Users/")];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree {
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
