//! The processes below this one, as subreaper of all of them. Owns: taking in who has died, and
//! ending the rest: SIGTERM, a grace, SIGKILL again and again. Refuses to know: why they are to end.

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
use crate::record::ExitFile;

/// Between two rounds of SIGKILL, first and most: a process may be forking, or stuck in a driver.
const KILL_ROUND_MS: (u64, u64) = (5, 1000);

/// How far they have been asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Not at all.
    Unasked,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked(Instant),
    /// SIGKILL is sent again and again, this many milliseconds apart.
    Forced(u64),
}

/// A main process and all that came of it.
#[derive(Debug)]
pub(crate) struct Brood {
    main: Pid,
    exit: Option<ExitFile>,
    end: End,
    /// The control group that holds all of them and nobody else.
    group: Option<Group>,
}

impl Brood {
    pub(crate) fn of(main: Pid, group: Option<Group>) -> Self {
        Self { main, exit: None, end: End::Unasked, group }
    }

    /// How the main process ended, if it has.
    pub(crate) fn exit(&self) -> Option<&ExitFile> {
        self.exit.as_ref()
    }

    /// How the main process ended. To be asked when all are gone.
    pub(crate) fn into_exit(self) -> ExitFile {
        self.exit.unwrap_or(ExitFile::Lost)
    }

    /// Takes in whoever has died, and names them. False: no process is left.
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
                    crate::supervise::complain(&format!("failed to reap: {error}"));
                    return true;
                }
            }
        }
    }

    /// SIGTERM to all, once; asked again, only an earlier end counts.
    pub(crate) fn ask(&mut self, grace_ms: u64) {
        let now = Instant::now();
        // A grace beyond the clock's range is as good as a year.
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

    /// SIGKILL to all once the grace is over. Returns how long nothing is due.
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
        (None, None) => ExitFile::Lost, // only stops and continues, which are not asked for
    }
}

/// Signals turned into bytes on a socket, so that one wait is for all of them and for other things.
#[derive(Debug)]
pub(crate) struct Signals {
    wake: UnixStream,
    sender: UnixStream,
}

/// Whether a signal has come since it was asked last.
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

    /// These are taken note of, and end a wait.
    pub(crate) fn flag(&self, signals: &[i32]) -> io::Result<Flag> {
        let flag = Arc::new(AtomicBool::new(false));
        for &signal in signals {
            // Before the wake-up: handlers run in the order of their registration.
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        self.wake_by(signals)?;
        Ok(Flag(flag))
    }

    /// These only end a wait.
    pub(crate) fn wake_by(&self, signals: &[i32]) -> io::Result<()> {
        for &signal in signals {
            signal_hook::low_level::pipe::register(signal, self.sender.try_clone()?)?;
        }
        Ok(())
    }

    /// Waits for the next signal or one of these, at most so long. Returns what is with each of them.
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
        // How many signals came does not matter, only that one did.
        match self.wake.read(&mut [0; 64]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(seen),
        }
    }
}
