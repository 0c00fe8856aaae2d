//! The state of the live view: the latest data, the selection, and the effect of each key. Pure:
//! keys and updates go in, actions come out.

use std::cell::Cell;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use api_types::WorkloadPhase;

use super::panes::{self, Pane, Row, ServerState};
use super::text::{Text, Topic};
use crate::change::participle;
use dialects::intent::Verb;

/// Lines around the panes: the head, the sentence about the selected row, and the foot.
pub(super) const AROUND_LINES: u16 = 4;

/// Keys, and their effects.
const KEYS: [(&str, &str); 14] = [
    ("up, down, j, k", "other rows; also Page Up, Page Down, Home, End"),
    ("Tab, Shift-Tab", "the next pane, the one before: GPUs, queues, workloads"),
    ("/", "only rows with these words; Enter keeps it so, Esc does not"),
    ("s", "sort by the next column: the largest first, or by letters"),
    ("p", "only the project of the chosen row; again for all"),
    ("Enter", "of a workload: why it is where it is, its pods and events"),
    ("", "of a queue or a GPU: go to its workloads"),
    ("l", "what the workload writes, as it comes"),
    ("d", "delete the workload (asks first)"),
    ("Space", "suspend the workload, or resume it (asks first)"),
    ("?", "this page"),
    ("Ctrl-Z", "leave for a moment; `fg` comes back"),
    ("q, Esc", "end; in a text, back to the panes; Ctrl-C always ends"),
    ("", "HELD, QUOTA, … are GPUs; - is where nothing is measured"),
];

/// Actions outside the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// End the program.
    Quit,
    /// Stop until the shell resumes the program.
    Sleep,
    /// Fetch a text about the workload with this id.
    Fetch(Topic, String),
    /// Change a workload.
    Change(Change),
}

/// A change of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) verb: Verb,
    pub(super) id: String,
    pub(super) name: String,
}

/// Focus of the keys.
#[derive(Debug, Default)]
pub(super) enum Mode {
    /// The panes.
    #[default]
    Browse,
    /// Input of the filter words.
    Filter,
    /// Confirmation of a change.
    Sure(Change),
    /// A text.
    Read(Text),
}

/// Filter, order and selection of a pane.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Text that its rows must contain, in any case.
    pub(super) filter: String,
    /// Index of the sort column; `None` = order of the pane.
    pub(super) sort: Option<usize>,
    /// Key of the selected row, and its last index.
    key: Option<String>,
    at: usize,
    /// First visible row of the last drawing.
    first: Cell<usize>,
}

/// The rows that match the filter, in order, and the index of the selected one.
pub(super) type Listed = (Vec<Row>, Option<usize>);

impl Choice {
    fn of(&self, mut rows: Vec<Row>) -> Listed {
        let wanted = self.filter.to_lowercase();
        let has = |row: &Row| row.cells.iter().any(|it| it.text.to_lowercase().contains(&wanted));
        rows.retain(|row| wanted.is_empty() || has(row));
        if let Some(column) = self.sort {
            rows.sort_by(|a, b| a.cells[column].cmp(&b.cells[column]));
        }
        let chosen = rows.iter().position(|row| Some(&row.key) == self.key.as_ref());
        let last = rows.len().checked_sub(1);
        let chosen = chosen.or_else(|| last.map(|last| self.at.min(last)));
        (rows, chosen)
    }

    /// First visible row for this number of visible lines: unchanged if the selected row is then
    /// visible.
    pub(super) fn scroll(&self, rows: usize, chosen: usize, room: usize) -> usize {
        let room = room.max(1);
        let first = self.first.get().min(rows.saturating_sub(room));
        let first = first.clamp((chosen + 1).saturating_sub(room), chosen);
        self.first.set(first);
        first
    }
}

/// State of the view.
#[derive(Debug)]
pub(super) struct View {
    pub(super) seen: ServerState,
    /// Reason why the server does not answer; `None` while it does.
    pub(super) away: Option<String>,
    /// Project whose rows are shown; `None` = all.
    pub(super) project: Option<String>,
    /// Focused pane.
    pub(super) pane: Pane,
    choices: [Choice; 3],
    pub(super) mode: Mode,
    /// Result of the last action.
    pub(super) said: Option<String>,
    /// Columns and lines of the screen.
    pub(super) size: (u16, u16),
    /// True if colours may be used.
    pub(super) colours: bool,
}

impl View {
    pub(super) fn new(project: Option<String>, colours: bool) -> Self {
        Self {
            seen: ServerState::default(),
            away: None,
            project,
            pane: Pane::Workloads,
            choices: Default::default(),
            mode: Mode::Browse,
            said: None,
            size: (80, 24),
            colours,
        }
    }

    /// Filter, order and selection of a pane.
    pub(super) fn choice(&self, pane: Pane) -> &Choice {
        &self.choices[pane as usize]
    }

    fn here(&mut self) -> &mut Choice {
        &mut self.choices[self.pane as usize]
    }

    /// The visible rows of a pane, and the index of the selected one.
    pub(super) fn rows(&self, pane: Pane) -> Listed {
        self.choice(pane).of(pane.rows(&self.seen, self.project.as_deref()))
    }

    /// Applies a key; returns the action to do outside.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Action::Quit),
                KeyCode::Char('z') => Some(Action::Sleep),
                _ => None,
            };
        }
        // It is hidden during input and confirmation.
        if matches!(self.mode, Mode::Browse | Mode::Read(_)) {
            self.said = None;
        }
        match &mut self.mode {
            Mode::Browse => return self.browse(key.code),
            Mode::Filter => self.filter(key.code),
            Mode::Sure(_) => return self.answer(key.code),
            Mode::Read(_) => self.read(key.code),
        }
        None
    }

    fn browse(&mut self, key: KeyCode) -> Option<Action> {
        let (rows, chosen) = self.rows(self.pane);
        let row = chosen.map(|at| &rows[at]);
        match key {
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Pane::ALL.len() - 1),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('s') => self.sort(),
            KeyCode::Char('?') => self.mode = Mode::Read(keys()),
            KeyCode::Char('p') => self.narrow(row),
            KeyCode::Enter => return self.enter(row),
            KeyCode::Char('l') => return self.fetch(Topic::Logs, row),
            KeyCode::Char('d') => self.ask(row, |_| Verb::Delete),
            KeyCode::Char(' ') => self.ask(row, other_state),
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Esc if !self.here().filter.is_empty() => self.here().filter.clear(),
            KeyCode::Esc => return Some(Action::Quit),
            other => {
                if let (Some(by), Some(at)) = (steps(other, self.size.1), chosen) {
                    let at = at.saturating_add_signed(by).min(rows.len() - 1);
                    (self.here().at, self.here().key) = (at, Some(rows[at].key.clone()));
                }
            }
        }
        None
    }

    fn turn(&mut self, by: usize) {
        self.pane = Pane::ALL[(self.pane as usize + by) % Pane::ALL.len()];
    }

    /// Sorts by the next column; after the last one by none.
    fn sort(&mut self) {
        let columns = self.pane.columns().len();
        let here = self.here();
        here.sort = Some(here.sort.map_or(0, |last| last + 1)).filter(|next| *next < columns);
    }

    /// Shows only the project of the row, or all again.
    fn narrow(&mut self, row: Option<&Row>) {
        let chosen = row.and_then(|row| match self.pane {
            Pane::Gpus => None,
            Pane::Queues => Some(row.key.clone()),
            Pane::Workloads => {
                let found = self.seen.workloads.iter().find(|one| one.id == row.key);
                found.map(|one| one.project_name.clone())
            }
        });
        match (self.project.take(), chosen) {
            (None, None) => self.said = Some("choose a queue or a workload first".to_owned()),
            (None, chosen) => self.project = chosen,
            (Some(_), _) => {}
        }
    }

    /// Details of a workload; from a queue or a GPU, goes to its workloads.
    fn enter(&mut self, row: Option<&Row>) -> Option<Action> {
        let row = row?;
        match self.pane {
            Pane::Workloads => return self.fetch(Topic::Details, Some(row)),
            Pane::Queues => {
                self.project = Some(row.key.clone());
                self.pane = Pane::Workloads;
            }
            Pane::Gpus => self.go_to_holder(&row.key),
        }
        None
    }

    /// Selects a workload that holds a GPU; clears the filter if it hides them all.
    fn go_to_holder(&mut self, gpu: &str) {
        let holders = panes::holders(&self.seen).remove(gpu).unwrap_or_default();
        let ids: Vec<String> = holders.iter().map(|(pod, _)| pod.workload_id.clone()).collect();
        let listed = |view: &Self| {
            let (rows, _) = view.rows(Pane::Workloads);
            ids.iter().find(|id| rows.iter().any(|row| row.key == **id)).cloned()
        };
        let mut found = listed(self);
        if found.is_none() && !ids.is_empty() {
            self.choices[Pane::Workloads as usize].filter.clear();
            found = listed(self);
        }
        match found {
            Some(id) => {
                self.pane = Pane::Workloads;
                self.here().key = Some(id);
            }
            None => self.said = Some("no workload that you can see holds it".to_owned()),
        }
    }

    /// The selected workload; without one, shows a hint.
    fn workload(&mut self, row: Option<&Row>) -> Option<api_types::Workload> {
        let row = row.filter(|_| self.pane == Pane::Workloads);
        let found = row.and_then(|row| self.seen.workloads.iter().find(|one| one.id == row.key));
        if found.is_none() {
            self.said = Some("choose a workload first; Tab goes to the next pane".to_owned());
        }
        found.cloned()
    }

    fn fetch(&mut self, topic: Topic, row: Option<&Row>) -> Option<Action> {
        let workload = self.workload(row)?;
        self.mode = Mode::Read(Text::about(topic, workload.id.clone(), workload.name));
        Some(Action::Fetch(topic, workload.id))
    }

    fn ask(&mut self, row: Option<&Row>, verb: fn(&api_types::Workload) -> Verb) {
        let Some(workload) = self.workload(row) else { return };
        let verb = verb(&workload);
        let can = workload.actions_support;
        if !(if verb == Verb::Delete { can.delete } else { can.suspend }) {
            self.said = Some(format!("{} cannot be {}", workload.name, participle(verb)));
            return;
        }
        self.mode = Mode::Sure(Change { verb, id: workload.id, name: workload.name });
    }

    fn answer(&mut self, key: KeyCode) -> Option<Action> {
        match (std::mem::take(&mut self.mode), key) {
            (Mode::Sure(change), KeyCode::Char('y' | 'Y')) => Some(Action::Change(change)),
            (Mode::Sure(_), _) => {
                self.said = Some("nothing was changed".to_owned());
                None
            }
            (other, _) => {
                self.mode = other;
                None
            }
        }
    }

    fn filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(char) => self.here().filter.push(char),
            KeyCode::Backspace => {
                self.here().filter.pop();
            }
            KeyCode::Esc => {
                self.here().filter.clear();
                self.mode = Mode::Browse;
            }
            KeyCode::Enter => self.mode = Mode::Browse,
            _ => {}
        }
    }

    fn read(&mut self, key: KeyCode) {
        let (width, height) = self.page();
        let Mode::Read(text) = &mut self.mode else { return };
        match (key, steps(key, self.size.1)) {
            (KeyCode::Esc | KeyCode::Char('q') | KeyCode::Enter, _) => self.mode = Mode::Browse,
            (_, Some(by)) => text.go(by, width, height),
            _ => {}
        }
    }

    /// Width and height of a text, in columns and lines.
    pub(super) fn page(&self) -> (usize, usize) {
        let (columns, lines) = self.size;
        (columns.into(), lines.saturating_sub(AROUND_LINES - 1).into())
    }
}

/// The list of keys as a text.
fn keys() -> Text {
    let mut text = Text::about(Topic::Keys, String::new(), String::new());
    KEYS.iter().for_each(|(keys, what)| text.add(format!("{keys:<16}{what}\n").as_bytes()));
    text
}

/// Verb that changes the state: resume for a suspended workload, suspend for any other.
fn other_state(workload: &api_types::Workload) -> Verb {
    if workload.phase() == WorkloadPhase::Stopped { Verb::Resume } else { Verb::Suspend }
}

/// Number of rows by which a key scrolls.
fn steps(key: KeyCode, lines: u16) -> Option<isize> {
    let page = isize::try_from(lines / 2).unwrap_or(1).max(1);
    Some(match key {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown => page,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}
