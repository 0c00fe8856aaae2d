//! The route that Prometheus scrapes. Owns: who is shown what, and one scrape at a time. Nodes are
//! for everyone who may read nodes; the rest names projects, and is for those who may read all of
//! them.

use access::{Caller, Route, Where};
use auth::Action::Read;
use auth::Resource;
use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRef, State as FromState};
use axum::http::{HeaderMap, HeaderValue, header};
use http_kit::openapi::get;
use http_kit::{ApiError, PlainText};
use view::Scope;

use super::TelemetryState;
use crate::monitoring::{Format, MetricScope};

pub(super) fn route<S>() -> Route<S>
where
    S: Clone + Send + Sync + 'static,
    TelemetryState: FromRef<S>,
{
    get("/metrics", "get_gauges", "Metrics as of now, for Prometheus", read)
        .needs(Read, Resource::Nodes, Where::Anywhere)
        .of("Elastane")
}

async fn read(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    asked: HeaderMap,
) -> Result<(HeaderMap, PlainText), ApiError> {
    let accept = asked.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let extent = match caller.may(Read, Resource::Project, Scope::Tenant) {
        true => MetricScope::All,
        false => MetricScope::Nodes,
    };
    // However many scrape, one core at most is busy with it, and none that answers others.
    let turn = state.scraping.clone().acquire_owned().await.map_err(ApiError::internal)?;
    let text = tokio::task::spawn_blocking(move || {
        let text = state.monitor.text(extent, format);
        drop(turn);
        text
    });
    let text = text.await.map_err(ApiError::internal)?.map_err(ApiError::internal)?;
    let media_type = HeaderValue::from_static(format.media_type());
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, media_type)]);
    Ok((headers, PlainText(Body::from(text))))
}
