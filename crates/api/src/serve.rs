//! Listening and stopping. Owns: a shutdown that answers what has been asked and ends streams.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long open connections may take to end.
const DRAIN_WAIT: Duration = Duration::from_secs(3);

/// Why the server ended.
#[derive(Debug, Error)]
pub enum Error {
    /// The listener failed.
    #[error("cannot accept connections")]
    Listen(#[source] std::io::Error),
}

/// The wish that the server stops; can be triggered and waited for by any number.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Shutdown {
    /// Asks the server to stop.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Returns when the server is to stop.
    pub async fn wait(&self) {
        let mut told = self.0.subscribe();
        // The sender lives as long as `self`, so waiting ends with a trigger only.
        drop(told.wait_for(|stop| *stop).await);
    }
}

/// Answers requests until `shutdown` is triggered and what was asked before is answered.
///
/// # Errors
/// The listener failed.
pub async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) -> Result<(), Error> {
    let stop = shutdown.clone();
    let with_address = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, with_address)
        .with_graceful_shutdown(async move { stop.wait().await })
        .into_future();
    tokio::select! {
        ended = server => ended.map_err(Error::Listen),
        () = async { shutdown.wait().await; tokio::time::sleep(DRAIN_WAIT).await } => Ok(()),
    }
}
