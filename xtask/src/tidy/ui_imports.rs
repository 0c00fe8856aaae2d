//! Imports of the web interface. Owns: which folder of `ui/src` imports which, and that no files
//! import each other in a circle. Does not know about: TypeScript beyond `from "…"`, `import "…"`
//! and `import("…")`.

use std::collections::BTreeSet;

use super::Fault;
use super::circles::{Imports, circle};
use crate::tree::Tree;

const SRC: &str = "ui/src/";
/// Folders below `src` that every page may import, and what they may import themselves.
const SHARED: [(&str, &[&str]); 4] = [
    ("kit", &[]),
    ("api", &[]),
    ("live", &["kit", "api"]),
    ("asset-forms", &["kit", "api", "live"]),
];
/// The folder that imports the pages.
const APP: &str = "app";

/// Texts before the path of an import.
const STARTS: [&str; 3] = ["from \"", "import \"", "import(\""];

/// An import of a file.
struct Import {
    line: usize,
    /// The path below `ui/src`, without the end of the name.
    to: String,
    /// True if types alone are imported, which are gone once built.
    of_types: bool,
}

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut imports = Imports::new();
    for (path, text) in tree {
        let Some(own) = path.strip_prefix(SRC) else { continue };
        let Some(file) = own.strip_suffix(".ts").or_else(|| own.strip_suffix(".tsx")) else {
            continue;
        };
        let found = imports_of(own, text);
        faults.extend(folders(path, own, &found));
        let targets: BTreeSet<String> =
            found.into_iter().filter(|one| !one.of_types).map(|one| one.to).collect();
        imports.insert(file.to_owned(), targets);
    }
    let circles: Vec<_> = imports.keys().filter_map(|own| circle(own, &imports)).collect();
    if let Some(shortest) = circles.iter().min_by_key(|circle| circle.len()) {
        let (files, shortest) = (circles.len(), shortest.join(" -> "));
        let what = format!("{files} files import each other in circles, none may: {shortest}");
        faults.push(Fault::new("ui/src", 0, what));
    }
    faults
}

/// The imports of other files of `ui/src`.
fn imports_of(own: &str, text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    // An import may be of several lines: the first one says if it is of types.
    let mut of_types = false;
    for (line, code) in (1..).zip(text.lines()) {
        if code.starts_with("import ") || code.starts_with("export ") {
            of_types = code.starts_with("import type ") || code.starts_with("export type ");
        }
        for start in STARTS {
            for rest in code.split(start).skip(1) {
                let Some((path, _)) = rest.split_once('"') else { continue };
                if path.starts_with('.') {
                    let of_types = of_types && start == STARTS[0];
                    found.push(Import { line, to: resolve(own, path), of_types });
                }
            }
        }
    }
    found
}

/// The file below `ui/src` that a path of a file leads to.
fn resolve(own: &str, path: &str) -> String {
    let mut at: Vec<&str> = own.split('/').collect();
    at.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                at.pop();
            }
            name => at.push(name),
        }
    }
    let target = at.join("/");
    target.strip_suffix(".ts").map_or(target.clone(), str::to_owned)
}

/// The imports of a file that leave its folder for one that it may not know.
fn folders(path: &str, own: &str, imports: &[Import]) -> Vec<Fault> {
    let Some((folder, _)) = own.split_once('/').filter(|(folder, _)| *folder != APP) else {
        return Vec::new();
    };
    let allowed: &[&str] = match SHARED.iter().find(|(name, _)| *name == folder) {
        Some((_, allowed)) => allowed,
        None => &["kit", "api", "live", "asset-forms"],
    };
    let mut faults = Vec::new();
    for Import { line, to, .. } in imports {
        let into = to.split_once('/').map_or(to.as_str(), |(into, _)| into);
        if into != folder && !allowed.contains(&into) {
            let what = format!("`{folder}` imports `{into}`; it may import {}", said(allowed));
            faults.push(Fault::new(path, *line, what));
        }
    }
    faults
}

fn said(allowed: &[&str]) -> String {
    if allowed.is_empty() { "no other folder".to_owned() } else { allowed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(files: &[(&str, &str)]) -> Vec<String> {
        let tree = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        check(&tree.collect()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_page_imports_no_other_page_and_the_kit_nothing() {
        let page = "// A page.\nimport { a } from \"../kit/a\";\nimport { b } from \"../nodes/b\";\n\
                    const c = () => import(\"../overview/c\");\nimport \"../assets/d\";\n";
        let kit = "// A widget.\nimport { a } from \"../../api/a\";\nimport { b } from \"../b\";\n";
        let may = "it may import kit, api, live, asset-forms";
        assert_eq!(
            said_of(&[("ui/src/projects/p.tsx", page), ("ui/src/kit/grid/g.ts", kit)]),
            [
                "ui/src/kit/grid/g.ts:2: `kit` imports `api`; it may import no other folder"
                    .to_owned(),
                format!("ui/src/projects/p.tsx:3: `projects` imports `nodes`; {may}"),
                format!("ui/src/projects/p.tsx:4: `projects` imports `overview`; {may}"),
                format!("ui/src/projects/p.tsx:5: `projects` imports `assets`; {may}"),
            ]
        );
    }

    #[test]
    fn files_import_each_other_in_no_circle_but_for_types() {
        let a = "// A.\nimport {\n  b,\n} from \"./b\";\n";
        let b = "// B.\nexport { c } from \"./grid/c\";\n";
        let c = "// C.\nimport { a } from \"../a\";\n";
        let files = [("ui/src/kit/a.ts", a), ("ui/src/kit/b.tsx", b)];
        assert_eq!(
            said_of(&[files[0], files[1], ("ui/src/kit/grid/c.ts", c)]),
            ["ui/src: 3 files import each other in circles, none may: \
                 kit/a -> kit/b -> kit/grid/c -> kit/a"]
        );
        let types = "// C.\nimport type {\n  A,\n} from \"../a\";\n";
        assert_eq!(said_of(&[files[0], files[1], ("ui/src/kit/grid/c.ts", types)]), [""; 0]);
    }
}
