//! A text in the live view: the details of a workload, its output, or the list of keys. Owns: which
//! foreign output is shown, the folding of lines, and the visible rows.

use std::borrow::Cow;
use std::collections::VecDeque;

use ratatui::style::Style;
use ratatui::text::Span;

/// Maximum number of output lines that are kept.
const LINES_MAX: usize = 5000;
/// Maximum number of bytes that are kept, as shown.
const KEPT_BYTES_MAX: usize = 2 << 20;
/// Bytes after which a line without end is broken.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Columns from one tab stop to the next.
const TAB: usize = 8;

/// Topic of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Reasons for the state of a workload, its pods, and its events.
    Details,
    /// Output of a workload.
    Logs,
    /// List of keys.
    Keys,
}

/// Position in a text: the line, and the row within the folded line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: usize,
    row: usize,
}

/// A text, and its scroll position.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) topic: Topic,
    /// Id of the workload.
    pub(super) id: String,
    /// Name of the workload.
    pub(super) name: String,
    lines: VecDeque<String>,
    kept_bytes: usize,
    /// Bytes of the unfinished line after the last.
    rest: Vec<u8>,
    /// First visible row; `None` = follows the end.
    top: Option<Place>,
}

impl Text {
    /// A text without content yet.
    pub(super) fn about(topic: Topic, id: String, name: String) -> Self {
        let top = (topic != Topic::Logs).then(Place::default);
        let (lines, rest) = (VecDeque::new(), Vec::new());
        Self { topic, id, name, lines, kept_bytes: 0, rest, top }
    }

    /// Adds output.
    pub(super) fn add(&mut self, written: &[u8]) {
        for byte in written {
            if *byte != b'\n' {
                self.rest.push(*byte);
            }
            if *byte == b'\n' || self.rest.len() >= LINE_BYTES_MAX {
                let line = std::mem::take(&mut self.rest);
                self.keep(shown(&line));
            }
        }
    }

    fn keep(&mut self, line: String) {
        self.kept_bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some(gone) = self.lines.pop_front() else { return };
            self.kept_bytes -= gone.len();
            self.top = self.top.map(|top| match top.line {
                0 => Place::default(),
                line => Place { line: line - 1, ..top },
            });
        }
    }

    /// Visible rows for this size.
    pub(super) fn seen(&self, width: usize, height: usize) -> Vec<String> {
        let (top, mut seen) = (self.top(width, height), Vec::new());
        for at in top.line..self.count() {
            if seen.len() >= height {
                break;
            }
            let (line, skipped) = (self.line(at), if at == top.line { top.row } else { 0 });
            seen.extend(fold(&line, width).into_iter().skip(skipped).map(str::to_owned));
        }
        seen.truncate(height);
        seen
    }

    /// Scrolls down, or up with a negative number; at the end of an output it follows the end.
    pub(super) fn go(&mut self, rows: isize, width: usize, height: usize) {
        let (top, end) = (self.top(width, height), self.end(width, height));
        let top = match usize::try_from(rows) {
            Ok(rows) => self.later(top, rows, width).min(end),
            Err(_) => self.earlier(top, rows.unsigned_abs(), width),
        };
        self.top = (top < end || self.topic != Topic::Logs).then_some(top);
    }

    /// First visible row. A line has a different number of rows in another width.
    fn top(&self, width: usize, height: usize) -> Place {
        let end = self.end(width, height);
        let Some(Place { line, row }) = self.top else { return end };
        end.min(Place { line, row: row.min(self.rows(line, width) - 1) })
    }

    /// First row of the last page.
    fn end(&self, width: usize, height: usize) -> Place {
        self.earlier(Place { line: self.count(), row: 0 }, height, width)
    }

    fn later(&self, mut from: Place, rows: usize, width: usize) -> Place {
        from.row = from.row.saturating_add(rows);
        while from.line < self.count() {
            let own = self.rows(from.line, width);
            if from.row < own {
                return from;
            }
            from = Place { line: from.line + 1, row: from.row - own };
        }
        Place { row: 0, ..from }
    }

    fn earlier(&self, mut from: Place, rows: usize, width: usize) -> Place {
        let mut left = rows;
        while left > from.row {
            if from.line == 0 {
                return Place::default();
            }
            left -= from.row;
            from = Place { line: from.line - 1, row: self.rows(from.line - 1, width) };
        }
        Place { row: from.row - left, ..from }
    }

    /// Number of lines, with the unfinished one.
    fn count(&self) -> usize {
        self.lines.len() + usize::from(!self.rest.is_empty())
    }

    fn line(&self, at: usize) -> Cow<'_, str> {
        self.lines.get(at).map_or_else(|| shown(&self.rest).into(), |line| line.as_str().into())
    }

    /// Number of rows of a line, at least one.
    fn rows(&self, line: usize, width: usize) -> usize {
        fold(&self.line(line), width).len()
    }
}

/// Width of a text on a terminal, in columns.
pub(super) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// A line in pieces that fit the width, broken between words if possible.
fn fold(line: &str, width: usize) -> Vec<&str> {
    let (mut rest, mut pieces) = (line, Vec::new());
    while let Some(room) = fits(rest, width) {
        let blank_after = usize::from(rest[room..].starts_with(' '));
        let blank = rest[..room + blank_after].rfind(' ').filter(|at| *at > 0);
        pieces.push(&rest[..blank.unwrap_or(room)]);
        rest = &rest[blank.map_or(room, |at| at + 1)..];
    }
    pieces.push(rest);
    pieces
}

/// Number of bytes of a text that fit the width, at least its first character; `None` if all of it
/// fits.
fn fits(text: &str, width: usize) -> Option<usize> {
    // No character has more columns than bytes.
    if text.len() <= width {
        return None;
    }
    let (mut bytes, mut used) = (0, 0);
    for one in Span::raw(text).styled_graphemes(Style::new()) {
        used += columns(one.symbol);
        if used > width && bytes > 0 {
            return Some(bytes);
        }
        bytes += one.symbol.len();
    }
    None
}

/// A line as a terminal would show it: without colours, and with only the last text where it was
/// overwritten. Nothing in it moves the cursor.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\r');
    let last = line.rsplit('\r').next().unwrap_or_default();
    let mut out = String::new();
    // Position after the last tab stop.
    let mut stop = 0;
    let mut chars = last.chars();
    while let Some(char) = chars.next() {
        match char {
            // A sequence `ESC [ … letter`; only the first character of other sequences is dropped.
            '\u{1b}' if chars.as_str().starts_with('[') => {
                chars.next();
                let _letter = chars.find(|char| ('\u{40}'..='\u{7e}').contains(char));
            }
            '\t' => {
                let blanks = TAB - columns(&out[stop..]) % TAB;
                out.push_str(&" ".repeat(blanks));
                stop = out.len();
            }
            control if control.is_control() => {}
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(topic: Topic, written: &str) -> Text {
        let mut text = Text::about(topic, "id".to_owned(), "a1".to_owned());
        text.add(written.as_bytes());
        text
    }

    #[test]
    fn what_a_terminal_would_leave_is_shown_and_nothing_steers_it() {
        for (written, left) in [
            ("a\tb", "a       b"),
            ("\u{1b}[1;32mgreen\u{1b}[0m", "green"),
            ("10%\r55%\r100%\r", "100%"),
            ("\u{1b}]0;title\u{7}x", "]0;titlex"),
            ("\u{1b}[", ""),
            ("größer", "größer"),
            ("日本\tx\t|", "日本    x       |"),
        ] {
            assert_eq!(shown(written.as_bytes()), left, "{written:?}");
        }
    }

    #[test]
    fn logs_stay_at_the_end_unless_somebody_goes_back() {
        let mut logs = text(Topic::Logs, "1\n2\n3\n4\n5");
        assert_eq!(logs.seen(10, 2), ["4", "5"]);
        logs.add(b"0\n");
        assert_eq!(logs.seen(10, 2), ["4", "50"]);
        logs.go(-2, 10, 2);
        logs.add(b"6\n");
        assert_eq!(logs.seen(10, 2), ["2", "3"]);
        logs.go(9, 10, 2);
        logs.add(b"7\n");
        assert_eq!(logs.seen(10, 2), ["6", "7"], "at the end again");
    }

    #[test]
    fn details_begin_at_the_top_and_long_lines_are_folded() {
        assert_eq!(fold("one two three", 8), ["one two", "three"]);
        let mut details = text(Topic::Details, "abcdef\n\ng\n");
        assert_eq!(details.seen(4, 2), ["abcd", "ef"]);
        details.go(1, 4, 2);
        assert_eq!(details.seen(4, 2), ["ef", ""]);
        details.go(-9, 4, 2);
        assert_eq!(details.seen(4, 2), ["abcd", "ef"]);
    }

    #[test]
    fn wide_characters_are_folded_by_the_columns_they_have() {
        assert_eq!(fold("日本語", 4), ["日本", "語"]);
        assert_eq!(fold("日本語", 5), ["日本", "語"]);
        assert_eq!(fold("日 本語です", 5), ["日", "本語", "です"]);
        assert_eq!(fold("日本", 1), ["日", "本"], "it goes on all the same");
        assert_eq!(fold("e\u{301}e\u{301}x", 2), ["e\u{301}e\u{301}", "x"]);
    }

    #[test]
    fn of_much_output_only_the_last_is_kept() {
        let mut logs = text(Topic::Logs, &"x\n".repeat(LINES_MAX));
        logs.add(&vec![b'y'; 3 * LINE_BYTES_MAX]);
        assert_eq!(logs.lines.len(), LINES_MAX);
        assert!(logs.rest.len() < LINE_BYTES_MAX);
        // A tab or an invalid byte is longer when shown than when written.
        for wide in [b'\t', 0xff] {
            logs.add(&vec![wide; 64 * LINE_BYTES_MAX]);
            let kept: usize = logs.lines.iter().map(String::len).sum();
            assert!(kept <= KEPT_BYTES_MAX && kept == logs.kept_bytes, "{kept}");
        }
    }

    #[test]
    fn what_is_being_read_stays_where_it_is() {
        let line = |number: usize| format!("{number:04} one two\n");
        let written: String = (0..LINES_MAX).map(line).collect();
        let mut logs = text(Topic::Logs, &written);
        logs.go(-8, 5, 2);
        assert_eq!(logs.seen(5, 2), ["two", "4997"], "each line has three rows");
        for number in 0..90 {
            logs.add(line(number).as_bytes());
        }
        assert_eq!(logs.seen(5, 2), ["two", "4997"]);
        assert_eq!(logs.seen(20, 1), ["4996 one two"], "where the screen is wider");
        logs.go(isize::MIN, 5, 2);
        assert_eq!(logs.seen(5, 2), ["0090", "one"], "the first that is kept");
        logs.go(isize::MAX, 5, 2);
        assert_eq!(logs.seen(5, 2), ["one", "two"]);
    }
}
