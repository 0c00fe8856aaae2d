//! Rules of the web interface in `ui/`. Owns: that the built files are of these sources, the size
//! of files, and which folder imports which. Does not know about: TypeScript beyond `from "…"`.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::Fault;
use crate::tree::Tree;

/// The digest that `make ui` wrote with the built files.
pub(crate) const BUILT: &str = "crates/ui-dist/dist/SOURCES";

const LINES_MAX: usize = 300;
/// Ends of the names of sources, and how the comment begins that each opens with.
const STARTS: [(&str, &str); 3] = [(".ts", "// "), (".tsx", "// "), (".css", "/* ")];
/// Files that can change the bundle, besides `build/` and `src/`; as in `ui/build/sources.ts`.
const FILES: [&str; 5] =
    ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];
/// Folders below `src` that every page may import, and what they may import themselves.
const SHARED: [(&str, &[&str]); 4] = [
    ("kit", &[]),
    ("api", &[]),
    ("live", &["kit", "api"]),
    ("asset-forms", &["kit", "api", "live"]),
];
/// The folder that imports the pages.
const APP: &str = "app";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree {
        let Some(own) = path.strip_prefix("ui/src/") else { continue };
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
        faults.extend(imports(path, own, text));
    }
    faults.extend(built(tree));
    faults
}

/// The imports of a file that leave its folder for one that it may not know.
fn imports(path: &str, own: &str, text: &str) -> Vec<Fault> {
    let mut folders: Vec<&str> = own.split('/').collect();
    folders.pop();
    let Some(folder) = folders.first().copied() else { return Vec::new() };
    if folder == APP {
        return Vec::new();
    }
    let allowed: &[&str] = match SHARED.iter().find(|(name, _)| *name == folder) {
        Some((_, allowed)) => allowed,
        None => &["kit", "api", "live", "asset-forms"],
    };
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(target) = line.split("from \"../").nth(1) else { continue };
        let mut depth = folders.len() - 1;
        let mut rest = target;
        while let Some(up) = rest.strip_prefix("../") {
            (rest, depth) = (up, depth.saturating_sub(1));
        }
        let into = rest.split(['/', '"']).next().unwrap_or_default();
        if depth == 0 && into != folder && !allowed.contains(&into) {
            let what = format!("`{folder}` imports `{into}`; it may import {}", said(allowed));
            faults.push(Fault::new(path, number, what));
        }
    }
    faults
}

fn said(allowed: &[&str]) -> String {
    if allowed.is_empty() { "no other folder".to_owned() } else { allowed.join(", ") }
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
    fn a_page_imports_no_other_page_and_the_kit_nothing() {
        let page =
            "// A page.\nimport { a } from \"../kit/a\";\nimport { b } from \"../nodes/b\";\n";
        let kit = "// A widget.\nimport { a } from \"../../api/a\";\nimport { b } from \"../b\";\n";
        assert_eq!(
            said_of(&[("ui/src/projects/p.tsx", page), ("ui/src/kit/grid/g.ts", kit)]),
            [
                "ui/src/kit/grid/g.ts:2: `kit` imports `api`; it may import no other folder",
                "ui/src/projects/p.tsx:3: `projects` imports `nodes`; it may import kit, api, live, \
                 asset-forms",
            ]
        );
    }

    #[test]
    fn a_file_is_short_and_says_what_it_is() {
        let long = format!("// Long.\n{}", "x\n".repeat(LINES_MAX));
        assert_eq!(
            said_of(&[
                ("ui/src/kit/a.ts", &long),
                ("ui/src/kit/b.ts", "const a = 1;\n"),
                ("ui/src/kit/c.css", ".a {}\n"),
            ]),
            [
                "ui/src/kit/a.ts: 301 lines; at most 300",
                "ui/src/kit/b.ts:1: the first line is `// ` and what the file is",
                "ui/src/kit/c.css:1: the first line is `/* ` and what the file is",
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
