//! Common parts of the handlers of every capability: the caller and its permissions, the documents
//! and scopes that it names, and access to the dispatcher.
//!
//! Each route declares the role it needs ([`Need`]); a route without it is refused. If the scope is
//! in the address the check is made before the handler; if it is in the body, or there are many,
//! the handler checks with the [`Caller`].
//!
//! Owns: the caller, scopes and families of objects. Does not know about: routes, how a caller
//! authenticates, and what the objects are.

mod authenticator;
mod caller;
mod document_view;
mod objects;
pub mod scopes;

use std::sync::Arc;

use auth::{Action, Resource};
use http_kit::openapi;
use units::Instant;

pub use authenticator::{Authenticator, Refusal, until_revoked, while_caller};
pub use caller::{
    BEFORE_OWN_PASSWORD, Caller, Grant, OWN_PASSWORD, SESSION, VisibleProjects, audit_detail,
    in_words, resource_of,
};
pub use document_view::{DocumentView, DocumentViewKind};
pub use objects::{Family, Item};
pub use scopes::{Ids, NamedScope, find_of_kind, find_workload, project_id, workload_id};

/// Permission that a route needs: an action on a resource, in a scope.
pub type Need = (Action, Resource, Where);
/// Credential that a request needs.
pub type Access = openapi::Access<Need>;
/// A route.
pub type Route<S> = openapi::Route<S, Need>;

/// Scope in which the role has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In any scope; the handler checks further.
    Anywhere,
    /// In the whole installation.
    Tenant,
    /// In the department that the address names.
    Department,
    /// In the project that the address names.
    Project,
    /// In the project of the workload that the address names.
    Workload,
}

/// Services behind the handlers: the dispatcher, and the clock.
#[derive(Clone)]
pub struct Backend {
    /// Handle of the dispatcher.
    pub control: control::Handle,
    /// Clock of the server.
    pub clock: Arc<dyn control::Clock>,
}

impl Backend {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
}
