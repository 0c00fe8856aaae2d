//! The routes of tickets, and of sessions in pods.

mod exec_sessions;
mod tickets;

use std::sync::Arc;

use access::Route;
use axum::extract::FromRef;

use crate::Gateway;

type GatewayState = Arc<Gateway>;

/// The routes of this crate, for a server that has its state.
pub fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    GatewayState: FromRef<S>,
{
    let all = exec_sessions::routes().chain(tickets::routes());
    all.map(|route| route.of("Elastane"))
}
