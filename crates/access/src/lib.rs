//! What the handlers of every capability need: who asks and what it may do where, the documents and
//! scopes that it names, and the way to the dispatcher.
//!
//! Each route says which role it needs ([`Need`]); one that says nothing is refused. Where the
//! scope is in the address the check is made before the handler; where it is in the body, or there
//! are many, the handler asks the [`Caller`].
//!
//! Owns: the caller, scopes and families of objects. Does not know about: routes, how a caller
//! proves who it is, and what the objects are.

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

/// Which role a route needs: one that allows this to that, there.
pub type Need = (Action, Resource, Where);
/// What a request needs to bring along.
pub type Access = openapi::Access<Need>;
/// A route.
pub type Route<S> = openapi::Route<S, Need>;

/// Where the role has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Anywhere; the handler looks further.
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

/// What stands behind the handlers: the dispatcher, and the time.
#[derive(Clone)]
pub struct Backend {
    /// The way to the dispatcher.
    pub control: control::Handle,
    /// What time it is.
    pub clock: Arc<dyn control::Clock>,
}

impl Backend {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
}
