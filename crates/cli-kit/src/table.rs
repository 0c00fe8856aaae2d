//! The two table layouts of the `runai` command line: tab-stopped columns (v1) and padded columns
//! over a rule (v2). Owns alignment and nothing else; cells arrive as text.

/// Maximum width of prose.
const LINE_CHARS_MAX: usize = 80;

/// A line of prose, broken if it is too long; further lines are indented by four more.
#[must_use]
pub fn wrapped(line: &str) -> String {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let rooms = (LINE_CHARS_MAX.saturating_sub(indent), LINE_CHARS_MAX.saturating_sub(indent + 4));
    let further = format!("\n{}", " ".repeat(indent + 4));
    format!("{}{}", " ".repeat(indent), lines(text, rooms, LongWords::Kept).join(&further))
}

/// The lines of a text of this width; a longer word has a line of its own.
#[must_use]
pub fn filled(text: &str, columns: usize) -> Vec<String> {
    lines(text, (columns, columns), LongWords::Kept)
}

/// Treatment of words that are longer than a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LongWords {
    /// Whole, so that addresses and commands can be copied.
    Kept,
    /// Broken, so that columns stay aligned.
    Broken,
}

/// A text in lines, broken between words; `first` and `further` are the characters of the first
/// line and of each other.
fn lines(text: &str, (first, further): (usize, usize), long: LongWords) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let room = if lines.len() > 1 { further } else { first };
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
        while long == LongWords::Broken
            && let Some(line) = lines.last_mut()
            && let Some((end, _)) = line.char_indices().nth(further)
        {
            let rest = line.split_off(end);
            lines.push(rest);
        }
    }
    lines
}

/// Minimum distance of columns.
const GAP: usize = 2;

/// Minimum width of a cell that is cut short.
const CELL_CHARS_MIN: usize = 8;

/// Minimum width of a last column that is broken.
const LAST_CHARS_MIN: usize = 20;

/// Rows under a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Row>,
    /// True if the titles are not printed.
    headless: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    cells: Vec<String>,
    /// Sentences below the row.
    notes: Vec<String>,
}

impl Row {
    /// The row, broken into as many rows as one of its cells needs.
    fn broken(mut self, column: usize, room: usize) -> Vec<Self> {
        let Some(cell) = self.cells.get_mut(column).filter(|cell| width(cell) > room) else {
            return vec![self];
        };
        let mut lines = lines(cell, (room, room), LongWords::Broken).into_iter();
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

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(header: &[&str]) -> Self {
        let header = header.iter().map(ToString::to_string).collect();
        Self { header, rows: Vec::new(), headless: false }
    }

    /// Adds a column after the others, with a cell for each row.
    pub fn column_of(&mut self, title: &str, cells: impl Iterator<Item = String>) {
        self.header.push(title.to_owned());
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.cells.push(one_line(cell));
        }
    }

    /// The titles of the columns.
    #[must_use]
    pub fn titles(&self) -> &[String] {
        &self.header
    }

    /// The cells of a column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = String> {
        self.rows.iter().map(move |row| row.cells.get(column).cloned().unwrap_or_default())
    }

    /// Leaves the titles out.
    #[must_use]
    pub fn headless(mut self) -> Self {
        self.headless = true;
        self
    }

    /// Limits the lines to this many characters: drops the columns of `drop_first`, in this order,
    /// then cuts the widest cells short. Unchanged without a limit.
    #[must_use]
    pub fn fitted(mut self, columns: Option<usize>, drop_first: &[&str]) -> Self {
        let Some(most) = columns else { return self };
        let mut titles = drop_first.iter();
        while self.line_chars() > most
            && let Some(title) = titles.next()
        {
            if let Some(column) = self.header.iter().position(|known| known == title) {
                self.header.remove(column);
                let with = self.rows.iter_mut().filter(|row| row.cells.len() > column);
                with.for_each(|row| drop(row.cells.remove(column)));
            }
        }
        while self.line_chars() > most {
            let widths = self.widths();
            let Some((column, widest)) = widths.iter().enumerate().max_by_key(|(_, width)| **width)
            else {
                return self;
            };
            let room = widest.saturating_sub(self.line_chars() - most).max(CELL_CHARS_MIN);
            if room >= *widest {
                return self;
            }
            let cells = self.rows.iter_mut().filter_map(|row| row.cells.get_mut(column));
            cells.chain(self.header.get_mut(column)).for_each(|cell| cut_short(cell, room));
        }
        self
    }

    /// Width of its lines.
    fn line_chars(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// Adds a row; missing cells are empty.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.cells(cells.into_iter());
    }

    /// Adds a row with any number of cells.
    pub fn cells(&mut self, cells: impl Iterator<Item = String>) {
        let cells = cells.map(one_line).collect();
        self.rows.push(Row { cells, notes: Vec::new() });
    }

    /// Adds a sentence about the last row, printed below it, indented, in as many lines as it
    /// needs.
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
        self.render(Some(self.line_chars()))
    }

    /// Limits the lines to this many characters by breaking the last column. Unchanged without a
    /// limit, or if the other columns leave too little room.
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
        let title = |cell: &String| if self.headless { 0 } else { width(cell) };
        let mut widths: Vec<usize> = self.header.iter().map(title).collect();
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
        if !self.headless {
            push_line(&mut out, &self.header, &widths);
        }
        if let Some(rule) = rule.filter(|_| !self.headless) {
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

/// A table of v1 with groups of columns: the name of a group stands above its first column, and `│`
/// is a column of its own between them.
#[derive(Debug)]
pub struct Grouped(Table);

impl Grouped {
    /// An empty table, with the name of each group and its columns.
    #[must_use]
    pub fn new(groups: &[(&str, &[&str])]) -> Self {
        let own = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let above = groups.iter().map(|(name, columns)| {
            let mut above = vec![String::new(); columns.len()];
            above[0] = (*name).to_owned();
            above
        });
        let mut table = Self(Table { header: joined(above), rows: Vec::new(), headless: false });
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

    /// Limits the lines to this many characters: drops the columns of the first group named in
    /// `drop_first`, in this order, then the last groups.
    #[must_use]
    pub fn fitted(mut self, columns: Option<usize>, drop_first: &[&str]) -> Self {
        let Some(most) = columns else { return self };
        let mut titles = drop_first.iter();
        while self.0.line_chars() > most {
            let named = titles
                .next()
                .and_then(|title| self.0.rows.first()?.cells.iter().position(|cell| cell == title));
            let end = match named {
                Some(column) => column..column + 1,
                None => match self.0.header.iter().rposition(|cell| cell == "│") {
                    Some(group) => group..self.0.header.len(),
                    None => return self,
                },
            };
            self.0.header.drain(end.clone());
            for row in &mut self.0.rows {
                row.cells.drain(end.start.min(row.cells.len())..end.end.min(row.cells.len()));
            }
        }
        self
    }

    /// Leaves the titles out.
    #[must_use]
    pub fn headless(mut self) -> Self {
        // The titles of the columns and the rules are rows.
        self.0.rows.drain(..2.min(self.0.rows.len()));
        Self(self.0.headless())
    }

    /// Width of its lines.
    #[must_use]
    pub fn line_chars(&self) -> usize {
        self.0.line_chars()
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

/// Cuts a cell to this many characters, the last of which marks the cut.
fn cut_short(cell: &mut String, room: usize) {
    if width(cell) > room {
        *cell = cell.chars().take(room.saturating_sub(1)).chain(['…']).collect();
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// Replaces control characters by spaces, so that a cell never breaks its row, nor the terminal.
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

/// A time in the past for people: `5 min ago`.
#[must_use]
pub fn ago(elapsed_ms: u64) -> String {
    let seconds = elapsed_ms / 1000;
    let (count, unit) = match seconds {
        0 => return "just now".to_owned(),
        1..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        86_400..172_800 => (1, "day"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{count} {unit} ago")
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
    fn a_table_fits_by_dropping_columns_and_then_by_cutting_cells() {
        let mut table = Table::new(&["NAME", "IMAGE", "STATUS", "USER"]);
        let row = ["training-with-a-long-name", "gcr.io/run-ai-demo/quickstart", "Running", "ann"];
        table.row(row.map(str::to_owned));
        let lines = |most| table.clone().fitted(most, &["IMAGE", "USER", "NONE"]).plain();
        assert!(lines(Some(80)).contains("quickstart"), "it fits");
        assert_eq!(
            lines(Some(45)),
            "NAME                       STATUS   USER\ntraining-with-a-long-name  Running  ann\n"
        );
        assert_eq!(lines(Some(22)), "NAME           STATUS\ntraining-wit…  Running\n");
        assert_eq!(
            lines(Some(3)),
            "NAME      STATUS\ntrainin…  Running\n",
            "readable all the same"
        );
        assert_eq!(lines(None), table.plain());
        assert_eq!(table.headless().ruled().lines().count(), 1);
    }

    #[test]
    fn a_grouped_table_fits_by_dropping_columns_and_its_last_groups() {
        let mut table =
            Grouped::new(&[("", &["NAME", "USER"]), ("GPU", &["USED"]), ("CPU", &["USED"])]);
        table.row([["job", "ann"].map(str::to_owned).to_vec(), vec!["1".into()], vec!["2".into()]]);
        let last = |table: Grouped| table.plain().lines().last().map(str::to_owned);
        assert_eq!(table.line_chars(), 28);
        let table = table.fitted(Some(27), &["USER"]);
        assert_eq!(table.line_chars(), 22);
        let table = table.fitted(Some(21), &["USER"]);
        assert_eq!(last(table).as_deref(), Some("job   │  1"));
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
    fn moments_are_told_in_the_largest_unit() {
        let ms = [999, 59_999, 300_000, 7_200_000, 100_000_000, 172_800_000];
        let told = ["just now", "59 s ago", "5 min ago", "2 h ago", "1 day ago", "2 days ago"];
        assert_eq!(ms.map(ago), told);
    }

    #[test]
    fn two_decimals_are_cut_not_rounded_up() {
        assert_eq!(two_decimals(2000), "2.00");
        assert_eq!(two_decimals(500), "0.50");
        assert_eq!(two_decimals(1999), "1.99");
    }
}
