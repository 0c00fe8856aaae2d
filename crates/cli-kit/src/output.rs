//! Printing of lists and descriptions, common to all verbs of both programs: formats, order, width
//! of the terminal, colours, and `--watch`. Owns the flags for it. Does not know about the printed
//! objects.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::change_wait::{ChangeWait, WATCH_EVERY};
use crate::color::Color;
use crate::exit::Error;
use crate::jsonpath::JsonPath;
use crate::message::{Plain, print_note};
use crate::suggest;
use crate::table::Table;
use crate::yaml;

/// Interval at which a terminal updates ages.
const AGES_EVERY: Duration = Duration::from_secs(5);

/// Output format of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For people, with every column and exact times.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Type and name of each object, one per line.
    Name,
    /// A jsonpath template.
    Path(JsonPath),
}

impl OutputFormat {
    /// True if it is text for people.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "table" | "text" => Self::Text,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "name" => Self::Name,
            _ => match text.split_once('=') {
                Some(("jsonpath", template)) => Self::Path(template.parse()?),
                _ => {
                    let formats = "table, wide, json, yaml, name, jsonpath=TEMPLATE";
                    return Err(format!("the formats are {formats}"));
                }
            },
        })
    }
}

/// Sort column and direction of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    column: String,
    descending: bool,
}

impl Sort {
    /// Row indices of a table in this order.
    fn places(&self, table: &Table) -> Result<Vec<usize>, Error> {
        let wanted = letters(&self.column);
        let titles = table.titles();
        let column = titles.iter().position(|title| letters(title) == wanted);
        let starts = |title: &String| !wanted.is_empty() && letters(title).starts_with(&wanted);
        let column = column.or_else(|| titles.iter().position(starts));
        // The first column has the name, whatever its title.
        let Some(column) = column.or_else(|| (wanted == "name").then_some(0)) else {
            let known: Vec<String> = titles.iter().map(|title| letters(title)).collect();
            let there = format!("there are {}", known.join(", "));
            let hint = suggest::hint_or(&wanted, known.iter().map(String::as_str), &there);
            let text = format!("--sort {}: no such column{hint}", self.column);
            return Err(Error::Usage(text));
        };
        let keys: Vec<_> = table.column(column).map(|cell| Key::of(&cell)).collect();
        let mut places: Vec<usize> = (0..keys.len()).collect();
        let compare = |a: &usize, b: &usize| keys[*a].compare(&keys[*b]);
        places.sort_by(|a, b| if self.descending { compare(b, a) } else { compare(a, b) });
        Ok(places)
    }
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (column, order) = text.split_once(':').unwrap_or((text, "asc"));
        let descending = match order {
            "asc" => false,
            "desc" => true,
            _ => return Err("write COLUMN, COLUMN:asc or COLUMN:desc".to_owned()),
        };
        Ok(Self { column: column.to_owned(), descending })
    }
}

/// Flags of what prints a description.
#[derive(Debug, Clone, Default, Args)]
pub struct One {
    /// Print it as table, wide, json, yaml, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = OutputFormat::from_str)]
    pub output: Option<OutputFormat>,
    /// Print it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
}

impl From<One> for OutputOptions {
    fn from(typed: One) -> Self {
        let shown = typed.output.unwrap_or_default();
        Self { shown, watch: typed.watch, ..Self::default() }
    }
}

/// Flags of what prints a list.
#[derive(Debug, Clone, Default, Args)]
pub struct Format {
    /// Print them as table, wide, json, yaml, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = OutputFormat::from_str)]
    #[arg(conflicts_with_all = ["json", "yaml", "table"])]
    pub output: Option<OutputFormat>,
    /// Alias of -o json
    #[arg(long, conflicts_with_all = ["yaml", "table"])]
    pub json: bool,
    /// Alias of -o yaml
    #[arg(long, conflicts_with = "table")]
    pub yaml: bool,
    /// Alias of -o table (the default)
    #[arg(long)]
    pub table: bool,
    /// Leave the titles of the columns out
    #[arg(long)]
    pub no_headers: bool,
    /// Order by this column, such as age or gpu:desc
    #[arg(long, alias = "sort-by", value_name = "COLUMN[:desc]", value_parser = Sort::from_str)]
    pub sort: Option<Sort>,
    /// Print what changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
}

impl From<Format> for OutputOptions {
    fn from(typed: Format) -> Self {
        let shown = match (typed.output, typed.json, typed.yaml) {
            (Some(shown), ..) => shown,
            (None, true, _) => OutputFormat::Json,
            (None, _, true) => OutputFormat::Yaml,
            _ => OutputFormat::Text,
        };
        Self { shown, no_headers: typed.no_headers, sort: typed.sort, watch: typed.watch }
    }
}

/// Output options of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// Format.
    pub shown: OutputFormat,
    /// True if the titles of the columns are left out.
    pub no_headers: bool,
    /// Order; `None` = default.
    pub sort: Option<Sort>,
    /// True if the answer is printed again after each change.
    pub watch: bool,
}

/// Table layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Columns under their titles.
    Plain,
    /// Columns under their titles, with a rule between.
    Ruled,
}

impl OutputOptions {
    /// Default options with this format.
    #[must_use]
    pub fn only(shown: OutputFormat) -> Self {
        Self { shown, ..Self::default() }
    }

    /// True if every column is printed.
    pub fn is_wide(&self) -> bool {
        self.shown == OutputFormat::Wide
    }

    /// Sorts objects by the requested column of a table of them.
    pub fn order<T>(
        &self,
        objects: Vec<T>,
        table: impl Fn(&[T]) -> Table,
    ) -> Result<Vec<T>, Error> {
        let Some(sort) = &self.sort else { return Ok(objects) };
        let places = sort.places(&table(&objects))?;
        let mut objects: Vec<_> = objects.into_iter().map(Some).collect();
        let at = |place: usize| objects.get_mut(place).and_then(Option::take);
        Ok(places.into_iter().filter_map(at).collect())
    }

    /// A table as text: as wide as the terminal, if it goes to one. `drop_first` has the columns
    /// that it can do without, the least important first.
    pub fn text(&self, table: Table, style: Style, drop_first: &[&str]) -> String {
        // Titles first, because titles that are not printed take no room.
        let table = if self.no_headers { table.headless() } else { table };
        let table = match self.is_wide() {
            true => table,
            false => table.fitted(columns(), drop_first),
        };
        match style {
            Style::Plain => table.plain(),
            Style::Ruled => table.ruled(),
        }
    }

    /// Prints objects in a data format; `names` has the `type/name` of each.
    pub fn data<T: Serialize>(
        &self,
        value: &T,
        names: &[String],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        data(value, &self.shown, names, out)
    }
}

/// Prints a list in the layout of the second dialect, or in a data format. `name` returns
/// `type/name`.
pub fn list<T: Serialize>(
    how: &OutputOptions,
    objects: Vec<T>,
    name: impl Fn(&T) -> String,
    table: impl Fn(&[T]) -> Table,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let objects = how.order(objects, &table)?;
    if !how.shown.is_text() {
        return how.data(&objects, &objects.iter().map(name).collect::<Vec<_>>(), out);
    }
    let table = table(&objects);
    // The last columns are the least important.
    let titles: Vec<String> = table.titles().iter().skip(1).rev().cloned().collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    Ok(out.write_all(how.text(table, Style::Ruled, &titles).as_bytes())?)
}

/// Prints the response of a server, in a data format.
pub fn data<T: Serialize + ?Sized>(
    value: &T,
    shown: &OutputFormat,
    names: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    if *shown == OutputFormat::Name {
        return Ok(names.iter().try_for_each(|name| writeln!(out, "{name}"))?);
    }
    let value = serde_json::to_value(value)
        .map_err(|error| Error::Failed(format!("failed to print the answer: {error}")))?;
    printed(&value, shown, out)
}

fn printed(value: &Value, shown: &OutputFormat, out: &mut dyn Write) -> Result<(), Error> {
    match shown {
        OutputFormat::Yaml => out.write_all(yaml::document(value).as_bytes())?,
        OutputFormat::Path(path) => {
            let text = path.fill(value).map_err(|why| Error::Usage(format!("jsonpath: {why}")))?;
            out.write_all(text.as_bytes())?;
            if !text.ends_with('\n') {
                writeln!(out)?;
            }
        }
        OutputFormat::Json | OutputFormat::Text | OutputFormat::Wide | OutputFormat::Name => {
            writeln!(out, "{value:#}")?;
        }
    }
    Ok(())
}

/// The letters and digits of a title, in lower case.
fn letters(title: &str) -> String {
    title.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// Sort key of a cell: numbers, sizes and ages by their value, before all texts.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Number(f64),
    Text(String),
}

impl Key {
    fn of(cell: &str) -> Self {
        let digits = cell.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(cell.len());
        let (number, unit) = cell.split_at(digits);
        let unit_end = unit.find([' ', '/']).unwrap_or(unit.len());
        let factor = match &unit[..unit_end] {
            "" | "s" | "%" | "B" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "y" => 31_536_000.0,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            "TiB" => 1_099_511_627_776.0,
            _ => return Self::Text(cell.to_owned()),
        };
        let number: Result<f64, _> = number.parse();
        number.map_or_else(|_| Self::Text(cell.to_owned()), |number| Self::Number(number * factor))
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// Maximum width of a line; `None` if no terminal shows it.
pub fn columns() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Prints an answer, and with `--watch` again whenever it changes: after each report of `pulse`, or
/// every second without one. A terminal shows the whole answer each time; a file or a pipe gets the
/// new lines. During an outage of the server it waits.
pub async fn show(
    how: &OutputOptions,
    raw: &mut dyn Write,
    mut pulse: Option<ChangeWait>,
    answer: impl AsyncFn(&mut dyn Write) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut change = async || match &mut pulse {
        Some(pulse) => pulse.changed(WATCH_EVERY).await,
        None => tokio::time::sleep(WATCH_EVERY).await,
    };
    let mut screen = Screen::of(how);
    let (mut has_answered, mut lost) = (false, None);
    loop {
        let mut bytes = Vec::new();
        match answer(&mut Plain(&mut bytes)).await {
            Err(error) if how.watch && has_answered && error.is_lost(lost) => {
                if lost.is_none() && error.is_away() {
                    print_note(&format!("{error}; waiting for the server"));
                }
                lost.get_or_insert_with(Instant::now);
                tokio::time::sleep(WATCH_EVERY).await;
                continue;
            }
            done => {
                screen.draw(&String::from_utf8_lossy(&bytes), raw)?;
                done?;
                (has_answered, lost) = (true, None);
            }
        }
        if !how.watch {
            return Ok(());
        }
        let age = tokio::time::sleep(AGES_EVERY);
        if screen.is_terminal {
            tokio::select! {
                () = change() => {}
                () = age => {}
            }
        } else {
            change().await;
        }
    }
}

/// Destination of answers.
struct Screen {
    is_terminal: bool,
    colored: bool,
    watch: bool,
    last: String,
    lines: Lines,
}

impl Screen {
    fn of(how: &OutputOptions) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let colored = Color::chosen().applies(is_terminal, |name| std::env::var(name).ok());
        Self {
            is_terminal,
            colored: colored && how.shown.is_text(),
            watch: how.watch,
            last: String::new(),
            lines: Lines::default(),
        }
    }

    fn draw(&mut self, text: &str, raw: &mut dyn Write) -> std::io::Result<()> {
        let mut now = match (self.watch, self.is_terminal) {
            (true, false) => self.lines.news(text),
            (true, true) if text == self.last => String::new(),
            (true, true) => format!("{}{text}", "\u{1b}[H\u{1b}[2J"),
            (false, _) => text.to_owned(),
        };
        if self.colored {
            now = coloured(&now);
        }
        text.clone_into(&mut self.last);
        raw.write_all(now.as_bytes())?;
        raw.flush()
    }
}

/// The last lines that a watch has printed. A changed age alone does not make a line new.
#[derive(Debug, Default)]
struct Lines(BTreeSet<String>);

impl Lines {
    /// The lines of a text that the previous one did not have.
    fn news(&mut self, text: &str) -> String {
        let is_age = |word: &str| {
            word.strip_suffix(['s', 'm', 'h', 'd', 'y']).is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
            })
        };
        let key = |line: &str| {
            let words = line.split_whitespace().map(|word| if is_age(word) { "_" } else { word });
            // The width of a table depends on its rows.
            let rule = line.starts_with('─');
            if rule { "─".to_owned() } else { words.collect::<Vec<_>>().join(" ") }
        };
        let keys: BTreeSet<String> = text.lines().map(key).collect();
        let before = std::mem::replace(&mut self.0, keys);
        let news = text.lines().filter(|line| !before.contains(&key(line)));
        news.map(|line| format!("{line}\n")).collect()
    }
}

/// The text with each state cell in its colour. A cell has a gap of several blanks, or an edge, on
/// both sides.
fn coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    for piece in text.split_inclusive(|c: char| c.is_whitespace()) {
        let word = piece.trim_end();
        rest = &rest[piece.len()..];
        let begins = out.is_empty() || ["\n", "  ", ": "].iter().any(|gap| out.ends_with(gap));
        let ends = !piece.ends_with(' ') || rest.starts_with(' ');
        let colour = match word.to_ascii_lowercase().as_str() {
            "running" | "ready" | "succeeded" | "completed" => 32,
            "pending" | "initializing" | "containercreating" | "updating" | "resuming"
            | "degraded" => 33,
            "failed" | "crashloopbackoff" | "imagepullbackoff" | "timedout" => 31,
            "stopped" | "stopping" | "suspended" | "terminating" | "deleting" => 90,
            _ => 0,
        };
        let is_name = word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().nth(1).is_some_and(char::is_lowercase);
        if colour > 0 && is_name && begins && ends {
            out.push_str(&format!("\u{1b}[{colour}m{word}\u{1b}[0m{}", &piece[word.len()..]));
        } else {
            out.push_str(piece);
        }
    }
    out
}

/// Names of JSON objects, for `-o name`.
pub fn names<'v>(
    kind: &str,
    objects: impl IntoIterator<Item = &'v Value>,
    name: impl Fn(&'v Value) -> Option<&'v str>,
) -> Vec<String> {
    objects.into_iter().filter_map(name).map(|name| format!("{kind}/{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(sort: &str) -> Result<String, String> {
        let how = OutputOptions { sort: Some(sort.parse()?), ..OutputOptions::default() };
        let rows = vec![("b", "5m", "2"), ("a", "30s", "10"), ("c", "1h", "- (1)")];
        let table = |rows: &[(&str, &str, &str)]| {
            let mut table = Table::new(&["Workload", "AGE", "GPUs Allocated (Requested)"]);
            let own = |(a, b, c): &(&str, &str, &str)| [a, b, c].map(|cell| (*cell).to_owned());
            rows.iter().for_each(|row| table.row(own(row)));
            table
        };
        let rows = how.order(rows, table).map_err(|error| error.to_string())?;
        Ok(rows.iter().map(|row| row.0).collect())
    }

    #[test]
    fn a_list_is_ordered_by_what_its_cells_mean() {
        for (sort, names) in [("name", "abc"), ("age", "abc"), ("AGE:desc", "cba"), ("gpus", "bac")]
        {
            assert_eq!(sorted(sort).as_deref(), Ok(names), "{sort}");
        }
        let said = |sort| sorted(sort).unwrap_err();
        assert_eq!(said("agee"), "--sort agee: no such column; did you mean `age`?");
        assert!(said("colour").ends_with("; there are workload, age, gpusallocatedrequested"));
        assert!(sorted("age:up").unwrap_err().contains("COLUMN:desc"));
    }

    #[test]
    fn formats_are_read_as_typed() {
        assert_eq!("name".parse(), Ok(OutputFormat::Name));
        assert!(matches!("jsonpath={.name}".parse(), Ok(OutputFormat::Path(_))));
        assert!("jsonpath={.name".parse::<OutputFormat>().unwrap_err().contains("never closed"));
        assert!("xml".parse::<OutputFormat>().unwrap_err().contains("wide, json, yaml, name"));
    }

    #[test]
    fn a_watch_prints_lines_that_changed_and_no_age() {
        let mut lines = Lines::default();
        assert_eq!(lines.news("NAME AGE\n────\na 1s\nb 2s\n"), "NAME AGE\n────\na 1s\nb 2s\n");
        assert_eq!(lines.news("NAME   AGE\n──────\na 2s\nb 3s\n"), "");
        assert_eq!(lines.news("NAME AGE\n────\na 2s\nb 3s x\n"), "b 3s x\n");
        assert_eq!(lines.news("NAME AGE\n────\na 2s\nb 4s\n"), "b 4s\n", "it is as it was");
    }

    #[test]
    fn states_are_coloured_where_colours_are_wanted() {
        assert_eq!(coloured("a1  Running  x\n"), "a1  \u{1b}[32mRunning\u{1b}[0m  x\n");
        for text in
            ["failed [Failed] waits\n", "a  PODs Running (Pending)\n", "x\nFAILED PODS:  0\n"]
        {
            assert_eq!(coloured(text), text, "no states");
        }
    }
}
