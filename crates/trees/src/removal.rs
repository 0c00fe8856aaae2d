//! Deleting a tree, as much of it as there is time for. Owns: the order, in which every step leaves
//! a smaller tree that is deleted in the same way. Does not know about: when the next step runs.
//!
//! A tree is flattened while it is deleted: the folders in a folder move up to the top under fresh
//! names. So nothing is deeper than two folders when it is reached, and no state has to be kept.
//!
//! ```text
//! top/a/b/c      a is not empty: what is in it is deleted, its folder b moves up, and a goes
//! top/1/c        b, under a fresh name
//! top/2          c
//! ```

use std::ffi::{CStr, CString};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::folder::{Piece, move_entry, open_up, read_piece, rewind};
use crate::names::FreshNames;

/// Result of a step of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left.
    Done,
    /// Something is left, to be deleted by the next step.
    More,
}

/// Returns a condition that holds for this time from now.
pub fn within(time: Duration) -> impl Fn() -> bool {
    let end = Instant::now() + time;
    move || Instant::now() < end
}

/// Deletes a file, a link, or a folder with everything in it, as long as `goes_on`, which is called
/// before every entry. The next call with the path deletes the rest. An absent path is no error.
///
/// # Errors
/// Something cannot be deleted; everything else is.
pub fn remove(path: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<Progress> {
    if delete(CWD, path, FileType::Unknown)? == Progress::Done {
        return Ok(Progress::Done);
    }
    let top = match open_up(CWD, path) {
        Err(Errno::NOENT) => return Ok(Progress::Done),
        opened => opened?,
    };
    match Emptying::of(top).step(goes_on).map_err(io::Error::from)? {
        Progress::Done => Ok(delete(CWD, path, FileType::Directory)?),
        Progress::More => Ok(Progress::More),
    }
}

/// Progress after deleting an entry: an absent one is done, a folder with entries has more.
fn gone(done: Result<(), Errno>) -> Result<Progress, Errno> {
    match done {
        Ok(()) | Err(Errno::NOENT) => Ok(Progress::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Progress::More),
        Err(error) => Err(error),
    }
}

/// Deletes an entry, unless it is a folder that is not empty.
fn delete(
    folder: impl AsFd + Copy,
    name: impl Arg + Copy,
    kind: FileType,
) -> Result<Progress, Errno> {
    let done = match kind {
        FileType::Directory => Err(Errno::ISDIR),
        _ => unlinkat(folder, name, AtFlags::empty()),
    };
    gone(match done {
        Err(Errno::ISDIR) => unlinkat(folder, name, AtFlags::REMOVEDIR),
        done => done,
    })
}

/// Error of deleting an entry.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Name of the entry, which only its owner may see; empty for the folder around it.
    pub(crate) name: CString,
    pub(crate) errno: Errno,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self { name: CString::default(), errno }
    }
}

impl From<Failure> for io::Error {
    fn from(Failure { name, errno }: Failure) -> Self {
        let error = Self::from(errno);
        match name.is_empty() {
            true => error,
            false => Self::new(error.kind(), format!("{}: {error}", name.to_string_lossy())),
        }
    }
}

/// Result of reading the entries of a folder from the current read position to the last.
#[derive(Debug, Default)]
struct Pass {
    found: bool,
    /// An entry was deleted or moved up.
    advanced: bool,
    /// Error of the first entry that could not be deleted.
    failed: Option<Failure>,
    /// The pass ended before the last entry.
    cut_off: bool,
}

impl Pass {
    /// Calls `act` with every entry and records its result.
    fn over(
        folder: &OwnedFd,
        goes_on: &dyn Fn() -> bool,
        mut act: impl FnMut(&mut Self, &CStr, FileType) -> Result<(), Errno>,
    ) -> Result<Self, Errno> {
        let mut pass = Self::default();
        loop {
            let piece = read_piece(folder, |name, kind| {
                pass.found = true;
                pass.cut_off = !goes_on();
                if !pass.cut_off {
                    match act(&mut pass, name, kind) {
                        Ok(()) => pass.advanced = true,
                        Err(errno) => {
                            let failed = || Failure { name: name.to_owned(), errno };
                            pass.failed.get_or_insert_with(failed);
                        }
                    }
                }
                let all =
                    if pass.cut_off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                Ok::<_, Errno>(all)
            })?;
            if pass.cut_off || matches!(piece, Piece::End) {
                return Ok(pass);
            }
        }
    }

    fn absorb(&mut self, inner: Self) {
        self.advanced |= inner.advanced;
        self.cut_off |= inner.cut_off;
        self.failed = self.failed.take().or(inner.failed);
    }
}

/// The removal of everything in a folder, not of the folder.
#[derive(Debug)]
pub(crate) struct Emptying {
    top: OwnedFd,
    names: FreshNames,
}

impl Emptying {
    pub(crate) fn of(top: OwnedFd) -> Self {
        Self { top, names: FreshNames::default() }
    }

    /// Deletes as long as `goes_on`. The next step continues after the entry at which this one
    /// ended, so a folder that grows does not hold up the others.
    ///
    /// # Errors
    /// Error of the first remaining entry, if only entries that cannot be deleted are left.
    pub(crate) fn step(&mut self, goes_on: &dyn Fn() -> bool) -> Result<Progress, Failure> {
        let mut from_the_first = false;
        loop {
            let pass = self.pass(goes_on)?;
            if pass.cut_off {
                return Ok(Progress::More);
            }
            match pass.failed {
                _ if !from_the_first || pass.advanced => {}
                Some(failure) => return Err(failure),
                None => return Ok(Progress::Done),
            }
            rewind(&self.top)?;
            from_the_first = true;
        }
    }

    fn pass(&mut self, goes_on: &dyn Fn() -> bool) -> Result<Pass, Errno> {
        let (top, names) = (&self.top, &mut self.names);
        Pass::over(top, goes_on, |pass, name, kind| {
            if delete(top, name, kind)? == Progress::Done {
                return Ok(());
            }
            // A directory that fails with "not empty" and not with "busy" is no mount point.
            let folder = match open_up(top, name) {
                Err(Errno::NOENT) => return Ok(()),
                opened => opened?,
            };
            let mut advances = true;
            while advances && !pass.cut_off {
                // Some file systems omit entries from a list while others are deleted.
                let inner = move_up(&folder, top, names, goes_on)?;
                advances = inner.advanced;
                pass.absorb(inner);
                rewind(&folder)?;
            }
            match pass.cut_off {
                true => Ok(()),
                false => unlinkat(top, name, AtFlags::REMOVEDIR),
            }
        })
    }
}

/// Deletes the entries of a folder except for folders, which move to the top.
fn move_up(
    folder: &OwnedFd,
    top: &OwnedFd,
    names: &mut FreshNames,
    goes_on: &dyn Fn() -> bool,
) -> Result<Pass, Errno> {
    Pass::over(folder, goes_on, |_, name, kind| match delete(folder, name, kind)? {
        Progress::Done => Ok(()),
        Progress::More => {
            move_entry((folder.as_fd(), name), (top.as_fd(), names.next().as_c_str()))
        }
    })
}

#[cfg(test)]
mod tests;
