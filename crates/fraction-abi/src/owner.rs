//! Process that holds a slot. Owns: the identity of a process, and whether it still exists. A
//! process id alone is not enough, since the kernel reuses it. Does not know about: what the
//! process holds.

use core::ffi::CStr;

use crate::sys::{self, Access};

/// A process: its id, when it started, the namespace that counts its id, and the program in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The process id, never 0.
    pub pid: u32,
    /// Clock ticks between the start of the machine and that of the process; 0 if unknown, as
    /// where `/proc` is missing or of another namespace.
    pub start: u64,
    /// The inode of its PID namespace; 0 if unknown.
    pub namespace: u64,
    /// The address of its stack, which `exec` replaces together with all that the program held; 0
    /// if unknown.
    pub image: u64,
}

/// State of an owner, as far as it can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs, or its state cannot be known from here.
    Alive,
    /// It has ended: its threads are gone, although its parent may not have collected it; or it
    /// runs another program, since an `exec`.
    Dead,
}

const NAMESPACE: &CStr = c"/proc/self/ns/pid";

impl Owner {
    /// The process that calls.
    pub fn current() -> Self {
        let (pid, namespace) = (sys::process_id(), sys::inode(NAMESPACE).unwrap_or(0));
        // In a new namespace that still has the /proc of its parent, ids are of other processes.
        let status = status_at(c"/proc/self/stat").filter(|status| status.pid == u64::from(pid));
        let (start, image) = status.map_or((0, 0), |status| (status.start, status.image));
        Self { pid, start, namespace, image }
    }

    /// State of this process, as seen from another process.
    pub fn life(&self, from: &Self) -> Life {
        if self.namespace != from.namespace && self.namespace != 0 && from.namespace != 0 {
            return Life::Alive;
        }
        if !sys::process_exists(self.pid) {
            return Life::Dead;
        }
        let mut path = [0_u8; 32];
        let known = from.start != 0;
        let status = stat_path(self.pid, &mut path).filter(|_| known).and_then(status_at);
        let Some(status) = status else {
            // It ended since, or there is no /proc of this namespace.
            return if sys::process_exists(self.pid) { Life::Alive } else { Life::Dead };
        };
        let differs = |mine: u64, now: u64| mine != 0 && now != 0 && mine != now;
        let other = differs(self.start, status.start) || differs(self.image, status.image);
        if other || status.ended { Life::Dead } else { Life::Alive }
    }
}

struct Status {
    pid: u64,
    start: u64,
    image: u64,
    ended: bool,
}

fn status_at(path: &CStr) -> Option<Status> {
    let file = sys::open(path, Access::Read).ok()?;
    let mut text = [0_u8; 1024];
    let length = sys::read(&file, &mut text).ok()?;
    parse(text.get(..length)?)
}

fn stat_path(pid: u32, into: &mut [u8; 32]) -> Option<&CStr> {
    let mut digits = [0_u8; 10];
    let mut left = pid;
    let mut first = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(left % 10).ok()?;
        left /= 10;
        first = at;
        if left == 0 {
            break;
        }
    }
    let parts = [b"/proc/".as_slice(), digits.get(first..)?, b"/stat\0".as_slice()];
    let bytes = parts.into_iter().flatten();
    for (slot, byte) in into.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    CStr::from_bytes_until_nul(into).ok()
}

/// Fields are counted behind the name, which may contain anything.
fn parse(text: &[u8]) -> Option<Status> {
    let pid = number(text.split(|byte| *byte == b' ').next()?)?;
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(name_end + 2..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    let threads = number(fields.nth(16)?)?;
    let start = number(fields.nth(1)?)?;
    // 0 if this process may not know; more digits than fit are as good as none.
    let image = fields.nth(5).and_then(number).unwrap_or(0);
    // The main thread may end before the others: then it is a zombie in a living process.
    let ended = matches!(state, b'Z' | b'X' | b'x') && threads <= 1;
    Some(Status { pid, start, image, ended })
}

fn number(digits: &[u8]) -> Option<u64> {
    let add = |sum: u64, digit: &u8| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    };
    digits.iter().try_fold(0, add)
}
