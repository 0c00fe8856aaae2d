//! The signals of the server. Owns: which of them end it, and the meaning of SIGHUP.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cli_kit::exit::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// True if the server was started in a terminal: then SIGHUP means that the terminal was
/// closed, and ends the server as Ctrl-C does. Else it is a service, and SIGHUP reloads it.
pub(super) fn has_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Receiver of SIGHUP, if it is `wanted`.
pub(super) fn hangup(wanted: bool) -> Result<Option<Signal>, Error> {
    Ok(wanted.then(|| signal(SignalKind::hangup())).transpose()?)
}

/// Returns when the signal arrives; never for `None`.
pub(super) async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The signals that end the server: Ctrl-C, SIGTERM, and the end of its terminal.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Starts receiving the signals.
    pub(super) fn listen() -> Result<Self, Error> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: hangup(has_terminal())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = received(&mut self.hangup) => {}
        }
    }
}

/// Ends the server at the first signal, and then sets the returned flag.
pub(super) fn stop_on(mut signals: Signals, shutdown: http_kit::Shutdown) -> Arc<AtomicBool> {
    let by_signal = Arc::new(AtomicBool::new(false));
    let noted = by_signal.clone();
    tokio::spawn(async move {
        signals.any().await;
        noted.store(true, Ordering::Relaxed);
        shutdown.trigger();
    });
    by_signal
}
