//! The oldest C library that programs with a part of a GPU may have: glibc 2.17 of 2012, which is
//! in a sysroot that a pinned package ships for cross-compiling. Its own loader runs the program
//! here.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{MIB, Machine, compile, prints};

const PACKAGE: &str = "@napi-rs/cross-toolchain-x64-target-x86_64@1.0.0";
const ARCHIVE: &str = "package/x86_64-unknown-linux-gnu.tar.xz";

/// Parts of the sysroot that the test uses: its libraries, and files to compile and link programs
/// with.
const PARTS: [&str; 9] = [
    "lib64",
    "lib/*.so*",
    "usr/lib64",
    "usr/include/*",
    "usr/lib/crt*.o",
    "usr/lib/libc.so",
    "usr/lib/libdl.so",
    "usr/lib/libpthread.so",
    "usr/lib/lib*_nonshared.a",
];

/// Folder with the old sysroot; `None` if the package is not available here.
fn root() -> Option<PathBuf> {
    match fixture::shared("glibc-2.17", || fetch().map(|folder| folder.display().to_string())) {
        Ok(folder) => Some(folder.into()),
        Err(why) => skip::missing(&format!("no {PACKAGE}: {why}")),
    }
}

fn fetch() -> Result<PathBuf, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("glibc-2.17");
    if folder.join("lib/ld-2.17.so").exists() {
        return Ok(folder);
    }
    let aside = folder.with_extension(std::process::id().to_string());
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(&aside).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        let why = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(why())
        }
    };
    std::fs::create_dir_all(&aside).map_err(|error| error.to_string())?;
    let retries = ["--fetch-retries=1", "--fetch-timeout=60000"];
    let file = run("npm", &["pack", "--silent", retries[0], retries[1], PACKAGE])?;
    run("tar", &["-xzf", &file, ARCHIVE])?;
    let parts = PARTS.map(|part| format!("./x86_64-unknown-linux-gnu/sysroot/{part}"));
    let mut words = vec!["-xJf", ARCHIVE, "--strip-components=3", "--wildcards"];
    words.extend(parts.iter().map(String::as_str));
    run("tar", &words)?;
    run("rm", &["-r", &file, "package"])?;
    // Another test program may have been faster.
    let moved = std::fs::rename(&aside, &folder);
    if moved.is_err() && !folder.exists() {
        return Err(format!("{} cannot be made", folder.display()));
    }
    Ok(folder)
}

/// The program for the old root.
fn program(root: &Path, how: &str) -> PathBuf {
    let libraries = root.join("lib");
    // The compiler looks in the places of its own system first, unless these come before them.
    let options = [
        format!("--sysroot={}", root.display()),
        format!("-B{}", root.join("usr/lib").display()),
        format!("-L{}", root.join("usr/lib").display()),
        format!("-L{}", libraries.display()),
        format!("-Wl,--dynamic-linker={}", libraries.join("ld-2.17.so").display()),
        format!("-Wl,-rpath,{}", libraries.display()),
    ];
    let mut options: Vec<_> = options.iter().map(String::as_str).collect();
    let linked = how == "plt";
    options.extend(linked.then_some("-DLINKED"));
    compile("cc", if linked { "old-linked" } else { "old" }, &options)
}

#[test]
fn the_limit_holds_with_the_oldest_c_library() {
    let Some(root) = root() else { return };
    let machine = Machine::new();
    let steps = "libc init context:0 info alloc:3796M alloc:1 free async:3797M nvml";
    let limited = "libc glibc 2.17, init 0, context 0, info 0 3796 of 4096, alloc 0, alloc 2, free 0, \
                   async 2, nvml 0 4096 3796 300, nvml2 0 4096 0 3796 300, nvml2 wrong 25";
    for how in ["plt", "dlsym", "dlvsym", "address", "old", "threads", "deepbind"] {
        let program = program(&root, how);
        let as_program = |command: &Command| {
            let mut own = Command::new(&program);
            own.args(command.get_args()).env_clear();
            own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            prints(&mut own)
        };
        let run = machine.run(how, 4096 * MIB);
        assert_eq!(as_program(&run.with_proxies(how, steps)), limited, "{how}, proxies");
        if how != "deepbind" {
            assert_eq!(as_program(&run.command(how, steps)), limited, "{how}, preload");
        }
    }
}
