//! The two table layouts of the `runai` command line: tab-stopped columns (v1) and padded columns
//! over a rule (v2). Owns alignment and nothing else; cells arrive as text.

/// Sentences are broken at this column.
const LINE_CHARS_MAX: usize = 80;

/// A line of prose, broken where it is too long; what follows is indented by four more.
#[must_use]
pub fn wrapped(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let mut out = " ".repeat(indent);
    let mut column = indent;
    for (at, word) in line.split_whitespace().enumerate() {
        let chars = width(word);
        if at > 0 && column + 1 + chars > LINE_CHARS_MAX {
            out.push('\n');
            out.push_str(&" ".repeat(indent + 4));
            column = indent + 4;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += chars;
    }
    out
}

/// Columns are at least this far apart.
const GAP: usize = 2;

/// A last column that can only be narrower than this is not broken.
const LAST_CHARS_MIN: usize = 20;

/// Rows under a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    cells: Vec<String>,
    /// Sentences that stand under it.
    notes: Vec<String>,
}

impl Row {
    /// The same in as many rows as one of its cells takes.
    fn broken(mut self, column: usize, room: usize) -> Vec<Self> {
        let Some(cell) = self.cells.get_mut(column).filter(|cell| width(cell) > room) else {
            return vec![self];
        };
        let mut lines = lines_of(cell, room).into_iter();
        *cell = lines.next().unwrap_or_default();
        let further = |line| {
            let mut cells = vec![String::new(); column];
            cells.push(line);
            Self { cells, notes: Vec::new() }
        };
        let mut further: Vec<Self> = lines.map(further).collect();
        if let Some(last) = further.last_mut() {
            last.notes = std::mem::take(&mut self.notes);
        }
        std::iter::once(self).chain(further).collect()
    }
}

/// A text in lines of at most so many characters, broken between words where that can be.
fn lines_of(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        while let Some((end, _)) = line.char_indices().nth(room) {
            let rest = line.split_off(end);
            lines.push(std::mem::replace(&mut line, rest));
        }
    }
    lines.push(line);
    lines
}

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.cells(cells.into_iter());
    }

    /// Adds a row of as many cells as there are.
    pub fn cells(&mut self, cells: impl Iterator<Item = String>) {
        let cells = cells.map(one_line).collect();
        self.rows.push(Row { cells, notes: Vec::new() });
    }

    /// Adds a sentence about the last row. It stands under it, indented, in as many lines as it takes.
    pub fn note(&mut self, sentence: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.notes.push(one_line(sentence.to_owned()));
        }
    }

    /// v1: header, rows, no rule.
    #[must_use]
    pub fn plain(&self) -> String {
        self.render(None)
    }

    /// v2: header, a rule of `─` as wide as the widest line, rows.
    #[must_use]
    pub fn ruled(&self) -> String {
        let widths = self.widths();
        let gaps = GAP * widths.len().saturating_sub(1);
        self.render(Some(widths.iter().sum::<usize>() + gaps))
    }

    /// The same in lines of at most so many characters, its last column broken where it is too wide.
    /// It stays as it is where that is not said, or where the other columns leave no room.
    #[must_use]
    pub fn within(mut self, columns: Option<usize>) -> Self {
        let widths = self.widths();
        let Some((_, others)) = widths.split_last() else { return self };
        let taken: usize = others.iter().map(|width| width + GAP).sum();
        let room = columns.and_then(|columns| columns.checked_sub(taken));
        let Some(room) = room.filter(|room| *room >= LAST_CHARS_MIN) else { return self };
        self.rows = self.rows.into_iter().flat_map(|row| row.broken(others.len(), room)).collect();
        self
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|cell| width(cell)).collect();
        for row in &self.rows {
            for (column, cell) in row.cells.iter().enumerate().take(widths.len()) {
                widths[column] = widths[column].max(width(cell));
            }
        }
        widths
    }

    fn render(&self, rule: Option<usize>) -> String {
        let widths = self.widths();
        let mut out = String::new();
        push_line(&mut out, &self.header, &widths);
        if let Some(rule) = rule {
            out.push_str(&"─".repeat(rule));
            out.push('\n');
        }
        for row in &self.rows {
            push_line(&mut out, &row.cells, &widths);
            for note in &row.notes {
                out.push_str(&wrapped(&format!("    {note}")));
                out.push('\n');
            }
        }
        out
    }
}

/// A table of v1 whose columns belong together in groups: their names stand above the first column of
/// each, and `│` is a column of its own between them.
#[derive(Debug)]
pub struct Grouped(Table);

impl Grouped {
    /// An empty one, with the name of each group and its columns.
    #[must_use]
    pub fn new(groups: &[(&str, &[&str])]) -> Self {
        let own = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let above = groups.iter().map(|(name, columns)| {
            let mut above = vec![String::new(); columns.len()];
            above[0] = (*name).to_owned();
            above
        });
        let mut table = Self(Table { header: joined(above), rows: Vec::new() });
        table.row(groups.iter().map(|(_, columns)| own(columns)));
        let rule = |title: &&str| "─".repeat(width(title));
        table.row(groups.iter().map(|(_, columns)| columns.iter().map(rule).collect()));
        table
    }

    /// Adds a row.
    pub fn row(&mut self, groups: impl IntoIterator<Item = Vec<String>>) {
        self.0.cells(joined(groups.into_iter()).into_iter());
    }

    /// As text.
    #[must_use]
    pub fn plain(&self) -> String {
        self.0.plain()
    }
}

fn joined(groups: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    groups.collect::<Vec<_>>().join(&"│".to_owned())
}

fn push_line(out: &mut String, cells: &[String], widths: &[usize]) {
    let mut line = String::new();
    for (cell, width_max) in cells.iter().zip(widths) {
        // Padding is by characters, as `width` counts.
        line.push_str(&format!("{cell:<pad$}", pad = width_max + GAP));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// A cell never breaks its row, nor the terminal: control characters become spaces.
fn one_line(cell: String) -> String {
    if cell.contains(char::is_control) { cell.replace(char::is_control, " ") } else { cell }
}

/// One unit, rounded down: `5s`, `7m`, `3h`, `4d`, `1y`.
#[must_use]
pub fn age(elapsed_ms: u64) -> String {
    let seconds = elapsed_ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..31_536_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// GPUs with two decimals, as v2 prints them: `0.50`, `2.00`.
#[must_use]
pub fn two_decimals(millis: u64) -> String {
    format!("{}.{:02}", millis / 1000, millis % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["Workload", "Type", "GPU Alloc."]);
        table.row(["a2".into(), "Training".into(), "2.00".into()]);
        table.row(["größer\nals".into(), String::new(), "0.50".into()]);
        table
    }

    #[test]
    fn plain_columns_are_two_apart_and_end_without_blanks() {
        expect![[r#"
            Workload    Type      GPU Alloc.
            a2          Training  2.00
            größer als            0.50
        "#]]
        .assert_eq(&sample().plain());
    }

    #[test]
    fn the_rule_is_as_wide_as_the_table() {
        expect![[r#"
            Workload    Type      GPU Alloc.
            ────────────────────────────────
            a2          Training  2.00
            größer als            0.50
        "#]]
        .assert_eq(&sample().ruled());
    }

    #[test]
    fn the_last_column_is_broken_where_it_has_room_to() {
        let mut table = Table::new(&["Kind/Name", "Message"]);
        table.row([
            "Pod/a-0-1".into(),
            "[Failed] ended with 1 in /a/very/long/path/of/a/file".into(),
        ]);
        table.row(["Pod/a-0-2".into(), "[Started]".into()]);
        expect![[r#"
            Kind/Name  Message
            ───────────────────────────────
            Pod/a-0-1  [Failed] ended with
                       1 in
                       /a/very/long/path/of
                       /a/file
            Pod/a-0-2  [Started]
        "#]]
        .assert_eq(&table.clone().within(Some(31)).ruled());
        for columns in [None, Some(5), Some(30), Some(400)] {
            assert_eq!(table.clone().within(columns), table, "{columns:?}");
        }
    }

    #[test]
    fn notes_stand_under_their_row_and_never_run_over_a_line() {
        let mut table = Table::new(&["Step", "Where"]);
        table.row(["1".into(), "n1".into()]);
        table.note("P103 a short one");
        table.note(
            "E101 stopped so that team-b/b1 gets its quota: team-a holds 2 GPUs (quota 1, fair share 1); \
             team-b holds 0 GPUs (quota 1, fair share 1) and asks for 1",
        );
        table.row(["2".into(), "n2".into()]);
        expect![[r#"
            Step  Where
            ───────────
            1     n1
                P103 a short one
                E101 stopped so that team-b/b1 gets its quota: team-a holds 2 GPUs (quota 1,
                    fair share 1); team-b holds 0 GPUs (quota 1, fair share 1) and asks for
                    1
            2     n2
        "#]]
        .assert_eq(&table.ruled());
        assert!(table.ruled().lines().all(|line| width(line) <= LINE_CHARS_MAX));
    }

    #[test]
    fn ages_have_one_unit_and_round_down() {
        let day_ms = 86_400_000;
        for (elapsed_ms, text) in [
            (0, "0s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (3_599_999, "59m"),
            (3_600_000, "1h"),
            (day_ms - 1, "23h"),
            (4 * day_ms, "4d"),
            (364 * day_ms, "364d"),
            (365 * day_ms, "1y"),
        ] {
            assert_eq!(age(elapsed_ms), text);
        }
    }

    #[test]
    fn two_decimals_are_cut_not_rounded_up() {
        assert_eq!(two_decimals(2000), "2.00");
        assert_eq!(two_decimals(500), "0.50");
        assert_eq!(two_decimals(1999), "1.99");
    }
}
