//! Lines of styled text that a terminal shows for the bytes that a program prints. Owns: the few
//! control sequences that our programs use; another one is an error, so that no picture is wrong.

use anyhow::{Context as _, Result, bail};

use super::COLUMNS;

/// Style of text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// 0 to 7, and 8 to 15 for the bright ones, as terminals number them.
    pub(crate) colour: Option<u8>,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
}

/// A line, as characters with their styles.
pub(crate) type Line = Vec<(char, Style)>;

/// The lines of an output. A line longer than the terminal continues in the next.
pub(crate) fn read(printed: &str) -> Result<Vec<Line>> {
    let mut screen = Screen { lines: vec![Vec::new()], column: 0, style: Style::default() };
    let mut rest = printed.chars();
    while let Some(next) = rest.next() {
        match next {
            '\n' => {
                screen.lines.push(Vec::new());
                screen.column = 0;
            }
            '\r' => screen.column = 0,
            '\u{1b}' => screen.sequence(&mut rest)?,
            control if control.is_control() => bail!("it prints the control character {control:?}"),
            shown => screen.put(shown),
        }
    }
    let mut lines = screen.lines;
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    Ok(lines)
}

struct Screen {
    lines: Vec<Line>,
    column: usize,
    style: Style,
}

impl Screen {
    fn line(&mut self) -> &mut Line {
        if self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    fn put(&mut self, shown: char) {
        if self.column == usize::from(COLUMNS) {
            self.lines.push(Vec::new());
            self.column = 0;
        }
        let (column, cell) = (self.column, (shown, self.style));
        let line = self.line();
        if line.len() <= column {
            line.resize(column + 1, (' ', Style::default()));
        }
        line[column] = cell;
        self.column += 1;
    }

    /// Reads the rest of an escape sequence: `[`, numbers, and a letter for their meaning.
    fn sequence(&mut self, rest: &mut std::str::Chars<'_>) -> Result<()> {
        let mut text = String::new();
        for next in rest.by_ref() {
            text.push(next);
            if next != '[' && ('@'..='~').contains(&next) {
                break;
            }
        }
        let numbers = text.strip_prefix('[').context("it prints an unknown escape")?;
        if let Some(styles) = numbers.strip_suffix('m') {
            return styles.split(';').try_for_each(|style| self.restyle(style));
        }
        match numbers {
            "K" | "0K" => {
                let column = self.column;
                self.line().truncate(column);
            }
            "2K" => self.line().clear(),
            // The cursor is hidden and shown.
            "?25l" | "?25h" => {}
            _ => bail!("it prints the control sequence {text:?}"),
        }
        Ok(())
    }

    fn restyle(&mut self, number: &str) -> Result<()> {
        let number: u8 = match number {
            "" => 0,
            number => number.parse().with_context(|| format!("style {number:?}"))?,
        };
        match number {
            0 => self.style = Style::default(),
            1 => self.style.bold = true,
            2 => self.style.dim = true,
            22 => (self.style.bold, self.style.dim) = (false, false),
            30..=37 => self.style.colour = Some(number - 30),
            39 => self.style.colour = None,
            90..=97 => self.style.colour = Some(number - 90 + 8),
            _ => bail!("it prints text in the style {number}"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(printed: &str) -> Vec<String> {
        let lines = read(printed).unwrap();
        lines.iter().map(|line| line.iter().map(|(shown, _)| shown).collect()).collect()
    }

    #[test]
    fn lines_are_what_a_terminal_shows() {
        for (printed, lines) in [
            ("one\r\ntwo\r\n", vec!["one", "two"]),
            ("Waiting...\r\u{1b}[Kdone\r\n", vec!["done"]),
            ("abc\rX\r\n\r\nend", vec!["Xbc", "", "end"]),
            ("", vec![]),
        ] {
            assert_eq!(texts(printed), lines, "{printed:?}");
        }
        let long = "x".repeat(81);
        assert_eq!(texts(&long), [&long[..80], "x"]);
    }

    #[test]
    fn colours_end_where_they_are_ended() {
        let line = &read("\u{1b}[1;32mRunning\u{1b}[0m 1").unwrap()[0];
        let green = Style { colour: Some(2), bold: true, dim: false };
        assert_eq!(
            (line[0], line[6], line[7]),
            (('R', green), ('g', green), (' ', Style::default()))
        );
        assert_eq!(read("\u{1b}[91mx").unwrap()[0][0].1.colour, Some(9));
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        for (printed, fault) in [
            ("\u{1b}[2J", "\"[2J\""),
            ("a\u{7}", "control character"),
            ("\u{1b}[7mx", "style 7"),
            ("\u{1b}]0;title", "unknown escape"),
        ] {
            let said = format!("{:#}", read(printed).unwrap_err());
            assert!(said.contains(fault), "{said}");
        }
    }
}
