//! The routes of assets, templates, config maps and volumes.

mod config_maps;
mod credentials;
mod kinds;
mod templates;
mod volumes;

use std::sync::Arc;

use access::Route;
use axum::extract::FromRef;

use crate::Assets;

type AssetsState = Arc<Assets>;

/// The routes of this crate, for a server that has its state.
pub fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let all = kinds::routes().chain(credentials::routes()).chain(templates::routes());
    all.chain(volumes::routes()).chain(config_maps::routes())
}
