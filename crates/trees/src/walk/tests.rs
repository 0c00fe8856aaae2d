//! Entries that a walk visits, and those that it does not enter.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, unlinkat};

use super::*;
use crate::testing::{DEEP, after_mounts, alone, deep, folder, limit_open_files, passes};

/// The names of all entries, and the number of folders left.
#[derive(Default)]
struct Seen {
    names: Vec<String>,
    left: usize,
    /// Name at which the walk ends.
    last: Option<&'static str>,
}

impl Visitor for Seen {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        let name = entry.name.to_str().unwrap();
        self.names.push(name.to_owned());
        Ok(if self.last == Some(name) { Next::End } else { Next::Into })
    }

    fn leave(&mut self, _folder: Entry<'_>) -> io::Result<()> {
        self.left += 1;
        Ok(())
    }
}

#[test]
fn a_deep_tree_takes_three_open_files() {
    if let Some(child) = alone("walk::tests::a_deep_tree_takes_three_open_files") {
        return passes(child);
    }
    let dir = folder();
    deep(&dir.path().join("top"), DEEP);
    limit_open_files(3);
    let mut seen = Seen::default();
    walk(open(CWD, dir.path()).unwrap(), &mut seen).unwrap();
    assert_eq!((seen.names.len(), seen.left), (DEEP + 2, DEEP + 2));
    let mut some = Seen { last: Some("top"), ..Seen::default() };
    walk(open(CWD, dir.path()).unwrap(), &mut some).unwrap();
    assert_eq!((some.names.len(), some.left), (1, 0));
    // A recursion would delete the folder of the test.
    crate::remove(&dir.path().join("top"), &|| true).unwrap();
}

#[test]
fn each_entry_of_a_wide_tree_is_visited_once() {
    let dir = folder();
    let mut expected = BTreeSet::new();
    for at in 0..600 {
        let (file, folder, inner) = (format!("file{at}"), format!("folder{at}"), format!("in{at}"));
        fs::write(dir.path().join(&file), "").unwrap();
        fs::create_dir_all(dir.path().join(&folder).join(&inner)).unwrap();
        expected.extend([file, folder, inner]);
    }
    let mut seen = Seen::default();
    walk(open(CWD, dir.path()).unwrap(), &mut seen).unwrap();
    assert_eq!((seen.names.len(), seen.left), (1800, 1200));
    assert_eq!(seen.names.into_iter().collect::<BTreeSet<_>>(), expected);
}

/// Deletes folders, innermost first.
struct Deletes;

impl Visitor for Deletes {
    fn visit(&mut self, _entry: Entry<'_>) -> io::Result<Next> {
        Ok(Next::Into)
    }

    fn leave(&mut self, folder: Entry<'_>) -> io::Result<()> {
        Ok(unlinkat(folder.parent, folder.name, AtFlags::REMOVEDIR)?)
    }
}

#[test]
fn folders_may_go_when_they_are_left() {
    let dir = folder();
    for at in 0..600 {
        fs::create_dir_all(dir.path().join(format!("{at}/a/b"))).unwrap();
    }
    walk(open(CWD, dir.path()).unwrap(), &mut Deletes).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn links_and_mounts_are_visited_and_not_entered() {
    let Some(child) = alone("walk::tests::links_and_mounts_are_visited_and_not_entered") else {
        symlink("../outside", "top/link").unwrap();
        let mut seen = Seen::default();
        walk(open(CWD, "top").unwrap(), &mut seen).unwrap();
        seen.names.sort();
        return assert_eq!(seen.names, ["bound", "link", "new"]);
    };
    let dir = folder();
    let script = "mkdir -p top/bound top/new outside && mount --bind outside top/bound \
                  && mount -t tmpfs none top/new && touch outside/kept top/new/kept && rm -f top/link";
    match after_mounts(script, dir.path(), &child) {
        Some(child) => passes(child),
        None => skip::skipped("this machine lets no test mount anything"),
    }
    assert!(open(CWD, dir.path().join("top/link")).is_err(), "it is a link");
}
