//! The live stream of events (server-sent events). Owns: that no reader misses one: the log is
//! read up to the present, then events are passed on as they come, and a reader that falls
//! behind is caught up from the log.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use access::{Authenticator as _, Caller, until_revoked};
use auth::{Action, Resource};
use axum::Extension;
use axum::extract::{FromRequestParts, State as FromState};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _, stream};
use http_kit::openapi::{Description, Input};
use http_kit::{ApiError, parameters};
use records::EventFilter;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::openapi::schema::Type;
use view::{Event, Scope};

use crate::ApiState;
use telemetry::Watcher;

/// How often a silent stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Events read from the log at once.
const BATCH: u32 = 500;

/// A reader and how far it has come.
struct Reader {
    state: ApiState,
    caller: Caller,
    live: Receiver<Arc<Event>>,
    /// Number of the last event handed out.
    cursor: u64,
    ready: VecDeque<Event>,
    /// True if the log may have more than the `ready` events.
    behind: bool,
    /// Counts the reader while it reads.
    _watcher: Watcher,
}

pub(super) async fn stream(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    After(asked): After,
) -> Result<Sse<impl Stream<Item = Result<Frame, Infallible>>>, ApiError> {
    // Subscribed before the position is taken: what happens in between comes twice, not never.
    let live = state.control.subscribe();
    let cursor = asked.unwrap_or_else(|| state.control.view().event_seq);
    let shutdown = state.shutdown.clone();
    let revoked = until_revoked(state.iam.clone(), caller.clone());
    let _watcher = state.telemetry.watcher();
    let ready = VecDeque::new();
    let reader = Reader { state, caller, live, cursor, ready, behind: true, _watcher };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next_seen().await?;
        Some((Ok(frame(&event)), reader))
    });
    // Also while there are no events to send.
    let stop = Box::pin(async move {
        tokio::select! {
            () = shutdown.wait() => {}
            () = revoked => {}
        }
    });
    let keep_alive = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(events.take_until(stop)).keep_alive(keep_alive))
}

/// Where the reader wants to go on.
pub(super) struct After(Option<u64>);

impl Input for After {
    fn describe(to: &mut Description) {
        let about = "Number of the last event read; the header Last-Event-ID says the same";
        to.parameter("after", Type::Integer, about);
    }
}

impl<S: Sync> FromRequestParts<S> for After {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        position(&parts.headers, &parts.uri).map(Self)
    }
}

/// Event after which the reader continues; `None` for events from now on.
fn position(headers: &HeaderMap, uri: &Uri) -> Result<Option<u64>, ApiError> {
    let mut after = None;
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "after" => after = Some(value),
            _ => {
                return Err(ApiError::bad(format!("unknown parameter `{name}`; allowed is after")));
            }
        }
    }
    // A browser that reconnects repeats the address and adds the header, which is newer.
    let header = headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?").to_owned());
    let Some(text) = header.or(after) else { return Ok(None) };
    let why = format!("`{text}` is not the number of an event; use the id of the last one read");
    text.parse().map(Some).map_err(|_| ApiError::field("after", why))
}

fn frame(event: &Event) -> Frame {
    let data = serde_json::json!(convert::live_event(event)).to_string();
    Frame::default().id(event.seq.to_string()).data(data)
}

impl Reader {
    /// The next event that the reader may see; `None` at the end of the stream.
    async fn next_seen(&mut self) -> Option<Event> {
        loop {
            let event = self.next().await?;
            // A token that was revoked meanwhile, or a role that was taken, ends here.
            self.caller = self.state.iam.again(&self.caller)?;
            let scope = event.project_id.map_or(Scope::Tenant, Scope::Project);
            if self.caller.may(Action::Read, Resource::Workloads, scope) {
                return Some(event);
            }
        }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.cursor = event.seq;
                return Some(event);
            }
            if self.behind {
                self.read_log().await?;
                continue;
            }
            match self.live.recv().await {
                Ok(event) if event.seq <= self.cursor => {}
                Ok(event) if event.seq == self.cursor + 1 => {
                    self.ready.push_back(Event::clone(&event));
                }
                // Something is missing in between: the log has it, and this event as well.
                Ok(_) | Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    async fn read_log(&mut self) -> Option<()> {
        let filter = EventFilter {
            after_seq: Some(self.cursor),
            limit: Some(BATCH),
            ..EventFilter::default()
        };
        match self.state.control.events(filter).await {
            Ok(events) => {
                self.behind = events.len() == BATCH as usize;
                self.ready.extend(events);
                Some(())
            }
            Err(error) => {
                // The client reconnects with the number of the last event it has.
                tracing::error!(%error, "event stream ended: the log cannot be read");
                None
            }
        }
    }
}
