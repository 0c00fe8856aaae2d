//! Removal of trees that users may leave.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::{FileType, Mode, mknodat};
use rustix::process::getuid;

use super::*;
use crate::testing::{
    DEEP, NOBODY, after_mounts, alone, as_nobody, deep, folder, limit_open_files, passes,
};

fn always() -> bool {
    true
}

/// A condition that holds for `most` entries.
fn for_entries(most: u32) -> impl Fn() -> bool {
    let left = Cell::new(most);
    move || left.replace(left.get().saturating_sub(1)) > 0
}

#[test]
fn a_tree_of_any_depth_goes_with_three_open_files() {
    if let Some(child) = alone("removal::tests::a_tree_of_any_depth_goes_with_three_open_files") {
        return passes(child);
    }
    let dir = folder();
    let top = dir.path().join("top");
    deep(&top, DEEP);
    limit_open_files(3);
    assert_eq!(remove(&top, &always).unwrap(), Progress::Done);
    assert!(!top.exists());
}

#[test]
fn links_pipes_and_names_of_any_bytes_go_and_what_links_lead_to_stays() {
    let dir = folder();
    let (top, outside) = (dir.path().join("top"), dir.path().join("outside"));
    let inner = top.join(OsStr::from_bytes(b"\xff\n *")).join("inner");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    for folder in [&top, &inner] {
        symlink(&outside, folder.join("folder")).unwrap();
        symlink(outside.join("kept"), folder.join("file")).unwrap();
        symlink("nowhere", folder.join("broken")).unwrap();
        fs::hard_link(outside.join("kept"), folder.join("hard")).unwrap();
        fs::write(folder.join(OsStr::from_bytes(b"\x80\xfe")), "").unwrap();
        let pipe = folder.join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }
    assert_eq!(remove(&top, &always).unwrap(), Progress::Done);
    assert!(!top.exists());
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    // A link in place of the tree is deleted, not followed.
    symlink(&outside, &top).unwrap();
    assert_eq!(remove(&top, &always).unwrap(), Progress::Done);
    assert!(fs::symlink_metadata(&top).is_err() && outside.join("kept").exists());
    assert_eq!(remove(&top, &always).unwrap(), Progress::Done, "it is absent");
}

#[test]
fn a_removal_that_is_cut_off_anywhere_goes_on() {
    let dir = folder();
    let top = dir.path().join("top");
    deep(&top, 30);
    for folder in 0..30 {
        let folder = top.join(format!("wide/{folder}"));
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(folder.join("file"), "").unwrap();
    }
    let mut steps = 0;
    // Every step could run in another process: it knows only the path.
    while remove(&top, &for_entries(3)).unwrap() == Progress::More {
        steps += 1;
        assert!(steps < 1000, "it gets nowhere");
    }
    assert!(steps > 10 && !top.exists(), "{steps}");
}

#[test]
fn a_folder_that_grows_does_not_hold_up_the_others() {
    let dir = folder();
    for folder in 0..20 {
        fs::create_dir_all(dir.path().join(format!("{folder}/inner"))).unwrap();
    }
    let growing = dir.path().join("10");
    let (made, left) = (Cell::new(0), Cell::new(0));
    let goes_on = || {
        made.set(made.get() + 1);
        left.set(left.get() - 1);
        fs::write(growing.join(made.get().to_string()), "").unwrap();
        left.get() > 0
    };
    let top = open_up(CWD, dir.path()).unwrap();
    let mut emptying = Emptying::of(top);
    for _ in 0..4 {
        left.set(200);
        assert_eq!(emptying.step(&goes_on).unwrap(), Progress::More);
    }
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["10"], "only the one that grows");
}

#[test]
fn folders_that_their_owner_has_closed_go() {
    let name = "removal::tests::folders_that_their_owner_has_closed_go";
    if let Some(child) = alone(name) {
        return passes(as_nobody(child));
    }
    let dir = folder();
    let top = dir.path().join("top");
    let closed = top.join("closed");
    for (folder, mode) in [("a/b/c", 0o000), ("read", 0o500), ("write", 0o200), ("d/e", 0o100)] {
        let folder = closed.join(folder);
        fs::create_dir_all(folder.join("inner/innermost")).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        for folder in [&folder.join("inner"), &folder] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    for folder in [&closed, &top] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).unwrap();
    }
    assert_eq!(remove(&top, &always).unwrap(), Progress::Done);
    assert!(!top.exists());
}

#[test]
fn what_cannot_be_deleted_is_named_and_all_else_goes() {
    let test = "removal::tests::what_cannot_be_deleted_is_named_and_all_else_goes";
    if let Some(mut child) = alone(test) {
        if !getuid().is_root() {
            return skip::skipped("only root can make a folder of another account");
        }
        let dir = folder();
        fs::create_dir_all(dir.path().join("top/a/theirs/inner")).unwrap();
        fs::create_dir_all(dir.path().join("top/b/c")).unwrap();
        for own in ["", "top", "top/a", "top/b", "top/b/c"] {
            std::os::unix::fs::chown(dir.path().join(own), Some(NOBODY), None).unwrap();
        }
        child.current_dir(&dir);
        return passes(as_nobody(child));
    }
    let error = remove(Path::new("top"), &always).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().starts_with("theirs: "), "{error}");
    let left: Vec<_> = fs::read_dir("top").unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.len() == 1 && left[0].join("theirs/inner").exists(), "{left:?}");
}

#[test]
fn nothing_in_a_mount_goes() {
    let test = "removal::tests::nothing_in_a_mount_goes";
    let Some(child) = alone(test) else {
        let error = remove(Path::new("top"), &always).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "{error}");
        assert!(Path::new("outside/kept").exists());
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let top = std::env::current_dir().unwrap().join("top");
        let own = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let own: Vec<_> = own.filter(|at| Path::new(at).starts_with(&top)).collect();
        assert!(own.len() == 2 && own.iter().all(|at| Path::new(at).join("kept").exists()));
        return;
    };
    let dir = folder();
    let script = "mkdir -p top/a/b/bound top/new outside && mount --bind outside top/a/b/bound \
                  && mount -t tmpfs none top/new && touch outside/kept top/new/kept";
    match after_mounts(script, dir.path(), &child) {
        Some(child) => passes(child),
        None => skip::skipped("this machine lets no test mount anything"),
    }
}
