//! Processes and threads of runs together. Owns: the limits by which a run that forks without end
//! leaves room for the server and for other runs, where no control group does. The kernel counts
//! them by account, and in a user namespace of its own those of a run as well. Does not know about:
//! control groups, which have a limit for each run.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Divisor of the limit for what runs leave to the server, within these bounds.
const KEPT_PART: u64 = 8;
const KEPT: (u64, u64) = (16, 1024);

/// Limit of the processes and threads of an account while a run forks: that of this process, or of
/// the machine, without a part for the server.
pub(crate) fn of_runs() -> Rlimit {
    let read = |name: &str| {
        // A machine that does not say has no limit that is known.
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse().ok()
    };
    let own = getrlimit(Resource::Nproc);
    let known = [own.current, own.maximum, read("threads-max"), read("pid_max")];
    let most = known.into_iter().flatten().min().map(without_kept);
    Rlimit { current: most, maximum: most }
}

fn without_kept(most: u64) -> u64 {
    most.saturating_sub((most / KEPT_PART).clamp(KEPT.0, KEPT.1)).max(1)
}

/// Halves the limit of this process, so that what is counted with it leaves room for others that
/// are counted apart. Runs between fork and exec: it does not allocate.
pub(crate) fn halve() -> Result<(), Errno> {
    let half = getrlimit(Resource::Nproc).current.map(|most| (most / 2).max(1));
    setrlimit(Resource::Nproc, Rlimit { current: half, maximum: half })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::thread::UnshareFlags;

    use super::*;
    use crate::sys::{Enter, Start, in_own_session};

    /// Limit of processes of a command that starts like one of a run.
    fn limit(enter: Option<Enter>) -> Option<u64> {
        let mut command = Command::new("cat");
        command.arg("/proc/self/limits");
        in_own_session(
            &mut command,
            Start { mark: 1 << 62, tasks: of_runs(), terminal: false, groups: vec![], enter },
        );
        let read = command.output().expect("it starts");
        let text = String::from_utf8(read.stdout).expect("text");
        let line = text.lines().find(|line| line.starts_with("Max processes")).expect("listed");
        line.split_whitespace().nth(2)?.parse().ok()
    }

    #[test]
    fn runs_leave_room_for_the_server_and_for_each_other() {
        assert_eq!([1, 17, 400, 100_000].map(without_kept), [1, 1, 350, 98_976]);
        let all = of_runs().current;
        let most = fs::read_to_string("/proc/sys/kernel/pid_max").expect("there");
        assert!(all < most.trim().parse().ok(), "{all:?}");
        assert_eq!(limit(None), all);
        assert_eq!(limit(Some(Box::new(halve))), all.map(|all| all / 2));
    }

    #[test]
    fn a_run_that_forks_without_end_leaves_other_runs_of_its_account_theirs() {
        let bomb = "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done 2>/dev/null; wait";
        let account = 1_987_654_321;
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let enter: Enter = Box::new(move || {
                let most = Some(40);
                setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most })?;
                let account = rustix::process::Uid::from_raw(account);
                rustix::thread::set_thread_res_uid(account, account, account)?;
                crate::sys::unshare(UnshareFlags::NEWUSER)?;
                halve()
            });
            let start = Start {
                mark: 1 << 62,
                tasks: of_runs(),
                terminal: false,
                groups: vec![],
                enter: Some(enter),
            };
            in_own_session(&mut command, start);
            command.spawn()
        };
        if !rustix::process::getuid().is_root() {
            return skip::skipped("an account of its own needs root");
        }
        let mut flood = match start(bomb) {
            Ok(flood) => flood,
            Err(error) => return skip::skipped(&format!("no user namespaces here: {error}")),
        };
        let session = rustix::process::Pid::from_child(&flood);
        let count = || {
            let ids = fs::read_dir("/proc").expect("mounted").flatten();
            let of = |entry: &fs::DirEntry| {
                let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
                status
                    .lines()
                    .any(|line| line == format!("Uid:\t{account}\t{account}\t{account}\t{account}"))
            };
            ids.filter(of).count()
        };
        while count() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let other = start("sleep 0.01; sleep 0.01").expect("room").wait().expect("ours");
        assert!(other.success(), "{other}: {} processes", count());
        assert!(count() <= 20, "{}", count());
        rustix::process::kill_process_group(session, rustix::process::Signal::KILL).expect("alive");
        flood.wait().expect("ours");
    }
}
