//! Runs that lost their supervisor, with a sweep that fails as with a stuck driver; groups without
//! a run.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{Observation, RunState};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::*;

const RUNNING: StateFile = StateFile::Running { pid: 1, started_at_ms: 1 };
const ROUNDS: usize = 4;
static SWEEPS: AtomicUsize = AtomicUsize::new(0);

/// Every process survives, some times.
fn stubborn(keys: &BTreeSet<String>) -> BTreeSet<String> {
    let sweep = SWEEPS.fetch_add(1, Ordering::SeqCst);
    if sweep < ROUNDS { keys.clone() } else { BTreeSet::new() }
}

/// The shared state of an engine in a folder.
fn shared_over(root: &Path) -> (LocalEngineState, UnboundedReceiver<Observation>) {
    let paths = Paths { root: root.to_owned() };
    make_dir(&paths.runs()).expect("created");
    let images = ImageTable::new(Path::new("/no/such/program"));
    let shared = LocalEngineState::new(paths, "/no/such/program".into(), images, BTreeMap::new());
    let seen = shared.observations.stream();
    (shared, seen)
}

#[tokio::test]
async fn a_lost_run_has_not_ended_while_its_processes_resist() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut shared, mut seen) = shared_over(folder.path());
    let key = RunKey { pod: Uuid::new_v4(), generation: 1 };
    let dir = RunDir::new(&shared.paths.runs(), key);
    make_dir(dir.path()).expect("created");
    dir.write_state(&RUNNING).expect("written");
    shared.kill_marked = stubborn;
    let shared = Arc::new(shared);

    recover_all(&shared).expect("readable");
    assert_eq!(SWEEPS.load(Ordering::SeqCst), 1);
    assert_eq!(shared.state(key), Some(RUNNING), "its GPUs are not free");

    let wait = tokio::time::timeout(Duration::from_secs(240), seen.recv());
    let end = wait.await.expect("looked at again and again").expect("the engine lives");
    assert!(SWEEPS.load(Ordering::SeqCst) > ROUNDS, "only when nothing resisted");
    let known: RunState = shared.state(key).expect("known").into();
    assert_eq!(end.news, known.into());
    assert!(matches!(dir.read_state(), Ok(Some(StateFile::Exited { exit: ExitFile::Lost, .. }))));
}

#[tokio::test]
async fn groups_go_with_a_state_directory_that_was_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut shared, _seen) = shared_over(folder.path());
    shared.place = Place::find();
    let [nobodys, others] = [(); 2].map(|()| RunKey { pod: Uuid::new_v4(), generation: 1 });
    if shared.place.group(others).is_none() {
        return skip::skipped("this machine has no control groups");
    }
    // A supervisor of another server, which has not started anything yet.
    fs::write(folder.path().join("supervise"), "echo; read forever").expect("written");
    let mut supervisor = std::process::Command::new("sh")
        .args(["supervise", &format!("/elsewhere/runs/{others}")])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh");
    let mut said = supervisor.stdout.take().expect("a pipe");
    io::Read::read_exact(&mut said, &mut [0]).expect("it runs");
    for key in [nobodys, others] {
        let group = shared.place.group(key).expect("as before");
        group.make(&engine::Limits::default()).expect("made");
    }
    let shared = Arc::new(shared);
    recover_all(&shared).expect("readable");
    let left = shared.place.runs();
    assert!(!left.contains(&nobodys) && left.contains(&others), "{left:?}");
    supervisor.kill().expect("ours");
    supervisor.wait().expect("reaped");
    recover_all(&shared).expect("readable");
    assert!(!shared.place.runs().contains(&others), "nobody's now");
}
