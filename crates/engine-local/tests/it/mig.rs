//! Runs whose part of a GPU is a MIG instance. There is no GPU here: a program in the place of the
//! driver's answers as it does, and what is tried is what a run gets, and when it starts.
#![cfg(target_arch = "x86_64")]

use std::fs;
use std::path::Path;
use std::process::Command;

use engine::{Bounds, Device, Enforcement, Exit, Mechanism, RunSpec};
use engine_conformance::Fixture as _;
use engine_fractions::{FractionOptions, FractionPolicy};
use engine_local::Separation;
use tempfile::TempDir;

use crate::bench::{Bench, SUPERVISOR};
use crate::local::{end, run};

/// Program of the server; in the place of `gpu-check`, a program that sees its instance, or the
/// whole GPU if a file says that the instance is gone.
const PROGRAM: &str = r#"[ "$1" = gpu-check ] || exec SUPERVISOR "$@"
case $CUDA_VISIBLE_DEVICES in MIG-*) total=8388608000;; *) total=17179869184;; esac
[ -e FOLDER/gone ] && total=17179869184
case $2 in
  --json)
    echo '[{"name":"G","total":'$total',"free":null,"allocations":['
    echo '{"bytes":16777216,"answer":0},{"bytes":'${4%B}',"answer":2}]}]';;
  --most=*)
    most=${2#--most=}
    [ $total -le ${most%B} ] && exit
    echo "it sees $total bytes" >&2
    exit 1;;
esac
"#;

const GPU: &str = "GPU-11111111-2222-3333-4444-555555555555";

/// A machine whose GPU has one instance, of half of it. Every account may enter its folder.
fn machine() -> (TempDir, FractionOptions) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = PROGRAM.replace("SUPERVISOR", SUPERVISOR);
    let text = text.replace("FOLDER", &folder.path().display().to_string());
    let mut write = Command::new("sh");
    write.args(["-c", "printf '#!/bin/sh\n%s' \"$1\" >\"$0\" && chmod -R u+x,a+rX \"${0%/*}\""]);
    let written = write.arg(folder.path().join("program")).arg(text).status();
    assert!(written.expect("started").success());
    let (uuid, profile) = ("MIG-half".to_owned(), "3g.8gb".to_owned());
    let instance = gpu::MigInstance { uuid, profile, memory_bytes: 8000 << 20 };
    let options = FractionOptions {
        policy: FractionPolicy::Mig,
        instances: [(GPU.to_owned(), vec![instance])].into(),
        ..FractionOptions::default()
    };
    (folder, options)
}

fn half(bench: &Bench, script: &str) -> RunSpec {
    let device = Device {
        index: 0,
        uuid: "MIG-half".to_owned(),
        simulated: false,
        millis: 500,
        memory_bytes: 8000 << 20,
        memory: Bounds::of(8000 << 20),
    };
    RunSpec { devices: vec![device], ..bench.script(script) }
}

fn open(folder: &Path, separation: Option<Separation>, options: &FractionOptions) -> Bench {
    Bench::with_fractions(&folder.join("program"), separation, options.clone())
}

#[tokio::test]
async fn a_run_has_its_instance_whatever_its_workload_says_and_only_if_a_program_sees_it() {
    let (folder, options) = machine();
    for separation in [None, Some(Separation::default())] {
        let bench = open(folder.path(), separation, &options);
        let kept = bench.engine().capabilities().fractions.installed;
        assert_eq!((kept.level, kept.mechanism), (Enforcement::Cooperative, Mechanism::Mig));
        let mut spec = half(&bench, "env | grep _VISIBLE_ | sort");
        spec.env.insert("CUDA_VISIBLE_DEVICES".to_owned(), "MIG-other".to_owned());
        // One after another: each has it again.
        for _ in 0..2 {
            let spec = RunSpec { key: half(&bench, "").key, ..spec.clone() };
            let text = run(&bench, spec).await;
            assert_eq!(text, "CUDA_VISIBLE_DEVICES=MIG-half\nNVIDIA_VISIBLE_DEVICES=MIG-half\n");
        }
        fs::write(folder.path().join("gone"), "").expect("written");
        let lost = half(&bench, "echo started");
        let key = lost.key;
        bench.engine().start(lost).await.expect("prepared");
        match end(&*bench.engine(), key).await {
            Exit::NotKept(why) => assert!(why.starts_with("it sees 17179869184 bytes"), "{why}"),
            other => panic!("{other:?}"),
        }
        fs::remove_file(folder.path().join("gone")).expect("removed");
    }
}
