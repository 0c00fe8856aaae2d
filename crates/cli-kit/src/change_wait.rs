//! Waits for changes in place of polling. Owns: that no change between a request and the wait after
//! it is missed, and the fallback if the server has no change stream or is away.

use std::time::Duration;

use api_types::ChangeKind;
use client::{ChangeStream, Client, Watched};
use tokio::time::{Instant, sleep, timeout_at};

/// Minimum interval between two requests with `--watch`.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Interval of requests for data that the stream does not have, such as measured values, which are
/// new every 15 seconds, and the effect of workloads that the caller does not see.
const UNSEEN_EVERY: Duration = Duration::from_secs(5);
/// Changes within this time are reported once.
const TOGETHER: Duration = Duration::from_millis(20);

/// Wait for changes.
pub struct ChangeWait {
    stream: ChangeStream,
    /// Minimum time between two reports.
    spacing: Duration,
    /// Maximum time between them; `None` = no limit.
    at_most: Option<Duration>,
    last: Option<Instant>,
}

impl ChangeWait {
    /// Changes of these kinds, in one project or in all.
    pub fn new(client: &Client, kinds: &[ChangeKind], project: Option<&str>) -> Self {
        let (kinds, project) = (kinds.to_vec(), project.map(str::to_owned));
        Self::of(client, Watched { kinds, project, ..Watched::default() })
    }

    /// Changes of a workload and its pods.
    pub fn of_workload(client: &Client, id: &str) -> Self {
        let workload = Some(id.to_owned());
        Self::of(client, Watched { workload, ..Watched::default() })
    }

    /// For `--watch`: as `new`, but at most one report per polling interval, however many changes
    /// there are.
    #[must_use]
    pub fn watch(client: &Client, kinds: &[ChangeKind], project: Option<&str>) -> Self {
        Self { spacing: WATCH_EVERY, ..Self::new(client, kinds, project) }
    }

    /// Also reports every five seconds, for an answer with data that the stream does not have.
    #[must_use]
    pub fn with_unseen(self) -> Self {
        Self { at_most: Some(UNSEEN_EVERY), ..self }
    }

    fn of(client: &Client, watched: Watched) -> Self {
        Self { stream: client.changes(watched), spacing: TOGETHER, at_most: None, last: None }
    }

    /// Returns when something may have changed since the last return; without a stream, after
    /// `otherwise`. The first call returns as soon as the stream is open, so that the caller sees
    /// earlier changes.
    pub async fn changed(&mut self, otherwise: Duration) {
        let most = self.at_most.map(|most| Instant::now() + most);
        let change = match most {
            Some(most) => timeout_at(most, self.stream.next()).await,
            None => Ok(self.stream.next().await),
        };
        if let Ok(Err(error)) = change {
            tracing::debug!("no changes can be read: {error}");
            return sleep(otherwise).await;
        }
        let now = Instant::now();
        let until = self.last.map_or(now, |last| last + self.spacing).max(now + TOGETHER);
        while let Ok(Ok(_)) = timeout_at(until, self.stream.next()).await {}
        tokio::time::sleep_until(until).await;
        self.last = Some(until);
    }
}
