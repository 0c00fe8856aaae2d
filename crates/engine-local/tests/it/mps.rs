//! Runs whose part of a GPU is MPS's. There is no GPU here: programs in the place of the control
//! daemon's and of the driver's answer as theirs do, and what is tried is what a run gets and when
//! it starts.
#![cfg(target_arch = "x86_64")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Bounds, Device, Enforcement, Exit, Mechanism, RunSpec, TimeSlicing};
use engine_conformance::Fixture as _;
use engine_fractions::{FractionOptions, FractionPolicy, MpsPlace};
use engine_local::Separation;
use tempfile::TempDir;

use crate::bench::{Bench, SUPERVISOR};
use crate::local::{end, run};

/// Answers while the daemon is there.
const CONTROL: &str = r#"read -r question
test -e "$CUDA_MPS_PIPE_DIRECTORY/control" || { echo Cannot find MPS control daemon process; exit 1; }
echo 100.0
"#;

/// The server's program; in the place of `gpu-check`, a program with the driver of MPS. It sees at
/// most its limit free, or all if a file says that it did not connect.
const PROGRAM: &str = r#"[ "$1" = gpu-check ] || exec SUPERVISOR "$@"
limit=${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT#0=}
free=$(($(echo ${limit:-16384M} | tr -d M) * 1048576))
[ -e "$CUDA_MPS_PIPE_DIRECTORY/lost" ] && free=17179869184
case $2 in
  --json)
    echo '[{"name":"G","total":17179869184,"free":'$free',"allocations":['
    [ -n "$limit" ] && answer=2 || answer=0
    echo '{"bytes":16777216,"answer":0},{"bytes":1074790400,"answer":'$answer'}]}]';;
  --most-free=*)
    most=${2#--most-free=}
    [ $free -le ${most%B} ] && exit
    echo "$((free / 1048576)) MiB of the GPU are free for it" >&2
    exit 1;;
esac
"#;

const GPU: &str = "GPU-11111111-2222-3333-4444-555555555555";

/// A machine with a daemon. Its folder is one that every account may enter.
fn machine() -> (TempDir, FractionOptions) {
    let folder = tempfile::tempdir().expect("a folder");
    let pipes = folder.path().join("pipes");
    fs::create_dir(&pipes).expect("made");
    fs::write(pipes.join("control"), "").expect("written");
    let open = Command::new("chmod").args(["-R", "a+rX"]).arg(folder.path()).status();
    assert!(open.expect("started").success());
    let control = script(folder.path(), "control", CONTROL);
    script(folder.path(), "program", &PROGRAM.replace("SUPERVISOR", SUPERVISOR));
    let options = FractionOptions {
        policy: FractionPolicy::Mps,
        gpus: vec![GPU.to_owned()],
        time_slicing: TimeSlicing::Strict,
        mps: MpsPlace { pipes, control },
        ..FractionOptions::default()
    };
    (folder, options)
}

/// Written by another process: a program that this one still writes to could not be started.
fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let mut write = Command::new("sh");
    write.args(["-c", "printf '#!/bin/sh\n%s' \"$1\" >\"$0\" && chmod 755 \"$0\""]);
    assert!(write.arg(&path).arg(text).status().expect("started").success());
    path
}

fn half(bench: &Bench, script: &str) -> RunSpec {
    let device = Device {
        index: 0,
        uuid: GPU.to_owned(),
        simulated: false,
        millis: 500,
        memory_bytes: 16 << 30,
        memory: Bounds::of(8 << 30),
    };
    RunSpec { devices: vec![device], ..bench.script(script) }
}

#[tokio::test]
async fn half_a_gpu_is_a_limit_of_mps_and_starts_only_where_a_program_sees_it() {
    let (folder, options) = machine();
    let pipes = options.mps.pipes.clone();
    let program = folder.path().join("program");
    for separation in [None, Some(Separation::default())] {
        let bench = Bench::with_fractions(&program, separation, options.clone());
        let kept = bench.engine().capabilities().fractions.installed;
        assert_eq!((kept.level, kept.mechanism), (Enforcement::Cooperative, Mechanism::Mps));
        let mut spec = half(&bench, "env | grep -e CUDA_MPS_ -e CUDA_VIS | sort; echo goes on");
        // A variable of the workload has no effect.
        spec.env.insert("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT".to_owned(), "0=99G".to_owned());
        let text = run(&bench, spec).await;
        let expected = format!(
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50\nCUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M\n\
             CUDA_MPS_PIPE_DIRECTORY={}\nCUDA_VISIBLE_DEVICES={GPU}\ngoes on\n",
            pipes.display()
        );
        assert_eq!(text, expected);
        fs::write(pipes.join("lost"), "").expect("written");
        let lost = half(&bench, "echo started");
        let key = lost.key;
        bench.engine().start(lost).await.expect("prepared");
        match end(&*bench.engine(), key).await {
            Exit::NotKept(why) => {
                assert!(why.starts_with("16384 MiB of the GPU are free"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        fs::remove_file(pipes.join("lost")).expect("removed");
    }
}

#[tokio::test]
async fn a_daemon_that_is_gone_starts_no_part_and_leaves_whole_gpus_alone() {
    let (folder, options) = machine();
    let bench = Bench::with_fractions(&folder.path().join("program"), None, options.clone());
    fs::remove_file(options.mps.pipes.join("control")).expect("removed");
    let refused = bench.engine().start(half(&bench, "true")).await.expect_err("a part");
    let why = refused.to_string();
    assert!(
        why.contains("would not be kept") && why.contains("nvidia-cuda-mps-control -d"),
        "{why}"
    );
    let mut whole = half(&bench, "env | grep CUDA_MPS_");
    whole.devices[0].millis = 1000;
    assert_eq!(run(&bench, whole).await, "CUDA_MPS_PIPE_DIRECTORY=/dev/null\n", "no MPS");
}
