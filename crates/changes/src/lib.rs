//! The stream of changes: what every client that shows something live reads.
//!
//! Owns: its route, what a reader gets and in which order, and that it sees what it may see. Does
//! not know about: how versions are made (`control::feed`), and what the documents of other
//! capabilities are ([`access::ShownKind`]).

mod reader;
mod routes;
mod visibility;
mod wire;

use std::any::Any;
use std::sync::Arc;

use access::{Authenticator, Backend, DocumentViewKind};
use api_types::ServerRow;
use convert::Origins;
use http_kit::Shutdown;

pub use routes::routes;

/// Counts a reader for as long as what it answers lives.
pub type Count = Box<dyn Fn() -> Box<dyn Any + Send + Sync> + Send + Sync>;

/// State that the stream is made from.
pub struct Context {
    backend: Backend,
    origins: Origins,
    /// Authenticator that gives the current rights of a reader.
    authenticator: Arc<dyn Authenticator>,
    /// The documents that are in the stream.
    documents: Vec<DocumentViewKind>,
    count: Count,
    /// The digest of the web interface; empty without one.
    interface: &'static str,
    shutdown: Shutdown,
}

impl Context {
    /// State with the kinds of documents of all capabilities.
    #[must_use]
    pub fn new(
        (backend, origins, interface): (Backend, Origins, &'static str),
        authenticator: Arc<dyn Authenticator>,
        documents: Vec<DocumentViewKind>,
        count: Count,
        shutdown: Shutdown,
    ) -> Self {
        Self { backend, origins, authenticator, documents, count, interface, shutdown }
    }

    /// The server as it is now.
    fn server(&self) -> ServerRow {
        let now = convert::Context::new(self, &self.origins);
        ServerRow {
            version: self.control.cluster().version.clone(),
            interface: self.interface.to_owned(),
            cluster_id: now.cluster_id,
            cluster_name: now.cluster_name,
            now: now.now.into(),
            outage: now.outage.as_ref().map(convert::outage),
        }
    }

    /// The kind of documents that is stored under this name.
    fn documents_of(&self, stored: &str) -> Option<&DocumentViewKind> {
        self.documents.iter().find(|kind| kind.stored == stored)
    }
}

impl std::ops::Deref for Context {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}
