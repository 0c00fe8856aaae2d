//! The rules of the code base that no compiler knows. Owns: running them and reporting what broke.
//! Does not know about: how to repair anything.

mod circles;
mod codes;
mod layers;
mod links;
mod messages;
mod purity;
mod size;
mod text;
pub(crate) mod ui;
mod ui_built;
mod ui_imports;
mod walks;

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::tree::{self, Tree};
use layers::Packages;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    /// File, from the root.
    pub path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Description of the fault, and the rule.
    pub what: String,
}

impl Fault {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what } = self;
        match line {
            0 => write!(f, "{path}: {what}"),
            _ => write!(f, "{path}:{line}: {what}"),
        }
    }
}

/// Checks the repository at `root` and prints every fault.
///
/// # Errors
/// The repository cannot be read, or it has faults.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = tree::read(root)?;
    let packages = ask_cargo(root)?;
    let mut faults = check(&tree, &packages);
    faults.extend(ui_built::check(&ui_built::read(root)?));
    let mut out = std::io::stdout().lock();
    for fault in &faults {
        writeln!(out, "{fault}")?;
    }
    if !faults.is_empty() {
        bail!("{} broken rule(s); CONTRIBUTING.md has the reasons", faults.len());
    }
    writeln!(out, "tidy: {} files, {} packages, no fault", tree.len(), packages.len())?;
    Ok(())
}

/// Every fault, in the order of files.
fn check(tree: &Tree, packages: &Packages) -> Vec<Fault> {
    let mut faults = layers::check(packages);
    faults.extend(purity::check(tree, packages));
    faults.extend(size::check(tree));
    faults.extend(circles::check(tree));
    faults.extend(text::check(tree));
    faults.extend(codes::check(tree));
    faults.extend(links::check(tree));
    faults.extend(ui::check(tree));
    faults.extend(walks::check(tree));
    faults.extend(messages::check(tree));
    faults.sort();
    faults
}

fn ask_cargo(root: &Path) -> Result<Packages> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("failed to run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    layers::parse(&output.stdout)
}

#[cfg(test)]
mod tests;
