//! Visitors of a server of a test who get no answer. Owns: keeping them, and hearing that they went
//! away.

use std::io::Read as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A switch that makes a server silent, and the clients that wait for an answer.
#[derive(Debug, Default)]
pub struct Silence {
    on: AtomicBool,
    waiting: Mutex<Vec<TcpStream>>,
}

impl Silence {
    /// Stops answering clients, or answers them again.
    pub fn be(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    /// Keeps a client's connection if the server is silent; else returns it.
    pub(super) fn pass(&self, visitor: TcpStream) -> Option<TcpStream> {
        if !self.on.load(Ordering::SeqCst) {
            return Some(visitor);
        }
        self.waiting().push(visitor);
        None
    }

    /// Waits for a client that gets no answer.
    pub fn await_visitor(&self) {
        while self.waiting().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for a client that gets no answer, and returns when it has disconnected.
    ///
    /// # Panics
    /// No client came.
    pub fn await_leaving(&self) {
        self.await_visitor();
        let mut visitor = self.waiting().pop().expect("somebody came");
        // A request is read to its end; a killed client has closed, or reset, the connection.
        let mut rest = Vec::new();
        let _reset = visitor.read_to_end(&mut rest);
    }

    /// [`Self::await_visitor`] for asynchronous callers.
    pub(super) async fn visited(self: &Arc<Self>) {
        let own = Arc::clone(self);
        tokio::task::spawn_blocking(move || own.await_visitor()).await.expect("somebody comes");
    }

    /// [`Self::await_leaving`] for asynchronous callers.
    pub(super) async fn left(self: &Arc<Self>) {
        let own = Arc::clone(self);
        tokio::task::spawn_blocking(move || own.await_leaving()).await.expect("they leave");
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
