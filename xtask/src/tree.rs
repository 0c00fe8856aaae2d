//! The repository as texts. Owns: which files count, and which lines of a Rust file are tests or
//! comments. Does not know about: any rule.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::tidy::ui;

/// Text files by their path from the root, with `/` between folders.
pub(crate) type Tree = BTreeMap<String, String>;

/// Folders that are not the repository's; in a linked worktree `.git` is a file.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", "dist"];

/// Reads every file of the repository. Files that are not UTF-8, such as pictures, are listed
/// without a text.
///
/// # Errors
/// A folder or a file cannot be read.
pub(crate) fn read(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let kind = fs::symlink_metadata(&path)?.file_type();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
                if let Ok(relative) = path.strip_prefix(root) {
                    let text = String::from_utf8(bytes).unwrap_or_default();
                    tree.insert(relative.to_string_lossy().into_owned(), text);
                }
            }
        }
    }
    // Built files do not count, but of which sources they are does.
    if let Ok(sources) = fs::read_to_string(root.join(ui::BUILT)) {
        tree.insert(ui::BUILT.to_owned(), sources);
    }
    Ok(tree)
}

/// True if the whole file is tests.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// The lines of a Rust file with their numbers, without its `#[cfg(test)]` modules. The code is
/// formatted, so such a module ends at the first bracket in the first column.
pub(crate) fn product_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut in_tests = false;
    let mut previous = "";
    for (number, line) in (1..).zip(text.lines()) {
        if previous == "#[cfg(test)]" && line.starts_with("mod ") && line.ends_with('{') {
            in_tests = true;
            lines.pop();
        }
        if !in_tests {
            lines.push((number, line));
        }
        if line == "}" {
            in_tests = false;
        }
        previous = line;
    }
    lines
}

/// The line without its comment. A `//` in a string counts as a comment too, which no rule minds.
pub(crate) fn code_of(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_left_out() {
        let text = "a\n#[cfg(test)]\nmod tests {\n    b\n}\nc\n#[cfg(test)]\nmod tests;\n";
        let lines: Vec<_> = product_lines(text).into_iter().map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 6, 7, 8]);
    }
}
