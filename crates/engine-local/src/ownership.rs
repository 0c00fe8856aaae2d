//! Ownership of the folders of a run. Owns: changing it to the run's account without following
//! links that the run created. Does not know which folders.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchown, fstat, openat,
    statat,
};

use crate::isolation::Account;

fn ids(account: &Account) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(account.uid)), Some(Gid::from_raw(account.gid)))
}

/// Gives an open file to an account.
pub(crate) fn give_handle(file: impl AsFd, account: &Account) -> io::Result<()> {
    let (uid, gid) = ids(account);
    Ok(fchown(file, uid, gid)?)
}

/// Gives an account a path and everything below it that had the same owner. A file with further
/// names may belong to another account and is skipped. An absent path is no error.
pub(crate) fn give(path: &Path, account: &Account) -> io::Result<()> {
    let owner = match fs::symlink_metadata(path) {
        Ok(meta) if (meta.uid(), meta.gid()) == (account.uid, account.gid) => return Ok(()),
        Ok(meta) => meta.uid(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(folder) => give_folder(folder, owner, account),
        Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
            let (uid, gid) = ids(account);
            Ok(chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The content first: after a crash in between, the folder still has its old owner, and all is
/// repeated.
fn give_folder(folder: OwnedFd, owner: u32, account: &Account) -> io::Result<()> {
    let (uid, gid) = ids(account);
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let meta = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if meta.st_uid != owner && meta.st_uid != account.uid {
            continue;
        }
        if is_dir(&meta) {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            give_folder(openat(&folder, name, flags, Mode::empty())?, owner, account)?;
        } else if meta.st_nlink == 1 {
            chownat(&folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
    }
    if is_dir(&fstat(&folder)?) {
        fchown(&folder, uid, gid)?;
    }
    Ok(())
}

fn is_dir(meta: &Stat) -> bool {
    FileType::from_raw_mode(meta.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_changes_hands_but_not_what_has_another_name_or_owner() {
        if !rustix::process::getuid().is_root() {
            return skip::skipped("only root can change the owner of a file");
        }
        let top = tempfile::tempdir().unwrap();
        let (own, outside) = (top.path().join("own"), top.path().join("outside"));
        fs::create_dir_all(own.join("inner")).unwrap();
        fs::write(&outside, "").unwrap();
        fs::write(own.join("inner/file"), "").unwrap();
        fs::hard_link(&outside, own.join("hard")).unwrap();
        std::os::unix::fs::symlink(&outside, own.join("soft")).unwrap();
        fs::write(own.join("other"), "").unwrap();
        std::os::unix::fs::chown(own.join("other"), Some(77), None).unwrap();
        give(&own, &Account::private(1_900_000_000)).unwrap();
        let uid = |name: &str| fs::symlink_metadata(top.path().join(name)).unwrap().uid();
        let seen =
            ["own", "own/inner/file", "own/soft", "own/hard", "own/other", "outside"].map(uid);
        assert_eq!(seen, [1_900_000_000, 1_900_000_000, 1_900_000_000, 0, 77, 0]);
    }
}
