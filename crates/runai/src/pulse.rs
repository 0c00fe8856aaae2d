//! Waiting for a change instead of asking again and again. Owns: that nothing which happens between
//! a look at the server and the wait after it is missed, and what is done where the server has no
//! stream of changes or is away.

use std::io::Write;
use std::time::Duration;

use api_types::ChangeKind;
use client::{ChangeStream, Client, Watched};
use tokio::time::{Instant, sleep, timeout_at};

use super::context::Context;
use cli_kit::exit::Error;
use cli_kit::output::{WATCH_EVERY, show_after};
use dialects::intent::{How, Intent, Objects};

/// What changes within this time is looked at once.
const TOGETHER: Duration = Duration::from_millis(20);

/// What is waited for.
pub(super) struct Pulse {
    stream: ChangeStream,
    /// Least time between two beats.
    spacing: Duration,
    last: Option<Instant>,
}

impl Pulse {
    /// Changes of these kinds, in one project or in all.
    pub(super) fn new(client: &Client, kinds: &[ChangeKind], project: Option<&str>) -> Self {
        let (kinds, project) = (kinds.to_vec(), project.map(str::to_owned));
        Self::of(client, Watched { kinds, project, ..Watched::default() })
    }

    /// Changes of a workload and its pods.
    pub(super) fn of_workload(client: &Client, id: &str) -> Self {
        let workload = Some(id.to_owned());
        Self::of(client, Watched { workload, ..Watched::default() })
    }

    fn of(client: &Client, watched: Watched) -> Self {
        Self { stream: client.changes(watched), spacing: TOGETHER, last: None }
    }

    /// Returns when something may have changed since it returned last, and where that cannot be
    /// known after `otherwise`. The first time it returns as soon as changes are listened for, so
    /// that what happened before is looked at.
    pub(super) async fn beat(&mut self, otherwise: Duration) {
        if let Err(error) = self.stream.next().await {
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

/// What `--watch` waits for.
pub(super) struct Watch(Option<Pulse>);

impl Watch {
    /// What changes where the answer to an intent does. What is not in the stream is asked for
    /// every second.
    pub(super) fn of(intent: &Intent, context: &Context) -> Self {
        let project = |all: bool| context.project().ok().filter(|_| !all);
        let (kinds, project) = match intent {
            Intent::ListWorkloads(list) => (vec![ChangeKind::Workload], project(list.all_projects)),
            Intent::Describe(_) => (vec![ChangeKind::Workload, ChangeKind::Pod], project(false)),
            Intent::ListProjects(..) => (vec![ChangeKind::Project], None),
            Intent::ListNodes(..) => (vec![ChangeKind::Node], None),
            Intent::ListObjects(list) => (kinds_of(list.of), None),
            Intent::DescribeObject(of, ..) => (kinds_of(*of), None),
            _ => (Vec::new(), None),
        };
        let pulse = (!kinds.is_empty()).then(|| Pulse::new(&context.client, &kinds, project));
        // As often as it would be asked otherwise, however much happens.
        Self(pulse.map(|pulse| Pulse { spacing: WATCH_EVERY, ..pulse }))
    }

    /// Prints an answer, and again where that is asked for.
    pub(super) async fn show(
        &mut self,
        how: &How,
        raw: &mut dyn Write,
        answer: impl AsyncFn(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let change = async || match &mut self.0 {
            Some(pulse) => pulse.beat(WATCH_EVERY).await,
            None => sleep(WATCH_EVERY).await,
        };
        show_after(how, raw, answer, change).await
    }
}

fn kinds_of(objects: Objects) -> Vec<ChangeKind> {
    match objects {
        Objects::Template => vec![ChangeKind::Template],
        Objects::Environment
        | Objects::Compute
        | Objects::Datasource
        | Objects::Pvc
        | Objects::Credential => vec![ChangeKind::Asset],
        Objects::Department => vec![ChangeKind::Department],
        Objects::Nodepool => vec![ChangeKind::NodePool],
        Objects::Datavolume | Objects::WorkloadType => Vec::new(),
    }
}
