//! A text that is read in the live view: the details of a workload, or what it writes. Owns: what of
//! others' output is shown, how lines are folded, and which of them are seen.

use std::collections::VecDeque;

/// Lines that are kept of what a workload writes.
const LINES_MAX: usize = 5000;
/// Of a line without end the first so many bytes are one.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Columns from one tab stop to the next.
const TAB: usize = 8;

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Why a workload is where it is, its pods, and what happened to it.
    Details,
    /// What it writes.
    Logs,
}

/// A text, and how far it is read.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) topic: Topic,
    /// Id of the workload.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    lines: VecDeque<String>,
    /// What came of the line after the last.
    rest: Vec<u8>,
    /// The first line that is seen; none to stay at the end.
    top: Option<usize>,
}

impl Text {
    /// One that is still to come.
    pub(super) fn about(topic: Topic, id: String, name: String) -> Self {
        let top = (topic == Topic::Details).then_some(0);
        Self { topic, id, name, lines: VecDeque::new(), rest: Vec::new(), top }
    }

    /// Adds what was written.
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
        self.lines.push_back(line);
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.top = self.top.map(|top| top.saturating_sub(1));
        }
    }

    /// The lines that are seen in so much room.
    pub(super) fn seen(&self, width: usize, height: usize) -> Vec<String> {
        let lines = self.folded(width);
        let end = lines.len().saturating_sub(height);
        let top = self.top.map_or(end, |top| top.min(end));
        lines.into_iter().skip(top).take(height).collect()
    }

    /// Goes so many lines on, or back; at the end it stays there.
    pub(super) fn go(&mut self, lines: isize, width: usize, height: usize) {
        let end = self.folded(width).len().saturating_sub(height);
        let top = self.top.map_or(end, |top| top.min(end)).saturating_add_signed(lines);
        self.top = (top < end || self.topic == Topic::Details).then_some(top.min(end));
    }

    fn folded(&self, width: usize) -> Vec<String> {
        let rest = (!self.rest.is_empty()).then(|| shown(&self.rest));
        self.lines.iter().chain(&rest).flat_map(|line| fold(line, width.max(1))).collect()
    }
}

/// A line in pieces that have room, broken between words where there are any.
fn fold(line: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let (mut rest, mut pieces) = (chars.as_slice(), Vec::new());
    while rest.len() > width {
        let blank = rest[..=width].iter().rposition(|char| *char == ' ').filter(|at| *at > 0);
        pieces.push(rest[..blank.unwrap_or(width)].iter().collect());
        rest = &rest[blank.map_or(width, |at| at + 1)..];
    }
    pieces.push(rest.iter().collect());
    pieces
}

/// A line as a terminal would leave it: without colours, and of what was written over only the last.
/// Nothing in it moves the cursor.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\r');
    let last = line.rsplit('\r').next().unwrap_or_default();
    let mut out = String::new();
    let mut column = 0;
    let mut chars = last.chars();
    while let Some(char) = chars.next() {
        match char {
            // A sequence `ESC [ … letter`; of others only the first character is dropped.
            '\u{1b}' if chars.as_str().starts_with('[') => {
                chars.next();
                let _letter = chars.find(|char| ('\u{40}'..='\u{7e}').contains(char));
            }
            '\t' => {
                let blanks = TAB - column % TAB;
                out.push_str(&" ".repeat(blanks));
                column += blanks;
            }
            control if control.is_control() => {}
            char => {
                out.push(char);
                column += 1;
            }
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
    fn of_much_output_only_the_last_is_kept() {
        let mut logs = text(Topic::Logs, &"x\n".repeat(LINES_MAX));
        logs.add(&vec![b'y'; 3 * LINE_BYTES_MAX]);
        assert_eq!(logs.lines.len(), LINES_MAX);
        assert!(logs.rest.len() < LINE_BYTES_MAX);
    }
}
