//! The pure core. Owns: what the deciding crates must not touch. Does not know about: what they
//! decide.

use super::Fault;
use super::layers::Packages;
use crate::tree::{Tree, code_of, is_test_file, product_lines};

/// Crates that decide: no I/O, no clock, no chance, no threads, no wire format.
///
/// True for those that know documents, and share the views of readers with them.
const CORE: [(&str, bool); 13] = [
    ("units", true),
    ("spec", true),
    ("records", true),
    ("model", false),
    ("reasons", false),
    ("shares", false),
    ("sched", false),
    ("elastic", true),
    ("view", true),
    ("pod-life", true),
    ("command", true),
    ("adopted", true),
    ("orchestrator", true),
];

/// Dependencies that a core crate may have.
const MAY_DEPEND_ON: [&str; 6] = [
    "elastane-units",
    "elastane-model",
    "elastane-reasons",
    "elastane-shares",
    "thiserror",
    "smallvec",
];
/// Further dependencies that a crate with documents may have.
const DOCUMENTS_MAY_DEPEND_ON: [&str; 10] = [
    "elastane-spec",
    "elastane-records",
    "elastane-pod-life",
    "elastane-command",
    "elastane-adopted",
    "elastane-sched",
    "elastane-view",
    "serde",
    "serde_json",
    "uuid",
];

/// Words that one with documents may use all the same.
const OF_DOCUMENTS: [&str; 1] = ["serde"];

/// Words that have no place in a core crate, and why. `Arc` has: what is shared there does not
/// change.
const BANNED: [(&str, &str); 24] = [
    ("std::time", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("std::fs", "the core does no I/O"),
    ("std::io", "the core does no I/O"),
    ("std::net", "the core does no I/O"),
    ("std::env", "the core does no I/O"),
    ("std::process", "the core starts nothing"),
    ("std::thread", "the core starts nothing"),
    ("atomic", "nothing that is shared changes"),
    ("Mutex", "nothing that is shared changes"),
    ("RwLock", "nothing that is shared changes"),
    ("OnceLock", "nothing that is shared changes"),
    ("LazyLock", "nothing that is shared changes"),
    ("Condvar", "nothing that is shared changes"),
    ("mpsc", "nothing that is shared changes"),
    ("Barrier", "nothing that is shared changes"),
    ("now_v7", "ids follow from a seed that is an argument"),
    ("tokio", "the core knows no runtime"),
    ("serde", "wire types live at the edge"),
    ("HashMap", "its order is random; use BTreeMap"),
    ("HashSet", "its order is random; use BTreeSet"),
    ("RandomState", "the core draws no lots"),
    ("f32", "no floats in accounting"),
    ("f64", "no floats in accounting"),
];

pub(super) fn check(tree: &Tree, packages: &Packages) -> Vec<Fault> {
    let faults = |(name, documents): &(&str, bool)| {
        let of_packages = dependencies(name, *documents, packages);
        of_packages.into_iter().chain(sources(name, *documents, tree)).collect::<Vec<_>>()
    };
    CORE.iter().flat_map(faults).collect()
}

fn dependencies(name: &str, documents: bool, packages: &Packages) -> Vec<Fault> {
    let path = format!("crates/{name}/Cargo.toml");
    let uses = packages.get(&format!("elastane-{name}")).into_iter().flatten();
    let may = |used: &str| {
        MAY_DEPEND_ON.contains(&used) || (documents && DOCUMENTS_MAY_DEPEND_ON.contains(&used))
    };
    uses.filter(|used| !may(used))
        .map(|used| {
            let what = format!("a core crate may not depend on {used}, only on {MAY_DEPEND_ON:?}");
            Fault::new(&path, 0, what)
        })
        .collect()
}

fn sources(name: &str, documents: bool, tree: &Tree) -> Vec<Fault> {
    let folder = format!("crates/{name}/src/");
    let mut faults = Vec::new();
    let files = tree.iter().filter(|(path, _)| path.starts_with(&folder) && path.ends_with(".rs"));
    for (path, text) in files.filter(|(path, _)| !is_test_file(path)) {
        let banned = BANNED.iter().filter(|(word, _)| !(documents && OF_DOCUMENTS.contains(word)));
        let banned: Vec<_> = banned.collect();
        for (number, line) in product_lines(text) {
            for &&(word, why) in &banned {
                if has_word(code_of(line), word) {
                    faults.push(Fault::new(path, number, format!("no `{word}` here: {why}")));
                }
            }
        }
    }
    faults
}

/// True if `word` occurs and is not part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}
