//! A reader of the stream. Owns: which changes it gets and in which order, that it gets exactly
//! those that it may see, and how it resumes after a break.
//!
//! A reader has a position and nothing else: no queue of its own that could grow. It reads the
//! newest version of each object behind its position, so a slow one gets fewer versions, not more
//! memory. A list is a read from the first version, without the deletions.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use api_types::{
    Change, ChangeFrame, ChangeKind, ChangePosition, ChangeReset, ResetReason, ServerRow,
};
use auth::Action::Read;
use auth::Resource;
use control::Tail;
use control::feed;
use control::feed::{Changes, Entry, Key, Position};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;
use view::{Event, PENDING, Scope, View};

use access::Caller;
use http_kit::ApiError;

use crate::visibility::{Visibility, resources};
use crate::{Context, wire};

/// Interval in which a silent stream sends its position.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Pause before a log that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Changes that are read at once.
const CHANGES_MAX: usize = 256;
/// Bytes that are sent at once. A connection that is not read from holds up to 16 times as many.
const BYTES_MAX: usize = 16 << 10;

/// Start of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartFrom {
    /// At a full list.
    Nothing,
    /// At changes from now on.
    Now,
    /// At changes after this position.
    Position(Position),
}

/// How much of a workload is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of it.
    Whole,
    /// Rows for grids, with texts that several workloads share sent once.
    Row,
}

impl Shape {
    /// All shapes, by name.
    pub(crate) const ALL: [(&str, Self); 2] = [("whole", Self::Whole), ("row", Self::Row)];
    /// The words for them.
    pub(crate) const WORDS: [&str; 2] = [Self::ALL[0].0, Self::ALL[1].0];

    /// True if an object with this key is part of it.
    const fn has(self, key: &Key) -> bool {
        match key {
            Key::Workload(_) => matches!(self, Self::Whole),
            Key::Row(_) | Key::Reason(_) => matches!(self, Self::Row),
            _ => true,
        }
    }

    /// True if objects of a kind are part of it.
    pub(crate) const fn has_kind(self, kind: ChangeKind) -> bool {
        match kind {
            ChangeKind::Reason | ChangeKind::Server | ChangeKind::Event => {
                matches!(self, Self::Row)
            }
            _ => true,
        }
    }
}

/// Query of a reader.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) shape: Shape,
    /// Empty for all kinds.
    pub(crate) kinds: Vec<ChangeKind>,
    /// Projects whose objects and rows are sent; empty for all.
    pub(crate) projects: BTreeSet<u64>,
    /// Workload whose changes, and those of its pods, are sent; `None` for all.
    pub(crate) workload: Option<Uuid>,
    pub(crate) after: StartFrom,
}

impl Subscription {
    fn has(&self, entry: &Entry, context: &Context) -> bool {
        let Some(kind) = wire::kind_of(&entry.key, context) else { return false };
        let of_workload = |id| match entry.key {
            Key::Workload(own) | Key::Row(own) | Key::Pod(own, _) => own == id,
            // The workloads that wait for a reason may change.
            Key::Reason(_) => true,
            _ => false,
        };
        let of_project =
            matches!(entry.place.scope, Scope::Project(id) if self.projects.contains(&id));
        self.shape.has(&entry.key)
            && self.has_kind(kind)
            && (self.projects.is_empty() || of_project)
            && self.workload.is_none_or(of_workload)
    }

    /// Events that are part of it, as far as rights do not matter, from now on; `None` without
    /// events. A reason is sent once for all that wait for it, and not again in an event of each.
    fn events(&self, context: &Context) -> Option<Tail> {
        let (projects, workload) = (self.projects.clone(), self.workload);
        let has = move |event: &Event| {
            let of_project = |id: &u64| projects.contains(id);
            event.kind != PENDING
                && (projects.is_empty() || event.project_id.as_ref().is_some_and(of_project))
                && (workload.is_none() || event.workload_id == workload)
        };
        self.has_kind(ChangeKind::Event).then(|| Tail::new(context.control.clone(), None, has))
    }

    fn has_kind(&self, kind: ChangeKind) -> bool {
        self.shape.has_kind(kind) && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }

    /// Refuses kinds of which the caller may see nothing at all.
    fn check(
        &self,
        context: &Context,
        caller: &Caller,
        visibility: &Visibility,
    ) -> Result<(), ApiError> {
        let unseen = self.kinds.iter().find(|kind| !visibility.has_any(context, **kind));
        match unseen.and_then(|kind| resources(context, *kind).first().copied()) {
            Some(resource) => Err(caller.refused(Read, resource, " anywhere")),
            None => Ok(()),
        }
    }
}

/// A reader and how far it has come.
pub(crate) struct Reader {
    context: Arc<Context>,
    caller: Caller,
    wanted: Subscription,
    changes: Changes,
    visibility: Visibility,
    epoch: u32,
    /// Everything up to this version was sent, or is invisible to this reader.
    version: u64,
    /// The version up to which a list goes on, while it does.
    listing: Option<u64>,
    /// Frame to send before all others.
    first: Option<ChangeFrame<()>>,
    /// The version of the last position that was sent.
    sent: u64,
    /// The server as it was sent last, except its clock; `None` if the query does not include it.
    server: Option<ServerRow>,
    /// Events that follow; `None` if the query does not include them.
    events: Option<Tail>,
    /// Counts the reader while it lives.
    _counted: Box<dyn Any + Send + Sync>,
}

impl Reader {
    pub(crate) async fn open(
        context: Arc<Context>,
        caller: Caller,
        wanted: Subscription,
    ) -> Result<Self, ApiError> {
        let visibility = Visibility::of(&caller);
        wanted.check(&context, &caller, &visibility)?;
        let events = wanted.events(&context);
        let changes = context.control.changes().await;
        let Position { epoch, version } = changes.position();
        let _counted = (context.count)();
        let after = wanted.after;
        let (listing, first, sent, server) = (None, None, 0, None);
        let mut reader = Self {
            context,
            caller,
            wanted,
            changes,
            visibility,
            epoch,
            version,
            listing,
            first,
            sent,
            server,
            events,
            _counted,
        };
        match after {
            StartFrom::Nothing => reader.list_again(ResetReason::Start),
            StartFrom::Now => reader.first = Some(reader.synced()),
            StartFrom::Position(at) if at.epoch != epoch || at.version > version => {
                reader.list_again(ResetReason::OtherEpoch);
            }
            StartFrom::Position(at) => {
                reader.version = at.version;
                reader.first = Some(reader.synced());
            }
        }
        Ok(reader)
    }

    /// The next bytes of the stream; none when there will be no more for this reader.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            // A token that was revoked meanwhile ends here; a role that was given or taken changes
            // what is to be seen.
            self.caller = self.context.authenticator.again(&self.caller)?;
            let visibility = Visibility::of(&self.caller);
            if visibility != self.visibility {
                self.visibility = visibility;
                self.list_again(ResetReason::Access);
            }
            let mut text = String::new();
            self.read(&mut text);
            self.send_events(&mut text);
            if !text.is_empty() {
                return Some(text);
            }
            if self.version < self.changes.position().version {
                continue;
            }
            let heartbeat = Instant::now() + HEARTBEAT;
            let next = async {
                tokio::select! {
                    () = self.changes.after(self.version) => true,
                    more = next_event(&mut self.events) => more,
                }
            };
            let Ok(next) = timeout_at(heartbeat, next).await else {
                let mut text = String::new();
                if self.sent < self.version {
                    self.send_synced(&mut text);
                }
                self.send_server(&mut text, true);
                if text.is_empty() {
                    text.push_str(":\n\n");
                }
                return Some(text);
            };
            if !next {
                return None;
            }
        }
    }

    /// Reads some changes, or some of a list.
    fn read(&mut self, text: &mut String) {
        let until = self.listing.unwrap_or(u64::MAX);
        let read = self.changes.read(self.version, until, CHANGES_MAX);
        if misses_deletions(self.version, self.listing, read.forgotten) {
            self.list_again(ResetReason::TooOld);
            return self.read(text);
        }
        if let Some(frame) = self.first.take() {
            self.send(&frame, text);
        }
        self.send_server(text, false);
        self.send_changes(&read, text);
        if let Some(until) = self.listing
            && self.version >= until
        {
            self.listing = None;
            self.send_synced(text);
        }
    }

    fn send_changes(&mut self, read: &feed::Read, text: &mut String) {
        for entry in &read.entries {
            if text.len() >= BYTES_MAX {
                // The others are read again next time.
                return;
            }
            self.version = entry.version;
            let is_listed = self.listing.is_some();
            if (is_listed && (entry.deleted || entry.archived.is_some()))
                || !self.wanted.has(entry, &self.context)
                || !self.visibility.has(&self.context, &entry.key, entry.place)
            {
                continue;
            }
            let Some(made) = self.text(entry, &read.view) else { continue };
            if !is_listed {
                self.sent = self.version;
                let (epoch, version) = (self.epoch, self.version);
                // Writing to a text cannot fail.
                let _ = writeln!(text, "id: {}", Position { epoch, version });
            }
            text.push_str(&made);
        }
        self.version = read.reached;
    }

    /// The text of a change, made once for all readers that get the same.
    fn text(&self, entry: &Entry, view: &View) -> Option<Arc<str>> {
        let may_see = |scope| self.caller.may(Read, Resource::Workloads, scope);
        match entry.key {
            // The pods on it are not for everyone.
            Key::Gpu(..) if !entry.deleted && !may_see(Scope::Cluster) => {
                let is_seen = |project| may_see(Scope::Project(project));
                wire::text(&self.context, view, entry, &is_seen).map(Arc::from)
            }
            _ => self.changes.text(entry, || wire::text(&self.context, view, entry, &|_| true)),
        }
    }

    /// Restarts with a full list. Until the list is complete there is no position to resume from.
    fn list_again(&mut self, reason: ResetReason) {
        self.server = None;
        self.version = 0;
        self.listing = Some(self.changes.position().version);
        self.first = Some(ChangeFrame::Reset(ChangeReset { reason }));
    }

    /// Sends the server if the query includes it and it has changed; with `again` in any case, for
    /// its clock.
    fn send_server(&mut self, text: &mut String, again: bool) {
        if !self.wanted.has_kind(ChangeKind::Server) {
            return;
        }
        let now = self.context.server();
        let same = |sent: &ServerRow| ServerRow { now: now.now, ..sent.clone() } == now;
        if !again && self.server.as_ref().is_some_and(same) {
            return;
        }
        let (kind, id, version) = (ChangeKind::Server, "server".to_owned(), self.version);
        let (project_id, department_id) = (None, None);
        let object = Some(&now);
        let change = Change { kind, id, version, project_id, department_id, object };
        if let Ok(line) = wire::line(&ChangeFrame::Changed(change)) {
            text.push_str(&line);
        }
        self.server = Some(now);
    }

    /// Sends the events that are ready. While a list is sent they wait for its end.
    fn send_events(&mut self, text: &mut String) {
        let Some(tail) = self.events.as_mut().filter(|_| self.listing.is_none()) else { return };
        while text.len() < BYTES_MAX
            && let Some(event) = tail.take()
        {
            if !self.caller.sees_event(&event) {
                continue;
            }
            let projects = &self.caller.view.projects;
            let department = event.project_id.and_then(|id| Some(projects.get(&id)?.department_id));
            let change = Change {
                kind: ChangeKind::Event,
                id: event.seq.to_string(),
                version: self.version,
                project_id: event.project_id.map(|id| id.to_string()),
                department_id: department.map(|id| id.to_string()),
                object: Some(convert::live_event(&event)),
            };
            if let Ok(line) = wire::line(&ChangeFrame::Changed(change)) {
                text.push_str(&line);
            }
        }
    }

    fn synced(&self) -> ChangeFrame<()> {
        let (epoch, version) = (self.epoch, self.version);
        let position = Position { epoch, version }.to_string();
        ChangeFrame::Synced(ChangePosition { position })
    }

    fn send_synced(&mut self, text: &mut String) {
        let frame = self.synced();
        self.send(&frame, text);
    }

    fn send(&mut self, frame: &ChangeFrame<()>, text: &mut String) {
        let Ok(line) = wire::line(frame) else { return };
        let id = match frame {
            ChangeFrame::Synced(at) => {
                self.sent = self.version;
                at.position.as_str()
            }
            // An empty one takes back those before.
            _ => "",
        };
        let _ = writeln!(text, "id: {id}");
        text.push_str(&line);
    }
}

/// Waits for the next event; false if there will be none. Never returns without a subscription.
async fn next_event(events: &mut Option<Tail>) -> bool {
    let Some(tail) = events else { return pending().await };
    loop {
        match tail.wait().await {
            Ok(more) => return more,
            // The other objects are sent meanwhile.
            Err(error) => {
                tracing::warn!(%error, "events are held back until the log can be read");
                sleep(READ_AGAIN).await;
            }
        }
    }
}

/// True if a reader at a version, or in a list up to another, may have an object whose deletion was
/// forgotten. Objects deleted before the end of a list are not in it.
fn misses_deletions(version: u64, listing: Option<u64>, forgotten: u64) -> bool {
    listing.unwrap_or(version) < forgotten
}

#[cfg(test)]
mod tests {
    use super::misses_deletions;

    #[test]
    fn a_reader_behind_a_forgotten_deletion_begins_again() {
        assert!(misses_deletions(7, None, 8), "the deletion with version 8 was never sent");
        assert!(!misses_deletions(8, None, 8) && !misses_deletions(0, None, 0));
        assert!(misses_deletions(3, Some(7), 8), "it was deleted after it may have been sent");
        assert!(!misses_deletions(3, Some(8), 8), "it was deleted before the list began");
    }
}
