//! Runs that lost their supervisor, with a sweep that fails as a stuck driver makes it fail.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

const RUNNING: StateFile = StateFile::Running { pid: 1, started_at_ms: 1 };
const ROUNDS: usize = 4;
static SWEEPS: AtomicUsize = AtomicUsize::new(0);

/// Every process resists, some times.
fn stubborn(keys: &BTreeSet<String>) -> BTreeSet<String> {
    let sweep = SWEEPS.fetch_add(1, Ordering::SeqCst);
    if sweep < ROUNDS { keys.clone() } else { BTreeSet::new() }
}

#[tokio::test]
async fn a_lost_run_has_not_ended_while_its_processes_resist() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = Paths { root: folder.path().to_owned() };
    make_dir(&paths.runs()).expect("created");
    let key = RunKey { pod: Uuid::new_v4(), generation: 1 };
    let dir = RunDir::new(&paths.runs(), key);
    make_dir(dir.path()).expect("created");
    dir.write_state(&RUNNING).expect("written");
    let (events, mut seen) = mpsc::unbounded_channel();
    let images = ImageTable::new(Path::new("/no/such/program"));
    let mut shared = Shared::new(paths, "/no/such/program".into(), images, BTreeMap::new(), events);
    shared.kill_marked = stubborn;
    let shared = Arc::new(shared);

    adopt_all(&shared).expect("readable");
    assert_eq!(SWEEPS.load(Ordering::SeqCst), 1);
    assert_eq!(shared.state(key), Some(RUNNING), "its GPUs are not free");

    let wait = tokio::time::timeout(Duration::from_secs(30), seen.recv());
    let end = wait.await.expect("looked at again and again").expect("the engine lives");
    assert!(SWEEPS.load(Ordering::SeqCst) > ROUNDS, "only when nothing resisted");
    assert_eq!(end.state, shared.state(key).expect("known").into());
    assert!(matches!(dir.read_state(), Ok(Some(StateFile::Exited { exit: ExitFile::Lost, .. }))));
}
