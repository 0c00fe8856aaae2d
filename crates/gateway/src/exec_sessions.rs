//! WebSockets of sessions with a pod. Owns: the limit of their number, the meaning of their
//! messages, pings to silent clients, and when a session has to end. Does not know about: how a pod
//! is reached.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use access::{Caller, resource_of, while_caller};
use api_types::{SessionEnd, TerminalSize, channel};
use auth::Action;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::http::StatusCode;
use engine::{Duplex, Exit, Input, Output, Session};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use http_kit::ApiError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use view::WorkloadView;

use crate::Gateway;

/// Most bytes of a message, each way.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a connection that are one message.
const PIECE_BYTES: usize = 64 << 10;
/// Interval between two pings to the other side.
const PING: Duration = Duration::from_secs(15);
/// Most unanswered pings: a machine may sleep for some minutes, and a user may look long at the
/// last output.
const SILENT_PINGS_MAX: u32 = 40;
/// Most sessions at a time, of one caller and of all.
const SESSIONS_MAX: (usize, usize) = (200, 1000);

/// SIGKILL, as every Unix numbers it.
const KILL: i32 = 9;

/// Number of sessions by caller.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<String, usize>>);

/// The place of a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct SessionPermit {
    all: Arc<Sessions>,
    who: String,
}

impl Sessions {
    /// Takes a place for one more session.
    pub(crate) fn begin(self: &Arc<Self>, who: &str) -> Result<SessionPermit, ApiError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, sum) = (all.get(who).copied().unwrap_or(0), all.values().sum::<usize>());
        let (own_max, sum_max) = SESSIONS_MAX;
        let full = match (own >= own_max, sum >= sum_max) {
            (true, _) => format!("{who} has {own} sessions and connections open, the most allowed"),
            (_, true) => format!("{sum} sessions and connections are open, the most allowed"),
            (false, false) => {
                all.insert(who.to_owned(), own + 1);
                drop(all);
                return Ok(SessionPermit { all: self.clone(), who: who.to_owned() });
            }
        };
        let why = format!("{full}; end one of them first");
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, why))
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                all.remove(&self.who);
            }
        }
    }
}

/// Reason why a WebSocket is closed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Why {
    Done,
    /// The session ended without a result.
    BrokenOff,
    /// A message without a meaning was received.
    Nonsense,
    /// The caller has lost the right to be here.
    NotAllowed,
    Shutdown,
    /// The other side is gone or has closed the connection; no reason is sent.
    Gone,
}

impl Why {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Done => (close_code::NORMAL, "it has ended"),
            Self::BrokenOff => (close_code::ERROR, "the session broke off"),
            Self::Nonsense => (close_code::POLICY, "not a message of this route"),
            Self::NotAllowed => (close_code::POLICY, "the token ended, or the right to do this"),
            Self::Shutdown => (close_code::AWAY, "the server stops"),
            Self::Gone => return None,
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

/// Returns when the caller has to leave the workload.
pub(crate) async fn no_longer_allowed(
    gateway: Arc<Gateway>,
    caller: Caller,
    workload: Arc<WorkloadView>,
) -> Why {
    let shutdown = gateway.shutdown.clone();
    let resource = resource_of(workload.spec.kind);
    let may = |now: &Caller| {
        now.must_to_workload(Action::Update, resource, &workload).is_ok()
            && (gateway.may_enter)(now, &workload).is_ok()
    };
    tokio::select! {
        () = shutdown.wait() => Why::Shutdown,
        () = while_caller(&*gateway.authenticator, &caller, may) => Why::NotAllowed,
    }
}

/// A WebSocket, for sending and receiving.
pub(crate) trait Socket:
    Sink<Message, Error: Send> + Stream<Item = Result<Message, axum::Error>> + Unpin + Send
{
}

impl<T> Socket for T where
    T: Sink<Message, Error: Send> + Stream<Item = Result<Message, axum::Error>> + Unpin + Send
{
}

/// Carries a session until one side ends it, or `until` does.
pub(crate) async fn carry(socket: WebSocket, session: Session, until: impl Future<Output = Why>) {
    let Session { input, mut output } = session;
    let (mut to, mut from) = socket.split();
    let line = Liveness::default();
    let why = tokio::select! {
        why = until => why,
        why = take_input(&mut from, input, &line) => why,
        why = line.send(&mut to, &mut output) => why,
    };
    close(to, why).await;
}

/// Carries a connection until both sides have ended it, or `until` does.
pub(crate) async fn forward<S: Socket>(
    socket: S,
    connection: Box<dyn Duplex>,
    until: impl Future<Output = Why>,
) {
    let (reader, writer) = tokio::io::split(connection);
    let mut reader = Incoming(reader);
    let (mut to, mut from) = socket.split();
    let line = Liveness::default();
    let (said_all, has_said_all) = oneshot::channel::<()>();
    let sent = async {
        match line.send(&mut to, &mut reader).await {
            Why::Done => drop(said_all),
            why => return why,
        }
        // Pings continue while the peer may still send.
        line.send(&mut to, &mut NoSource).await
    };
    let received = async {
        if let Err(why) = receive(&mut from, writer, &line).await {
            return why;
        }
        drop(has_said_all.await);
        Why::Done
    };
    let why = tokio::select! {
        why = until => why,
        why = sent => why,
        why = received => why,
    };
    close(to, why).await;
}

async fn close(mut to: impl Sink<Message> + Unpin, why: Why) {
    if let Some(frame) = why.frame() {
        // A peer that no longer reads is not waited for.
        let closing = to.send(Message::Close(Some(frame)));
        drop(tokio::time::timeout(PING, closing).await);
    }
}

/// Liveness of the peer.
#[derive(Debug, Default)]
struct Liveness {
    /// Something was received since the last ping; or this side does not read now.
    heard: AtomicBool,
    busy: AtomicBool,
}

impl Liveness {
    /// The next message that carries something; an error when there will be none.
    async fn next(&self, from: &mut SplitStream<impl Socket>) -> Result<Bytes, Why> {
        loop {
            let message = from.next().await;
            self.heard.store(true, Ordering::Relaxed);
            match message {
                Some(Ok(Message::Binary(bytes))) => return Ok(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(_))) => return Err(Why::Nonsense),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Why::Gone),
            }
        }
    }

    /// Waits for something that takes what came; until then nothing reads it.
    async fn hand<T>(&self, taking: impl Future<Output = T>) -> T {
        self.busy.store(true, Ordering::Relaxed);
        let taken = taking.await;
        self.busy.store(false, Ordering::Relaxed);
        taken
    }

    /// Sends what comes from `source`, and pings the peer in between; to the end.
    async fn send(
        &self,
        to: &mut SplitSink<impl Socket, Message>,
        source: &mut impl Source,
    ) -> Why {
        let mut pings = interval_at(Instant::now() + PING, PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = 0;
        loop {
            let next = tokio::select! {
                next = source.next() => next,
                _ = pings.tick() => {
                    let heard = self.heard.swap(false, Ordering::Relaxed);
                    silent = if heard || self.busy.load(Ordering::Relaxed) { 0 } else { silent + 1 };
                    if silent >= SILENT_PINGS_MAX {
                        return Why::Gone;
                    }
                    Next::Message(Message::Ping(Bytes::new()))
                }
            };
            let (message, end) = match next {
                Next::Message(message) => (message, None),
                Next::Last(message, why) => (message, Some(why)),
                Next::End(why) => return why,
            };
            match (to.send(message).await, end) {
                (Ok(()), None) => {}
                (Ok(()), Some(why)) => return why,
                (Err(_), _) => return Why::Gone,
            }
        }
    }
}

/// Next action of a source: a message, a last message, or an end.
enum Next {
    Message(Message),
    Last(Message, Why),
    End(Why),
}

/// Source of messages to send.
trait Source: Send {
    /// The next message. It loses nothing if the future is dropped before it completes.
    fn next(&mut self) -> impl Future<Output = Next> + Send;
}

/// Hands on what is typed.
async fn take_input(
    from: &mut SplitStream<impl Socket>,
    to: mpsc::Sender<Input>,
    line: &Liveness,
) -> Why {
    loop {
        let message = match line.next(from).await {
            Ok(message) => message,
            Err(why) => return why,
        };
        let Some(input) = meaning(&message) else { return Why::Nonsense };
        if line.hand(to.send(input)).await.is_err() {
            // The session has ended; its last words are on their way.
            return pending().await;
        }
    }
}

/// Meaning of a message to a session.
fn meaning(message: &[u8]) -> Option<Input> {
    let (&about, rest) = message.split_first()?;
    match about {
        channel::INPUT => Some(Input::Bytes(rest.to_vec())),
        channel::INPUT_ENDS => Some(Input::Eof),
        channel::SIZE => {
            let TerminalSize { rows, columns } = serde_json::from_slice(rest).ok()?;
            Some(Input::Resize(engine::TerminalSize { rows, columns }))
        }
        _ => None,
    }
}

/// Output of a session, and its end.
impl Source for mpsc::Receiver<Output> {
    async fn next(&mut self) -> Next {
        let message = |about: u8, bytes: &[u8]| Message::Binary([&[about], bytes].concat().into());
        match self.recv().await {
            Some(Output::Stdout(bytes)) => Next::Message(message(channel::OUTPUT, &bytes)),
            Some(Output::Stderr(bytes)) => Next::Message(message(channel::ERRORS, &bytes)),
            Some(Output::End(exit)) => {
                let end = serde_json::json!(session_end(exit)).to_string();
                Next::Last(message(channel::END, end.as_bytes()), Why::Done)
            }
            None => Next::End(Why::BrokenOff),
        }
    }
}

/// Data from a connection; an empty message is its end.
struct Incoming(ReadHalf<Box<dyn Duplex>>);

impl Source for Incoming {
    async fn next(&mut self) -> Next {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        match self.0.read_buf(&mut piece).await {
            Ok(0) => Next::Last(Message::Binary(Bytes::new()), Why::Done),
            Ok(_) => Next::Message(Message::Binary(piece.into())),
            Err(_) => Next::End(Why::BrokenOff),
        }
    }
}

/// A source without messages.
struct NoSource;

impl Source for NoSource {
    async fn next(&mut self) -> Next {
        pending().await
    }
}

fn session_end(exit: Exit) -> SessionEnd {
    let none = SessionEnd::default();
    match exit {
        Exit::Code(code) => SessionEnd { exit_code: Some(code), ..none },
        Exit::Signal(signal) => SessionEnd { signal: Some(signal), ..none },
        // The signal that ended it.
        Exit::OutOfMemory | Exit::OutOfDisk(_) => SessionEnd { signal: Some(KILL), ..none },
        Exit::CannotRun(why) | Exit::NotStarted(why) | Exit::NotKept(why) => {
            SessionEnd { error: Some(why), ..none }
        }
        Exit::Lost => SessionEnd { error: Some("how it ended is not known".to_owned()), ..none },
    }
}

/// Writes received messages to a connection; an empty message is the end.
async fn receive(
    from: &mut SplitStream<impl Socket>,
    mut to: WriteHalf<Box<dyn Duplex>>,
    line: &Liveness,
) -> Result<(), Why> {
    loop {
        let bytes = line.next(from).await?;
        let taken = if bytes.is_empty() {
            line.hand(to.shutdown()).await
        } else {
            line.hand(to.write_all(&bytes)).await
        };
        taken.map_err(|_| Why::BrokenOff)?;
        if bytes.is_empty() {
            // Nothing more is read from the client. The next write to it shows if it is gone.
            line.busy.store(true, Ordering::Relaxed);
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;

    #[test]
    fn nobody_takes_all_places() {
        let all = Arc::new(Sessions::default());
        let held: Vec<_> = (0..SESSIONS_MAX.0).map(|_| all.begin("ada").expect("room")).collect();
        let refused = all.begin("ada").expect_err("no room");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        let others: Vec<_> = (0..SESSIONS_MAX.1 - SESSIONS_MAX.0)
            .filter_map(|n| all.begin(&n.to_string()).ok())
            .collect();
        assert!(all.begin("eve").is_err(), "full");
        drop(held);
        assert!(all.begin("ada").is_ok());
        drop(others);
        assert_eq!(all.0.lock().expect("not poisoned").len(), 0, "no session is left");
    }

    /// A client that reads all messages and never sends one.
    struct Vanished;

    impl Stream for Vanished {
        type Item = Result<Message, axum::Error>;
        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }

    impl Sink<Message> for Vanished {
        type Error = axum::Error;
        fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Ok(()))
        }
        fn start_send(self: Pin<&mut Self>, _: Message) -> Result<(), axum::Error> {
            Ok(())
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Ok(()))
        }
        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_vanished_is_given_up_also_when_the_pod_has_said_all() {
        let (here, mut there) = tokio::io::duplex(64);
        there.shutdown().await.expect("the pod says no more, and listens on");
        let carried = forward(Vanished, Box::new(here), pending());
        let long = PING * (SILENT_PINGS_MAX + 2);
        assert!(tokio::time::timeout(long, carried).await.is_ok());
    }

    #[test]
    fn messages_say_what_they_are_about() {
        assert_eq!(meaning(b"\0ls\n"), Some(Input::Bytes(b"ls\n".to_vec())));
        assert_eq!(meaning(b"\xff"), Some(Input::Eof));
        let size = engine::TerminalSize { rows: 3, columns: 4 };
        assert_eq!(meaning(b"\x04{\"rows\":3,\"columns\":4}"), Some(Input::Resize(size)));
        for wrong in [&b""[..], b"\x04{}", b"\x01x", b"\x04{\"rows\":70000,\"columns\":1}"] {
            assert_eq!(meaning(wrong), None, "{wrong:?}");
        }
    }
}
