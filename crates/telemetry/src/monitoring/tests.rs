//! Values and labels of a node, the two formats, the bounds of labels, and the line of a request.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use control::{Sample, Subject, of};
use expect_test::expect;
use prometheus_client::collector::Collector;
use prometheus_client::metrics::counter::Counter;
use spec::{NodeSpec, Scheduling};
use tracing_subscriber::filter::LevelFilter;
use units::{Instant, Resources};
use view::{GpuFault, NodeView, View};

use super::*;

/// A view and what was measured, as a scrape sees them.
#[derive(Debug)]
struct Shown(View, Sample, Instant);

impl Collector for Shown {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        cluster::published(&self.0, &self.1, self.2, &mut Gauges(encoder))
    }
}

/// The scraped text, without the lines that describe metrics.
fn scraped(view: View, sample: Sample, now: Instant) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Shown(view, sample, now)));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.flat_map(|line| [line, "\n"]).collect()
}

fn node() -> NodeView {
    let spec = NodeSpec {
        name: "node-1".into(),
        gpu_type: "fast".into(),
        simulated: false,
        gpus: Vec::new(),
        cpu_millis: 64_500,
        memory_bytes: 2048,
        labels: [].into(),
        pods_max: None,
        taints: Vec::new(),
    };
    NodeView {
        spec: Arc::new(spec),
        taints: Vec::new(),
        scheduling: Scheduling::Enabled,
        name: "node-1".into(),
        gpu_type: "the \"fast\" one".into(),
        simulated: false,
        gpu_memory_bytes: vec![1 << 30; 3],
        gpu_used_millis: vec![1000, 500, 0],
        gpu_pods: Vec::new(),
        gpu_faults: [(1, GpuFault::Taken([].into())), (2, GpuFault::Lost("off the bus".into()))]
            .into(),
        capacity: Resources { gpu_millis: 1000, cpu_millis: 64_500, memory_bytes: 2048 },
        used: Resources { gpu_millis: 1500, cpu_millis: 1500, memory_bytes: 1024 },
        pool: "default".into(),
        time_slicing: None,
        fractions: None,
        labels: [].into(),
        created_at: Instant(0),
    }
}

#[test]
fn a_node_is_shown_by_what_it_has_what_is_held_and_what_was_measured() {
    let view = View { nodes: vec![Arc::new(node())], ..View::default() };
    let seen = [(of::gpu(of::BUSY, 0), 250), (of::gpu(of::IDLE_MS, 1), 1500)];
    let sample = Sample {
        at: Instant(7000),
        values: [(Subject::Node("node-1".into()), seen.into())].into(),
    };
    expect![[r#"
        measurement_timestamp_seconds{} 7.0
        node_gpus{node="node-1",node_pool="default",model="the \"fast\" one"} 3.0
        node_gpus_allocated{node="node-1",node_pool="default",model="the \"fast\" one"} 1.5
        node_gpus_out_of_service{node="node-1",node_pool="default",reason="lost"} 1.0
        node_gpus_out_of_service{node="node-1",node_pool="default",reason="taken"} 1.0
        node_gpus_out_of_service{node="node-1",node_pool="default",reason="held"} 0.0
        node_cpus{node="node-1",node_pool="default"} 64.5
        node_cpus_allocated{node="node-1",node_pool="default"} 1.5
        node_memory_bytes{node="node-1",node_pool="default"} 2048.0
        node_memory_allocated_bytes{node="node-1",node_pool="default"} 1024.0
        gpu_allocated_ratio{node="node-1",node_pool="default",gpu="0"} 1.0
        gpu_allocated_ratio{node="node-1",node_pool="default",gpu="1"} 0.5
        gpu_allocated_ratio{node="node-1",node_pool="default",gpu="2"} 0.0
        gpu_utilization_ratio{node="node-1",node_pool="default",gpu="0"} 0.25
        gpu_memory_bytes{node="node-1",node_pool="default",gpu="0"} 1073741824.0
        gpu_memory_bytes{node="node-1",node_pool="default",gpu="1"} 1073741824.0
        gpu_memory_bytes{node="node-1",node_pool="default",gpu="2"} 1073741824.0
        gpu_idle_seconds{node="node-1",node_pool="default",gpu="1"} 1.5
    "#]]
    .assert_eq(&scraped(view, sample, Instant(8000)));
}

#[test]
fn nothing_is_shown_of_what_is_not_there() {
    assert_eq!(scraped(View::default(), Sample::default(), Instant(8000)), "");
}

#[test]
fn counters_are_described_by_their_whole_name_in_the_format_of_prometheus() {
    let mut registry = Registry::default();
    let counter: Counter = Counter::default();
    registry.register_with_unit("work", "Work done", Unit::Seconds, counter);
    registry.register_collector(Box::new(Shown(View::default(), Sample::default(), Instant(0))));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    expect![[r#"
        # HELP work_seconds Work done.
        # TYPE work_seconds counter
        # UNIT work_seconds seconds
        work_seconds_total 0
        # EOF
    "#]]
    .assert_eq(&text);
    expect![[r#"
        # HELP work_seconds_total Work done.
        # TYPE work_seconds_total counter
        work_seconds_total 0
    "#]]
    .assert_eq(&text::prometheus(&text));
}

#[test]
fn openmetrics_is_for_those_who_accept_it() {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    assert_eq!(Format::accepted(accept), Format::OpenMetrics);
    for other in ["", "*/*", "text/plain;version=0.0.4", "application/json"] {
        assert_eq!(Format::accepted(other), Format::Prometheus, "{other}");
    }
}

/// Lines written to the log at a level and above.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line of a request that took so long.
fn line(level: LevelFilter, seconds: u64, may_be_slow: bool) -> String {
    let written = Written::default();
    let to = written.clone();
    let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).without_time();
    let log = log.with_writer(move || to.clone()).finish();
    let served = http::Served { path: "/api/v1/projects/{id}", method: "GET", may_be_slow };
    tracing::subscriber::with_default(log, || {
        http::log(served, StatusCode::OK, Duration::from_secs(seconds), "id-1");
    });
    let text = written.0.lock().unwrap().clone();
    String::from_utf8(text).unwrap().trim().to_owned()
}

#[test]
fn a_slow_request_is_a_warning_unless_its_answer_takes_as_long_as_it_takes() {
    let said = "method=\"GET\" route=\"/api/v1/projects/{id}\" status=200";
    let usual = line(LevelFilter::DEBUG, 1, false);
    assert!(usual.starts_with("DEBUG") && usual.contains(said), "{usual}");
    assert!(usual.contains("duration_ms=1000 request_id=\"id-1\""), "{usual}");
    assert_eq!(line(LevelFilter::INFO, 1, false), "");
    let slow = line(LevelFilter::INFO, 5, false);
    assert!(slow.starts_with("WARN") && slow.contains(said), "{slow}");
    assert_eq!(line(LevelFilter::INFO, 5, true), "");
}
