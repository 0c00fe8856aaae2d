//! The live view on the screen: a pure function of its state. Owns: layout and styles.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::panes::{self, Column, Mark, Pane};
use super::text::{Text, Topic, columns};
use super::view::{AROUND_LINES, Listed, Mode, View};

use crate::change::word;

/// With fewer lines only the focused pane is shown.
const ALL_PANES_LINES: u16 = 18;
/// Lines of the sentence about the selected row.
const SENTENCE_LINES: u16 = 2;
/// Columns between two texts.
const GAP: u16 = 2;
/// Minimum width of the last column.
const REST_COLUMNS: u16 = 10;

const FOOT: &str = "? keys  Tab pane  / filter  s sort  p project  Enter why  l logs  q quit";

/// Draws the whole view.
pub(super) fn draw(view: &View, frame: &mut Frame<'_>) {
    let lines = frame.area().height;
    let reads = matches!(view.mode, Mode::Read(_));
    let sentence = if reads || lines < AROUND_LINES + 4 { 0 } else { SENTENCE_LINES };
    let [head, body, below, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(sentence),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(view, frame, head);
    match &view.mode {
        Mode::Read(text) => draw_text(text, frame, body),
        Mode::Browse | Mode::Filter | Mode::Sure(_) => {
            let listed = Pane::ALL.map(|pane| view.rows(pane));
            draw_panes(view, &listed, frame, body);
            let (rows, chosen) = &listed[view.pane as usize];
            let text = chosen.map_or("", |at| rows[at].sentence.as_str());
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), below);
        }
    }
    draw_foot(view, frame, foot);
}

fn draw_text(text: &Text, frame: &mut Frame<'_>, area: Rect) {
    let (title, rest) = split_top(area);
    let name = match text.topic {
        Topic::Details => format!("{}: why it is where it is", text.name),
        Topic::Logs => format!("{}: what it writes", text.name),
        Topic::Keys => "What keys do".to_owned(),
    };
    frame.render_widget(Paragraph::new(name).style(title_style(true)), title);
    let seen = text.seen(rest.width.into(), rest.height.into());
    let seen: Vec<_> = seen.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(seen), rest);
}

/// The first line of an area, and the rest of it.
fn split_top(area: Rect) -> (Rect, Rect) {
    let [top, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    (top, rest)
}

fn draw_head(view: &View, frame: &mut Frame<'_>, area: Rect) {
    if let Some(why) = &view.away {
        let line = format!("NO ANSWER, what follows is old: {why}");
        let style = tint(view, Color::Red).add_modifier(Modifier::BOLD);
        return frame.render_widget(Paragraph::new(line).style(style), area);
    }
    let Some(status) = &view.seen.status else { return };
    let of = |name: &str| view.project.as_ref().is_none_or(|project| project == name);
    let all = view.seen.workloads.iter().filter(|workload| of(&workload.project_name));
    let marks: Vec<Mark> = all.map(panes::mark).collect();
    let count = |mark| marks.iter().filter(|one| **one == mark).count();
    let simulated = if status.simulated { ", simulated" } else { "" };
    let of = view.project.as_ref().map_or_else(String::new, |name| format!("   only {name}"));
    let line = format!(
        "{}   {} of {} GPUs held{simulated}   {} workloads: {} run, {} wait{of}",
        status.cluster_name,
        status.gpus_allocated,
        status.gpus,
        marks.len(),
        count(Mark::Busy),
        count(Mark::Waits),
    );
    let style = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(line).style(style), area);
}

fn draw_foot(view: &View, frame: &mut Frame<'_>, area: Rect) {
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let (text, style) = match (&view.mode, &view.said) {
        (Mode::Filter, _) => (format!("/{}_", view.choice(view.pane).filter), strong),
        (Mode::Sure(change), _) => {
            let (verb, name) = (word(change.verb), &change.name);
            (format!("{verb} {name}? y to do it, any other key to leave it"), strong)
        }
        (_, Some(said)) => (said.clone(), strong),
        (Mode::Browse, None) => (FOOT.to_owned(), Style::new().add_modifier(Modifier::DIM)),
        (Mode::Read(_), None) => ("q back  up, down, Page Up, Page Down".to_owned(), Style::new()),
    };
    frame.render_widget(Paragraph::new(text).style(style), area);
}

/// The upper panes get the lines that they need, at most a quarter of the height, or half if
/// focused; the lowest gets the rest.
fn draw_panes(view: &View, listed: &[Listed; 3], frame: &mut Frame<'_>, area: Rect) {
    if area.height + AROUND_LINES < ALL_PANES_LINES {
        return draw_pane(view, view.pane, &listed[view.pane as usize], frame, area);
    }
    let room = |pane: Pane| {
        let rows = listed[pane as usize].0.len();
        let needs = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1);
        let part = if view.pane == pane { 2 } else { 4 };
        Constraint::Length(needs.clamp(2, area.height / part))
    };
    let heights = [room(Pane::Gpus), room(Pane::Queues), Constraint::Min(0)];
    let areas: [Rect; 3] = Layout::vertical(heights).areas(area);
    for ((pane, listed), area) in Pane::ALL.into_iter().zip(listed).zip(areas) {
        draw_pane(view, pane, listed, frame, area);
    }
}

fn draw_pane(view: &View, pane: Pane, listed: &Listed, frame: &mut Frame<'_>, area: Rect) {
    let (rows, chosen) = (&listed.0, listed.1);
    let choice = view.choice(pane);
    let shown = fit(pane.columns(), rows, area.width);
    let room = usize::from(area.height.saturating_sub(1));
    let first = choice.scroll(rows.len(), chosen.unwrap_or(0), room);
    let here = view.pane == pane;
    let titles = shown.iter().map(|(at, _)| {
        let sorted = if choice.sort == Some(*at) { "*" } else { "" };
        Cell::from(format!("{}{sorted}", pane.columns()[*at].title))
    });
    let lines = rows.iter().skip(first).take(room).map(|row| {
        let style = match row.mark {
            Mark::Plain => Style::new(),
            Mark::Busy => tint(view, Color::Green),
            Mark::Waits => tint(view, Color::Yellow),
            Mark::Failed => tint(view, Color::Red),
        };
        let cells = shown.iter().map(|(at, _)| Cell::from(row.cells[*at].text.as_str()));
        Row::new(cells.collect::<Vec<_>>()).style(style)
    });
    let highlight = if here { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    let widths = shown.iter().map(|(_, width)| Constraint::Length(*width));
    let table = Table::new(lines, widths)
        .header(Row::new(titles.collect::<Vec<_>>()).style(title_style(here)))
        .column_spacing(GAP)
        .row_highlight_style(highlight);
    let mut state = TableState::new().with_selected(chosen.map(|at| at - first));
    frame.render_stateful_widget(table, area, &mut state);
    let filter = &choice.filter;
    let about = match (chosen, filter.as_str()) {
        (None, "") => String::new(),
        (None, filter) => format!(" no row has {filter} "),
        (Some(at), "") => format!(" {} of {} ", at + 1, rows.len()),
        (Some(at), filter) => format!(" {} of {} with {filter} ", at + 1, rows.len()),
    };
    let (title, _) = split_top(area);
    let width = width_of(&about).min(title.width);
    let corner = Rect { x: title.right() - width, width, ..title };
    let about = Paragraph::new(about).style(title_style(here)).alignment(Alignment::Right);
    frame.render_widget(about, corner);
}

/// Columns that have room, by index, with the width of each. A column is as wide as its content.
fn fit(all: &[Column], rows: &[panes::Row], width: u16) -> Vec<(usize, u16)> {
    let needs = |at: usize| {
        let widest = rows.iter().map(|row| width_of(&row.cells[at].text)).max().unwrap_or(0);
        // One more than the title, for the sort mark.
        widest.min(all[at].columns_max).max(width_of(all[at].title) + 1)
    };
    let mut shown: Vec<(usize, u16)> = all
        .iter()
        .enumerate()
        .map(|(at, column)| (at, if column.columns_max == 0 { REST_COLUMNS } else { needs(at) }))
        .collect();
    let used = |shown: &[(usize, u16)]| shown.iter().map(|(_, width)| width + GAP).sum::<u16>();
    while used(&shown) > width + GAP {
        let spared = shown.iter().enumerate().max_by_key(|(_, (at, _))| all[*at].spared);
        match spared {
            Some((place, (at, _))) if all[*at].spared > 0 => drop(shown.remove(place)),
            _ => break,
        }
    }
    let left = (width + GAP).saturating_sub(used(&shown));
    if let Some((at, rest)) = shown.last_mut()
        && all[*at].columns_max == 0
    {
        *rest += left;
    }
    shown
}

fn width_of(text: &str) -> u16 {
    u16::try_from(columns(text)).unwrap_or(u16::MAX)
}

fn title_style(here: bool) -> Style {
    let strong = Style::new().add_modifier(Modifier::BOLD);
    if here {
        strong.add_modifier(Modifier::REVERSED)
    } else {
        strong.add_modifier(Modifier::UNDERLINED)
    }
}

fn tint(view: &View, colour: Color) -> Style {
    if view.colours { Style::new().fg(colour) } else { Style::new() }
}
