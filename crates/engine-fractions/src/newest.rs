//! Ending the newest of some processes. Owns: which that is, and that no other is hit. Does not
//! know about: why.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Ends the newest of these processes, of which `is_one` still has to be true; which one that was.
pub fn end_newest(pids: &[u32], is_one: impl Fn(u32) -> bool) -> Option<u32> {
    let each = pids.iter().filter_map(|&pid| Some((started(pid)?, pid)));
    let (at, pid) = each.max()?;
    let handle = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    let ended = pidfd_open(handle, PidfdFlags::empty()).and_then(|process| {
        // The number may have become another process's before the handle was there.
        let is_it = started(pid) == Some(at) && is_one(pid);
        if is_it { pidfd_send_signal(process, Signal::KILL).map(|()| true) } else { Ok(false) }
    });
    match ended {
        Ok(true) => Some(pid),
        Ok(false) => None,
        Err(error) => {
            tracing::warn!(
                "process {pid}, which holds too much of a GPU, cannot be ended: {error}"
            );
            None
        }
    }
}

/// Start of a process, in ticks since the start of the machine; `None` if the process is gone.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_newest_is_ended_and_nothing_that_is_not_meant() {
        let mut each = [0; 2].map(|_: i32| {
            // In another tick than the one before.
            std::thread::sleep(std::time::Duration::from_millis(30));
            Command::new("sleep").arg("100").spawn().expect("a process")
        });
        let pids = each.each_ref().map(std::process::Child::id);
        assert_eq!(end_newest(&pids, |_| false), None);
        assert_eq!(end_newest(&[], |_| true), None);
        assert_eq!(end_newest(&pids, |_| true), Some(pids[1]));
        let [old, new] = &mut each;
        assert!(!new.wait().expect("its end").success());
        assert!(old.try_wait().expect("its state").is_none(), "it goes on");
        old.kill().expect("ours");
        old.wait().expect("its end");
    }
}
