//! The change feed: every object has a version, and readers learn which versions are new.
//!
//! ```text
//!  dispatcher --(a view was published)--> feeder --> index: newest version of each object
//!                                                      ^ readers look up what is behind theirs
//! ```
//!
//! Owns: the order of changes and how many are kept. The feeder compares its last view with the
//! newest one, so the dispatcher only wakes it, and only while there are readers. Does not know
//! about: the shape of an object on the wire, and who may see it.

mod difference;
mod index;
mod key;

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use crate::stored;
use difference::Archived;
use index::{Index, Texts};
use orchestrator::{Error, archived_views};
use store::Store;
use view::{View, WorkloadView};

pub use index::{Entry, Read};
pub use key::{Key, Place};

/// Deleted or archived objects that are kept. A reader that missed older ones gets a list again. A
/// workload with one pod counts as three: itself, its row, the pod.
const LEFT_MAX: usize = 30_000;
/// Bytes of texts kept for readers that reach these changes later.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Interval between two comparisons of views: faster changes appear as one.
const COMPARE_EVERY: Duration = Duration::from_millis(10);
/// How often it is looked whether what runs the pods answers.
const OUTAGE_EVERY: Duration = Duration::from_secs(1);
/// How long versions are kept without readers, for readers that return.
const KEPT_WITHOUT_READERS: Duration = Duration::from_secs(600);

/// A place in the feed. After a restart of the server, or of the feed, the epoch differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Which numbering of versions.
    pub epoch: u32,
    /// The last version that was read.
    pub version: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.epoch, self.version)
    }
}

impl Position {
    /// From the text that [`Display`](fmt::Display) makes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, version) = text.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if epoch.len() != 8 || !digits(epoch) || !digits(version) {
            return None;
        }
        let epoch = u32::from_str_radix(epoch, 16).ok()?;
        Some(Self { epoch, version: version.parse().ok()? })
    }
}

/// How far the feeder is.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    version: u64,
    /// Readers that had come before the view was looked at.
    arrived: u64,
}

/// Number of readers.
#[derive(Debug, Clone, Copy, Default)]
struct Readers {
    now: usize,
    /// All readers since the start.
    ever: u64,
}

/// Versions assigned so far.
#[derive(Debug)]
struct Numbered {
    epoch: u32,
    index: Index,
}

impl Numbered {
    fn new() -> Self {
        // The end of a version 7 UUID is random.
        let bytes = Uuid::now_v7().into_bytes();
        let epoch = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        Self { epoch, index: Index::default() }
    }
}

/// The versions, and who waits for new ones.
#[derive(Debug)]
pub(crate) struct Feed {
    published: watch::Sender<()>,
    readers: watch::Sender<Readers>,
    done: watch::Sender<Done>,
    numbered: RwLock<Numbered>,
    texts: Mutex<Texts>,
    /// Workloads that were archived when they were deleted: no view had them.
    deleted: Mutex<Vec<Arc<WorkloadView>>>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            published: watch::Sender::new(()),
            readers: watch::Sender::default(),
            done: watch::Sender::default(),
            numbered: RwLock::new(Numbered::new()),
            texts: Mutex::default(),
            deleted: Mutex::default(),
        }
    }
}

impl Feed {
    /// Says that there is a newer view. Costs next to nothing, also with many readers.
    pub(crate) fn view_published(&self) {
        self.published.send_replace(());
    }

    /// Says that a workload was deleted that no view had, because it was archived.
    pub(crate) fn archived_deleted(&self, workload: &Arc<WorkloadView>) {
        // Without versions there is no reader that has it.
        if self.done.borrow().version > 0 {
            let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
            deleted.push(workload.clone());
        }
    }

    /// Keeps the versions up to date while there are readers.
    pub(crate) async fn run(
        self: Arc<Self>,
        is_out: impl Fn() -> bool,
        store: Store,
        view: impl Fn() -> Arc<View>,
    ) -> Infallible {
        let (mut published, mut readers) = (self.published.subscribe(), self.readers.subscribe());
        let (mut seen, mut out) = (Arc::<View>::default(), false);
        loop {
            let is_read = readers.wait_for(|readers| readers.now > 0);
            match timeout(KEPT_WITHOUT_READERS, is_read).await {
                // The sender is part of `self`, so there is no other end of this wait.
                Ok(_) => {}
                Err(_) => {
                    if self.clear() {
                        seen = Arc::default();
                    }
                    continue;
                }
            }
            let pause = Instant::now() + COMPARE_EVERY;
            let arrived = readers.borrow_and_update().ever;
            published.mark_unchanged();
            let (now, is_out) = (view(), is_out());
            match archived(&store, &seen, &now).await {
                Ok(archived) => {
                    self.advance(&seen, &now, &archived, is_out != out, arrived).await;
                    (seen, out) = (now, is_out);
                }
                Err(error) => {
                    tracing::warn!(%error, "changes are held back until the database answers");
                    sleep(OUTAGE_EVERY).await;
                    self.published.send_replace(());
                }
            }
            sleep_until(pause).await;
            tokio::select! {
                _ = published.changed() => {}
                _ = readers.changed() => {}
                () = sleep(OUTAGE_EVERY) => {}
            }
        }
    }

    /// Begins to read changes, from the view as it is now.
    pub(crate) async fn changes(self: Arc<Self>) -> Changes {
        let mut done = self.done.subscribe();
        let mut arrived = 0;
        self.readers.send_modify(|readers| {
            readers.now += 1;
            readers.ever += 1;
            arrived = readers.ever;
        });
        // Made before it waits: it is counted until it is dropped.
        let changes = Changes { done: done.clone(), feed: self };
        // The sender is in what `changes` holds.
        let _done = done.wait_for(|done| done.arrived >= arrived).await;
        changes
    }

    /// Compares two views, and wakes the readers if they differ.
    async fn advance(
        &self,
        before: &Arc<View>,
        now: &Arc<View>,
        archived: &Archived,
        all_nodes: bool,
        arrived: u64,
    ) {
        let mut changes = if Arc::ptr_eq(before, now) && !all_nodes {
            Vec::new()
        } else if self.done.borrow().version == 0 {
            // Everything is new. There may be much, and others have to go on meanwhile.
            let (before, now) = (before.clone(), now.clone());
            let compare = move || difference::between(&before, &now, &Archived::new(), all_nodes);
            match tokio::task::spawn_blocking(compare).await {
                Ok(changes) => changes,
                Err(fault) if fault.is_panic() => resume_unwind(fault.into_panic()),
                // The runtime ends, and this with it.
                Err(_) => pending().await,
            }
        } else {
            difference::between(before, now, archived, all_nodes)
        };
        let deleted =
            std::mem::take(&mut *self.deleted.lock().unwrap_or_else(PoisonError::into_inner));
        changes.extend(deleted.iter().flat_map(|workload| difference::deleted(workload)));
        let version = {
            let mut numbered = self.numbered.write().unwrap_or_else(PoisonError::into_inner);
            numbered.index.apply(now.clone(), changes, archived, LEFT_MAX);
            numbered.index.newest()
        };
        self.done.send_if_modified(|done| {
            let is_new = done.version != version || done.arrived != arrived;
            *done = Done { version, arrived };
            is_new
        });
    }

    /// Forgets all versions, if there are any. The next reader begins another epoch.
    fn clear(&self) -> bool {
        let mut numbered = self.numbered.write().unwrap_or_else(PoisonError::into_inner);
        if numbered.index.newest() == 0 || self.readers.borrow().now > 0 {
            return false;
        }
        *numbered = Numbered::new();
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = Texts::default();
        self.done.send_modify(|done| done.version = 0);
        true
    }
}

/// Workloads that left the view without a deletion, as they were last.
async fn archived(store: &Store, before: &View, now: &View) -> Result<Archived, Error> {
    let gone = difference::gone(before, now);
    if gone.is_empty() {
        return Ok(Archived::new());
    }
    let found = store.not_deleted(&gone).await.map_err(stored)?;
    Ok(archived_views(found, now)?.into_iter().map(|one| (one.id, one)).collect())
}

/// A reader of changes. Versions are kept up to date as long as there is one.
pub struct Changes {
    feed: Arc<Feed>,
    done: watch::Receiver<Done>,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Changes")
    }
}

impl Changes {
    /// Where the feed is now.
    #[must_use]
    pub fn position(&self) -> Position {
        let numbered = self.feed.numbered.read().unwrap_or_else(PoisonError::into_inner);
        Position { epoch: numbered.epoch, version: numbered.index.newest() }
    }

    /// The next changes after a version, at most `most` of them and none after `until`.
    #[must_use]
    pub fn read(&self, after: u64, until: u64, most: usize) -> Read {
        let numbered = self.feed.numbered.read().unwrap_or_else(PoisonError::into_inner);
        numbered.index.read(after, until, most)
    }

    /// Text of a version: the stored one of another reader, or the result of `make`.
    pub fn text(&self, of: &Entry, make: impl FnOnce() -> Option<String>) -> Option<Arc<str>> {
        of.text(&self.feed.texts, TEXT_BYTES_MAX, make)
    }

    /// Waits until there is a version after this one.
    pub async fn after(&mut self, version: u64) {
        // The sender is in `feed`.
        let _newer = self.done.wait_for(|done| done.version > version).await;
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.feed.readers.send_modify(|readers| readers.now -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let position = Position { epoch: 0xab, version: 17 };
        assert_eq!(position.to_string(), "000000ab-17");
        assert_eq!(Position::parse("000000ab-17"), Some(position));
        for text in ["", "17", "ab-17", "000000ab-", "000000ab-x", "-00000ab-1", "000000ab-+1"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn without_readers_versions_are_forgotten_and_the_next_are_of_another_epoch() {
        let feed = Feed::default();
        let epoch = || feed.numbered.read().unwrap().epoch;
        let (empty, first) = (Arc::<View>::default(), epoch());
        let projects = [(1, Arc::default())].into_iter().collect();
        let view = Arc::new(View { projects, ..View::default() });
        assert!(!feed.clear(), "there are none yet");
        feed.advance(&empty, &view, &Archived::new(), false, 1).await;
        assert_eq!(feed.done.borrow().version, 1);
        feed.readers.send_modify(|readers| readers.now = 1);
        assert!(!feed.clear() && epoch() == first, "there is a reader");
        feed.readers.send_modify(|readers| readers.now = 0);
        assert!(feed.clear() && epoch() != first && feed.done.borrow().version == 0);
        feed.advance(&view, &view, &Archived::new(), false, 2).await;
        assert_eq!((feed.done.borrow().version, feed.done.borrow().arrived), (0, 2));
    }
}
