//! Every rule is broken once, in a repository of a few lines, and must report it.

use super::*;

/// A repository without a fault.
fn good() -> (Tree, Packages) {
    let tree = [
        ("crates/reasons/src/lib.rs", "//! Why.\nconst A: &str = \"P101\";\n"),
        ("crates/elastane/src/lib.rs", "//! Commands.\nuse std::collections::HashMap;\n"),
        ("docs/reference/codes/P101.md", "# P101 LargerThanAnyNode\n"),
        ("docs/reference/codes/README.md", "# Codes\n"),
    ];
    let packages = [
        ("elastane-units", vec!["thiserror"]),
        ("elastane-sched", vec!["elastane-units"]),
        ("elastane-elastane", vec!["elastane-sched", "tokio"]),
        ("xtask", vec!["anyhow"]),
    ];
    let tree = tree.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let packages = packages
        .into_iter()
        .map(|(name, uses)| (name.to_owned(), uses.into_iter().map(str::to_owned).collect()))
        .collect();
    (tree, packages)
}

/// The faults of a good repository to which one file was added or changed.
fn with_file(path: &str, text: &str) -> Vec<String> {
    let (mut tree, packages) = good();
    tree.insert(path.to_owned(), text.to_owned());
    check(&tree, &packages).iter().map(Fault::to_string).collect()
}

/// The faults of a good repository in which `package` uses `used` too.
fn with_dependency(package: &str, used: &str) -> Vec<String> {
    let (tree, mut packages) = good();
    packages.entry(package.to_owned()).or_default().insert(used.to_owned());
    check(&tree, &packages).iter().map(Fault::to_string).collect()
}

fn only_fault(faults: &[String], expected: &str) {
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with(expected), "{faults:?}");
}

#[test]
fn a_good_repository_has_no_fault() {
    let (tree, packages) = good();
    assert_eq!(check(&tree, &packages), []);
}

#[test]
fn a_lower_crate_may_not_use_a_higher_one() {
    let faults = with_dependency("elastane-store", "elastane-control");
    only_fault(&faults, "crates/store/Cargo.toml: store may not use control");
}

#[test]
fn a_crate_without_a_room_is_refused() {
    let faults = with_dependency("elastane-attic", "anyhow");
    only_fault(&faults, "crates/attic/Cargo.toml: no room for this crate");
}

#[test]
fn the_core_may_not_depend_on_the_world() {
    let faults = with_dependency("elastane-sched", "tokio");
    only_fault(&faults, "crates/sched/Cargo.toml: a core crate may not depend on tokio");
}

#[test]
fn the_core_may_not_use_banned_words() {
    for (code, expected) in [
        ("use std::time::Instant;", "no `std::time` here"),
        ("use std::collections::HashMap;", "no `HashMap` here"),
        ("use std::sync::{Arc, Mutex};", "no `Mutex` here"),
        ("let share = 0.5_f64; let x: f64 = share;", "no `f64` here"),
    ] {
        let faults = with_file("crates/model/src/lib.rs", &format!("//! Model.\n{code}\n"));
        only_fault(&faults, &format!("crates/model/src/lib.rs:2: {expected}"));
    }
}

#[test]
fn nothing_recurses_into_folders() {
    let deletes = "//! Files.\nfn forget(path: &Path) {\n    fs::remove_dir_all(path);\n}\n";
    let faults = with_file("crates/api/src/files.rs", deletes);
    only_fault(&faults, "crates/api/src/files.rs:3: no `remove_dir_all`, which recurses");
    let named = "crates/fraction-agent/src/self_test.rs";
    for path in ["crates/api/src/tests/files.rs", "crates/api/benches/files.rs", named] {
        assert_eq!(with_file(path, deletes), [""; 0]);
    }
    let walk = |name: &str| {
        let text = "//! Files.\n// One\nfn size(path: &Path) -> u64 {\n    \
                    fs::read_dir(path).map(|at| NAME(&at.path())).sum()\n}\n";
        with_file("crates/api/src/files.rs", &text.replace("NAME", name))
    };
    only_fault(&walk("size"), "crates/api/src/files.rs:3: `size` recurses into folders");
    only_fault(&walk("Self::size"), "crates/api/src/files.rs:3: `size` recurses into folders");
    only_fault(&walk("self.size"), "crates/api/src/files.rs:3: `size` recurses into folders");
    for other in ["file_size", "self.store.size"] {
        assert_eq!(walk(other), [""; 0]);
    }
}

#[test]
fn words_in_comments_and_tests_do_not_count() {
    let text = "//! No tokio.\n// HashMap is random\nfn tokio_free() {}\n\
                #[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n";
    assert_eq!(with_file("crates/model/src/lib.rs", text), Vec::<String>::new());
}

#[test]
fn a_file_needs_a_header() {
    let faults = with_file("crates/api/src/lib.rs", "fn main() {}\n");
    only_fault(&faults, "crates/api/src/lib.rs:1: begins without `//!`");
}

#[test]
fn a_file_has_a_ceiling_and_its_tests_do_not_count() {
    let long = format!("//! Long.\n{}", "// line\n".repeat(600));
    only_fault(&with_file("crates/api/src/lib.rs", &long), "crates/api/src/lib.rs: 601 lines");
    let lines = "    // line\n".repeat(600);
    let tested = format!("//! Short.\n#[cfg(test)]\nmod tests {{\n{lines}}}\n");
    assert_eq!(with_file("crates/api/src/lib.rs", &tested), Vec::<String>::new());
}

#[test]
fn a_crate_has_a_ceiling_and_folders_of_tests_do_not_count() {
    let with_files = |folder: &str, files: usize| {
        let (mut tree, packages) = good();
        let text = format!("//! Part.\n{}", "// line\n".repeat(499));
        tree.extend((0..files).map(|n| (format!("crates/serving/{folder}/{n}.rs"), text.clone())));
        check(&tree, &packages).iter().map(Fault::to_string).collect::<Vec<_>>()
    };
    assert_eq!(with_files("src", 24), [""; 0]);
    only_fault(
        &with_files("src", 25),
        "crates/serving/src: 12500 lines; this crate has at most 12000",
    );
    assert_eq!(with_files("src/tests", 25), [""; 0]);
    assert_eq!(with_files("tests/it", 25), [""; 0]);
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let with_files = |files: &[(&str, &str)]| {
        let (mut tree, packages) = good();
        let text = |code: &str| format!("//! Part.\n{code}\n");
        tree.extend(
            files.iter().map(|(name, code)| (format!("crates/quickstart/src/{name}"), text(code))),
        );
        check(&tree, &packages).iter().map(Fault::to_string).collect::<Vec<_>>()
    };
    let (one, circle) =
        ("crates/quickstart/src: ", "files import each other in circles, none may: ");
    for (files, said) in [
        (&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")][..], "2 *a -> b -> a"),
        (
            &[("a.rs", "use crate::{x, b::{C, B as D}};"), ("b.rs", "x(super::a::A);")],
            "2 *a -> b -> a",
        ),
        (
            &[
                ("lib.rs", "pub use b::B;"),
                ("a.rs", "use crate::B;"),
                ("b.rs", "use super::c;"),
                ("c/mod.rs", "use crate::a::{self};"),
            ],
            "3 *a -> b -> c -> a",
        ),
    ] {
        only_fault(&with_files(files), &format!("{one}{}", said.replace('*', circle)));
    }
    for files in [
        &[("lib.rs", "use a::A;"), ("a.rs", "use crate::B;")][..],
        &[("a/mod.rs", "use b::B;"), ("a/b.rs", "use super::A;")],
        &[("a.rs", "use crate::b::B;"), ("b.rs", "// crate::a::A")],
        &[("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests {\n use crate::a;\n}")],
    ] {
        assert_eq!(with_files(files), [""; 0], "{files:?}");
    }
}

#[test]
fn a_function_has_a_ceiling() {
    let function = |body: usize| {
        let lines = "        work();\n".repeat(body);
        format!("//! Work.\nimpl Thing {{\n    pub(crate) async fn long() {{\n{lines}    }}\n}}\n")
    };
    assert_eq!(with_file("crates/api/src/lib.rs", &function(68)), Vec::<String>::new());
    only_fault(
        &with_file("crates/api/src/lib.rs", &function(69)),
        "crates/api/src/lib.rs:3: 71 lines; a function has at most 70",
    );
}

#[test]
fn no_file_names_a_machine() {
    let faults = with_file("docs/guide.md", &format!("see {}home\n", concat!("/", "root/")));
    only_fault(&faults, "docs/guide.md:1: `");
}

#[test]
fn sentences_of_documents_name_their_subject() {
    let with = |text: &str| with_file("docs/page.md", &format!("# Page\n\n{text}\n"));
    only_fault(&with("Who brings two of those is refused."), "docs/page.md:3: a sentence begins");
    only_fault(&with("It is short. Who waits has a reason."), "docs/page.md:3: a sentence begins");
    only_fault(&with("Whoever reads it, understands it."), "docs/page.md:3: `whoever`");
    only_fault(&with("It restarts Anew."), "docs/page.md:3: `anew`");
    for fine in [
        "Who may do this?",
        "```\nWho holds what it needs:\n```",
        "`nobody` is a user.",
        "a manewer",
    ] {
        assert_eq!(with(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn texts_of_programs_are_plain() {
    let with = |text: &str| with_file("crates/api/src/lib.rs", &format!("//! Api.\n{text}\n"));
    let fault = "crates/api/src/lib.rs:2: `(s)` in a text";
    only_fault(&with("const A: &str = \"2 workload(s)\";"), fault);
    only_fault(&with("fn a() { format!(\"{what}(s)\"); }"), fault);
    only_fault(
        &with("const A: &str = \"changed by somebody\";"),
        "crates/api/src/lib.rs:2: `somebody`",
    );
    let long = "const A: &str = \"of 2 \\\n    workload(s)\";";
    only_fault(&with(long), "crates/api/src/lib.rs:3: `(s)` in a text");
    for fine in ["fn a(s: u8) { b(\"x\").run(s); }", "const A: &str = \"Open access point(s) to\";"]
    {
        assert_eq!(with(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn codes_and_pages_need_each_other() {
    let faults =
        with_file("crates/control/src/lib.rs", "//! Control.\nlet c = [\"E101\", \"E\"];\n");
    only_fault(&faults, "crates/control/src/lib.rs:2: E101 has no page");
    let faults = with_file("docs/reference/codes/P999.md", "# P999\n");
    only_fault(&faults, "docs/reference/codes/P999.md: no code of this name");
    let faults = with_file("docs/reference/codes/P101.md", "# Something else\n");
    only_fault(&faults, "docs/reference/codes/P101.md:1: the page must begin with");
}

#[test]
fn what_cargo_says_is_read_without_test_dependencies() {
    let json = br#"{"packages":[{"name":"elastane-api","dependencies":[
        {"name":"serde","kind":null},{"name":"elastane-testkit","kind":"dev"},
        {"name":"cc","kind":"build"}]}]}"#;
    let packages = layers::parse(json).expect("parses");
    let uses: Vec<&str> = packages["elastane-api"].iter().map(String::as_str).collect();
    assert_eq!(uses, ["cc", "serde"]);
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let good = "# A\n[b](reference/codes/P101.md#p101-largerthananynode) [c](#a) [d](../crates)\n\
                [e](https://example.org/x)\n```\n[code](nowhere.md)\n```\n";
    assert_eq!(with_file("docs/a.md", good), [""; 0]);
    only_fault(
        &with_file("docs/a.md", "# A\n[b](b.md)\n"),
        "docs/a.md:2: links to docs/b.md, which does not exist",
    );
    only_fault(
        &with_file("docs/a.md", "[b](reference/codes/P101.md#p102)\n"),
        "docs/a.md:1: links to docs/reference/codes/P101.md#p102; that page has no such heading",
    );
}
