//! Waiting for a change instead of asking again and again. Owns: that nothing which happens between
//! a look at the server and the wait after it is missed, and what is done where the server has no
//! stream of changes or is away.

use std::time::Duration;

use api_types::ChangeKind;
use client::{ChangeStream, Client, Watched};
use tokio::time::{Instant, sleep, timeout_at};

/// How often `--watch` asks at most.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How often it asks for what the stream does not have, such as measured values, which are new
/// every 15 seconds, and the effect of workloads that the caller does not see.
const UNSEEN_EVERY: Duration = Duration::from_secs(5);
/// What changes within this time is looked at once.
const TOGETHER: Duration = Duration::from_millis(20);

/// What is waited for.
pub struct ChangeWait {
    stream: ChangeStream,
    /// Least time between two beats.
    spacing: Duration,
    /// Most time between them.
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

    /// For `--watch`: as `new`, and as often as it would be asked otherwise, however much happens.
    #[must_use]
    pub fn watch(client: &Client, kinds: &[ChangeKind], project: Option<&str>) -> Self {
        Self { spacing: WATCH_EVERY, ..Self::new(client, kinds, project) }
    }

    /// The same where the answer has something that the stream does not have: that is asked for
    /// every five seconds.
    #[must_use]
    pub fn with_unseen(self) -> Self {
        Self { at_most: Some(UNSEEN_EVERY), ..self }
    }

    fn of(client: &Client, watched: Watched) -> Self {
        Self { stream: client.changes(watched), spacing: TOGETHER, at_most: None, last: None }
    }

    /// Returns when something may have changed since it returned last, and where that cannot be
    /// known after `otherwise`. The first time it returns as soon as changes are listened for, so
    /// that what happened before is looked at.
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
