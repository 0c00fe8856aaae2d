//! Who holds a slot. Owns: what identifies a process, and whether it still exists. A process id
//! alone is given out again. Does not know about: what the process holds.

use core::ffi::CStr;

use crate::sys::{self, Access};

/// A process: its id, when it started, and the namespace that counts its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The process id, never 0.
    pub pid: u32,
    /// Clock ticks between the start of the machine and that of the process; 0 if unknown.
    pub start: u64,
    /// The inode of its PID namespace; 0 if unknown.
    pub namespace: u64,
}

/// What is known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs, or that cannot be known from here.
    Alive,
    /// It has ended: its threads are gone, although its parent may not have collected it.
    Dead,
}

const NAMESPACE: &CStr = c"/proc/self/ns/pid";

impl Owner {
    /// The process that calls.
    pub fn current() -> Self {
        let pid = sys::process_id();
        let start = status(pid).map_or(0, |status| status.start);
        Self { pid, start, namespace: sys::inode(NAMESPACE).unwrap_or(0) }
    }

    /// Whether it still exists, as seen from a process in `namespace`.
    pub fn life(&self, namespace: u64) -> Life {
        if self.namespace != namespace && self.namespace != 0 && namespace != 0 {
            return Life::Alive;
        }
        if !sys::process_exists(self.pid) {
            return Life::Dead;
        }
        let Some(status) = status(self.pid) else {
            // It ended since, or there is no /proc here.
            return if sys::process_exists(self.pid) { Life::Alive } else { Life::Dead };
        };
        let other = self.start != 0 && status.start != self.start;
        if other || status.ended { Life::Dead } else { Life::Alive }
    }
}

struct Status {
    start: u64,
    ended: bool,
}

fn status(pid: u32) -> Option<Status> {
    let mut path = [0_u8; 32];
    let file = sys::open(stat_path(pid, &mut path)?, Access::Read).ok()?;
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
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(name_end + 2..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    let threads = number(fields.nth(16)?)?;
    let start = number(fields.nth(1)?)?;
    // The main thread may end before the others: then it is a zombie in a living process.
    let ended = matches!(state, b'Z' | b'X' | b'x') && threads <= 1;
    Some(Status { start, ended })
}

fn number(digits: &[u8]) -> Option<u64> {
    let add = |sum: u64, digit: &u8| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    };
    digits.iter().try_fold(0, add)
}
