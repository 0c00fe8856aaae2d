//! Cost of building the product from nothing. Owns: cold builds in folders of their own, their
//! time, and the crates that take most of it. Does not know about: the built programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::line;
use crate::cargo;
use crate::suite::machine::{Measured, measured};

/// Ticks of `/proc` a second; the same on every architecture of Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Programs that `make install` installs.
pub(crate) const PROGRAMS: [&str; 3] = ["elastane", "runai", "elasticdl"];
/// Number of crates that are named; the others are one line.
const NAMED: usize = 30;

/// Seconds by crate, most first.
type Crates = Vec<(String, f64)>;

/// Result of building the product.
pub(crate) struct Product {
    pub took: Measured,
    crates: Crates,
    /// Programs with their sizes.
    pub megabytes: Vec<(&'static str, f64)>,
}

/// Builds what `make install` builds, then `runai` alone.
pub(super) fn run() -> Result<()> {
    let Product { took, crates, .. } = product()?;
    line("cold build, wall", took.wall_s / 60.0, "min", Some(8.0))?;
    line("cold build, CPU", took.cpu_s, "s", Some(900.0))?;
    print(&crates)?;
    let runai = ["--package", "elastane-cli", "--no-default-features", "--bin", "runai"];
    let cold = Cold::new()?;
    let took = cold.build(&runai)?;
    line("cold build of runai alone, wall", took.wall_s / 60.0, "min", Some(3.0))?;
    line("cold build of runai alone, CPU", took.cpu_s, "s", Some(180.0))?;
    print(&cold.crates()?)
}

/// Builds the product into an empty folder.
///
/// # Errors
/// It does not build.
pub(crate) fn product() -> Result<Product> {
    let cold = Cold::new()?;
    let took = cold.build(&["--package", "elastane-cli", "--bins"])?;
    let sizes = PROGRAMS.iter().map(|name| Ok((*name, cold.megabytes(name)?)));
    Ok(Product { took, crates: cold.crates()?, megabytes: sizes.collect::<Result<_>>()? })
}

/// Builds the fixed set of crates that measures the current speed of this machine.
///
/// # Errors
/// It does not build.
pub(crate) fn yardstick(root: &Path) -> Result<Measured> {
    let manifest = root.join("xtask/yardstick/Cargo.toml");
    Cold::new()?.build(&["--manifest-path", &manifest.display().to_string()])
}

/// An empty folder to build into; gone when this is dropped.
struct Cold {
    folder: PathBuf,
}

impl Cold {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("elastane-build-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder })
    }

    fn build(&self, what: &[&str]) -> Result<Measured> {
        let mut command = cargo();
        command.args(["build", "--locked", "--quiet", "--release", "--timings", "--target-dir"]);
        command.arg(&self.folder).args(what).stdin(Stdio::null());
        // A person builds with the usual compiler.
        command.env_remove("RUSTC_WORKSPACE_WRAPPER");
        let (built, took) = measured(|| command.status())?;
        ensure!(built.context("failed to start cargo")?.success(), "cargo build {what:?} failed");
        Ok(took)
    }

    fn crates(&self) -> Result<Crates> {
        by_crate(&fs::read_to_string(self.folder.join("cargo-timings/cargo-timing.html"))?)
    }

    fn megabytes(&self, program: &str) -> Result<f64> {
        megabytes(&self.folder.join("release").join(program))
    }
}

impl Drop for Cold {
    fn drop(&mut self) {
        // The folder may be gone already.
        let _deleted = fs::remove_dir_all(&self.folder);
    }
}

/// The size of a file.
pub(super) fn megabytes(path: &Path) -> Result<f64> {
    let bytes = fs::metadata(path).with_context(|| path.display().to_string())?.len();
    #[expect(clippy::cast_precision_loss, reason = "a file is far below 2^53 bytes")]
    let megabytes = bytes as f64 / 1e6;
    Ok(megabytes)
}

/// A unit of work of cargo, as its report has it.
#[derive(Deserialize)]
struct Unit {
    name: String,
    /// Seconds on the clock; about CPU time, where each core has one.
    duration: f64,
}

/// Seconds by crate, from the page that `cargo build --timings` writes.
fn by_crate(report: &str) -> Result<Crates> {
    let (_, data) = report.split_once("UNIT_DATA = ").context("no unit in the report of cargo")?;
    let mut units = serde_json::Deserializer::from_str(data).into_iter::<Vec<Unit>>();
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for unit in units.next().context("an empty report of cargo")?? {
        *sums.entry(unit.name).or_default() += unit.duration;
    }
    let mut crates: Crates = sums.into_iter().collect();
    crates.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok(crates)
}

fn print(crates: &Crates) -> Result<()> {
    let (named, others) = crates.split_at(NAMED.min(crates.len()));
    let mut out = std::io::stdout().lock();
    for (name, seconds) in named {
        writeln!(out, "  {name:<42} {seconds:>7.1} s")?;
    }
    let rest: f64 = others.iter().map(|(_, seconds)| seconds).sum();
    writeln!(out, "  {:<42} {rest:>7.1} s", format!("{} others", others.len()))?;
    Ok(())
}

/// CPU seconds of a process itself (`utime`, `stime`).
pub(super) fn process_cpu_s(pid: u32) -> Result<f64> {
    let stat = format!("/proc/{pid}/stat");
    cpu_ticks(Path::new(&stat), [11, 12]).map(|ticks| ticks / TICKS_PER_SECOND)
}

/// The sum of two fields, counted from the state, which is the first after the name.
fn cpu_ticks(stat: &Path, fields: [usize; 2]) -> Result<f64> {
    let text = fs::read_to_string(stat)?;
    // The name of the program is in brackets and may hold anything.
    let (_, rest) = text.rsplit_once(") ").context("no program name in stat")?;
    let values: Vec<_> = rest.split_whitespace().collect();
    fields
        .iter()
        .map(|field| Ok(values.get(*field).context("too few fields in stat")?.parse::<f64>()?))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_proc_are_counted_after_the_name() {
        let file = std::env::temp_dir().join(format!("elastane-stat-{}", std::process::id()));
        let name = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 100 20 300 40 11 12";
        fs::write(&file, name).unwrap();
        assert!((cpu_ticks(&file, [11, 12]).unwrap() - 120.0).abs() < f64::EPSILON);
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn seconds_are_added_up_by_crate() {
        let report = "<script>const UNIT_DATA = [{\"name\":\"a\",\"duration\":1.5,\"mode\":\"todo\"},\
            {\"name\":\"b\",\"duration\":4.0},{\"name\":\"a\",\"duration\":2.0}];\nconst X = 1;";
        let expected = [("b".to_owned(), 4.0), ("a".to_owned(), 3.5)];
        assert_eq!(by_crate(report).unwrap(), expected);
    }
}
