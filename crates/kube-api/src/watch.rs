//! Watches. Owns: following the objects of a kind for ever, through lost connections, silence and
//! compacted versions. Does not know about: what objects mean.

mod line;

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::answer;
use crate::client::{ApiRequest, Client};
use crate::error::{Call, Error, Verb};
use crate::list::{Page, UnreadableObject};
use crate::path::{Kind, Query, Target, with_parameters};
use crate::types::Resource;
use line::WatchLine;

/// The API server sends a bookmark each minute.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// How long a watch may stay open, which spreads watches over several servers again. The requested
/// time is up to twice as long, so that not all are opened at once.
const OPEN_FOR: Duration = Duration::from_secs(300);
/// A watch that ends sooner is one that failed.
const OPEN_MIN: Duration = Duration::from_secs(1);
/// Longest line: several times the largest object that the API server keeps.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A change of the objects that are followed.
#[derive(Debug)]
pub enum Change<R> {
    /// A full list begins.
    Listing,
    /// An object is there in this state.
    Applied(R),
    /// An object is there, and cannot be read.
    Unreadable(UnreadableObject),
    /// The full list has ended: objects that it did not give are gone.
    Synced,
    /// An object is gone; its last state.
    Deleted(R),
    /// The watch is interrupted; it is tried again.
    Interrupted(Error),
}

/// The times of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchSettings {
    /// A watch through which nothing comes for this long is opened again.
    pub silence_max: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self { silence_max: SILENCE_MAX }
    }
}

/// Follows the objects of a kind. It never ends.
pub struct Watch<R> {
    client: Client,
    query: Query,
    settings: WatchSettings,
    call: Call,
    state: State,
    /// The request that is under way.
    asking: Option<Asking<R>>,
    ready: VecDeque<Change<R>>,
    /// Tries in a row that failed.
    failures: u32,
    /// `true` if a version was compacted, and nothing came after the list since.
    has_relisted: bool,
    /// Earliest time of the next try.
    not_before: Option<Instant>,
}

/// The request in progress. It continues if a caller stops waiting and waits again.
type Asking<R> = Pin<Box<dyn Future<Output = Result<Answer<R>, Error>> + Send>>;

enum Answer<R> {
    First(Page<R>),
    Next(Page<R>),
    Opened(Incoming),
}

impl<R> std::fmt::Debug for Watch<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("call", &self.call).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum State {
    /// The list has to begin.
    Unlisted,
    /// The next page begins at `from`.
    Listing { from: String },
    /// All changes up to this version are known.
    Listed { version: String },
    /// Changes after this version come on a connection.
    Following { version: String, stream: Box<Stream> },
}

#[derive(Debug)]
struct Stream {
    body: Incoming,
    buffer: BytesMut,
    /// Bytes of the buffer that have no end of a line.
    searched: usize,
    opened: Instant,
    heard: Instant,
}

impl Client {
    /// Follows the objects of a kind.
    #[must_use]
    pub fn watch<R: Resource>(&self, query: Query, settings: WatchSettings) -> Watch<R> {
        let namespace = query.namespace.as_deref();
        let call = Kind::of::<R>().call(Verb::Watch, Target { namespace, ..Target::default() });
        Watch {
            client: self.clone(),
            query,
            settings,
            call,
            state: State::Unlisted,
            asking: None,
            ready: VecDeque::new(),
            failures: 0,
            has_relisted: false,
            not_before: None,
        }
    }
}

impl<R: Resource> Watch<R> {
    /// The next change. No change is lost, and no request repeated, if the future is dropped before
    /// it is ready.
    pub async fn next(&mut self) -> Change<R> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return change;
            }
            if let Some(at) = self.not_before {
                sleep_until(at).await;
                self.not_before = None;
            }
            let step = match &self.state {
                State::Following { .. } => self.follow().await,
                _ => self.ask().await,
            };
            if let Err(error) = step {
                self.interrupt(error);
            }
        }
    }

    /// Waits for the answer to the next request.
    async fn ask(&mut self) -> Result<(), Error> {
        if self.asking.is_none() {
            self.asking = Some(self.request());
        }
        let Some(asking) = &mut self.asking else { return Ok(()) };
        let answer = asking.await;
        self.asking = None;
        match answer? {
            Answer::First(page) => {
                self.ready.push_back(Change::Listing);
                self.take(page);
            }
            Answer::Next(page) => self.take(page),
            Answer::Opened(body) => {
                if let State::Listed { version } = &mut self.state {
                    let (version, opened) = (std::mem::take(version), Instant::now());
                    let buffer = BytesMut::new();
                    let stream = Stream { body, buffer, searched: 0, opened, heard: opened };
                    self.state = State::Following { version, stream: Box::new(stream) };
                }
            }
        }
        Ok(())
    }

    fn request(&self) -> Asking<R> {
        let (client, query) = (self.client.clone(), self.query.clone());
        match &self.state {
            State::Listed { version } => self.open(version),
            State::Listing { from } => {
                let from = from.clone();
                Box::pin(async move { client.page(&query, Some(&from)).await.map(Answer::Next) })
            }
            _ => Box::pin(async move { client.page(&query, None).await.map(Answer::First) }),
        }
    }

    fn take(&mut self, page: Page<R>) {
        self.ready.extend(page.items.into_iter().map(Change::Applied));
        self.ready.extend(page.unreadable.into_iter().map(Change::Unreadable));
        self.state = match page.next {
            Some(from) => State::Listing { from },
            None => {
                self.ready.push_back(Change::Synced);
                State::Listed { version: page.resource_version }
            }
        };
    }

    /// Tries again later, from the version that is known.
    fn interrupt(&mut self, error: Error) {
        if let State::Following { version, .. } = &mut self.state {
            self.state = State::Listed { version: std::mem::take(version) };
        }
        if error.is_expired() {
            // A list contains all that was missed, so the caller gets no error, unless it repeats.
            self.state = State::Unlisted;
            if !std::mem::replace(&mut self.has_relisted, true) {
                return;
            }
        }
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + self.client.wait_after(&error, self.failures));
        self.ready.push_back(Change::Interrupted(error));
    }

    /// Opens a watch after a version.
    fn open(&self, version: &str) -> Asking<R> {
        let target = Target { namespace: self.query.namespace.as_deref(), ..Target::default() };
        let open_for = self.client.jitter().of(OPEN_FOR * 2).as_secs().to_string();
        let parameters = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &open_for),
            ("resourceVersion", version),
            ("labelSelector", &self.query.labels),
            ("fieldSelector", &self.query.fields),
        ];
        let path = with_parameters(Kind::of::<R>().path(target), &parameters);
        let asked = ApiRequest::reading(self.call.clone(), path);
        let (client, silence) = (self.client.clone(), self.settings.silence_max);
        let silent = self.lost(format!("none within {silence:?}"));
        let deadline = Instant::now() + silence;
        Box::pin(async move {
            match timeout_at(deadline, client.open(&asked)).await {
                Ok(opened) => Ok(Answer::Opened(opened?.into_body())),
                Err(_) => Err(silent),
            }
        })
    }

    /// Takes the lines that have come, or waits for the next part of one.
    async fn follow(&mut self) -> Result<(), Error> {
        let State::Following { version, stream } = &mut self.state else { return Ok(()) };
        if let Some(line) = stream.line() {
            let line = WatchLine::read(&self.call, &line)?;
            if let Some(newer) = line.version() {
                newer.clone_into(version);
            }
            // A server that refuses every version is one that fails.
            if !matches!(line, WatchLine::Failed(_)) {
                (self.failures, self.has_relisted) = (0, false);
            }
            match line {
                WatchLine::Applied(object) => self.ready.push_back(Change::Applied(object)),
                WatchLine::Deleted(object) => self.ready.push_back(Change::Deleted(object)),
                WatchLine::Unreadable(object) => self.ready.push_back(Change::Unreadable(object)),
                WatchLine::Bookmark(_) => {}
                WatchLine::Failed(error) => return Err(error),
            }
            return Ok(());
        }
        if stream.buffer.len() > LINE_BYTES_MAX {
            let fault = format!("a line is longer than {LINE_BYTES_MAX} bytes");
            return Err(answer::unreadable(&self.call, fault));
        }
        let deadline = stream.heard + self.settings.silence_max;
        match timeout_at(deadline, stream.body.frame()).await {
            // An API server that has seen no change of a kind sends no bookmark of it: this is no
            // failure.
            Err(_) => {
                self.state = State::Listed { version: std::mem::take(version) };
                Ok(())
            }
            Ok(Some(Err(error))) => Err(answer::lost(&self.call, &error)),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    stream.heard = Instant::now();
                    stream.buffer.extend_from_slice(&data);
                }
                Ok(())
            }
            // The watch ended after some minutes, as requested.
            Ok(None) if stream.opened.elapsed() >= OPEN_MIN => {
                self.state = State::Listed { version: std::mem::take(version) };
                Ok(())
            }
            Ok(None) => Err(self.lost("it ended at once".to_owned())),
        }
    }

    fn lost(&self, fault: String) -> Error {
        Error::Lost { call: Box::new(self.call.clone()), fault }
    }
}

impl Stream {
    /// The next line that is complete.
    fn line(&mut self) -> Option<BytesMut> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end + 1);
        self.searched = 0;
        Some(line)
    }
}
