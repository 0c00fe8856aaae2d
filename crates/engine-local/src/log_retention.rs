//! Size limits for the files of a run. Owns: freeing the space of the oldest output, and finding
//! where the rest starts. Does not know about readers.
//!
//! The output stays one file with stable byte offsets, so readers continue where they were; freed
//! space is a hole at its start.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::time::Duration;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstatvfs, seek};
use rustix::io::Errno;

use crate::record::log_line;

/// How often the size is checked.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The hole ends at a multiple of this: usual file systems have no larger blocks.
const PIECE_BYTES: u64 = 64 << 10;

/// Part of the free space of the file system up to which a file may grow, and bytes up to which each
/// may. The output that a file has stays, so that no run ends the output of others.
const FREE_PART: u64 = 8;
const BYTES_MAX_LEAST: u64 = 1 << 20;

/// Keeps a file below a size, and its growth within a part of the free space.
#[derive(Debug)]
pub(crate) struct LogRetention {
    /// Name of the log in log lines.
    name: &'static str,
    log: File,
    bytes_max: u64,
    /// Free bytes of the file system.
    free: fn(&File) -> io::Result<u64>,
    /// Bytes freed so far.
    gone: u64,
    /// Bytes that were kept at the last check.
    kept: u64,
    /// True if a failure was logged.
    logged: bool,
}

impl LogRetention {
    /// `log` must be writable.
    pub(crate) fn new(name: &'static str, log: File, bytes_max: u64) -> Self {
        let kept = log.metadata().map_or(0, |log| log.blocks() * 512);
        Self { name, log, bytes_max, free: free_bytes, gone: 0, kept, logged: false }
    }

    /// Frees what exceeds the limit. False: the file system cannot.
    pub(crate) fn keep(&mut self) -> bool {
        let given = self.log.metadata().and_then(|log| {
            // The run may have truncated its output.
            self.gone = self.gone.min(log.len());
            let room = ((self.free)(&self.log)? / FREE_PART).max(BYTES_MAX_LEAST);
            let most = self.bytes_max.min(room.max(self.kept));
            let until = log.len().saturating_sub(most) / PIECE_BYTES * PIECE_BYTES;
            if until > self.gone {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&self.log, hole, self.gone, until - self.gone)?;
                self.gone = until;
            }
            self.kept = log.len() - self.gone;
            Ok(())
        });
        let Err(error) = given else { return true };
        let name = self.name;
        let never = [Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
        if error.raw_os_error().is_some_and(|code| never.contains(&code)) {
            log_line(&format!(
                "{name} has no size limit: the file system cannot free a part of a file: {error}"
            ));
            return false;
        }
        // A later attempt may succeed.
        if !std::mem::replace(&mut self.logged, true) {
            log_line(&format!("{name} cannot be kept below its size limit: {error}; trying again"));
        }
        true
    }
}

fn free_bytes(log: &File) -> io::Result<u64> {
    let found = fstatvfs(log)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The first kept byte at or after an offset. Moves the file's position.
pub(crate) fn first_kept(log: impl AsFd, from: u64) -> io::Result<u64> {
    match seek(log, SeekFrom::Data(from)) {
        Ok(first) => Ok(first),
        // Empty so far, or the file system has no holes.
        Err(Errno::NXIO | Errno::INVAL) => Ok(from),
        Err(error) => Err(error.into()),
    }
}

/// Reads kept bytes from an offset: where they start, and how many; 0 at the end.
pub(crate) fn read_kept(log: &File, from: u64, piece: &mut [u8]) -> io::Result<(u64, usize)> {
    let mut from = first_kept(log, from)?;
    loop {
        let count = log.read_at(piece, from)?;
        // The bytes may have been freed during the read.
        let first = first_kept(log, from)?;
        if first == from {
            return Ok((from, count));
        }
        from = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_cannot_be_kept_is_tried_again_and_complained_of_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output");
        std::fs::write(&path, vec![7; 192 << 10]).expect("written");
        // A read-only handle cannot free anything.
        let mut bound = LogRetention::new("output", File::open(&path).expect("there"), 64 << 10);
        assert!(!bound.logged);
        assert!(bound.keep() && bound.logged && bound.keep());
        bound.log = File::options().write(true).open(&path).expect("there");
        assert!(bound.keep());
        assert_eq!(bound.gone, 2 * PIECE_BYTES);
    }

    #[test]
    fn a_log_grows_up_to_an_eighth_of_what_is_free_and_keeps_what_it_has_on_a_full_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output");
        std::fs::write(&path, "").expect("written");
        let log = || File::options().write(true).open(&path).expect("there");
        let mut bound = LogRetention::new("output", log(), 256 << 20);
        let mut written = 0;
        for (megabytes, free, gone) in [
            (4, (|_| Ok(16 << 20)) as fn(&File) -> io::Result<u64>, 2 << 20),
            (0, |_| Ok(0), 2 << 20),
            (1, |_| Ok(0), 3 << 20),
            (1, |_| Ok(1 << 30), 3 << 20),
        ] {
            log().write_all_at(&vec![7; megabytes << 20], written).expect("written");
            written += (megabytes as u64) << 20;
            bound.free = free;
            assert!(bound.keep());
            assert_eq!(bound.gone, gone, "{megabytes} more");
        }
        let kept = first_kept(log(), 0).expect("readable");
        assert!([0, 3 << 20].contains(&kept), "{kept}: or the file system has no holes");
        let mut full = LogRetention::new("output", log(), 256 << 20);
        full.free = |_| Ok(0);
        assert!(full.keep() && full.gone <= 3 << 20, "{}: what it has stays", full.gone);
    }
}
