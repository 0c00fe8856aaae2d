//! Processes as `/proc` shows them. Owns: finding a process tree, finding processes of a vanished
//! supervisor, and signalling without hitting a process that reused an id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use engine::RunKey;
use engine::environment::RUN_VARIABLE;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getuid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// How the server asks its own program to supervise: `<program> supervise <run dir>`.
pub(crate) const SUPERVISE: &str = "supervise";
/// How often orphans are killed again, 10 ms apart, before they count as unkillable.
const KILL_ROUNDS_MAX: u32 = 300;

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// The process group in the foreground of its terminal; -1 without a terminal.
    foreground: i32,
    /// Clock ticks after boot; identifies a process together with the id.
    started: u64,
    zombie: bool,
    /// CPU time in clock ticks, its own and that of children it has waited for.
    cpu_ticks: u64,
}

/// True if a process is another's child, or a child of one.
pub(crate) fn is_below(root: Pid, pid: i32) -> bool {
    let root = root.as_raw_nonzero().get();
    let mut at = look_up(pid).map(|entry| entry.parent);
    // As deep as processes go: their ids are bounded.
    while let Some(parent) = at.filter(|parent| *parent > 1 && *parent != root) {
        at = look_up(parent).map(|entry| entry.parent);
    }
    at == Some(root)
}

/// The processes below a supervisor, of which there may be none. Identifies the supervisor even
/// after its id is reused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    root: Pid,
    started: u64,
}

impl Tree {
    /// The tree below a process; `None` if the process does not exist. The caller holds a handle
    /// taken before.
    pub(crate) fn below(root: Pid) -> Option<Self> {
        let started = look_up(root.as_raw_nonzero().get())?.started;
        Some(Self { root, started })
    }

    /// As if the id had belonged to another process before.
    #[cfg(test)]
    pub(crate) fn of_reused_id(root: Pid) -> Option<Self> {
        Self::below(root).map(|tree| Self { started: tree.started - 1, ..tree })
    }

    /// Kills them until none is left; returns the ids of the survivors. Finds none without a
    /// `/proc`. Blocks, at most some seconds.
    pub(crate) fn kill(self) -> Vec<i32> {
        let (mut left, mut clean_rounds) = (Vec::new(), 0);
        for _ in 0..KILL_ROUNDS_MAX {
            left = self.living();
            left.iter().for_each(|entry| send(entry, Signal::KILL));
            clean_rounds = if left.is_empty() { clean_rounds + 1 } else { 0 };
            if clean_rounds == 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(if clean_rounds == 1 { 1 } else { 10 }));
        }
        left.iter().map(pid_of).collect()
    }

    fn living(self) -> Vec<Entry> {
        let mut found = descendants(self.root).unwrap_or_default();
        // This process may have been started from a shell inside the run.
        found.retain(|entry| entry.pid != getpid());
        // If the process is the same before and after, the table shows its descendants.
        let same = Self::below(self.root).is_some_and(|now| now.started == self.started);
        if same { found } else { Vec::new() }
    }
}

/// Sends a signal to every process below this one; `leader` is the session it started.
///
/// Without a `/proc` of this process's own PID namespace only the leader's process group can be
/// signalled; the others follow as they are orphaned to this process.
pub(crate) fn signal_descendants(leader: Pid, signal: Signal) {
    match descendants(getpid()) {
        Some(entries) => entries.iter().for_each(|entry| send(entry, signal)),
        None => note(leader, kill_process_group(leader, signal)),
    }
}

/// SIGHUP to a command that leads its session, and to what is in the foreground of its terminal: as
/// from a terminal that is closed. Processes in the background that ignore it (`nohup`), and those
/// that left the session (`setsid`), go on.
pub(crate) fn hang_up(command: Pid) {
    if !shows_this_namespace() {
        return note(command, kill_process_group(command, Signal::HUP));
    }
    let leader = command.as_raw_nonzero().get();
    let Some(of_command) = look_up(leader) else { return };
    let is_meant = |entry: &Entry| {
        entry.session == leader && [leader, of_command.foreground].contains(&entry.group)
    };
    table().iter().filter(|entry| is_meant(entry)).for_each(|entry| send(entry, Signal::HUP));
}

/// Kills every process that carries the mark of one of these run keys, until none is left.
/// Returns the keys whose processes survive. Blocks, at most some seconds.
pub(crate) fn kill_marked(keys: &BTreeSet<String>) -> BTreeSet<String> {
    let mut resisting = BTreeSet::new();
    if keys.is_empty() {
        return resisting;
    }
    let marks: BTreeMap<u64, &String> = keys.iter().map(|key| (limit_mark(key), key)).collect();
    let mut clean_rounds = 0;
    for _ in 0..KILL_ROUNDS_MAX {
        let (marked, unclear) = look_for(keys, &marks);
        marked.iter().for_each(|(entry, _)| send(entry, Signal::KILL));
        // One pass may miss a process whose parent ended while the table was read.
        clean_rounds = if marked.is_empty() && !unclear { clean_rounds + 1 } else { 0 };
        resisting = marked.into_iter().map(|(_, key)| key).collect();
        if clean_rounds == 2 {
            return resisting;
        }
        // Dying, or finishing an exec, takes the kernel a moment.
        std::thread::sleep(Duration::from_millis(if clean_rounds == 1 { 1 } else { 10 }));
    }
    resisting
}

/// The runs that have a supervisor on this machine, including those of other servers. `None` if
/// `/proc` does not show this namespace.
pub(crate) fn supervised() -> Option<BTreeSet<RunKey>> {
    let line = |entry: &Entry| fs::read(format!("/proc/{}/cmdline", pid_of(entry))).ok();
    let found = || table().iter().filter_map(line).filter_map(|line| run_of(&line)).collect();
    shows_this_namespace().then(found)
}

/// The run of a supervisor, from its arguments.
fn run_of(line: &[u8]) -> Option<RunKey> {
    let mut words = line.split(|&byte| byte == 0).map(|word| str::from_utf8(word).ok()).skip(1);
    let (Some(Some(SUPERVISE)), Some(Some(dir))) = (words.next(), words.next()) else {
        return None;
    };
    Path::new(dir).file_name()?.to_str()?.parse().ok()
}

/// The mark of a run's processes: their limit on file locks. Unlike the environment and the
/// session it is not lost by accident, and it stays when the user changes. It is in the upper half
/// of the range, where limits are not set by hand; the same in all versions (FNV-1a).
pub(crate) fn limit_mark(key: &str) -> u64 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 1) | (1 << 62)
}

/// The processes that carry one of these marks, with their run, and whether one could not be
/// classified yet.
fn look_for(
    keys: &BTreeSet<String>,
    marks: &BTreeMap<u64, &String>,
) -> (Vec<(Entry, String)>, bool) {
    let (mut marked, mut unclear) = (Vec::new(), false);
    // This process may have been started from a shell inside the run.
    for entry in table().into_iter().filter(|e| !e.zombie && e.pid != getpid()) {
        let by_limit = limit_of(&entry).and_then(|limit| marks.get(&limit)).copied().cloned();
        match by_limit.map_or_else(|| by_environment(&entry, keys), Look::Of) {
            Look::Of(key) => marked.push((entry, key)),
            Look::Other => {}
            Look::Unclear => unclear = true,
        }
    }
    (marked, unclear)
}

/// The owner of a process.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// A process of the run with this key.
    Of(String),
    /// No process of these runs.
    Other,
    /// In the middle of an exec: it shows neither arguments nor environment, but has a program
    /// (unlike kernel threads).
    Unclear,
}

/// The limit on file locks. None: unlimited, or gone.
fn limit_of(entry: &Entry) -> Option<u64> {
    parse_limit(&fs::read_to_string(format!("/proc/{}/limits", pid_of(entry))).ok()?)
}

fn parse_limit(limits: &str) -> Option<u64> {
    // The hard limit: a program may lower the soft one for other reasons.
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn by_environment(entry: &Entry, keys: &BTreeSet<String>) -> Look {
    let folder = format!("/proc/{}", pid_of(entry));
    // Ended, or another user's, whose environment only root may read.
    let own = |uid: u32| getuid().is_root() || uid == getuid().as_raw();
    if !fs::metadata(&folder).is_ok_and(|meta| own(meta.uid())) {
        return Look::Other;
    }
    let Ok(environment) = fs::read(format!("{folder}/environ")) else { return Look::Other };
    if environment.is_empty() {
        let bare = fs::read(format!("{folder}/cmdline")).is_ok_and(|line| line.is_empty());
        let is_program = fs::read_link(format!("{folder}/exe")).is_ok();
        return if bare && is_program { Look::Unclear } else { Look::Other };
    }
    let named = environment.split(|&byte| byte == 0).find_map(|variable| {
        let key = variable.strip_prefix(RUN_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
        keys.get(str::from_utf8(key).ok()?)
    });
    named.map_or(Look::Other, |key| Look::Of(key.clone()))
}

/// A process and all below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Subtree {
    /// CPU time in clock ticks, including ended processes below it.
    pub(crate) cpu_ticks: u64,
    /// The living ones.
    pub(crate) pids: Vec<i32>,
}

/// The trees of these processes, from one read of the process table; empty if `/proc` is hidden.
pub(crate) fn subtrees(roots: &BTreeSet<i32>) -> BTreeMap<i32, Subtree> {
    if roots.is_empty() || !shows_this_namespace() {
        return BTreeMap::new();
    }
    Families::of(table()).subtrees(roots)
}

/// The process table by parent, so that finding what is below a process costs as much as is there.
struct Families {
    by_pid: BTreeMap<i32, Entry>,
    children: BTreeMap<i32, Vec<i32>>,
}

impl Families {
    fn of(table: Vec<Entry>) -> Self {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for entry in &table {
            children.entry(entry.parent).or_default().push(pid_of(entry));
        }
        Self { by_pid: table.into_iter().map(|entry| (pid_of(&entry), entry)).collect(), children }
    }

    /// The processes below one, by id; nothing of what is below one of the `others`.
    fn below(&self, root: i32, others: &BTreeSet<i32>) -> Vec<&Entry> {
        let mut found = BTreeMap::new();
        let mut ahead = vec![root];
        while let Some(pid) = ahead.pop() {
            for child in self.children.get(&pid).into_iter().flatten() {
                // Two entries may name each other if an id was reused between the reads.
                let is_new = *child != root && !others.contains(child);
                if let Some(entry) = self.by_pid.get(child).filter(|_| is_new)
                    && found.insert(*child, entry).is_none()
                {
                    ahead.push(*child);
                }
            }
        }
        found.into_values().collect()
    }

    /// The trees of these processes. One below another has its own.
    fn subtrees(&self, roots: &BTreeSet<i32>) -> BTreeMap<i32, Subtree> {
        let mut subtrees = BTreeMap::new();
        for &root in roots {
            let own = self.by_pid.get(&root);
            for entry in own.into_iter().chain(self.below(root, roots)) {
                let family: &mut Subtree = subtrees.entry(root).or_default();
                family.cpu_ticks += entry.cpu_ticks;
                if !entry.zombie {
                    family.pids.push(pid_of(entry));
                }
            }
        }
        subtrees
    }
}

fn shows_this_namespace() -> bool {
    let shown = fs::read_link("/proc/self").ok();
    let shown = shown.and_then(|link| link.to_str()?.parse().ok());
    shown == Some(getpid().as_raw_nonzero().get())
}

/// All living processes below this one. None: `/proc` is hidden, or shows another namespace.
fn descendants(root: Pid) -> Option<Vec<Entry>> {
    if !shows_this_namespace() {
        return None;
    }
    let families = Families::of(table());
    let below = families.below(root.as_raw_nonzero().get(), &BTreeSet::new());
    Some(below.into_iter().filter(|entry| !entry.zombie).copied().collect())
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

/// The name, in parentheses, may hold any character; fields are counted from its end.
fn parse_stat(pid: i32, text: &str) -> Option<Entry> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let mut next = || fields.next()?.parse().ok();
    let (parent, group, session, _terminal) = (next()?, next()?, next()?, next()?);
    let foreground = next()?;
    // Fields 20 and 22 of proc_pid_stat(5); the state is field 3. The four times start at field
    // 14.
    let times = fields.by_ref().skip(5).take(4).map(|ticks| ticks.parse().unwrap_or(0_u64));
    let cpu_ticks = times.sum();
    let threads: u32 = fields.nth(2)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended shows as a zombie while the others go on.
    let zombie = matches!(state, "Z" | "X") && threads <= 1;
    let pid = Pid::from_raw(pid)?;
    Some(Entry { pid, parent, group, session, foreground, started, zombie, cpu_ticks })
}

/// Signals exactly this process: the handle pins the id, the start time proves identity.
fn send(entry: &Entry, signal: Signal) {
    let sent = pidfd_open(entry.pid, PidfdFlags::empty()).and_then(|handle| {
        match look_up(pid_of(entry)) {
            Some(now) if now.started == entry.started => pidfd_send_signal(handle, signal),
            _ => Err(Errno::SRCH),
        }
    });
    note(entry.pid, sent);
}

/// An ended process is the goal; any other error is logged.
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
        assert_eq!((entry.group, entry.session, entry.foreground), (7, 7, -1));
        assert_eq!(entry.cpu_ticks, 0);
        assert!(parse_stat(7, "7 (cut").is_none());
        let text = "7 (a) S 3 7 7 0 -1 0 0 0 0 0 1 20 300 4000 20 0 1 0 4711 0";
        assert_eq!(parse_stat(7, text).expect("a line").cpu_ticks, 4321);
        let ended = |threads| {
            let text = format!("7 (a) Z 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0");
            parse_stat(7, &text).expect("a line").zombie
        };
        assert!(ended(1) && !ended(2), "while threads run it is none");
    }

    #[test]
    fn the_mark_is_read_from_the_limits_and_none_is_none() {
        let limits =
            |values: &str| format!("Max cpu time  1  1  seconds\nMax file locks {values}\n");
        let mark = limit_mark("a");
        assert_eq!(parse_limit(&limits(&format!("  7   {mark}   locks"))), Some(mark));
        assert_eq!(parse_limit(&limits("unlimited unlimited locks")), None);
        assert_eq!(parse_limit(""), None);
        assert_ne!(mark, limit_mark("b"));
        // Newer servers look for runs of older supervisors: the number must not change.
        assert_eq!(mark, 6_319_093_600_277_820_998);
    }

    #[test]
    fn a_supervisor_is_known_by_the_folder_of_its_run() {
        let key = "00000000-0000-0000-0000-000000000007.2";
        let told = |line: String| run_of(line.as_bytes()).map(|key| key.to_string());
        let runs = "/somebody/runs";
        assert_eq!(told(format!("elastane\0supervise\0{runs}/{key}\0")).as_deref(), Some(key));
        for line in ["elastane\0up\0", "elastane\0supervise\0", "supervise\0/runs/x\0", ""] {
            assert_eq!(told(line.to_owned()), None, "{line}");
        }
        assert_eq!(told(format!("elastane\0session\0{runs}/{key}\0")), None);
    }

    /// A process table, of pairs of process and parent.
    fn families(all: impl IntoIterator<Item = (i32, i32)>) -> Families {
        let entry = |(pid, parent)| Entry {
            pid: Pid::from_raw(pid).expect("positive"),
            parent,
            group: pid,
            session: pid,
            foreground: -1,
            started: 1,
            zombie: pid % 10 == 9,
            cpu_ticks: 1,
        };
        Families::of(all.into_iter().map(entry).collect())
    }

    #[test]
    fn a_process_belongs_to_the_nearest_root_and_circles_end() {
        let all = [(2, 1), (3, 2), (5, 4), (4, 3), (9, 4), (7, 2), (20, 21), (21, 20), (30, 30)];
        let trees = families(all).subtrees(&[2, 4, 20, 30, 99].into());
        let pids: Vec<_> = trees.iter().map(|(root, tree)| (*root, tree.pids.clone())).collect();
        let expected = [(2, vec![2, 3, 7]), (4, vec![4, 5]), (20, vec![20, 21]), (30, vec![30])];
        assert_eq!(pids, expected);
        assert_eq!(trees[&4].cpu_ticks, 3, "of an ended one too");
    }

    #[test]
    fn a_chain_of_any_length_is_one_family() {
        // The youngest first: a child may precede its parent. Comparing each with each takes
        // minutes.
        let chain = families((2..200_000).rev().map(|pid| (pid, pid - 1)));
        assert_eq!(chain.below(1, &BTreeSet::new()).len(), 199_998);
        let trees = chain.subtrees(&[2, 100_000].into());
        assert_eq!((trees[&2].cpu_ticks, trees[&100_000].cpu_ticks), (99_998, 100_000));
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
        let found: Vec<u32> = descendants(getpid())
            .expect("a /proc")
            .iter()
            .filter_map(|entry| u32::try_from(pid_of(entry)).ok())
            .collect();
        assert!(found.contains(&marked.id()) && found.contains(&other.id()), "{found:?}");
        assert_eq!(kill_marked(&BTreeSet::from([format!("a-{id}")])), BTreeSet::new());
        assert!(!marked.wait().expect("killed").success());
        assert!(other.try_wait().expect("a child").is_none(), "only the marked one");
        other.kill().expect("ours");
        other.wait().expect("reaped");
    }
}
