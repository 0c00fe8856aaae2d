//! The routes of series, of counts by group, of the ledger, and of what Prometheus scrapes.

mod metrics;
mod prometheus;
mod telemetry;
mod usage;

use std::sync::Arc;

use access::Route;
use axum::extract::FromRef;

use crate::Telemetry;

type TelemetryState = Arc<Telemetry>;

/// The routes of this crate, for a server that has its state.
pub fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    TelemetryState: FromRef<S>,
{
    let all = metrics::routes().chain(telemetry::routes()).chain(usage::routes());
    all.chain([prometheus::route()])
}
