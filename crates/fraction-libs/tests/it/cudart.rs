//! NVIDIA's own runtime library, shared and static, on the simulated driver. It looks up some 450
//! functions through the libraries of a run, and then asks for tables that are not published: there
//! the simulated driver ends, with the same error as without a limit. So this shows that its
//! lookups break nothing and lift nothing; the rest needs a GPU (`make gpu-check`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{MIB, Machine, prints};

/// A runtime library that a wheel has, pinned.
struct Runtime {
    wheel: &'static str,
    /// Where the wheel is unpacked, and where the libraries are in it.
    folder: &'static str,
    inside: &'static str,
    shared: &'static str,
    linked: &'static [&'static str],
    version: u32,
}

/// The newest of CUDA 12 and of those that were looked at.
static RUNTIMES: [Runtime; 2] = [
    Runtime {
        wheel: "nvidia-cuda-runtime-cu12==12.9.79",
        folder: "cudart-12.9.79",
        inside: "nvidia/cuda_runtime/lib",
        shared: "libcudart.so.12",
        linked: &["libcudart_static.a", "libculibos.a"],
        version: 12090,
    },
    Runtime {
        wheel: "nvidia-cuda-runtime==13.5.37",
        folder: "cudart-13.5.37",
        inside: "nvidia/cu13/lib",
        shared: "libcudart.so.13",
        linked: &["libcudart_static.a"],
        version: 13050,
    },
];

impl Runtime {
    /// Folder of the runtime library; `None` if the wheel is not available here.
    fn libraries(&self) -> Option<PathBuf> {
        match fixture::shared(self.folder, || self.fetch().map(|it| it.display().to_string())) {
            Ok(folder) => Some(folder.into()),
            Err(why) => skip::missing(&format!("no {}: {why}", self.wheel)),
        }
    }

    fn fetch(&self) -> Result<PathBuf, String> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(self.folder);
        let found = folder.join(self.inside);
        if found.join(self.shared).exists() {
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
        let download = ["pip", "download", "--no-deps", "--quiet", "--timeout", "20"];
        run(&[&download[..], &["--retries", "1", self.wheel]].concat())?;
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
    fn program(&self, libraries: &Path, is_static: bool) -> PathBuf {
        let name = format!("{}-{}", self.folder, if is_static { "static" } else { "shared" });
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("programs");
        std::fs::create_dir_all(&folder).unwrap();
        let (program, aside) =
            (folder.join(&name), folder.join(format!("{name}-{}", std::process::id())));
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-Wall", "-Werror", "-o"]).arg(&aside);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cudart.c"));
        if is_static {
            command.arg("-DSTATIC").args(self.linked.iter().map(|name| libraries.join(name)));
        }
        let output = command.args(["-ldl", "-lpthread", "-lrt"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::rename(aside, &program).unwrap();
        program
    }
}

#[test]
fn the_real_runtime_finds_its_functions_and_no_way_around_the_limit() {
    let machine = Machine::new();
    for runtime in &RUNTIMES {
        let Some(libraries) = runtime.libraries() else { continue };
        for is_static in [false, true] {
            let program = runtime.program(&libraries, is_static);
            let shared = (!is_static).then(|| libraries.join(runtime.shared));
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
            let version = format!("version 0 {}, devices ", runtime.version);
            assert!(runtime_says.starts_with(&version), "{free}");
            let run = machine.run(&format!("{}-{is_static}", runtime.version), 4096 * MIB);
            for limited in [run.command("dlsym", ""), run.with_proxies("dlsym", "")] {
                let limited = as_program(limited);
                assert_eq!(limited, format!("{runtime_says}, total 0 0 4096"), "{is_static}");
            }
        }
    }
}
