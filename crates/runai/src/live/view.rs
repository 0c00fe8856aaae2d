//! The state of the live view: what was seen last, what is chosen, and what each key does to it.
//! Pure: keys and news go in, what is to be done outside comes out.

use std::cell::Cell;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::panes::{self, Pane, Row, ServerState};
use super::text::{Text, Topic};
use crate::change::participle;
use dialects::intent::Verb;

/// Lines around the panes: the head, the sentence about what is chosen, and the foot.
pub(super) const AROUND_LINES: u16 = 4;

/// Keys, and what they do.
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

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// End.
    Quit,
    /// Stop until the shell brings it back.
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

/// What keys are about.
#[derive(Debug, Default)]
pub(super) enum Mode {
    /// The panes.
    #[default]
    Browse,
    /// The words that rows must have.
    Filter,
    /// Whether a change is meant.
    Sure(Change),
    /// A text.
    Read(Text),
}

/// What is chosen in a pane.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// What its rows must have, in any case of letters.
    pub(super) filter: String,
    /// The column it is sorted by; none for its own order.
    pub(super) sort: Option<usize>,
    /// The chosen row, by key, and where it was when it was last there.
    key: Option<String>,
    at: usize,
    /// The first row that was seen when it was drawn last.
    first: Cell<usize>,
}

/// The rows that are seen, in order, and which of them is chosen.
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

    /// The first row that is seen where so many have room: the same as before, as far as the chosen
    /// one is seen then.
    pub(super) fn scroll(&self, rows: usize, chosen: usize, room: usize) -> usize {
        let room = room.max(1);
        let first = self.first.get().min(rows.saturating_sub(room));
        let first = first.clamp((chosen + 1).saturating_sub(room), chosen);
        self.first.set(first);
        first
    }
}

/// The whole of it.
#[derive(Debug)]
pub(super) struct View {
    pub(super) seen: ServerState,
    /// Why there is nothing newer; none while the server answers.
    pub(super) away: Option<String>,
    /// Only what concerns this project.
    pub(super) project: Option<String>,
    /// Where keys go.
    pub(super) pane: Pane,
    choices: [Choice; 3],
    pub(super) mode: Mode,
    /// What came of the last action.
    pub(super) said: Option<String>,
    /// Columns and lines of the screen.
    pub(super) size: (u16, u16),
    /// True if it may be coloured.
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

    /// What is chosen in a pane.
    pub(super) fn choice(&self, pane: Pane) -> &Choice {
        &self.choices[pane as usize]
    }

    fn here(&mut self) -> &mut Choice {
        &mut self.choices[self.pane as usize]
    }

    /// The rows of a pane as they are seen, and which is chosen.
    pub(super) fn rows(&self, pane: Pane) -> Listed {
        self.choice(pane).of(pane.rows(&self.seen, self.project.as_deref()))
    }

    /// What a key does.
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
        // It is not seen while something is typed or asked.
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

    /// By the next column; after the last by none.
    fn sort(&mut self) {
        let columns = self.pane.columns().len();
        let here = self.here();
        here.sort = Some(here.sort.map_or(0, |last| last + 1)).filter(|next| *next < columns);
    }

    /// Leaves only the project of the row, or shows all again.
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

    /// The details of a workload; from a queue or a GPU, to its workloads.
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

    /// Chooses a workload that holds a GPU. No other is chosen, whatever the filter leaves of them.
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

    /// The chosen workload; says what to do if there is none.
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

    /// Columns and lines that a text has.
    pub(super) fn page(&self) -> (usize, usize) {
        let (columns, lines) = self.size;
        (columns.into(), lines.saturating_sub(AROUND_LINES - 1).into())
    }
}

/// The page of keys.
fn keys() -> Text {
    let mut text = Text::about(Topic::Keys, String::new(), String::new());
    KEYS.iter().for_each(|(keys, what)| text.add(format!("{keys:<16}{what}\n").as_bytes()));
    text
}

/// What a change of state would be: a suspended one is resumed, any other suspended.
fn other_state(workload: &api_types::Workload) -> Verb {
    if workload.phase == "Stopped" { Verb::Resume } else { Verb::Suspend }
}

/// How many rows a key goes on.
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
