//! Space on a file system that the server and runs share. Owns: how much of it is free, and how much
//! is kept for the server. Does not know about: what is done when less is free.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use spec::DiskRoom;
use units::Instant;

use crate::capabilities::Outage;

/// Divisor of a file system's size for its reserve, within these bounds.
const KEPT_PART: u64 = 50;
const KEPT_BYTES: (u64, u64) = (16 << 20, 512 << 20);
const KEPT_FILES: (u64, u64) = (500, 10_000);

/// A folder of the state whose file system runs fill as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedDisk {
    /// The folder.
    pub folder: PathBuf,
    /// `true` if the run that grows most is stopped before the part for the server is used.
    pub stops_runs: bool,
}

/// Space on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Free bytes and files.
    pub free: DiskRoom,
    /// Bytes and files that are kept for the server.
    pub kept: DiskRoom,
}

impl DiskSpace {
    /// Space on the file system of a folder.
    ///
    /// # Errors
    /// The folder is missing, or the file system does not answer.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let found = statvfs(folder)?;
        // A sixth of a tiny one.
        let kept = |all: u64, (least, most)| (all / KEPT_PART).clamp(least, most).min(all / 6);
        // Some file systems have no number of files.
        let files = if found.f_files == 0 {
            (u64::MAX, 0)
        } else {
            (found.f_favail, kept(found.f_files, KEPT_FILES))
        };
        Ok(Self {
            free: DiskRoom { bytes: found.f_bavail.saturating_mul(found.f_frsize), files: files.0 },
            kept: DiskRoom {
                bytes: kept(found.f_blocks.saturating_mul(found.f_frsize), KEPT_BYTES),
                files: files.1,
            },
        })
    }

    /// `true` if less is free than this number of quarters of the kept part.
    #[must_use]
    pub fn is_below(self, quarters: u64) -> bool {
        let part = |all: u64| all / 4 * quarters;
        let most = DiskRoom { bytes: part(self.kept.bytes), files: part(self.kept.files) };
        self.free.is_less_than(most)
    }

    /// Outage of the disk of a folder from now on, given the outage so far. It begins when less is
    /// free than is kept, and ends when a quarter more is.
    #[must_use]
    pub fn outage(
        self,
        folder: &Path,
        stops_runs: bool,
        before: Option<Outage>,
        now: Instant,
    ) -> Option<Outage> {
        match before {
            Some(_) if self.is_below(5) => before,
            None if self.is_below(4) => Some(Outage::DiskFull {
                folder: folder.display().to_string(),
                free: self.free,
                kept: self.kept,
                stops_runs,
                since: now,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_below_what_is_kept_and_ends_a_quarter_above_it() {
        let kept = DiskRoom { bytes: 400, files: 40 };
        let space = |bytes, files| DiskSpace { free: DiskRoom { bytes, files }, kept };
        let next = |space: DiskSpace, before: Option<&Outage>, at| {
            space.outage(Path::new("/state"), true, before.cloned(), Instant(at))
        };
        assert_eq!(next(space(400, 40), None, 1), None);
        for full in [space(399, 4000), space(40_000, 39)] {
            let begun = next(full, None, 2).expect("it is full");
            assert_eq!(begun.since(), Instant(2));
            assert_eq!(next(space(499, 4000), Some(&begun), 3).as_ref(), Some(&begun));
            assert_eq!(next(space(500, 50), Some(&begun), 4), None);
        }
    }
}
