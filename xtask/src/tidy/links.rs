//! Links between documents. Owns: that the file and the heading that a relative link names exist.
//! Does not know about other sites.

use std::collections::BTreeSet;

use super::Fault;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (number, line) in prose(text) {
            for target in links(line).filter(|target| !is_elsewhere(target)) {
                if let Some(what) = fault_of(tree, path, target) {
                    faults.push(Fault::new(path, number, what));
                }
            }
        }
    }
    faults
}

/// Fault of a link of this document; `None` if its target exists.
fn fault_of(tree: &Tree, from: &str, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { resolve(from, file) };
    let Some(text) = tree.get(&path) else {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let is_folder = tree.keys().any(|known| known.starts_with(&folder));
        return (!is_folder).then(|| format!("links to {path}, which does not exist"));
    };
    let missing = !heading.is_empty() && path.ends_with(".md") && !anchors(text).contains(heading);
    missing.then(|| format!("links to {path}#{heading}; that page has no such heading"))
}

/// A path relative to the folder of a document, from the root.
fn resolve(from: &str, file: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The lines outside code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// The targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// Anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
