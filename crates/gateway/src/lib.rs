//! Ways into running workloads: ports and inferences in a browser, commands, terminals and ports
//! over WebSockets. Each port has an address, and so a host, of its own: pages are programs of
//! users, and a host of its own keeps their cookies, storage and scripts away from each other and
//! from the interface of this server.
//!
//! Owns: which host leads where, who is admitted, tickets, sessions in pods, and their routes. Does
//! not know about: whose a token is (`iam`), and which replica answers (`serving`).

mod admission;
mod browser;
mod exec_sessions;
mod page;
mod routes;
mod socket;
mod ticket_issue;
mod tickets;
mod workload_hosts;

use std::sync::Arc;

use access::{Authenticator, Backend, Caller};
use convert::Origins;
use http_kit::{ApiError, Shutdown};
use view::WorkloadView;

use exec_sessions::Sessions;
use tickets::Tickets;

pub use admission::{FORMER_ROUTES, gone};
pub use routes::routes;
pub use socket::admit_pages;
pub use workload_hosts::divert;

/// Check that refuses a session with a pod that has more rights on the machine than usual.
pub type MayEnter = Box<dyn Fn(&Caller, &WorkloadView) -> Result<(), ApiError> + Send + Sync>;

/// Access to workloads, and the current sessions with pods.
pub struct Gateway {
    backend: Backend,
    authenticator: Arc<dyn Authenticator>,
    /// Serves the inferences.
    serving: Arc<serving::Service>,
    /// Addresses of the server and of the workloads.
    pub origins: Origins,
    shutdown: Shutdown,
    may_enter: MayEnter,
    /// Tickets and visits for ports of workloads in a browser.
    tickets: Tickets,
    /// Current sessions with pods.
    sessions: Arc<Sessions>,
}

impl Gateway {
    /// Gateway with this backend and authenticator; `serving` serves inferences.
    #[must_use]
    pub fn new(
        (backend, authenticator): (Backend, Arc<dyn Authenticator>),
        serving: Arc<serving::Service>,
        origins: Origins,
        shutdown: Shutdown,
        may_enter: MayEnter,
    ) -> Self {
        let (tickets, sessions) = (Tickets::default(), Arc::default());
        Self { backend, authenticator, serving, origins, shutdown, may_enter, tickets, sessions }
    }
}

impl std::ops::Deref for Gateway {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}
