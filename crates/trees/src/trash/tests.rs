//! Discarded entries, and entries that an earlier instance left.

use std::fs::{self, File};

use super::*;
use crate::testing::{DEEP, alone, deep, folder, limit_open_files, passes};

#[test]
fn what_is_thrown_away_is_gone_at_once_and_deleted_soon() {
    let dir = folder();
    let (own, thing) = (dir.path().join("trash"), dir.path().join("folder"));
    let trash = Trash::default();
    trash.add(&own).unwrap();
    deep(&thing, DEEP);
    fs::write(dir.path().join("file"), "").unwrap();
    for path in [&thing, &dir.path().join("file"), &dir.path().join("absent")] {
        trash.discard(path).unwrap();
        assert!(!path.exists());
    }
    trash.wait_until_emptied();
    assert_eq!((fs::read_dir(&own).unwrap().count(), trash.leftovers()), (0, Vec::new()));
    // An administrator may delete the folder.
    fs::remove_dir(&own).unwrap();
    fs::create_dir(&thing).unwrap();
    trash.discard(&thing).unwrap();
    trash.wait_until_emptied();
    assert!(!thing.exists() && trash.leftovers().is_empty());
}

#[test]
fn what_an_earlier_one_left_is_deleted() {
    let dir = folder();
    fs::create_dir_all(dir.path().join("trash/some/thing")).unwrap();
    deep(&dir.path().join("trash/deep"), DEEP);
    let trash = Trash::default();
    trash.add(&dir.path().join("trash")).unwrap();
    trash.wait_until_emptied();
    assert_eq!(fs::read_dir(dir.path().join("trash")).unwrap().count(), 0);
}

#[test]
fn each_file_system_has_a_folder_of_its_own() {
    let memory = tempfile::tempdir_in("/dev/shm");
    let (disk, Ok(memory)) = (tempfile::tempdir().unwrap(), memory) else {
        return skip::skipped("there is no file system in memory");
    };
    let trash = Trash::default();
    assert!(trash.discard(disk.path()).is_err(), "there is none");
    for folder in [&disk, &memory] {
        trash.add(&folder.path().join("trash")).unwrap();
        fs::create_dir_all(folder.path().join("thing/inner")).unwrap();
    }
    for folder in [&disk, &memory] {
        trash.discard(&folder.path().join("thing")).unwrap();
        assert!(!folder.path().join("thing").exists());
    }
    trash.wait_until_emptied();
    assert_eq!(trash.leftovers(), []);
}

#[test]
fn without_open_files_it_waits() {
    if let Some(child) = alone("trash::tests::without_open_files_it_waits") {
        return passes(child);
    }
    let dir = folder();
    let (own, thing) = (dir.path().join("trash"), dir.path().join("folder"));
    let trash = Trash::default();
    trash.add(&own).unwrap();
    trash.wait_until_emptied();
    fs::create_dir_all(thing.join("inner")).unwrap();
    limit_open_files(3);
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    trash.discard(&thing).unwrap();
    trash.wait_until_emptied();
    assert!(!thing.exists(), "it is thrown away nevertheless");
    let why = trash.leftovers().into_iter().map(|left| left.why).collect::<Vec<_>>();
    assert!(matches!(&why[..], [Some(why)] if why.contains("open files")), "{why:?}");
    drop(taken);
    trash.wake();
    trash.wait_until_emptied();
    assert_eq!(trash.leftovers(), []);
}
