//! Copies of checkpoints in the machine's memory: whose they are, who pays for them, and where they
//! go when their run ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::{Exit, Limits, LimitsKept, RunKey, RunSpec};
use engine_conformance::Fixture as _;
use engine_local::Separation;

use crate::bench::{Bench, SUPERVISOR};
use crate::local::{end, run};

/// Leaves a copy as the Python package does, and dies.
const LEAVES: &str = r#"echo "$ELASTANE_MEMORY_DIR"; cd "$ELASTANE_MEMORY_DIR" || exit; printf weights > 0-1.bin
echo "{\"path\": \"$TO\", \"bytes\": 7, \"saved_ns\": 1000000000, \"written\": false}" > 0-1.json
kill -9 $$"#;

/// Folder of a run's memory in its output; `None` on a machine without such memory.
fn memory_of(told: &str) -> Option<PathBuf> {
    let line = told.lines().next().unwrap_or_default();
    if line.is_empty() {
        return skip::missing("this machine has no file system in memory that runs may use");
    }
    Some(line.into())
}

fn leaves(bench: &Bench, to: &Path) -> RunSpec {
    let mut spec = bench.script(LEAVES);
    spec.env.insert("TO".into(), to.display().to_string());
    spec
}

/// A folder that runs of other accounts may write.
fn disk() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), all).expect("changed");
    folder
}

async fn comes(what: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !what() {
        if begin.elapsed() > Duration::from_secs(60) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}

async fn is_written_after_the_end(bench: &Bench) {
    let disk = disk();
    let to = disk.path().join("model");
    let spec = leaves(bench, &to);
    let key = spec.key;
    let told = run(bench, spec.clone()).await;
    assert_eq!(end(&*bench.engine(), key).await, Exit::Signal(9));
    let Some(memory) = memory_of(&told) else { return };
    assert!(comes(|| to.exists()).await, "{told}");
    assert_eq!(fs::read_to_string(&to).expect("whole"), "weights");
    assert!(comes(|| !memory.join("0-1.bin").exists()).await, "the memory is free");

    // The next run of the pod has the same folder, which goes when it leaves nothing there.
    let mut next = spec;
    next.key = RunKey { generation: key.generation + 1, ..key };
    let script = "echo \"$ELASTANE_MEMORY_DIR\"; test -w \"$ELASTANE_MEMORY_DIR\" && echo there";
    next.command = bench.script(script).command;
    let key = next.key;
    let told = run(bench, next).await;
    assert_eq!(told, format!("{}\nthere\n", memory.display()));
    end(&*bench.engine(), key).await;
    assert!(!memory.exists());
}

#[tokio::test]
async fn what_a_run_leaves_in_memory_is_written_after_its_end() {
    is_written_after_the_end(&Bench::new()).await;
    let separation = Some(Separation::default());
    is_written_after_the_end(&Bench::with(Path::new(SUPERVISOR), separation)).await;
}

#[tokio::test]
async fn nothing_of_a_run_is_loaded_outside_of_its_limits() {
    let (bench, disk) = (Bench::new(), disk());
    let to = disk.path().join("model");
    let mut spec = leaves(&bench, &to);
    // The loader of each program that gets this says which one it is.
    spec.env.insert("LD_DEBUG".into(), "files".into());
    spec.env.insert("LD_DEBUG_OUTPUT".into(), disk.path().join("loader").display().to_string());
    let key = spec.key;
    let told = run(&bench, spec).await;
    end(&*bench.engine(), key).await;
    let Some(_memory) = memory_of(&told) else { return };
    assert!(comes(|| to.exists()).await, "{told}");
    let files =
        fs::read_dir(disk.path()).expect("a folder").map(|file| file.expect("a file").path());
    let all: String = files.map(|file| fs::read_to_string(file).expect("text")).collect();
    assert!(all.contains("initialize program: "), "{all}");
    assert!(!all.contains(&format!("initialize program: {SUPERVISOR}")), "{all}");
}

#[tokio::test]
async fn what_a_run_leaves_whose_supervisor_was_killed_is_written_by_the_server() {
    for server_looks in [true, false] {
        let (mut bench, disk) = (Bench::new(), disk());
        let to = disk.path().join("model");
        let mut spec = leaves(&bench, &to);
        // It dies with its supervisor.
        spec.command = bench.script(&LEAVES.replace("kill -9 $$", "sleep 600")).command;
        let key = spec.key;
        bench.engine().start(spec).await.expect("started");
        let output = bench.run_dir(key).join("output.log");
        let said = || fs::read_to_string(&output).unwrap_or_default();
        assert!(comes(|| said().ends_with('\n')).await);
        let Some(memory) = memory_of(&said()) else { return };
        assert!(comes(|| memory.join("0-1.json").exists()).await);
        if server_looks {
            bench.kill_supervisor(key);
        } else {
            bench.close();
            bench.kill_supervisor(key);
            bench.reopen().await;
        }
        assert_eq!(end(&*bench.engine(), key).await, Exit::Lost);
        assert!(comes(|| to.exists()).await, "{server_looks}");
        assert_eq!(fs::read_to_string(&to).expect("whole"), "weights");
    }
}

#[tokio::test]
async fn what_a_deleted_state_directory_left_is_deleted_by_the_next_server() {
    let bench = Bench::new();
    let spec = leaves(&bench, Path::new("/nowhere/model"));
    let key = spec.key;
    let told = run(&bench, spec).await;
    end(&*bench.engine(), key).await;
    let Some(memory) = memory_of(&told) else { return };
    let others = Bench::new();
    assert!(memory.join("0-1.bin").exists(), "its state directory is there");
    drop(others);
    drop(bench);
    let _next = Bench::new();
    assert!(!memory.parent().expect("a root").exists());
}

#[tokio::test]
async fn what_cannot_be_written_stays_until_the_pod_is_forgotten() {
    let mut bench = Bench::new();
    let spec = leaves(&bench, Path::new("/nowhere/model"));
    let key = spec.key;
    let told = run(&bench, spec).await;
    end(&*bench.engine(), key).await;
    let Some(memory) = memory_of(&told) else { return };
    bench.reopen().await;
    assert!(memory.join("0-1.json").exists());
    bench.engine().forget_pod(key.pod).await.expect("forgotten");
    assert!(!memory.exists());
}

#[tokio::test]
async fn runs_do_not_see_the_memory_of_each_other() {
    let bench = Bench::with(Path::new(SUPERVISOR), Some(Separation::default()));
    let found = bench.engine().capabilities().isolation;
    let spec = leaves(&bench, Path::new("/nowhere/model"));
    let pod = spec.key.pod;
    let told = run(&bench, spec).await;
    let Some(memory) = memory_of(&told) else { return };
    assert!(memory.join("0-1.bin").exists());
    let script = format!(
        "exec 2>&-; ls {0} {0}/.. ; cat {0}/0-1.bin; echo > {0}/new; ls $ELASTANE_MEMORY_DIR/.. | wc -l",
        memory.display()
    );
    let seen = run(&bench, bench.script(&script)).await;
    assert_eq!(seen, "1\n", "its own only: {found:?}");
    assert!(!memory.join("new").exists());
    bench.engine().forget_pod(pod).await.expect("forgotten");
}

#[tokio::test]
async fn a_run_pays_for_its_copies() {
    let bench = Bench::new();
    let keeps = bench.engine().capabilities().keeps_limits;
    if keeps != LimitsKept::ALL {
        return skip::skipped(&format!("this machine keeps no limits: {}", keeps.why));
    }
    let text = "echo \"$ELASTANE_MEMORY_DIR\"; cd \"$ELASTANE_MEMORY_DIR\" && exec head -c 64M /dev/zero > 0.part";
    let mut spec = bench.script(text);
    spec.container.limits = Limits { cpu_millis_max: None, memory_bytes_max: Some(32 << 20) };
    let key = spec.key;
    let told = run(&bench, spec).await;
    let Some(memory) = memory_of(&told) else { return };
    assert_eq!(end(&*bench.engine(), key).await, Exit::OutOfMemory);
    assert!(comes(|| !memory.join("0.part").exists()).await, "the memory is free");
}
