//! Builds the libraries of GPU fractions. Owns: how: always optimised, without unwinding, without
//! any other library, in every profile, so that tests have what is shipped. Does not know about:
//! what is in them.
//!
//! Cargo cannot build a library for C without `std` in a profile that unwinds, nor embed it in a
//! program on the stable toolchain. So the compiler that builds this crate is called directly; it
//! takes a second or two.

use std::env::{self, VarError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries to build: the file, the crate, the value of `elastane_library`, and the name that
/// programs load it by.
const LIBRARIES: [[&str; 4]; 5] = [
    ["preload.so", "fraction-hook", "preload", "libelastane-fraction.so"],
    ["proxy-cuda.so", "fraction-hook", "cuda", "libcuda.so.1"],
    ["proxy-nvml.so", "fraction-hook", "nvml", "libnvidia-ml.so.1"],
    ["simulated-cuda.so", "fraction-sim", "cuda", "libcuda.so.1"],
    ["simulated-nvml.so", "fraction-sim", "nvml", "libnvidia-ml.so.1"],
];

/// Bytes of the name that a proxy needs the real library by, which is written over later.
const NAME_BYTES: usize = 1000;

/// The tables for unwinding, which code of `core` brings along, are a sixth of a library in which
/// nothing unwinds; which compiler made it is written beside them.
const DISCARD: &str = "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.comment) } } INSERT AFTER .text;\n";

fn main() -> Result<(), String> {
    if variable("CARGO_CFG_TARGET_ARCH")? != "x86_64" || variable("CARGO_CFG_TARGET_OS")? != "linux"
    {
        return Ok(());
    }
    let crates = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(variable("OUT_DIR")?);
    for part in ["fraction-abi", "fraction-hook", "fraction-sim"] {
        println!("cargo::rerun-if-changed={}", crates.join(part).join("src").display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let abi = out.join("libfraction_abi.rlib");
    let mut command = compiler(&crates, "fraction-abi", "rlib", &abi)?;
    command.args(["--crate-name", "fraction_abi", "--cfg", "elastane_library"]);
    run(&mut command)?;
    let script = out.join("discard.ld");
    std::fs::write(&script, DISCARD).map_err(|error| error.to_string())?;
    let stub = out.join("stub.so");
    build_stub(&out, &stub)?;
    for [file, part, kind, soname] in LIBRARIES {
        let mut command = compiler(&crates, part, "cdylib", &out.join(file))?;
        command.args(["--crate-name", "library", "--cfg", "elastane_library"]);
        command.arg("--cfg").arg(format!("elastane_library=\"{kind}\""));
        command.arg("--extern").arg(format!("fraction_abi={}", abi.display()));
        command.args(["-C", "lto=fat", "-C", "strip=symbols", "-C", "default-linker-libraries=no"]);
        command.args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-Wl,--build-id=none"]);
        command.arg("-C").arg(format!("link-arg=-Wl,-soname,{soname}"));
        command.arg("-C").arg(format!("link-arg=-Wl,-T,{}", script.display()));
        command.args(["-C", "link-arg=-Wl,--no-eh-frame-hdr"]);
        // The library finds its own functions by the newer table. The older one has the number of
        // functions, for those that the simulated driver takes out.
        let hash = if part == "fraction-sim" { "both" } else { "gnu" };
        command.arg("-C").arg(format!("link-arg=-Wl,--hash-style={hash}"));
        if file.starts_with("proxy") {
            command.arg("-C").arg(format!("link-arg=-Wl,--no-as-needed,{}", stub.display()));
        }
        // `alloc` mentions unwinding, which never happens here.
        for unused in ["_Unwind_Resume", "rust_eh_personality"] {
            command.arg("-C").arg(format!("link-arg=-Wl,--defsym={unused}=0"));
        }
        run(&mut command)?;
    }
    Ok(())
}

/// A library without anything in it but a long name, for proxies to need.
fn build_stub(out: &Path, stub: &Path) -> Result<(), String> {
    let source = out.join("stub.rs");
    let text =
        "#![no_std]\n#[panic_handler]\nfn end(_: &core::panic::PanicInfo) -> ! { loop {} }\n";
    std::fs::write(&source, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(variable("RUSTC")?);
    command.arg(&source).arg("-o").arg(stub);
    command.args(["--edition", "2024", "--crate-type", "cdylib", "--target", &variable("TARGET")?]);
    command.args(["-C", "panic=abort", "-C", "default-linker-libraries=no"]);
    command.args(["-C", "link-arg=-nostdlib"]);
    command.arg("-C").arg(format!("link-arg=-Wl,-soname,{}", "@".repeat(NAME_BYTES)));
    run(&mut command)
}

fn compiler(crates: &Path, part: &str, kind: &str, output: &Path) -> Result<Command, String> {
    let mut command = Command::new(variable("RUSTC")?);
    command.arg(crates.join(part).join("src").join("lib.rs")).arg("-o").arg(output);
    command.args(["--edition", "2024", "--crate-type", kind, "--target", &variable("TARGET")?]);
    command.args(["-C", "opt-level=z", "-C", "codegen-units=1", "-C", "panic=abort"]);
    command.args(["-C", "force-unwind-tables=no", "-C", "debuginfo=0", "--cap-lints", "allow"]);
    command.arg("--remap-path-prefix").arg(format!("{}=crates", crates.display()));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg("-C").arg(format!("linker={linker}"));
    }
    Ok(command)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?} failed:\n{text}")) }
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error: VarError| format!("{name}: {error}"))
}
