//! What it costs to build the product from nothing. Owns: cold builds in folders of their own, and
//! their time. Does not know what is built.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::line;

/// Ticks of `/proc` a second; the same on every architecture of Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Builds what `make install` builds, then `runai` alone.
pub(super) fn run() -> Result<()> {
    let all = ["--package", "elastane-cli", "--bins"];
    let (wall, cpu) = cold(&all)?;
    line("cold build, wall", wall / 60.0, "min", Some(8.0))?;
    line("cold build, CPU", cpu, "s", Some(900.0))?;
    let runai = ["--package", "elastane-cli", "--no-default-features", "--bin", "runai"];
    let (wall, cpu) = cold(&runai)?;
    line("cold build of runai alone, wall", wall / 60.0, "min", Some(3.0))?;
    line("cold build of runai alone, CPU", cpu, "s", None)
}

/// Seconds on the clock and of CPU time for a build into an empty folder.
fn cold(what: &[&str]) -> Result<(f64, f64)> {
    let folder = std::env::temp_dir().join(format!("elastane-build-{}", std::process::id()));
    let (since, before) = (Instant::now(), children_cpu_s()?);
    let built = Command::new("cargo")
        .args(["build", "--locked", "--quiet", "--release", "--target-dir"])
        .arg(&folder)
        .args(what)
        .stdin(Stdio::null())
        .status();
    let (wall, cpu) = (since.elapsed().as_secs_f64(), children_cpu_s()? - before);
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    ensure!(built.context("failed to start cargo")?.success(), "cargo build {what:?} failed");
    Ok((wall, cpu))
}

/// CPU time of all children that have ended, and of theirs (`cutime`, `cstime` of proc(5)).
fn children_cpu_s() -> Result<f64> {
    cpu_ticks(Path::new("/proc/self/stat"), [13, 14]).map(|ticks| ticks / TICKS_PER_SECOND)
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
        assert!((cpu_ticks(&file, [13, 14]).unwrap() - 340.0).abs() < f64::EPSILON);
        fs::remove_file(&file).unwrap();
    }
}
