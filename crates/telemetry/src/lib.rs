//! Measurements, current and past: series, counts by group, the ledger of usage, and the gauges
//! that Prometheus scrapes.
//!
//! Owns: their routes, the log line and the latency of each request, and the log. Does not know
//! about: how anything is measured (`control`), and which routes there are.

mod log;
mod metrics;
mod monitoring;
mod routes;
mod usage;

use std::sync::Arc;

use access::Backend;
use convert::{Context, Origins};
use tokio::sync::Semaphore;

use monitoring::Monitor;

pub use log::Log;
pub use monitoring::{Routes, Watcher, trace};
pub use routes::routes;

/// Routes of the measurements, and the metrics of Prometheus.
pub struct Telemetry {
    backend: Backend,
    origins: Origins,
    /// Metrics that Prometheus scrapes.
    monitor: Monitor,
    /// Scrapes being answered at a time.
    scraping: Arc<Semaphore>,
}

impl Telemetry {
    /// Measurements of a server that is reached at these addresses.
    #[must_use]
    pub fn new(backend: Backend, origins: Origins) -> Self {
        let monitor = Monitor::new(&backend.control, backend.clock.clone());
        Self { backend, origins, monitor, scraping: Arc::new(Semaphore::new(1)) }
    }

    /// Counts a client of the stream of events for as long as this lives.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        self.monitor.http.watcher()
    }

    fn context(&self) -> Context {
        Context::new(&self.backend, &self.origins)
    }
}

impl std::ops::Deref for Telemetry {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}
