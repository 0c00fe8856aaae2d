//! Metrics for Prometheus. Owns: the registry and its formats. The metrics of the cluster are
//! computed from the published view in one pass; a scrape slows nothing else. Labels hold names
//! that administrators give (projects, departments, node pools), nodes, GPU numbers and words of
//! fixed lists; never workloads, users or addresses. Does not know about: the past; Prometheus
//! keeps its own.

mod cluster;
mod http;
mod nodes;
mod process;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use control::{Clock, Handle};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use cluster::Cluster;
pub(crate) use http::Http;
pub use http::{Routes, Watcher, trace};
use process::Process;

/// Prefix of all names except those of the process.
const PREFIX: &str = "elastane";

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that a request accepts.
    pub(crate) fn accepted(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Content type of a response in this format.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Part of the metrics that a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricScope {
    /// All metrics.
    All,
    /// The nodes and their GPUs: metrics that name no project.
    Nodes,
}

/// Lost lines of the log, and the state of the disk.
#[derive(Debug)]
struct Writing(Handle);

impl Collector for Writing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let lost = ConstCounter::new(crate::log::lines_lost());
        let about = "Lines of the server's log that could not be written.";
        lost.encode(encoder.encode_descriptor(
            "log_lines_lost",
            about,
            None,
            lost.metric_type(),
        )?)?;
        let is_full = self.0.outage().is_some_and(|outage| outage.is_of_disk());
        let about = "Whether a disk of the server, of its containers or of its database is full.";
        Gauges(encoder).one(("disk_full", None), about, f64::from(u8::from(is_full)))
    }
}

/// All metrics.
pub(crate) struct Monitor {
    all: Registry,
    nodes: Registry,
    /// Requests to this server.
    pub(crate) http: Http,
}

impl Monitor {
    pub(crate) fn new(control: &Handle, clock: Arc<dyn Clock>) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::started(clock.now())));
        let http = Http::default();
        let own = registry.sub_registry_with_prefix(PREFIX);
        let cluster = |extent| Cluster { control: control.clone(), clock: clock.clone(), extent };
        own.register_collector(Box::new(cluster(MetricScope::All)));
        control.metrics().register(own);
        http.register(own);
        own.register_collector(Box::new(Writing(control.clone())));
        let mut nodes = Registry::with_prefix(PREFIX);
        nodes.register_collector(Box::new(cluster(MetricScope::Nodes)));
        Self { all: registry, nodes, http }
    }

    /// The metrics as of now.
    pub(crate) fn text(&self, extent: MetricScope, format: Format) -> Result<String, fmt::Error> {
        let registry = match extent {
            MetricScope::All => &self.all,
            MetricScope::Nodes => &self.nodes,
        };
        let mut text = String::new();
        encode(&mut text, registry)?;
        Ok(match format {
            Format::OpenMetrics => text,
            Format::Prometheus => text::prometheus(&text),
        })
    }
}

/// Writes families of gauges.
struct Gauges<'a>(DescriptorEncoder<'a>);

impl Gauges<'_> {
    /// One family. Without a sample it is left out.
    fn family<L: EncodeLabelSet>(
        &mut self,
        (name, unit): (&str, Option<Unit>),
        about: &str,
        samples: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let unit = unit.as_ref();
        let mut family = self.0.encode_descriptor(name, about, unit, MetricType::Gauge)?;
        for (labels, value) in samples {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A gauge without labels.
    fn one(&mut self, name: (&str, Option<Unit>), about: &str, value: f64) -> fmt::Result {
        const NONE: [(&str, &str); 0] = [];
        self.family(name, about, [(NONE, value)])
    }
}

/// Thousandths as a number.
fn whole(millis: u64) -> f64 {
    number(millis) / 1000.0
}

/// A number of things or bytes; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
fn number(value: u64) -> f64 {
    value as f64
}
