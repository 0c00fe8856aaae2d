//! Trees for tests, and tests in a process of their own. Owns: deep trees, and limits, accounts and
//! mounts that would disturb other tests. Does not know about: any test.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, Mode, mkdirat, openat};
use rustix::process::{Resource, Rlimit, getuid, setrlimit};
use tempfile::TempDir;

use crate::folder::FOLDER;

/// Depth that exceeds any recursion and any path length.
pub(crate) const DEEP: usize = 16_000;
/// User id of an account that is not root's and owns nothing.
pub(crate) const NOBODY: u32 = 65_534;
const CHILD: &str = "ELASTANE_TREES_CHILD";

/// A folder for a test, in memory where possible, as some disks take milliseconds to delete each
/// folder.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Creates nested folders; the innermost has a file.
pub(crate) fn deep(top: &Path, levels: usize) {
    fs::create_dir(top).unwrap();
    let mut at: OwnedFd = openat(CWD, top, FOLDER, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, c"d", Mode::RWXU).unwrap();
        at = openat(&at, c"d", FOLDER, Mode::empty()).unwrap();
    }
    mkdirat(&at, c"last", Mode::RWXU).unwrap();
}

/// A command that runs only this test; `None` in the process of that command.
pub(crate) fn alone(test: &str) -> Option<Command> {
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--test-threads=1"]).env(CHILD, test);
    Some(command)
}

/// Runs a command of [`alone`], which must succeed.
pub(crate) fn passes(mut command: Command) {
    let done = command.output().unwrap();
    let told = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success() && told[0].contains("1 passed"), "{}", told.concat());
}

/// A command in a mount namespace of its own, after a shell script in a folder; `None` where this
/// machine lets no test mount anything.
pub(crate) fn after_mounts(script: &str, folder: &Path, command: &Command) -> Option<Command> {
    let own = |then: &str| {
        let script = format!("mount --make-rprivate / && cd \"$0\" && {script} && {then}");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(folder);
        command
    };
    if !own("true").output().is_ok_and(|done| done.status.success()) {
        return None;
    }
    let mut outer = own("exec \"$@\"");
    outer.arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(outer)
}

/// Sets the account of a command, where this test may.
pub(crate) fn as_nobody(mut command: Command) -> Command {
    if getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Limits this process to few more files than those that are open now.
pub(crate) fn limit_open_files(more: u64) {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let highest = open.filter_map(|fd| fd.unwrap().file_name().to_str()?.parse::<u64>().ok()).max();
    // The highest one belonged to the list itself.
    let most = highest.unwrap() + more;
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) }).unwrap();
}
