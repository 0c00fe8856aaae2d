//! `runai top`: GPUs, queues and workloads as they change, at a terminal. Owns: input and output,
//! keys, answers and the screen; does not know the action of a key (`view`) and the drawing
//! (`draw`).

mod draw;
mod panes;
mod text;
mod view;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{BufWriter, IsTerminal as _, Stdout};
use std::time::Duration;

use api_types::{Pod, Project, Status, Workload, WorkloadBatch};
use client::{Client, LogPosition, Logs};
use crossterm::event::{Event, KeyEvent};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::timeout;

use super::change::{action, participle};
use super::context::{Context, now_ms};
use super::describe::{pod_place, pod_status};
use super::exec_session::Signals;
use super::explain;
use super::terminal::{Page, Raw};
use super::top::Used;
use cli_kit::color::Color;
use cli_kit::exit::Error;
use cli_kit::table::age;
use text::Topic;
use view::{Action, Change, Mode, View};
use watch::Watch;

/// Capacity of the update channel; senders wait while it is full.
const NEWS_MAX: usize = 64;
/// Number of earlier output lines that are shown.
const TAIL_LINES: u64 = 500;
/// Maximum number of events in the details of a workload.
const EVENTS_MAX: usize = 50;
/// Maximum time in which a shell stops this program.
const STOPPED_WITHIN: Duration = Duration::from_millis(100);

/// Inputs of the view.
enum Update {
    /// A key.
    Key(KeyEvent),
    /// The size of the screen has changed.
    Resized,
    /// Keys cannot be read any more.
    Deaf,
    /// Status of the server, and the client that fetched it.
    Looked(Box<Status>, Client),
    /// Projects, workloads and pods.
    Lists { projects: Vec<Project>, workloads: Vec<Workload>, pods: Vec<Pod> },
    /// Resource usage of nodes, by name.
    Used(BTreeMap<String, Used>),
    /// The server does not answer, for this reason.
    Away(String),
    /// More bytes of a text about the workload with this id.
    More(Topic, String, Vec<u8>),
    /// The output of the workload with this id was cut off at this position.
    Cut(String, LogPosition),
    /// Result of an action.
    Said(String),
}

/// Shows the view until the user ends it.
pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let is_dumb = std::env::var("TERM").is_ok_and(|kind| kind == "dumb");
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() || is_dumb {
        let why =
            "a live view needs a terminal; `runai top job` and `runai top node` print what is used";
        return Err(Error::Usage(why.to_owned()));
    }
    let project = context.asked_project().map(str::to_owned);
    if let Some(name) = &project
        && context.client.project(name).await?.is_none()
    {
        return Err(context.no_project(name).await?);
    }
    let (to, news) = channel(NEWS_MAX);
    let watch = Watch::open(context, to.clone()).await?;
    let mut signals = Signals::listen()?;
    let colours = Color::chosen().applies(true, |name| std::env::var(name).ok());
    let mut stage = Stage::enter(View::new(project, colours), context.client.clone(), to)?;
    tokio::select! {
        error = watch.run() => Err(error),
        ended = stage.play(news) => ended,
        code = signals.come() => Err(Error::Said(code)),
    }
}

type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// An empty screen.
fn blank() -> std::io::Result<Screen> {
    Terminal::new(CrosstermBackend::new(BufWriter::new(std::io::stdout())))
}

/// The screen, and the running tasks.
struct Stage {
    view: View,
    client: Client,
    news: Sender<Update>,
    screen: Screen,
    raw: Option<Raw>,
    /// Background tasks.
    tasks: JoinSet<()>,
    /// The task that reads the output of a workload.
    reader: Option<AbortHandle>,
    /// Id and position at which the output was cut off.
    cut: Option<(String, LogPosition)>,
    woken: unix::Signal,
}

impl Stage {
    fn enter(view: View, client: Client, news: Sender<Update>) -> Result<Self, Error> {
        let raw = Some(Raw::enter(Page::Own)?);
        let screen = blank()?;
        listen(news.clone());
        let woken = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let tasks = JoinSet::new();
        Ok(Self { view, client, news, screen, raw, tasks, reader: None, cut: None, woken })
    }

    async fn play(&mut self, mut news: Receiver<Update>) -> Result<(), Error> {
        loop {
            let size = self.screen.size()?;
            self.view.size = (size.width, size.height);
            self.screen.draw(|frame| draw::draw(&self.view, frame))?;
            let mut heard = Vec::new();
            tokio::select! {
                _count = news.recv_many(&mut heard, NEWS_MAX) => {}
                _ = self.woken.recv() => self.enter_again()?,
                Some(done) = self.tasks.join_next() => unless_broken(done)?,
            }
            // All queued updates are handled before the next drawing.
            for one in heard {
                match one {
                    Update::Deaf => return Ok(()),
                    Update::Key(key) => match self.view.press(key) {
                        Some(Action::Quit) => return Ok(()),
                        Some(Action::Sleep) => self.sleep().await?,
                        Some(action) => self.act(action),
                        None => {}
                    },
                    other => self.hear(other),
                }
            }
            if !matches!(self.view.mode, Mode::Read(_)) {
                self.stop_reading();
            }
        }
    }

    fn hear(&mut self, news: Update) {
        let view = &mut self.view;
        match news {
            Update::Looked(status, client) => {
                view.seen.status = Some(*status);
                (view.away, self.client) = (None, client);
                if let Some((id, at)) = self.cut.take() {
                    self.read_logs(id, Some(at));
                }
            }
            Update::Lists { projects, mut workloads, pods } => {
                super::rows::sort_v2(&mut workloads);
                (view.seen.projects, view.seen.workloads, view.seen.pods) =
                    (projects, workloads, pods);
            }
            // Nodes that did not answer keep their last values.
            Update::Used(used) => view.seen.used.extend(used),
            Update::Away(why) => view.away = Some(why),
            Update::Said(said) => view.said = Some(said),
            Update::More(topic, id, more) => {
                if let Mode::Read(text) = &mut view.mode
                    && (text.topic, &text.id) == (topic, &id)
                {
                    text.add(&more);
                }
            }
            Update::Cut(id, at) => {
                if let Mode::Read(text) = &view.mode
                    && text.id == id
                {
                    self.cut = Some((id, at));
                }
            }
            // These carry no data from the server.
            Update::Key(_) | Update::Resized | Update::Deaf => {}
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Fetch(Topic::Logs, id) => self.read_logs(id, None),
            Action::Fetch(Topic::Details, id) => {
                let (client, news) = (self.client.clone(), self.news.clone());
                self.tasks.spawn(async move {
                    let text = details(&client, &id).await;
                    let text = text.unwrap_or_else(|error| format!("{error}\n"));
                    drop(news.send(Update::More(Topic::Details, id, text.into_bytes())).await);
                });
            }
            Action::Change(change) => {
                let (client, news) = (self.client.clone(), self.news.clone());
                self.tasks.spawn(async move {
                    let said = apply(&client, change).await;
                    drop(news.send(Update::Said(said)).await);
                });
            }
            // These start no task.
            Action::Quit | Action::Sleep | Action::Fetch(Topic::Keys, _) => {}
        }
    }

    fn read_logs(&mut self, id: String, from: Option<LogPosition>) {
        self.stop_reading();
        let (client, news) = (self.client.clone(), self.news.clone());
        self.reader = Some(self.tasks.spawn(async move {
            let last = follow(&client, &id, from, &news).await;
            drop(news.send(last).await);
        }));
    }

    fn stop_reading(&mut self) {
        self.cut = None;
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
    }

    /// Restores the terminal and stops, as a shell expects, until the shell resumes it.
    async fn sleep(&mut self) -> Result<(), Error> {
        self.raw = None;
        kill_current_process_group(Signal::TSTP).map_err(std::io::Error::from)?;
        // Without job control the process would not be resumed, so it does not stop.
        let _woken = timeout(STOPPED_WITHIN, self.woken.recv()).await;
        self.enter_again()
    }

    fn enter_again(&mut self) -> Result<(), Error> {
        self.raw = None;
        self.raw = Some(Raw::enter(Page::Own)?);
        // To clear it would ask the terminal where its cursor is, and the answer is read as keys.
        self.screen = blank()?;
        Ok(())
    }
}

/// A panicked task has restored the terminal, and the view must not draw on it.
fn unless_broken(done: Result<(), JoinError>) -> Result<(), Error> {
    match done {
        Err(error) if error.is_panic() => {
            Err(Error::Failed(format!("the view broke down: {error}")))
        }
        _ => Ok(()),
    }
}

/// Sends keys. The thread is left behind when the program ends, as nothing else ends a read.
fn listen(news: Sender<Update>) {
    std::thread::spawn(move || {
        loop {
            let heard = match crossterm::event::read() {
                Ok(Event::Key(key)) => Update::Key(key),
                Ok(Event::Resize(..)) => Update::Resized,
                Ok(_) => continue,
                Err(_) => Update::Deaf,
            };
            let last = matches!(heard, Update::Deaf);
            if news.blocking_send(heard).is_err() || last {
                return;
            }
        }
    });
}

/// Sends the output of a workload; returns the last update.
async fn follow(
    client: &Client,
    id: &str,
    from: Option<LogPosition>,
    news: &Sender<Update>,
) -> Update {
    let remark =
        |why: &str| Update::More(Topic::Logs, id.to_owned(), format!("-- {why} --\n").into_bytes());
    let all = Logs { tail_lines: Some(TAIL_LINES), follow: true, ..Logs::default() };
    let opened = match &from {
        Some(at) => client.logs_from(id, at).await,
        None => client.logs(id, None, &all).await,
    };
    let mut stream = match (opened.map_err(Error::from), from) {
        (Ok(stream), _) => stream,
        // A server that has just started may not know yet what runs.
        (Err(Error::Server(client::Error::Api { code: 409, .. })), Some(at)) => {
            return Update::Cut(id.to_owned(), at);
        }
        (Err(error), Some(at)) if error.is_away() => return Update::Cut(id.to_owned(), at),
        (Err(error), _) => return remark(&error.to_string()),
    };
    loop {
        match (stream.next().await, stream.position()) {
            (Ok(Some(chunk)), _) => {
                if news.send(Update::More(Topic::Logs, id.to_owned(), chunk)).await.is_err() {
                    return Update::Deaf;
                }
            }
            (Ok(None), _) => return remark("the end"),
            (Err(error), None) => return remark(&error.to_string()),
            (Err(_), Some(at)) => {
                let cut = remark("cut off; it goes on when the server is back");
                if news.send(cut).await.is_err() {
                    return Update::Deaf;
                }
                return Update::Cut(id.to_owned(), at.clone());
            }
        }
    }
}

/// Reasons for the state of a workload, its pods, and its events.
async fn details(client: &Client, id: &str) -> Result<String, client::Error> {
    let explanation = client.explain(id).await?;
    let (pods, events) = (client.pods(id).await?, client.events(id, EVENTS_MAX).await?);
    let mut lines = explain::lines(&explanation, now_ms());
    lines.push("\nPods:".to_owned());
    lines.extend(
        pods.iter().map(|pod| format!("  {}  {}  {}", pod.name, pod_status(pod), pod_place(pod))),
    );
    lines.push("\nEvents, the newest first:".to_owned());
    let now_ms = now_ms();
    lines.extend(events.iter().rev().map(|event| {
        let ago = age(now_ms.saturating_sub(event.created_at.0.0));
        format!("  {ago:>4}  {}", event.message)
    }));
    Ok(lines.join("\n") + "\n")
}

async fn apply(client: &Client, change: Change) -> String {
    let Change { verb, id, name } = change;
    match client.batch(&WorkloadBatch { ids: vec![id], action: action(verb) }).await {
        Ok(answer) => match answer.failed.first() {
            Some(failure) => format!("{name}: {}", failure.message),
            None => format!("{name} {}", participle(verb)),
        },
        Err(error) => format!("{name}: {error}"),
    }
}
