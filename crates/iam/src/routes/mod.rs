//! The routes of users, service accounts, access keys, roles, access rules and tokens.

mod access_rules;
mod roles;
mod service_accounts;
mod session;
mod token;
mod users;

pub(crate) use users::wire as user;

use std::sync::Arc;

use access::Route;
use axum::extract::FromRef;

use crate::Iam;

type IamState = Arc<Iam>;

/// Marker: this crate defines how its resources are listed.
struct Listed;

/// The routes of this crate, for a server that has its state.
pub fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let all = token::routes()
        .chain(session::routes())
        .chain(users::routes())
        .chain(service_accounts::routes());
    all.chain(roles::routes()).chain(access_rules::routes())
}
