//! What the main process of a run reads from and prints to, as its supervisor holds it. Owns:
//! making it, and carrying what a terminal shows into the run's log. Refuses to know: who attaches.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::isolation::Account;
use crate::ownership;

/// Bytes carried at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Size of a terminal before anybody has looked at it, as that of the first ones.
const ROWS_COLUMNS: (u16, u16) = (24, 80);

/// What the supervisor keeps.
#[derive(Debug)]
pub(crate) enum Console {
    /// Nothing: no input, and the output goes into the log by itself.
    None,
    /// The other end of the input. It stays open until somebody who attached says that it ends.
    Input(PipeWriter),
    /// The other end of the terminal, and where it is written down.
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

    /// What tells that there is something to [`carry`](Self::carry).
    pub(crate) fn awaited(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Terminal { master, .. } => Some(master.as_fd()),
            Self::None | Self::Input(_) => None,
        }
    }

    /// Carries what the terminal shows at the moment into the log. False: there is nothing now; or
    /// the terminal has ended, and is not awaited any more.
    pub(crate) fn carry(&mut self) -> bool {
        let Self::Terminal { master, log } = self else { return false };
        if !has_something(master.as_fd()) {
            return false;
        }
        let mut piece = [0; PIECE_BYTES];
        match master.read(&mut piece) {
            // The disk may be full. The run must not stand still for it.
            Ok(count @ 1..) => drop(log.write_all(&piece[..count])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EIO is how a terminal says that nobody is at its other side any more.
            Ok(0) | Err(_) => {
                *self = Self::None;
                return false;
            }
        }
        true
    }

    /// What whoever attaches types into.
    pub(crate) fn handle(&self) -> io::Result<Stdio> {
        Ok(match self {
            Self::None => Stdio::null(),
            Self::Input(writer) => writer.try_clone()?.into(),
            Self::Terminal { master, .. } => master.try_clone()?.into(),
        })
    }

    /// Nobody types any more. The process finds its end once all who attached have let go.
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

/// A pipe that belongs to the account of the process, which could not open `/dev/stdin`,
/// `/dev/stdout` or `/dev/stderr` otherwise.
pub(crate) fn pipe(account: Option<&Account>) -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    if let Some(account) = account {
        // Both are ends of one file.
        ownership::give_handle(&reader, account)?;
    }
    Ok((reader, writer))
}

/// A terminal of so many rows and columns: the end that a person is at, and the process's, which
/// belongs to its account.
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

/// Gives a terminal another size. Who runs in it is told by the kernel.
pub(crate) fn resize(
    terminal: impl std::os::fd::AsFd,
    (rows, columns): (u16, u16),
) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
