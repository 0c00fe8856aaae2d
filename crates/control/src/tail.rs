//! The end of the event log, as it grows. Owns: that a reader gets each event once and in order: the
//! log is read up to the present, then events are passed on as they come, and a reader that falls
//! behind is caught up from the log. Does not know about: who may see an event.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use orchestrator::Error;
use records::EventFilter;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use view::Event;

use crate::Handle;

/// Maximum number of events that are read from the log at once.
const BATCH: u32 = 500;

/// Position of a reader in the event log.
pub struct Tail {
    handle: Handle,
    live: Receiver<Arc<Event>>,
    /// Number of the last event that was taken.
    cursor: u64,
    ready: VecDeque<Arc<Event>>,
    /// True if the log may have more than the `ready` events.
    behind: bool,
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Tail {
    /// Begins behind the event with this number; without one, behind the newest.
    #[must_use]
    pub fn new(handle: Handle, after: Option<u64>) -> Self {
        // Subscribed before the position is taken: what happens in between comes twice, not never.
        let live = handle.subscribe();
        let cursor = after.unwrap_or_else(|| handle.view().event_seq);
        Self { handle, live, cursor, ready: VecDeque::new(), behind: true }
    }

    /// The next event if one is ready.
    pub fn take(&mut self) -> Option<Arc<Event>> {
        let event = self.ready.pop_front()?;
        self.cursor = event.seq;
        Some(event)
    }

    /// Waits until an event is ready; false if there will be none, because the server ends or its
    /// log cannot be read. Nothing is lost if the wait is given up.
    pub async fn wait(&mut self) -> bool {
        while self.ready.is_empty() {
            if self.behind {
                if let Err(error) = self.read_log().await {
                    // The client reconnects with the number of the last event it has.
                    tracing::error!(%error, "event stream ended: the log cannot be read");
                    return false;
                }
                continue;
            }
            match self.live.recv().await {
                Ok(event) if event.seq <= self.cursor => {}
                Ok(event) if event.seq == self.cursor + 1 => self.ready.push_back(event),
                // Something is missing in between: the log has it, and this event as well.
                Ok(_) | Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return false,
            }
        }
        true
    }

    async fn read_log(&mut self) -> Result<(), Error> {
        let (after_seq, limit) = (Some(self.cursor), Some(BATCH));
        let filter = EventFilter { after_seq, limit, ..EventFilter::default() };
        let events = self.handle.events(filter).await?;
        self.behind = events.len() == BATCH as usize;
        self.ready.extend(events.into_iter().map(Arc::new));
        Ok(())
    }
}
