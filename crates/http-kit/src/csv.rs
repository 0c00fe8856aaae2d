//! Files for spreadsheets (RFC 4180). Owns: that no cell is read as a formula.

/// A line of cells.
pub fn csv_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    format!("{}\n", cells.join(","))
}

/// A cell. Text that a spreadsheet would take for a formula is marked as text.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let mark = if formula { "'" } else { "" };
    format!("\"{mark}{}\"", cell.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_text_and_never_formulas() {
        for (cell, want) in [
            ("ann", "\"ann\""),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("=cmd()", "\"'=cmd()\""),
            ("-1", "\"'-1\""),
            ("@x", "\"'@x\""),
            ("a\nb", "\"a\nb\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(cell), want, "{cell}");
        }
    }
}
