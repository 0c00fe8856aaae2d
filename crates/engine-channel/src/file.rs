//! Checkpoint files. Owns: which open files count as a checkpoint. Does not know about paths: a run
//! passes the file open for writing, which proves that it exists and that the run may write it, in
//! whatever mount namespace the run is.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{OFlags, fcntl_getfl, fstatfs};

/// File systems whose content ends with a container.
const OVERLAY: i64 = 0x794c_7630;
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

const NANOS_PER_MS: i64 = 1_000_000;

/// Where a run may keep what outlives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Anywhere on the machine.
    Machine,
    /// On what is mounted into its container: everything else is removed with it.
    Mounts,
}

/// Identifies one state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    /// When its content was written, by the machine's clock, in milliseconds.
    pub(crate) written_ms: u64,
}

/// Verifies that an open file is a checkpoint.
///
/// # Errors
/// Why it is not.
pub(crate) fn verify(file: &File, storage: Storage) -> Result<Stamp, String> {
    let unreadable = |error: std::io::Error| format!("the file cannot be looked at: {error}");
    let flags = fcntl_getfl(file).map_err(|error| unreadable(error.into()))?;
    let mode = flags & OFlags::RWMODE;
    if flags.contains(OFlags::PATH) || !(mode == OFlags::RDWR || mode == OFlags::WRONLY) {
        let why =
            "the file was not opened for writing; a checkpoint is a file that the run may write";
        return Err(why.to_owned());
    }
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if found.nlink() == 0 {
        return Err("the file has been deleted".to_owned());
    }
    if found.len() == 0 {
        return Err("the file is empty".to_owned());
    }
    if storage == Storage::Mounts {
        let of = fstatfs(file).map_err(|error| unreadable(error.into()))?;
        if [OVERLAY, TMPFS, RAMFS].contains(&of.f_type) {
            let why = "the file ends with the container; write it to $ELASTANE_CHECKPOINT_DIR, or to a \
                       mounted volume";
            return Err(why.to_owned());
        }
    }
    Ok(stamp(&found))
}

fn stamp(found: &Metadata) -> Stamp {
    let written = found.mtime().saturating_mul(1000) + found.mtime_nsec() / NANOS_PER_MS;
    Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.len(),
        changed: (found.ctime(), found.ctime_nsec()),
        written_ms: u64::try_from(written).unwrap_or(0),
    }
}

/// True if a file that was a checkpoint is one no more. A file that cannot be looked at now still
/// may be.
pub(crate) fn has_vanished(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() == 0 || found.len() == 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;

    #[test]
    fn a_file_open_for_writing_that_has_content_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fs::write(&path, "weights").unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let first = verify(&open(), Storage::Machine).unwrap();
        assert_eq!(verify(&open(), Storage::Machine), Ok(first), "unchanged");
        fs::write(&path, "other weights").unwrap();
        assert_ne!(verify(&open(), Storage::Machine), Ok(first));
    }

    #[test]
    fn what_proves_nothing_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fs::write(&path, "weights").unwrap();
        let refused = |file: &File| verify(file, Storage::Machine).unwrap_err();
        assert!(refused(&File::open(&path).unwrap()).contains("not opened for writing"));
        assert!(refused(&File::open(folder.path()).unwrap()).contains("not opened for writing"));
        let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
        assert!(refused(&null).contains("no regular file"));
        let written = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(!has_vanished(&written));
        fs::remove_file(&path).unwrap();
        assert!(refused(&written).contains("deleted") && has_vanished(&written));
        let empty = File::create(&path).unwrap();
        assert!(refused(&empty).contains("empty"));
    }

    #[test]
    fn what_is_only_in_memory_ends_with_a_container() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        let path = folder.path().join("model");
        fs::write(&path, "weights").unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(verify(&file, Storage::Machine).is_ok());
        let kept = verify(&file, Storage::Mounts);
        assert!(kept.unwrap_err().contains("ends with the container"));
    }
}
