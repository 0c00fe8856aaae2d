//! Printed report of a run. Owns: tables and the closing line. Does not know about: how anything
//! was measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;

use super::machine::Measured;
use super::records::Records;
use super::seconds;

/// Number of the slowest tests that are named.
const SLOWEST: usize = 20;

/// Prints programs by CPU time, the slowest tests, the skipped ones with their reasons, and, last,
/// how many there were.
///
/// # Errors
/// Standard output is closed.
pub(super) fn print(records: &Records, compiled: &Measured, ran: &Measured) -> Result<()> {
    let mut text = String::new();
    by_binary(&mut text, records)?;
    slowest(&mut text, records)?;
    writeln!(text, "\ncompiling  {}\nrunning    {}", seconds(compiled), seconds(ran))?;
    if !records.unsteady.is_empty() {
        writeln!(text, "\npassed only when tried again, each a defect:")?;
    }
    for test in &records.unsteady {
        writeln!(text, "  {test}")?;
    }
    if !records.skipped.is_empty() {
        writeln!(text, "\nskipped:")?;
    }
    for line in &records.skipped {
        writeln!(text, "  {line}")?;
    }
    let (passed, failed) = (records.passed(), records.totals.failed);
    write!(text, "\n{passed} passed, {failed} failed, {} skipped", records.skipped.len())?;
    say(&text)
}

/// Prints a line.
///
/// # Errors
/// Standard output is closed.
pub(super) fn say(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

#[derive(Default)]
struct Sum {
    tests: usize,
    wall_s: f64,
    cpu_s: f64,
}

fn by_binary(text: &mut String, records: &Records) -> Result<()> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for record in &records.all {
        let sum = sums.entry(&record.binary).or_default();
        sum.tests += 1;
        sum.wall_s += record.wall_s;
        sum.cpu_s += record.cpu_s;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(_, one), (_, other)| other.cpu_s.total_cmp(&one.cpu_s));
    writeln!(text, "\n{:<32} {:>6} {:>9} {:>9}", "test program", "tests", "wall s", "CPU s")?;
    for (name, sum) in sums {
        writeln!(text, "{name:<32} {:>6} {:>9.1} {:>9.1}", sum.tests, sum.wall_s, sum.cpu_s)?;
    }
    Ok(())
}

fn slowest(text: &mut String, records: &Records) -> Result<()> {
    let mut tests: Vec<_> = records.all.iter().filter(|record| record.test.is_some()).collect();
    tests.sort_by(|one, other| other.wall_s.total_cmp(&one.wall_s));
    if tests.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n{:>9} {:>9}  slowest tests", "wall s", "CPU s")?;
    for record in tests.into_iter().take(SLOWEST) {
        let test = record.test.as_deref().unwrap_or_default();
        writeln!(text, "{:>9.1} {:>9.1}  {} {test}", record.wall_s, record.cpu_s, record.binary)?;
    }
    Ok(())
}
