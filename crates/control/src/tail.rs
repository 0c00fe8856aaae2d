//! The end of the event log, as it grows. Owns: that a reader gets each event once and in order:
//! the log is read up to the present, then events are passed on as they come, and a reader that
//! falls behind is caught up from the log. Does not know about: who may see an event.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use orchestrator::Error;
use records::EventFilter;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use view::Event;

use crate::Handle;

/// Maximum number of events that are read from the log at once.
const BATCH: u32 = 500;
/// Number of ready events from which on no more are taken at once.
const READY_MAX: usize = 500;

/// Events of a batch of the log.
type Batch = Pin<Box<dyn Future<Output = Result<Vec<Event>, Error>> + Send>>;

/// Position of a reader in the event log.
pub struct Tail {
    handle: Handle,
    live: Receiver<Arc<Event>>,
    /// Events that the reader gets; the others are passed over.
    wanted: Box<dyn Fn(&Event) -> bool + Send>,
    /// Number of the last event that was read.
    cursor: u64,
    ready: VecDeque<Arc<Event>>,
    /// True if the log may have more than was read.
    behind: bool,
    /// Reading of the log that has begun. It goes on where the wait for it was given up.
    reading: Option<Batch>,
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Tail {
    /// Begins behind the event with this number; without one, behind the newest.
    #[must_use]
    pub fn new(
        handle: Handle,
        after: Option<u64>,
        wanted: impl Fn(&Event) -> bool + Send + 'static,
    ) -> Self {
        // Subscribed before the position is taken: what happens in between comes twice, not never.
        let live = handle.subscribe();
        let cursor = after.unwrap_or_else(|| handle.view().event_seq);
        let (wanted, ready) = (Box::new(wanted), VecDeque::new());
        Self { handle, live, wanted, cursor, ready, behind: after.is_some(), reading: None }
    }

    /// The next event if one is ready.
    pub fn take(&mut self) -> Option<Arc<Event>> {
        self.ready.pop_front()
    }

    /// Waits until an event is ready; false if there will be none, because the server ends. Nothing
    /// is lost if the wait is given up, and a reading of the log goes on.
    ///
    /// # Errors
    /// The log cannot be read. The next wait reads it again.
    pub async fn wait(&mut self) -> Result<bool, Error> {
        while self.ready.is_empty() {
            if self.behind {
                self.read_log().await?;
                continue;
            }
            let mut next = self.live.recv().await.map_err(Gap::from);
            // All at once: a reader looks at its rights for each time that it is woken.
            loop {
                match next {
                    Ok(event) => self.pass(event),
                    Err(Gap::Ended) => return Ok(false),
                    Err(Gap::Missed) => self.behind = true,
                    Err(Gap::Nothing) => break,
                }
                if self.behind || self.ready.len() >= READY_MAX {
                    break;
                }
                next = self.live.try_recv().map_err(Gap::from);
            }
        }
        Ok(true)
    }

    /// Takes the next live event, or notes that some are missing before it.
    fn pass(&mut self, event: Arc<Event>) {
        match event.seq.checked_sub(self.cursor) {
            None | Some(0) => {}
            Some(1) => self.read(event),
            // The log has those in between, and this one as well.
            Some(_) => self.behind = true,
        }
    }

    fn read(&mut self, event: Arc<Event>) {
        self.cursor = event.seq;
        if (self.wanted)(&event) {
            self.ready.push_back(event);
        }
    }

    async fn read_log(&mut self) -> Result<(), Error> {
        let reading = self.reading.get_or_insert_with(|| {
            let (after_seq, limit) = (Some(self.cursor), Some(BATCH));
            let filter = EventFilter { after_seq, limit, ..EventFilter::default() };
            let handle = self.handle.clone();
            Box::pin(async move { handle.events(filter).await })
        });
        let read = reading.await;
        self.reading = None;
        let events = read?;
        self.behind = events.len() == BATCH as usize;
        events.into_iter().for_each(|event| self.read(Arc::new(event)));
        Ok(())
    }
}

/// No live event.
enum Gap {
    /// There is none now.
    Nothing,
    /// Some were missed.
    Missed,
    /// There will be none.
    Ended,
}

impl From<RecvError> for Gap {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Lagged(_) => Self::Missed,
            RecvError::Closed => Self::Ended,
        }
    }
}

impl From<TryRecvError> for Gap {
    fn from(error: TryRecvError) -> Self {
        match error {
            TryRecvError::Empty => Self::Nothing,
            TryRecvError::Lagged(_) => Self::Missed,
            // The next wait finds it out.
            TryRecvError::Closed => Self::Nothing,
        }
    }
}
