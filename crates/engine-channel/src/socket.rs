//! The socket of a run. Owns: making it so that only the run's account can connect, and receiving
//! open files. Does not know what is sent.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use uuid::Uuid;

use crate::SOCKET;

/// The name of the file with the workload of the run.
const GANG: &str = "gang";
/// The name of a socket that is being made.
const NEW: &str = "socket.new";
/// Most open files in one message: the kernel closes what does not fit.
const FILES_MAX: usize = 4;

/// First opening of a channel, or a later one after a restart of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opens {
    /// The run has not started yet. Holds the workload of its gang; `None` without a gang.
    First(Option<Uuid>),
    /// An earlier server has opened it.
    Again,
}

/// A short path to an entry of an open folder: the kernel limits the paths of sockets.
pub(crate) fn short(folder: &File, name: &str) -> PathBuf {
    format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()).into()
}

/// Makes the socket in `folder`, in place of one of an earlier server. `account`: owner of the
/// socket; `None` for every account that can reach the folder. The folder stays the server's, so
/// that nothing in it can be replaced.
pub(crate) fn listen(folder: &Path, account: Option<(u32, u32)>) -> io::Result<UnixListener> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    // Whatever the umask.
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let open = File::open(folder)?;
    let new = short(&open, NEW);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&new)?;
    listener.set_nonblocking(true)?;
    let mode = if account.is_some() { 0o600 } else { 0o666 };
    fs::set_permissions(&new, Permissions::from_mode(mode))?;
    if let Some((uid, gid)) = account {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        chownat(CWD, &new, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    fs::rename(&new, short(&open, SOCKET))?;
    Ok(listener)
}

/// The workload that a run works together with. It is noted in the folder, which no run can write,
/// for the next server.
pub(crate) fn gang(folder: &Path, opens: Opens) -> io::Result<Option<Uuid>> {
    let path = folder.join(GANG);
    match opens {
        Opens::First(None) => Ok(None),
        Opens::First(Some(gang)) => {
            fs::write(path, gang.to_string())?;
            Ok(Some(gang))
        }
        Opens::Again => match fs::read_to_string(path) {
            Ok(text) => text.parse().map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        },
    }
}

/// Receives a part of a message, and the open files that came with it.
pub(crate) fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(into)];
    let received = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((received.bytes, files.flatten().collect()))
}

/// Sends a message with an open file, if there is one.
pub(crate) fn send(
    socket: impl AsFd,
    message: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("no room for a file in a message"));
    }
    Ok(sendmsg(socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?)
}
