//! One connection: what it waits for. Owns: when a request came whole, when its answer is unread,
//! and so when the connection is idle. Does not know how many there are (`connections`).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// How long a client may leave a piece of a response unread before its connection counts as idle,
/// in seconds.
const STALLED_AFTER_S: u64 = 60;

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Requests that are being answered.
    busy: AtomicUsize,
    /// The head of a request came.
    has_asked: AtomicBool,
    /// A request came whole, its body included.
    has_asked_whole: AtomicBool,
    /// The body of a request is incomplete, and the response has not begun.
    awaits_body: AtomicBool,
    /// Size of the body of the request that is read or carried out, if it is large, in bytes.
    large_body_bytes: AtomicUsize,
    /// The connection was upgraded to another protocol.
    went_over: AtomicBool,
    /// When the last piece of an answer was handed on and no further one requested yet, in seconds
    /// since [`seconds`] began, at least 1; 0: nothing is unread.
    handed_at_s: AtomicU64,
    leave: Notify,
}

/// Seconds of a clock that never goes back, from 1.
fn seconds() -> u64 {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGAN.elapsed().as_secs() + 1
}

impl Connection {
    /// True if the connection may be closed for a new one: it is silent, sends an unfinished body,
    /// or its client reads nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_silent() || self.awaits_body.load(Ordering::Relaxed) || self.is_stalled(seconds())
    }

    /// True if its client has not read what it was sent for too long.
    fn is_stalled(&self, now_s: u64) -> bool {
        let handed_at_s = self.handed_at_s.load(Ordering::Relaxed);
        handed_at_s > 0 && now_s.saturating_sub(handed_at_s) >= STALLED_AFTER_S
    }

    fn is_silent(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0 && !self.went_over.load(Ordering::Relaxed)
    }

    /// True if the head of a request came.
    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// True if a request came whole.
    pub(crate) fn has_asked_whole(&self) -> bool {
        self.has_asked_whole.load(Ordering::Relaxed)
    }

    /// Size of the large body of its request, in bytes; 0 if there is none.
    pub(crate) fn large_body_bytes(&self) -> usize {
        self.large_body_bytes.load(Ordering::Relaxed)
    }

    /// Counts the body of its request as one of so many bytes, until the response begins.
    pub(crate) fn takes_large_body(&self, bytes: usize) {
        self.large_body_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Requests the end of the connection.
    pub(crate) fn leave(&self) {
        self.leave.notify_one();
    }

    /// Returns when the end of the connection was requested.
    pub(crate) async fn has_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Marks the connection as one on which a request is answered, and watches its body come.
    pub(crate) fn begin(self: &Arc<Self>, body: Body) -> (Busy, Arriving) {
        self.has_asked.store(true, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::Relaxed);
        let arriving = Arriving { body, connection: self.clone() };
        if arriving.body.is_end_stream() {
            arriving.came_whole();
        } else {
            self.awaits_body.store(true, Ordering::Relaxed);
        }
        (Busy(self.clone()), arriving)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Busy {
    /// The connection goes over to another protocol.
    pub(crate) fn goes_over(&self) {
        self.0.went_over.store(true, Ordering::Relaxed);
    }

    /// The request lasts until the end of this response. The rest of its body is no longer waited
    /// for: both may continue side by side.
    pub(crate) fn until_end_of(self, body: Body) -> Answer {
        self.0.awaits_body.store(false, Ordering::Relaxed);
        self.0.takes_large_body(0);
        Answer { body, busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
        self.0.takes_large_body(0);
    }
}

/// The body of an answer.
pub(crate) struct Answer {
    body: Body,
    busy: Busy,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.busy.0.handed_at_s.store(0, Ordering::Relaxed);
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // The next piece is requested once there is room for it, so a client that reads nothing
        // leaves this as it is. A stream without data to send is not stalled.
        let has_data = matches!(frame, Poll::Ready(Some(Ok(_))));
        self.busy.0.handed_at_s.store(if has_data { seconds() } else { 0 }, Ordering::Relaxed);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, as it comes.
pub(crate) struct Arriving {
    body: Body,
    connection: Arc<Connection>,
}

impl Arriving {
    fn came_whole(&self) {
        self.connection.has_asked_whole.store(true, Ordering::Relaxed);
        self.connection.awaits_body.store(false, Ordering::Relaxed);
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // The handler does not read the rest.
        self.connection.awaits_body.store(false, Ordering::Relaxed);
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.came_whole();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc;

    use super::*;

    fn nothing() -> Body {
        Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>())
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_idle_and_one_that_waits_is_not() {
        let (stalled, waiting) = (Arc::<Connection>::default(), Arc::<Connection>::default());
        let mut unread = stalled.begin(Body::empty()).0.until_end_of(Body::from("a piece"));
        unread.frame().await.unwrap().unwrap();
        let mut asked = waiting.begin(Body::empty()).0.until_end_of(nothing());
        let none = tokio::time::timeout(std::time::Duration::from_millis(1), asked.frame()).await;
        assert!(none.is_err());
        let later_s = seconds() + STALLED_AFTER_S;
        assert!(stalled.is_stalled(later_s) && !waiting.is_stalled(later_s));
    }

    #[tokio::test]
    async fn a_request_is_idle_until_its_body_is_there_and_not_while_it_is_answered() {
        let one = Arc::<Connection>::default();
        assert!(one.is_idle() && !one.has_asked());
        let (piece, mut pieces) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let body = futures_util::stream::poll_fn(move |context| pieces.poll_recv(context));
        let (busy, mut body) = one.begin(Body::from_stream(body));
        piece.send(Ok("{".into())).await.unwrap();
        body.frame().await.unwrap().unwrap();
        assert!(one.is_idle() && one.has_asked() && !one.has_asked_whole());
        drop(piece);
        assert!(body.frame().await.is_none());
        assert!(!one.is_idle() && one.has_asked_whole());
        drop(busy);
        assert!(one.is_idle(), "between two requests");
    }

    #[test]
    fn an_answer_that_begins_and_a_body_that_nobody_reads_are_not_waited_for() {
        let one = Arc::<Connection>::default();
        let (busy, body) = one.begin(nothing());
        assert!(one.is_idle());
        let answer = busy.until_end_of(nothing());
        assert!(!one.is_idle(), "both go on side by side");
        drop((answer, body));
        let (_busy, body) = one.begin(nothing());
        drop(body);
        assert!(!one.is_idle() && !one.has_asked_whole());
    }
}
