//! A picture of a terminal that plays scenes. Owns: when each line appears, and how it looks. Where
//! pictures do not move it shows the end.

use std::fmt::Write as _;

use super::screen::{Line, Style};
use super::{COLUMNS, ROWS, Scene};

/// Size of a character, and the margin around the text.
const WIDTH: f64 = 8.0;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Height of the bar above.
const BAR: f64 = 26.0;
/// Seconds for a typed character, before an output, and for reading a line of it.
const KEY_S: f64 = 0.035;
const ANSWER_S: f64 = 0.35;
const READ_S: f64 = 1.2;
const READ_LINE_S: f64 = 0.22;
const END_S: f64 = 3.0;

const BACKGROUND: &str = "#16181d";
const TEXT: &str = "#d5d9e0";
const COLOURS: [&str; 16] = [
    "#16181d", "#f07178", "#9ccc65", "#ffcb6b", "#82aaff", "#c792ea", "#89ddff", "#d5d9e0",
    "#6b7280", "#ff8b92", "#b5e08a", "#ffd98a", "#9cbcff", "#d4aaf0", "#a6e6ff", "#ffffff",
];

/// A command line or a line of an output.
struct Row {
    cells: Line,
    /// Time at which it appears; it is typed for `typing_s` then.
    at_s: f64,
    typing_s: f64,
}

/// The whole picture.
pub(super) fn draw(scenes: &[Scene]) -> String {
    let (rows, total_s) = schedule(scenes);
    let last = shift(rows.len());
    let mut style = String::new();
    let mut body = String::new();
    for (number, row) in rows.iter().enumerate() {
        let y = HEIGHT * place(number);
        let class = appears(&mut style, &rows, number, total_s);
        let _ = write!(body, "<g class=\"{class}\">");
        text(&mut body, &row.cells, y + HEIGHT * 0.76);
        if row.typing_s > 0.0 {
            cover(&mut style, &mut body, (number, row), y, total_s);
        }
        body.push_str("</g>\n");
    }
    let scroll = scroll(&rows, total_s);
    let (width, height) = (WIDTH * f64::from(COLUMNS), HEIGHT * f64::from(ROWS));
    let (full, high) = (width + 2.0 * MARGIN, height + BAR + MARGIN);
    let dots: String = ["#ff5f56", "#ffbd2e", "#27c93f"]
        .iter()
        .zip([18, 36, 54])
        .map(|(colour, x)| format!("<circle cx=\"{x}\" cy=\"14\" r=\"5\" fill=\"{colour}\"/>"))
        .collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {high}\" width=\"{full}\" \
         height=\"{high}\" role=\"img\">\n<title>A terminal: GPUs are lent to another project and \
         taken back, and a workload that waits says why</title>\n<style>\n\
         text{{font:13.3px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
         fill:{TEXT};white-space:pre}}\n.s{{transform:translateY({last}px);\
         animation:s {total_s:.1}s step-end infinite}}\n{scroll}{style}\
         @media (prefers-reduced-motion:reduce){{*{{animation:none!important}}}}\n</style>\n\
         <rect width=\"{full}\" height=\"{high}\" rx=\"9\" fill=\"{BACKGROUND}\"/>\n{dots}\n\
         <svg x=\"{MARGIN}\" y=\"{BAR}\" width=\"{width}\" height=\"{height}\">\
         <g class=\"s\">\n{body}</g></svg>\n</svg>\n"
    )
}

/// Every line of the session with its time, and how long the session is.
fn schedule(scenes: &[Scene]) -> (Vec<Row>, f64) {
    let (mut rows, mut now_s) = (Vec::new(), 0.3);
    for scene in scenes {
        let typed = format!("$ {}", scene.typed);
        let typing_s = KEY_S * f64::from(u32::try_from(typed.len()).unwrap_or(u32::MAX));
        let prompt = Style { colour: Some(2), ..Style::default() };
        let bold = Style { bold: true, ..Style::default() };
        let cells = typed.chars().enumerate();
        let cells = cells.map(|(at, shown)| (shown, if at == 0 { prompt } else { bold })).collect();
        rows.push(Row { cells, at_s: now_s, typing_s });
        now_s += typing_s + ANSWER_S;
        for cells in &scene.printed {
            rows.push(Row { cells: cells.clone(), at_s: now_s, typing_s: 0.0 });
        }
        let lines = u32::try_from(scene.printed.len()).unwrap_or(u32::MAX);
        now_s += READ_S + READ_LINE_S * f64::from(lines) + scene.pause_s;
    }
    (rows, now_s + END_S)
}

fn place(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Distance by which the text is moved if there are this many lines.
fn shift(lines: usize) -> f64 {
    -HEIGHT * place(lines.saturating_sub(usize::from(ROWS)))
}

fn percent(at_s: f64, total_s: f64) -> String {
    format!("{:.2}%", at_s / total_s * 100.0)
}

/// The class of a line, which all lines have that appear at the same time.
fn appears(style: &mut String, rows: &[Row], number: usize, total_s: f64) -> String {
    let at_s = rows[number].at_s;
    let same = |row: &Row| (row.at_s - at_s).abs() < f64::EPSILON;
    let first = rows.iter().position(same).unwrap_or(number);
    if first == number {
        let at = percent(at_s, total_s);
        let _ = writeln!(
            style,
            ".a{first}{{animation:a{first} {total_s:.1}s step-end infinite}}\
             @keyframes a{first}{{0%{{opacity:0}}{at}{{opacity:1}}}}"
        );
    }
    format!("a{first}")
}

/// The text moves up whenever a line is below the last row.
fn scroll(rows: &[Row], total_s: f64) -> String {
    let mut frames = "@keyframes s{0%{transform:translateY(0)}".to_owned();
    for (number, row) in rows.iter().enumerate() {
        let is_last = rows.get(number + 1).is_none_or(|next| next.at_s > row.at_s);
        let shift = shift(number + 1);
        if is_last && shift < 0.0 {
            let at = percent(row.at_s, total_s);
            let _ = write!(frames, "{at}{{transform:translateY({shift}px)}}");
        }
    }
    frames.push_str("}\n");
    frames
}

/// A typed line is under a rectangle with a cursor at its left, which moves away key by key.
fn cover(
    style: &mut String,
    body: &mut String,
    (number, row): (usize, &Row),
    y: f64,
    total_s: f64,
) {
    let keys = row.cells.len().saturating_sub(2).max(1);
    let (left, width) = (2.0 * WIDTH, WIDTH * place(keys));
    let _ = write!(
        body,
        "<g class=\"k{number}\"><rect x=\"{left}\" y=\"{y}\" width=\"{}\" height=\"{HEIGHT}\" \
         fill=\"{BACKGROUND}\"/><rect x=\"{left}\" y=\"{}\" width=\"{WIDTH}\" height=\"15\" \
         fill=\"{TEXT}\"/></g>",
        width + WIDTH,
        y + 1.5,
    );
    let (from, to) = (row.at_s, row.at_s + row.typing_s);
    let (from, to) = (percent(from, total_s), percent(to, total_s));
    let after = percent(row.at_s + row.typing_s + ANSWER_S, total_s);
    let _ = writeln!(
        style,
        ".k{number}{{opacity:0;animation:k{number} {total_s:.1}s infinite}}@keyframes k{number}{{\
         0%{{opacity:1;transform:none}}{from}{{opacity:1;transform:none;\
         animation-timing-function:steps({keys})}}{to}{{opacity:1;\
         transform:translateX({width}px);animation-timing-function:step-end}}{after}{{opacity:0}}\
         to{{opacity:0}}}}"
    );
}

/// The characters of a line, those of one style together, each at its column.
fn text(body: &mut String, cells: &Line, y: f64) {
    let mut column = 0;
    for run in cells.chunk_by(|(_, left), (_, right)| left == right) {
        let (shown, style): (String, Style) = (run.iter().map(|(c, _)| *c).collect(), run[0].1);
        let x = WIDTH * place(column);
        column += run.len();
        if shown.trim().is_empty() {
            continue;
        }
        let width = WIDTH * place(run.len());
        let colour = style.colour.and_then(|colour| COLOURS.get(usize::from(colour)));
        let colour = colour.map(|colour| format!(" style=\"fill:{colour}\"")).unwrap_or_default();
        let bold = if style.bold { " font-weight=\"bold\"" } else { "" };
        let dim = if style.dim { " opacity=\".65\"" } else { "" };
        let _ = write!(
            body,
            "<text x=\"{x}\" y=\"{y:.1}\" textLength=\"{width}\"{colour}{bold}{dim}>{}</text>",
            escaped(&shown)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::screen;

    fn scene(typed: &str, printed: &str) -> Scene {
        Scene { typed: typed.to_owned(), printed: screen::read(printed).unwrap(), pause_s: 0.0 }
    }

    #[test]
    fn every_line_is_in_the_picture_once_with_its_colour() {
        let picture = draw(&[scene("runai list", "<a> & b\r\n\u{1b}[32mRunning\u{1b}[0m 1\r\n")]);
        assert_eq!(picture.matches("&lt;a&gt; &amp; b</text>").count(), 1, "{picture}");
        let green = format!("style=\"fill:{}\">Running</text>", COLOURS[2]);
        assert_eq!(picture.matches(&green).count(), 1, "{picture}");
        assert!(picture.contains("<text x=\"56\"") && picture.contains("> 1</text>"), "{picture}");
    }

    #[test]
    fn what_is_longer_than_the_terminal_moves_up_to_its_end() {
        let printed = |lines: usize| "x\r\n".repeat(lines);
        let short = draw(&[scene("a", &printed(23))]);
        assert!(short.contains("translateY(-0px)") && !short.contains("translateY(-18px)"));
        let long = draw(&[scene("a", &printed(23)), scene("b", "y\r\n")]);
        assert!(long.contains(".s{transform:translateY(-36px)"), "two lines more than fit");
        assert!(long.contains("{transform:translateY(-18px)}"), "the second command is one more");
    }

    #[test]
    fn a_command_is_typed_before_its_output_appears() {
        let (rows, total_s) = schedule(&[scene("a", "x\r\ny\r\n"), scene("b", "")]);
        let times: Vec<_> = rows.iter().map(|row| row.at_s).collect();
        assert!(times[0] + rows[0].typing_s < times[1]);
        assert!((times[1] - times[2]).abs() < f64::EPSILON && times[2] < times[3]);
        assert!(times[3] < total_s);
    }
}
