//! Rules of the web interface in `ui/`. Owns: that the built files are of these sources, the size
//! of files. Does not know about: what they import.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{Fault, ui_imports};
use crate::tree::Tree;

/// The digest that `make ui` wrote with the built files.
pub(crate) const BUILT: &str = "crates/ui-dist/dist/SOURCES";

const LINES_MAX: usize = 300;
/// Ends of the names of sources, and how the comment begins that each opens with.
const STARTS: [(&str, &str); 3] = [(".ts", "// "), (".tsx", "// "), (".css", "/* ")];
/// Files that can change the bundle, besides `build/` and `src/`; as in `ui/build/sources.ts`.
const FILES: [&str; 5] =
    ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];
/// Folders below `ui` with sources of ours.
const FOLDERS: [&str; 5] = ["bench/", "build/", "pictures/", "src/", "tests/"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree {
        let Some(own) = path.strip_prefix("ui/") else { continue };
        if !FOLDERS.iter().any(|folder| own.starts_with(folder)) {
            continue;
        }
        let Some((_, start)) = STARTS.iter().find(|(end, _)| own.ends_with(end)) else { continue };
        if own.ends_with(".d.ts") {
            continue;
        }
        if !text.starts_with(start) {
            let what = format!("the first line is `{start}` and what the file is");
            faults.push(Fault::new(path, 1, what));
        }
        let lines = text.lines().count();
        if lines > LINES_MAX {
            let what = format!("{lines} lines; at most {LINES_MAX}");
            faults.push(Fault::new(path, 0, what));
        }
    }
    faults.extend(ui_imports::check(tree));
    faults.extend(built(tree));
    faults
}

/// Checks that the built files are from the current sources.
fn built(tree: &Tree) -> Option<Fault> {
    let wanted = digest(tree)?;
    let found = tree.get(BUILT).map(|text| text.trim()).unwrap_or_default();
    (found != wanted).then(|| {
        let what = "not of the sources in ui/; `make ui` builds them again";
        Fault::new(BUILT, 0, what)
    })
}

/// The digest of the sources; none in a tree without an interface.
fn digest(tree: &Tree) -> Option<String> {
    let mut hash = Sha256::new();
    let mut any = false;
    for (path, text) in tree {
        let Some(own) = path.strip_prefix("ui/") else { continue };
        let inside = own.starts_with("build/") || own.starts_with("src/");
        let test = [".d.ts", ".test.ts", ".test.tsx"].iter().any(|end| own.ends_with(end));
        if test || !(inside || FILES.contains(&own)) {
            continue;
        }
        any = true;
        hash.update(format!("{own}\n{}\n", text.len()));
        hash.update(text);
    }
    any.then(|| {
        hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    fn said_of(files: &[(&str, &str)]) -> Vec<String> {
        let mut files = tree(files);
        let sources = digest(&files).unwrap_or_default();
        files.insert(BUILT.to_owned(), sources + "\n");
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_short_and_says_what_it_is() {
        let long = format!("// Long.\n{}", "x\n".repeat(LINES_MAX));
        assert_eq!(
            said_of(&[
                ("ui/src/kit/a.ts", &long),
                ("ui/src/kit/b.ts", "const a = 1;\n"),
                ("ui/src/kit/c.css", ".a {}\n"),
                ("ui/tests/d.spec.ts", &long),
            ]),
            [
                "ui/src/kit/a.ts: 301 lines; at most 300",
                "ui/src/kit/b.ts:1: the first line is `// ` and what the file is",
                "ui/src/kit/c.css:1: the first line is `/* ` and what the file is",
                "ui/tests/d.spec.ts: 301 lines; at most 300",
            ]
        );
    }

    #[test]
    fn built_files_are_of_the_sources_as_they_are_and_types_and_tests_change_nothing() {
        let mut files = tree(&[("ui/src/a.ts", "// A.\n"), ("ui/index.html", "<p>")]);
        files.insert(BUILT.to_owned(), digest(&files).unwrap());
        assert_eq!(check(&files), []);
        files.insert("ui/src/types.d.ts".to_owned(), "type A = 1;".to_owned());
        files.insert("ui/src/a.test.ts".to_owned(), "// Tests.\ntest();".to_owned());
        assert_eq!(check(&files), []);
        files.insert("ui/index.html".to_owned(), "<b>".to_owned());
        let found = check(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("make ui"), "{found:?}");
    }
}
