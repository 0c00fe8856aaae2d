//! Time limits of checks. Owns: waiting for a check, and ending the programs of one that hangs.
//! Does not know about: the checks.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper};

/// A program that was ended is gone in this time, unless the kernel waits for the driver.
const GONE_IN: Duration = Duration::from_secs(20);

/// A check that did not end.
pub(crate) struct Hung {
    /// Programs that were ended for it, for a message.
    pub(crate) ended: String,
    /// True if it continues all the same: a driver that the kernel waits for lets no program end.
    pub(crate) goes_on: bool,
}

/// Makes a program that leaves its parent, as a daemon does, a child of this process, so that this
/// process finds it.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn adopt_daemons() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Result of a check; beyond `patience` its programs are ended. They are all that this process has
/// started.
pub(crate) fn within<T: Send + 'static>(
    patience: Duration,
    check: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Hung> {
    until(|answered| answered.recv_timeout(patience), check)
}

/// [`within`] with another way to wait for the result.
pub(crate) fn until<T: Send + 'static>(
    patience: impl FnOnce(&Receiver<T>) -> Result<T, RecvTimeoutError>,
    check: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Hung> {
    let (answer, answered) = mpsc::channel();
    // Left running if it cannot be ended: nothing waits for it.
    std::thread::spawn(move || answer.send(check()));
    // A check that panics hangs up, which is no time limit: its words are on the screen.
    match patience(&answered) {
        Ok(said) => return Ok(said),
        Err(RecvTimeoutError::Disconnected) => {
            return Err(Hung { ended: "nothing, as it panicked".to_owned(), goes_on: false });
        }
        Err(RecvTimeoutError::Timeout) => {}
    }
    let programs = descendants(std::process::id());
    for pid in programs.keys() {
        // One that has ended meanwhile is none.
        let _ended = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    let goes_on = matches!(answered.recv_timeout(GONE_IN), Err(RecvTimeoutError::Timeout));
    let names = programs.iter().map(|(pid, name)| format!("{name} ({pid})"));
    let names = names.collect::<Vec<_>>().join(", ");
    let ended = if names.is_empty() { "no program".to_owned() } else { names };
    Err(Hung { ended, goes_on })
}

/// The programs that a process and those below it started, by id.
fn descendants(root: u32) -> BTreeMap<u32, String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let each = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in parentheses may contain anything.
        let (name, rest) = text.rsplit_once(')')?;
        let name = name.split_once('(')?.1.to_owned();
        let mut rest = rest.split_ascii_whitespace();
        // A daemon that has ended is not waited for.
        let runs = rest.next()? != "Z";
        let parent: u32 = rest.next()?.parse().ok()?;
        runs.then_some((pid, (parent, name)))
    });
    let all: BTreeMap<u32, (u32, String)> = each.collect();
    let mut found = BTreeMap::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (pid, (_, name)) in all.iter().filter(|(_, (of, _))| *of == parent) {
            if found.insert(*pid, name.clone()).is_none() {
                parents.push(*pid);
            }
        }
    }
    found
}
