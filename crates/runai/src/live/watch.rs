//! Data of the live view: lists as they change, the status of the server, and the usage of nodes.
//! Owns: the interval of each, and that it continues after an outage of the server and before a
//! login expires.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::{
    Change, ChangeFrame, ChangeKind, NodeStatus, Pod, Project, Status, Time, Workload,
};
use client::{ChangeStream, Client, Watched};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, timeout_at};
use units::Instant as Moment;

use super::Update;
use crate::context::Context;
use crate::stabilize::{AT_ONCE_MAX, at_once};
use crate::{session, top};
use cli_kit::exit::Error;

/// Interval of updates of ages, and between two attempts to reach the server.
const TICK: Duration = Duration::from_secs(1);
/// Interval of status requests while nothing changes.
const STATUS_EVERY: Duration = Duration::from_secs(15);
/// Interval of usage requests; the server measures as often.
const USED_EVERY: Duration = Duration::from_secs(15);
/// Minimum interval between two updates of the lists; they may take at most one part in
/// `LISTS_PART` of the time.
const LISTS_EVERY: Duration = Duration::from_millis(250);
const LISTS_PART: u32 = 10;
/// Kinds of changes to follow.
const KINDS: [ChangeKind; 4] =
    [ChangeKind::Project, ChangeKind::Node, ChangeKind::Workload, ChangeKind::Pod];

/// Objects received from the change stream.
#[derive(Debug, Default)]
struct FeedState {
    projects: BTreeMap<u64, Project>,
    /// Ids are in order of creation.
    workloads: BTreeMap<String, Workload>,
    pods: BTreeMap<String, Pod>,
    /// True once the stream has sent all objects.
    complete: bool,
    /// True if something has changed since the lists were sent, and since the status was fetched.
    unsent: bool,
    is_status_old: bool,
}

impl FeedState {
    fn apply(&mut self, frame: ChangeFrame) -> serde_json::Result<()> {
        match frame {
            ChangeFrame::Reset(_) => *self = Self::default(),
            ChangeFrame::Synced(_) => self.complete = true,
            ChangeFrame::Changed(Change { kind, id, object, .. })
            | ChangeFrame::Deleted(Change { kind, id, object, .. }) => match kind {
                ChangeKind::Project => put(&mut self.projects, id.parse().unwrap_or(0), object)?,
                ChangeKind::Workload => put(&mut self.workloads, id, object)?,
                ChangeKind::Pod => put(&mut self.pods, id, object)?,
                // Nodes are part of the status.
                _ => {}
            },
        }
        (self.unsent, self.is_status_old) = (true, true);
        Ok(())
    }

    fn lists(&self) -> Update {
        Update::Lists {
            projects: self.projects.values().cloned().collect(),
            workloads: self.workloads.values().cloned().collect(),
            pods: self.pods.values().cloned().collect(),
        }
    }
}

/// Stores an object, or removes it if it is gone.
fn put<K: Ord, T: DeserializeOwned>(
    all: &mut BTreeMap<K, T>,
    key: K,
    object: Option<serde_json::Value>,
) -> serde_json::Result<()> {
    match object {
        Some(object) => drop(all.insert(key, serde_json::from_value(object)?)),
        None => drop(all.remove(&key)),
    }
    Ok(())
}

/// Time of the last execution, and its duration.
#[derive(Debug, Clone, Copy)]
struct Done {
    at: Instant,
    took: Duration,
}

impl Done {
    /// Execution that began at this time and ends now.
    fn since(at: Instant) -> Self {
        Self { at, took: at.elapsed() }
    }

    /// Time of the next execution: at least `every` later, and in proportion to the duration.
    fn again(self, every: Duration) -> Instant {
        self.at + every.max(self.took * LISTS_PART)
    }
}

/// Follows the server for the live view.
pub(super) struct Watch {
    context: Context,
    news: Sender<Update>,
    stream: ChangeStream,
    there: FeedState,
    status: Option<(Status, Done)>,
    /// Time at which the status was last sent.
    ticked: Option<Instant>,
    lists: Option<Done>,
    used: Option<Instant>,
}

impl Watch {
    /// Fetches everything for the first time.
    ///
    /// # Errors
    /// The first fetch fails.
    pub(super) async fn open(context: &Context, news: Sender<Update>) -> Result<Self, Error> {
        let context = context.renewed().await?;
        let stream = changes(&context);
        let (there, status, ticked, lists, used) = (FeedState::default(), None, None, None, None);
        let mut watch = Self { context, news, stream, there, status, ticked, lists, used };
        while !watch.there.complete {
            watch.read(None).await?;
        }
        watch.look().await?;
        Ok(watch)
    }

    /// Fetches until that is impossible, and returns the reason.
    pub(super) async fn run(mut self) -> Error {
        let mut error = self.follow().await;
        while error.is_away() {
            self.send_update(Update::Away(error.to_string())).await;
            sleep(TICK).await;
            error = match self.context.renewed().await {
                Ok(context) => {
                    // The server may return at another address, and with other data.
                    self.begin(context);
                    self.follow().await
                }
                Err(error) => error,
            };
        }
        error
    }

    fn begin(&mut self, context: Context) {
        self.stream = changes(&context);
        self.context = context;
        self.there = FeedState::default();
        (self.status, self.ticked, self.lists, self.used) = (None, None, None, None);
    }

    /// Follows the changes until an error occurs.
    async fn follow(&mut self) -> Error {
        loop {
            let step = match self.look().await {
                Ok(until) => self.read(Some(until)).await,
                Err(error) => Err(error),
            };
            match step {
                Ok(()) => {}
                // The login may have been renewed by another command; the next refusal counts.
                Err(Error::Server(client::Error::NotLoggedIn { .. })) => {
                    match self.context.renewed().await {
                        Ok(context) => self.begin(context),
                        Err(error) => return error,
                    }
                    if let Err(error) = self.read(None).await {
                        return error;
                    }
                }
                Err(error) => return error,
            }
        }
    }

    /// Reads the next change, until the given time.
    async fn read(&mut self, until: Option<Instant>) -> Result<(), Error> {
        let next = self.stream.next();
        let frame = match until {
            None => next.await,
            Some(until) => match timeout_at(until, next).await {
                Ok(frame) => frame,
                Err(_) => return Ok(()),
            },
        };
        let url = || self.context.client.url().to_owned();
        self.there.apply(frame?).map_err(|error| {
            Error::Server(client::Error::Protocol { url: url(), fault: error.to_string() })
        })
    }

    /// Sends the updates that are due; returns when the next is due.
    async fn look(&mut self) -> Result<Instant, Error> {
        let (now, mut next) = (Instant::now(), Instant::now() + TICK);
        let client = self.context.client.clone();
        let due = self.status.as_ref().map(|(_, done)| {
            done.again(if self.there.is_status_old { TICK } else { STATUS_EVERY })
        });
        if due.is_none_or(|due| due <= now) {
            session::renew(&mut self.context).await?;
            self.there.is_status_old = false;
            let status = self.context.client.status().await?;
            self.status = Some((status, Done::since(now)));
            self.ticked = None;
        } else if let Some(due) = due.filter(|_| self.there.is_status_old) {
            next = next.min(due);
        }
        let is_due = self.ticked.is_none_or(|at| at + TICK <= now);
        if let Some((status, done)) = self.status.as_ref().filter(|_| is_due) {
            self.ticked = Some(now);
            let passed = u64::try_from(done.at.elapsed().as_millis()).unwrap_or_default();
            let at = Time(Moment(status.now.0.0.saturating_add(passed)));
            let status = Status { now: at, ..status.clone() };
            self.send_update(Update::Looked(Box::new(status), client.clone())).await;
        }
        let due = self.lists.map(|done| done.again(LISTS_EVERY));
        if self.there.complete && self.there.unsent {
            if due.is_none_or(|due| due <= now) {
                self.there.unsent = false;
                let lists = self.there.lists();
                self.lists = Some(Done::since(now));
                self.send_update(lists).await;
            } else {
                next = next.min(due.unwrap_or(now));
            }
        }
        if self.used.is_none_or(|at| at.elapsed() >= USED_EVERY) {
            self.used = Some(now);
            let nodes = self.status.iter().flat_map(|(status, _)| measurable(status));
            let used = measure(&nodes.collect::<Vec<_>>(), &client).await?;
            self.send_update(Update::Used(used)).await;
        }
        Ok(next)
    }

    async fn send_update(&self, news: Update) {
        // There is no receiver once the view has ended, and then this ends as well.
        let _ended = self.news.send(news).await;
    }
}

fn changes(context: &Context) -> ChangeStream {
    context.client.changes(Watched { kinds: KINDS.to_vec(), list: true, ..Watched::default() })
}

/// Nodes whose GPUs can be measured, by name.
fn measurable(status: &Status) -> Vec<String> {
    let real = |node: &&NodeStatus| !node.simulated && !node.gpu_used.is_empty();
    status.nodes.iter().filter(real).map(|node| node.name.clone()).collect()
}

/// Resource usage of nodes. A node that the server refuses, because it has just gone, is left out.
async fn measure(nodes: &[String], client: &Client) -> Result<BTreeMap<String, top::Used>, Error> {
    let mut used = BTreeMap::new();
    for some in nodes.chunks(AT_ONCE_MAX) {
        let ask = |name: &String| {
            let (client, name) = (client.clone(), name.clone());
            async move { top::of_node(&name, &client).await }
        };
        for (name, answer) in some.iter().zip(at_once(some.iter().map(ask)).await?) {
            match answer {
                Ok(answer) => drop(used.insert(name.clone(), answer)),
                Err(error) if is_refused(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(used)
}

/// True if the server refuses the request of a known user.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Server(client::Error::Api { .. })) && !error.is_away()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of the stream, from its JSON.
    fn frame(json: serde_json::Value) -> ChangeFrame {
        serde_json::from_value(json).unwrap()
    }

    fn project(id: &str, name: &str) -> ChangeFrame {
        let object = crate::live::tests::project(name, 1.0, 0.0, 0.0);
        let (kind, version) = ("project", 1);
        frame(serde_json::json!({
            "type": "changed", "kind": kind, "id": id, "version": version, "object": object,
        }))
    }

    fn names(there: &FeedState) -> Vec<&str> {
        there.projects.values().map(|project| project.name.as_str()).collect()
    }

    #[test]
    fn lists_are_what_the_stream_said_in_order_of_creation() {
        let mut there = FeedState::default();
        let synced = || frame(serde_json::json!({"type": "synced", "position": "a-1"}));
        for next in [project("10", "b"), project("9", "a"), project("10", "c"), synced()] {
            assert!(!there.complete);
            there.apply(next).unwrap();
        }
        assert!(there.complete && names(&there) == ["a", "c"]);
        let gone =
            serde_json::json!({"type": "deleted", "kind": "project", "id": "9", "version": 2});
        there.apply(frame(gone)).unwrap();
        assert_eq!(names(&there), ["c"]);
        let reset = serde_json::json!({"type": "reset", "reason": "access"});
        there.apply(frame(reset)).unwrap();
        assert!(!there.complete && names(&there).is_empty());
        let odd = serde_json::json!({"id": 7});
        assert!(put(&mut there.projects, 1, Some(odd)).is_err());
    }

    #[test]
    fn lists_are_sent_at_once_but_not_all_the_time_where_there_are_many() {
        let at = Instant::now();
        let after = |took_ms| {
            let done = Done { at, took: Duration::from_millis(took_ms) };
            done.again(LISTS_EVERY) - at
        };
        assert_eq!(after(1), LISTS_EVERY);
        assert_eq!(after(900), Duration::from_secs(9), "there are many");
    }

    #[test]
    fn who_is_simulated_or_has_no_gpus_is_not_measured() {
        let node = |name: &str, simulated: bool, gpus: usize| {
            serde_json::json!({
                "name": name, "pool": "default", "gpuType": "A100", "simulated": simulated,
                "gpuMemoryBytes": vec![1; gpus], "gpuUsed": vec![0; gpus], "cpuMillis": 1,
                "cpuUsedMillis": 0, "memoryBytes": 0, "memoryUsedBytes": 0,
            })
        };
        let nodes = [node("real", false, 1), node("simulated", true, 1), node("cpu", false, 0)];
        assert_eq!(measurable(&crate::live::tests::status(&nodes)), ["real"]);
    }

    #[test]
    fn only_an_answer_that_says_no_is_passed_over() {
        let api = |code| Error::Server(client::Error::refusal(code, "no".to_owned()));
        let url = "u".to_owned();
        assert!(is_refused(&api(404)) && is_refused(&api(500)));
        assert!(!is_refused(&api(503)) && !is_refused(&client::Error::NotRunning { url }.into()));
    }
}
