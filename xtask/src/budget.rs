//! Budget of a build. Owns: comparing sizes and time with the table in CONTRIBUTING. Does not know
//! about: the causes of a number.
//!
//! Time is given as a multiple of the time of a fixed set of crates (`xtask/yardstick`), built
//! right before and after, so that a slow or busy machine fails no build.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::bench::build;
use crate::suite::machine::Measured;

const TABLE: &str = "CONTRIBUTING.md";
const COLD_BUILD: &str = "cold build";

/// Builds the product into an empty folder and compares what came with the budget.
///
/// # Errors
/// The table lacks a row, something does not build, or a number is above its budget.
pub(crate) fn run(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(TABLE)).context(TABLE)?;
    let before = build::yardstick(root)?;
    let product = build::product()?;
    let after = build::yardstick(root)?;

    let mut rows = vec![Row {
        what: COLD_BUILD.to_owned(),
        unit: "times the yardstick",
        measured: ratio(&product.took, &[before, after]),
    }];
    rows.extend(product.megabytes.iter().map(|(program, megabytes)| Row {
        what: format!("size of `{program}`"),
        unit: "MB",
        measured: *megabytes,
    }));
    let mut above = Vec::new();
    for row in &rows {
        let budget = budget(&text, &row.what)?;
        let verdict = if row.measured > budget { "above its budget" } else { "" };
        let Row { what, unit, measured } = row;
        writeln!(
            std::io::stdout(),
            "{what:<24} {measured:>6.1} of {budget:>5.1} {unit}  {verdict}"
        )?;
        above.extend((row.measured > budget).then_some(what.as_str()));
    }
    if !above.is_empty() {
        bail!(
            "above the budget in {TABLE}: {}; see `cargo xtask bench --only build`",
            above.join(", ")
        );
    }
    Ok(())
}

struct Row {
    what: String,
    unit: &'static str,
    measured: f64,
}

fn ratio(product: &Measured, yardsticks: &[Measured; 2]) -> f64 {
    product.cpu_s / (yardsticks.iter().map(|one| one.cpu_s).sum::<f64>() / 2.0)
}

/// Number in the second column of the table's row for `what`.
fn budget(text: &str, what: &str) -> Result<f64> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let row = text.lines().map(cells).find(|cells| cells.get(1).is_some_and(|cell| cell == what));
    let row = row.with_context(|| format!("{TABLE} has no budget for {what}"))?;
    let number = row.get(2).and_then(|cell| cell.split(' ').next());
    let number = number.and_then(|word| word.parse().ok());
    number.with_context(|| format!("{TABLE}: the budget of {what} begins with no number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::build::PROGRAMS;

    #[test]
    fn the_table_has_every_budget() {
        let text = fs::read_to_string(crate::root().join(TABLE)).unwrap();
        let sizes = PROGRAMS.map(|program| format!("size of `{program}`"));
        for what in sizes.iter().map(String::as_str).chain([COLD_BUILD]) {
            assert!(budget(&text, what).unwrap() > 0.0, "{what}");
        }
    }

    #[test]
    fn a_budget_is_the_number_in_its_row() {
        let text = "| what | budget |\n|---|---|\n| cold build | 12.5 times the yardstick |\n";
        assert!((budget(text, "cold build").unwrap() - 12.5).abs() < f64::EPSILON);
        assert!(budget(text, "size of `elastane`").is_err());
        assert!(budget("| cold build | none |", "cold build").is_err());
    }

    #[test]
    fn a_machine_half_as_fast_has_the_same_ratio() {
        let took = |cpu_s| Measured { wall_s: 0.0, cpu_s };
        let fast = ratio(&took(900.0), &[took(28.0), took(32.0)]);
        let slow = ratio(&took(1800.0), &[took(62.0), took(58.0)]);
        assert!((fast - 30.0).abs() < 1e-9 && (slow - 30.0).abs() < 1e-9);
    }
}
