//! The programs of a release. Owns: how they are built, and what they write about themselves:
//! manual pages and completion.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::libraries::{self, Linked};
use super::{run_command, text};

/// Shells that the packages have completion for.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Both programs, built.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) elastane: PathBuf,
    /// Needs no library of the machine.
    pub(crate) runai: PathBuf,
}

/// Hands over the completion of a program for each shell.
pub(super) fn completions(
    program: &Path,
    mut each: impl FnMut(&str, &str) -> Result<()>,
) -> Result<()> {
    for shell in SHELLS {
        each(shell, &text(Command::new(program).args(["completion", shell]))?)?;
    }
    Ok(())
}

/// True if `cargo run` sets this variable for the program that it runs.
fn is_of_cargo_run(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE" | "OUT_DIR")
}

/// Flags for a program that needs no library of the machine.
const STATIC: &str = "-Ctarget-feature=+crt-static";

impl Programs {
    /// Builds them. `runai` is linked with everything it needs, so that it runs on any machine.
    pub(super) fn build(source: &Path, profile: &str) -> Result<Self> {
        let host = text(Command::new("rustc").arg("-vV"))?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("`rustc -vV` names no host")?;
        let cargo = || {
            let mut cargo = Command::new("cargo");
            cargo.current_dir(source);
            // Cargo's variables about this program itself: build scripts would take them for a
            // change.
            let own = std::env::vars_os().map(|(name, _)| name);
            for name in own.filter(|name| is_of_cargo_run(&name.to_string_lossy())) {
                cargo.env_remove(name);
            }
            cargo.args(["build", "--locked", "--profile", profile, "--package", "elastane-cli"]);
            cargo
        };
        run_command(cargo().args(["--bin", "elastane"]))?;
        let mut runai = cargo();
        match std::env::var("RUSTFLAGS") {
            Ok(flags) => runai.env("RUSTFLAGS", format!("{flags} {STATIC}")),
            // Beside those of the repository, which the variable would replace.
            Err(_) => runai.arg(format!("--config=target.{host}.rustflags=['{STATIC}']")),
        };
        // With `--target` the flags do not apply to build scripts.
        runai.args(["--no-default-features", "--bin", "runai", "--target", host]);
        run_command(&mut runai)?;
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| source.join("target"), |dir| source.join(dir));
        let folder = if profile == "dev" { "debug" } else { profile };
        Self::of(target.join(folder).join("elastane"), target.join(host).join(folder).join("runai"))
    }

    /// Programs in a folder.
    pub(super) fn in_folder(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        Self::of(folder.join("elastane"), folder.join("runai"))
    }

    fn of(elastane: PathBuf, runai: PathBuf) -> Result<Self> {
        ensure!(
            libraries::of(&runai)? == Linked::Static,
            "{} needs libraries of the machine; build it with RUSTFLAGS=\"{STATIC}\"",
            runai.display()
        );
        Ok(Self { elastane, runai })
    }

    /// Writes the manual pages into a folder, compressed: those whose name begins with `prefix`.
    pub(super) fn manual(&self, folder: &Path, prefix: &str) -> Result<()> {
        run_command(Command::new(&self.elastane).arg("man").arg(folder))?;
        let mut pages = Vec::new();
        for page in fs::read_dir(folder)? {
            let page = page?;
            if page.file_name().to_string_lossy().starts_with(prefix) {
                pages.push(page.path());
            } else {
                fs::remove_file(page.path())?;
            }
        }
        ensure!(!pages.is_empty(), "`elastane man` wrote no page of {prefix}");
        run_command(Command::new("gzip").arg("-9n").args(pages))
    }
}
