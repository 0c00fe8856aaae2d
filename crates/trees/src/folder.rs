//! Folders by handle. Owns: opening and moving a folder although its owner removed the permissions.
//! Does not know about: the entries of a folder.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    FileType, Mode, OFlags, RawDir, SeekFrom, chmod, fstat, openat, renameat, seek, statat,
};
use rustix::io::Errno;
use rustix::path::Arg;

/// Bytes of names that are read at once: some hundred entries.
const BUFFER_BYTES: usize = 8 << 10;
/// Permissions that the owner needs to read and change a folder.
const OWNERS_RIGHTS: u32 = 0o700;

/// Flags for opening a folder: never through a link.
pub(crate) const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// Opens a folder, after giving its owner all rights on it where the owner lacks one.
pub(crate) fn open_up(parent: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let pinned = openat(parent, name, FOLDER | OFlags::PATH, Mode::empty())?;
    let mode = fstat(&pinned)?.st_mode;
    if mode & OWNERS_RIGHTS != OWNERS_RIGHTS {
        // Through the handle: a path may lead elsewhere by now. This fails for another user's
        // folder, and then opening returns the cause.
        let handle = format!("/proc/self/fd/{}", pinned.as_raw_fd());
        let _refused = chmod(handle, Mode::from_raw_mode(mode | OWNERS_RIGHTS));
    }
    openat(&pinned, c".", FOLDER, Mode::empty())
}

/// Moves an entry, also a folder without permissions for its owner: a move to another parent writes
/// to it.
pub(crate) fn move_entry(
    (from, name): (BorrowedFd<'_>, impl Arg + Copy),
    (to, new): (BorrowedFd<'_>, impl Arg + Copy),
) -> Result<(), Errno> {
    match renameat(from, name, to, new) {
        Err(Errno::ACCESS) => {
            drop(open_up(from, name)?);
            renameat(from, name, to, new)
        }
        done => done,
    }
}

/// State after reading a piece of the entries of a folder.
pub(crate) enum Piece {
    /// There may be more.
    Read,
    /// There are no more.
    End,
}

/// Calls `each` with the name and kind of the next entries of a folder, from the current read
/// position, until it breaks: then reading continues after that entry.
pub(crate) fn read_piece<E: From<Errno>>(
    folder: impl AsFd,
    mut each: impl FnMut(&CStr, FileType) -> Result<ControlFlow<()>, E>,
) -> Result<Piece, E> {
    let (folder, mut buffer) = (folder.as_fd(), [MaybeUninit::uninit(); BUFFER_BYTES]);
    let mut entries = RawDir::new(folder, &mut buffer);
    let mut piece = Piece::End;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        piece = Piece::Read;
        let name = entry.file_name();
        let is_itself = matches!(name.to_bytes(), b"." | b"..");
        if !is_itself && each(name, entry.file_type())?.is_break() {
            seek(folder, SeekFrom::Start(entry.next_entry_cookie()))?;
            break;
        }
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(piece)
}

/// Resets the read position: the next piece is the first one.
pub(crate) fn rewind(folder: impl AsFd) -> Result<(), Errno> {
    seek(folder, SeekFrom::Start(0)).map(drop)
}

/// Kind of an entry, also where the file system does not return it in the list.
pub(crate) fn kind_of(folder: impl AsFd, name: &CStr, listed: FileType) -> Result<FileType, Errno> {
    if listed != FileType::Unknown {
        return Ok(listed);
    }
    let about = statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(about.st_mode))
}
