//! Ownership of the folders of a run. Owns: changing it to the run's account without following
//! links that the run created. Does not know which folders.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchown, fstat, openat,
};
use rustix::io::Errno;
use trees::{Entry, Next, Visitor};

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
    let pinned = match openat(CWD, path, PINNED, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let about = fstat(&pinned)?;
    if (about.st_uid, about.st_gid) == (account.uid, account.gid) {
        return Ok(());
    }
    let handover = Handover { owner: about.st_uid, account };
    if is_dir(&about) {
        // The content first: after a crash in between, the folder still has its old owner, and all
        // is repeated.
        trees::walk(trees::open(&pinned, c".")?, &mut &handover)?;
    }
    handover.give(pinned)
}

/// A handle that pins a file, which may be a link, without opening it.
const PINNED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Changes the owner of what had the former one.
struct Handover<'a> {
    owner: u32,
    account: &'a Account,
}

impl Handover<'_> {
    /// By handle, so that it is the file that was looked at, whatever has its name by now.
    fn give(&self, pinned: impl AsFd) -> io::Result<()> {
        let (uid, gid) = ids(self.account);
        Ok(chownat(pinned, c"", uid, gid, AtFlags::EMPTY_PATH)?)
    }

    fn concerns(&self, about: &Stat) -> bool {
        about.st_uid == self.owner || about.st_uid == self.account.uid
    }
}

impl Visitor for &Handover<'_> {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        let pinned = match entry.open(PINNED) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Next::Past),
            opened => opened?,
        };
        let about = fstat(&pinned)?;
        match is_dir(&about) {
            _ if !self.concerns(&about) => {}
            true => return Ok(Next::Into),
            false if about.st_nlink == 1 => self.give(pinned)?,
            false => {}
        }
        Ok(Next::Past)
    }

    fn leave(&mut self, folder: Entry<'_>) -> io::Result<()> {
        let pinned = folder.open(PINNED)?;
        let about = fstat(&pinned)?;
        match is_dir(&about) && self.concerns(&about) {
            true => self.give(pinned),
            false => Ok(()),
        }
    }
}

fn is_dir(meta: &Stat) -> bool {
    FileType::from_raw_mode(meta.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

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

    #[test]
    fn a_tree_of_any_depth_changes_hands() {
        if !rustix::process::getuid().is_root() {
            return skip::skipped("only root can change the owner of a file");
        }
        // Some disks take milliseconds for each folder that goes.
        let top = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let own = top.path().join("own");
        fs::create_dir(&own).unwrap();
        let mut at = trees::open(CWD, &own).unwrap();
        for _ in 0..16_000 {
            rustix::fs::mkdirat(&at, c"d", Mode::RWXU).unwrap();
            at = trees::open(&at, c"d").unwrap();
        }
        let ann = Account::private(1_900_000_000);
        give(&own, &ann).unwrap();
        let owners = [fstat(&at), fstat(trees::open(CWD, &own).unwrap())];
        assert_eq!(owners.map(|about| about.unwrap().st_uid), [ann.uid, ann.uid]);
        trees::remove(&own, &|| true).unwrap();
    }
}
