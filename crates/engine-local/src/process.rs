//! Processes as `/proc` shows them. Owns: finding a process tree, finding what a vanished
//! supervisor left behind, and signalling without hitting a process that reused an id.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getuid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// Names the run in the environment of each of its processes.
pub(crate) const RUN_VARIABLE: &str = "ELASTANE_RUN";

/// How often leftovers are killed again, 10 ms apart, before they are given up as unkillable.
const LEFTOVER_ROUNDS_MAX: u32 = 300;

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    pid: Pid,
    parent: i32,
    /// Clock ticks after boot; with the id it names a process for good.
    started: u64,
    zombie: bool,
}

/// Sends a signal to every process below this one; `leader` is the session it started.
///
/// Without a `/proc` of this process's own PID namespace only the leader's process group can be
/// reached; the rest falls to this process as it is orphaned, and to the next round.
pub(crate) fn signal_descendants(leader: Pid, signal: Signal) {
    match descendants() {
        Some(entries) => entries.iter().for_each(|entry| send(entry, signal)),
        None => note(leader, kill_process_group(leader, signal)),
    }
}

/// Kills every process of this user that carries one of these run keys, until none is left.
/// Returns how many resisted. Blocks, at most some seconds.
pub(crate) fn kill_marked(keys: &BTreeSet<String>) -> usize {
    if keys.is_empty() {
        return 0;
    }
    let (mut clean_rounds, mut resisting) = (0, 0);
    for _ in 0..LEFTOVER_ROUNDS_MAX {
        let (marked, unclear) = look_for(keys);
        resisting = marked.len();
        marked.iter().for_each(|entry| send(entry, Signal::KILL));
        // One look may miss a process whose parent ended while the table was read.
        clean_rounds = if marked.is_empty() && !unclear { clean_rounds + 1 } else { 0 };
        if clean_rounds == 2 {
            return 0;
        }
        // Dying, or finishing an exec, takes the kernel a moment.
        std::thread::sleep(Duration::from_millis(if clean_rounds == 1 { 1 } else { 10 }));
    }
    resisting
}

/// The processes that carry one of these keys, and whether one could not be told yet.
fn look_for(keys: &BTreeSet<String>) -> (Vec<Entry>, bool) {
    let (mut marked, mut unclear) = (Vec::new(), false);
    for entry in table().into_iter().filter(|entry| !entry.zombie) {
        match is_marked(&entry, keys) {
            Some(true) => marked.push(entry),
            Some(false) => {}
            None => unclear = true,
        }
    }
    (marked, unclear)
}

/// None: the process is in the middle of an exec, where it shows neither arguments nor
/// environment, though it has a program (which sets it apart from the kernel's own threads).
fn is_marked(entry: &Entry, keys: &BTreeSet<String>) -> Option<bool> {
    let folder = format!("/proc/{}", entry.pid.as_raw_nonzero());
    // Another user's, or gone: not ours either way.
    if !fs::metadata(&folder).is_ok_and(|meta| meta.uid() == getuid().as_raw()) {
        return Some(false);
    }
    let Ok(environment) = fs::read(format!("{folder}/environ")) else { return Some(false) };
    if environment.is_empty() {
        let bare = fs::read(format!("{folder}/cmdline")).is_ok_and(|line| line.is_empty());
        let is_program = fs::read_link(format!("{folder}/exe")).is_ok();
        return if bare && is_program { None } else { Some(false) };
    }
    Some(environment.split(|&byte| byte == 0).any(|variable| {
        let key = variable.strip_prefix(RUN_VARIABLE.as_bytes()).and_then(|v| v.strip_prefix(b"="));
        key.and_then(|key| str::from_utf8(key).ok()).is_some_and(|key| keys.contains(key))
    }))
}

/// All living processes below this one. None: `/proc` is hidden, or shows another namespace.
fn descendants() -> Option<Vec<Entry>> {
    let own = getpid().as_raw_nonzero().get();
    let shown = fs::read_link("/proc/self").ok()?;
    if shown.to_str()?.parse() != Ok(own) {
        return None;
    }
    let table = table();
    let mut family = BTreeSet::from([own]);
    // A child may stand before its parent in the table, so look until nobody is added.
    loop {
        let known = family.len();
        family.extend(
            table.iter().filter(|e| family.contains(&e.parent)).map(pid_of).collect::<Vec<_>>(),
        );
        if family.len() == known {
            break;
        }
    }
    family.remove(&own);
    Some(table.into_iter().filter(|e| family.contains(&pid_of(e)) && !e.zombie).collect())
}

fn pid_of(entry: &Entry) -> i32 {
    entry.pid.as_raw_nonzero().get()
}

fn table() -> Vec<Entry> {
    let folder = match fs::read_dir("/proc") {
        Ok(folder) => folder,
        Err(error) => {
            tracing::warn!("cannot see processes, so none can be found: /proc: {error}");
            return Vec::new();
        }
    };
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    folder.flatten().filter_map(pid).filter_map(look_up).collect()
}

fn look_up(pid: i32) -> Option<Entry> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name, in parentheses, may hold anything; fields are counted from its end.
fn parse_stat(pid: i32, text: &str) -> Option<Entry> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of proc_pid_stat(5); the state is field 3.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Entry { pid: Pid::from_raw(pid)?, parent, started, zombie: matches!(state, "Z" | "X") })
}

/// Signals exactly this process: the handle pins the id, the start time proves it is the same.
fn send(entry: &Entry, signal: Signal) {
    let sent = pidfd_open(entry.pid, PidfdFlags::empty()).and_then(|handle| {
        match look_up(pid_of(entry)) {
            Some(now) if now.started == entry.started => pidfd_send_signal(handle, signal),
            _ => Err(Errno::SRCH),
        }
    });
    note(entry.pid, sent);
}

/// A process that is gone is what was wanted; any other refusal is worth a line.
fn note(pid: Pid, sent: rustix::io::Result<()>) {
    if let Err(error) = sent
        && error != Errno::SRCH
    {
        tracing::warn!("cannot signal process {}: {error}", pid.as_raw_nonzero());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_is_no_trap() {
        let text = "7 (a) b) (c) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        let entry = parse_stat(7, text).expect("a line");
        assert_eq!((entry.parent, entry.started, entry.zombie), (3, 4711, false));
        assert!(parse_stat(7, "7 (cut").is_none());
    }

    #[test]
    fn own_children_are_found_and_only_the_marked_ones_killed() {
        let spawn = |key: &str| {
            std::process::Command::new("sleep")
                .arg("60")
                .env(RUN_VARIABLE, key)
                .spawn()
                .expect("sleep")
        };
        let id = std::process::id();
        let (mut marked, mut other) = (spawn(&format!("a-{id}")), spawn(&format!("b-{id}")));
        let found: Vec<u32> = descendants()
            .expect("a /proc")
            .iter()
            .filter_map(|entry| u32::try_from(pid_of(entry)).ok())
            .collect();
        assert!(found.contains(&marked.id()) && found.contains(&other.id()), "{found:?}");
        assert_eq!(kill_marked(&BTreeSet::from([format!("a-{id}")])), 0);
        assert!(!marked.wait().expect("killed").success());
        assert!(other.try_wait().expect("a child").is_none(), "only the marked one");
        other.kill().expect("ours");
        other.wait().expect("reaped");
    }
}
