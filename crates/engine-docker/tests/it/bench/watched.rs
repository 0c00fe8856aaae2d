//! An engine with its reports. Owns: waiting for states, reading output.

use std::sync::Arc;

use engine::{Engine, Exit, LogRange, Observation, RunKey, RunNews, RunSpec, RunState};
use engine_conformance::{Fixture as _, in_time};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::bench::Bench;

/// An engine, with its reports.
pub(crate) struct Watched {
    pub(crate) engine: Arc<dyn Engine>,
    seen: UnboundedReceiver<Observation>,
}

impl Watched {
    pub(crate) fn new(bench: &Bench) -> Self {
        let engine = bench.engine();
        let seen = engine.observations();
        Self { engine, seen }
    }

    pub(crate) async fn start(&self, spec: RunSpec) -> RunKey {
        let key = spec.key;
        self.engine.start(spec).await.expect("started");
        key
    }

    /// The next state of a run that will do.
    pub(crate) async fn wait<T>(
        &mut self,
        key: RunKey,
        wanted: impl Fn(RunNews) -> Option<T>,
    ) -> T {
        loop {
            let next = self.seen().await;
            if let (true, Some(found)) = (next.key == key, wanted(next.news)) {
                return found;
            }
        }
    }

    async fn seen(&mut self) -> Observation {
        in_time(self.seen.recv()).await.expect("the engine lives")
    }

    pub(crate) async fn running(&mut self, key: RunKey) {
        self.wait(key, |news| {
            matches!(news, RunNews::State(RunState::Running { .. })).then_some(())
        })
        .await;
    }

    pub(crate) async fn end(&mut self, key: RunKey) -> Exit {
        loop {
            if let (one, exit) = self.next_end().await
                && one == key
            {
                return exit;
            }
        }
    }

    /// The next run that ends, and how.
    pub(crate) async fn next_end(&mut self) -> (RunKey, Exit) {
        loop {
            let next = self.seen().await;
            if let RunNews::State(RunState::Exited { exit, .. }) = next.news {
                return (next.key, exit);
            }
        }
    }

    /// Waits until this is part of the output of a run that goes on.
    pub(crate) async fn said(&self, key: RunKey, text: &str) {
        let range = LogRange { follow: true, ..LogRange::default() };
        let mut chunks = self.engine.logs(key, range).await.expect("a known run");
        let mut all = String::new();
        while !all.contains(text) {
            let chunk = in_time(chunks.recv()).await.expect("it goes on").expect("readable");
            all.push_str(&String::from_utf8_lossy(&chunk));
        }
    }

    pub(crate) async fn output(&self, key: RunKey) -> String {
        let range = LogRange { follow: true, ..LogRange::default() };
        let mut chunks = self.engine.logs(key, range).await.expect("a known run");
        let mut bytes = Vec::new();
        while let Some(chunk) = in_time(chunks.recv()).await {
            bytes.extend(chunk.expect("readable"));
        }
        String::from_utf8(bytes).expect("text")
    }
}
