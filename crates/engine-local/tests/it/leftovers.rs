//! Files that users leave are harmless: folders of any depth are deleted, and the server goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::Exit;
use engine_conformance::Fixture as _;

use crate::bench::{Bench, SUPERVISOR};
use crate::local::{end, run};

/// More folders in each other than a recursion survives, and than a path can name.
const DEEP: usize = 16_000;

async fn nothing_is_left(bench: &Bench) {
    let begin = Instant::now();
    while !bench.engine().leftovers().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", bench.engine().leftovers());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The trash of a state directory.
fn trash(bench: &Bench) -> PathBuf {
    bench.state_dir().join("trash")
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

#[tokio::test]
async fn the_server_survives_folders_of_any_depth_and_goes_on_after_a_restart() {
    let mut bench = Bench::in_memory();
    let nest = format!("{SUPERVISOR} nest {DEEP}");
    let text = format!(
        "echo \"$ELASTANE_MEMORY_DIR\"; ({nest}); (cd && {nest})
         [ -z \"$ELASTANE_MEMORY_DIR\" ] || {{ cd \"$ELASTANE_MEMORY_DIR\" && {nest}; }}"
    );
    let spec = bench.script(&text);
    let key = spec.key;
    let told = run(&bench, spec).await;
    assert_eq!(end(&*bench.engine(), key).await, Exit::Code(0), "{told}");
    bench.engine().remove(key).await.expect("removed");
    bench.engine().forget_pod(key.pod).await.expect("forgotten");
    assert!(!bench.state_dir().join(format!("pods/{}", key.pod)).exists(), "at once");
    // A server that crashes right after it.
    bench.reopen().await;
    let alive = bench.script("echo alive");
    assert_eq!(run(&bench, alive).await, "alive\n");
    nothing_is_left(&bench).await;
    assert_eq!(entries(&trash(&bench)), 0);
    if let Some(memory) = told.lines().next().filter(|line| !line.is_empty()) {
        assert!(!Path::new(memory).exists());
    }
}

#[tokio::test]
async fn the_memory_of_a_server_that_lives_stays_wherever_its_state_directory_is() {
    let bench = Bench::new();
    let spec = bench.script("echo \"$ELASTANE_MEMORY_DIR\"");
    let key = spec.key;
    let told = run(&bench, spec).await;
    end(&*bench.engine(), key).await;
    let Some(root) = Path::new(told.trim_end()).parent().filter(|root| root.exists()) else {
        return skip::skipped("this machine has no file system in memory that runs may use");
    };
    // As another server sees it that has other mounts.
    let elsewhere = bench.state_dir().with_extension("moved");
    fs::rename(bench.state_dir(), &elsewhere).expect("moved");
    let others = Bench::new();
    assert!(root.exists());
    fs::rename(&elsewhere, bench.state_dir()).expect("back");
    drop(others);
}
