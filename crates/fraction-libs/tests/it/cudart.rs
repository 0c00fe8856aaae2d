//! NVIDIA's own runtime library, shared and static, on the simulated driver. It looks up some 450
//! functions through the libraries of a run, and then asks for tables that are not published: there
//! the simulated driver ends, with the same error as without a limit. So this shows that its lookups
//! break nothing and lift nothing; the rest needs a GPU (`make gpu-check`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{MIB, Machine, prints};

/// The newest of CUDA 12, pinned.
const WHEEL: &str = "nvidia-cuda-runtime-cu12==12.9.79";

/// The folder of the runtime library; none: the wheel cannot be had here.
fn runtime() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOLDER.get_or_init(fetch) {
        Ok(folder) => Some(folder),
        Err(why) => skip::missing(&format!("no {WHEEL}: {why}")),
    }
}

fn fetch() -> Result<PathBuf, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cudart-12.9.79");
    let found = folder.join("nvidia/cuda_runtime/lib");
    if found.join("libcudart.so.12").exists() {
        return Ok(found);
    }
    let aside = folder.with_extension(std::process::id().to_string());
    let run = |words: &[&str]| {
        let mut command = Command::new("python3");
        let output = command.arg("-m").args(words).current_dir(&aside).output();
        let output = output.map_err(|error| error.to_string())?;
        let why = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(why()) }
    };
    std::fs::create_dir_all(&aside).map_err(|error| error.to_string())?;
    run(&["pip", "download", "--no-deps", "--quiet", "--timeout", "20", "--retries", "1", WHEEL])?;
    let names = std::fs::read_dir(&aside).map_err(|error| error.to_string())?;
    let names = names.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let wheel = names.into_iter().find(|name| name.ends_with(".whl")).ok_or("no file came")?;
    run(&["zipfile", "-e", &wheel, "."])?;
    // Another test program may have been faster.
    let moved = std::fs::rename(&aside, &folder);
    if moved.is_err() && !found.exists() {
        return Err(format!("{} cannot be made", folder.display()));
    }
    Ok(found)
}

/// The program that uses it.
fn program(runtime: &Path, is_static: bool) -> PathBuf {
    let name = if is_static { "cudart-static" } else { "cudart-shared" };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (program, aside) =
        (folder.join(name), folder.join(format!("{name}-{}", std::process::id())));
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-Wall", "-Werror", "-o"]).arg(&aside);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cudart.c"));
    if is_static {
        command.arg("-DSTATIC").arg(runtime.join("libcudart_static.a"));
        command.arg(runtime.join("libculibos.a"));
    }
    let output = command.args(["-ldl", "-lpthread", "-lrt"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(aside, &program).unwrap();
    program
}

#[test]
fn the_real_runtime_finds_its_functions_and_no_way_around_the_limit() {
    let Some(runtime) = runtime() else { return };
    let machine = Machine::new();
    for is_static in [false, true] {
        let program = program(runtime, is_static);
        let shared = (!is_static).then(|| runtime.join("libcudart.so.12"));
        let as_program = |command: Command| {
            let mut own = Command::new(&program);
            own.args(&shared).env_clear();
            for (name, value) in command.get_envs() {
                own.env(name, value.unwrap_or_default());
            }
            prints(&mut own)
        };
        let free = as_program(machine.command("dlsym", ""));
        let (runtime_says, total) = free.rsplit_once(", total ").unwrap();
        assert_eq!(total, "0 0 8192");
        assert!(runtime_says.starts_with("version 0 12090, devices "), "{free}");
        let run = machine.run(if is_static { "static" } else { "shared" }, 4096 * MIB);
        for limited in [run.command("dlsym", ""), run.with_proxies("dlsym", "")] {
            let limited = as_program(limited);
            assert_eq!(limited, format!("{runtime_says}, total 0 0 4096"), "{is_static}");
        }
    }
}
