//! The processes below this one, as their subreaper. Owns: reaping, and ending the tree: SIGTERM,
//! a grace period, then repeated SIGKILL. Does not know why it is ended.

use std::io;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};

use crate::cgroup::Group;
use crate::process::signal_descendants;
use crate::record::{ExitFile, log_line};

/// Pause between two rounds of SIGKILL, first and most: a process may be forking, or stuck in a
/// driver.
const KILL_ROUND_MS: (u64, u64) = (5, 1000);

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Not started.
    Unasked,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked(Instant),
    /// SIGKILL is sent repeatedly, this many milliseconds apart.
    Forced(u64),
}

/// A main process and its descendants.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    main: Pid,
    exit: Option<ExitFile>,
    end: End,
    /// The control group that holds exactly these processes.
    group: Option<Group>,
}

impl ProcessTree {
    pub(crate) fn of(main: Pid, group: Option<Group>) -> Self {
        Self { main, exit: None, end: End::Unasked, group }
    }

    /// How the main process ended, if it has.
    pub(crate) fn exit(&self) -> Option<&ExitFile> {
        self.exit.as_ref()
    }

    /// How the main process ended. Call it when no process is left.
    pub(crate) fn into_exit(self) -> ExitFile {
        self.exit.unwrap_or(ExitFile::Lost)
    }

    /// Reaps ended processes and reports their ids. False: no process is left.
    pub(crate) fn reap(&mut self, mut gone: impl FnMut(Pid)) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.main {
                        self.exit = Some(exit_of(status));
                    }
                    gone(pid);
                }
                Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(Errno::CHILD) => return false,
                Err(error) => {
                    log_line(&format!("failed to reap: {error}"));
                    return true;
                }
            }
        }
    }

    /// SIGTERM to all, once; a repeated call can only shorten the grace period.
    pub(crate) fn ask(&mut self, grace_ms: u64) {
        let now = Instant::now();
        // A grace period beyond the clock's range becomes a year.
        let until = now
            .checked_add(Duration::from_millis(grace_ms))
            .unwrap_or(now + Duration::from_secs(365 * 24 * 3600));
        self.end = match self.end {
            End::Unasked => {
                signal_descendants(self.main, Signal::TERM);
                End::Asked(until)
            }
            End::Asked(before) => End::Asked(before.min(until)),
            forced @ End::Forced(_) => forced,
        };
    }

    /// SIGKILL to all after the grace period. Returns the time until it is due.
    pub(crate) fn force_when_due(&mut self) -> Option<Duration> {
        let pause_ms = match self.end {
            End::Unasked => return None,
            End::Asked(until) => match until.checked_duration_since(Instant::now()) {
                Some(rest) if !rest.is_zero() => return Some(rest),
                _ => KILL_ROUND_MS.0,
            },
            End::Forced(pause_ms) => pause_ms,
        };
        if let Some(group) = &self.group {
            group.kill();
        }
        signal_descendants(self.main, Signal::KILL);
        self.end = End::Forced((pause_ms * 2).min(KILL_ROUND_MS.1));
        Some(Duration::from_millis(pause_ms))
    }
}

fn exit_of(status: WaitStatus) -> ExitFile {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitFile::Code(code),
        (None, Some(signal)) => ExitFile::Signal(signal),
        (None, None) => ExitFile::Lost, // stopped or continued: not requested
    }
}

/// Signals as bytes on a socket, so that one wait covers them and other descriptors.
#[derive(Debug)]
pub(crate) struct Signals {
    wake: UnixStream,
    sender: UnixStream,
}

/// Set by a signal; [`Flag::take`] reads and clears it.
#[derive(Debug)]
pub(crate) struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        Ok(Self { wake, sender })
    }

    /// Sets a flag for these signals and ends a wait.
    pub(crate) fn flag(&self, signals: &[i32]) -> io::Result<Flag> {
        let flag = Arc::new(AtomicBool::new(false));
        for &signal in signals {
            // Before the wake-up: handlers run in the order of their registration.
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        self.wake_by(signals)?;
        Ok(Flag(flag))
    }

    /// Only ends a wait for these signals.
    pub(crate) fn wake_by(&self, signals: &[i32]) -> io::Result<()> {
        for &signal in signals {
            signal_hook::low_level::pipe::register(signal, self.sender.try_clone()?)?;
        }
        Ok(())
    }

    /// Waits for the next signal or descriptor, at most this long. Returns the events of each.
    pub(crate) fn wait<const N: usize>(
        &mut self,
        at_most: Option<Duration>,
        others: [Option<(BorrowedFd<'_>, PollFlags)>; N],
    ) -> io::Result<[PollFlags; N]> {
        let mut fds = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
        let of = |(fd, flags)| PollFd::from_borrowed_fd(fd, flags);
        fds.extend(others.into_iter().flatten().map(of));
        let pause = at_most.map(|pause| Timespec {
            tv_sec: i64::try_from(pause.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(pause.subsec_nanos()),
        });
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut seen = fds.iter().skip(1).map(PollFd::revents);
        let seen = others.map(|one| one.and_then(|_| seen.next()).unwrap_or(PollFlags::empty()));
        // How many signals arrived does not matter.
        match self.wake.read(&mut [0; 64]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(seen),
        }
    }
}
