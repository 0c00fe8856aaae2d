//! Looking at the server again and again. Owns: how often what is asked, and that it goes on after the
//! server was away and before a login runs out.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::{NodeStatus, Status};
use client::Client;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep};

use super::News;
use crate::context::Context;
use crate::logs::is_away;
use crate::settle::{AT_ONCE_MAX, at_once};
use crate::{session, top};
use cli_kit::exit::Error;

/// Between two looks at how the server stands.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Lists are fetched when something happened, and at last after so long: a quota may be another.
const LISTS_EVERY: Duration = Duration::from_secs(5);
/// The server measures this often.
const USED_EVERY: Duration = Duration::from_secs(15);

/// What the lists cost the server is at most this part of its time.
const LISTS_PART: u32 = 10;

/// When the lists were fetched last.
#[derive(Debug, Clone, Copy)]
struct Fetched {
    /// The last event before.
    seq: u64,
    at: Instant,
    took: Duration,
}

impl Fetched {
    /// Whether they are to be fetched again: when something happened, but not all the time where there are
    /// many.
    fn is_old(self, seq: u64, now: Instant) -> bool {
        let since = now.duration_since(self.at);
        (self.seq != seq || since >= LISTS_EVERY) && since >= self.took * LISTS_PART
    }
}

/// Whoever looks.
pub(super) struct Watch {
    context: Context,
    news: Sender<News>,
    lists: Option<Fetched>,
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
        let (seq, nodes) = (status.event_seq, measurable(&status));
        self.tell(News::Looked(Box::new(status), client.clone())).await;
        if self.lists.is_none_or(|last| last.is_old(seq, Instant::now())) {
            let at = Instant::now();
            let projects = client.projects().await?;
            let (workloads, pods) = (client.workloads(None).await?, client.every_pod().await?);
            self.lists = Some(Fetched { seq, at, took: at.elapsed() });
            self.tell(News::Lists { projects, workloads, pods }).await;
        }
        if self.used.is_none_or(|at| at.elapsed() >= USED_EVERY) {
            self.used = Some(Instant::now());
            let used = measure(&nodes, &client).await?;
            self.tell(News::Used(used)).await;
        }
        Ok(())
    }

    async fn tell(&self, news: News) {
        // Nobody hears it when the view has ended, and then this ends too.
        let _ended = self.news.send(news).await;
    }
}

/// Nodes whose GPUs can be measured, by name.
fn measurable(status: &Status) -> Vec<String> {
    let real = |node: &&NodeStatus| !node.simulated && !node.gpu_used.is_empty();
    status.nodes.iter().filter(real).map(|node| node.name.clone()).collect()
}

/// What they use. One that the server cannot tell of, because it is just gone, is left out.
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

/// Whether the server is there, knows who asks, and says no.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Server(client::Error::Api { .. })) && !is_away(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_fetched_after_events_and_as_often_as_they_are_cheap() {
        let at = Instant::now();
        let old = |took_ms, seq, since_ms| {
            let took = Duration::from_millis(took_ms);
            Fetched { seq: 7, at, took }.is_old(seq, at + Duration::from_millis(since_ms))
        };
        assert!(!old(10, 7, 1000), "nothing happened");
        assert!(old(10, 8, 1000) && old(10, 7, 5000));
        assert!(!old(900, 8, 8999) && old(900, 8, 9000), "there are many");
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
        let api = |code| {
            let (message, details) = ("no".to_owned(), None);
            Error::Server(client::Error::Api { code, message, details })
        };
        let url = "u".to_owned();
        assert!(is_refused(&api(404)) && is_refused(&api(500)));
        assert!(!is_refused(&api(503)) && !is_refused(&client::Error::NotRunning { url }.into()));
    }
}
