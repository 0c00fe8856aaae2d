//! The bounds of what is kept of a run on disk. Owns: giving back the space of what is oldest, and where the rest
//! begins. Refuses to know: who reads.
//!
//! The output stays one file in which every byte keeps its number, so whoever prints, follows or comes
//! back goes on where they were; what is given back becomes a hole at its beginning.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use crate::supervise::complain;

/// How often it is looked how much there is.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// What is given back is a multiple of this: no usual file system has larger blocks.
const PIECE_BYTES: u64 = 64 << 10;

/// Keeps a file to its bound.
#[derive(Debug)]
pub(crate) struct Bound {
    /// What it is called in complaints.
    name: &'static str,
    log: File,
    bytes_max: u64,
    /// So much of it is given back.
    gone: u64,
    /// Whether it was complained that this failed.
    complained: bool,
}

impl Bound {
    /// `log` can be written.
    pub(crate) fn new(name: &'static str, log: File, bytes_max: u64) -> Self {
        Self { name, log, bytes_max, gone: 0, complained: false }
    }

    /// Gives back what is too much. False: the file system cannot.
    pub(crate) fn keep(&mut self) -> bool {
        let given = self.log.metadata().and_then(|log| {
            // Who empties its own output begins anew.
            self.gone = self.gone.min(log.len());
            let until = log.len().saturating_sub(self.bytes_max) / PIECE_BYTES * PIECE_BYTES;
            if until > self.gone {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&self.log, hole, self.gone, until - self.gone)?;
                self.gone = until;
            }
            Ok(())
        });
        let Err(error) = given else { return true };
        let name = self.name;
        let never = [Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
        if error.raw_os_error().is_some_and(|code| never.contains(&code)) {
            complain(&format!("{name} is bounded by the disk only: {error}"));
            return false;
        }
        // Another time it may go well.
        if !std::mem::replace(&mut self.complained, true) {
            complain(&format!("{name} cannot be kept to its bound: {error}; trying again"));
        }
        true
    }
}

/// Where what is kept begins, from here on. Moves the file's own position.
pub(crate) fn first_kept(log: impl AsFd, from: u64) -> io::Result<u64> {
    match seek(log, SeekFrom::Data(from)) {
        Ok(first) => Ok(first),
        // Nothing is there yet, or the file system knows no holes.
        Err(Errno::NXIO | Errno::INVAL) => Ok(from),
        Err(error) => Err(error.into()),
    }
}

/// Reads what is kept, from here on: where that began, and how many bytes it is; none at the end.
pub(crate) fn read_kept(log: &File, from: u64, piece: &mut [u8]) -> io::Result<(u64, usize)> {
    let mut from = first_kept(log, from)?;
    loop {
        let count = log.read_at(piece, from)?;
        // It may have been given back while it was read.
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
        // One that can only be read cannot give anything back.
        let mut bound = Bound::new("output", File::open(&path).expect("there"), 64 << 10);
        assert!(!bound.complained);
        assert!(bound.keep() && bound.complained && bound.keep());
        bound.log = File::options().write(true).open(&path).expect("there");
        assert!(bound.keep());
        assert_eq!(bound.gone, 2 * PIECE_BYTES);
    }
}
