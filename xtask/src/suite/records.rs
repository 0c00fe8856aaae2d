//! Records that the test programs left in the folder of a run. Owns: its files. Does not know
//! about: how they are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The file with a [`Record`] in each line.
pub(super) const FILE: &str = "times";
/// The file of the crate `skip`: a test and the reason in each line.
const SKIPPED: &str = "skipped";

/// One test, or one program with all its tests where these were not run one by one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub binary: String,
    pub test: Option<String>,
    pub wall_s: f64,
    pub cpu_s: f64,
    pub passed: bool,
}

/// Numbers of tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub passed: usize,
    pub failed: usize,
}

impl Totals {
    /// Adds the last line of a test program of Rust's harness, if it is one.
    pub(super) fn add_line(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let numbers = counts.split([' ', ';', '.']).filter_map(|word| word.parse::<usize>().ok());
        let numbers: Vec<_> = numbers.collect();
        if let [passed, failed, ..] = numbers[..] {
            self.passed += passed;
            self.failed += failed;
        }
    }
}

/// All records of a run.
#[derive(Debug)]
pub(super) struct Records {
    pub all: Vec<Record>,
    pub totals: Totals,
    /// Tests that failed and passed when they were tried again: each is a defect.
    pub unsteady: Vec<String>,
    /// A line for each test that was skipped, and for each reason.
    pub skipped: Vec<String>,
}

impl Records {
    /// Tests that did what they are for: the harness counts skipped ones as passed.
    pub(super) fn passed(&self) -> usize {
        let name = |line: &String| line.split(' ').next().map(str::to_owned);
        let tests: BTreeSet<_> = self.skipped.iter().filter_map(name).collect();
        self.totals.passed.saturating_sub(tests.len())
    }
}

/// Reads the folder.
///
/// # Errors
/// A file cannot be read, or is not what a runner writes.
pub(super) fn read(folder: &Path) -> Result<Records> {
    let lines = |name: &str| match fs::read_to_string(folder.join(name)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect::<Vec<_>>()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| name.to_owned()),
    };
    let all: Vec<Record> = lines(FILE)?
        .iter()
        .map(|line| serde_json::from_str(line).with_context(|| format!("{FILE}: {line}")))
        .collect::<Result<_>>()?;
    let (totals, unsteady) = outcomes(&all);
    let mut skipped = lines(SKIPPED)?;
    skipped.sort();
    Ok(Records { all, totals, unsteady, skipped })
}

/// Number of tests that passed at last, and names of those that had failed before.
fn outcomes(all: &[Record]) -> (Totals, Vec<String>) {
    let mut attempts: BTreeMap<(&str, Option<&str>), Vec<bool>> = BTreeMap::new();
    for record in all {
        let test = (&*record.binary, record.test.as_deref());
        attempts.entry(test).or_default().push(record.passed);
    }
    let passed = attempts.values().filter(|attempts| attempts.last() == Some(&true)).count();
    let mixed = attempts
        .iter()
        .filter(|(_, attempts)| attempts.last() == Some(&true) && attempts.contains(&false));
    let name =
        |(binary, test): &(&str, Option<&str>)| format!("{binary} {}", test.unwrap_or("all"));
    let unsteady = mixed.map(|(test, _)| name(test)).collect();
    (Totals { passed, failed: attempts.len() - passed }, unsteady)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_of_programs_are_added_up() {
        let mut totals = Totals::default();
        totals.add_line(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
        );
        totals.add_line("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured");
        totals.add_line("test a::result: ok");
        assert_eq!(totals, Totals { passed: 15, failed: 2 });
    }

    #[test]
    fn a_test_with_two_reasons_is_one_that_did_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let record = |test: &str| Record {
            binary: "store".to_owned(),
            test: Some(test.to_owned()),
            wall_s: 1.0,
            cpu_s: 0.5,
            passed: true,
        };
        let lines =
            [record("a"), record("b"), record("c")].map(|it| serde_json::to_string(&it).unwrap());
        fs::write(folder.path().join(FILE), lines.join("\n")).unwrap();
        fs::write(folder.path().join(SKIPPED), "a (no npm)\na (no pip)\n").unwrap();
        let records = read(folder.path()).unwrap();
        assert_eq!((records.passed(), records.skipped.len()), (2, 2));
        assert_eq!(read(&folder.path().join("none")).unwrap().passed(), 0);
    }

    #[test]
    fn a_test_that_passes_the_second_time_is_named() {
        let record = |test: &str, passed| Record {
            binary: "store".to_owned(),
            test: Some(test.to_owned()),
            wall_s: 1.0,
            cpu_s: 0.5,
            passed,
        };
        let all = [record("a", false), record("b", true), record("c", false), record("a", true)];
        let expected = (Totals { passed: 2, failed: 1 }, vec!["store a".to_owned()]);
        assert_eq!(outcomes(&all), expected);
    }
}
