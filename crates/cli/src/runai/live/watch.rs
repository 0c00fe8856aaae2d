//! Looking at the server again and again. Owns: how often what is asked, and that it goes on after the
//! server was away and before a login runs out.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::Status;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep};

use super::News;
use crate::exit::Error;
use crate::runai::context::Context;
use crate::runai::logs::is_away;
use crate::runai::settle::{AT_ONCE_MAX, at_once};
use crate::runai::{session, top};

/// Between two looks at how the server stands.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Lists are fetched when something happened, and at last after so long: a quota may be another.
const LISTS_EVERY: Duration = Duration::from_secs(5);
/// The server measures this often.
const USED_EVERY: Duration = Duration::from_secs(15);

/// Whoever looks.
pub(super) struct Watch {
    context: Context,
    news: Sender<News>,
    /// The last event before the lists were fetched, and when that was.
    lists: Option<(u64, Instant)>,
    used: Option<Instant>,
}

impl Watch {
    /// Looks for the first time.
    ///
    /// # Errors
    /// Whatever keeps it from being the first of many.
    pub(super) async fn open(context: &Context, news: Sender<News>) -> Result<Self, Error> {
        let mut watch = Self { context: context.anew().await?, news, lists: None, used: None };
        watch.look().await?;
        Ok(watch)
    }

    /// Looks until that makes no sense any more, and says why.
    pub(super) async fn run(mut self) -> Error {
        loop {
            sleep(LOOK_EVERY).await;
            let Err(error) = self.look_again().await else { continue };
            if !is_away(&error) {
                return error;
            }
            // It may come back elsewhere, and with other things than before.
            (self.lists, self.used) = (None, None);
            self.tell(News::Away(error.to_string())).await;
            match self.context.anew().await {
                Ok(context) => self.context = context,
                Err(error) if is_away(&error) => {}
                Err(error) => return error,
            }
        }
    }

    /// Looks as whoever is logged in by now.
    async fn look_again(&mut self) -> Result<(), Error> {
        session::renew(&mut self.context).await?;
        match self.look().await {
            Err(Error::Server(client::Error::NotLoggedIn { .. })) => {
                self.context = self.context.anew().await?;
                self.look().await
            }
            other => other,
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let client = self.context.client.clone();
        let status = client.status().await?;
        let due = |last: Instant, every: Duration| last.elapsed() >= every;
        let is_old = |(seq, at): (u64, Instant)| seq != status.event_seq || due(at, LISTS_EVERY);
        if self.lists.is_none_or(is_old) {
            let now = Instant::now();
            let projects = client.projects().await?;
            let (workloads, pods) = (client.workloads(None).await?, client.every_pod().await?);
            self.tell(News::Lists { projects, workloads, pods }).await;
            self.lists = Some((status.event_seq, now));
        }
        if self.used.is_none_or(|at| due(at, USED_EVERY)) {
            self.used = Some(Instant::now());
            let used = self.measure(&status).await?;
            self.tell(News::Used(used)).await;
        }
        self.tell(News::Looked(Box::new(status), client)).await;
        Ok(())
    }

    /// What nodes use whose GPUs can be measured.
    async fn measure(&self, status: &Status) -> Result<BTreeMap<String, top::Used>, Error> {
        let real = |node: &&api_types::NodeStatus| !node.simulated && !node.gpu_used.is_empty();
        let names: Vec<_> =
            status.nodes.iter().filter(real).map(|node| node.name.clone()).collect();
        let mut used = BTreeMap::new();
        for some in names.chunks(AT_ONCE_MAX) {
            let ask = |name: &String| {
                let (client, name) = (self.context.client.clone(), name.clone());
                async move { top::of_node(&name, &client).await }
            };
            for (name, answer) in some.iter().zip(at_once(some.iter().map(ask)).await?) {
                used.insert(name.clone(), answer?);
            }
        }
        Ok(used)
    }

    async fn tell(&self, news: News) {
        // Nobody hears it when the view has ended, and then this ends too.
        let _ended = self.news.send(news).await;
    }
}
