//! Walking a tree. Owns: that it takes two open files and no recursion, and goes through no link
//! and into no other file system. Does not know about: what the visitor does with the entries.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Stat, fstat, openat, openat2, seek,
    statat, tell,
};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::folder::{FOLDER, Piece, kind_of, read_piece};

/// An entry of a folder.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The folder.
    pub parent: BorrowedFd<'a>,
    /// Its name there.
    pub name: &'a CStr,
    /// Its kind when the folder was read.
    pub kind: FileType,
}

impl Entry<'_> {
    /// Its metadata; for a link those of the link itself.
    ///
    /// # Errors
    /// The entry no longer exists.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(statat(self.parent, self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens it, never through a link.
    ///
    /// # Errors
    /// The entry no longer exists, is a link now, or cannot be opened with these flags.
    pub fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self.parent, self.name, flags, Mode::empty())?)
    }
}

/// The next step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The entries of this entry, if it is a folder.
    Into,
    /// The next entry.
    Past,
    /// End of the walk.
    End,
}

/// Callbacks of a walk.
pub trait Visitor {
    /// Called for any entry.
    ///
    /// # Errors
    /// Errors end the walk.
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next>;

    /// Called for a folder before its entries, some time after it was visited.
    ///
    /// # Errors
    /// Errors end the walk.
    fn enter(&mut self, _folder: Entry<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Called for a folder after its entries.
    ///
    /// # Errors
    /// Errors end the walk.
    fn leave(&mut self, _folder: Entry<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a folder to walk it; its path is relative to `parent`.
///
/// # Errors
/// It is no folder, or a link, or cannot be read.
pub fn open(parent: impl AsFd, path: impl Arg) -> io::Result<OwnedFd> {
    Ok(openat(parent, path, FOLDER, Mode::empty())?)
}

/// Device and inode of a folder.
fn identity(folder: &OwnedFd) -> Result<(u64, u64), Errno> {
    let about = fstat(folder)?;
    Ok((about.st_dev, about.st_ino))
}

/// A folder on the way to the current one.
struct Level {
    identity: (u64, u64),
    /// Read position at which reading continues.
    position: u64,
    /// Folders of the last piece read that the walk has not entered yet.
    ahead: Vec<CString>,
    /// Name of the subfolder that the walk is in.
    name: CString,
}

/// Visits all entries of a folder. An entry that vanishes meanwhile, becomes a link, or is another
/// file system, is not entered.
///
/// # Errors
/// The visitor's; a folder cannot be read, or was moved elsewhere while the walk was in it.
pub fn walk(folder: OwnedFd, visitor: &mut impl Visitor) -> io::Result<()> {
    let (mut at, mut ahead, mut way) = (folder, Vec::<CString>::new(), Vec::<Level>::new());
    loop {
        if let Some(name) = ahead.pop() {
            let Some(inner) = enter(&at, &name)? else { continue };
            let (parent, kind) = (at.as_fd(), FileType::Directory);
            visitor.enter(Entry { parent, name: &name, kind })?;
            let (identity, position) = (identity(&at)?, tell(&at)?);
            way.push(Level { identity, position, ahead: mem::take(&mut ahead), name });
            at = inner;
            continue;
        }
        match look(&at, visitor, &mut ahead)? {
            Look::Read => {}
            Look::Ended => return Ok(()),
            Look::Through => {
                let Some(level) = way.pop() else { return Ok(()) };
                at = openat(&at, c"..", FOLDER, Mode::empty())?;
                if identity(&at)? != level.identity {
                    return Err(io::Error::other("a folder was moved while it was looked at"));
                }
                let (parent, kind) = (at.as_fd(), FileType::Directory);
                visitor.leave(Entry { parent, name: &level.name, kind })?;
                seek(&at, SeekFrom::Start(level.position))?;
                ahead = level.ahead;
            }
        }
    }
}

/// Result of reading a piece of a folder.
enum Look {
    Read,
    /// The folder has no more entries.
    Through,
    /// The visitor ended the walk.
    Ended,
}

fn look(
    folder: &OwnedFd,
    visitor: &mut impl Visitor,
    ahead: &mut Vec<CString>,
) -> io::Result<Look> {
    let mut ended = false;
    let piece = read_piece(folder, |name, listed| {
        let kind = match kind_of(folder, name, listed) {
            Err(Errno::NOENT) => return Ok(ControlFlow::Continue(())),
            kind => kind?,
        };
        match visitor.visit(Entry { parent: folder.as_fd(), name, kind })? {
            Next::Into if kind == FileType::Directory => ahead.push(name.to_owned()),
            Next::End => {
                ended = true;
                return Ok(ControlFlow::Break(()));
            }
            Next::Into | Next::Past => {}
        }
        Ok::<_, io::Error>(ControlFlow::Continue(()))
    })?;
    Ok(match piece {
        _ if ended => Look::Ended,
        Piece::Read => Look::Read,
        Piece::End => Look::Through,
    })
}

/// Opens a subfolder; `None` if no folder of this name is on this file system now.
fn enter(parent: &OwnedFd, name: &CStr) -> Result<Option<OwnedFd>, Errno> {
    let only_here = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let opened = match openat2(parent, name, FOLDER, Mode::empty(), only_here) {
        // Linux before 5.6, or a system call filter without `openat2`.
        Err(Errno::NOSYS | Errno::PERM) => {
            let opened = openat(parent, name, FOLDER, Mode::empty())?;
            match identity(&opened)?.0 == identity(parent)?.0 {
                true => Ok(opened),
                false => Err(Errno::XDEV),
            }
        }
        opened => opened,
    };
    match opened {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(test)]
mod tests;
