//! Requests that the server answers. Owns: their ids, their line in the log, latencies and how many
//! are open. Does not know about: queries, bodies and callers; neither gets into the log or a
//! label.

use std::sync::Arc;
use std::time::{Duration, Instant};

use access::Route;
use axum::extract::{MatchedPath, Request, State as FromState};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use http_kit::{REQUEST_ID, RequestId, host_of};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::Telemetry;

/// Requests that take longer to answer are logged as warnings.
const SLOW: Duration = Duration::from_secs(5);
/// Upper bounds of the time to an answer, in seconds.
const LATENCY_SECONDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];
/// The route of what no route answers.
const UNKNOWN: Served = Served { path: "unknown", method: "other", may_be_slow: false };
/// The route of requests to the ports of workloads that are opened in a browser.
const OF_WORKLOADS: Served = Served { path: "workload", method: "other", may_be_slow: true };
/// The route of requests to inferences.
const OF_INFERENCES: Served = Served { path: "inference", method: "other", may_be_slow: true };
/// The status of a request that got no answer: its client had gone.
const NO_STATUS: &str = "none";

/// A route and a method, as in labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Served {
    pub(super) path: &'static str,
    pub(super) method: &'static str,
    /// True if its responses have no time limit.
    pub(super) may_be_slow: bool,
}

/// All routes, sorted: a label is always a word of this list, whatever the request.
#[derive(Debug)]
pub struct Routes(Vec<Served>);

impl Routes {
    /// Routes of the table, and former ones, which answer any method.
    pub fn new<S>(table: &[Route<S>], former: &[&'static str]) -> Self {
        let own = table.iter().filter_map(|route| {
            let method = word(&route.method)?;
            Some(Served { path: route.path, method, may_be_slow: route.patient })
        });
        let former = former
            .iter()
            .flat_map(|path| METHODS.map(|method| Served { path, method, may_be_slow: false }));
        let mut all: Vec<_> = own.chain(former).collect();
        all.sort_unstable();
        Self(all)
    }

    fn find(&self, path: &str, method: &Method) -> Option<Served> {
        // A route that answers GET answers HEAD.
        let method = if method == Method::HEAD { "GET" } else { word(method)? };
        let at = |served: &Served| (served.path, served.method).cmp(&(path, method));
        self.0.binary_search_by(at).ok().map(|at| self.0[at])
    }
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"];

fn word(method: &Method) -> Option<&'static str> {
    METHODS.into_iter().find(|word| *word == method.as_str())
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    route: &'static str,
    method: &'static str,
    status: &'static str,
}

/// Metrics of requests.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    latency: Family<Labels, Histogram>,
    in_flight: Gauge,
    watchers: Gauge,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            latency: Family::new_with_constructor(|| Histogram::new(LATENCY_SECONDS)),
            in_flight: Gauge::default(),
            watchers: Gauge::default(),
        }
    }
}

impl Http {
    pub(super) fn register(&self, to: &mut Registry) {
        let about = "Time from a request to the beginning of its answer, by route, method and \
                     class of status";
        let latency = self.latency.clone();
        to.register_with_unit("http_request_duration", about, Unit::Seconds, latency);
        let about = "Requests whose answer has not begun";
        to.register("http_requests_in_flight", about, self.in_flight.clone());
        let about = "Clients that are connected to the stream of events";
        to.register("event_watchers", about, self.watchers.clone());
    }

    /// Counts a watcher for as long as this lives.
    pub(crate) fn watcher(&self) -> Watcher {
        self.watchers.inc();
        Watcher(self.watchers.clone())
    }

    fn begin(&self, served: Served) -> Open {
        self.in_flight.inc();
        Open { http: self.clone(), served, began: Instant::now(), status: NO_STATUS }
    }
}

/// A client of the stream of events.
pub struct Watcher(Gauge);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A request without a response yet. It counts when it ends, also if its client has gone.
struct Open {
    http: Http,
    served: Served,
    began: Instant,
    status: &'static str,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.http.in_flight.dec();
        let Served { path: route, method, .. } = self.served;
        let labels = Labels { route, method, status: self.status };
        let took = self.began.elapsed().as_secs_f64();
        self.http.latency.get_or_create(&labels).observe(took);
    }
}

const fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}

/// Gives a request its id, measures it, and writes its line into the log.
pub async fn trace(
    FromState((telemetry, routes)): FromState<(Arc<Telemetry>, Arc<Routes>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let served = served(&telemetry, &routes, &request);
    let id = RequestId::of(&request);
    request.extensions_mut().insert(id.clone());
    // A program behind this server gets the id for its log, the same as the client.
    if let Ok(id) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(REQUEST_ID, id);
    }
    let mut open = telemetry.monitor.http.begin(served);
    let mut response = next.run(request).await;
    open.status = class(response.status());
    log(served, response.status(), open.began.elapsed(), &id);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn served(telemetry: &Telemetry, routes: &Routes, request: &Request) -> Served {
    let host = host_of(request);
    if convert::is_of_an_inference(host, &telemetry.origins.domain) {
        return OF_INFERENCES;
    }
    if convert::is_of_a_workload(host, &telemetry.origins.domain) {
        return OF_WORKLOADS;
    }
    let path = request.extensions().get::<MatchedPath>();
    path.and_then(|path| routes.find(path.as_str(), request.method())).unwrap_or(UNKNOWN)
}

pub(super) fn log(served: Served, status: StatusCode, took: Duration, id: &str) {
    let Served { path: route, method, may_be_slow } = served;
    let (status, duration_ms) = (status.as_u16(), took.as_millis());
    if took >= SLOW && !may_be_slow {
        tracing::warn!(method, route, status, duration_ms, request_id = id, "a slow request");
    } else {
        tracing::debug!(method, route, status, duration_ms, request_id = id, "a request");
    }
}
