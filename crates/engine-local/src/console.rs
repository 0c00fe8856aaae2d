//! The input and output of the main process, as its supervisor holds them. Owns: creating them,
//! and copying terminal output into the run's log. Does not know who attaches.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::isolation::Account;
use crate::ownership;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Initial size of a terminal, as that of the first ones.
const ROWS_COLUMNS: (u16, u16) = (24, 80);

/// The supervisor's end.
#[derive(Debug)]
pub(crate) enum Console {
    /// Nothing: no input, and the output goes directly into the log.
    None,
    /// The write end of the input. It stays open until an attached client closes the input.
    Input(PipeWriter),
    /// The master end of the terminal, and its log.
    Terminal { master: File, log: File },
}

impl Console {
    /// The console, and what the process gets as input, output and errors.
    pub(crate) fn open(
        stdin: bool,
        tty: bool,
        log: File,
        account: Option<&Account>,
    ) -> io::Result<(Self, [Stdio; 3])> {
        if tty {
            let (master, slave) = terminal(ROWS_COLUMNS, account)?;
            let ends = [slave.try_clone()?, slave.try_clone()?, slave].map(Stdio::from);
            return Ok((Self::Terminal { master: master.into(), log }, ends));
        }
        let (out, errors) = (log.try_clone()?.into(), log.into());
        if stdin {
            let (reader, writer) = pipe(account)?;
            return Ok((Self::Input(writer), [reader.into(), out, errors]));
        }
        Ok((Self::None, [Stdio::null(), out, errors]))
    }

    /// Readable when there is something to [`carry`](Self::carry).
    pub(crate) fn awaited(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Terminal { master, .. } => Some(master.as_fd()),
            Self::None | Self::Input(_) => None,
        }
    }

    /// Copies the available terminal output into the log. False: there is none now, or the
    /// terminal has ended.
    pub(crate) fn carry(&mut self) -> bool {
        let Self::Terminal { master, log } = self else { return false };
        if !has_something(master.as_fd()) {
            return false;
        }
        let mut piece = [0; PIECE_BYTES];
        match master.read(&mut piece) {
            // The disk may be full. The run must not block on it.
            Ok(count @ 1..) => drop(log.write_all(&piece[..count])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EIO means that no process has the other end open.
            Ok(0) | Err(_) => {
                *self = Self::None;
                return false;
            }
        }
        true
    }

    /// The input of an attached client.
    pub(crate) fn handle(&self) -> io::Result<Stdio> {
        Ok(match self {
            Self::None => Stdio::null(),
            Self::Input(writer) => writer.try_clone()?.into(),
            Self::Terminal { master, .. } => master.try_clone()?.into(),
        })
    }

    /// Closes the input. The process sees its end once all attached clients have closed it, too.
    pub(crate) fn end_input(&mut self) {
        if let Self::Input(_) = self {
            *self = Self::None;
        }
    }
}

fn has_something(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

/// A pipe owned by the account of the process, which otherwise could not open `/dev/stdin`,
/// `/dev/stdout` or `/dev/stderr`.
pub(crate) fn pipe(account: Option<&Account>) -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    if let Some(account) = account {
        // Both are ends of one file.
        ownership::give_handle(&reader, account)?;
    }
    Ok((reader, writer))
}

/// A terminal of this many rows and columns: the master end, and the process's end, owned by its
/// account.
pub(crate) fn terminal(
    size: (u16, u16),
    account: Option<&Account>,
) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    resize(&master, size)?;
    if let Some(account) = account {
        ownership::give_handle(&slave, account)?;
    }
    Ok((master, slave))
}

/// Resizes a terminal. The kernel signals its processes.
pub(crate) fn resize(
    terminal: impl std::os::fd::AsFd,
    (rows, columns): (u16, u16),
) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
