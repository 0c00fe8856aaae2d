//! The engine for containers on this machine, over the Docker Engine API (Podman speaks it as well).
//!
//! Owns: which container a run is, its network, its image and its output. Refuses to know: scheduling,
//! the database, and who may do what.
//!
//! The daemon is the truth: a run is the container of its name, and its labels say whose it is. Nothing
//! is kept beside it, so a server that comes later finds the same. A container that was made and
//! never started is no run: the next server removes it and is asked to start again.
//!
//! Events of the daemon are hints, inspection is the truth. When the daemon was away, everything is
//! inspected anew. A daemon that starts ends the containers of the one before it; what ended like that
//! is *lost*, whatever its exit code says: the workload is started again and uses up no retry.

mod around;
mod books;
mod container;
mod copies;
mod daemon;
mod files;
mod image;
mod logs;
mod look;
mod measure;
mod network;
mod open;
mod owner;
mod program;
mod session;
mod start;
#[cfg(feature = "testing")]
pub mod testing;
mod toolbox;
mod user;
mod verbs;
mod watch;

pub use daemon::Daemon;
pub use image::PULL_PAUSE;
pub use open::{DockerEngine, Options};
pub use program::Program;

use std::io;

use bollard::errors::Error as Fault;
use engine::Error;

/// An error of the daemon, with what was tried, as a phrase after "failed to".
pub(crate) fn failed(what: impl Into<String>, fault: Fault) -> Error {
    let source = match fault {
        Fault::DockerResponseServerError { message, .. } => io::Error::other(message),
        Fault::IOError { err } => err,
        other => io::Error::other(chain(&other)),
    };
    Error::Io { what: what.into(), source }
}

/// The status of a refusal; none: the daemon did not answer, or not understandably.
pub(crate) fn status(fault: &Fault) -> Option<u16> {
    match fault {
        Fault::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// What is not there, or is so already, is as good as done.
pub(crate) fn unless(done: Result<(), Fault>, fine: &[u16]) -> Result<(), Fault> {
    match done {
        Err(fault) if status(&fault).is_some_and(|status| fine.contains(&status)) => Ok(()),
        done => done,
    }
}

/// An error with its causes: the client's own texts say little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
