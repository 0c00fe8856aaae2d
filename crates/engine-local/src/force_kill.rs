//! Ending a run that does not stop. Owns: waking its supervisor, then killing everything below it,
//! and last the supervisor itself. Does not know how the run ended; its follower finds out, as for
//! any supervisor that vanished.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use engine::RunKey;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

use crate::cgroup::Group;
use crate::process::Tree;
use crate::record::StateFile;
use crate::shared::LocalEngineState;
use crate::sys;

/// Extra time for a supervisor after the grace period: SIGKILL takes the kernel a while.
const MARGIN_MS: u64 = 2000;
/// Time to end after a wake-up; later attempts are further apart, up to the second value.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Makes sure that a supervisor that was signalled ends its run. `handle` is the supervisor's.
pub(crate) fn spawn(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    supervisor: Pid,
    handle: OwnedFd,
    grace_ms: u64,
) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        let patience = Duration::from_millis(grace_ms.saturating_add(MARGIN_MS));
        if let Err(error) = force_kill(&own, key, supervisor, handle, patience).await {
            tracing::error!("cannot make run {key} end: {error}; stop it again");
        }
    });
}

async fn force_kill(
    shared: &LocalEngineState,
    key: RunKey,
    supervisor: Pid,
    handle: OwnedFd,
    patience: Duration,
) -> io::Result<()> {
    let death = sys::await_death(handle)?;
    // `None`: the supervisor just ended, and its id may be reused.
    let Some(tree) = Tree::below(supervisor) else { return Ok(()) };
    // The processes are gone when the end is reported; the supervisor may still have to record it.
    let ended = || matches!(shared.state(key), Some(StateFile::Exited { .. }));
    if dies_within(&death, patience).await? || ended() || !shared.begin_to_force(key) {
        return Ok(());
    }
    let dir = shared.dir(key);
    let kill = move || {
        dir.group().iter().for_each(Group::kill);
        tree.kill()
    };
    let forced = force(key, supervisor, &death, kill).await;
    shared.end_to_force(key);
    forced
}

/// Returns when the supervisor is gone. `kill` ends the processes below it, and returns the
/// survivors.
async fn force(
    key: RunKey,
    supervisor: Pid,
    death: &AsyncFd<OwnedFd>,
    kill: impl Fn() -> Vec<i32> + Clone + Send + 'static,
) -> io::Result<()> {
    let id = supervisor.as_raw_nonzero();
    tracing::warn!("run {key} was stopped and has not ended; waking its supervisor (process {id})");
    signal(death, Signal::CONT)?;
    let mut pause = PAUSE.0;
    if dies_within(death, pause).await? {
        return Ok(());
    }
    loop {
        // While the supervisor lives, its descendants are the run's; after that only marks
        // identify them. So it is killed last, when nothing else is left, and has time to report
        // the end.
        let resisting = tokio::task::spawn_blocking(kill.clone()).await;
        let resisting = resisting.map_err(io::Error::other)?;
        if dies_within(death, pause).await? {
            return Ok(());
        }
        if resisting.is_empty() {
            tracing::warn!("killing the supervisor (process {id}) of run {key}: it does not react");
            signal(death, Signal::KILL)?;
        } else {
            tracing::error!(
                "processes {resisting:?} of the stopped run {key} cannot be killed; its GPUs \
                 stay taken until they are gone"
            );
        }
        if dies_within(death, pause).await? {
            return Ok(());
        }
        pause = (pause * 2).min(PAUSE.1);
    }
}

async fn dies_within(death: &AsyncFd<OwnedFd>, pause: Duration) -> io::Result<bool> {
    match tokio::time::timeout(pause, death.readable()).await {
        Ok(ended) => ended.map(|_| true),
        Err(_elapsed) => Ok(false),
    }
}

/// An ended process is the goal.
fn signal(death: &AsyncFd<OwnedFd>, signal: Signal) -> io::Result<()> {
    match pidfd_send_signal(death.get_ref().as_fd(), signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;

    #[tokio::test]
    async fn a_supervisor_that_does_not_react_goes_after_all_that_is_below_it() {
        let script = "trap '' TERM; sleep 600 & echo $!; read nothing";
        let mut deaf = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut said = BufReader::new(deaf.stdout.take().expect("piped"));
        let mut child = String::new();
        said.read_line(&mut child).expect("an id");
        let pid = Pid::from_raw(i32::try_from(deaf.id()).expect("an id")).expect("an id");
        let handle = pidfd_open(pid, PidfdFlags::empty()).expect("alive");
        let death = sys::await_death(handle).expect("a handle");
        let tree = Tree::below(pid).expect("alive");
        let key = RunKey { pod: uuid::Uuid::new_v4(), generation: 1 };
        force(key, pid, &death, move || tree.kill()).await.expect("gone");
        assert_eq!(deaf.wait().expect("ours").signal(), Some(9));
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        let state = stat.ok().and_then(|stat| stat.rsplit_once(") ").map(|(_, s)| s.to_owned()));
        assert!(state.is_none_or(|state| state.starts_with(['Z', 'X'])), "its child lives");
    }

    #[tokio::test]
    async fn what_has_an_ended_supervisors_id_is_left_alone() {
        let script = "sleep 600 & echo $!; wait; exit 0";
        let mut other = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut said = BufReader::new(other.stdout.take().expect("piped"));
        said.read_line(&mut String::new()).expect("its child lives");
        let pid = Pid::from_raw(i32::try_from(other.id()).expect("an id")).expect("an id");
        let earlier = Tree::of_reused_id(pid).expect("alive");
        assert_eq!(earlier.kill(), Vec::<i32>::new());
        assert!(other.try_wait().expect("ours").is_none(), "it waits for its own child");
        assert_eq!(Tree::below(pid).expect("alive").kill(), Vec::<i32>::new());
        assert!(other.wait().expect("ours").success(), "only what is below it was killed");
    }
}
