//! The live stream of events (server-sent events). Owns: what a reader may see of the log.

use std::convert::Infallible;
use std::time::Duration;

use access::{Authenticator as _, Caller, until_revoked};
use axum::Extension;
use axum::extract::{FromRequestParts, State as FromState};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use control::Tail;
use futures_util::{Stream, StreamExt as _, stream};
use http_kit::openapi::{Description, Input};
use http_kit::{ApiError, parameters};
use utoipa::openapi::schema::Type;
use view::Event;

use crate::ApiState;
use telemetry::Watcher;

/// How often a silent stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A reader and how far it has come.
struct Reader {
    state: ApiState,
    caller: Caller,
    tail: Tail,
    /// Counts the reader while it reads.
    _watcher: Watcher,
}

pub(super) async fn stream(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    After(asked): After,
) -> Result<Sse<impl Stream<Item = Result<Frame, Infallible>>>, ApiError> {
    let tail = Tail::new(state.control.clone(), asked, |_| true);
    let shutdown = state.shutdown.clone();
    let revoked = until_revoked(state.iam.clone(), caller.clone());
    let _watcher = state.telemetry.watcher();
    let reader = Reader { state, caller, tail, _watcher };
    let events = stream::unfold(reader, |mut reader| async move {
        let text = reader.next_seen().await?;
        Some((Ok(text), reader))
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
    async fn next_seen(&mut self) -> Option<Frame> {
        loop {
            let Some(event) = self.tail.take() else {
                match self.tail.wait().await {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(error) => {
                        // The client reconnects with the number of the last event that it has.
                        tracing::error!(%error, "event stream ended: the log cannot be read");
                        return None;
                    }
                }
            };
            // A token that was revoked meanwhile, or a role that was taken, ends here.
            self.caller = self.state.iam.again(&self.caller)?;
            if self.caller.sees_event(&event) {
                return Some(frame(&event));
            }
        }
    }
}
